"""The harness itself, on plain Spark: cuts are exact, order is by micro-batch, state survives restarts."""

from collections import Counter

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import wjoin
from tests.packages import ROOT
from wjoin.testing.harness import Source, run_query

pytestmark = pytest.mark.long

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])


def rows(*ids: int) -> pa.Table:
    """Rows with the given ids, at as many seconds after the epoch."""
    return pa.table(
        [pa.array(ids, pa.int64()), pa.array([i * 1_000_000 for i in ids], SCHEMA[1].type)], SCHEMA
    )


class Plain:
    """A query that unites its streams and tells them apart by name."""

    def __init__(self) -> None:
        self.frames: dict[str, DataFrame] = {}

    def register(self, source: Source, frame: DataFrame) -> None:
        self.frames[source.relation] = frame

    def union(self) -> DataFrame:
        left, right = (frame.selectExpr(f"'{name}' AS name", "id") for name, frame in self.frames.items())
        return left.unionAll(right)

    def deduplicated(self) -> DataFrame:
        return self.union().dropDuplicates(["id"])


def test_each_micro_batch_gets_its_own_rows_of_every_stream(spark: SparkSession) -> None:
    plain = Plain()
    left = Source("a", [rows(1, 2), rows(), rows(3), rows(4)])
    right = Source("b", [rows(), rows(10), rows(11), rows()])
    run = run_query(spark, plain.union, plain.register, [left, right])
    assert run.bags == [
        Counter([("a", 1), ("a", 2)]),
        Counter([("b", 10)]),
        Counter([("a", 3), ("b", 11)]),
        Counter([("a", 4)]),
    ]
    assert [report["numInputRows"] for report in run.progress][:4] == [2, 1, 2, 1]


@pytest.mark.parametrize("restarts", [(), (1,), (2, 3)])
def test_state_survives_restarts_and_absent_files(spark: SparkSession, restarts: tuple[int, ...]) -> None:
    plain = Plain()
    left = Source("a", [rows(1, 2), None, rows(3), rows(2)])
    right = Source("b", [rows(2), rows(1, 7), None, None])
    run = run_query(spark, plain.deduplicated, plain.register, [left, right], restarts=restarts)
    assert [sorted(row[1] for row in bag.elements()) for bag in run.bags] == [[1, 2], [7], [3], []]


def test_the_example_of_the_docs_runs(session: wjoin.Session) -> None:
    example = (ROOT / "docs" / "testing.md").read_text("utf-8").split("```python\n")[1].split("```")[0]
    exec(example, {"session": session})
