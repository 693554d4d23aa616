"""Counts how many results have a part in common: such results are kept or shed together."""

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from wjoin.executor.combinations import Combinations
from wjoin.parts.kernels.runs import Int64Array

_MOST = 1 << 62
"""The greatest count: workers add theirs up."""


@dataclass
class SharedParts:
    """The results of a micro-batch at one worker, by the parts that are kept or shed as one.

    ``by_key``: these are the keys, else the rows; ``plain``: they are not known, as results come of several
    stages, and any may have a part in common. ``together``: whether all results of a part are at one worker.
    """

    by_key: bool
    plain: bool
    together: bool
    _found: dict[Hashable, list[tuple[Int64Array, Int64Array]]] = field(default_factory=dict)
    _results: int = 0

    def add(self, probe: int, found: Combinations) -> None:
        """Count some results of a probe."""
        self._results += len(found)
        if self.plain or not len(found):
            return
        if self.by_key:
            self._add("key", found.codes)
            return
        for number, rows in found.rows.items():
            self._add((probe, number), rows)

    def _add(self, what: Hashable, parts: Int64Array) -> None:
        self._found.setdefault(what, []).append(np.unique(parts, return_counts=True))

    def squares(self, workers: int) -> int:
        """Return the sum of the squares of the results that each part is in, or more.

        What is counted apart, by several probes or workers, may be of one part: the square of a sum of n
        numbers is n times the sum of their squares at the most.
        """
        apart = 1 if self.together else workers
        if self.plain:
            return min(_MOST // workers, apart * self._results**2)
        probes = {what[0] for what in self._found if isinstance(what, tuple)}
        found = apart * max(1, len(probes)) * sum(map(_squares, self._found.values()))
        return min(_MOST // workers, found)


def _squares(counted: list[tuple[Int64Array, Int64Array]]) -> int:
    parts = np.concatenate([part for part, _ in counted])
    _, places = np.unique(parts, return_inverse=True)
    sums = np.bincount(places, weights=np.concatenate([counts for _, counts in counted]))
    return int(np.dot(sums, sums))
