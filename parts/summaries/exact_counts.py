"""How often each code occurs: the exact summary, which is what a node itself may keep."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from wjoin.parts.kernels.runs import BoolArray, Int64Array


@dataclass(frozen=True)
class Counts:
    """Codes in ascending order (int64[n]), and how many rows have each (int64[n], none 0).

    A node that has seen rows leave that it has not seen come has negative counts of them.
    """

    codes: Int64Array
    counts: Int64Array

    @classmethod
    def of(cls, codes: Int64Array, each: int = 1) -> Self:
        """Return the counts of codes, each of which counts for ``each`` rows.

        >>> Counts.of(np.array([7, 3, 7])).plus(Counts.of(np.array([3]), -1)).codes.tolist()
        [7]
        """
        found, counts = np.unique(codes, return_counts=True)
        return cls(found.astype(np.int64), each * counts.astype(np.int64))

    @cached_property
    def rows(self) -> int:
        """How many rows these are."""
        return int(self.counts.sum())

    def plus(self, other: "Counts") -> "Counts":
        """Return the counts of both together."""
        if not len(other.codes):
            return self
        codes, places = np.unique(np.concatenate([self.codes, other.codes]), return_inverse=True)
        counts = np.zeros(len(codes), np.int64)
        np.add.at(counts, places, np.concatenate([self.counts, other.counts]))
        kept = counts != 0
        return Counts(codes[kept], counts[kept])

    def where(self, chosen: BoolArray) -> "Counts":
        """Return those of some of the codes."""
        return Counts(self.codes[chosen], self.counts[chosen])
