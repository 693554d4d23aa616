"""BASE: nothing is asked, and every row visits every node (section 5.1)."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from wjoin.parts.kernels.runs import Int64Array
from wjoin.parts.summaries.hashing import FloatArray
from wjoin.parts.summaries.summary import Form, Summary, View


class BaseView(View):
    """Knows how many rows there are."""

    def read(self, body: bytes) -> None:
        """Nothing has travelled."""

    def expected(self, codes: Int64Array, mine: View | None = None) -> FloatArray:
        """Return 1 for each: nothing is known against it."""
        return np.ones(len(codes))

    def similarity(self, other: View) -> float:
        """Return 1: nothing is known against it."""
        return 1.0


@dataclass(frozen=True)
class BaseSummary(Summary):
    """The number of rows."""

    form: Form
    rows: int = 0

    name = "base"
    meaning = "every row visits every node"
    by_code = False
    view_type = BaseView

    @classmethod
    def empty(cls, form: Form) -> Self:
        """Return the summary of no rows."""
        return cls(form)

    def add(self, codes: Int64Array) -> Self:
        """Count rows."""
        return replace(self, rows=self.rows + len(codes))

    def remove(self, codes: Int64Array) -> Self:
        """Count them off."""
        return replace(self, rows=self.rows - len(codes))

    def plus(self, other: Self) -> Self:
        """Count both."""
        return replace(self, rows=self.rows + other.rows)

    def body(self, since: bytes | None) -> bytes:
        """Tell nothing."""
        return b""

    def arrays(self) -> tuple[npt.NDArray[np.generic], ...]:
        """Keep nothing else."""
        return ()

    @classmethod
    def of_arrays(cls, form: Form, rows: int, arrays: tuple[npt.NDArray[np.generic], ...]) -> Self:
        """Return the number of rows that was kept."""
        return cls(form, rows)
