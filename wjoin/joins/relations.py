"""FROM items to DataFrames and to what the planner must know of them."""

import contextlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from wjoin.executor.spark.structs import char_type
from wjoin.executor.spark.watermarks import WATERMARK
from wjoin.grammar.errors import WJoinError
from wjoin.planner.bind.event_time import time_kind
from wjoin.planner.catalog import Column, Delay, Estimate, Relation
from wjoin.planner.plan.block_columns import quoted
from wjoin.planner.plan.physical import TimeKind
from wjoin.planner.windows.lengths import human
from wjoin.sources.catalog import StreamDeclaration
from wjoin.spark.spark_failures import UNREAD, first_line

_SHOWN = 100
"""Characters of an expression in an error; its place shows all of it."""


@dataclass(frozen=True)
class SparkTypes:
    """Spark's typing rules over the inputs of one join (planner.catalog.Types)."""

    spark: SparkSession
    aliases: Sequence[str]
    inputs: Sequence[DataFrame]

    def of(self, stream: int, expression: str) -> str:
        """Return the type of an expression over FROM item ``stream``."""
        rows = self.inputs[stream].alias(self.aliases[stream])
        try:
            return rows.select(F.expr(expression)).schema[0].dataType.simpleString()
        except UNREAD as error:
            short = expression if len(expression) <= _SHOWN else f"{expression[:_SHOWN]}…"
            raise WJoinError("WJ607", f"Spark cannot read {short}: {first_line(error)}") from error

    def common(self, first: str, second: str) -> str | None:
        """Return the type to which Spark widens both for ``=``, None when it has none."""
        left, right = f"CAST(NULL AS {first})", f"CAST(NULL AS {second})"
        try:
            pair = self.spark.sql(f"SELECT coalesce({left}, {right}) AS both, {left} = {right} AS equal")
            return pair.schema["both"].dataType.simpleString()
        except UNREAD:
            return None

    def fails_on_overflow(self) -> bool:
        """Return whether Spark is in its ANSI mode."""
        return str(self.spark.conf.get("spark.sql.ansi.enabled")).lower() == "true"

    def time_zone(self) -> str:
        """Return the session's time zone."""
        return str(self.spark.conf.get("spark.sql.session.timeZone"))


def describe(
    frame: DataFrame, declaration: StreamDeclaration | None, statistics: Mapping[str, Estimate]
) -> Relation:
    """Return a DataFrame as the planner sees it."""
    columns = tuple(_column(each) for each in frame.schema.fields)
    watermarks = {
        each.name.lower(): each.metadata[WATERMARK] * 1000
        for each in frame.schema.fields
        if WATERMARK in each.metadata
    }
    delays: dict[str, Delay] = {}
    if declaration is None or not declaration.derived:
        # Whoever gave Spark a watermark has told how far rows may be out of order.
        delays = {name: Delay(delay) for name, delay in watermarks.items()}
    if declaration is not None:
        for name, delay in declaration.delays.items():
            told = delay.declared or name not in delays
            delays[name] = delay if told else replace(delay, value=delays[name].value, declared=True)
    known = None if declaration is None else declaration.streaming
    return Relation(
        columns,
        None if declaration is None else declaration.event_time,
        delays,
        frame.isStreaming if known is None else known,
        statistics,
        watermark=bool(watermarks),
        derived=declaration is not None and declaration.derived,
        watermarks=watermarks,
        late_into="" if declaration is None else declaration.late_into,
        home="" if declaration is None else declaration.home,
    )


def _column(field: StructField) -> Column:
    return Column(field.name, field.dataType.simpleString(), char_type(field))


def stream_fields(spark: SparkSession, stream: StreamDeclaration) -> dict[str, str]:
    """Return the columns of a declared stream and their Spark SQL types."""
    fields = spark.table(quoted(stream.name)).schema.fields
    return {field.name: field.dataType.simpleString() for field in fields}


def event_time(stream: StreamDeclaration, fields: Mapping[str, str]) -> tuple[str | None, str]:
    """Return the event-time column of a stream (None where it is not clear) and its disorder, for people."""
    times = [name for name, kind in fields.items() if kind.startswith("timestamp")]
    name = stream.event_time or (times[0] if len(times) == 1 else None)
    delay = stream.delays.get((name or "").lower())
    if delay is None:
        return name, "not known"
    if delay.value is None:
        return name, "any time"
    shown = human(delay.value, kind_of(name, fields))
    return name, shown if delay.declared else f"{shown} (none declared)"


def kind_of(time: str | None, fields: Mapping[str, str]) -> TimeKind:
    """Return the kind of an event time, by its column; that of a timestamp where this is not clear."""
    return (time_kind(fields[time]) or TimeKind.INTEGRAL) if time is not None else TimeKind.TIMESTAMP


def spark_plan(frame: DataFrame) -> str:
    """Return Spark's own formatted plan of a DataFrame, or where a stream's is to be had."""
    if frame.isStreaming:
        # Spark refuses to explain a streaming DataFrame that has not been started.
        return "Spark plans a stream when it starts: see explain() of the running StreamingQuery"
    return explained(frame, "formatted").rstrip()


def explained(frame: DataFrame, mode: str) -> str:
    """Return what Spark prints when it explains a DataFrame."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        frame.explain(mode)
    return printed.getvalue()
