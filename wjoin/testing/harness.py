"""Runs statements on Spark over given rows, in batch and cut into given micro-batches.

Every stream is a folder of Parquet files, one file a micro-batch. Spark's file source takes
files by modification time; with ``maxFilesPerTrigger`` 1 all sources advance by one file a
micro-batch, so that one available-now query runs exactly the given cut.
"""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from wjoin.measured.reports import recent_reports
from wjoin.testing.rows import rows_of

TIMEOUT_SECONDS = 180

_OLDEST = 1_700_000_000
"""Modification time of the first file of every stream, in seconds; later files add one each."""


@dataclass(frozen=True)
class Source:
    """A stream of the harness: its relation name, event time and allowed disorder.

    ``batches`` holds its rows of each micro-batch: an empty table where nothing arrives,
    None where the source has not even a new file.
    """

    relation: str
    batches: Sequence[pa.Table | None]
    event_time: str | None = "ts"
    delay: str | int = "0 seconds"

    @property
    def schema(self) -> StructType:
        """The schema of the rows in Spark."""
        rows = next(table for table in self.batches if table is not None)
        return spark_schema(rows.schema)


@dataclass(frozen=True)
class Run:
    """What a streaming query emitted in each micro-batch, and its progress reports."""

    batches: tuple[pa.Table, ...]
    progress: tuple[dict[str, Any], ...]

    @property
    def bags(self) -> list[Counter[tuple[Any, ...]]]:
        """The rows of each micro-batch in canonical values."""
        return [Counter(rows_of(table)) for table in self.batches]

    @property
    def bag(self) -> Counter[tuple[Any, ...]]:
        """All rows that the query emitted, in canonical values."""
        return sum(self.bags, Counter())


def spark_schema(schema: pa.Schema) -> StructType:
    """Return an Arrow schema as one of Spark's."""
    found: StructType = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    return found


def run_static(session: Any, text: str, sources: Sequence[Source], **parameters: Any) -> pa.Table:
    """Run a statement in batch over the rows of all micro-batches together."""
    with tempfile.TemporaryDirectory(prefix="wjoin-testing-") as name:
        folder = Path(name)
        for source in sources:
            path = folder / source.relation
            path.mkdir()
            rows = pa.concat_tables(table for table in source.batches if table is not None)
            pq.write_table(rows, path / "0.parquet")
            frame = session.spark.read.schema(source.schema).parquet(str(path))
            session.stream(source.relation, frame, event_time=source.event_time, delay=source.delay)
        return _plain(session.sql(text, **parameters).toArrow())


def run_batches(
    session: Any,
    text: str,
    sources: Sequence[Source],
    *,
    restarts: Sequence[int] = (),
    folder: Path | None = None,
    **parameters: Any,
) -> Run:
    """Run a statement as a streaming query over the given micro-batches.

    ``session`` has the ``sql``, ``stream`` and ``spark`` of ``wjoin.Session``. The query is
    stopped and started again on its checkpoint before each micro-batch numbered in
    ``restarts``, and wherever a source has a file again after a micro-batch without one.
    Raises what the query raises, and TimeoutError when it does not end in time.
    """

    def build() -> DataFrame:
        frame: DataFrame = session.sql(text, **parameters)
        return frame

    def register(source: Source, frame: DataFrame) -> None:
        session.stream(source.relation, frame, event_time=source.event_time, delay=source.delay)

    return run_query(session.spark, build, register, sources, restarts=restarts, folder=folder)


def run_query(
    spark: SparkSession,
    build: Callable[[], DataFrame],
    register: Callable[[Source, DataFrame], None],
    sources: Sequence[Source],
    *,
    restarts: Sequence[int] = (),
    folder: Path | None = None,
) -> Run:
    """Run any streaming query over the given micro-batches.

    ``register`` is told of each source with its streaming DataFrame, then ``build`` returns
    the query. ``folder`` takes the files and the checkpoint (a temporary one by default).
    """
    root = folder or Path(tempfile.mkdtemp(prefix="wjoin-testing-"))
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "10000")
    try:
        for source in sources:
            (root / source.relation).mkdir(parents=True, exist_ok=True)
            register(source, _open(spark, source, root))
        tables: list[pa.Table] = []
        progress: list[dict[str, Any]] = []
        for first, last in _segments(sources, restarts):
            for source in sources:
                _write(source, root, first, last)
            emitted, reports = _run_once(build(), root / "checkpoint", last - first)
            tables += emitted
            progress += reports
        return Run(tuple(tables), tuple(progress))
    finally:
        if folder is None:
            shutil.rmtree(root, ignore_errors=True)


def _open(spark: SparkSession, source: Source, root: Path) -> DataFrame:
    reader = spark.readStream.schema(source.schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(root / source.relation))


def _segments(sources: Sequence[Source], restarts: Sequence[int]) -> list[tuple[int, int]]:
    """Cut the micro-batches into runs of the query in which absent files stand last."""
    count = len(sources[0].batches)
    if any(len(source.batches) != count for source in sources):
        raise ValueError("all sources need the same number of micro-batches")
    starts = [0]
    for number in range(1, count):
        back = any(s.batches[number] is not None and s.batches[number - 1] is None for s in sources)
        if back or number in restarts:
            starts.append(number)
    return list(zip(starts, [*starts[1:], count], strict=True))


def _write(source: Source, root: Path, first: int, last: int) -> None:
    for number in range(first, last):
        table = source.batches[number]
        if table is not None:
            path = root / source.relation / f"{number:06d}.parquet"
            pq.write_table(table, path)
            os.utime(path, (_OLDEST + number, _OLDEST + number))


def _run_once(frame: DataFrame, checkpoint: Path, count: int) -> tuple[list[pa.Table], list[dict[str, Any]]]:
    emitted: dict[int, pa.Table] = {}

    def collect(rows: DataFrame, batch: int) -> None:
        emitted[batch] = rows.toArrow()

    writer = frame.writeStream.foreachBatch(collect).option("checkpointLocation", str(checkpoint))
    query = writer.outputMode("append").trigger(availableNow=True).start()
    try:
        if not query.awaitTermination(TIMEOUT_SECONDS):
            raise TimeoutError(f"the query did not end in {TIMEOUT_SECONDS} s")
    finally:
        query.stop()
    tables = [_plain(emitted[batch]) for batch in sorted(emitted)]
    if len(tables) < count:
        raise AssertionError(f"{count} micro-batches were given, Spark ran {len(tables)}")
    # Micro-batches without data may follow the last one; what they emit counts to it.
    tables[count - 1 :] = [pa.concat_tables(tables[count - 1 :])]
    return tables, [dict(report) for report in recent_reports(query)]


def _plain(table: pa.Table) -> pa.Table:
    return table.replace_schema_metadata(None)
