"""Where in a statement Spark's refusal points, and which word of wjoin's was meant there."""

import re
from difflib import get_close_matches

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.errors.exceptions.base import QueryContextType

from wjoin.grammar.spans import Span
from wjoin.grammar.tokens import Kind, scan, scan_piece

_NEAR = re.compile(r"at or near '([^\n']+)'.*?\(?line (\d+), pos (\d+)\)?", re.DOTALL)
_AT_THE_END = "at or near end of input"
_SHOWN = ("STREAMS", "SINKS", "QUERIES", "PREDICATES")
_OTHERS = ("WINDOW", "DWINDOW", "PATH", "STREAM", "SINK", "QUERY", "WATERMARK")
_ALIKE = 0.65
_OF_LITERALS = (
    *("CANNOT_PARSE_INTERVAL", "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION", "INVALID_INTERVAL_FORMAT"),
    *("INVALID_NUMERIC_LITERAL_RANGE", "INVALID_TYPED_LITERAL"),
)
_DECIMAL_DIGITS = 38
_FLINKS = {
    "TUMBLE": "window(time, '4 SECONDS')",
    "TUMBLE_START": "window(time, '4 SECONDS').start",
    "TUMBLE_END": "window(time, '4 SECONDS').end",
    "HOP": "window(time, '10 SECONDS', '4 SECONDS'), the width before the step",
    "HOP_START": "window(time, '10 SECONDS', '4 SECONDS').start",
    "HOP_END": "window(time, '10 SECONDS', '4 SECONDS').end",
    "SESSION": "session_window(time, '4 SECONDS')",
    "PROCTIME": "current_timestamp(), as a column of CREATE STREAM: proctime AS current_timestamp()",
}
"""What Spark has in the place of Flink's functions, and of its column of the time that it is now."""


def refused_place(error: PySparkException, span: Span, text: str) -> tuple[Span, str | None]:
    """Return the place that Spark names in a statement, else all of it, and a remedy where one is near.

    Spark may have got another text than the user's: a place counts where both have the same words.
    """
    if is_of_literal(error) and (literal := _literal(str(error), span, text)) is not None:
        return literal, "write a value that its type holds"
    if isinstance(error, ParseException):
        return _unparsed(str(error), span, text)
    if (meant := flinks_word(error, span, text)) is not None:
        return meant
    if isinstance(error, AnalysisException):
        for start, fragment in _fragments(error):
            place = Span(span.start + start, span.start + start + len(fragment))
            if fragment and place.of(text) == fragment:
                return place, None
    return span, None


def flinks_word(error: BaseException, span: Span, text: str) -> tuple[Span, str] | None:
    """Return the place of a word of Flink's that Spark does not know, and what to write in its place."""
    if not isinstance(error, PySparkException):
        return None
    said, condition = error.getMessageParameters() or {}, error.getCondition() or ""
    column = said.get("objectName", "") if condition.startswith("UNRESOLVED_COLUMN") else ""
    routine = said.get("routineName", "") if condition == "UNRESOLVED_ROUTINE" else ""
    missing = (routine or column).replace("`", "").rpartition(".")[2].upper()
    if missing not in _FLINKS or (column and missing != "PROCTIME"):
        return None
    named = (token.span for token in scan_piece(text, span) if token.word == missing)
    place = next(named, None)
    return None if place is None else (place, f"write {_FLINKS[missing]}")


def is_of_literal(error: BaseException) -> bool:
    """Return whether Spark refuses a literal: a number, time or interval that no type of its kind holds."""
    return isinstance(error, PySparkException) and (error.getCondition() or "").startswith(_OF_LITERALS)


def _literal(said: str, span: Span, text: str) -> Span | None:
    """Return the place of the literal that Spark refuses, None where none of the statement is meant."""
    found = []
    for token in scan_piece(text, span):
        value = token.text.strip("'\"") if token.kind is Kind.STRING else token.text.upper().rstrip("LSYDFB")
        long = token.kind is Kind.NUMBER and sum(map(str.isdigit, value)) > _DECIMAL_DIGITS
        if token.kind in (Kind.NUMBER, Kind.STRING) and value and (long or value.upper() in said.upper()):
            found.append((len(value), token.span))
    return max(found, key=lambda each: each[0])[1] if found else None


def _fragments(error: AnalysisException) -> list[tuple[int, str]]:
    contexts = error.getQueryContext()
    return [
        (each.startIndex(), each.fragment())
        for each in contexts
        if each.contextType() == QueryContextType.SQL
    ]


def _unparsed(said: str, span: Span, text: str) -> tuple[Span, str | None]:
    statement = span.of(text)
    words = [each for each in scan(statement) if each.kind is Kind.WORD]
    if _AT_THE_END in said and words:
        last = Span(span.start + words[-1].start, span.start + words[-1].end)
        meant = _meant(words[-1].word, words[0].word)
        return (last, meant) if meant else (span, None)
    near = _NEAR.search(said)
    if near is None:
        return span, None
    word, line, column = near[1], int(near[2]), int(near[3])
    before = statement.splitlines(keepends=True)[: line - 1]
    start = span.start + sum(map(len, before)) + column
    place = Span(start, start + len(word))
    if place.of(text) != word:
        # Something stands before the statement in Spark's text, such as EXPLAIN.
        same = [each for each in words if each.text == word]
        if len(same) != 1:
            return span, None
        place = Span(span.start + same[0].start, span.start + same[0].end)
    return place, _meant(word.upper(), words[0].word)


def _meant(word: str, first: str) -> str | None:
    """Return the remedy for a word that is nearly one of wjoin's, where Spark expects none of its own."""
    known = _SHOWN if first == "SHOW" else _OTHERS
    near = get_close_matches(word, known, n=1, cutoff=_ALIKE)
    return f"did you mean {near[0]}?" if near and near[0] != word else None
