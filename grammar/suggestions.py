"""The name that somebody may have meant who has written another one."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the nearest of the known names, in any case, None where none is near."""
    by_lower = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), by_lower, n=1)
    return by_lower[near[0]] if near else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a remedy that names the nearest of the known names, empty where none is near.

    >>> suggestion("obj_di", ["ts", "Obj_ID"])
    'did you mean Obj_ID?'
    """
    near = nearest(name, known)
    return f"did you mean {near}?" if near else ""
