"""Schemas that are known without asking Spark."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, is_remote
from pyspark.sql import functions as F
from pyspark.sql.types import (
    AtomicType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    YearMonthIntervalType,
)

_TYPES: tuple[AtomicType, ...] = (
    *(BooleanType(), ByteType(), ShortType(), IntegerType(), LongType(), FloatType(), DoubleType()),
    *(DateType(), TimestampType(), TimestampNTZType(), StringType(), BinaryType()),
)
KEY_TYPES = {each.simpleString(): each for each in _TYPES}
"""The types of values that only the join itself needs: of keys, and of columns that it compares."""


def typed(rows: DataFrame, types: Mapping[str, DataType | None]) -> DataFrame:
    """Return rows with the schema that they have: the types of their columns, in order.

    Over Spark Connect the client then knows it, and need not ask: inside the functions of a
    declarative pipeline it may not. A type that is not known (None) is left for Spark to tell.
    """
    fields = [StructField(name, known) for name, known in types.items() if known is not None]
    if len(fields) < len(types) or not is_remote():
        return rows
    return rows.to(StructType(fields))


def carried_type(kind: DataType) -> DataType:
    """Return the type in which values travel: Spark gives Python no intervals of years and months."""
    return IntegerType() if isinstance(kind, YearMonthIntervalType) else kind


def carried(expression: str, kind: DataType | None) -> str:
    """Return an expression of a type (None where it is not known) as it travels: intervals as months."""
    if isinstance(kind, YearMonthIntervalType):
        return f"CAST(CAST({expression} AS INTERVAL MONTH) AS INT)"
    return expression


def restored_value(name: str, kind: DataType) -> Column:
    """Return a column that has travelled in the type that it had."""
    if isinstance(kind, YearMonthIntervalType):
        return F.expr(f"CAST(make_ym_interval(0, {name}) AS {kind.simpleString()})")
    return F.col(name)
