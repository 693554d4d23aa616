"""Running queries, followed to the end of the last."""

import time
from collections.abc import Callable, Sequence
from typing import TextIO

from wjoin.commands import live
from wjoin.grammar.shown import shown
from wjoin.queries.running import Running

_POLL_SECONDS = 0.3
_BROKEN = "BrokenPipeError: [Errno 32]"


def follow(running: Sequence[Running], settle: Callable[[], None], out: TextIO, as_json: bool) -> None:
    """Show queries until all have ended, then a line on ``out`` for each; a failure ends the others.

    ``settle`` is called once all have ended. Raises the error of the first that failed, KeyboardInterrupt
    where it is stopped, and BrokenPipeError where nobody reads the rows of a SELECT any more.
    """
    if not running:
        return
    with live.shown(running, as_json) as show:
        try:
            while any(each.query.isActive for each in running):
                show()
                if any(each.query.exception() is not None for each in running):
                    break
                time.sleep(_POLL_SECONDS)
        finally:
            for each in running:
                each.stop()
            show()
            settle()
    if any(each.sink is None and _BROKEN in str(each.query.exception()) for each in running):
        raise BrokenPipeError
    report(running, out)
    for each in running:
        if (error := each.failed) is not None:
            raise error


def report(running: Sequence[Running], out: TextIO) -> None:
    """Print what queries have done, a line for each."""
    for each in running:
        print(shown(each.line()), file=out, flush=True)
