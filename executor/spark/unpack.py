"""Unpack: result blocks to rows with Spark's types; full tuples are fetched of rows that came partially."""

import itertools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from wjoin.executor.blocks import cut, decode_block, gathered, only_output, restored
from wjoin.executor.late_rows import LATE, LATE_BY, MICRO_BATCH
from wjoin.executor.sites.fetching import Fetching, fetched_columns
from wjoin.executor.sites.mirror import Mirror
from wjoin.executor.sites.site_errors import as_declared
from wjoin.executor.sites.stream import SiteStream, is_partial, whole_numbers
from wjoin.executor.spark.messages import PROGRESS
from wjoin.executor.spark.task import micro_batch, phase
from wjoin.executor.windows import wanted
from wjoin.parts.kernels.runs import GREATEST, LEAST, BoolArray, Int64Array, int64_view, shifted
from wjoin.planner.plan.block_columns import MATCH_COLUMNS, stored_column, time_name
from wjoin.planner.plan.checks import Operand
from wjoin.planner.plan.physical import Output, PhysicalPlan, TimeKind

EARLIEST = -62_135_596_800_000_000
"""The first instant that Spark knows, 0001-01-01, in microseconds."""

FETCHED_ROWS = 1 << 14
"""Results for which full tuples are fetched at once: a request takes as long as the link is far."""

MARK = "__wjoin_mark"
"""The column with Spark's watermark: the least MATCH_TIME to come, in a row that has no event times.

Of a result it is a time that can be no later.
"""


@dataclass(frozen=True)
class Unpack:
    """Turns the blocks of the last stage into the rows of an output; sent to Spark's Python workers.

    ``schema`` is that of the rows, ``marked`` whether one for Spark's watermark is among them (``MARK``).
    ``parts`` are outputs by their numbers; a column for each tells whether a row is one of its results.
    ``sites`` are the streams at sites by their numbers, ``mirror`` the name under which a worker keeps what
    it has fetched of them.
    """

    plan: PhysicalPlan
    output: Output
    schema: pa.Schema
    marked: bool = False
    parts: Mapping[int, Output] = field(default_factory=dict)
    sites: Mapping[int, SiteStream] = field(default_factory=dict)
    mirror: str = ""

    @phase
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of every block, and one with the least MATCH_TIME to come where that is told."""
        marks: list[int] = []
        told = _noted(batches, marks) if self.marked else batches
        blocks = (
            decode_block(block.as_buffer())
            for batch in told
            for block in batch.column("block")
            if block.is_valid
        )
        schema = self.schema
        for rows in self.unpacked(blocks):
            schema = rows.schema
            yield rows
        if marks:
            yield self.mark(schema, max(marks))

    def unpacked(self, blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of blocks of the last stage: results, and late rows for sinks."""
        for late, group in itertools.groupby(blocks, _are_late):
            if late:
                yield from map(self.late_rows, group)
            else:
                yield from self._results(group)

    def _results(self, blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # WHERE drops what has a row of these.
        lacked = {time_name(stream) for stream in self.output.lacked}
        blocks = (block for block in blocks if lacked.isdisjoint(block.schema.names))
        fetching = {
            stream: Fetching(self.sites[stream], tuple(columns.values()), self._mirror(stream))
            for stream, columns in self._late.items()
            if columns
        }
        if fetching:
            pieces = (piece for block in blocks for piece in cut(block, FETCHED_ROWS, max(1, block.nbytes)))
            blocks = gathered(pieces, FETCHED_ROWS)
        for block in blocks:
            yield self.rows(block, fetching)

    def late_rows(self, block: pa.RecordBatch) -> pa.RecordBatch:
        """Return late rows for a sink; they have no columns of results."""
        columns = dict(zip(block.schema.names, block.columns, strict=True))
        if self.plan.time_kind is not TimeKind.INTEGRAL:
            columns[LATE_BY] = columns[LATE_BY].view(pa.duration("us"))
        columns[MICRO_BATCH] = pa.repeat(pa.scalar(micro_batch(), pa.int64()), block.num_rows)
        return self._whole(columns, block.num_rows)

    def _whole(self, columns: Mapping[str, pa.Array], count: int) -> pa.RecordBatch:
        """Return rows with all columns of the schema: batches of a task have one, whatever rows are there."""
        return pa.RecordBatch.from_arrays(
            [
                columns[each.name].cast(each.type) if each.name in columns else pa.nulls(count, each.type)
                for each in self.schema
            ],
            schema=self.schema,
        )

    def mark(self, schema: pa.Schema, mark: int) -> pa.RecordBatch:
        """Return the row with the least MATCH_TIME to come, in the schema that other rows have."""
        value = self._time(pa.array([mark], pa.int64()))
        return pa.RecordBatch.from_arrays(
            [value if each.name == MARK else pa.nulls(1, each.type) for each in schema], schema=schema
        )

    @cached_property
    def _late(self) -> dict[int, dict[int, str]]:
        """By stream at sites the columns that the output reads and that come late: numbers and names."""
        return {stream: self._late_of(stream) for stream in self.sites}

    def _late_of(self, stream: int) -> dict[int, str]:
        scan = self.plan.streams[stream]
        late = () if scan.site is None else scan.site.late
        wanted = [number for owner, number in self.output.columns if owner == stream and number in late]
        return {number: str(scan.columns[number].output) for number in wanted}

    def _mirror(self, stream: int) -> Mirror:
        """Return the mirror window of a stream on this worker, in folders that Spark removes at its end."""
        folders = [each for each in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if each]
        context = TaskContext.get()
        if not folders or context is None:
            return Mirror(None)
        worker = context.partitionId()
        return Mirror(
            Path(folders[worker % len(folders)]) / "wjoin-mirror" / self.mirror / f"{stream}-{worker}"
        )

    def rows(self, block: pa.RecordBatch, fetching: Mapping[int, Fetching] | None = None) -> pa.RecordBatch:
        """Return a block's results of the output, with the columns that the rest of the statement reads.

        ``fetching``: how to fetch the columns that rows lack which have come partially, by stream. Raises
        WJoinError WJ713, WJ714 and WJ715 where that fails.
        """
        alone = len(self._times(block)) < len(self.plan.staged)
        if self.output.windows and not alone:
            # The stage has made more: all results inside the windows with which its state began.
            block = block.filter(pa.array(wanted(self.output, self._times(block))))
        columns: dict[str, pa.Array] = {}
        fetched = self._fetched(block, fetching or {})
        for stream, number in self.plan.staged_columns(self.output):
            stored, flat = stored_column(self.plan, stream, number), flat_name(stream, number)
            if stored.name not in block.schema.names:
                # The stream has no row in these results.
                columns[flat] = pa.nulls(block.num_rows, self.schema.field(flat).type)
                continue
            values = fetched.get((stream, number), block.column(stored.name))
            if stored.restored:
                values = restored(values, self.plan.streams[stream].columns[number].type)
            columns[flat] = values
        if self.plan.lookups:
            # The joins with static relations come after, and the match functions after them.
            for stream in self.plan.staged:
                # A stream that has no row in these results has no time.
                if time_name(stream) in block.schema.names:
                    columns[time_name(stream)] = self._time(block.column(time_name(stream)))
        if self.output.match:
            columns |= self._matches(block)
        if self.parts:
            times = self._times(block)
            only = only_output(block)
            for number, part in self.parts.items():
                mask = wanted(part, times) if only in (None, number) else np.zeros(block.num_rows, bool)
                columns[part_name(number)] = pa.array(np.ones(block.num_rows, bool) if mask is None else mask)
        if not columns:
            # Nothing but the number of rows is wanted, and a batch needs a column to have one.
            columns["rows"] = pa.nulls(block.num_rows, pa.bool_())
        if self.plan.optional or self.plan.telling:
            return self._whole(columns, block.num_rows)
        return pa.RecordBatch.from_pydict(columns)

    def _matches(self, block: pa.RecordBatch) -> dict[str, pa.Array]:
        """Return the match functions where no static relation is still to be joined, and the mark."""
        times = list(self._times(block).values())
        latest, earliest = np.maximum.reduce(times), np.minimum.reduce(times)
        values = {"time": latest, "start": earliest, "span": _span(latest, earliest)}
        names = () if self.plan.lookups else sorted(self.output.match)
        columns = {MATCH_COLUMNS[each]: self._match_value(each, pa.array(values[each])) for each in names}
        if self.marked:
            delay = self.output.match_delay
            # Of an outer join the row with the mark alone tells.
            no_later = np.full(len(latest), EARLIEST) if delay is None else shifted(latest, -delay, LEAST)
            columns[MARK] = self._time(pa.array(no_later))
        return columns

    def _fetched(self, block: pa.RecordBatch, fetching: Mapping[int, Fetching]) -> dict[Operand, pa.Array]:
        """Return the late columns of those streams of which some rows have come partially."""
        asked: list[tuple[int, BoolArray, Int64Array]] = []
        for stream in fetching:
            site = self.plan.streams[stream].site
            if site is None:
                raise AssertionError("a stream is fetched that is at no site")
            name = stored_column(self.plan, stream, site.number).name
            if name not in block.schema.names:
                # The stream has no row in these results.
                continue
            numbers = int64_view(block.column(name))
            partial = is_partial(numbers)
            if partial.any():
                asked.append((stream, partial, whole_numbers(numbers[partial])))
        found = fetched_columns([(fetching[stream], numbers) for stream, _, numbers in asked])
        columns: dict[Operand, pa.Array] = {}
        for (stream, partial, _), tuples in zip(asked, found, strict=True):
            for number, name in self._late[stream].items():
                known = block.column(stored_column(self.plan, stream, number).name)
                values = as_declared(tuples.column(name), known.type, name)
                columns[stream, number] = values if partial.all() else replaced(known, partial, values)
        return columns

    def _times(self, block: pa.RecordBatch) -> dict[int, Int64Array]:
        there = [stream for stream in self.plan.staged if time_name(stream) in block.schema.names]
        return {stream: int64_view(block.column(time_name(stream))) for stream in there}

    def _match_value(self, match: str, values: pa.Array) -> pa.Array:
        if match == "span" and self.plan.time_kind is not TimeKind.INTEGRAL:
            return values.view(pa.duration("us"))
        return self._time(values)

    def _time(self, values: pa.Array) -> pa.Array:
        return restored(values, self.plan.time_kind.value)


def _span(latest: Int64Array, earliest: Int64Array) -> Int64Array:
    """Return the differences, those that 64 bits do not hold as the greatest that they do."""
    spans: Int64Array = latest - earliest
    if len(spans) and spans.min() < 0:
        spans[spans < 0] = GREATEST
    return spans


def replaced(known: pa.Array, places: BoolArray, values: pa.Array) -> pa.Array:
    """Return an array of any type with other values at some places, in their order."""
    taken = np.arange(len(known))
    taken[places] = len(known) + np.arange(len(values))
    return pa.concat_arrays([known, values]).take(pa.array(taken))


def _are_late(block: pa.RecordBatch) -> bool:
    return LATE in block.schema.names


def _noted(batches: Iterator[pa.RecordBatch], marks: list[int]) -> Iterator[pa.RecordBatch]:
    """Yield batches of messages; add to ``marks`` the progress of the results that they tell."""
    for batch in batches:
        marks += batch.column("seen").filter(pc.equal(batch.column("kind"), PROGRESS)).to_pylist()
        yield batch


def part_name(number: int) -> str:
    """Return the name of the column that tells whether a row is a result of an output."""
    return f"part{number}"


def flat_name(stream: int, number: int) -> str:
    """Return the name of a scan column among the rows that leave the stages."""
    return f"s{stream}_{number}"
