"""What is known of the visits that rows could make: their scores, and what they would have found."""

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from wjoin.parts.kernels.runs import BoolArray, Int64Array
from wjoin.parts.summaries.hashing import FloatArray

BINS = 128
"""Of scores: nothing, quarters of powers of two from 2^-20 to below 2^11, and what is not known."""

_QUARTERS, _LEAST = 4, -20
UNKNOWN = BINS - 1

_ALIKE = 0.01
"""Scores differ so little in the worst case: their variance, by their squared mean."""

CENTRES = np.concatenate([[0.0], 2.0 ** (_LEAST + (np.arange(BINS - 2) + 0.5) / _QUARTERS), [np.inf]])
"""The score that a bin stands for (float64[BINS])."""

PROMISES = np.where(np.isfinite(CENTRES), CENTRES, 0.0)
"""What is promised of visits in a bin, nothing where nothing is known (float64[BINS])."""


def bins_of(scores: FloatArray) -> npt.NDArray[np.uint8]:
    """Return the bin of each score (uint8, of the same shape); a row's bin may travel with it.

    >>> bins_of(np.array([0.0, 1.0, np.inf])).tolist()
    [0, 81, 127]
    """
    with np.errstate(divide="ignore"):
        quarter = np.floor(_QUARTERS * (np.log2(scores) - _LEAST)) + 1
    found = np.clip(quarter, 1, UNKNOWN - 1)
    found[scores <= 0] = 0
    found[np.isinf(scores)] = UNKNOWN
    bins: npt.NDArray[np.uint8] = found.astype(np.uint8)
    return bins


@dataclass(frozen=True)
class Profile:
    """Counts that add up over rows, nodes and micro-batches; made at two places.

    At the home of rows (`of_rows`), of all of them: ``rows`` (float64[N]) by home; ``visits``
    (float64[N, BINS]) that they could make by home and bin of their score; ``sums`` and ``squares``
    (float64[N]) of the scores that are known.
    Where rows of the sample arrive (`of_matches`): ``matches`` (float64[N, BINS]) that they had, by home and
    bin; ``local`` (float64[N]): those at home; ``seen`` (float64[N]): all that have been counted.
    """

    rows: FloatArray
    visits: FloatArray
    sums: FloatArray
    squares: FloatArray
    matches: FloatArray
    local: FloatArray
    seen: FloatArray

    @classmethod
    def empty(cls, nodes: int) -> Self:
        """Return that of no rows."""
        one, two = np.zeros(nodes), np.zeros((nodes, BINS))
        return cls(one, two, one, one, two, one, one)

    @classmethod
    def of_rows(cls, scores: FloatArray, home: Int64Array) -> Self:
        """Return that of rows at home: their scores (float64[n, N]) and homes (int64[n])."""
        nodes = scores.shape[1]
        away = np.arange(nodes) != home[:, None]
        places = home[:, None] * BINS + bins_of(scores)
        visits = np.bincount(places[away], minlength=nodes * BINS).reshape(nodes, BINS).astype(np.float64)
        known = np.where(away & np.isfinite(scores), scores, 0.0)
        empty = cls.empty(nodes)
        return cls(
            np.bincount(home, minlength=nodes).astype(float),
            visits,
            np.bincount(home, known.sum(axis=1), nodes).astype(float),
            np.bincount(home, (known**2).sum(axis=1), nodes).astype(float),
            empty.matches,
            empty.local,
            empty.seen,
        )

    @classmethod
    def of_matches(
        cls,
        nodes: int,
        home: Int64Array,
        bins: npt.NDArray[np.uint8],
        matches: FloatArray,
        at_home: BoolArray,
        worth: FloatArray | None = None,
    ) -> Self:
        """Return that of rows of the sample where they arrive: their homes (int64[n]), the bins of their
        scores for this node, how many matches each had (float64[n]), and if it is their home (bool[n]).

        With what each is ``worth`` (`error.Came.worth`), that of all rows that arrive.
        """
        places = home * BINS + bins
        away = ~at_home
        told = matches if worth is None else matches * worth
        found = np.bincount(places[away], told[away], nodes * BINS).reshape(nodes, BINS).astype(float)
        local = np.bincount(home[at_home], told[at_home], nodes).astype(float)
        seen = np.bincount(home, matches, nodes).astype(float)
        return replace(cls.empty(nodes), matches=found, local=local, seen=seen)

    @property
    def alike(self) -> BoolArray:
        """At which homes all scores are about the same, so that they choose nothing (bool[N])."""
        known = self.visits[:, :UNKNOWN].sum(axis=1)
        many = np.maximum(known, 1)
        mean = self.sums / many
        found: BoolArray = (known > 0) & (self.squares / many - mean**2 <= _ALIKE * mean**2)
        return found

    def plus(self, other: "Profile") -> "Profile":
        """Return that of both."""
        return Profile(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    def times(self, factor: float) -> "Profile":
        """Return it with less weight, so that what is new counts more: ``old.times(0.8).plus(new)``."""
        return Profile(*(factor * getattr(self, each.name) for each in fields(self)))
