"""What tasks read of a stream: its event time, the verdict of the filter, codes, columns."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType, LongType, TimestampNTZType, TimestampType

from wjoin.executor.spark.pack import AHEAD, CLOCK_COLUMN, KEEP, MEETS
from wjoin.executor.spark.typing import KEY_TYPES, carried, carried_type, typed
from wjoin.executor.spark.watermarks import watermark_delay
from wjoin.planner.plan.ahead import too_far_ahead
from wjoin.planner.plan.block_columns import (
    code_name,
    column_name,
    counted_name,
    event_time_expression,
    late_name,
    quoted,
    stored_column,
    time_name,
)
from wjoin.planner.plan.counting import key_parts
from wjoin.planner.plan.physical import KeyCode, PhysicalPlan, StreamScan, TimeKind
from wjoin.planner.plan.to_come import is_dated
from wjoin.planner.text.aliases import renamed

TIME_TYPES: dict[TimeKind, DataType] = {
    TimeKind.TIMESTAMP: TimestampType(),
    TimeKind.TIMESTAMP_NTZ: TimestampNTZType(),
    TimeKind.INTEGRAL: LongType(),
}

_DATED = "__wjoin_dated"
"""The event time with Spark's own watermark, where an input needs one: NULL for a row too far ahead."""

_HASH_BITS = 0xFFFFFFFF
"""Hashed codes are 32 bits wide: (code, time) then mostly fits one 64-bit sort key. Keys are verified."""

_READ = "__wjoin_read_"
"""What the names begin with of columns that several joins may read."""

_ALIAS = "it"
"""The alias of a stream in words that are compared."""

_COLUMN = re.compile(rf"`?{_ALIAS}`?\s*\.\s*(\w+|`[^`]+`)")

Names = Mapping[str, str]
"""By the names under which a join knows columns, those under which they are read."""


@dataclass(frozen=True)
class Reading:
    """A stream of a plan, and its rows."""

    plan: PhysicalPlan
    number: int
    source: DataFrame

    @property
    def scan(self) -> StreamScan:
        """What the plan knows of the stream."""
        return self.plan.streams[self.number]

    @property
    def alone(self) -> bool:
        """Whether the rows are read for this plan only: some output of it may want Spark's watermarks."""
        return bool(self.plan.watermarked)

    @property
    def needs_watermark(self) -> bool:
        """Whether the rows must have a watermark of Spark's: MATCH_TIME goes by those of the inputs."""
        dated = any(is_dated(self.plan, output) for output in self.plan.outputs)
        return dated and bool(self.plan.watermarked)


@dataclass(frozen=True)
class _Read:
    """A column that is read: an expression over a stream's rows as it travels, and its type there.

    ``hidden``: it is not evaluated of a row that the filter removes, for an expression may fail on just the
    rows that the filter is there to remove.
    """

    name: str
    text: str
    type: DataType | None
    hidden: bool = False


def _columns(reading: Reading) -> Iterator[_Read]:
    """Yield what is read of a row."""
    plan, scan, number = reading.plan, reading.scan, reading.number
    yield _Read(time_name(number), _time(scan, plan.time_kind), TIME_TYPES[plan.time_kind])
    for n, code in enumerate(scan.codes):
        kind = KEY_TYPES.get(code.types[0]) if code.exact else LongType()
        yield _Read(code_name(number, n), key_code(code), kind, hidden=True)
    for place, column in enumerate(scan.columns):
        if not stored_column(plan, number, place).restored:
            known = None if column.output is None else reading.source.schema[column.output].dataType
            travels = carried_type(known) if known else KEY_TYPES.get(column.type)
            yield _Read(column_name(number, place), carried(column.expression, known), travels, hidden=True)
    yield from _counted(plan, number)
    if scan.meets:
        verdict = " AND ".join(f"({each})" for each in scan.meets)
        yield _Read(MEETS, verdict, BooleanType(), hidden=True)
    if scan.streaming and scan.ahead is not None:
        beyond = too_far_ahead(event_time_expression(scan), plan.time_kind, scan.ahead)
        yield _Read(AHEAD, beyond, BooleanType())
    if scan.streaming and plan.clocked:
        # Spark has it in the log of the checkpoint: a repeated micro-batch has the same.
        yield _Read(CLOCK_COLUMN, "unix_micros(current_timestamp())", LongType())
    for place, column in enumerate(scan.late):
        declared = reading.source.schema[str(column.output)].dataType
        yield _Read(late_name(number, place), carried(column.expression, declared), carried_type(declared))


def _counted(plan: PhysicalPlan, stream: int) -> Iterator[_Read]:
    """Yield what windows of rows read of a row of a stream, which they count whatever the filter says."""
    for number, window in enumerate(plan.counted):
        if window.stream != stream:
            continue
        if window.condition:
            counts = f"CASE WHEN {window.condition} THEN true ELSE false END"
            yield _Read(counted_name(number), counts, BooleanType())
        for place, (code, value) in enumerate(key_parts(plan, window)):
            if value is None:
                kind = KEY_TYPES.get(code.types[0]) if code.exact else LongType()
                yield _Read(counted_name(number, place), key_code(code), kind)
            else:
                travels = KEY_TYPES.get(code.types[value])
                yield _Read(counted_name(number, place), carried(code.expressions[value], None), travels)


def _verdict(scan: StreamScan) -> str:
    """Return the filter of a stream, empty where it has none."""
    return " AND ".join(f"({each})" for each in scan.filters)


def scanned(reading: Reading) -> DataFrame:
    """Return what the pack of a stream reads: event time, codes, columns, the filter's verdict."""
    plan, verdict, read = reading.plan, _verdict(reading.scan), list(_columns(reading))
    source = marked(plan, reading.number, reading.source) if reading.needs_watermark else reading.source
    rows, types = source.alias(reading.scan.alias), {each.name: each.type for each in read}
    if verdict and (plan.streaming or any(each.stream == reading.number for each in plan.counted)):
        # Rows that a filter removes still move the stream's watermark.
        judged, kept = rows.select("*", F.expr(verdict).alias(KEEP)), F.col(KEEP)
        values = (_value(each, kept).alias(each.name) for each in read)
        return typed(judged.select(*values, kept), {**types, KEEP: BooleanType()})
    if verdict:
        rows = rows.filter(F.expr(verdict))
    return typed(rows.select(*(_value(each, None).alias(each.name) for each in read)), types)


def late_scanned(reading: Reading, *, progress: bool = False) -> DataFrame:
    """Return what tells late rows of a stream: event time, and all columns as they travel.

    ``progress``: with what tells how far it has come.
    """
    number = reading.number
    names = {time_name(number), *(late_name(number, place) for place in range(len(reading.scan.late)))}
    if progress:
        names |= {AHEAD, CLOCK_COLUMN}
    read = [each for each in _columns(reading) if each.name in names]
    rows = reading.source.alias(reading.scan.alias)
    return rows.select(*(_value(each, None).alias(each.name) for each in read))


def scanned_once(readings: Sequence[Reading]) -> tuple[DataFrame, tuple[Names, ...]]:
    """Return what several joins read of the same rows, and by what names each has its columns in it.

    What several have in the same words is there once.
    """
    once = _Once(readings[0].source)
    names = []
    for reading in readings:
        alias, verdict = reading.scan.alias, _verdict(reading.scan)
        judged, own, kept = renamed(verdict, alias, _ALIAS), {}, None
        if verdict:
            own[KEEP] = once.name(_Read(KEEP, verdict, BooleanType()), judged, "", None)
            once.read(alias)
            kept = F.col(own[KEEP])
        for each in _columns(reading):
            words = renamed(each.text, alias, _ALIAS)
            # A column of the source can be read of any row.
            hidden = each.hidden and verdict != "" and _COLUMN.fullmatch(words) is None
            own[each.name] = once.name(each, words, judged if hidden else "", kept if hidden else None)
        once.read(alias)
        names.append(own)
    return typed(once.rows.select(*once.types), once.types), tuple(names)


class _Once:
    """Rows with what is read of them, each expression once, under a name that follows from its number."""

    def __init__(self, rows: DataFrame) -> None:
        self.rows = rows
        self.types: dict[str, DataType | None] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._new: list[Column] = []

    def name(self, each: _Read, words: str, judged: str, kept: Column | None) -> str:
        """Return the name of an expression, which ``words`` and what they are ``judged`` by tell apart."""
        name = self._names.get((words, judged))
        if name is None:
            name = self._names[words, judged] = f"{_READ}{len(self._names)}"
            self.types[name] = each.type
            self._new.append(_value(each, kept).alias(name))
        return name

    def read(self, alias: str) -> None:
        """Have what is named since last time read of the rows, which have an alias in it."""
        self.rows = self.rows.alias(alias).select("*", *self._new)
        self._new = []


def _value(each: _Read, kept: Column | None) -> Column:
    """Return a column that is read; NULL, if it is hidden, of a row that is not ``kept``."""
    value = F.expr(each.text)
    return value if kept is None or not each.hidden else F.when(kept, value)


def marked(plan: PhysicalPlan, number: int, source: DataFrame) -> DataFrame:
    """Return an input with a watermark of Spark's, by its event time where it comes without one."""
    if number in plan.watermarked:
        return source
    scan = plan.streams[number]
    own = F.col(quoted(scan.event_time))
    ahead = F.expr(too_far_ahead(quoted(scan.event_time), plan.time_kind, scan.ahead))
    dated = source.withColumn(_DATED, F.when(~ahead, own))
    return dated.withWatermark(_DATED, watermark_delay(scan.delay))


def _time(scan: StreamScan, kind: TimeKind) -> str:
    expression = event_time_expression(scan)
    return f"CAST({expression} AS BIGINT)" if kind is TimeKind.INTEGRAL else expression


def key_code(code: KeyCode) -> str:
    """Return the expression of a key code: of an exact one the key itself."""
    if code.exact:
        return code.expressions[0]
    known = " AND ".join(f"({each}) IS NOT NULL" for each in code.expressions)
    return f"CASE WHEN {known} THEN xxhash64({', '.join(code.expressions)}) & {_HASH_BITS}L END"
