"""The rows of a micro-batch, whose stateful part runs once, whoever reads them and however often."""

import contextlib
from collections.abc import Callable, Iterator

from pyspark import StorageLevel
from pyspark.sql import DataFrame

Written = Callable[[DataFrame, int], None]
"""What writes the rows of a micro-batch: it is given them, and the number of the micro-batch."""


@contextlib.contextmanager
def run_once(rows: DataFrame) -> Iterator[tuple[DataFrame, int]]:
    """Run a micro-batch, whose stateful part may run only once; yield what it gave, and how many rows."""
    kept = rows.persist(StorageLevel.DISK_ONLY)
    try:
        yield kept, kept.count()
    finally:
        kept.unpersist()


def given_whole(write: Written) -> Written:
    """Return a function that gives another one the rows of each micro-batch when all are there."""

    def written(rows: DataFrame, number: int) -> None:
        with run_once(rows) as (kept, _):
            write(kept, number)

    return written
