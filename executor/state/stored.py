"""Numbers that were stored, as they are read again: others may have written them."""

from typing import Any

MOST = (1 << 63) - 1
"""The greatest number that is stored."""


def whole(value: Any, least: int | None = 0, most: int = MOST) -> int:
    """Return a whole number that is neither below ``least`` nor above ``most``. Raises ValueError."""
    if type(value) is not int or not (-MOST - 1 if least is None else least) <= value <= most:
        raise ValueError("a number that cannot be")
    return value
