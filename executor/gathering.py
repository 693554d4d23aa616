"""Rows gathered from the runs of an input, by their numbers: whole columns, or a part at a time."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wjoin.executor.blocks import matrix, restored, taken, taken_bytes
from wjoin.parts.kernels.run_filter import RunFilter
from wjoin.parts.kernels.runs import Int64Array, SortedRun, stable_order


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
        self._rows = rows
        self._parts: list[tuple[int, pa.Array]] = []
        self._back: pa.Array | None = None
        self._matrices: dict[str, list[npt.NDArray[Any]]] = {}
        if len(pieces.runs) == 1:
            self._parts.append((0, pa.array(rows)))
            return
        run = np.searchsorted(pieces.offsets, rows, side="right") - 1
        order = stable_order(run, len(pieces.runs))
        numbers, begins = np.unique(run[order], return_index=True)
        edges = np.append(begins, len(order))
        for place, number in enumerate(numbers.tolist()):
            mine = order[edges[place] : edges[place + 1]]
            self._parts.append((number, pa.array(rows[mine] - pieces.offsets[number])))
        if len(self._parts) > 1:
            back = np.empty_like(order)
            back[order] = np.arange(len(order))
            self._back = pa.array(back)

    def part(self, start: int, stop: int) -> "Gathering":
        """Return how some of the rows are gathered."""
        return Gathering(self._pieces, self._rows[start:stop])

    def lines(self, name: str, start: int, stop: int) -> npt.NDArray[Any] | None:
        """Return the values of some of the rows as the lines of a matrix (see ``blocks.matrix``).

        None where those of a run are none, or have another length or type than those of another run.
        """
        if name not in self._matrices:
            self._matrices[name] = self._as_matrices(name)
        matrices, rows = self._matrices[name], self._rows[start:stop]
        if not matrices:
            return None
        offsets = self._pieces.offsets[[number for number, _ in self._parts]]
        if len(matrices) == 1:
            found: npt.NDArray[Any] = matrices[0].take(rows - offsets[0], axis=0)
            return found
        found = np.empty((len(rows), matrices[0].shape[1]), matrices[0].dtype)
        place = np.searchsorted(offsets, rows, side="right") - 1
        for each in np.unique(place).tolist():
            mine = place == each
            found[mine] = matrices[each].take(rows[mine] - offsets[each], axis=0)
        return found

    def _as_matrices(self, name: str) -> list[npt.NDArray[Any]]:
        """Return the values of each run that is used; none where they are no lines of one matrix."""
        found: list[npt.NDArray[Any]] = []
        for number, _ in self._parts:
            values = matrix(self._pieces.runs[number].batch.column(name))
            if values is None:
                return []
            found.append(values)
        return found if len({(each.shape[1], each.dtype) for each in found}) == 1 else []

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
class GatheredLater:
    """Values of a block column, gathered a part at a time: no more of them are there at once.

    ``kind`` is the type in Spark of the column that an event time or a code stands for, None of any other.
    """

    _gathering: Gathering
    name: str
    kind: str | None
    count: int

    def __len__(self) -> int:
        return self.count

    @property
    def nbytes(self) -> int:
        """About the bytes of all values."""
        return self._gathering.size(self.name)

    def lines(self, start: int, count: int) -> npt.NDArray[Any] | None:
        """Return some of the values as the lines of a matrix, None where they are none."""
        return self._gathering.lines(self.name, start, start + count)

    def slice(self, start: int, count: int) -> pa.Array:
        """Return some of the values."""
        values = self._gathering.part(start, start + count).column(self.name)
        return values if self.kind is None else restored(values, self.kind)
