"""BLOOM: counting Bloom filters (the paper's section 6, after Broder and Mitzenmacher)."""

import math
from typing import cast

import numpy as np

from wjoin.parts.kernels.runs import Int64Array
from wjoin.parts.summaries.hashing import FloatArray, cells
from wjoin.parts.summaries.linear import LinearSummary, Numbers
from wjoin.parts.summaries.summary import Form, View, correlation

_MOST = 15
"""What a counter of four bits tells at most: so many, or more."""


class BloomView(View):
    """Counters of four bits."""

    def read(self, body: bytes) -> None:
        """Take two counters out of each byte."""
        packed = np.frombuffer(body, np.uint8)
        self.counters = np.stack([packed & _MOST, packed >> 4], axis=1).ravel()
        full = self.counters == _MOST
        others = _hashes(self.form) * self.rows - int(self.counters[~full].sum())
        self.full = max(others / max(int(full.sum()), 1), float(_MOST))
        """What a full counter has in the mean: all counters together have the rows of the window."""

    def expected(self, codes: Int64Array, mine: View | None = None) -> FloatArray:
        """Return the least of a code's counters: never less than its rows, unless these are very many; often
        more."""
        found = np.full(len(codes), np.inf)
        for number in range(_hashes(self.form)):
            places = cells(codes, self.form.seed + number, len(self.counters))
            np.minimum(found, self.counters[places], out=found)
        return np.where(found < _MOST, found, self.full)

    def similarity(self, other: View) -> float:
        """Return the correlation of the counters."""
        return correlation(self.counters, cast(BloomView, other).counters)


class BloomSummary(LinearSummary):
    """Counters; each row adds 1 to as many as there are hashes."""

    name = "bloom"
    meaning = "a counting Bloom filter of the keys in each window"
    sure = True
    view_type = BloomView

    @classmethod
    def of_rows(cls, form: Form, codes: Int64Array) -> Numbers:
        """Return the counters of some rows (int64[two for each byte])."""
        found = np.zeros(2 * form.size, np.int64)
        for number in range(_hashes(form)):
            found += np.bincount(cells(codes, form.seed + number, len(found)), minlength=len(found))
        return found

    def body(self, since: bytes | None) -> bytes:
        """Tell each counter in four bits."""
        told = np.clip(self.numbers, 0, _MOST).astype(np.uint8).reshape(-1, 2)
        return (told[:, 0] | told[:, 1] << 4).tobytes()


def _hashes(form: Form) -> int:
    """Return how many hashes mistake the fewest codes for others."""
    return min(max(round(2 * form.size / max(form.rows, 1) * math.log(2)), 1), 12)
