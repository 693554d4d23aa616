"""The slices of a worker's state: sorted runs, written once, merged when many, dropped when expired."""

import hashlib
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from wjoin.executor.blocks import concatenate, cut
from wjoin.executor.state.marks import MATCHED, marks_of, without_marks
from wjoin.executor.state.writing import Cutting, check_compression
from wjoin.parts.kernels.runs import BoolArray, RunShape, SortedRun, select

_DIGEST = re.compile("[0-9a-f]{32}")
_MOST_PIECES = 1 << 16


@dataclass(frozen=True)
class Slice:
    """One stored run: its name, rows and bytes, the range of its first time column, its order.

    ``digest`` is that of its bytes (``digest_of``), empty where it is kept in memory.
    ``pieces`` are the values of the state that hold them, each with ``compression``, None without any.
    """

    name: str
    rows: int
    size: int
    earliest: int
    latest: int
    order: str
    digest: str = ""
    pieces: int = 1
    compression: str | None = None

    def check(self) -> None:
        """Raise ValueError for what no worker has stored."""
        # The copy of a slice on this machine is a file of this name.
        if not _DIGEST.fullmatch(self.digest):
            raise ValueError("a digest that is none")
        if self.rows < 0 or self.size < 0 or not 0 < self.pieces <= _MOST_PIECES:
            raise ValueError("a slice with a number that cannot be")
        if self.compression is not None:
            check_compression(self.compression)


@dataclass(frozen=True)
class Stored:
    """How a run was stored: its bytes and their digest, empty in memory; as how many pieces, of what
    compression."""

    size: int
    digest: str = ""
    pieces: int = 1
    compression: str | None = None


class SliceStore(Protocol):
    """Where a worker's slices are kept."""

    def load(self, stored: Slice) -> pa.RecordBatch:
        """Return the rows of a slice."""
        ...

    def save(self, name: str, batch: pa.RecordBatch, cutting: Cutting) -> Stored:
        """Write a slice under a new name, in the pieces and with the compression that the rules say."""
        ...

    def remove(self, stored: Slice) -> None:
        """Forget a slice."""
        ...


def digest_of(data: bytes | pa.Buffer) -> str:
    """Return a name for a slice that no other content has."""
    return hashlib.sha256(data).hexdigest()[:32]


def piece_names(name: str, count: int) -> Iterator[str]:
    """Yield the keys under which the pieces of a slice are in the state."""
    yield name
    yield from (f"{name}.{number}" for number in range(1, count))


Load = Callable[[Slice], SortedRun]
Kept = Callable[[SortedRun], BoolArray]
Leaving = Callable[[SortedRun], object]
"""Gets rows that leave the state, or that come too late for it: each row once."""


@dataclass(frozen=True)
class Change:
    """What becomes of the slices of one input: those that stay, runs to write, slices to remove."""

    stay: tuple[Slice, ...]
    write: tuple[SortedRun, ...]
    remove: tuple[Slice, ...]


def maintain(
    slices: tuple[Slice, ...],
    arrived: SortedRun | None,
    shape: RunShape,
    load: Load,
    live: Kept,
    settled: int | None,
    cutting: Cutting,
    leaving: Leaving | None = None,
) -> Change:
    """Add the new rows, drop what has expired, merge slices of like size, and sort those of another order.

    ``live`` tells which rows of a run must be kept. Where ``settled`` is known, the rows with a
    first time of ``settled`` or later are the live ones, so only slices across it are opened. What is
    written follows from these arguments and ``cutting`` alone. ``leaving`` is handed what expires, as soon
    as it does; without it slices are dropped unopened, and expired rows may stay in one for a while.
    """
    stay: list[Slice] = []
    remove: list[Slice] = []
    write: list[SortedRun] = []
    straddling: list[tuple[Slice, BoolArray]] = []
    dead = total = 0
    for each in slices:
        if each.order != shape.order_name:
            # Sorted anew once, not in every micro-batch.
            kept = still_live(load(each), shape, live, leaving)
            remove.append(each)
            if kept is not None:
                write.append(kept)
            continue
        if settled is not None and each.earliest >= settled:
            stay.append(each)
            total += each.rows
            continue
        if settled is not None and each.latest < settled:
            remove.append(each)
            if leaving is not None:
                leaving(load(each))
            continue
        keep = live(load(each))
        count = int(np.count_nonzero(keep))
        if count == 0:
            remove.append(each)
            if leaving is not None:
                leaving(load(each))
            continue
        total += count
        dead += each.rows - count
        straddling.append((each, keep))
    fresh = None if arrived is None else still_live(arrived, shape, live, leaving)
    if fresh is not None:
        write.append(fresh)
        total += fresh.rows
    if dead > (cutting.dead_share * total if leaving is None else 0):
        for each, keep in straddling:
            if keep.all():
                stay.append(each)
                continue
            remove.append(each)
            write.append(select(load(each), shape, keep))
            if leaving is not None:
                leaving(select(load(each), shape, ~keep))
    else:
        stay += [each for each, _ in straddling]
    return _merge(Change(tuple(stay), tuple(write), tuple(remove)), shape, load, live, cutting)


def read_slice(
    stored: Slice, shape: RunShape, store: SliceStore, marks: Slice | None = None, *, marked: bool = False
) -> SortedRun:
    """Return the rows of a slice in the order of a shape; where they are ``marked`` with their ``marks``."""
    batch = store.load(stored)
    if marked:
        none = pa.array(np.zeros(batch.num_rows, bool))
        batch = batch.append_column(MATCHED, none if marks is None else store.load(marks).column(MATCHED))
    if stored.order != shape.order_name:
        return shape.sort(batch)
    return shape.read(batch, (stored.earliest, stored.latest))


def still_live(
    run: SortedRun, shape: RunShape, live: Kept, leaving: Leaving | None = None
) -> SortedRun | None:
    """Return the rows of a run that must be kept, None where none must; hand the others to ``leaving``."""
    keep = live(run)
    if keep.all():
        return run if run.rows else None
    if leaving is not None:
        leaving(select(run, shape, ~keep))
    return select(run, shape, keep) if keep.any() else None


def _merge(change: Change, shape: RunShape, load: Load, live: Kept, cutting: Cutting) -> Change:
    """Merge the slices of a size class once enough of them have gathered, so that few are searched."""
    groups: dict[int, list[Slice | SortedRun]] = {}
    pieces: list[Slice | SortedRun] = [*change.stay, *change.write]
    for each in pieces:
        if _size(each) < cutting.large_slice:
            groups.setdefault(max(1, each.rows).bit_length() // 2, []).append(each)
    crowded = {number: group for number, group in groups.items() if len(group) >= _at_once(group, cutting)}
    if not crowded:
        return change
    merging = [each for group in crowded.values() for each in group]
    sizes = itertools.accumulate(_size(each) for each in merging)
    fitting = [each for each, size in zip(merging, sizes, strict=True) if size <= cutting.merged_bytes]
    merging = fitting if len(fitting) > 1 else merging[:2]
    old = [each for each in merging if isinstance(each, Slice)]
    new = [each for each in merging if isinstance(each, SortedRun)]
    runs = [load(each) for each in old] + new
    merged = shape.sort(concatenate([run.batch for run in runs]))
    keep = live(merged)
    if not keep.all():
        merged = select(merged, shape, keep)
    return replace(
        change,
        stay=tuple(each for each in change.stay if each not in old),
        write=(*(each for each in change.write if not any(each is other for other in new)), merged),
        remove=(*change.remove, *old),
    )


def _at_once(group: list[Slice | SortedRun], cutting: Cutting) -> int:
    """Return how many slices of the size of these are merged at once."""
    costly = sum(map(_size, group)) >= cutting.costly_slice * len(group)
    return cutting.costly_at_once if costly else cutting.merged_at_once


def _size(each: Slice | SortedRun) -> int:
    return each.size if isinstance(each, Slice) else int(each.batch.nbytes)


@dataclass(frozen=True)
class SliceWriter:
    """Writes the slices of a worker by the rules ``cutting``; ``names`` are for new ones."""

    store: SliceStore
    cutting: Cutting
    names: Iterator[int]

    def write(
        self, shape: RunShape, run: SortedRun | None, marks: dict[str, Slice] | None = None
    ) -> Iterator[Slice]:
        """Write a run as slices that are not much larger than a large one.

        ``marks`` gets those of rows that have some, by the names of the slices.
        """
        batches = () if run is None else cut(run.batch, max(1, run.rows), 2 * self.cutting.large_slice)
        for batch in batches:
            part, name = shape.read(batch), str(next(self.names))
            stored = self.store.save(name, without_marks(batch), self.cutting)
            of = (part.rows, stored.size, *part.span, shape.order_name)
            yield Slice(name, *of, stored.digest, stored.pieces, stored.compression)
            if marks is not None:
                marks |= self.write_marks(name, marks_of(part))

    def write_marks(self, slice_: str, marks: BoolArray) -> dict[str, Slice]:
        """Write the marks of the rows of a slice, nothing where none is set; return them by its name."""
        if not marks.any():
            return {}
        name = str(next(self.names))
        stored = self.store.save(name, pa.RecordBatch.from_pydict({MATCHED: marks}), self.cutting)
        of = (len(marks), stored.size, 0, 0, MATCHED, stored.digest, stored.pieces, stored.compression)
        return {slice_: Slice(name, *of)}

    def changed(
        self, change: Change, shape: RunShape, marks: dict[str, Slice] | None = None
    ) -> tuple[Slice, ...]:
        """Return the slices of an input after a change of them; ``marks`` as for ``write``."""
        for each in change.remove:
            self.store.remove(each)
        return (*change.stay, *itertools.chain(*(self.write(shape, run, marks) for run in change.write)))

    def maintained(
        self,
        slices: Sequence[Slice],
        arrived: SortedRun | None,
        shape: RunShape,
        live: Kept,
        settled: int | None,
        leaving: Leaving | None = None,
    ) -> tuple[Slice, ...]:
        """Return slices as they are after ``maintain``."""

        def load(each: Slice) -> SortedRun:
            return read_slice(each, shape, self.store)

        rules = shape, load, live, settled, self.cutting, leaving
        return self.changed(maintain(tuple(slices), arrived, *rules), shape)
