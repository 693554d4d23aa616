"""The other reading of the paper's x[n]: the value of the n-th row of a window, as a sliding transform.

It is what section 4 says word by word ("the value of the joining attribute", equation 2), and what allows a
constant number of operations a coefficient when a row comes and the oldest leaves. It is not a summary of a
multiset: the same rows in another order have other coefficients, and windows with no value in common
correlate where their values rise and fall together. So it is no `Summary` and no plan has it;
benchmarks/papers/dft2007.py measures what it tells.
"""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from wjoin.parts.summaries.dft import ComplexArray
from wjoin.parts.summaries.dftt import rebuilt
from wjoin.parts.summaries.hashing import FloatArray

_UNIT = 2.0**-53


@dataclass(frozen=True)
class SlidingTransform:
    """The first coefficients (complex128[K]) of the last W values (float64[W], the oldest first).

    ``slides``: how many rows have come since all was computed. Each slide turns the coefficients by a rounded
    number, so that errors add up: about the root of ``slides`` times the rounding of one. When that passes
    ``tolerance`` of the coefficients' size, all is computed anew: the paper's control.
    """

    values: FloatArray
    coefficients: ComplexArray
    slides: int = 0
    tolerance: float = 1e-12

    @classmethod
    def of(cls, values: FloatArray, many: int, tolerance: float = 1e-12) -> Self:
        """Return ``many`` coefficients of a whole window."""
        return cls(values, np.fft.rfft(values)[:many], 0, tolerance)

    def slid(self, value: float) -> Self:
        """Return it after one row more: the oldest leaves, all others move up by one."""
        many = len(self.coefficients)
        turn = np.exp(2j * np.pi / len(self.values) * np.arange(many))
        values = np.append(self.values[1:], value)
        coefficients = (self.coefficients + (value - self.values[0])) * turn
        found = replace(self, values=values, coefficients=coefficients, slides=self.slides + 1)
        return type(self).of(values, many, self.tolerance) if found.due else found

    @property
    def due(self) -> bool:
        """Whether all is to be computed anew."""
        return 4 * _UNIT * math.sqrt(self.slides) > self.tolerance

    def similarity(self, other: "SlidingTransform") -> float:
        """Return equations 4 to 8 for two windows of one length."""
        x, y = self.coefficients[1:], other.coefficients[1:]
        power = float(np.vdot(x, x).real) * float(np.vdot(y, y).real)
        return float(np.vdot(y, x).real) / power**0.5 if power > 0 else 0.0

    def rebuilt(self) -> FloatArray:
        """Return the window's values by the coefficients, rounded (float64[W]; section 5.3)."""
        return np.rint(rebuilt(self.coefficients, len(self.values)))
