"""The first rows of a DataFrame as text, as Spark spells its values."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, NumericType

from wjoin.shell.tables import Rows


def fetched(frame: DataFrame, most: int) -> Rows:
    """Return at most so many rows, and whether there are more."""
    types = [each.dataType for each in frame.schema.fields]
    # Two columns may have one name.
    names = [f"c{number}" for number in range(len(types))]
    texts = frame.toDF(*names).select(*map(_text, names, types))
    rows = texts.take(most + 1)
    numbers = tuple(isinstance(each, NumericType) for each in types)
    return Rows(tuple(frame.columns), numbers, tuple(map(tuple, rows[:most])), len(rows) > most)


def _text(name: str, kind: DataType) -> Column:
    column = F.hex(name) if isinstance(kind, BinaryType) else F.col(name).cast("string")
    return column.alias(name)
