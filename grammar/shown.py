"""Texts of others, as they are shown: without what acts on a terminal or a log, and without secrets."""

import re

from wjoin.grammar.spans import Span

REDACTED = "*********(redacted)"
"""What stands for a secret, as in Spark."""

_GAP = r"(?:\s|--[^\n]{0,200}\n|/\*(?:(?!\*/).){0,200}\*/)*+"
_LITERAL = (
    r"""(?:r?'(?:[^'\\]|\\.)*+(?:'|\Z)|r?"(?:[^"\\]|\\.)*+(?:"|\Z)"""
    r"""|\\["'].*?(?:\\["']|\Z)|\$\$.*?(?:\$\$|\Z))"""
)
_KEY = r"(?:secret|password|token(?!file)|access[._]?key)[\w.\-]{0,100}+[`'\"]?"
_AFTER_KEY = rf"{_KEY}{_GAP}=?{_GAP}"
_FLAGS = re.IGNORECASE | re.DOTALL
_SECRETS = tuple(
    re.compile(pattern, _FLAGS)
    for pattern in (
        rf"{_AFTER_KEY}(?P<secret>{_LITERAL}(?:{_GAP}{_LITERAL})*)",
        rf"\bSET\s+[\w.\-`]{{0,100}}?{_KEY}{_GAP}={_GAP}(?P<secret>[^;\n]+)",
        rf"[?&][\w.\-]{{0,100}}?{_KEY}=(?P<secret>[^&'\"\s]+)",
        r"://[^/\s'\":@]{0,100}+:(?P<secret>[^/\s'\"@]{1,500})@",
    )
)
# A value that has lost its quotes; elsewhere than among options it is a column.
_OPTIONS = re.compile(r"\bopt\w*\s*\([^)]*", _FLAGS)
_BARE = re.compile(rf"{_AFTER_KEY}(?P<secret>[^\s'\",;()=:\\]+)", _FLAGS)


def redacted(text: str) -> str:
    """Return a statement, or what is said of one, without secrets.

    They are values behind a name with ``secret``, ``password``, ``token`` or ``access key`` in it, whatever
    else is wrong with the text.

    >>> redacted("OPTIONS (site 'a', token 'b')")
    "OPTIONS (site 'a', token *********(redacted))"
    """
    found = _secrets(text)
    begins, ends = [0, *(each.end for each in found)], [*(each.start for each in found), len(text)]
    return REDACTED.join(text[begin:end] for begin, end in zip(begins, ends, strict=True))


def redacted_at(text: str, span: Span) -> tuple[str, Span]:
    """Return a text without secrets, and where a piece of it is there."""
    found = _secrets(text)
    return redacted(text), Span(_moved(found, span.start), _moved(found, span.end))


def _moved(secrets: list[Span], place: int) -> int:
    """Return where a place is once secrets are redacted; one inside of a secret is at its start."""
    inside = next((each for each in secrets if each.start <= place < each.end), None)
    place = place if inside is None else inside.start
    return place + sum(len(REDACTED) - (each.end - each.start) for each in secrets if each.end <= place)


def _secrets(text: str) -> list[Span]:
    """Return where the secrets of a text are, in order; none touches another."""
    found = [Span(*each.span("secret")) for pattern in _SECRETS for each in pattern.finditer(text)]
    for options in _OPTIONS.finditer(text):
        found += [Span(*each.span("secret")) for each in _BARE.finditer(text, *options.span())]
    merged: list[Span] = []
    for each in sorted(found, key=lambda span: span.start):
        if merged and each.start <= merged[-1].end:
            merged[-1] = merged[-1].cover(each)
        else:
            merged.append(each)
    return merged


def shown(text: object) -> str:
    r"""Return a text in one line, what does not print written as in Python: ESC as \x1b, a line break as \n.

    >>> print(shown("a\x1b[2J\nb é"))
    a\x1b[2J\nb é
    """
    return _printable(str(text), "")


def shown_lines(text: str) -> str:
    r"""Return a text as ``shown`` does, but with its line breaks and tabs.

    >>> print(shown_lines("a\x1b[2J\nb"))
    a\x1b[2J
    b
    """
    return _printable(text, "\n\t")


def _printable(text: str, kept: str) -> str:
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in kept else ascii(each)[1:-1] for each in text)
