"""What Spark refuses when a query starts, said in the words of the language."""

from collections.abc import Sequence

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.grammar.statement_kinds import InsertInto, Query
from wjoin.grammar.tokens import Kind, Token, is_name, scan, scan_piece
from wjoin.spark.damage import damage_remedy
from wjoin.spark.spark_failures import first_line

_WITHOUT_WATERMARK = "STREAMING_OUTPUT_MODE", "Append output mode not supported"
_OF_ONE_STREAM = (
    "Spark's own aggregates need a watermark of Spark's: write FROM name WATERMARK time DELAY OF INTERVAL … "
    "(from Spark 4.3 on), or use a sink whose outputMode is update or complete"
)
_BOUNDED = "group by window(MATCH_TIME(), …) as well, or use a sink whose outputMode is update or complete"


def refused_start(
    text: str,
    statement: InsertInto,
    error: BaseException,
    remedy: str | None = None,
    checkpoint: str | None = None,
) -> WJoinError:
    """Return the error for a query that Spark refused to start; ``remedy`` is that of its joins."""
    message = first_line(error)
    grouping = _unbounded_grouping(text, statement.body.span)
    aggregates = any(words in message for words in _WITHOUT_WATERMARK)
    if isinstance(statement.body, Query) and aggregates and grouping is not None:
        column, function, span = grouping
        return WJoinError(
            "WJ606",
            f"results are not ordered by {column}, so a group by it would never be complete",
            span=span,
            help=f"the time of a result is MATCH_TIME(): write {function}(MATCH_TIME(), …)",
        )
    message = f"Spark refused to start the query: {message}"
    help = None
    if aggregates:
        help = _remedy(text, statement.body) if isinstance(statement.body, Query) else _OF_ONE_STREAM
    help = remedy or help or _damaged(message, checkpoint)
    return WJoinError("WJ607", message, span=statement.span, help=help)


def _damaged(message: str, checkpoint: str | None) -> str | None:
    """Return what to do about a checkpoint whose own identity Spark cannot read."""
    if checkpoint is None or "JsonParseException" not in message:
        return None
    return damage_remedy("[STREAMING_CHECKPOINT_MISSING_METADATA_FILE]", checkpoint)


def _remedy(text: str, query: Query) -> str:
    """Return how an aggregate of a stream can be bounded, be it after a join or before it."""
    if any("GROUP" in (token.word for token in scan(block.tail.of(text))) for block in query.blocks):
        return _BOUNDED
    return (
        "group (or apply DISTINCT) by event time as well; docs/deduplication.md has ways to remove duplicates"
    )


def _unbounded_grouping(text: str, span: Span) -> tuple[str, str, Span] | None:
    """Return the column, function and place of the last ``window(column, 'duration')``, None without one."""
    tokens = scan_piece(text, span)
    found = None
    for place, token in enumerate(tokens):
        after = _name_end(tokens, place + 2)
        marks = [each.text for each in tokens[place + 1 : place + 2] + tokens[after : after + 1]]
        width = [each.kind for each in tokens[after + 1 : after + 2]]
        if token.word in ("WINDOW", "SESSION_WINDOW") and marks == ["(", ","] and width == [Kind.STRING]:
            column = Span(tokens[place + 2].start, tokens[after - 1].end).of(text)
            closing = next((each.end for each in tokens[after:] if each.text == ")"), token.end)
            found = column, token.text, Span(token.start, closing)
    return found


def _name_end(tokens: Sequence[Token], place: int) -> int:
    """Return the place after the dotted name at a place."""
    while place < len(tokens) and is_name(tokens[place]):
        if place + 1 >= len(tokens) or tokens[place + 1].text != ".":
            return place + 1
        place += 2
    return place
