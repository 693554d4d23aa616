"""The keys and times of the rows that a held input may meet at a worker, in one micro-batch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wjoin.executor.state.kept_rows import watermark
from wjoin.executor.stretches import Arrived
from wjoin.parts.kernels.runs import Int64Array, SortedRun, int64_view
from wjoin.planner.plan.block_columns import meeting_name, stored_column, time_name
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.stage_kinds import StageEdge
from wjoin.planner.windows.bounds import Windows
from wjoin.sites.value_sets import normal

Span = tuple[int, int]
"""The least and the greatest event time of some rows."""

Reach = tuple[int | None, int | None]
"""The least and the greatest event time of rows that others can meet, None where that is open."""


@dataclass(frozen=True)
class InputKeys:
    """Of one input: its distinct keys and the times of each member, of the rows kept and of the new ones."""

    kept: pa.Table
    new: pa.Table
    kept_spans: Mapping[int, Span]
    new_spans: Mapping[int, Span]

    @cached_property
    def all(self) -> pa.Table:
        """All keys, each once."""
        return _distinct([self.kept, self.new])

    @property
    def spans(self) -> dict[int, Span]:
        """The times of each member over all rows."""
        found = dict(self.kept_spans)
        for member, (low, high) in self.new_spans.items():
            _widened(found, member, low, high)
        return found


@dataclass(frozen=True)
class OtherKeys:
    """What the other inputs of a stage have; ``windows`` are those of the plan."""

    inputs: tuple[InputKeys, ...]
    windows: Windows

    @classmethod
    def of(
        cls,
        plan: PhysicalPlan,
        stage: int,
        number: int,
        working: Sequence[Sequence[SortedRun]],
        arrived: Sequence[Arrived],
        seen: Mapping[int, int],
    ) -> "OtherKeys":
        """Return what meets input ``number``: the runs kept, and new rows that are in time after ``seen``."""
        inputs = plan.stages[stage].inputs
        found = tuple(
            _input_keys(plan, each, working[place], arrived[place], seen)
            for place, each in enumerate(inputs)
            if place != number
        )
        return cls(found, plan.windows)

    @cached_property
    def _all(self) -> pa.Table:
        """The keys that every other input has, each once: columns code (int64) and value."""
        first, *others = (each.all for each in self.inputs)
        if not all(each.all.num_rows for each in self.inputs):
            return first.slice(0, 0)
        for other in others:
            first = first.filter(pc.is_in(first["value"], value_set=other["value"].combine_chunks()))
        return first

    @cached_property
    def values(self) -> pa.Array:
        """The keys that every other input has, as int64 or strings."""
        return normal(self._all["value"].combine_chunks())

    @cached_property
    def new_values(self) -> pa.Array:
        """Those of them that a new row has."""
        if not self._all.num_rows:
            return self.values
        value = self._all["value"].combine_chunks()
        came = pa.concat_arrays([each.new["value"].combine_chunks() for each in self.inputs])
        return self.values.filter(pc.is_in(value, value_set=came))

    def codes_of(self, values: pa.Array) -> pa.Array:
        """Return the codes of values of the column, NULL for one that not every other input has."""
        place = pc.index_in(normal(values), value_set=self.values)
        return self._all["code"].combine_chunks().take(place)

    def reach_of_all(self, stream: int) -> Reach:
        """Return the times of a stream's rows that can meet rows of all others."""
        return _meeting([self._reach(stream, each.spans) for each in self.inputs])

    def reach_of_new(self, stream: int) -> Reach:
        """Return the times of a stream's rows that can meet a new row, and rows of all others."""
        found = [self._reach(stream, each.new_spans) for each in self.inputs if each.new.num_rows]
        lows, highs = [low for low, _ in found], [high for _, high in found]
        low = None if None in lows else min((each for each in lows if each is not None), default=None)
        high = None if None in highs else max((each for each in highs if each is not None), default=None)
        return _meeting([(low, high), self.reach_of_all(stream)])

    def _reach(self, stream: int, spans: Mapping[int, Span]) -> Reach:
        reaches: list[Reach] = []
        for member, (low, high) in spans.items():
            back, ahead = self.windows.between(stream, member), self.windows.between(member, stream)
            reaches.append((None if back is None else low - back, None if ahead is None else high + ahead))
        return _meeting(reaches)


def _meeting(reaches: Sequence[Reach]) -> Reach:
    """Return the times that are in all of some reaches."""
    return (
        max((low for low, _ in reaches if low is not None), default=None),
        min((high for _, high in reaches if high is not None), default=None),
    )


def _input_keys(
    plan: PhysicalPlan,
    each: StageEdge,
    runs: Sequence[SortedRun],
    arrived: Arrived,
    seen: Mapping[int, int],
) -> InputKeys:
    code, value = meeting_name(each), _value_name(plan, each)
    if code is None:
        raise ValueError("an input without a key meets no held one")
    tables: list[pa.Table] = []
    new_tables: list[pa.Table] = []
    spans: dict[int, Span] = {}
    new_spans: dict[int, Span] = {}
    for run in runs:
        if run.rows:
            tables.append(_keys(run.batch, code, value))
            _cover(spans, each, run.times)
    for role, block in arrived:
        meets = role.stores or role.probes
        if not meets or code not in block.schema.names or not block.num_rows:
            continue
        times = tuple(int64_view(block.column(time_name(member))) for member in each.members)
        if each.stage is None:
            stream = each.members[0]
            mark = watermark(seen.get(stream), plan.streams[stream].delay)
            if mark is not None and times[0].min() < mark:
                in_time = times[0] >= mark
                block, times = block.filter(pa.array(in_time)), (times[0][in_time],)
        if block.num_rows:
            new_tables.append(_keys(block, code, value))
            _cover(new_spans, each, times)
    empty = pa.table({"code": pa.array([], pa.int64()), "value": pa.array([], _kind(tables + new_tables))})
    return InputKeys(_distinct([empty, *tables]), _distinct([empty, *new_tables]), spans, new_spans)


def _widened(spans: dict[int, Span], member: int, low: int, high: int) -> None:
    """Have the times of a member cover some more."""
    least, greatest = spans.get(member, (low, high))
    spans[member] = min(low, least), max(high, greatest)


def _cover(spans: dict[int, Span], each: StageEdge, times: Sequence[Int64Array]) -> None:
    for member, own in zip(each.members, times, strict=True):
        _widened(spans, member, int(own.min()), int(own.max()))


def _value_name(plan: PhysicalPlan, each: StageEdge) -> str | None:
    """Return the block column with the value of an input's key, None where the code is the value."""
    if each.key is None:
        raise ValueError("an input without a key meets no held one")
    stream, number = each.key
    code = plan.streams[stream].codes[number]
    return None if code.exact else stored_column(plan, stream, code.verify[0]).name


def _keys(batch: pa.RecordBatch, code: str, value: str | None) -> pa.Table:
    codes = batch.column(code)
    if value is None:
        found = pa.array(np.unique(int64_view(codes)))
        return pa.table({"code": found, "value": found})
    return _distinct([pa.table({"code": codes, "value": batch.column(value)})])


def _kind(tables: Sequence[pa.Table]) -> pa.DataType:
    return tables[0].schema.field("value").type if tables else pa.int64()


def _distinct(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of some tables, each once."""
    filled = [each for each in tables if each.num_rows]
    if not filled:
        return tables[0]
    whole = pa.concat_tables(filled)
    return whole.group_by(["code", "value"], use_threads=False).aggregate([]).combine_chunks()
