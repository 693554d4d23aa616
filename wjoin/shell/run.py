"""``wjoin shell``: at a terminal or in a pipe."""

import argparse
import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import TextIO

import wjoin
from wjoin.commands.arguments import absolute, given_parameters, read_file
from wjoin.commands.extras import lacks
from wjoin.commands.spark_start import embedded, spark_settings, stopping
from wjoin.shell.shell import Choices

_WELCOME = "wjoin {}: .help shows help, Ctrl-D leaves"
_DUMB = ("", "dumb", "unknown")


def run_shell(options: argparse.Namespace) -> int:
    """Run the shell; return the exit status, 1 where what its prompt needs is not installed.

    Raises WJoinError for wrong options and for what is piped in.
    """
    params = given_parameters(options)
    first = None if options.file is None else read_file(options.file)
    if options.checkpoint is not None:
        options.checkpoint = absolute(options.checkpoint)
    choices = Choices(options.rows, options.once, options.checkpoint, params=params)
    draws = sys.stdout.isatty() and os.environ.get("TERM", "") not in _DUMB
    if sys.stdin.isatty() and draws:
        if lacks("shell"):
            return 1
        _typed(options, choices, first)
    else:
        _piped(options, choices, first)
    return 0


def _piped(options: argparse.Namespace, choices: Choices, first: str | None) -> None:
    from wjoin.shell.piped import PipedShell

    # Paths in statements are those of the folder in which the shell was started.
    started = argparse.Namespace(**{**vars(options), "file": None})
    with embedded(started) as session, stopping():
        shell = PipedShell(choices, session)
        if first is not None:
            shell.enter(first, options.file)
        shell.enter_lines(sys.stdin)


def _typed(options: argparse.Namespace, choices: Choices, first: str | None) -> None:
    from wjoin.shell.attended import Interrupts
    from wjoin.shell.background import start_spark
    from wjoin.shell.history import StatementHistory, history_path
    from wjoin.shell.known import KnownNames
    from wjoin.shell.paint import Paint
    from wjoin.shell.prompt import Prompt
    from wjoin.shell.terminal import Screen, TerminalShell

    settings = spark_settings(options)
    with _own_output() as out:
        screen = Screen(out, Paint(not os.environ.get("NO_COLOR")))
        known = KnownNames()
        history = StatementHistory(history_path())
        reader = Prompt(out, history, known.names)
        print(_WELCOME.format(wjoin.__version__))
        if history.trouble is not None:
            print(history.trouble)
        interrupts = Interrupts(reader.leave)
        if not options.debug:
            # Until the process ends: of a Spark that is gone statements tell, not the threads beside them.
            threading.excepthook = lambda args: None
        with interrupts.taken():
            if first is not None:
                reader.prompted.set()
            start = start_spark(settings, options.udf, reader.prompted)
            shell = TerminalShell(choices, screen, reader, start, interrupts, known, debug=options.debug)
            file = options.file
            shell.run(None if first is None else lambda: shell.enter(first, file))
            shell.close()


@contextlib.contextmanager
def _own_output() -> Iterator[TextIO]:
    """Write to the terminal by a file descriptor of our own: the first is Java's for a while."""
    before = sys.stdout, sys.stderr
    encoding = sys.stdout.encoding
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1, encoding=encoding, errors="replace") as out:
        sys.stdout = sys.stderr = out
        try:
            yield out
        finally:
            out.flush()
            sys.stdout, sys.stderr = before
