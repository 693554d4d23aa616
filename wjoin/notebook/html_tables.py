"""Rows as a table: in HTML where the front end shows it, else as text."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from wjoin.grammar.plurals import counted
from wjoin.planner.explain.markup import Markup, escape, join, tag
from wjoin.queries.spark_texts import Texts, first_texts, numeric
from wjoin.shell.paint import Paint
from wjoin.shell.tables import TextRows
from wjoin.shell.tables import table as table_lines

_LONGEST = 500
"""Characters of a value that are shown."""

STYLE = """
.wjoin-rows { overflow-x: auto; max-width: 100%; margin: 4px 0; }
.wjoin-rows table { border-collapse: collapse; font: 13px/1.4 system-ui, "Segoe UI", sans-serif;
  color: inherit; margin: 0; }
.wjoin-rows table th, .wjoin-rows table td { text-align: left !important; padding: 3px 10px; max-width: 60ch;
  color: inherit; background: transparent; border: 0; white-space: pre-wrap; overflow-wrap: anywhere;
  vertical-align: top; }
.wjoin-rows table th { font-weight: 600; border-bottom: 1px solid rgba(128, 128, 128, .7); white-space: pre; }
.wjoin-rows table td { border-bottom: 1px solid rgba(128, 128, 128, .25);
  font-variant-numeric: tabular-nums; }
.wjoin-rows table .number { text-align: right !important; }
.wjoin-rows .null { opacity: .55; font-style: italic; }
.wjoin-rows p { font: 12px/1.5 system-ui, "Segoe UI", sans-serif; opacity: .75; margin: 4px 0; }
"""
"""It takes the colors of the page around it, light or dark."""


@dataclass(frozen=True)
class Table:
    """Rows as texts, None for NULL; ``numbers`` tells the columns of numbers, ``note`` what is not shown."""

    columns: tuple[str, ...]
    numbers: tuple[bool, ...]
    rows: Sequence[Texts]
    note: str = ""

    def html(self) -> str:
        """Return the table as a piece of HTML."""
        head = (tag("th", name, class_=_kind(number)) for name, number in self._heads())
        body = [
            tag("tr", *(_cell(*each) for each in zip(row, self.numbers, strict=True))) for row in self.rows
        ]
        table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body))
        note = tag("p", self.note) if self.note else Markup("")
        return tag("div", tag("style", Markup(STYLE)), table, note, class_="wjoin-rows")

    def text(self) -> str:
        """Return the table as lines of text."""
        rows = tuple(tuple(None if each is None else _cut(each) for each in row) for row in self.rows)
        lines = table_lines(TextRows(self.columns, self.numbers, rows), Paint(False))
        return "\n".join([*lines, *([self.note] if self.note else [])])

    def _heads(self) -> "zip[tuple[str, bool]]":
        return zip(self.columns, self.numbers, strict=True)


def _kind(number: bool) -> str | None:
    return "number" if number else None


def _cell(value: str | None, number: bool) -> Markup:
    if value is None:
        return tag("td", tag("span", "NULL", class_="null"), class_=_kind(number))
    return tag("td", _cut(value), class_=_kind(number))


def _cut(value: str) -> str:
    return value if len(value) <= _LONGEST else f"{value[:_LONGEST]}… ({len(value):,} characters)"


def first_rows(frame: DataFrame, most: int) -> Table:
    """Return the first rows of a table."""
    rows, more = first_texts(frame, most)
    note = f"the first {counted(most, 'row')}: --limit shows more" if more else counted(len(rows), "row")
    return table(frame.schema, rows, note)


def table(schema: StructType, rows: Sequence[Texts], note: str) -> Table:
    """Return rows as a table with the columns of a schema."""
    return Table(tuple(schema.names), numeric(schema), rows, note)


def preformatted(text: str) -> Markup:
    """Return a text as HTML that keeps its lines."""
    return tag("pre", join(escape(text)), style="color: inherit; background: transparent; overflow-x: auto")
