"""Names and texts of others, as they are shown: a terminal or a log does nothing with them."""

MOST_NAME = 200
"""Characters of a name that a caller gives at the most."""


def shown(text: object) -> str:
    r"""Return a text in one line, what does not print written as in Python: ESC as \x1b, a line break as \n.

    >>> print(shown("a\x1b[2J\nb é"))
    a\x1b[2J\nb é
    """
    whole = str(text)
    return whole if whole.isprintable() else "".join(map(_sign, whole))


def _sign(sign: str) -> str:
    return sign if sign.isprintable() else ascii(sign)[1:-1]
