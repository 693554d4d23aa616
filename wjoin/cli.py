"""The command line: run and explain scripts of W-join SQL."""

import argparse
import contextlib
import logging
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_script
from wjoin.grammar.syntax import CreateView, Explain, InsertInto, Query, SparkStatement, Statement
from wjoin.planner.explain import FORMATS

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

    from wjoin.session import Session

GOOD, FAILED, REFUSED = 0, 1, 2
"""Exit statuses: all went well; a failure while running; an error of the statement."""

_POLL_SECONDS = 0.3


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except WJoinError as error:
        if options.debug:
            raise
        if error.text is not None and hasattr(options, "file"):
            error = error.within(error.text, str(options.file))
        print(error.render(), file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        return GOOD
    except Exception as error:
        if options.debug:
            raise
        print(f"wjoin: {cause_in_one_line(error)}", file=sys.stderr)
        return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "wjoin", description="Join many data streams inside time windows, on Spark."
    )
    parser.add_argument("--version", action="version", version=f"wjoin {version('wjoin')}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="run a script of W-join SQL")
    run.add_argument("file", type=Path, metavar="FILE.sql")
    run.add_argument("--once", action="store_true", help="work off all that the sources hold, then end")
    run.add_argument(
        "--checkpoint", metavar="DIR", help="folder of the checkpoints, one for each INSERT INTO"
    )
    run.add_argument("--json", action="store_true", help="one line of JSON for each micro-batch")
    run.add_argument("--rows", type=int, default=20, help="rows of a SELECT to print (20)")
    run.set_defaults(command=_run)
    explain = commands.add_parser("explain", help="show how the W-joins of a script or statement are planned")
    explain.add_argument("file", metavar="FILE_OR_SQL")
    explain.add_argument("--format", choices=FORMATS, default="text")
    explain.add_argument("--formatted", action="store_true", help="show Spark's own plan, too")
    explain.set_defaults(command=_explain)
    calibrate = commands.add_parser(
        "calibrate", help="measure what work costs on this machine, for the choice of plans"
    )
    calibrate.set_defaults(command=_calibrate)
    demo = commands.add_parser("demo", help="join the departures of New York's airports in 2013")
    demo.add_argument("--folder", type=Path, help="where to put the data and results (a temporary folder)")
    demo.set_defaults(command=_demo)
    for command in (run, explain, demo, calibrate):
        command.add_argument("--debug", action="store_true", help="show tracebacks and Spark's log")
        if command in (run, explain):
            command.add_argument("--set", action="append", default=[], metavar="K=V", help="a Spark setting")
            command.add_argument(
                "--param", action="append", default=[], metavar="NAME=VALUE", help="a value for :NAME"
            )
    return parser


def _run(options: argparse.Namespace) -> int:
    text = _read(options.file)
    script = parse_script(text, str(options.file))
    params = _pairs(options.param, "--param")
    with _session(options) as session, _stopping():
        waiting: list[StreamingQuery] = []
        for statement in script.statements:
            if options.once and isinstance(statement, InsertInto):
                query = _insert(session, text, statement, params, options)
                if query is not None:
                    _follow(session, [query], options.json)
            elif isinstance(statement, InsertInto):
                query = _insert(session, text, statement, params, options)
                waiting += [query] if query is not None else []
            else:
                _show(session, text, statement, params, options)
        _follow(session, waiting, options.json)
    return GOOD


def _insert(
    session: "Session", text: str, statement: InsertInto, params: dict[str, Any], options: argparse.Namespace
) -> "StreamingQuery | None":
    from wjoin.statements import insert

    return insert(session, text, statement, params, once=options.once, checkpoint=options.checkpoint)


def _show(
    session: "Session", text: str, statement: Statement, params: dict[str, Any], options: argparse.Namespace
) -> None:
    """Run a statement and print its rows, if it has any."""
    from wjoin.executor.spark.once import collect_once
    from wjoin.statements import execute

    frame = execute(session, text, statement, params)
    if not frame.columns:
        return
    if isinstance(statement, Explain) and frame.columns == ["plan"]:
        print("\n".join(row[0] for row in frame.collect()))
    elif not frame.isStreaming:
        frame.show(options.rows, truncate=False)
    elif options.once:
        session.spark.table(collect_once(frame)).show(options.rows, truncate=False)
    else:
        raise WJoinError(
            "WJ606",
            "a SELECT over streams has no end to wait for",
            span=statement.span,
            text=text,
            help="run with --once to print what is there, or INSERT INTO a sink",
        )


def _follow(session: "Session", queries: "list[StreamingQuery]", as_json: bool) -> None:
    """Show the progress of running queries until all have ended; one that fails ends the others."""
    from wjoin.live import LiveProgress

    with LiveProgress(as_json) as live:
        try:
            while any(query.isActive for query in queries):
                live.show(queries)
                if any(query.exception() is not None for query in queries):
                    break
                time.sleep(_POLL_SECONDS)
            live.show(queries)
        finally:
            for query in queries:
                query.stop()
            session.settle()
    for query in queries:
        failure = query.exception()
        if failure is not None:
            raise failure


def _explain(options: argparse.Namespace) -> int:
    given = options.file
    text = _read(Path(given)) if given.endswith(".sql") else given
    if text == given:
        options.file = "<sql>"
    script = parse_script(text, options.file)
    params = _pairs(options.param, "--param")
    from wjoin.explanation import render
    from wjoin.statements import execute, explain

    documents: list[dict[str, Any]] = []
    with _session(options) as session:
        for statement in script.statements:
            mode = "FORMATTED" if options.formatted else ""
            body = statement.body if isinstance(statement, Explain | InsertInto | CreateView) else statement
            if isinstance(statement, Explain) or isinstance(body, Query):
                explained = explain(session, text, statement, params, mode)
                documents += explained.documents
                if options.format == "text":
                    print(explained)
            if isinstance(statement, CreateView) or not (
                isinstance(statement, Explain | InsertInto | Query) or _reads_only(text, statement)
            ):
                execute(session, text, statement, params)
    if options.format != "text":
        print(render(documents, options.format))
    return GOOD


def _calibrate(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from wjoin.calibrate import calibrate
    from wjoin.planner.cost.constants import save_constants

    options.set = []
    with _session(options) as session:
        constants = calibrate(session, lambda what: print(f"measuring {what} ...", file=sys.stderr))
    for name, seconds in asdict(constants).items():
        print(f"{name:14} {seconds * 1e6:12.4f} microseconds")
    print(f"saved in {save_constants(constants)}")
    return GOOD


def _reads_only(text: str, statement: Statement) -> bool:
    words = statement.span.of(text).split(None, 1)
    return isinstance(statement, SparkStatement) and words[0].upper() in ("SELECT", "WITH", "EXPLAIN")


def _demo(options: argparse.Namespace) -> int:
    from wjoin.demo import run_demo
    from wjoin.demo.data import missing_packages

    if missing := missing_packages():
        print(f"wjoin: the demo needs {' and '.join(missing)}: pip install 'wjoin[demo]'", file=sys.stderr)
        return FAILED
    options.set = []
    with _session(options) as session:
        return int(run_demo(session, options.folder))


@contextlib.contextmanager
def _session(options: argparse.Namespace) -> "Iterator[Session]":
    """Start the embedded Spark, its log kept off the terminal unless --debug asks for it."""
    settings = _pairs(options.set, "--set")
    from wjoin.session import connect

    settings.setdefault("spark.log.level", "WARN" if options.debug else "ERROR")
    if not options.debug:
        # PySpark logs as JSON what it raises, and what is raised is printed below.
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    if sys.stderr.isatty():
        print("Starting Spark ...", file=sys.stderr)
    with contextlib.nullcontext() if options.debug else _quiet_children():
        session = connect(None, **settings)
    try:
        yield session
    finally:
        session.spark.stop()


@contextlib.contextmanager
def _quiet_children() -> Iterator[None]:
    """Send what processes started meanwhile print (Spark's JVM and its workers) to a file without a name."""
    with tempfile.TemporaryFile("w") as log:
        kept = [os.dup(number) for number in (1, 2)]
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            for number in (1, 2):
                os.dup2(log.fileno(), number)
            yield
        finally:
            for number, copy in zip((1, 2), kept, strict=True):
                os.dup2(copy, number)
                os.close(copy)


@contextlib.contextmanager
def _stopping() -> Iterator[None]:
    """Turn SIGINT and SIGTERM into a clean stop."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def cause_in_one_line(error: BaseException) -> str:
    """Return the cause of a failure in one line: wjoin's own error where one is inside, else Spark's."""
    text = str(error)
    own = re.search(r"error\[WJ\d+\]: [^\n]*(?:\n(?:[^\n]*\n)*?help: [^\n]*)?", text)
    if own:
        return " ".join(own.group().split())
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    python = [line for line in lines if re.match(r"[\w.]+(Error|Exception): ", line)]
    return f"{lines[0]} ({python[-1]})" if python and lines else lines[0] if lines else type(error).__name__


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise WJoinError("WJ608", f"{path} cannot be read: {error.strerror}") from error


def _pairs(items: list[str], option: str) -> dict[str, str]:
    pairs = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals:
            message = f"{option} {item} is not of the form name=value"
            raise WJoinError("WJ603", message, help=f"write {option} {item}=value")
        pairs[name] = value
    return pairs


if __name__ == "__main__":
    sys.exit(main())
