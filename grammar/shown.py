"""Texts of others, as they are shown: without what acts on a terminal or a log, and without secrets."""

import re
from difflib import get_close_matches

from wjoin.grammar.spans import Span

REDACTED = "*********(redacted)"
"""What stands for a secret, as in Spark."""

# Controls, ends of lines, what turns the direction of the text around it, and halves of pairs.
_ACTING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
_GAP = r"(?:\s|--[^\n]{0,200}\n|/\*(?:(?!\*/).){0,200}\*/)*+"
_LITERAL = (
    r"""(?:r?'(?:[^'\\]|\\.)*+(?:'|\Z)|r?"(?:[^"\\]|\\.)*+(?:"|\Z)|''[^']++'"""
    r"""|\\["'].*?(?:\\["']|\Z)|\$\$.*?(?:\$\$|\Z))"""
)
# What follows tells a literal from what is between two.
_LITERALS = rf"(?P<secret>{_LITERAL}(?:{_GAP}{_LITERAL})*)(?=[\s,;()]|\Z)"
_SECRET = r"(?:secret|password|token(?!file)|access[._]?key)[\w.\-]{0,100}+"
_BEGIN = r"(?<![\w.\-`'\"/])(?P<quote>[`'\"])?"
_NAME = rf"{_BEGIN}[\w.\-]{{0,100}}?{_SECRET}"
_UNQUOTED = rf"(?(quote)(?P=quote)){_GAP}=*+{_GAP}"
_FLAGS = re.IGNORECASE | re.DOTALL
_SECRETS = tuple(
    re.compile(pattern, _FLAGS)
    for pattern in (
        rf"{_NAME}{_UNQUOTED}{_LITERALS}",
        rf"{_SECRET}\s*+=++\s*+{_LITERALS}",
        rf"\bSET\s+[\w.\-`]{{0,100}}?{_SECRET}`?\s*+=++\s*+(?P<secret>[^;\n]+)",
        rf"[?&][\w.\-]{{0,100}}?{_SECRET}=(?P<secret>[^&'\"\s]+)",
        r"://[^/\s'\":@]{0,100}+:(?P<secret>[^/\s'\"@]{1,500})@",
    )
)
_OPTIONS = re.compile(r"\bopt\w*\s*+\([^)]*", _FLAGS)
# A value that has lost its quotes, or its name; elsewhere than among options it is a column.
_LOST = (
    re.compile(rf"{_NAME}{_UNQUOTED}(?P<secret>[^\s'\",;()=:\\]+)", _FLAGS),
    re.compile(rf"(?<=[(,]){_GAP}(?P<secret>{_LITERAL}){_GAP}(?=[,)]|\Z)", _FLAGS),
)
_OPTION = re.compile(rf"{_BEGIN}(?P<name>[\w.\-]{{1,100}}+){_UNQUOTED}{_LITERALS}", _FLAGS)
_WORDS, _ALIKE = ("token", "password", "passwd", "secret", "accesskey"), 0.75


def redacted(text: str) -> str:
    """Return a statement, or what is said of one, without secrets.

    They are values behind a name with ``secret``, ``password``, ``token`` or ``access key`` in it, whatever
    else is wrong with the text.

    >>> redacted("OPTIONS (site 'a', token 'b')")
    "OPTIONS (site 'a', token *********(redacted))"
    """
    return _without(text, _secrets(text))


def redacted_at(text: str, span: Span) -> tuple[str, Span]:
    """Return a text without secrets, and where a piece of it is there."""
    found = _secrets(text)
    return _without(text, found), Span(_moved(found, span.start), _moved(found, span.end))


def _without(text: str, secrets: list[Span]) -> str:
    begins, ends = [0, *(each.end for each in secrets)], [*(each.start for each in secrets), len(text)]
    return REDACTED.join(text[begin:end] for begin, end in zip(begins, ends, strict=True))


def _moved(secrets: list[Span], place: int) -> int:
    """Return where a place is once secrets are redacted; one inside of a secret is at its start."""
    inside = next((each for each in secrets if each.start <= place < each.end), None)
    place = place if inside is None else inside.start
    return place + sum(len(REDACTED) - (each.end - each.start) for each in secrets if each.end <= place)


def _secrets(text: str) -> list[Span]:
    """Return where the secrets of a text are, in order; none touches another."""
    found = [each for pattern in _SECRETS for each in pattern.finditer(text)]
    for options in _OPTIONS.finditer(text):
        found += [each for pattern in _LOST for each in pattern.finditer(text, *options.span())]
        found += [each for each in _OPTION.finditer(text, *options.span()) if _is_misspelt(each["name"])]
    merged: list[Span] = []
    for each in sorted((Span(*each.span("secret")) for each in found), key=lambda span: span.start):
        if merged and each.start <= merged[-1].end:
            merged[-1] = merged[-1].cover(each)
        else:
            merged.append(each)
    return merged


def _is_misspelt(name: str) -> bool:
    """Return whether the name of an option is nearly that of a secret."""
    last = name.lower().rpartition(".")[2]
    return last != "tokenfile" and bool(get_close_matches(last, _WORDS, 1, _ALIKE))


def shown(text: object) -> str:
    r"""Return a text in one line, what acts on a terminal or a log written as in Python: ESC as \x1b.

    >>> print(shown("a\x1b[2J\nb é"))
    a\x1b[2J\nb é
    """
    return _ACTING.sub(_written, str(text))


def shown_lines(text: str) -> str:
    r"""Return a text as ``shown`` does, but with its line breaks and tabs.

    >>> print(shown_lines("a\x1b[2J\nb"))
    a\x1b[2J
    b
    """
    return _ACTING.sub(lambda found: found[0] if found[0] in "\n\t" else _written(found), text)


def _written(found: re.Match[str]) -> str:
    return ascii(found[0])[1:-1]
