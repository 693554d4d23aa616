"""Rows as a table of text: columns as wide as they are on a terminal, numbers to the right."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rich.cells import cell_len, set_cell_size

from wjoin.grammar.shown import shown_lines
from wjoin.shell.paint import Paint

_NULL = "NULL"
_LEAST = 4
"""Places below which a column is not made narrower."""


@dataclass(frozen=True)
class TextRows:
    """Rows of a result as text, None for NULL.

    ``numbers`` tells of each column whether it has numbers, ``more`` whether there are more rows than these.
    """

    columns: tuple[str, ...]
    numbers: tuple[bool, ...]
    rows: tuple[tuple[str | None, ...], ...]
    more: bool = False


def table(shown: TextRows, paint: Paint, width: int | None = None) -> list[str]:
    """Return the lines of a table; where a ``width`` is given, wide columns are cut to fit into it."""
    widths = column_widths(shown, width)
    return [*head_lines(shown, widths, paint), *row_lines(shown, widths, paint)]


def table_width(shown: TextRows) -> int:
    """Return how many places the longest line of a table takes."""
    widths = column_widths(shown)
    return sum(widths) + 3 * len(widths) - 1


def records(shown: TextRows, paint: Paint) -> list[str]:
    """Return a row as a block of lines, one for each column: for rows wider than the terminal."""
    names = list(map(_text, shown.columns))
    wide = max(map(_width, names))
    lines: list[str] = []
    for number, row in enumerate(shown.rows, start=1):
        lines.append(paint(f"─ row {number} " + "─" * wide, "dim"))
        for name, value in zip(names, row, strict=True):
            first, *more = _text(value).split("\n")
            head = paint(name, "title") + " " * (wide - _width(name))
            lines.append(f" {head}  {paint(first, 'dim') if value is None else first}")
            lines += [f" {' ' * wide}  {line}" for line in more]
    return lines


def column_widths(shown: TextRows, width: int | None = None) -> tuple[int, ...]:
    """Return how wide the columns are, as wide as their values or cut to fit into ``width``."""
    texts = (tuple(map(_text, row)) for row in (shown.columns, *shown.rows))
    widths = [max(map(_width, column)) for column in zip(*texts, strict=True)]
    return tuple(widths if width is None else _fitted(widths, width))


def head_lines(shown: TextRows, widths: Sequence[int], paint: Paint) -> list[str]:
    """Return the names of the columns, and the line below them."""
    styles = ["title"] * len(widths)
    names = _lines(list(map(_text, shown.columns)), widths, shown.numbers, styles, paint)
    return [*names, paint("─" + "─┼─".join("─" * each for each in widths) + "─", "dim")]


def row_lines(shown: TextRows, widths: Sequence[int], paint: Paint) -> list[str]:
    """Return the lines of the rows."""
    lines: list[str] = []
    for row in shown.rows:
        styles = ["dim" if value is None else "" for value in row]
        lines += _lines(list(map(_text, row)), widths, shown.numbers, styles, paint)
    return lines


def _text(value: str | None) -> str:
    """Return a value as it is shown: signs that would move the cursor or change colours are spelled out."""
    if value is None:
        return _NULL
    return shown_lines(value).replace("\t", "    ")


def _width(text: str) -> int:
    return max(map(cell_len, text.split("\n")))


def _fitted(widths: Sequence[int], most: int) -> list[int]:
    """Return widths that fit into a line of so many places, the widest columns cut first."""
    found = list(widths)
    room = most - 3 * len(found) + 1
    while sum(found) > room and max(found) > _LEAST:
        widest = max(found)
        following = max((each for each in found if each < widest), default=_LEAST)
        several = found.count(widest)
        less = max(1, min(widest - max(following, _LEAST), -(-(sum(found) - room) // several)))
        found = [each - less if each == widest else each for each in found]
    return found


def _lines(
    texts: Sequence[str], widths: Sequence[int], right: Sequence[bool], styles: Sequence[str], paint: Paint
) -> Iterator[str]:
    """Yield the lines of one row; a value of several lines makes several."""
    for parts in zip_longest(*(text.split("\n") for text in texts), fillvalue=""):
        cells = []
        for part, width, numbers, style in zip(parts, widths, right, styles, strict=True):
            cut = part if cell_len(part) <= width else set_cell_size(part, width - 1).rstrip() + "…"
            blank = " " * (width - cell_len(cut))
            shown = paint(cut, style) if style else cut
            cells.append(blank + shown if numbers else shown + blank)
        yield " " + paint(" │ ", "dim").join(cells).rstrip()
