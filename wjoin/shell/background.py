"""Spark, started while the first prompt is there already; what Java prints goes above the prompt."""

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from wjoin.shell.attended import Work
from wjoin.spark.process import redirected

if TYPE_CHECKING:
    from wjoin.session import Session

_OUT, _ERR = 1, 2

_PROMPTED_SECONDS = 5.0
"""How long Spark waits for the first prompt at most."""


def start_spark(
    settings: Mapping[str, str], udfs: Sequence[str], prompted: threading.Event
) -> "Work[Session]":
    """Return the start of an embedded Spark, on its way, and of the session on it.

    It begins when the first prompt is there: reading Spark's client would slow that down.
    The caller must have another way to the terminal than file descriptor 1: for some seconds it is what
    Java gets as its standard output, to which the console sink prints.
    """

    def connected() -> "Session":
        from wjoin.connecting import connect
        from wjoin.joins.predicates import load
        from wjoin.shell.gone import quiet_end

        prompted.wait(_PROMPTED_SECONDS)
        for file in udfs:
            load(file)
        with _printed_above((_OUT, _ERR) if settings.get("wjoin.log") == "stderr" else (_OUT,)):
            session = connect(None, **settings)
        quiet_end()
        return session

    return Work(connected)


@contextlib.contextmanager
def _printed_above(descriptors: Sequence[int]) -> Iterator[None]:
    """Let processes that are started inside print, line by line, by way of this one."""
    reading, writing = os.pipe()
    threading.Thread(target=_print_lines, args=(reading,), name="wjoin-java", daemon=True).start()
    with redirected(descriptors, writing):
        os.close(writing)
        yield


def _print_lines(reading: int) -> None:
    with os.fdopen(reading, encoding="utf-8", errors="replace", newline="\n") as lines:
        for line in lines:
            # What has been drawn over, as Spark's progress bar is, is not shown.
            print(line.rstrip("\r\n").rpartition("\r")[2], flush=True)
