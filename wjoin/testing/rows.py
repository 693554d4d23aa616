"""Rows of a result as values that can be counted and compared."""

import datetime
import math
import struct
from typing import Any

import pyarrow as pa


def canonical(value: Any) -> Any:
    """Return a hashable value: equal for values that no reader of the result can tell apart.

    Every NaN is one value, -0.0 and 0.0 are two, an instant is the same in every time zone,
    a decimal keeps its scale.
    """
    match value:
        case float():
            return "NaN" if math.isnan(value) else ("double", struct.pack(">d", value), value)
        case datetime.datetime() if value.tzinfo is not None:
            return value.astimezone(datetime.UTC)
        case list() | tuple():
            return tuple(canonical(each) for each in value)
        case dict():
            return tuple((name, canonical(each)) for name, each in value.items())
        case bytearray():
            return bytes(value)
        case bool():
            return str(value)
    return value if not hasattr(value, "as_tuple") else ("decimal", str(value))


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return the rows of a result as canonical values, in order."""
    values = [column.to_pylist() for column in table.columns]
    return [tuple(canonical(value) for value in row) for row in zip(*values, strict=True)]
