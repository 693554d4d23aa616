"""Routes by slices of event time or of values, for joins without a key or with a hot one.

Nothing moves when it ages: a row stays where it is until no other one can join it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from wjoin.parts.kernels.runs import Int64Array
from wjoin.parts.routes.hash_route import bucket_numbers, worker_numbers
from wjoin.parts.routes.route import Codes, Role, Route, RowSlices, Share, Slices, by_worker

_FEW_VISITS = 0.25
"""The share of the workers that a row visits, on average, up to which all visits are made into one list."""


class _Sliced(Route):
    """A route whose workers each have slices of time."""

    slices = True

    def shares(self, codes: Codes, times: Int64Array, workers: int, slices: RowSlices) -> Iterator[Share]:
        """Yield the rows of a worker's slices, and those that can reach one of them.

        Workers are in as many groups as a row has copies, and each group has every slice on one of its
        workers. So the workers of one group are a least set of those that have all slices in a row's reach,
        and no two of them have the same one.
        """
        if not isinstance(slices, Slices):
            raise ValueError("a route by slices needs those of the rows")
        rule, own, first, last = slices.rule, slices.own, slices.first, slices.last
        groups = _Groups.of(workers, rule.placement.copies)
        # The first worker that a row visits has its slices at their end: no visit is for fewer. A row that
        # visits a whole group may take any.
        everywhere = _further(first, last) >= np.uint64(workers)
        turn = (np.where(everywhere, own + 1, first) % groups.number - 1) % groups.number
        kept = rule.sliced and rule.stored
        # All see this worker's slices as those of the worker that keeps a row, or counts it.
        home = groups.worker(groups.block(own if kept else first, turn), turn)
        begun = Role((Role.STORE if rule.stored else 0) | (Role.PROBE if rule.probes else 0))
        for worker, rows in by_worker(home, workers):
            yield Share(worker, rows, begun)
        if kept:
            for further in range(1, groups.number):
                other = (turn + further) % groups.number
                role = Role.STORE if rule.visits else Role.COPY
                for worker, rows in by_worker(groups.worker(groups.block(own, other), other), workers):
                    yield Share(worker, rows, role)
            if not rule.visits:
                return
        if not rule.probes:
            return
        for worker, rows in groups.reaching(groups.block(first, turn), groups.block(last, turn), turn):
            others = rows[home[rows] != worker]
            if len(others):
                yield Share(worker, others, Role.VISIT if rule.sliced else Role.COPY)


class SliceRoute(_Sliced):
    """PSP (PSP 2009, sections 3 and 4): a row is stored where its slice is, and visits those in its reach."""

    name = "psp"
    meaning = "each row is stored on the worker of its time slice and probes the workers in reach"
    meant_for = "two streams, or any number without an equality"
    visits = True
    pairs = True
    hops = True
    anywhere = True

    def applies(self, *, keyed: bool, inputs: int, near: bool) -> bool:
        """A partial combination of two rows would have to go on to the worker that has the third."""
        return inputs == 2


class AlignedRoute(_Sliced):
    """ATR (PSP 2009, section 7): one input in slices; rows of the others go wherever they can reach some."""

    name = "atr"
    meaning = "one input is split into time slices; rows of the others go to every slice in reach"
    meant_for = "any join"
    homes = True

    def applies(self, *, keyed: bool, inputs: int, near: bool) -> bool:
        """Any stage, also one whose rows mostly have the same key."""
        return True


class CoordinatedRoute(SliceRoute):
    """CTR (PSP 2009, section 7): a row is kept by several workers, and visits as few as have its reach.

    The paper's coordinator looks for those workers while the query runs; here they follow from the times.
    """

    name = "ctr"
    meaning = "each row is stored on several workers and probes the fewest that hold all slices in reach"
    copies = True
    hops = False
    anywhere = False


class RangeRoute(SliceRoute):
    """PSP by the values of a band's columns in place of time: few workers have values in a row's reach."""

    name = "range"
    meaning = "each row is stored on the worker of its value range and probes the workers in reach"
    meant_for = "streams with a band closed on both sides, such as abs(A.x - B.x) <= 5"
    values = True
    hops = False
    anywhere = False

    def applies(self, *, keyed: bool, inputs: int, near: bool) -> bool:
        """The band tells where partners can be."""
        return near


class SkewRoute(SliceRoute):
    """PSP for the rows of the most frequent key alone; those of another key meet on one worker.

    With the rows of that key go those of the keys whose codes are in the same bucket.
    """

    name = "skew"
    meaning = "all rows of a key go to one worker; those of the most frequent key are split into time slices"
    meant_for = "two streams with an equality of columns whose most frequent value is known (ANALYZE STREAM)"
    heaviest = True
    hops = False
    anywhere = False

    def applies(self, *, keyed: bool, inputs: int, near: bool) -> bool:
        """Only keys can be frequent."""
        return keyed and inputs == 2

    def shares(self, codes: Codes, times: Int64Array, workers: int, slices: RowSlices) -> Iterator[Share]:
        """Yield the rows of a worker's keys, and those of the most frequent key by their slices.

        Without codes all rows have the most frequent key.
        """
        if codes is None or not isinstance(slices, Slices):
            yield from super().shares(codes, times, workers, slices)
            return
        frequent = bucket_numbers(codes) == slices.rule.placement.bucket
        others = np.flatnonzero(~frequent)
        for worker, rows in by_worker(worker_numbers(codes[others], workers), workers):
            yield Share(worker, others[rows])
        sliced = np.flatnonzero(frequent)
        for share in super().shares(None, times[sliced], workers, slices.at(sliced)):
            yield share if share.rows is None else replace(share, rows=sliced[share.rows])


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
        visits = np.minimum(_further(first, last), np.uint64(self.size - 1)).astype(np.int64) + 1
        visits[last < first] = 0
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


def _further(first: Int64Array, last: Int64Array) -> npt.NDArray[np.uint64]:
    """Return how far the last slice is after the first: as a difference of 64 bits may not fit, unsigned."""
    return np.where(last >= first, last.view(np.uint64) - first.view(np.uint64), np.uint64(0))
