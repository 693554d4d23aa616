"""Tuples of a tree of joins that have no row of some streams: how they travel, and how they are kept.

They travel without the columns of these streams. Where they are kept they have all columns, so that those of
an input are alike: NULLs, and for a missing time that of a row that is there, so that a tuple's times are
those of its rows. A column for each stream that may be missing tells whether it is there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wjoin.parts.kernels.runs import BoolArray
from wjoin.planner.plan.block_columns import code_name, stored_column, time_name
from wjoin.planner.plan.edges import may_lack, scan_columns
from wjoin.planner.plan.physical import Join, PhysicalPlan

THERE = "there"
"""What the names begin with of columns that tell whether a tuple has a row of a stream."""


def there_name(stream: int) -> str:
    """Return the name of the column that tells whether a tuple has a row of a stream."""
    return f"{THERE}{stream}"


@dataclass(frozen=True)
class Lacking:
    """The tuples of a stage's inputs, of which some streams may have no row.

    ``types``: by the names of columns, as which NULLs are kept; what is not there is kept without a type.
    """

    plan: PhysicalPlan
    number: int
    types: Mapping[str, pa.DataType] = field(default_factory=dict)

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
                columns[name] = pa.nulls(block.num_rows, self.types.get(name, pa.int64()))
        for stream in self.streams[number]:
            columns[there_name(stream)] = pa.array(np.full(block.num_rows, stream in there))
        return pa.RecordBatch.from_pydict(columns)

    def meets(self, number: int, block: pa.RecordBatch) -> BoolArray | None:
        """Return which tuples of an input may meet others, None where all may."""
        stage = self.plan.stages[self.number]
        each = stage.inputs[number]
        if not isinstance(stage, Join) or not stage.asked or each.stage is None:
            return None
        asked = [there_name(stream) for stream in self.streams[number] if stream in stage.asked]
        asked += [stored_column(self.plan, *gate).name for gate in stage.gates if gate[0] in each.members]
        masks = [pc.fill_null(block.column(name), False) for name in asked]
        if each.key is not None:
            masks.append(pc.is_valid(block.column(code_name(*each.key))))
        found: BoolArray = np.ones(block.num_rows, bool)
        for mask in masks:
            found &= np.asarray(mask)
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
