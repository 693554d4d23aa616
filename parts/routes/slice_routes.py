"""Routes by slices of event time, for joins without a key or with a hot one: fixed pieces, dealt out in turn.

Nothing moves when it ages: a row stays where it is until no other one can join it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

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
        """Yield the rows of a worker's slices, and those that can reach one of them.

        Workers are in as many groups as a row has copies, and each group has every slice on one of its
        workers. So the workers of one group are a least set of those that have all slices in a row's reach,
        and no two of them have the same one.
        """
        if slicing is None:
            raise ValueError("a route by slices needs their length")
        groups = _Groups.of(workers, slicing.copies)
        first = _slice(times, slicing.back, slicing.length, -1)
        if slicing.back is None:
            turn = times // slicing.length % groups.number
        else:
            # The first worker that a row visits has its slices at their end: no visit is for fewer.
            turn = (first % groups.number - 1) % groups.number
        if slicing.sliced:
            # All see this worker's slices as those of the worker that keeps a row and counts it.
            own = times // slicing.length
            home = groups.worker(groups.block(own, turn), turn)
        else:
            home = groups.worker(groups.block(first, turn), turn)
        for worker, rows in by_worker(home, workers):
            yield Share(worker, rows, Role.BOTH)
        if slicing.sliced:
            for further in range(1, groups.number):
                other = (turn + further) % groups.number
                role = Role.STORE if slicing.visits else Role.COPY
                for worker, rows in by_worker(groups.worker(groups.block(own, other), other), workers):
                    yield Share(worker, rows, role)
            if not slicing.visits:
                return
        last = _slice(times, slicing.ahead, slicing.length, 1)
        for worker, rows in groups.reaching(groups.block(first, turn), groups.block(last, turn), turn):
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


class CoordinatedRoute(SliceRoute):
    """CTR (PSP 2009, section 7): a row is kept by several workers, and visits as few as have its reach.

    The paper's coordinator looks for those workers while the query runs; here they follow from the times.
    """

    name = "ctr"
    meaning = "a row is kept by several workers, and visits the fewest that have all it can reach"
    copies = True


@dataclass(frozen=True)
class _Groups:
    """Workers in ``number`` groups of ``size`` each: worker w is in group w mod number.

    A worker has the blocks of slices that are its own modulo ``size``; a block is ``number`` slices, of which
    the last one is the group's own modulo ``number``. Of 6 workers in 2 groups, worker 0 has slices -1 and 0,
    worker 1 slices 0 and 1. Where they cannot be shared out evenly, the last workers get nothing.
    """

    number: int
    size: int

    @classmethod
    def of(cls, workers: int, copies: int) -> "_Groups":
        number = min(copies, workers)
        return cls(number, workers // number)

    def block(self, slices: Int64Array, group: Int64Array) -> Int64Array:
        """Return the block that a slice is in, as workers of a group have it."""
        found: Int64Array = slices // self.number + (slices % self.number > group)
        return found

    def worker(self, block: Int64Array, group: Int64Array) -> Int64Array:
        """Return the worker that has a block."""
        found: Int64Array = group + self.number * (block % self.size)
        return found

    def reaching(
        self, first: Int64Array, last: Int64Array, group: Int64Array
    ) -> Iterator[tuple[int, Int64Array]]:
        """Yield workers with the rows that can reach a slice of theirs: those of blocks first to last."""
        # As a difference of 64 bits may not fit, of unsigned ones.
        further = last.view(np.uint64) - first.view(np.uint64)
        visits = np.where(last >= first, np.minimum(further, self.size - 1).astype(np.int64) + 1, 0)
        begin = first % self.size
        workers = self.number * self.size
        if visits.sum() <= _FEW_VISITS * workers * len(first):
            rows = np.repeat(np.arange(len(first)), visits)
            turn = np.arange(len(rows)) - np.repeat(np.cumsum(visits) - visits, visits)
            for worker, places in by_worker(self.worker(begin[rows] + turn, group[rows]), workers):
                yield worker, rows[places]
            return
        for worker in range(workers):
            own, place = worker % self.number, worker // self.number
            yield worker, np.flatnonzero((group == own) & ((place - begin) % self.size < visits))


def _slice(times: Int64Array, distance: int | None, length: int, sign: int) -> Int64Array:
    """Return the number of the slice so far before (``sign`` -1) or after each time."""
    end = LEAST if sign < 0 else GREATEST
    found: Int64Array = shifted(times, None if distance is None else sign * distance, end) // length
    return found
