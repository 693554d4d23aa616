"""Markup in names, values and errors is text on the pages and in the cells of notebooks."""

from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest

from wjoin.measured.points import Point
from wjoin.notebook.drawn import Picture
from wjoin.notebook.html_tables import Table, preformatted
from wjoin.notebook.screen import _bundle

MARKUP = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" x=\'',
    "</style><script>alert(1)</script>",
    "</title><a href='javascript:alert(1)'>x</a>",
    "<!-- <![CDATA[",
    "&lt;script&gt;&#60;b&#62;",
)
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
KNOWN = {"div", "style", "p", "b", "span", "pre", "table", "thead", "tbody", "tr", "th", "td", "svg", "title"}
DRAWN = {"path"}


class Tags(HTMLParser):
    """The elements and attributes of a page, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("text", MARKUP)
def test_markup_is_text(text: str):
    rows = Table((text, "b"), (False, True), [(text, "1"), (None, text)], text)
    now = AT.timestamp()
    points = [
        Point(begins=now - 2, ends=now, rows_in={text: 1}, matches=1, seen={text: round((now - 1) * 1e6)})
    ]
    picture = Picture(text, text, AT, True, text, points, (text, text), text, rows)
    for html in (str(picture.html()), str(preformatted(text)), str(rows.html())):
        found = Tags()
        found.feed(html)
        found.close()
        assert found.tags <= KNOWN | DRAWN
        assert not [name for name in found.attributes if name.startswith("on") or name in ("href", "src")]
        assert text in found.text


@pytest.mark.parametrize("sign", ["\x1b[2J", "\x1b]8;;http://x\x07", "\u202e", "\x9b31m"])
def test_texts_of_cells_do_nothing_with_a_terminal(sign: str):
    rows = Table((sign,), (False,), [(sign,)], sign)
    shown = _bundle(Picture(sign, sign, AT, True, sign, (), (sign,), sign, rows))["text/plain"]
    assert not set(sign) & set(shown) & set("\x1b\x07\u202e\x9b")
    assert _bundle(sign)["text/plain"].isprintable()
