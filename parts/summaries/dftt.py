"""DFTT: the counts themselves, by the inverse transform of the first coefficients, rounded (section 5.3)."""

import math

import numpy as np

from wjoin.parts.kernels.runs import Int64Array
from wjoin.parts.summaries.dft import ComplexArray, DftSummary, DftView, cells_of, length
from wjoin.parts.summaries.hashing import FloatArray
from wjoin.parts.summaries.summary import View

_MEMBER = 64.0
"""What a visit is worth to a row that the rebuilt window holds, of one that correlation alone speaks for."""


def rebuilt(coefficients: ComplexArray, many: int) -> FloatArray:
    """Return a real series (float64[many]) by its first coefficients (complex), the rest being 0 (equation
    3).

    Equation 10 has κ/W where the inverse transform has 1/W. That makes the power right and the series wrong
    by κ times: with all coefficients but the first being noise, 1/W has the least mean square error.
    """
    spectrum = np.zeros(many // 2 + 1, np.complex128)
    spectrum[: len(coefficients)] = coefficients[: many // 2 + 1]
    return np.fft.irfft(spectrum, many)


class DfttView(DftView):
    """The first coefficients, and the counts that they give."""

    def read(self, body: bytes) -> None:
        """Take the coefficients, and transform them."""
        super().read(body)
        self.series = rebuilt(self.coefficients, length(self.form))

    def expected(self, codes: Int64Array, mine: View | None = None) -> FloatArray:
        """Return the rows of each code's cell, rounded."""
        return np.maximum(np.rint(self.series[cells_of(self.form, codes)]), 0.0)

    def chance(self, codes: Int64Array, mine: View | None = None) -> FloatArray:
        """Return first what the rebuilt window holds, then the correlation of the windows (figure 7)."""
        return _MEMBER * self.expected(codes) + self.correlated(mine)


class DfttSummary(DftSummary):
    """The coefficients of DFT; their view is transformed back."""

    name = "dftt"
    meaning = "Fourier coefficients of the counts of keys in each window, transformed back and rounded"
    by_code = True
    view_type = DfttView

    def mean_square_error(self, codes: Int64Array) -> float:
        """Return equation 12 for the window that it is of, whose codes these are: what rounding must take
        away.

        By Parseval's theorem, the power of the coefficients that are not kept.
        """
        many = length(self.form)
        spectrum = np.fft.rfft(np.bincount(cells_of(self.form, codes), minlength=many))
        rest = spectrum[len(self.numbers) :]
        power = 2 * float(np.vdot(rest, rest).real)
        if len(rest) and many % 2 == 0:
            power -= abs(rest[-1]) ** 2
        return power / many**2

    def lossless(self, codes: Int64Array) -> bool:
        """Return whether the view rebuilds the counts of the window's codes without a mistake.

        A mean square error below 0.25 (the paper's test) is not enough: the greatest deviation must be below
        0.5.
        """
        counts = np.bincount(cells_of(self.form, codes), minlength=length(self.form))
        told = self.numbers.astype(np.complex64).astype(np.complex128)
        return bool(np.abs(rebuilt(told, length(self.form)) - counts).max() < 0.5)


def likely_lossless(mean_square_error: float) -> bool:
    """Return the paper's test: the mean square error is below 0.25, so that half a row is a standard
    deviation.

    >>> likely_lossless(0.2)
    True
    """
    return math.sqrt(mean_square_error) < 0.5
