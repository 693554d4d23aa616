"""A SELECT over streams in a cell: a query whose newest or first rows are kept to be shown."""

import logging
import uuid
from typing import TYPE_CHECKING

from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from wjoin.commands.printed import start_select
from wjoin.grammar.plurals import counted
from wjoin.notebook.html_tables import Table, table
from wjoin.queries.run_once import run_once
from wjoin.queries.spark_texts import as_texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

_SCHEMA = StructType(
    [
        StructField("row", ArrayType(StringType())),
        StructField("batch", LongType()),
        StructField("new", LongType()),
    ]
)


class Keep:
    """Keeps the first rows of a query, or those of its newest micro-batch that has any, in a temporary view.

    With Spark Connect it runs on the server, so a view is how the rows come to the notebook.
    """

    def __init__(self, view: str, most: int, first: bool) -> None:
        self._view, self._most, self._first = view, most, first
        self._kept: list[list[str | None]] = []
        self._count = 0

    def __call__(self, rows: "DataFrame", batch: int) -> None:
        """Take a micro-batch."""
        with run_once(rows) as (kept, count):
            missing = self._most - len(self._kept) if self._first else self._most
            if count and missing > 0:
                found = [list(row) for row in as_texts(kept).limit(missing).collect()]
                self._kept = [*self._kept, *found] if self._first else found
            if not count:
                return
            self._count = self._count + count if self._first else count
            told = [(row, batch, self._count) for row in self._kept]
            frame = rows.sparkSession.createDataFrame(told, _SCHEMA)
            frame.createOrReplaceGlobalTempView(self._view)


def _silence_breaks() -> None:
    """Log no traceback of a micro-batch that is broken off, or failed: the query has the error, too."""

    def other(record: logging.LogRecord) -> bool:
        trace = record.exc_info[2] if record.exc_info else None
        while trace is not None:
            if trace.tb_frame.f_code is Keep.__call__.__code__:
                return False
            trace = trace.tb_next
        return True

    logger = logging.getLogger("py4j.clientserver")
    if not any(getattr(each, "__module__", "") == __name__ for each in logger.filters):
        logger.addFilter(other)


class SelectRows:
    """The rows of a SELECT's query, as they come: the ``first``, or those of the newest micro-batch."""

    def __init__(self, frame: "DataFrame", most: int, *, first: bool) -> None:
        self._frame, self._most, self._first = frame, most, first
        self._view = f"wjoin_{uuid.uuid4().hex}"
        self._read: Table | None = None
        self._batches = -1

    def start(self, every: str | None) -> "StreamingQuery":
        """Start the query; one for the first rows ends when it has read what the sources hold."""
        _silence_breaks()
        keep = Keep(self._view, self._most, self._first)
        return start_select(self._frame, keep, every, once=self._first)

    def table(self, batches: int) -> Table:
        """Return the rows after so many micro-batches, which are read where there are more than before."""
        if self._read is None or batches != self._batches:
            self._batches = batches
            self._read = self._newest()
        return self._read

    def _newest(self) -> Table:
        spark, schema = self._frame.sparkSession, self._frame.schema
        if not spark.catalog.tableExists(f"global_temp.{self._view}"):
            return table(schema, [], "no rows" if self._first else "no rows yet")
        found = spark.table(f"global_temp.{self._view}").collect()
        return table(schema, [tuple(each.row) for each in found], self._note(found[0].batch, found[0].new))

    def _note(self, batch: int, count: int) -> str:
        rows = counted(count, "row" if self._first else "new row")
        where = "" if self._first else f"micro-batch {batch}: "
        more = f", the first {self._most:,} shown: --limit shows more" if count > self._most else ""
        return f"{where}{rows}{more}"

    def drop(self) -> None:
        """Forget the rows."""
        self._frame.sparkSession.catalog.dropGlobalTempView(self._view)
