"""The rows of FROM items as tables."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from wjoin.executor.spark.once import collect_once
from wjoin.joins.from_items import FromSource

FILE = "__wjoin_file"
"""The column with the file that a row comes from, of streams of files."""


@contextmanager
def as_tables(spark: SparkSession, sources: Sequence[FromSource]) -> Iterator[list[DataFrame]]:
    """Give the rows of FROM items as tables.

    Files of a stream are read as such, and their rows have FILE; other streams are read once, to their
    present end. Raises what Spark raises.
    """
    made: list[str] = []
    frames: list[DataFrame] = []
    try:
        for each in sources:
            if not each.frame.isStreaming:
                frames.append(each.frame)
            elif (files := each.sample()) is not None:
                frames.append(files.withColumn(FILE, F.input_file_name()))
            else:
                made.append(collect_once(each.frame))
                frames.append(spark.table(made[-1]))
        yield frames
    finally:
        for name in made:
            spark.catalog.dropTempView(name)
