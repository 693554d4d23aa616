"""Schemas that are known without asking Spark."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, is_remote
from pyspark.sql.types import (
    AtomicType,
    BinaryType,
    BooleanType,
    ByteType,
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
)

_TYPES: tuple[AtomicType, ...] = (
    *(BooleanType(), ByteType(), ShortType(), IntegerType(), LongType(), FloatType(), DoubleType()),
    *(DateType(), TimestampType(), TimestampNTZType(), StringType(), BinaryType()),
)
KEY_TYPES = {each.simpleString(): each for each in _TYPES}
"""The types of values that only the join itself needs: of keys, and of columns that it compares."""


def typed(rows: DataFrame, fields: Sequence[StructField]) -> DataFrame:
    """Return rows with the schema that they have.

    Over Spark Connect the client then knows it, and need not ask: inside the functions of a
    declarative pipeline it may not.
    """
    return rows.to(StructType(list(fields))) if is_remote() else rows
