"""Room on Python's stack for what is deep."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_ROOM = 12_000
"""Calls inside each other: sqlglot needs twenty for a pair of parentheses."""

_LOCK = Lock()
_usual: list[int] = []
"""Python's own limit, once for each thread that has raised it."""


@contextmanager
def room() -> Iterator[None]:
    """Allow more calls inside each other, until the last thread that needs them has done.

    The limit is one for all threads. Raised for a moment only, it hides no endless recursion of others.
    """
    with _LOCK:
        _usual.append(_usual[0] if _usual else sys.getrecursionlimit())
        sys.setrecursionlimit(max(_usual[0], _ROOM))
    try:
        yield
    finally:
        with _LOCK:
            limit = _usual.pop()
            if not _usual:
                sys.setrecursionlimit(limit)
