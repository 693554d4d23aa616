"""Errors and warnings as the command line prints them: on standard error, never with Python's own lines."""

import sys
import warnings
from typing import Any, TextIO

from wjoin.grammar.errors import WJoinError, WJoinWarning


def print_error(error: WJoinError, name: str) -> None:
    """Print an error at its place in the script of that name."""
    placed = error if error.text is None else error.within(error.text, name)
    print(placed.render(), file=sys.stderr, flush=True)


def print_warnings(name: str) -> None:
    """Print from now on each distinct warning once: wjoin's at its place in the script, others in a line."""
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
            text = f"wjoin: warning: {' '.join(str(message).split())}"
        if text not in printed:
            printed.add(text)
            print(text, file=sys.stderr, flush=True)

    warnings.showwarning = show
    # Python tells a warning once for each line of its source; here the text decides.
    warnings.simplefilter("always", UserWarning)
