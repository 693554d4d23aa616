"""Times and sizes as people write them."""

import re

from wjoin.grammar.durations import from_pairs
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span

_NUMBER = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[A-Za-z]+)")
_SIZES = {"b": 1, "byte": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_SIZES |= {"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}


def microseconds(text: str) -> int | None:
    """Return a time in microseconds, None where it cannot be read, or is none.

    >>> microseconds("1.5 minutes"), microseconds("100 ms"), microseconds("-5 s")
    (90000000, 100000, None)
    """
    try:
        found = from_pairs(text, Span(0, len(text)))
    except WJoinError:
        return None
    return found if found > 0 else None


def size(text: str) -> int | None:
    """Return a size in bytes, None where it cannot be read.

    >>> size("64 MB"), size("1 GiB")
    (64000000, 1073741824)
    """
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        return None
    word = found["unit"].lower()
    unit = _SIZES.get(word, _SIZES.get(word.removesuffix("s")))
    return None if unit is None else round(float(found["number"]) * unit)


def shown_size(count: float) -> str:
    """Return a number of bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
