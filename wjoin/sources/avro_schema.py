"""The Avro schema of rows, as Spark's own ``to_avro`` derives it: what FORMAT AVRO reads and writes."""

import json
import math
from typing import Any

from pyspark.sql import types

_ROOT = "topLevelRecord"
_PLAIN: dict[type[types.DataType], Any] = {
    types.ByteType: "int",
    types.ShortType: "int",
    types.IntegerType: "int",
    types.LongType: "long",
    types.FloatType: "float",
    types.DoubleType: "double",
    types.BooleanType: "boolean",
    types.StringType: "string",
    types.CharType: "string",
    types.VarcharType: "string",
    types.BinaryType: "bytes",
    types.DateType: {"type": "int", "logicalType": "date"},
    types.TimestampType: {"type": "long", "logicalType": "timestamp-micros"},
    types.TimestampNTZType: {"type": "long", "logicalType": "local-timestamp-micros"},
}
_INTERVALS = {types.DayTimeIntervalType: "long", types.YearMonthIntervalType: "int"}


def avro_schema(rows: types.StructType) -> str:
    """Return the schema of a record with the columns of ``rows``.

    A column that may be NULL is a union with null, one that is NOT NULL is not. Raises ValueError for a
    type that Avro has not, and names the column.
    """
    return json.dumps(_record(rows, _ROOT, ""))


def nullable(kind: types.DataType) -> Any:
    """Return a type with all that is inside of it nullable: the same, whatever is known of the values."""
    match kind:
        case types.StructType():
            return types.StructType(
                [types.StructField(each.name, nullable(each.dataType), True) for each in kind]
            )
        case types.ArrayType():
            return types.ArrayType(nullable(kind.elementType), True)
        case types.MapType():
            return types.MapType(kind.keyType, nullable(kind.valueType), True)
    return kind


def _record(rows: types.StructType, name: str, namespace: str) -> dict[str, Any]:
    inner = f"{namespace}.{name}" if namespace else name
    fields = [
        {"name": each.name, "type": _type(each.dataType, each.nullable, each.name, inner)} for each in rows
    ]
    record: dict[str, Any] = {"type": "record", "name": name}
    return {**record, **({"namespace": namespace} if namespace else {}), "fields": fields}


def _type(kind: types.DataType, nullable: bool, name: str, namespace: str) -> Any:
    written = _present(kind, name, namespace)
    return [written, "null"] if nullable else written


def _present(kind: types.DataType, name: str, namespace: str) -> Any:
    """Return the type of a value that is not NULL; ``name`` and ``namespace`` are those of its field."""
    match kind:
        case types.DecimalType():
            return {
                "type": "fixed",
                "name": "fixed",
                "namespace": f"{namespace}.{name}",
                "size": _least_bytes(kind.precision),
                "logicalType": "decimal",
                "precision": kind.precision,
                "scale": kind.scale,
            }
        case types.ArrayType():
            return {"type": "array", "items": _type(kind.elementType, kind.containsNull, name, namespace)}
        case types.MapType(keyType=types.StringType()):
            return {"type": "map", "values": _type(kind.valueType, kind.valueContainsNull, name, namespace)}
        case types.StructType():
            return _record(kind, name, namespace)
        case types.DayTimeIntervalType() | types.YearMonthIntervalType():
            return {"type": _INTERVALS[type(kind)], "spark.sql.catalyst.type": kind.simpleString()}
    if type(kind) not in _PLAIN:
        raise ValueError(f"Avro has no type for the column {name}, {kind.simpleString()}")
    return _PLAIN[type(kind)]


def _least_bytes(precision: int) -> int:
    """Return how many bytes hold every number of so many digits."""
    return math.ceil((math.log2(10) * precision + 1) / 8)
