"""Sorted runs: rows of one stage input in the order that a kernel needs."""

from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wjoin.parts.kernels.run_index import KeyIndex

Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

Values = npt.NDArray[Any]
"""Values of one ordered column: integers of any size, or floating-point numbers, NaN above all."""

LEAST, GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
"""The least and the greatest time."""


class Order(Enum):
    """How rows are sorted: by (code, time of the first member), that time alone, or (code, a value)."""

    KEY = "key"
    TIME = "time"
    VALUE = "value"


def shifted(times: Int64Array, distance: int | None, unbounded: int) -> Int64Array:
    """Return ``times + distance``, held inside int64; ``unbounded`` everywhere for no distance."""
    if distance is None or len(times) == 0:
        return np.full(len(times), unbounded, np.int64)
    low, high = int(times.min()) + distance, int(times.max()) + distance
    if low >= LEAST and high <= GREATEST:
        return times + np.int64(distance)
    exact = (max(LEAST, min(GREATEST, int(time) + distance)) for time in times)
    return np.fromiter(exact, np.int64, len(times))


def int64_view(array: pa.Array) -> Int64Array:
    """Return a column of 64-bit values without nulls as int64, not copied."""
    return np.asarray(array.view(pa.int64()).to_numpy(zero_copy_only=True))


@dataclass(frozen=True)
class SortedRun:
    """Rows in one order.

    ``batch`` holds every column of the block; ``codes`` (int64, rows) the key codes, all zero
    where the run is ``keyless``, and ``times`` one int64 array for each member stream. ``values``
    is the column that orders the rows of a code, where it is not the time: integers or floats.
    ``known_span`` is ``span`` where it was known before, so that it need not be looked for.
    """

    batch: pa.RecordBatch
    codes: Int64Array
    times: tuple[Int64Array, ...]
    keyless: bool
    values: Values | None = None
    known_span: tuple[int, int] | None = None

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.batch.num_rows)

    @cached_property
    def span(self) -> tuple[int, int]:
        """The earliest and the latest time of the first member; the run is not empty."""
        return self.known_span or (int(self.times[0].min()), int(self.times[0].max()))

    @cached_property
    def keys(self) -> KeyIndex:
        """Where the rows of each key are; the run is not empty, and sorted by code."""
        return KeyIndex(self.codes)


@dataclass(frozen=True)
class RunShape:
    """Names of the code column (None where all rows share one code) and of the time columns; the order.

    ``value``: the column by which Order.VALUE sorts; without one it is as Order.KEY. ``newest``: the time
    column that says which rows come first, None for the earliest of all.
    """

    code: str | None
    times: tuple[str, ...]
    order: Order
    value: str | None = None
    newest: str | None = None

    @property
    def order_name(self) -> str:
        """What tells the order of rows that are kept from any other."""
        if self.order is Order.VALUE and self.value is not None:
            return f"{Order.VALUE.value} {self.value}"
        order: str = (Order.TIME if self.order is Order.TIME else Order.KEY).value
        return order

    @property
    def by_code(self) -> bool:
        """Whether the rows of each code stand together, and there are several codes."""
        return self.code is not None and self.order is not Order.TIME

    def ordered(self, order_name: str) -> "RunShape":
        """Return the shape with the order of that name."""
        order, _, value = order_name.partition(" ")
        return replace(self, order=Order(order), value=value or None)

    def read(self, batch: pa.RecordBatch, span: tuple[int, int] | None = None) -> SortedRun:
        """Return a batch that is sorted already as a run; ``span`` is that of the run, if known."""
        times = tuple(int64_view(batch.column(name)) for name in self.times)
        if self.code is None:
            codes = np.zeros(batch.num_rows, np.int64)
        else:
            codes = int64_view(batch.column(self.code))
        values = None
        if self.order is Order.VALUE and self.value is not None:
            values = ordered_values(batch.column(self.value))
        return SortedRun(batch, codes, times, self.code is None, values, span)

    def sort(self, batch: pa.RecordBatch) -> SortedRun:
        """Return the rows of an unsorted batch as a run."""
        return self.read(batch.take(pa.array(self.places(batch))))

    def places(self, batch: pa.RecordBatch) -> Int64Array:
        """Return the places of the rows of an unsorted batch, in the order that they have in a run."""
        run = self.read(batch)
        if run.values is not None and run.values.dtype.kind == "f":
            return np.lexsort((run.values, run.codes)).astype(np.int64, copy=False)
        codes = run.codes if self.order is not Order.TIME else np.zeros(run.rows, np.int64)
        within = run.times[0] if run.values is None else run.values.astype(np.int64, copy=False)
        return sort_order(codes, within)


def ordered_values(array: pa.Array) -> Values:
    """Return a column of numbers, dates or timestamps in its own order; NULL stands at its end.

    Copies nothing where there is no NULL.
    """
    if pa.types.is_timestamp(array.type):
        array = array.view(pa.int64())
    elif pa.types.is_date32(array.type):
        array = array.view(pa.int32())
    if array.null_count:
        floating = pa.types.is_floating(array.type)
        greatest = np.nan if floating else np.iinfo(array.type.to_pandas_dtype()).max
        array = array.fill_null(pa.scalar(greatest, array.type))
    return np.asarray(array.to_numpy(zero_copy_only=True))


def sort_order(codes: Int64Array, times: Int64Array) -> Int64Array:
    """Return the order that sorts rows by (code, time), both int64 of one length.

    Where all have one code, rows of one time keep their order. What NumPy sorts fastest are plain
    64-bit numbers: so rows are sorted by one made of the code, the time and the row's place, wide
    codes replaced by their ranks.
    """
    rows = len(codes)
    if rows == 0:
        return np.zeros(0, np.int64)
    least_code, least_time = int(codes.min()), int(times.min())
    code_span = int(codes.max()) - least_code + 1
    time_span = int(times.max()) - least_time + 1
    place_bits = (rows - 1).bit_length()
    if code_span * time_span << place_bits < 1 << 63:
        return _packed_order((codes - least_code) * time_span + (times - least_time), place_bits)
    if code_span << place_bits < 1 << 63:
        by_code = _packed_order(codes - least_code, place_bits)
    else:
        by_code = np.argsort(codes)
    ranks = _ranks(codes[by_code])
    span = (int(ranks[-1]) + 1) * time_span
    if span >= 1 << 63:
        return np.lexsort((times, codes)).astype(np.int64, copy=False)
    keys = ranks * time_span + (times[by_code] - least_time)
    if span << place_bits < 1 << 63:
        within = _packed_order(keys, place_bits)
    else:
        within = np.argsort(keys, kind="stable")
    return by_code[within].astype(np.int64, copy=False)


def stable_order(numbers: Int64Array, bound: int) -> Int64Array:
    """Return the order that sorts numbers from 0 up to below ``bound``; equal ones keep theirs."""
    # Numbers of 16 bits are sorted in a few passes.
    return np.argsort(numbers.astype(np.uint16) if bound <= 1 << 16 else numbers, kind="stable")


def _packed_order(keys: Int64Array, place_bits: int) -> Int64Array:
    """Return the order that sorts keys from 0 on; they and the places together fit 63 bits."""
    packed = (keys << place_bits) | np.arange(len(keys))
    packed.sort()
    packed &= (1 << place_bits) - 1
    return packed


def _ranks(ascending: Int64Array) -> Int64Array:
    """Return 0 for the least value of an array that ascends, 1 for the next one, and so on."""
    ranks = np.zeros(len(ascending), np.int64)
    np.cumsum(ascending[1:] != ascending[:-1], out=ranks[1:])
    return ranks


def select(run: SortedRun, shape: RunShape, keep: BoolArray) -> SortedRun:
    """Return the rows of a run that ``keep`` marks."""
    return shape.read(run.batch.filter(pa.array(keep)))


def equal_values(left: pa.Array, right: pa.Array) -> BoolArray:
    """Return where two columns of one type hold equal keys: NaN equals NaN, NULL equals nothing."""
    if left.type != right.type:
        # One side may stand in the block as the int64 of its key code or event time.
        left, right = integers(left), integers(right)
    equal = pc.equal(left, right)
    if pa.types.is_floating(left.type):
        equal = pc.or_(equal, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    return np.asarray(pc.fill_null(equal, False).to_numpy(zero_copy_only=False))


def integers(array: pa.Array) -> pa.Array:
    """Return an integral, boolean, date or timestamp column as int64, nulls kept."""
    if pa.types.is_timestamp(array.type):
        return array.view(pa.int64())
    if pa.types.is_date32(array.type):
        return array.view(pa.int32()).cast(pa.int64())
    return array.cast(pa.int64())
