"""Rows as texts, as Spark spells its values."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, NumericType, StructType

Texts = tuple[str | None, ...]
"""A row, None for NULL."""


def as_texts(frame: DataFrame) -> DataFrame:
    """Return a DataFrame's rows as Spark writes them, in columns c0, c1 and so on: two may have one name.

    In Python timestamps would be those of this machine's time zone, not of the session's.
    """
    types = [field.dataType for field in frame.schema.fields]
    names = [f"c{number}" for number in range(len(types))]
    columns = (
        (F.hex(name) if isinstance(kind, BinaryType) else F.col(name).cast("string")).alias(name)
        for name, kind in zip(names, types, strict=True)
    )
    return frame.toDF(*names).select(*columns)


def first_texts(frame: DataFrame, most: int) -> tuple[tuple[Texts, ...], bool]:
    """Return at most so many rows, and whether there are more: Spark computes one more to tell."""
    rows = [tuple(row) for row in as_texts(frame).take(most + 1)]
    return tuple(rows[:most]), len(rows) > most


def numeric(schema: StructType) -> tuple[bool, ...]:
    """Return of each column whether it has numbers."""
    return tuple(isinstance(field.dataType, NumericType) for field in schema.fields)
