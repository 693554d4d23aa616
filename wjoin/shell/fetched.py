"""The first rows of a DataFrame, for a terminal."""

from pyspark.sql import DataFrame

from wjoin.queries.texts import first_texts, numeric
from wjoin.shell.tables import Rows


def fetched(frame: DataFrame, most: int) -> Rows:
    """Return at most so many rows, and whether there are more."""
    return Rows(tuple(frame.columns), numeric(frame.schema), *first_texts(frame, most))
