"""Errors and warnings as the command line prints them: on standard error, never with Python's own lines."""

import contextlib
import logging
import sys
import warnings
from collections.abc import Iterator
from typing import Any, TextIO

from wjoin.grammar.errors import WJoinError, WJoinWarning
from wjoin.grammar.shown import redacted, shown


def print_error(error: WJoinError, name: str) -> None:
    """Print an error at its place in the script of that name."""
    placed = error if error.text is None else error.within(error.text, name)
    print(placed.render(), file=sys.stderr, flush=True)


@contextlib.contextmanager
def printed_warnings(name: str) -> Iterator[None]:
    """Print inside each distinct warning once: wjoin's at its place in the script, others in a line."""
    printed: set[str] = set()

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> Any:
        if isinstance(message, WJoinWarning):
            text = (message if message.text is None else message.within(message.text, name)).render()
        else:
            text = f"wjoin: warning: {shown(redacted(' '.join(str(message).split())))}"
        if text not in printed:
            printed.add(text)
            print(text, file=sys.stderr, flush=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        # Python tells a warning once for each line of its source; here the text decides.
        warnings.simplefilter("always", UserWarning)
        yield


@contextlib.contextmanager
def no_logs() -> Iterator[None]:
    """Keep Python's logs silent: what PySpark logs it raises as well, or it comes of a stop."""
    logging.disable()
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
