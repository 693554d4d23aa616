"""Tuples of a tree of joins that have no row of some streams: how they travel, and how they are kept.

They travel without the columns of these streams. Where they are kept they have all columns, so that those of
an input are alike: what is read of a row of NULLs, and for a missing time that of a row that is there, so
that a tuple's times are those of its rows. A column for each stream that may be missing tells whether it is
there.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wjoin.executor.conditions import true_of
from wjoin.parts.kernels.runs import BoolArray
from wjoin.planner.plan.block_columns import code_name, stored_column, time_name
from wjoin.planner.plan.checks import Operand
from wjoin.planner.plan.edges import may_lack, scan_columns
from wjoin.planner.plan.physical import PhysicalPlan, decides_at_once
from wjoin.planner.plan.stage_kinds import Join, Stage

_NOTHING = pa.scalar(None, pa.int64())

THERE = "there"
"""What the names begin with of columns that tell whether a tuple has a row of a stream."""


def there_name(stream: int) -> str:
    """Return the name of the column that tells whether a tuple has a row of a stream."""
    return f"{THERE}{stream}"


def lacked_streams(plan: PhysicalPlan, stage: Stage) -> frozenset[int]:
    """Return the streams of which what comes to a stage need not have a row."""
    return frozenset(stream for each in stage.inputs for stream in may_lack(plan, each))


def values_of(
    plan: PhysicalPlan, operand: Operand, lacked: Collection[int], column: Callable[[str], pa.Array]
) -> pa.Array:
    """Return the values of a scan column in tuples whose columns ``column`` gives, by their names.

    The time of a stream that is not there, of those ``lacked``, is NULL.
    """
    stream, _ = operand
    name = stored_column(plan, *operand).name
    if stream not in lacked or name != time_name(stream):
        return column(name)
    return pc.if_else(column(there_name(stream)), column(name), None)


@dataclass(frozen=True)
class Lacking:
    """The tuples of a stage's inputs, of which some streams may have no row.

    ``absent``: by the names of columns, what is kept in the place of those of a row that is not there;
    others are kept as NULLs, without a type. ``statement``: what failures are told with.
    """

    plan: PhysicalPlan
    number: int
    absent: Mapping[str, pa.Scalar] = field(default_factory=dict)
    statement: str = ""

    @cached_property
    def streams(self) -> tuple[tuple[int, ...], ...]:
        """By input, the streams that may have no row."""
        stage = self.plan.stages[self.number]
        return tuple(may_lack(self.plan, each) for each in stage.inputs)

    @property
    def any(self) -> bool:
        """Whether some stream may have no row."""
        return any(self.streams)

    def there(self, number: int) -> list[str]:
        """Return the names of the columns that tell which streams are there."""
        return [there_name(each) for each in self.streams[number]]

    def filled(self, number: int, block: pa.RecordBatch) -> pa.RecordBatch:
        """Return tuples that have come to an input with all its columns."""
        each, names = self.plan.stages[self.number].inputs[number], set(block.schema.names)
        # Rows of a state that has moved have all columns.
        if names.issuperset(self.there(number)):
            return block
        there = [stream for stream in each.members if time_name(stream) in names]
        times = block.column(time_name(there[0]))
        columns = {}
        for name in each.columns:
            if name in names:
                columns[name] = block.column(name)
            elif name in map(time_name, each.members):
                columns[name] = times
            else:
                value = self.absent.get(name, _NOTHING)
                valid = value.is_valid
                columns[name] = (
                    pa.repeat(value, block.num_rows) if valid else pa.nulls(block.num_rows, value.type)
                )
        for stream in self.streams[number]:
            columns[there_name(stream)] = pa.array(np.full(block.num_rows, stream in there))
        return pa.RecordBatch.from_pydict(columns)

    def meets(self, number: int, block: pa.RecordBatch) -> BoolArray | None:
        """Return which tuples of an input may meet others, None where all may."""
        stage = self.plan.stages[self.number]
        each = stage.inputs[number]
        if not isinstance(stage, Join) or not stage.asked:
            return None
        found: BoolArray = np.ones(block.num_rows, bool)
        for stream in self.streams[number]:
            if stream in stage.asked:
                found &= np.asarray(block.column(there_name(stream)))
        if each.stage is not None and each.key is not None:
            found &= np.asarray(pc.is_valid(block.column(code_name(*each.key))))
        gates = [gate.check for gate in stage.gates if gate.check.streams <= set(each.members)]
        for check in gates:
            columns = [
                values_of(self.plan, operand, self.streams[number], block.column) for operand in check.columns
            ]
            decides = decides_at_once(self.plan, self.number)
            found &= true_of(check.expression, columns, self.statement if decides else None)
        return None if found.all() else found

    def parted(
        self, rows: pa.RecordBatch, names: Sequence[str], inputs: Sequence[int]
    ) -> Iterator[pa.RecordBatch]:
        """Yield tuples of some inputs as they travel on: with the columns ``names`` of what they have."""
        stage = self.plan.stages[self.number]
        members = [stream for number in inputs for stream in stage.inputs[number].members]
        unsure = [stream for number in inputs for stream in self.streams[number]]
        code = np.zeros(rows.num_rows, np.int64)
        for stream in unsure:
            code = 2 * code + np.asarray(rows.column(there_name(stream)))
        for pattern in np.unique(code).tolist():
            some = rows if len(unsure) == 0 else rows.filter(pa.array(code == pattern))
            there = {stream for place, stream in enumerate(reversed(unsure)) if pattern >> place & 1}.union(
                set(members) - set(unsure)
            )
            known = {name for stream in there for name in scan_columns(self.plan, stream)}
            shown = [name for name in names if name in known]
            # A block needs a column to have a number of rows.
            yield some.select(shown or [time_name(min(there))])
