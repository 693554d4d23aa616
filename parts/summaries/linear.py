"""Summaries that are one array, to which each row adds something of its own."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from wjoin.parts.kernels.runs import Int64Array
from wjoin.parts.summaries.summary import Form, Summary

Numbers = npt.NDArray[Any]


@dataclass(frozen=True)
class LinearSummary(Summary):
    """An array of numbers: the sum of what its rows add, by `of_rows`."""

    form: Form
    rows: int
    numbers: Numbers

    @classmethod
    @abstractmethod
    def of_rows(cls, form: Form, codes: Int64Array) -> Numbers:
        """Return the array of some rows, of one shape for a form."""

    @classmethod
    def empty(cls, form: Form) -> Self:
        """Return the summary of no rows."""
        return cls(form, 0, cls.of_rows(form, np.empty(0, np.int64)))

    def add(self, codes: Int64Array) -> Self:
        """Add what the rows add."""
        return self._with(len(codes), self.of_rows(self.form, codes))

    def remove(self, codes: Int64Array) -> Self:
        """Subtract what they have added."""
        return self._with(-len(codes), -self.of_rows(self.form, codes))

    def plus(self, other: Self) -> Self:
        """Add the arrays."""
        return self._with(other.rows, other.numbers)

    def _with(self, rows: int, numbers: Numbers) -> Self:
        return replace(self, rows=self.rows + rows, numbers=self.numbers + numbers)

    def arrays(self) -> tuple[npt.NDArray[np.generic], ...]:
        """Keep the array."""
        return (self.numbers,)

    @classmethod
    def of_arrays(cls, form: Form, rows: int, arrays: tuple[npt.NDArray[np.generic], ...]) -> Self:
        """Return the summary of an array."""
        return cls(form, rows, cast(Numbers, arrays[0]))
