"""The command line: run, check and explain scripts of W-join SQL."""

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from wjoin.commands.arguments import absolute, parse_arguments, read_script, source_name
from wjoin.commands.carried_out import How, carry_out
from wjoin.commands.complaints import no_logs, print_error, printed_warnings
from wjoin.commands.spark_start import LOG_TO_TERMINAL, embedded, stopping
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_script
from wjoin.grammar.plurals import counted
from wjoin.grammar.statement_kinds import (
    AlterSet,
    CreateView,
    Explain,
    ExplainSet,
    InsertInto,
    Query,
    SparkStatement,
    Statement,
    StatementSet,
    StateSelect,
)

if TYPE_CHECKING:
    from wjoin.planner.explain.document import Document
    from wjoin.queries.running import Running
    from wjoin.session import Session
    from wjoin.web.page_access import Address

GOOD, FAILED, REFUSED = 0, 1, 2
"""Exit statuses: all went well; a failure while running; an error of the statement."""

_WHILE_RUNNING = ("WJ704", "WJ717")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    options = parse_arguments(arguments)
    with printed_warnings(source_name(options)), contextlib.nullcontext() if options.debug else no_logs():
        return _status(options)


def _status(options: argparse.Namespace) -> int:
    """Carry out a command; print what goes wrong, and return the exit status."""
    try:
        status = _COMMANDS[options.command](options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Whoever read the output, such as head, has ended. Python would complain of it once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except WJoinError as error:
        if options.debug:
            raise
        print_error(error, source_name(options))
        return FAILED if error.code in _WHILE_RUNNING else REFUSED
    except KeyboardInterrupt:
        return GOOD
    except Exception as error:
        if options.debug:
            raise
        from wjoin.spark.spark_failures import cause

        print(f"wjoin: {cause(error)}", file=sys.stderr)
        return FAILED


def _run(options: argparse.Namespace) -> int:
    text, params = read_script(options)
    statements = parse_script(text, source_name(options))
    if options.trigger is not None:
        from wjoin.settings.triggers import processing_time

        processing_time(options.trigger, "--trigger")
    if options.complete and not options.once:
        raise WJoinError("WJ727", "a query that runs on has no end", help="give --once --complete")
    address = None
    if options.web is not None:
        from wjoin.web.page_access import parse_address

        address = parse_address(options.web)
    form = options.format or ("json" if options.json else "table")
    # What other programs read is rows and reports alone.
    out = sys.stdout if form == "table" and not options.json else sys.stderr
    running: list[Running] = []
    with embedded(options) as session, stopping(), _web(session, address):
        # Spark has been starting without them.
        from wjoin.commands.live import follow, report
        from wjoin.statements.complete import completed, rest
        from wjoin.statements.sharing import in_sets

        # The paths of the options are whole ones now.
        how = How(options.once, options.rows, options.checkpoint, options.trigger, form, options.complete)
        try:
            asked = session.context.asked(text, params)
            for statement in in_sets(asked, statements):
                with _told(statement):
                    started = carry_out(asked, statement, how)
                running += started
                if options.once:
                    follow(started, out, options.json)
                    running.clear()
                    for again in (more for each in started for more in rest(asked, statement, each)):
                        running.append(again)
                        follow(running, out, options.json)
                        running.clear()
                if options.complete:
                    with _told(statement):
                        running += completed(asked, statement, started)
                    follow(running, out, options.json)
                    running.clear()
            follow(running, out, options.json)
        except KeyboardInterrupt:
            for each in running:
                each.stop()
            session.settle()
            print(f"Stopped cleanly{_goes_on(running)}", file=sys.stderr, flush=True)
            report(running, out)
    return GOOD


def _told(statement: Statement) -> contextlib.AbstractContextManager[None]:
    """Tell on a terminal that a statement runs which prints nothing."""
    if not isinstance(statement, InsertInto | StatementSet) or not sys.stderr.isatty():
        return contextlib.nullcontext()
    from wjoin.commands.waiting_note import waiting

    if isinstance(statement, StatementSet):
        return waiting(f"Statement set of {counted(len(statement.inserts), 'statement')}")
    return waiting(f"INSERT INTO {'.'.join(each.name for each in statement.target)}")


@contextlib.contextmanager
def _web(session: "Session", address: "Address | None") -> Iterator[None]:
    """Serve the live page at an address while a script runs, None for no picture."""
    if address is None:
        yield
        return
    from wjoin.web.page_server import serve

    with serve(session.spark, session.context.queries, address) as web:
        print(f"Live page: {web.url}", file=sys.stderr, flush=True)
        try:
            yield
        finally:
            web.close(linger=True)


def _goes_on(running: "list[Running]") -> str:
    return "; the next run continues here" if any(each.checkpoint for each in running) else ""


def _shell(options: argparse.Namespace) -> int:
    from wjoin.shell.run import run_shell

    return run_shell(options)


def _check(options: argparse.Namespace) -> int:
    text, params = read_script(options)
    statements = parse_script(text, source_name(options))
    with embedded(options) as session:
        from wjoin.joins.recognised import recognised
        from wjoin.statements.checking import check

        asked = session.context.asked(text, params)
        for statement in statements:
            print(check(asked, recognised(asked, statement), options.checkpoint), flush=True)
    return GOOD


def _jar(options: argparse.Namespace) -> int:
    from wjoin.spark.java_classes import JAR

    print(JAR)
    return GOOD


def _spark_shell(options: argparse.Namespace) -> int:
    from wjoin.commands.spark_shells import replace_by

    replace_by(options.command, options.arguments)


def _checkpoint(options: argparse.Namespace) -> int:
    text, params = read_script(options)
    old, new = absolute(options.old), absolute(options.new)
    from wjoin.checkpoints.repartition import repartition
    from wjoin.commands.waiting_note import waiting

    with embedded(options) as session, stopping():
        with waiting("Rewriting the state"):
            try:
                asked = session.context.asked(text, params)
                done = repartition(asked, old, new, options.partitions, source_name(options))
            except KeyboardInterrupt:
                print(f"Stopped: {new} has not been written", file=sys.stderr, flush=True)
                return FAILED
        for each in done:
            print(
                f"{each.name}: continues after micro-batch {each.batch} with "
                f"{counted(each.after, 'partition')} instead of {each.before}, in {each.folder}"
            )
    return GOOD


def _explain(options: argparse.Namespace) -> int:
    text, params = read_script(options)
    statements = parse_script(text, source_name(options))
    from wjoin.joins.recognised import recognised
    from wjoin.statements.advice import advice
    from wjoin.statements.dispatch import execute
    from wjoin.statements.explain import explain
    from wjoin.statements.explanation import render

    documents: list[Document] = []
    with embedded(options) as session:
        if options.checkpoint is not None:
            session.settings["wjoin.checkpoint"] = options.checkpoint
        asked = session.context.asked(text, params)
        joins = any(map(_is_explained, statements))
        for each in statements:
            statement = recognised(asked, each)
            # Of a script without a window join, Spark's plans.
            if _is_explained(statement) or (not joins and _reads_only(text, statement)):
                explained = explain(asked, statement, options.mode)
                documents += explained.described
                if options.command == "advise":
                    print(advice(session.context, explained.described, explained.busy))
                elif options.format == "text":
                    print(explained)
            if isinstance(statement, CreateView) or not (
                isinstance(statement, AlterSet | Explain | ExplainSet | InsertInto | Query | StatementSet)
                or _reads_only(text, statement)
            ):
                execute(asked, statement)
    if options.format != "text":
        print(render(documents, options.format))
    return GOOD


def _is_explained(statement: Statement) -> bool:
    body = statement.body if isinstance(statement, Explain | InsertInto | CreateView) else statement
    return isinstance(statement, Explain | ExplainSet | StatementSet) or isinstance(body, Query)


def _reads_only(text: str, statement: Statement) -> bool:
    words = statement.span.of(text).split(None, 1)
    if isinstance(statement, StateSelect):
        return True
    return isinstance(statement, SparkStatement) and words[0].upper() in ("SELECT", "WITH", "EXPLAIN")


def _calibrate(options: argparse.Namespace) -> int:
    from wjoin.commands.calibrate import calibrate
    from wjoin.planner.cost.constants import save_constants

    with embedded(options) as session:
        constants = calibrate(session, lambda what: print(f"measuring {what} ...", file=sys.stderr))
    for name, seconds in constants.costs.items():
        print(f"{name:14} {seconds * 1e6:12.4f} microseconds")
    print(f"saved in {save_constants(constants)}")
    return GOOD


def _prepare(options: argparse.Namespace) -> int:
    from wjoin.commands.prepare import prepare
    from wjoin.commands.waiting_note import waiting

    began = time.monotonic()
    with waiting("Running a small join, and saving the classes that Java loads"):
        file = prepare(LOG_TO_TERMINAL if options.debug else {})
    took, size = time.monotonic() - began, file.stat().st_size / 1e6
    print(f"wrote {file} ({size:.0f} MB) in {took:.0f} s; Spark now starts from it")
    return GOOD


def _demo(options: argparse.Namespace) -> int:
    from wjoin.commands.extras import lacks
    from wjoin.demo import run_demo

    if lacks("demo"):
        return FAILED
    with embedded(options) as session:
        return int(run_demo(session, options.folder))


def _docs(options: argparse.Namespace) -> int:
    from wjoin.commands.docs import show_docs

    return show_docs(options)


def _site(options: argparse.Namespace) -> int:
    from wjoin.commands.sites import run_site

    return run_site(options)


_COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "run": _run,
    "shell": _shell,
    "check": _check,
    "explain": _explain,
    "advise": _explain,
    "why": _explain,
    "checkpoint": _checkpoint,
    "calibrate": _calibrate,
    "prepare": _prepare,
    "demo": _demo,
    "docs": _docs,
    "jar": _jar,
    "site": _site,
    "spark-sql": _spark_shell,
    "spark-shell": _spark_shell,
}

if __name__ == "__main__":
    sys.exit(main())
