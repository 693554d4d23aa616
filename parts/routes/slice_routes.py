"""Routes by slices of event time, for joins without a key or with a hot one: fixed pieces, dealt out in turn.

Nothing moves when it ages: a row stays where it is until no other one can join it.
"""

from collections.abc import Iterator

import numpy as np

from wjoin.parts.kernels.runs import GREATEST, LEAST, Int64Array, shifted
from wjoin.parts.routes.route import Role, Route, Share, Slicing, by_worker

_FEW_VISITS = 0.25
"""The share of the workers that a row visits, on average, up to which all visits are made into one list."""


class _Sliced(Route):
    """A route whose workers each have slices of time."""

    slices = True

    def workers(self, partitions: int) -> int:
        """All of them."""
        return partitions

    def shares(
        self, codes: Int64Array | None, times: Int64Array, workers: int, slicing: Slicing | None
    ) -> Iterator[Share]:
        """Yield the rows of a worker's slices, and those that can reach one of them."""
        if slicing is None:
            raise ValueError("a route by slices needs their length")
        if slicing.sliced:
            # All see this worker's slices as those of the worker that keeps a row and counts it.
            home = times // slicing.length % workers
        else:
            home = _slice(times, slicing.back, slicing.length, -1) % workers
        for worker, rows in by_worker(home, workers):
            yield Share(worker, rows, Role.BOTH)
        if slicing.sliced and not slicing.visits:
            return
        for worker, rows in _reaching(times, workers, slicing):
            others = rows[home[rows] != worker]
            if len(others):
                yield Share(worker, others, Role.VISIT if slicing.sliced else Role.COPY)


class SliceRoute(_Sliced):
    """PSP (PSP 2009, sections 3 and 4): a row is stored where its slice is, and visits those in its reach."""

    name = "psp"
    meaning = "a row is kept by the worker of its slice of time, and visits those that it can reach"
    meant_for = "two streams, or any number without an equality"
    visits = True
    pairs = True

    def applies(self, *, keyed: bool, inputs: int) -> bool:
        """A partial combination of two rows would have to go on to the worker that has the third."""
        return inputs == 2


class AlignedRoute(_Sliced):
    """ATR (PSP 2009, section 7): one input in slices; rows of the others go wherever they can reach some."""

    name = "atr"
    meaning = "slices of time of one input; the others' rows go to each that they can reach"
    meant_for = "any join"

    def applies(self, *, keyed: bool, inputs: int) -> bool:
        """Any stage, also one whose rows mostly have the same key."""
        return True


def _slice(times: Int64Array, distance: int | None, length: int, sign: int) -> Int64Array:
    """Return the number of the slice so far before (``sign`` -1) or after each time."""
    end = LEAST if sign < 0 else GREATEST
    found: Int64Array = shifted(times, None if distance is None else sign * distance, end) // length
    return found


def _reaching(times: Int64Array, workers: int, slicing: Slicing) -> Iterator[tuple[int, Int64Array]]:
    """Yield workers with the rows that can reach a slice of theirs."""
    first = _slice(times, slicing.back, slicing.length, -1)
    last = _slice(times, slicing.ahead, slicing.length, 1)
    # As a difference of 64 bits may not fit, of unsigned ones.
    further = last.view(np.uint64) - first.view(np.uint64)
    visits = np.where(last >= first, np.minimum(further, workers - 1).astype(np.int64) + 1, 0)
    begin = first % workers
    if visits.sum() <= _FEW_VISITS * workers * len(times):
        rows = np.repeat(np.arange(len(times)), visits)
        turn = np.arange(len(rows)) - np.repeat(np.cumsum(visits) - visits, visits)
        for worker, places in by_worker((begin[rows] + turn) % workers, workers):
            yield worker, rows[places]
        return
    for worker in range(workers):
        yield worker, np.flatnonzero((worker - begin) % workers < visits)
