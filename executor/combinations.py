"""What a join makes: combinations of rows, as row numbers; and the assembler that makes columns of them."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from wjoin.executor.gathering import GatheredLater, Gathering, Pieces
from wjoin.parts.kernels.runs import BoolArray, Int64Array

RESULT_BYTES = 1 << 24
"""About the most bytes of results that are made at once: a wide row may have many partners."""


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

    def later(self, number: int, name: str, kind: str | None) -> "GatheredLater":
        """Return the values of a block column, to be gathered in parts; ``kind`` as GatheredLater has it."""
        return GatheredLater(self.gathering(number), name, kind, len(self))

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
