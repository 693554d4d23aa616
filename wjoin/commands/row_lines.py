"""Rows as lines of JSON or CSV, for other programs."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_QUOTED = re.compile(r'[",\r\n]|^\s|\s$|^$')


def json_lines(frame: "DataFrame") -> Iterator[str]:
    """Yield each row as an object of JSON.

    Timestamps are ISO 8601 in the session's time zone, with microseconds; NaN and infinity are strings, as
    JSON has no numbers for them; binary is Base64; NULL is null, and stays.
    """
    rows = frame.toDF(*different_names(frame.columns))
    for row in rows.select(F.to_json(F.struct("*"), _JSON)).toLocalIterator(prefetchPartitions=True):
        yield row[0]


def csv_lines(frame: "DataFrame") -> Iterator[str]:
    """Yield each row as a record of CSV (RFC 4180), whose values may have line breaks.

    Values are those of ``json_lines``; lists, structs and maps are JSON. NULL is an empty field, an empty
    string is quoted.
    """
    names = [f"c{number}" for number in range(len(frame.columns))]
    kinds = (each.dataType for each in frame.schema.fields)
    rows = frame.toDF(*names).select(*map(_value, names, kinds))
    return map(csv_record, rows.toLocalIterator(prefetchPartitions=True))


def csv_record(values: Iterable[str | None]) -> str:
    """Return a record of CSV."""
    fields = ["" if each is None else _quoted(each) for each in values]
    # Readers skip an empty line.
    return ",".join(fields) if fields != [""] else '""'


def different_names(names: Iterable[str]) -> list[str]:
    """Return names of columns, all different: of several ``a`` the second is ``a_2``, as a reader may ask."""
    found: list[str] = []
    taken = {name.lower() for name in names}
    known: set[str] = set()
    for name in names:
        new, number = name, 2
        while new.lower() in known or (new != name and new.lower() in taken):
            new, number = f"{name}_{number}", number + 1
        known.add(new.lower())
        found.append(new)
    return found


def _quoted(value: str) -> str:
    return '"{}"'.format(value.replace('"', '""')) if _QUOTED.search(value) else value


def _value(name: str, kind: DataType) -> "Column":
    column = F.col(name)
    match kind:
        case BinaryType():
            return F.base64(column)
        case TimestampType() | TimestampNTZType():
            return F.get_json_object(F.to_json(F.struct(column.alias("v")), _JSON), "$.v")
        case ArrayType() | MapType() | StructType() | VariantType():
            return F.to_json(column, _JSON)
        case _:
            return column.cast("string")
