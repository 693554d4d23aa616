"""Filters of a stream: what they guard, and what they may be called."""

from pathlib import Path

import pytest

import wjoin
from tests.tiers import tiers


@pytest.mark.parametrize(
    "predicate",
    tiers(["A.k <> 0", "A.keep AND A.k <> 0"], long=["A.keep AND A.k <> 0"], thorough=["A.k <> 0"]),
)
def test_nothing_of_a_row_is_evaluated_that_a_filter_removes(
    session: wjoin.Session, tmp_path: Path, predicate: str
) -> None:
    """A filter may be there to keep an expression from failing."""
    spark = session.spark
    rows = spark.sql("SELECT id AS k, timestamp_seconds(id) AS ts, true AS keep FROM range(4)")
    rows.write.parquet(str(tmp_path / "rows"))
    for name in ("one", "two"):
        session.stream(name, spark.readStream.schema(rows.schema).parquet(str(tmp_path / "rows")), "ts")
    session.sql(f"CREATE OR REPLACE SINK guarded USING parquet OPTIONS (path '{tmp_path / 'found'}')")
    session.run_script(
        f"""INSERT INTO guarded
            SELECT A.k, 12 / A.k AS share, B.k AS other FROM one A, two B WINDOW (A, B) = 5 SECONDS
            WHERE {predicate} AND 6 / A.k = 2 * B.k""",
        checkpoint=str(tmp_path / "checkpoint"),
    )
    found = spark.read.parquet(str(tmp_path / "found")).collect()
    assert sorted((row.k, row.share, row.other) for row in found) == [(1, 12.0, 3), (3, 4.0, 1)]
