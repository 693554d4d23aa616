"""Rows by join value: hashes of a key column, an index over them, and an estimate of distinct values.

Hashes are of 64 bits and the same in every process; what they find is compared by value before it is served.
A NULL equals nothing, -0.0 equals 0.0, and NaN equals NaN, as in Spark's equi-joins.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]
Positions = npt.NDArray[np.int64]

SKETCH = 4096
"""Least hashes that are kept of a column: the error of the estimate is about 1/√4096."""

_ODD = np.uint64(0x9E3779B97F4A7C15)


def column_hashes(column: pa.Array) -> Hashes:
    """Return a hash for each value of a column; that of a NULL means nothing."""
    kind = column.type
    if pa.types.is_floating(kind):
        values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
        values[np.isnan(values)] = np.nan
        return _mixed(values.view(np.uint64))
    if pa.types.is_integer(kind):
        return _mixed(column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64))
    if pa.types.is_timestamp(kind):
        return column_hashes(column.view(pa.int64()))
    if pa.types.is_date32(kind):
        return column_hashes(column.view(pa.int32()))
    if pa.types.is_boolean(kind):
        return column_hashes(column.cast(pa.int8()))
    if pa.types.is_nested(kind):
        # -0.0 and 0.0 are the same.
        texts = [None if each is None else repr(each).replace("-0.0", "0.0") for each in column.to_pylist()]
        return column_hashes(pa.array(texts, pa.string()))
    values = column.cast(pa.string()) if pa.types.is_decimal(kind) else column
    coded = values.dictionary_encode()
    if pa.types.is_string(values.type):
        words = coded.dictionary.to_numpy(zero_copy_only=False)
    else:
        words = np.array([_text(each) for each in coded.dictionary.to_pylist()], dtype=object)
    hashes = pd.util.hash_array(words, categorize=False) if len(words) else np.zeros(1, np.uint64)
    return np.asarray(hashes[coded.indices.fill_null(0).to_numpy(zero_copy_only=False)], dtype=np.uint64)


def _text(value: Any) -> str:
    # repr tells b'1' from '1'.
    return value if isinstance(value, str) else repr(value)


def _mixed(values: Hashes) -> Hashes:
    """Return the values mixed: pandas does as SplitMix64 at its end."""
    with np.errstate(over="ignore"):
        return np.asarray(pd.util.hash_array(values + _ODD), np.uint64)


@dataclass(frozen=True)
class HashIndex:
    """The hashes of a batch's rows in ascending order, and the position of each row."""

    hashes: Hashes
    positions: npt.NDArray[np.int32]

    def holding(self, wanted: Hashes) -> Positions:
        """Return the positions of rows with some of the distinct hashes ``wanted``, ascending."""
        low = np.searchsorted(self.hashes, wanted, "left")
        count = np.searchsorted(self.hashes, wanted, "right") - low
        within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        return np.sort(self.positions[np.repeat(low, count) + within].astype(np.int64))


def make_index(column: pa.Array) -> HashIndex:
    """Return the index of a batch by a key column; rows with a NULL there are not in it."""
    positions = np.flatnonzero(np.asarray(column.is_valid())).astype(np.int32)
    hashes = column_hashes(column)[positions]
    order = np.argsort(hashes, kind="stable")
    return HashIndex(hashes[order], positions[order])


def save_index(index: HashIndex, path: Path) -> None:
    """Write an index beside its segment: the hashes and the positions, one file each."""
    np.save(path.with_suffix(".hashes.npy"), index.hashes)
    np.save(path.with_suffix(".positions.npy"), index.positions)


def load_index(path: Path) -> HashIndex:
    """Return the index beside a segment, mapped. Raises OSError or ValueError where it cannot be read."""
    hashes, positions = (path.with_suffix(f".{name}.npy") for name in ("hashes", "positions"))
    return HashIndex(np.load(hashes, mmap_mode="r"), np.load(positions, mmap_mode="r"))


def sketch(column: pa.Array) -> Hashes:
    """Return the least distinct hashes of a column: k minimum values (Bar-Yossef et al., RANDOM 2002)."""
    return united([column_hashes(column)[np.asarray(column.is_valid())]])


def united(sketches: Sequence[Hashes]) -> Hashes:
    """Return the sketch of several columns' values together."""
    return np.unique(np.concatenate([np.empty(0, np.uint64), *sketches]))[:SKETCH]


def estimate(found: Hashes) -> float:
    """Return how many distinct values a sketch has seen, about."""
    if len(found) < SKETCH:
        return float(len(found))
    return float((SKETCH - 1) / (float(found[-1]) / 2.0**64))
