"""Write the catalogue of errors as a document: ``python -m wjoin.grammar.errors_doc docs/errors.md``."""

import sys
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from wjoin.grammar.errors import CATALOGUE, ErrorCode, WJoinError
from wjoin.grammar.spans import Span

_STATEMENT = "SELECT * FROM a, b WINDOW (a, b) = 5 WHERE a.k = b.k"
_EXAMPLE = WJoinError(
    "WJ304",
    "5 has no unit, but the streams' event time is a timestamp",
    span=Span(_STATEMENT.index("5"), _STATEMENT.index("5") + 1),
    text=_STATEMENT,
    source_name="query.sql",
)

_INTRODUCTION = f"""\
# Errors

<!-- Written by `make docs-update` from grammar/errors.py; do not edit. -->

Every error of the language has a code that stays the same from version to version. On the command
line it is printed with the line, the column and the marked piece of the statement:

```
{_EXAMPLE.render()}
```

In Python it is a `wjoin.WJoinError` with the attributes `code`, `message`, `span`, `text` and `help`.
A warning looks alike; in Python it is a `wjoin.WJoinWarning` of the module `warnings`.
"""

# The first digit of a code tells what the statement was being checked for.
_SECTIONS = {
    "1": "The text",
    "2": "Names and expressions",
    "3": "The window graph",
    "4": "The plan",
    "5": "Not available yet",
    "6": "The session",
    "7": "While running",
    "8": "Warnings",
    "9": "Sites",
}


def errors_document(entries: Iterable[ErrorCode]) -> str:
    """Return the document of all entries in Markdown, ordered by code, one section for each hundred."""
    ordered = sorted(entries, key=lambda entry: entry.code)
    by_digit = groupby(ordered, key=lambda entry: entry.code[2])
    sections = [_section(digit, list(group)) for digit, group in by_digit]
    return "\n".join([_INTRODUCTION, *sections])


def _section(digit: str, entries: list[ErrorCode]) -> str:
    rows = [f"| {entry.code} | {_cell(entry.title)} | {_cell(entry.remedy)} |" for entry in entries]
    header = [f"## {_SECTIONS[digit]}", "", "| code | what it means | what to do |", "| --- | --- | --- |"]
    return "\n".join([*header, *rows, ""])


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(errors_document(CATALOGUE.values()), encoding="utf-8")
