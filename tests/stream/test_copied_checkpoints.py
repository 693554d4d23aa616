"""Queries on copies of one checkpoint, rewound checkpoints, and local copies of slices that are harmed.

A checkpoint that is copied goes on as two states whose slices have the same names. Each query here runs one
micro-batch at a time, on rows that are there for it alone.
"""

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import wjoin
from tests.kit.check import PLAIN
from tests.kit.expressions import Field, equal
from tests.kit.lateness import Batch, expected_batches
from tests.kit.statement import Within, text
from tests.kit.tables import SECOND, events, statement
from wjoin.testing.harness import spark_schema
from wjoin.testing.rows import rows_of

pytestmark = pytest.mark.thorough

CASE = statement("AB", Within(30 * SECOND), equal(Field("A", "k"), Field("B", "k")), delay=5 * SECOND)

ROWS = 60
COMMON = 3
"""Micro-batches before the copy is made."""


def rows_for(history: str) -> list[Batch]:
    """Return a micro-batch for each letter; letters stand for rows, their places for times."""
    found = []
    for place, letter in enumerate(history):
        chance = random.Random(f"{letter} {place}")
        found.append(
            {
                alias: events(
                    [
                        (
                            (ord(letter) * 1000 + place) * 1000 + n,
                            (place * 5 + chance.randrange(5)) * SECOND,
                            chance.randrange(8),
                        )
                        for n in range(ROWS)
                    ],
                    "k",
                )
                for alias in "AB"
            }
        )
    return found


def wanted(history: str) -> Counter[tuple[Any, ...]]:
    """Return what the last micro-batch of a history must emit."""
    return expected_batches(CASE, rows_for(history))[-1]


class Queries:
    """Runs micro-batches of the statement on one checkpoint or another, in folders below ``root``."""

    def __init__(self, session: wjoin.Session, root: Path) -> None:
        self._session = session
        self._root = root
        self._files = 0
        for item in CASE.inputs:
            (root / item.relation).mkdir()
            schema = spark_schema(rows_for("x")[0][item.alias].schema)
            frame = session.readStream.schema(schema).parquet(str(root / item.relation))
            session.stream(item.relation, frame, event_time="ts", delay=f"{item.delay} microseconds")

    def run(self, checkpoint: str, batch: Batch) -> Counter[tuple[Any, ...]]:
        """Run one micro-batch and return its rows."""
        self._files += 1
        paths = [self._root / item.relation / f"{self._files:06d}.parquet" for item in CASE.inputs]
        for item, path in zip(CASE.inputs, paths, strict=True):
            pq.write_table(batch[item.alias], path)
            os.utime(path, (1_700_000_000 + self._files,) * 2)
        emitted: list[pa.Table] = []

        def collect(rows: DataFrame, number: int) -> None:
            emitted.append(rows.toArrow())

        writer = self._session.sql(text(CASE, PLAIN)).writeStream.foreachBatch(collect)
        query = writer.option("checkpointLocation", str(self._root / checkpoint)).trigger(availableNow=True)
        assert query.start().awaitTermination(120)
        for path in paths:
            path.unlink()
        return sum((Counter(rows_of(table)) for table in emitted), Counter())

    def copy(self, checkpoint: str, to: str) -> None:
        """Put a checkpoint in the place of another one."""
        shutil.rmtree(self._root / to, ignore_errors=True)
        shutil.copytree(self._root / checkpoint, self._root / to)

    def histories(self, checkpoint: str, history: str, after: int) -> None:
        """Run the micro-batches of a history after the first ones, and compare what each emits."""
        for length in range(after + 1, len(history) + 1):
            step = history[:length]
            assert self.run(checkpoint, rows_for(step)[-1]) == wanted(step), (checkpoint, step)


@pytest.fixture
def queries(session: wjoin.Session, tmp_path: Path) -> Queries:
    return Queries(session, tmp_path)


@pytest.fixture(params=["files", "spark"])
def queries_at_home(session: wjoin.Session, tmp_path: Path, request: pytest.FixtureRequest) -> Queries:
    """Queries that keep their state in one place or the other."""
    session.context.settings.set("wjoin.state", request.param)
    return Queries(session, tmp_path)


def test_two_queries_on_copies_of_one_checkpoint(queries_at_home: Queries) -> None:
    queries = queries_at_home
    queries.histories("first", "aaa", 0)
    queries.copy("first", "second")
    for length in range(COMMON, 6):
        queries.histories("first", "aaabbb"[: length + 1], length)
        queries.histories("second", "aaaccc"[: length + 1], length)


def test_a_rewound_checkpoint(queries_at_home: Queries) -> None:
    queries = queries_at_home
    queries.histories("found", "aaa", 0)
    queries.copy("found", "earlier")
    queries.histories("found", "aaabb", COMMON)
    queries.copy("earlier", "found")
    queries.histories("found", "aaaccc", COMMON)


def local_folders(spark: SparkSession) -> list[Path]:
    """Return the folders of the cache."""

    def told(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"folders": [os.environ["SPARK_LOCAL_DIRS"]]})

    (row,) = spark.range(1, numPartitions=1).mapInArrow(told, "folders STRING").collect()
    return [Path(each) / "wjoin-slices" for each in row.folders.split(",")]


def deleted(folders: Sequence[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder)


def a_file_in_place(folders: Sequence[Path]) -> None:
    deleted(folders)
    for folder in folders:
        folder.write_text("no folder")


def of_every_file(harm: Callable[[Path], object]) -> Callable[[Sequence[Path]], None]:
    def harmed(folders: Sequence[Path]) -> None:
        files = [path for folder in folders for path in folder.iterdir()]
        assert files, "the cache is in use"
        for path in files:
            harm(path)

    return harmed


HARMS = {
    "deleted": deleted,
    "a file in place of the folder": a_file_in_place,
    "truncated": of_every_file(lambda path: os.truncate(path, path.stat().st_size // 2)),
    "other content": of_every_file(lambda path: path.write_bytes(path.read_bytes()[::-1])),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_query_goes_on_without_its_local_copies(
    spark: SparkSession, queries: Queries, request: pytest.FixtureRequest, harm: str
) -> None:
    queries.histories("found", "aaa", 0)
    folders = local_folders(spark)
    assert all(folder.is_dir() for folder in folders)
    request.addfinalizer(lambda: [path.unlink() for path in folders if path.is_file()])
    for length in range(COMMON, 5):
        HARMS[harm](folders)
        queries.histories("found", "a" * (length + 1), length)
        for folder in folders:
            if folder.is_file():
                folder.unlink()
                folder.mkdir()


def test_slices_that_are_no_longer_needed_go(spark: SparkSession, queries: Queries) -> None:
    """Two workers of two inputs write 40 slices and more: some are merged, some expire."""
    before = {path for folder in local_folders(spark) for path in folder.glob("*")}
    queries.histories("found", "a" * 10, 0)
    after = {path for folder in local_folders(spark) for path in folder.glob("*")}
    assert 4 <= len(after - before) <= 20
