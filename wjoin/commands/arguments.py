"""The arguments of the command line."""

import argparse
import os
import re
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from wjoin.commands.sites import add_site
from wjoin.grammar.durations import count_of
from wjoin.grammar.errors import WJoinError
from wjoin.planner.explain import FORMATS
from wjoin.settings.project import Project, read_project
from wjoin.web.page_access import is_address

SHELLS = {"spark-sql": "Spark's own SQL shell", "spark-shell": "Spark's shell in Scala"}
"""The shells of Spark that wjoin starts, and what they are."""

_SCHEME = re.compile(r"[A-Za-z][\w+.-]*:")


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of a command line; ends the process where they cannot be read."""
    parser = argparse.ArgumentParser(
        "wjoin",
        description="Join many data streams inside time windows, on Spark.",
        epilog="wjoin COMMAND --help explains a command. To try statements, use wjoin shell",
    )
    parser.add_argument("--version", action="version", version=f"wjoin {version('wjoin')}")
    commands = parser.add_subparsers(metavar="COMMAND", dest="command", title="commands")
    run = commands.add_parser("run", help="run a script of W-join SQL")
    run.add_argument("--once", action="store_true", help="process everything in the sources, then exit")
    run.add_argument(
        "--complete",
        action="store_true",
        help="with --once: take all streams as ended, and decide what waits for a partner",
    )
    run.add_argument(
        "--format", choices=("table", "csv", "json"), help="how to print the rows of a SELECT (table)"
    )
    run.add_argument(
        "--json",
        action="store_true",
        help="print a JSON line per micro-batch, and per row of a SELECT",
    )
    run.add_argument(
        "--rows", type=_rows, metavar="N", help="rows of a SELECT to print (20 for a table, otherwise all)"
    )
    run.add_argument(
        "--web",
        nargs="?",
        const="",
        metavar="[HOST:]PORT",
        help="serve a live page of the running queries (127.0.0.1:4950)",
    )
    run.add_argument("--trigger", metavar="TIME", help="interval between micro-batches, e.g. '10 seconds'")
    shell = commands.add_parser(
        "shell",
        help="type statements at a prompt",
        description="Type statements at a prompt, or pipe them in. FILE.sql runs first.",
    )
    shell.add_argument(
        "--once", action="store_true", help="process everything in the sources of a stream, then exit"
    )
    shell.add_argument(
        "--rows", type=_rows, default=1000, metavar="N", help="rows of a result to fetch (1000)"
    )
    check = commands.add_parser(
        "check", help="plan a script and compare it with its checkpoints, without running it"
    )
    explain = commands.add_parser(
        "explain", help="show the plans of the window joins of a script or statement"
    )
    explain.add_argument("--format", choices=FORMATS, default="text")
    mode = explain.add_mutually_exclusive_group()
    for flag, what in (
        ("formatted", "also show Spark's own plan"),
        ("cost", "also show every candidate plan"),
        ("analyze", "also run each query over the data in its sources, and show what it did"),
    ):
        mode.add_argument(
            f"--{flag}", dest="mode", action="store_const", const=flag.upper(), default="", help=what
        )
    advise = commands.add_parser(
        "advise", help="estimate how busy each window join of streams keeps Spark, and what it needs"
    )
    advise.set_defaults(format="text", mode="")
    why = commands.add_parser("why", help="show at which step of each window join rows are lost")
    why.set_defaults(format="text", mode="MATCH")
    calibrate = commands.add_parser("calibrate", help="measure the costs of this machine, for choosing plans")
    prepare = commands.add_parser(
        "prepare", help="make Spark start faster on this machine (takes a minute and 200 MB of disk)"
    )
    demo = commands.add_parser("demo", help="join the departures of New York's airports in 2013")
    demo.add_argument("--folder", type=Path, help="where to put the data and results (a temporary folder)")
    docs = commands.add_parser("docs", help="open the documentation in a browser")
    docs.add_argument(
        "page", nargs="?", default="start", metavar="PAGE", help="such as joins, language, errors"
    )
    docs.add_argument("--folder", type=Path, help="where to write the pages (the user's folder of caches)")
    docs.add_argument("--no-browser", dest="browser", action="store_false", help="only write them")
    commands.add_parser("jar", help="print the path of wjoin's jar, for spark-sql, JDBC and Connect servers")
    for name, what in SHELLS.items():
        commands.add_parser(
            name, help=f"start {what} with window joins; its own options work", add_help=False
        )
    site = add_site(commands)
    parser.set_defaults(debug=False)
    repartition = _repartition(commands)
    for command in (run, shell, check, explain, advise, why, repartition):
        command.add_argument(
            "file", nargs="?", metavar="FILE_OR_SQL" if command in (explain, advise, why) else "FILE.sql"
        )
        if command is not shell:
            command.add_argument("-e", dest="sql", metavar="SQL", help="statements instead of a file")
        if command is not repartition:
            command.add_argument(
                "--checkpoint", metavar="DIR", help="folder of the checkpoints, one for each INSERT INTO"
            )
        command.add_argument(
            "--set", action="append", default=[], metavar="K=V", help="a setting of Spark or wjoin"
        )
        command.add_argument(
            "--udf", action="append", default=[], metavar="FILE.py", help="a file that registers predicates"
        )
        command.add_argument(
            "--param", action="append", default=[], metavar="NAME=VALUE", help="the value of :NAME"
        )
        command.add_argument(
            "--profile", metavar="NAME", help="a profile of the wjoin.toml in the script's folder"
        )
    for command in (run, shell, check, explain, advise, why, repartition, demo, calibrate, prepare, site):
        command.add_argument("--debug", action="store_true", help="show tracebacks and Spark's log")
    options, left = parser.parse_known_args(arguments)
    if options.command is None:
        parser.print_help(sys.stderr)
        parser.exit(2)
    if options.command == "checkpoint" and options.file is None and len(left) == 1 and left[0][:1] != "-":
        # argparse looks for the file directly behind the folders only.
        options.file, left = left[0], []
    if options.command in SHELLS:
        options.arguments, left = left, []
    if left:
        parser.error(f"unrecognized arguments: {' '.join(left)}")
    if getattr(options, "web", None) and options.file is None and not is_address(options.web):
        # What follows is the script.
        options.file, options.web = options.web, ""
    given = getattr(options, "file", None)
    if (
        options.command in ("explain", "advise", "why")
        and options.sql is None
        and given
        and not given.endswith(".sql")
    ):
        options.file, options.sql = None, given
    return options


def _rows(text: str) -> int:
    """Return a number of rows."""
    rows = count_of(text)
    if rows is None:
        raise argparse.ArgumentTypeError(f"{text} is not a number of rows")
    return rows


def _repartition(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """Return the command ``checkpoint repartition``, which takes two folders before its script."""
    checkpoint = commands.add_parser("checkpoint", help="rewrite checkpoints for another number of workers")
    actions = checkpoint.add_subparsers(required=True, metavar="ACTION", dest="action")
    repartition = actions.add_parser(
        "repartition",
        help="let a script continue with another number of shuffle partitions, or another n of PLAN(PSP, n)",
        description="Rewrite the checkpoints of a script for another number of shuffle partitions or "
        "another route or n of the hint PLAN. Stop the queries first. OLD does not change; NEW appears when "
        "it is complete. Then run the script with --checkpoint NEW and "
        "--set spark.sql.shuffle.partitions=N.",
    )
    repartition.add_argument("old", metavar="OLD", help="folder of the checkpoints, as --checkpoint of run")
    repartition.add_argument("new", metavar="NEW", help="folder for the new ones; must not exist yet")
    repartition.add_argument(
        "--partitions", type=int, required=True, metavar="N", help="the number of shuffle partitions"
    )
    return repartition


def read_script(options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Return the text of a script and its parameters. Raises WJoinError WJ603 or WJ608."""
    if (options.file is None) == (options.sql is None):
        raise WJoinError(
            "WJ603",
            "give a file of statements, or -e and statements",
            help=f"see wjoin {options.command} --help",
        )
    params = given_parameters(options)
    return (options.sql, params) if options.sql is not None else (read_file(options.file), params)


def given_project(options: argparse.Namespace) -> Project:
    """Return what the wjoin.toml beside the script gives, or this folder's in the shell and without one.

    Raises WJoinError WJ619 and WJ620.
    """
    if not hasattr(options, "profile"):
        return Project()
    file = None if options.command == "shell" else options.file
    folder = Path(file).resolve().parent if file is not None else Path.cwd()
    return read_project(folder, options.profile or os.environ.get("WJOIN_PROFILE") or None)


def given_parameters(options: argparse.Namespace) -> dict[str, Any]:
    """Return the values of parameters that a command line and its wjoin.toml give.

    Raises WJoinError WJ603, WJ619 and WJ620.
    """
    return {**given_project(options).parameters, **pairs(options.param, "--param")}


def read_file(file: str) -> str:
    """Return the text of a script. Raises WJoinError WJ608."""
    path = Path(file)
    try:
        return path.read_text("utf-8")
    except UnicodeError as error:
        raise WJoinError("WJ608", f"{path.resolve()} cannot be read: it is not UTF-8 text") from error
    except OSError as error:
        raise WJoinError("WJ608", f"{path.resolve()} cannot be read: {error.strerror}") from error


def source_name(options: argparse.Namespace) -> str:
    """Return how errors name the source of the statements."""
    return str(getattr(options, "file", None) or "<sql>")


def absolute(path: str, folder: Path | None = None) -> str:
    """Return a path of the command line, or of ``folder``, that the script's folder does not change."""
    return path if _SCHEME.match(path) else str(Path(folder or ".", path).resolve())


def pairs(items: list[str], option: str) -> dict[str, str]:
    """Return the names and values of an option that may be repeated. Raises WJoinError WJ603."""
    values = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals:
            message = f"{option} {item} is not of the form name=value"
            raise WJoinError("WJ603", message, help=f"write {option} {item}=value")
        values[name] = value
    return values
