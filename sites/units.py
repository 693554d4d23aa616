"""Times and sizes as people write them."""

import re

_NUMBER = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[A-Za-z]+)")
_TIMES = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_TIMES |= {"us": 1, "ms": _TIMES["millisecond"], "s": _TIMES["second"], "min": _TIMES["minute"]}
_SIZES = {"b": 1, "byte": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_SIZES |= {"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}


def microseconds(text: str) -> int | None:
    """Return a time in microseconds, None where it cannot be read.

    >>> microseconds("1.5 minutes"), microseconds("100 ms")
    (90000000, 100000)
    """
    return _read(text, _TIMES)


def size(text: str) -> int | None:
    """Return a size in bytes, None where it cannot be read.

    >>> size("64 MB"), size("1 GiB")
    (64000000, 1073741824)
    """
    return _read(text, _SIZES)


def _read(text: str, units: dict[str, int]) -> int | None:
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        return None
    word = found["unit"].lower()
    unit = units.get(word, units.get(word.removesuffix("s")))
    return None if unit is None else round(float(found["number"]) * unit)


def shown_size(count: float) -> str:
    """Return a number of bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
