"""HTML and SVG from Python: every text and attribute is escaped unless it is markup already."""

import html
import re
import unicodedata
from collections.abc import Iterator

_VOID = {"meta", "br"}
# What XML does not allow, and the controls that turn the direction of the text around them.
_UNSAFE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u202a-\u202e\u2066-\u2069]")


class Markup(str):
    """Text that is markup: it stands as it is inside other markup."""

    __slots__ = ()


def escape(text: str) -> Markup:
    """Return a text as markup that shows it.

    >>> escape('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return text if isinstance(text, Markup) else Markup(html.escape(clean(text)))


def clean(text: str) -> str:
    """Return a text with a replacement character for whatever cannot be shown safely."""
    return _UNSAFE.sub("\ufffd", text)


def join(*parts: str) -> Markup:
    """Return pieces of text and markup, one after the other."""
    return Markup("".join(escape(part) for part in parts))


def tag(name: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """Return an element; an attribute that is None is left out.

    An underscore in the name of an attribute stands for a hyphen, at the end for nothing.

    >>> tag("text", "a < b", class_="label", x=1.5)
    '<text class="label" x="1.5">a &lt; b</text>'
    """
    head = "".join(_attributes(attributes))
    if name in _VOID:
        return Markup(f"<{name}{head}/>")
    return Markup(f"<{name}{head}>{join(*children)}</{name}>")


def _attributes(attributes: dict[str, str | float | None]) -> Iterator[str]:
    for name, value in attributes.items():
        if value is not None:
            shown = escape(value) if isinstance(value, str) else f"{round(value, 1):g}"
            yield f' {name.rstrip("_").replace("_", "-")}="{shown}"'


def picture(width: float, height: float, label: str, *children: str, class_: str = "") -> Markup:
    """Return an SVG picture in its natural size, with a description for those who cannot see it."""
    return tag(
        "svg",
        tag("title", label),
        *children,
        xmlns="http://www.w3.org/2000/svg",
        class_=f"picture {class_}".strip(),
        role="img",
        width=round(width),
        height=round(height),
        viewBox=f"0 0 {round(width)} {round(height)}",
    )


def text_width(text: str, size: float) -> float:
    """Return about how wide a text is in a wide sans-serif font of ``size`` pixels, rather more than less."""
    return size * sum(_character_width(each) for each in text)


def _character_width(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    if character in " .,:;'|!ijl()[]":
        return 0.4
    if character in "mwMW%@…−±≤≥+=<>~→":
        return 0.98
    return 0.74 if character.isupper() else 0.62


def fitted(text: str, size: float, width: float, *, middle: bool = False) -> str:
    """Return a text on one line, cut so that it fits into a width: at its end, a name in the ``middle``."""
    text = " ".join(clean(text).split())
    if text_width(text, size) <= width:
        return text
    half = len(text) // 2 if middle else len(text)
    head, tail = text[:half], text[half:]
    while head and text_width(f"{head}…{tail}", size) > width:
        head, tail = (head[:-1], tail) if len(head) > len(tail) else (head, tail[1:])
    return f"{head.rstrip()}…{tail.lstrip()}"
