"""What a join makes: combinations of rows, as row numbers; and the assembler that makes columns of them."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from wjoin.executor.blocks import taken, taken_bytes
from wjoin.parts.kernels.run_filter import RunFilter
from wjoin.parts.kernels.runs import BoolArray, Int64Array, SortedRun, stable_order

RESULT_BYTES = 1 << 24
"""About the most bytes of results that are made at once: a wide row may have many partners."""


@dataclass(frozen=True)
class Pieces:
    """The rows of one input that a probe may use: runs, addressed by one running row number.

    ``filter`` tells which of the runs that are not new may hold a code.
    """

    runs: tuple[SortedRun, ...]
    filter: RunFilter | None = None

    @cached_property
    def offsets(self) -> Int64Array:
        """The first row number of each run, int64."""
        return np.cumsum([0, *(run.rows for run in self.runs)])[:-1].astype(np.int64)

    @property
    def rows(self) -> int:
        """The number of rows of all runs."""
        return sum(run.rows for run in self.runs)


class Gathering:
    """How rows are gathered from the runs of an input: found once, for all columns.

    ``rows`` are row numbers of ``pieces``, int64. Only the runs and pages are touched that they name.
    """

    def __init__(self, pieces: Pieces, rows: Int64Array) -> None:
        self._pieces = pieces
        self._parts: list[tuple[int, pa.Array]] = []
        self._back: pa.Array | None = None
        if len(pieces.runs) == 1:
            self._parts.append((0, pa.array(rows)))
            return
        run = np.searchsorted(pieces.offsets, rows, side="right") - 1
        order = stable_order(run, len(pieces.runs))
        edges = np.searchsorted(run[order], np.arange(len(pieces.runs) + 1))
        for number, offset in enumerate(pieces.offsets):
            mine = order[edges[number] : edges[number + 1]]
            if len(mine):
                self._parts.append((number, pa.array(rows[mine] - offset)))
        if len(self._parts) > 1:
            back = np.empty_like(order)
            back[order] = np.arange(len(order))
            self._back = pa.array(back)

    def size(self, name: str) -> int:
        """Return about how many bytes the values of a block column take."""
        columns = ((self._pieces.runs[number].batch.column(name), places) for number, places in self._parts)
        return sum(taken_bytes(column, places) for column, places in columns)

    def column(self, name: str) -> pa.Array:
        """Return the values of a block column."""
        columns = ((self._pieces.runs[number].batch.column(name), places) for number, places in self._parts)
        parts = [taken(column, places) for column, places in columns]
        if not parts:
            return self._pieces.runs[0].batch.column(name).slice(0, 0)
        return parts[0] if self._back is None else taken(pa.concat_arrays(parts), self._back)


@dataclass(frozen=True)
class Combinations:
    """Tuples of rows, one of each input that is joined so far.

    ``codes`` ascend where the kernel needs it. For each joined input there are its row numbers in its
    ``pieces``, for each joined stream its event times; all int64 of one length.
    """

    pieces: Sequence[Pieces]
    codes: Int64Array
    rows: dict[int, Int64Array]
    times: dict[int, Int64Array]
    _gatherings: dict[int, Gathering] = field(default_factory=dict, compare=False)

    def __len__(self) -> int:
        return len(self.codes)

    def pick(self, chosen: Int64Array | BoolArray | slice) -> "Combinations":
        """Return the tuples at the given places."""
        return Combinations(
            self.pieces,
            self.codes[chosen],
            {number: rows[chosen] for number, rows in self.rows.items()},
            {stream: times[chosen] for stream, times in self.times.items()},
        )

    def halves(self) -> Iterator["Combinations"]:
        """Yield the first half of the tuples, then the others."""
        middle = len(self) // 2
        yield self.pick(slice(None, middle))
        yield self.pick(slice(middle, None))

    def parts(self, columns: Collection[tuple[int, str]], most: int) -> Iterator["Combinations"]:
        """Yield the tuples in parts for which columns (input, name of the block column) take so many bytes.

        About so many at the most, unless one tuple takes more.
        """
        size = sum(self.gathering(number).size(name) for number, name in columns)
        if size <= most or len(self) == 1:
            yield self
            return
        for half in self.halves():
            yield from half.parts(columns, most)

    def column(self, number: int, name: str) -> pa.Array:
        """Return the values of a block column of a joined input."""
        return self.gathering(number).column(name)

    def gathering(self, number: int) -> Gathering:
        """Return how the rows of a joined input are gathered."""
        if number not in self._gatherings:
            self._gatherings[number] = Gathering(self.pieces[number], self.rows[number])
        return self._gatherings[number]


@dataclass(frozen=True)
class Assembler:
    """Makes blocks of combinations; ``columns`` are (input, name of the block column)."""

    columns: tuple[tuple[int, str], ...]

    def blocks(self, combinations: Combinations) -> Iterator[pa.RecordBatch]:
        """Yield the combinations as rows, in blocks of at most RESULT_BYTES unless one row takes more."""
        yield from map(self.block, combinations.parts(self.columns, RESULT_BYTES))

    def block(self, combinations: Combinations) -> pa.RecordBatch:
        """Return the combinations as rows."""
        return pa.RecordBatch.from_pydict(
            {name: combinations.column(number, name) for number, name in self.columns}
        )
