"""Counts with their nouns, and lists of words."""

from collections.abc import Sequence


def counted(count: int | str, noun: str) -> str:
    """Return a count with its noun, in the plural unless it is one; a text is a count as it shall be shown.

    >>> counted(1, "row"), counted(2500, "row"), counted("0.5", "message")
    ('1 row', '2,500 rows', '0.5 messages')
    >>> counted(2, "micro-batch"), counted(3, "query"), counted(1, "query")
    ('2 micro-batches', '3 queries', '1 query')
    """
    shown = count if isinstance(count, str) else f"{count:,}"
    return f"{shown} {noun if shown == '1' else _plural(noun)}"


def listed(words: Sequence[str], last: str = "and") -> str:
    """Return words as a list.

    >>> listed(["A"]), listed(["A", "B", "C"])
    ('A', 'A, B and C')
    """
    return f" {last} ".join([part for part in (", ".join(words[:-1]), words[-1]) if part])


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}{'es' if noun.endswith(('s', 'x', 'ch', 'sh')) else 's'}"
