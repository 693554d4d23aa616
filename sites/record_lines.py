"""Lines of a pipe or a file, each within a length, and as many at a time as fit into some bytes."""

from collections.abc import Iterable, Iterator
from typing import BinaryIO

MOST_RECORD = 16_000_000
"""Bytes of a record at the most; a longer one is broken."""

MOST_TAKEN = 16_000_000
"""Bytes of records that are read at a time, about."""

_SHOWN = 100


def lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file. Of one that is too long only its beginning is kept, and no JSON."""
    while line := file.readline(MOST_RECORD + 1):
        if len(line) <= MOST_RECORD or line.endswith(b"\n"):
            yield line
            continue
        while (rest := file.readline(MOST_RECORD)) and not rest.endswith(b"\n"):
            continue
        yield line[:_SHOWN] + b"\xff is too long\n"


def some_of(records: Iterable[bytes], most: int) -> list[bytes]:
    """Return the first records, ``most`` or as many as have some bytes together."""
    found: list[bytes] = []
    size = 0
    for each in records:
        found.append(each)
        size += len(each)
        if len(found) >= most or size >= MOST_TAKEN:
            break
    return found
