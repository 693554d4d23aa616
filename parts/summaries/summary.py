"""What a summary is: a node keeps it of its own window, and others know a view of it.

Two things, because they differ in size. A `Summary` stays with the rows that it is of. It is *linear*: the
summary of two slices is their sum, and rows that leave are subtracted, so it follows a window without being
made anew. Where a bounded structure could not do that (which keys are heavy changes as rows leave) it keeps
exact counts, which are less than the rows themselves. What travels is `Summary.to_bytes()`, at most
``Form.size`` bytes and a header of `HEADER`; a `View` is that, read.

    mine = SUMMARIES["digest"].empty(Form(size=4096)).add(codes)      # at node i, of stream R, say
    whole = mine.to_bytes()                                           # travels once
    later = mine.add(new).remove(old)
    change = later.changes(whole)                                     # travels from then on
    view = later.view(whole).changed(change)                          # at node j: what it knows of i
    view.expected(codes_of_s, mine=own_view_of_s)                     # rows of R at i for each row of S

Nothing is altered in place: what each method returns is new.
"""

import io
import struct
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from wjoin.parts.kernels.runs import Int64Array
from wjoin.parts.summaries.hashing import FloatArray
from wjoin.parts.summaries.patches import patch, patched

HEADER = 80
"""Bytes of a view beside ``Form.size``, at most: its number of rows, and what its parts are."""

_ROWS = struct.Struct("<q")


@dataclass(frozen=True)
class Form:
    """What the summaries of one stream have in common on all nodes; only such can be added or compared.

    ``size``: bytes that a view may have. ``seed``: of all hashes. ``rows``: how many a window holds, about,
    as far as known beforehand (W of the paper): sizes are laid out for it. ``domain``: the least and the
    greatest code, where codes are whole numbers whose order means something, and these are known.
    """

    size: int
    seed: int = 0
    rows: int = 1 << 16
    domain: tuple[int, int] | None = None


class View(ABC):
    """What others know of a window: ``form``, its ``rows``, and the ``content`` that has travelled."""

    def __init__(self, form: Form, content: bytes) -> None:
        self.form = form
        self.content = content
        self.rows: int = _ROWS.unpack_from(content)[0]
        self.read(content[_ROWS.size :])

    @abstractmethod
    def read(self, body: bytes) -> None:
        """Take up what the summary has written."""

    @abstractmethod
    def expected(self, codes: Int64Array, mine: "View | None" = None) -> FloatArray:
        """Return how many rows of the window have each code (float64[n]), as far as is known.

        ``mine`` is a view of the window whose rows ask, of the same kind: summaries that know nothing of
        single codes answer by how many rows one of ``mine`` meets in the mean.
        """

    def chance(self, codes: Int64Array, mine: "View | None" = None) -> FloatArray:
        """Return p of equation 4 for each code (float64[n]), before the weight w: what a visit is worth.

        Only the proportions count, of one code and another and of one node and another.
        """
        return self.expected(codes, mine)

    @abstractmethod
    def similarity(self, other: "View") -> float:
        """Return the correlation of equation 4 with another window: -1 to 1, 0 where unknown."""

    def changed(self, change: bytes) -> Self:
        """Return the view after a change that `Summary.changes` has told."""
        return type(self)(self.form, patched(self.content, change))


class Summary(ABC):
    """A summary of the rows of one stream at one node; see the module.

    ``name`` is that of hints, settings and EXPLAIN; ``meaning`` what it tells, in EXPLAIN's words.
    ``sure``: a code of which a view expects nothing is not in the window. ``by_code``: views know single
    codes. ``greedy``: visits are chosen by expected matches alone, not by the paper's probabilities.
    """

    name: ClassVar[str]
    meaning: ClassVar[str]
    sure: ClassVar[bool] = False
    by_code: ClassVar[bool] = True
    greedy: ClassVar[bool] = False
    view_type: ClassVar[type[View]]

    form: Form
    rows: int

    @classmethod
    @abstractmethod
    def empty(cls, form: Form) -> Self:
        """Return the summary of no rows."""

    @abstractmethod
    def add(self, codes: Int64Array) -> Self:
        """Return it with more rows, by their codes (int64[n])."""

    @abstractmethod
    def remove(self, codes: Int64Array) -> Self:
        """Return it without rows that are in it."""

    @abstractmethod
    def plus(self, other: Self) -> Self:
        """Return the summary of the rows of both; they have one form."""

    @abstractmethod
    def body(self, since: bytes | None) -> bytes:
        """Return what travels, without the number of rows; what is near to ``since`` may stay as there."""

    @abstractmethod
    def arrays(self) -> tuple[npt.NDArray[np.generic], ...]:
        """Return all that is kept, for a checkpoint."""

    @classmethod
    @abstractmethod
    def of_arrays(cls, form: Form, rows: int, arrays: tuple[npt.NDArray[np.generic], ...]) -> Self:
        """Return the summary that kept these."""

    def to_bytes(self, since: bytes | None = None) -> bytes:
        """Return what travels, `Form.size` and `HEADER` bytes at most.

        ``since`` is what the reader has already, if anything: what has hardly changed stays as it is there.
        """
        return _ROWS.pack(self.rows) + self.body(None if since is None else since[_ROWS.size :])

    def changes(self, since: bytes) -> bytes:
        """Return what turns ``since``, which a reader has, into what is true now; see `View.changed`."""
        return patch(since, self.to_bytes(since))

    @classmethod
    def view(cls, form: Form, content: bytes) -> View:
        """Return what a reader knows by what has travelled."""
        return cls.view_type(form, content)

    def saved(self) -> bytes:
        """Return all that is kept, for a checkpoint."""
        file = io.BytesIO()
        np.savez(file, np.int64(self.rows), *self.arrays())
        return file.getvalue()

    @classmethod
    def restored(cls, form: Form, content: bytes) -> Self:
        """Return the summary that was saved."""
        with np.load(io.BytesIO(content)) as found:
            arrays = [found[name] for name in found.files]
        return cls.of_arrays(form, int(arrays[0]), tuple(arrays[1:]))


def similarity(mine: View, other: View) -> float:
    """Return the correlation of equations 4 to 8 of two windows from their views alone."""
    return mine.similarity(other)


def correlation(mine: npt.NDArray[np.generic], other: npt.NDArray[np.generic]) -> float:
    """Return the correlation of two arrays of one shape, 0 where one of them is all alike."""
    left, right = mine.astype(np.float64).ravel(), other.astype(np.float64).ravel()
    left, right = left - left.mean(), right - right.mean()
    scale = float(np.sqrt((left @ left) * (right @ right)))
    return float(left @ right) / scale if scale > 0 else 0.0
