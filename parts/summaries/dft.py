"""DFT: the first Fourier coefficients of how many rows each cell of the keys holds (sections 4 and 5.2).

What x[n] is, the paper leaves open. Here n is a cell of the keys and x[n] the rows in it, because that is
what makes equation 5 say something about a join: the product of two such series, summed, is the number of
pairs in equal cells. (series.py has the other reading, a window's values in their order;
docs/papers/dft2007.md measures both.) Cells are by hash, or in the order of the keys where the form says
their domain. Over hashed keys no frequency is above others, so the first W/κ coefficients are as good as
any, and their correlation is that of all within about the square root of 1 / (2 W/κ).

A row adds its own wave to each coefficient, so many rows at once are a transform of their counts. Sums of
exact waves do not drift, unlike the recurrence of series.py: nothing is computed anew. Coefficients that
have moved by less than a share of their noise do not travel.
"""

import math
from typing import cast

import numpy as np
import numpy.typing as npt

from wjoin.parts.kernels.runs import Int64Array
from wjoin.parts.summaries.hashing import FloatArray, cells
from wjoin.parts.summaries.linear import LinearSummary, Numbers
from wjoin.parts.summaries.summary import Form, View

BYTES = 8
"""Of a coefficient that travels: two numbers of 32 bits."""

_STILL = 0.05
"""Coefficients are told anew when they have moved by this share of the root of the number of rows."""

_LEAST = 2.0**-10
"""What a visit is worth, of 1, where nothing speaks for it."""

ComplexArray = npt.NDArray[np.complex128]


def length(form: Form) -> int:
    """Return how many cells are transformed: W, as a power of two."""
    return 1 << max(form.rows - 1, 3).bit_length()


def kept(form: Form) -> int:
    """Return how many coefficients are kept: W/κ, of at most half of W and one."""
    return max(min(form.size // BYTES, length(form) // 2 + 1), 1)


def cells_of(form: Form, codes: Int64Array) -> Int64Array:
    """Return the cell of each code (int64[n])."""
    if form.domain is None:
        return cells(codes, form.seed, length(form))
    least, greatest = form.domain
    place = (codes - least) * (length(form) / (greatest - least + 1))
    found: Int64Array = np.clip(place, 0, length(form) - 1).astype(np.int64)
    return found


class DftView(View):
    """The first coefficients."""

    coefficients: ComplexArray

    def read(self, body: bytes) -> None:
        """Take coefficients of two 32-bit numbers."""
        self.coefficients = np.frombuffer(body, np.complex64, kept(self.form)).astype(np.complex128)

    def expected(self, codes: Int64Array, mine: View | None = None) -> FloatArray:
        """Return the same for all: the matches of the two windows, by their coefficients, a row of ``mine``.

        By chance, two rows of different keys are in one cell as often as the first coefficients, of
        frequency 0, say: that is left out.
        """
        if mine is None or mine.rows <= 0:
            return np.zeros(len(codes))
        cross, _, _ = self._spectra(cast(DftView, mine))
        told = max(len(self.coefficients) - 1, 1)
        # Over hashed keys those that are not told are like those that are.
        scale = length(self.form) / 2 / told if self.form.domain is None else 1.0
        matches = 2 * scale * cross / length(self.form)
        return np.full(len(codes), max(matches / mine.rows, 0.0))

    def chance(self, codes: Int64Array, mine: View | None = None) -> FloatArray:
        """Return the correlation of the two windows for all codes."""
        return np.full(len(codes), self.correlated(mine))

    def correlated(self, mine: View | None) -> float:
        """Return the correlation with ``mine``, or the least that a visit is worth."""
        return _LEAST if mine is None else max(self.similarity(mine), _LEAST)

    def similarity(self, other: View) -> float:
        """Return equations 4 to 8: the cross spectrum, summed, over the roots of the two powers."""
        cross, own, theirs = self._spectra(cast(DftView, other))
        return cross / math.sqrt(own * theirs) if own * theirs > 0 else 0.0

    def _spectra(self, other: "DftView") -> tuple[float, float, float]:
        # Covariances leave out the means, which are the coefficients of frequency 0.
        x, y = self.coefficients[1:], other.coefficients[1:]
        return float(np.vdot(y, x).real), float(np.vdot(x, x).real), float(np.vdot(y, y).real)


class DftSummary(LinearSummary):
    """Coefficients; each row adds a wave to each."""

    name = "dft"
    meaning = "Fourier coefficients of the counts of keys in each window, by which windows are alike"
    by_code = False
    view_type = DftView

    @classmethod
    def of_rows(cls, form: Form, codes: Int64Array) -> Numbers:
        """Return the coefficients of some rows (complex128[W/κ])."""
        many, places = kept(form), cells_of(form, codes)
        if 8 * len(places) * many < length(form):
            phases = np.outer(places, np.arange(many)) % length(form)
            waves: Numbers = np.exp(-2j * np.pi / length(form) * phases).sum(axis=0)
            return waves
        spectrum: Numbers = np.fft.rfft(np.bincount(places, minlength=length(form)))
        return spectrum[:many]

    def body(self, since: bytes | None) -> bytes:
        """Tell the coefficients; those that have hardly moved stay as they were told."""
        told = self.numbers.astype(np.complex64)
        before = since[: told.nbytes] if since is not None and len(since) >= told.nbytes else b""
        if before:
            known = np.frombuffer(before, np.complex64)
            still = np.abs(told - known) < _STILL * math.sqrt(max(self.rows, 1))
            told[still] = known[still]
        return told.tobytes()
