"""Codes divided into ranges of one size, so that what is known of each range lies in an array."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CodeRanges:
    """``count`` ranges of 2 ** ``shift`` codes each, from ``least`` (as uint64) on."""

    least: np.uint64
    shift: int
    count: int

    @classmethod
    def over(cls, least: int, greatest: int, about: int) -> "CodeRanges":
        """Divide the codes from ``least`` to ``greatest`` into at most twice as many ranges as ``about``."""
        span = greatest - least
        shift = max(0, span.bit_length() - (about - 1).bit_length())
        return cls(np.int64(least).view(np.uint64), shift, (span >> shift) + 1)

    def of(self, codes: Int64Array) -> Int64Array:
        """Return the number of the range of each code, ``count`` for codes outside."""
        # What is below the least code wraps around.
        return np.minimum(self._numbers(codes), np.uint64(self.count)).view(np.int64)

    def inside(self, codes: Int64Array) -> Int64Array:
        """Return the number of the range of each code; all are in one."""
        return self._numbers(codes).view(np.int64)

    def _numbers(self, codes: Int64Array) -> npt.NDArray[np.uint64]:
        return (codes.view(np.uint64) - self.least) >> np.uint64(self.shift)
