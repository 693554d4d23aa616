"""SKCH: AGMS sketches, as in the paper, and COUNTSKETCH, which knows single codes as well (also called
Fast-AGMS).

AGMS: N. Alon, P. Gibbons, Y. Matias, M. Szegedy: Tracking Join and Self-Join Sizes in Limited Storage, PODS
1999. Every row adds 1 or -1 to every counter. The signs are Walsh functions of a hash, drawn at random for
each counter: independent from key to key, and the counters of many rows are one fast transform of their
counts. That is DFT over other waves, and estimates as well as it. COUNTSKETCH: M. Charikar, K. Chen, M.
Farach-Colton: Finding Frequent Items in Data Streams, 2002; G. Cormode, M. Garofalakis: Sketching Streams
Through the Net, VLDB 2005. Every row adds to one counter in each of a few lines, so it costs hundreds of
times less, and joins are as well estimated.
"""

from typing import cast

import numpy as np

from wjoin.parts.kernels.runs import Int64Array
from wjoin.parts.summaries.dft import length
from wjoin.parts.summaries.hashing import FloatArray, cells, signs
from wjoin.parts.summaries.linear import LinearSummary, Numbers
from wjoin.parts.summaries.summary import Form, View

_BYTES = 4
_RATIO = 5
"""How many counters are averaged for each of those of which the median is taken (s0 : s1, section 6)."""

_LINES = 5
"""Of a count sketch."""

_LEAST = 2.0**-10


class SketchView(View):
    """Counters of 32 bits."""

    counters: FloatArray

    def read(self, body: bytes) -> None:
        """Take the counters, a line for each estimate of which the median is taken."""
        lines = _agms_shape(self.form)[1]
        self.counters = np.frombuffer(body, np.int32).astype(np.float64).reshape(lines, -1)

    def products(self, other: "SketchView") -> FloatArray:
        """Return an estimate of the matches with another window by each line (float64[s1])."""
        found: FloatArray = (self.counters * other.counters).mean(axis=1)
        return found

    def expected(self, codes: Int64Array, mine: View | None = None) -> FloatArray:
        """Return the same for all: the estimated matches of the two windows, a row of ``mine``."""
        if mine is None or mine.rows <= 0:
            return np.zeros(len(codes))
        raw = float(np.median(self.products(cast(SketchView, mine))))
        # Different keys in one cell count as matches: one in as many pairs as there are cells.
        matches = raw - self.rows * mine.rows / length(self.form)
        return np.full(len(codes), max(matches / mine.rows, 0.0))

    def chance(self, codes: Int64Array, mine: View | None = None) -> FloatArray:
        """Return it, or the least that a visit is worth."""
        return np.maximum(self.expected(codes, mine), _LEAST)

    def similarity(self, other: View) -> float:
        """Return the estimated matches by the roots of those of each window with itself."""
        theirs = cast(SketchView, other)
        product, own, second = (
            float(np.median(x.products(y))) for x, y in ((self, theirs), (self, self), (theirs, theirs))
        )
        return min(max(product / (own * second) ** 0.5, -1.0), 1.0) if own * second > 0 else 0.0


class SketchSummary(LinearSummary):
    """Counters; each row adds 1 or -1 to each."""

    name = "skch"
    meaning = "AGMS sketches of each window, by which the size of joins is estimated"
    by_code = False
    view_type = SketchView

    @classmethod
    def of_rows(cls, form: Form, codes: Int64Array) -> Numbers:
        """Return the counters of some rows (int64[s])."""
        masks, places = _masks(form), cells(codes, form.seed, length(form))
        if len(codes) * len(masks) < 2 * length(form):
            sums: Numbers = _walsh_signs(places[:, None] & masks).sum(axis=0, dtype=np.int64)
            return sums
        counters: Numbers = _walsh(np.bincount(places, minlength=length(form)))[masks]
        return counters

    def body(self, since: bytes | None) -> bytes:
        """Tell each counter in 32 bits."""
        return self.numbers.astype(np.int32).tobytes()


class CountSketchView(SketchView):
    """A few lines of counters."""

    def read(self, body: bytes) -> None:
        """Take the counters, line by line."""
        self.counters = np.frombuffer(body, np.int32).astype(np.float64).reshape(_LINES, -1)

    def products(self, other: SketchView) -> FloatArray:
        """Return an estimate of the matches with another window by each line (float64[lines])."""
        found: FloatArray = (self.counters * other.counters).sum(axis=1)
        return found

    def expected(self, codes: Int64Array, mine: View | None = None) -> FloatArray:
        """Return the median of what the lines say of each code."""
        seed, width = self.form.seed, self.counters.shape[1]
        lines = [
            signs(codes, seed + 2 * line + 1) * own[cells(codes, seed + 2 * line, width)]
            for line, own in enumerate(self.counters)
        ]
        found: FloatArray = np.maximum(np.median(np.stack(lines), axis=0), 0.0)
        return found


class CountSketchSummary(LinearSummary):
    """Lines of counters; each row adds 1 or -1 to one of each line."""

    name = "countsketch"
    meaning = "count sketches of each window, which estimate the rows of each key"
    view_type = CountSketchView

    @classmethod
    def of_rows(cls, form: Form, codes: Int64Array) -> Numbers:
        """Return the counters of some rows (int64[lines, width])."""
        width = max(form.size // _BYTES // _LINES, 1)
        seed = form.seed
        lines = [
            np.bincount(cells(codes, seed + 2 * line, width), signs(codes, seed + 2 * line + 1), width)
            for line in range(_LINES)
        ]
        return np.stack(lines).astype(np.int64)

    def body(self, since: bytes | None) -> bytes:
        """Tell each counter in 32 bits."""
        return self.numbers.astype(np.int32).tobytes()


def _masks(form: Form) -> Int64Array:
    """Return which bits of a hash make the sign of each counter (int64[s]), never none."""
    drawn = np.arange(int(np.prod(_agms_shape(form))), dtype=np.int64)
    return 1 + cells(drawn, form.seed + 1, length(form) - 1)


def _walsh_signs(bits: Int64Array) -> Int64Array:
    """Return -1 where an odd number of bits is set, else 1."""
    for shift in (32, 16, 8, 4, 2, 1):
        bits = bits ^ (bits >> shift)
    return 1 - 2 * (bits & 1)


def _walsh(counts: Int64Array) -> Int64Array:
    """Return the sum of counts, each with the sign of its place and the result's (int64, of one power of
    two)."""
    found, half = counts.copy(), 1
    while half < len(found):
        pairs = found.reshape(-1, 2, half)
        found = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).ravel()
        half *= 2
    return found


def _agms_shape(form: Form) -> tuple[int, int]:
    """Return s0 and s1 of as many counters as fit, in the paper's ratio."""
    many = max(form.size // _BYTES, 1)
    median = max(round((many / _RATIO) ** 0.5), 1)
    return max(many // median, 1), median
