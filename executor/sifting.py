"""Sifting: conditions tested on blocks of tuples and rows, before a pair is made of any.

The candidates of tuples that stand together are mostly the same rows. A block of some tuples and the rows
that all of them may meet is tested at once: nothing is gathered for a pair, and what only one side tells is
computed once for all pairs of the block.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from wjoin.executor.conditions import Prepared
from wjoin.executor.pair_values import Vector
from wjoin.parts.kernels.candidates import Candidates
from wjoin.parts.kernels.runs import Int64Array

TUPLES, ROWS = 64, 1024
"""The tuples and rows of a block: small enough for the processor's cache."""

_LEAST_PAIRS = 4096
_LEAST_SHARE = 0.25
"""Fewer pairs, or blocks of which fewer are pairs at all, are not worth it."""


@dataclass(frozen=True)
class Sieve:
    """A condition; for each of its columns, whether it is of the rows, else of the tuples."""

    condition: Prepared
    of_rows: tuple[bool, ...]

    @property
    def inputs(self) -> list[tuple[Vector, bool]]:
        """The inputs, and whether they are of the rows."""
        given = self.condition
        return [(each, self.of_rows[n]) for each, n in zip(given.inputs, given.sources, strict=True)]


def worth_sifting(found: Candidates) -> bool:
    """Return whether blocks of candidates have many pairs in them, and rows are not more than pairs."""
    pairs = found.pairs
    if pairs < _LEAST_PAIRS or pairs < int(found.last.max() - found.first.min()):
        return False
    order = _order(found)
    edges = np.arange(0, len(order), TUPLES)
    begins = np.minimum.reduceat(found.first[order], edges)
    ends = np.maximum.reduceat(found.last[order], edges)
    counts = np.diff(np.append(edges, len(order)))
    return pairs >= _LEAST_SHARE * int(((ends - begins) * counts).sum())


def sifted(sieves: Sequence[Sieve], found: Candidates) -> Candidates:
    """Return the pairs that may pass all conditions, as ranges of one row; tuples ascend."""
    order = _order(found)
    chosen = Candidates(found.tuples[order], found.first[order], found.last[order])
    pieces = [(np.zeros(0, np.int64), np.zeros(0, np.int64)), *_blocks(sieves, chosen)]
    tuples, rows = (np.concatenate(each) for each in zip(*pieces, strict=True))
    ascending = np.lexsort((rows, tuples))
    rows = rows[ascending]
    return Candidates(tuples[ascending], rows, rows + 1)


def _order(found: Candidates) -> Int64Array:
    """Return the order in which the ranges of neighbours are most alike."""
    return np.argsort(found.first + found.last, kind="stable")


def _blocks(sieves: Sequence[Sieve], found: Candidates) -> Iterator[tuple[Int64Array, Int64Array]]:
    """Yield the tuples and rows of the pairs of each block that may pass all conditions."""
    # What is of tuples stands in a column, what is of rows in a line.
    columns = [_of_tuples(sieve, found) for sieve in sieves]
    for start in range(0, len(found.tuples), TUPLES):
        group = slice(start, start + TUPLES)
        first, last = found.first[group, None], found.last[group, None]
        begin, end = int(first.min()), int(last.max())
        # All these rows are those of every tuple.
        inner, outer = int(first.max()), int(last.min())
        own = [[None if each is None else each.at(group) for each in column] for column in columns]
        for low in range(begin, end, ROWS):
            high = min(end, low + ROWS)
            keep = None
            if low < inner or high > outer:
                every = np.arange(low, high)
                keep = (every >= first) & (every < last)
            for sieve, mine in zip(sieves, own, strict=True):
                vectors = [
                    each.at(slice(low, high)).shaped(1, -1) if given is None else given
                    for given, each in zip(mine, sieve.condition.inputs, strict=True)
                ]
                passed = sieve.condition.at(vectors)
                keep = passed if keep is None else keep & passed
                if not keep.any():
                    break
            if keep is None:
                raise AssertionError("there is no condition")
            # Of one dimension, as NumPy looks through a matrix ten times as slowly.
            places = np.flatnonzero(np.broadcast_to(keep, (len(first), high - low)))
            if len(places):
                lines, rows = np.divmod(places, high - low)
                yield found.tuples[group][lines], rows + low


def _of_tuples(sieve: Sieve, found: Candidates) -> list[Vector | None]:
    """Return the inputs of a condition that are of tuples, by candidate; None for the others."""
    return [None if of_rows else each.at(found.tuples).shaped(-1, 1) for each, of_rows in sieve.inputs]
