"""Slices that are larger than one value of Spark's state: they are written, read and dropped in pieces."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import wjoin
from tests.kit.tables import SECOND, events
from tests.stream.test_copied_checkpoints import deleted, local_folders

pytestmark = pytest.mark.thorough

ROWS = 12_000
TEXT = 1_000
"""Bytes of text in a row: 12 MB, so that each of two workers has more than a piece."""


class Query:
    """A join of two streams that runs one micro-batch at a time."""

    def __init__(self, session: wjoin.Session, root: Path) -> None:
        self._session, self._root = session, root
        self._files = 0
        reader = session.readStream.schema("id BIGINT, ts TIMESTAMP, text STRING")
        for name in "ab":
            (root / name).mkdir()
            frame = reader.parquet(str(root / name))
            session.stream(name, frame, event_time="ts", delay="1 second")

    def run(self, **batch: pa.Table) -> tuple[list[tuple[int, str]], int]:
        """Run one micro-batch; return its rows, and how many values are in the state after it."""
        self._files += 1
        paths = {name: self._root / name / f"{self._files}.parquet" for name in batch}
        for name, path in paths.items():
            pq.write_table(batch[name], path)
        found: list[tuple[int, str]] = []

        def collect(rows: DataFrame, number: int) -> None:
            found.extend((row.id, row.text) for row in rows.collect())

        joined = self._session.sql("SELECT a.id, a.text FROM a, b WINDOW = 20 SECONDS WHERE a.id = b.id")
        writer = joined.writeStream.foreachBatch(collect).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(self._root / "checkpoint")).start()
        assert query.awaitTermination(120)
        for path in paths.values():
            path.unlink()
        progress = query.lastProgress
        assert progress is not None
        return found, sum(each.numRowsTotal for each in progress.stateOperators)


def rows(count: int, second: int) -> pa.Table:
    """Return rows with ids from 0 on, within a second, and a text that no two share."""
    return events(
        [(number, second * SECOND + number, f"{number:0{TEXT}}") for number in range(count)],
        "text",
        types=(pa.string(),),
    )


def test_a_large_slice_is_kept_in_pieces(spark: SparkSession, session: wjoin.Session, tmp_path: Path) -> None:
    query = Query(session, tmp_path)
    none, values = query.run(a=rows(ROWS, 0), b=rows(1, 0).slice(1))
    assert none == []
    workers = int(spark.conf.get("spark.sql.shuffle.partitions") or 0)
    assert values >= workers * 3, "a manifest and two pieces of each worker"
    # From here on the state itself is read.
    deleted(local_folders(spark))
    found, _ = query.run(a=rows(0, 0), b=rows(ROWS, 1))
    assert sorted(found) == [(number, f"{number:0{TEXT}}") for number in range(ROWS)]
    # What was written since is compressed.
    deleted(local_folders(spark))
    found, _ = query.run(a=rows(ROWS, 2), b=rows(1, 2).slice(1))
    assert sorted(found) == [(number, f"{number:0{TEXT}}") for number in range(ROWS)]
    for second in (100, 200, 300):
        none, values = query.run(a=rows(1, second), b=rows(1, second + 50))
    assert none == []
    assert values <= workers + 2, "the manifests, and rows of the last micro-batch: no piece is left behind"
