"""DROP DUPLICATES ON (…) of CREATE STREAM: of rows that are copies, the first goes on, at once."""

from collections.abc import Sequence

from pyspark.sql import DataFrame

from wjoin.executor.spark.dated import true_rows
from wjoin.executor.spark.watermarks import watermark_delay
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.statement_kinds import CreateStream
from wjoin.measured.progress import BELOW
from wjoin.planner.bind.event_time import time_kind
from wjoin.planner.catalog import Delay
from wjoin.planner.plan.block_columns import quoted
from wjoin.planner.plan.physical import TimeKind


def without_duplicates(
    frame: DataFrame,
    statement: CreateStream,
    event_time: str | None,
    delay: Delay | None,
    keys: Sequence[str],
) -> DataFrame:
    """Return the rows of a stream without copies: those that are equal in ``keys``, inside its delay.

    Rows without an event time, or with one too far ahead, are counted before (``BELOW``). Raises WJoinError
    WJ220, without its text, where Spark cannot tell when a copy may no longer come.
    """
    span = statement.unique[0].span.cover(statement.unique[-1].span)
    if event_time is None or delay is None or delay.value is None or not delay.declared:
        message = f"the delay of {statement.name.name} is unknown, so copies could arrive at any time"
        remedy = "add WATERMARK column DELAY OF INTERVAL n SECONDS: copies arrive within that time"
        raise WJoinError("WJ220", message, span=span, help=remedy)
    kind = time_kind(frame.schema[event_time].dataType.simpleString())
    if kind is not TimeKind.TIMESTAMP:
        type_ = frame.schema[event_time].dataType.simpleString()
        message = f"Spark drops duplicates by a TIMESTAMP only, and the event time {event_time} is {type_}"
        raise WJoinError("WJ220", message, span=span, help="add a computed TIMESTAMP column")
    if statement.site is not None:
        message = f"{statement.name.name} is read from a site, which never sends a row twice"
        raise WJoinError("WJ220", message, span=span, help="leave DROP DUPLICATES out")
    name = statement.name.name
    known = true_rows(frame, quoted(event_time), kind, delay.ahead, f"{BELOW}{name}", name, read=True)
    dated = known.withWatermark(event_time, watermark_delay(delay.value))
    return dated.dropDuplicatesWithinWatermark(list(keys))
