"""Stretches of event time: a micro-batch of any size, worked off in pieces that fit into memory.

The rows of a worker are cut where their event times say, the same over all inputs. After a stretch no
row comes with an earlier time, so that what is held for the next ones is what the windows hold. Tables that
are joined by a key are cut by the hash of that, so that nothing is held for the next ones. What the cuts are
follows from the rows alone, not from the order in which they came or how they were packed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wjoin.executor.blocks import gathered, value_bytes
from wjoin.executor.spool import Spool
from wjoin.parts.kernels.runs import BoolArray, Int64Array, RunShape, int64_view, sort_order
from wjoin.parts.routes.route import Role

Arrived = list[tuple[Role, pa.RecordBatch]]
"""New rows of one input, and as what they came."""

STRETCH_BYTES = 1 << 22
"""Bytes of new rows that a worker joins at once, unless a session says otherwise.

With what they are compared with they fit into the caches of a core: eight times as many take two fifths
longer for each row (``benchmarks.stretches``).
"""

HELD_STRETCHES = 8
"""Stretches whose rows are in memory before the others wait on disk."""

_MULTIPLIER = np.uint64(0xD6E8FEB86659FD93)
"""Not that of the hash route, whose rows on one worker are alike."""


@dataclass(frozen=True)
class Stretch:
    """New rows of each input.

    ``later``: the least time of those in later stretches that may meet them, None where there are none.
    """

    blocks: list[Arrived]
    later: int | None


@dataclass
class _Block:
    """Rows of an input in the order of their ``instants``, or places; those before ``place`` are done."""

    input: int
    role: Role
    batch: pa.RecordBatch
    instants: Int64Array
    place: int = 0

    def until(self, time: int | None) -> int:
        """Return the number of rows before a time; None for all."""
        return len(self.instants) if time is None else int(np.searchsorted(self.instants, time, side="left"))


def instants(batch: pa.RecordBatch, shape: RunShape) -> Int64Array:
    """Return the earliest event time of each row, int64: that of all its members, or that of its newest row.

    Those of one member are the column itself, not a copy: where rows are mapped, so are their times.
    """
    names = shape.times if shape.newest is None else (shape.newest,)
    earliest, *others = (int64_view(batch.column(name)) for name in names)
    for times in others:
        earliest = np.minimum(earliest, times)
    return earliest


def places(batch: pa.RecordBatch, shape: RunShape) -> npt.NDArray[np.uint16]:
    """Return where the key of each row stands among all keys: a part of its hash."""
    return (_mixed(batch, shape) >> np.uint64(48)).astype(np.uint16)


def in_order(batch: pa.RecordBatch, shape: RunShape, *, by_key: bool) -> pa.RecordBatch:
    """Return the rows in the order in which they are cut: by their instants, or by their keys' places."""
    if by_key:
        # Numbers of 16 bits are sorted in a few passes.
        return batch.take(pa.array(np.argsort(places(batch, shape), kind="stable")))
    found = instants(batch, shape)
    if not len(found) or bool((found[1:] >= found[:-1]).all()):
        return batch
    return batch.take(pa.array(sort_order(np.zeros(len(found), np.int64), found)))


def stretches(
    blocks: list[Arrived],
    shapes: Sequence[RunShape],
    limit: int | None,
    spool: Spool,
    *,
    by_key: bool = False,
) -> Iterator[Stretch]:
    """Yield the new rows in stretches of about ``limit`` bytes, all at once where that is None or enough.

    Rows of one instant and one key stay together; ``by_key``: those of a key do, if they are not too many.
    ``blocks`` is emptied, so that nothing is held longer than it is used; what would grow with them besides
    is set down in ``spool``.
    """
    sizes = [sum(value_bytes(batch) for _, batch in group) for group in blocks]
    rows = [sum(batch.num_rows for _, batch in group) for group in blocks]
    if limit is None or sum(sizes) <= limit or not any(rows):
        yield Stretch([list(group) for group in blocks], None)
        blocks.clear()
        return
    ordered = []
    widths = [-(-size // max(1, count)) for size, count in zip(sizes, rows, strict=True)]
    for number, (shape, group) in enumerate(zip(shapes, blocks, strict=True)):
        for role, batches in by_role(group):
            # Each cut looks at all blocks.
            for batch in gathered(batches, rows[number], limit):
                sorted_batch = in_order(batch, shape, by_key=by_key)
                cut_by = _lasting(sorted_batch, shape, spool, by_key=by_key)
                ordered.append(_Block(number, role, sorted_batch, cut_by))
    blocks.clear()
    for end in (*_edges(ordered, widths, limit), None):
        weight = _weight(ordered, widths, end)
        if not weight:
            continue
        parts = -(-weight // limit) if _least(ordered) == _greatest(ordered, end) else 1
        if not by_key:
            yield from _taken(ordered, shapes, end, parts)
            continue
        for stretch in _taken(ordered, shapes, end, 1):
            if parts == 1:
                yield replace(stretch, later=None)
            else:
                yield from stretches(stretch.blocks, shapes, limit, spool)


def by_role(group: Arrived) -> Iterator[tuple[Role, list[pa.RecordBatch]]]:
    """Yield the rows of an input that came as the same, together."""
    for role in Role:
        batches = [batch for own, batch in group if own is role and batch.num_rows]
        if batches:
            yield role, batches


def _lasting(batch: pa.RecordBatch, shape: RunShape, spool: Spool, *, by_key: bool) -> Int64Array:
    """Return by what rows that wait are cut; what is no column of theirs is set down on disk."""
    found = places(batch, shape).astype(np.int64) if by_key else instants(batch, shape)
    if not by_key and (len(shape.times) == 1 or shape.newest is not None):
        return found
    return int64_view(spool.put(pa.RecordBatch.from_pydict({"instant": pa.array(found)})).column("instant"))


def _taken(
    ordered: list[_Block], shapes: Sequence[RunShape], end: int | None, parts: int
) -> Iterator[Stretch]:
    """Yield the rows before a time; those of one instant in parts of whole keys."""
    begin = _least(ordered)
    rows: list[tuple[_Block, pa.RecordBatch]] = []
    for each in ordered:
        stop = each.until(end)
        if stop > each.place:
            rows.append((each, each.batch.slice(each.place, stop - each.place)))
            each.place = stop
    ordered[:] = [each for each in ordered if each.place < len(each.instants)]
    later = _least(ordered)
    for part in range(parts):
        groups: list[Arrived] = [[] for _ in shapes]
        for block, batch in rows:
            mask = _part(batch, shapes[block.input], part, parts)
            groups[block.input].append((block.role, batch if mask is None else batch.filter(pa.array(mask))))
        yield Stretch(groups, later if part == parts - 1 else begin)


def _part(batch: pa.RecordBatch, shape: RunShape, part: int, parts: int) -> BoolArray | None:
    """Return which rows have keys of one of some parts, None for all."""
    if parts == 1:
        return None
    if shape.code not in batch.schema.names:
        # Rows without a key, or only counted.
        return np.full(batch.num_rows, part == 0)
    chosen: BoolArray = (_mixed(batch, shape) >> np.uint64(33)) % np.uint64(parts) == np.uint64(part)
    return chosen


def _mixed(batch: pa.RecordBatch, shape: RunShape) -> npt.NDArray[np.uint64]:
    """Return the hashes of the keys of rows; rows that meet no other have none, which is as if it were 0."""
    return int64_view(pc.fill_null(batch.column(shape.code), 0)).view(np.uint64) * _MULTIPLIER


def _least(ordered: Sequence[_Block]) -> int | None:
    """Return the least instant of the rows that are left."""
    return min((int(each.instants[each.place]) for each in ordered), default=None)


def _greatest(ordered: Sequence[_Block], end: int | None) -> int:
    """Return the greatest instant of the rows that are left before a time; there are some."""
    found = ((each, each.until(end)) for each in ordered)
    return max(int(each.instants[stop - 1]) for each, stop in found if stop > each.place)


def _weight(ordered: Sequence[_Block], widths: Sequence[int], end: int | None) -> int:
    """Return about how many bytes the rows that are left have before a time."""
    return sum((each.until(end) - each.place) * widths[each.input] for each in ordered)


def _edges(ordered: Sequence[_Block], widths: Sequence[int], limit: int) -> list[int]:
    """Return the times, ascending, before which stretches end; an instant that is too heavy stands alone."""
    total = _weight(ordered, widths, None)
    count = -(-total // limit)
    targets = np.array([total * number // count for number in range(1, count)], np.int64)
    least = int(min(each.instants[0] for each in ordered))
    last = np.uint64(int(max(each.instants[-1] for each in ordered)) - least)

    def before(places: npt.NDArray[np.uint64]) -> Int64Array:
        """Return the bytes before some times, given as their distance from the least."""
        times = (places + np.uint64(least % (1 << 64))).view(np.int64)
        found = np.zeros(len(places), np.int64)
        for each in ordered:
            found += np.searchsorted(each.instants, times, side="left") * np.int64(widths[each.input])
        return found

    # The least time with so many bytes before it, or that of the last row.
    low = np.zeros(len(targets), np.uint64)
    high = np.full(len(targets), last, np.uint64)
    while bool((low < high).any()):
        middle = low + (high - low) // np.uint64(2)
        enough = before(middle) >= targets
        high = np.where(enough, middle, high)
        low = np.where(enough, low, np.minimum(middle + np.uint64(1), high))
    found = np.unique(low[low > 0])
    heavy = found[before(found) - before(found - np.uint64(1)) > limit]
    places = (*found, *(heavy - np.uint64(1)))
    # A time after the last row ends nothing, and may be none that 64 bits hold.
    return sorted({int(place) + least for place in places if place <= last} - {least})
