"""The rows of a SELECT, printed: of a table, of what a stream holds, or of a stream as they come."""

import functools
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from pyspark.sql import functions as F

from wjoin.commands.row_lines import csv_lines, csv_record, different_names, json_lines
from wjoin.executor.spark.beginning import begin
from wjoin.executor.spark.once import select_name
from wjoin.grammar.plurals import counted
from wjoin.grammar.shown import shown_lines
from wjoin.measured.progress import read
from wjoin.measured.reports import last_report
from wjoin.queries.open_groups import waiting, waits
from wjoin.queries.run_once import run_once
from wjoin.spark.notices import tell

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery


PAGE_ROWS = 100_000
"""Rows that are printed as one table: the driver holds them as text."""

TABLE_ROWS = 20
"""Rows that are printed as a table where nobody has said how many; of the other forms all are."""

_NUMBER = "__wjoin_number"
_PARTITION_BITS = 33


def print_rows(frame: "DataFrame", most: int | None, form: str = "table") -> None:
    """Print at most so many rows; ``form`` is ``table``, ``csv`` or ``json``."""
    if form == "table":
        _print_table(frame, TABLE_ROWS if most is None else most)
        return
    _print_heading(frame, form)
    with run_once(frame) as (kept, count):
        _print_lines(kept, count, most, form)


def _print_heading(frame: "DataFrame", form: str) -> None:
    """Print the names of columns, where they stand above all rows."""
    if form == "csv":
        print(csv_record(different_names(frame.columns)), flush=True)


def _print_lines(kept: "DataFrame", count: int, most: int | None, form: str) -> None:
    """Print at most so many rows, of which there are ``count``, as lines for other programs."""
    shown = kept if most is None or count <= most else kept.limit(most)
    for line in csv_lines(shown) if form == "csv" else json_lines(shown):
        print(line)
    sys.stdout.flush()
    if most is not None and count > most:
        print(f"only the first {counted(most, 'row')} printed (--rows)", file=sys.stderr, flush=True)


def _print_table(frame: "DataFrame", most: int) -> None:
    """Print at most so many rows as a table; many of them as several tables."""
    if most <= PAGE_ROWS:
        _show(frame, most)
        return
    kept = frame.select("*", F.monotonically_increasing_id().alias(_NUMBER)).persist(StorageLevel.DISK_ONLY)
    try:
        pages = list(_pages(kept))
        left = most
        for first, rows in pages:
            shown = min(rows, left)
            if shown:
                page = kept.filter(F.col(_NUMBER).between(first, first + shown - 1))
                _show(page.drop(_NUMBER), shown)
            left -= shown
        if not pages:
            _show(kept.drop(_NUMBER), 1)
        elif sum(rows for _, rows in pages) > most:
            print(f"only showing top {most} rows")
    finally:
        kept.unpersist()


def _show(frame: "DataFrame", most: int) -> None:
    """Print rows as Spark does, but nothing of their values acts on a terminal."""
    rows: Any = frame
    print(shown_lines(rows._show_string(most, truncate=False)))


def _pages(numbered: "DataFrame") -> "Iterator[tuple[int, int]]":
    """Yield the first number and the rows of each page; numbers begin anew in each partition."""
    begins = F.shiftleft(F.shiftright(_NUMBER, _PARTITION_BITS), _PARTITION_BITS)
    for number, rows in sorted(map(tuple, numbered.groupBy(begins).count().collect())):
        for first in range(0, rows, PAGE_ROWS):
            yield number + first, min(PAGE_ROWS, rows - first)


def print_once(frame: "DataFrame", most: int | None, form: str = "table") -> None:
    """Print at most so many rows of what a stream's sources hold, in a form of ``print_rows``."""
    if most is None and form == "table":
        most = TABLE_ROWS
    print_rows(rows_once(frame, most), most, form)


def rows_once(frame: "DataFrame", most: int | None) -> "DataFrame":
    """Run a stream over what its sources hold; return at most one row more than so many, None for all."""
    found: list[DataFrame] = []
    # One more than is shown tells that there are more.
    missing = sys.maxsize if most is None else most + 1

    def take(rows: "DataFrame", batch: int) -> None:
        nonlocal missing
        with run_once(rows) as (kept, count):
            if count and missing > 0:
                # A limit would bring all rows into one partition.
                shown = kept if count <= missing else kept.limit(missing)
                found.append(shown.localCheckpoint())
                missing -= min(count, missing)

    query = start_select(frame, take, once=True)
    query.awaitTermination()
    report = last_report(query)
    if words := waiting(None if report is None else read(report)):
        tell(waits("the SELECT", words))
    empty = frame.sparkSession.createDataFrame([], frame.schema)
    return functools.reduce(lambda first, second: first.union(second), found or [empty])


def start_printing(
    frame: "DataFrame", most: int | None, every: str | None, form: str = "table"
) -> "StreamingQuery":
    """Start a query that prints the new rows of each micro-batch, at most so many of each.

    ``form`` is one of ``print_rows``.
    """
    _print_heading(frame, form)

    def take(rows: "DataFrame", batch: int) -> None:
        with run_once(rows) as (kept, count):
            if not count:
                return
            if form == "table":
                print_rows(kept, most)
            else:
                _print_lines(kept, count, most, form)
            told = sys.stdout if form == "table" else sys.stderr
            print(f"micro-batch {batch}: {counted(count, 'new row')}", file=told, flush=True)

    return start_select(frame, take, every)


def start_select(
    frame: "DataFrame",
    take: "Callable[[DataFrame, int], None]",
    every: str | None = None,
    *,
    once: bool = False,
    mode: str = "append",
) -> "StreamingQuery":
    """Start a query that calls ``take`` with each micro-batch; ``once``: only with what the sources hold."""
    writer = frame.writeStream.foreachBatch(take).outputMode(mode).queryName(select_name())
    if once:
        writer = writer.trigger(availableNow=True)
    elif every is not None:
        writer = writer.trigger(processingTime=every)
    return begin(frame.sparkSession, writer.start, "the SELECT")
