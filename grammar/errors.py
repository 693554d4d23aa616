"""Errors of the language: stable code, place in the statement, remedy."""

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

from wjoin.grammar.shown import redacted, redacted_at, shown, shown_lines
from wjoin.grammar.spans import Span, line_and_column


@dataclass(frozen=True)
class ErrorCode:
    """One entry of the catalogue: what the code means and how it is mended."""

    code: str
    title: str
    remedy: str


@cache
def catalogue() -> dict[str, ErrorCode]:
    """Return the entries of the tables in errors.md, by code."""
    rows = Path(__file__).with_name("errors.md").read_text(encoding="utf-8").splitlines()
    cells = (re.split(r"(?<!\\) \| ", row[2:-2]) for row in rows if row.startswith("| WJ"))
    return {row[0]: ErrorCode(*(cell.replace(r"\|", "|") for cell in row)) for row in cells}


class _Diagnostic(Exception):  # noqa: N818 (an error or a warning)
    """What an error and a warning have in common: code, message, place and remedy.

    ``text`` is the whole source, ``span`` the marked piece of it (both may be absent where
    there is no place in a text). ``help`` is the remedy for this very case; the
    catalogue's general remedy stands in where it is empty.
    """

    severity = "error"

    def __init__(
        self,
        code: str,
        message: str,
        *,
        span: Span | None = None,
        text: str | None = None,
        help: str | None = None,
        source_name: str = "<sql>",
    ) -> None:
        self.code = catalogue()[code].code
        self.message = message
        self.span = span
        self.text = text
        self.help = help or catalogue()[code].remedy
        self.source_name = source_name
        super().__init__(self.render())

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.code, self.message, self._place())

    def _place(self) -> dict[str, Any]:
        return {"span": self.span, "text": self.text, "help": self.help, "source_name": self.source_name}

    def within(self, text: str, source_name: str | None = None) -> Self:
        """Return the same placed in ``text``, which its span indexes."""
        place = {**self._place(), "text": text, "source_name": source_name or self.source_name}
        return type(self)(self.code, self.message, **place)

    def at(self, span: Span, text: str | None = None) -> Self:
        """Return the same at a place, of ``text`` where that is known."""
        return type(self)(self.code, self.message, **{**self._place(), "span": span, "text": text})

    def render(self) -> str:
        """Return what the command line prints, with the marked line and a caret."""
        lines = [f"{self.severity}[{self.code}]: {shown(redacted(self.message))}"]
        if self.span is not None and self.text is not None:
            text, span = redacted_at(self.text, self.span)
            line, column = line_and_column(text, span.start)
            whole = text.split("\n")[line - 1].rstrip("\r")
            width = max(1, min(span.end, span.start + len(whole) - column + 1) - span.start)
            before, marked = shown_lines(whole[: column - 1]), shown_lines(whole[column - 1 :][:width])
            gutter = " " * len(str(line))
            lines += [
                f"{gutter}--> {shown(self.source_name)}:{line}:{column}",
                f"{gutter} |",
                f"{line} | {before}{marked}{shown_lines(whole[column - 1 + width :])}",
                f"{gutter} | {_blank(before)}{'^' * _cells(marked or ' ')}",
            ]
        lines.append(f"help: {shown(redacted(self.help))}")
        return "\n".join(lines)


def _cells(text: str) -> int:
    """Return how many places of a terminal a text takes: signs of Chinese, Japanese and Korean take two."""
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return len(text) + wide - sum(unicodedata.combining(sign) > 0 for sign in text)


def _blank(text: str) -> str:
    """Return what leaves a text's room free, tabs as they are."""
    return "".join("\t" if sign == "\t" else " " * _cells(sign) for sign in text)


class WJoinError(_Diagnostic):
    """A statement or session error with a stable code."""


class WJoinWarning(_Diagnostic, UserWarning):
    """Something that costs rows or memory in a statement that runs nevertheless, with a stable code.

    It reaches users by Python's ``warnings``; the command line prints it to standard error.
    """

    severity = "warning"


def _rebuild(kind: type[_Diagnostic], code: str, message: str, place: dict[str, Any]) -> _Diagnostic:
    return kind(code, message, **place)
