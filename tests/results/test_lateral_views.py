"""LATERAL VIEW beside a window clause: what Spark makes of the combinations, over tables and over streams."""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import Row

import wjoin
from tests.tiers import tiers
from wjoin.executor.spark.once import collect_once

WITHIN = "abs(unix_micros(A.ts) - unix_micros(B.ts)) <= 3000000"

STATEMENTS = {
    "before": (
        "SELECT A.id, t.tag, upper(tag) FROM a A, b B LATERAL VIEW explode(A.tags) t AS tag {} "
        "WHERE A.k = B.k AND tag <> 'x1'"
    ),
    "behind": (
        "SELECT * FROM a A JOIN b B USING (k) {} LATERAL VIEW OUTER posexplode(B.tags) t AS place, tag "
        "LATERAL VIEW explode(array(A.id, t.place)) AS_NUMBER AS number WHERE A.id >= 0 AND number < A.id + 9"
    ),
    "without names": (
        "SELECT A.id, tag, * FROM a A, b B LATERAL VIEW explode(A.tags) AS tag {} "
        "LATERAL VIEW posexplode(B.tags) AS place, other WHERE A.k = B.k AND place < 2"
    ),
}


@pytest.mark.parametrize("case", tiers(STATEMENTS, long=["before", "without names"], thorough=["behind"]))
def test_the_result_is_that_of_spark(session: wjoin.Session, tmp_path: Path, case: str) -> None:
    for place, name in enumerate("ab"):
        path = str(tmp_path / name)
        tags = "IF(id = 3, array(), transform(sequence(0, id % 3), n -> concat('x', n))) AS tags"
        rows = session.range(7).selectExpr(
            "id", "id % 2 AS k", tags, f"timestamp_seconds(id * 2 + {place}) AS ts"
        )
        rows.coalesce(1).write.parquet(path)
        session.sql(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM parquet.`{path}`")
        session.sql(
            f"CREATE STREAM s_{name} (id BIGINT, k BIGINT, tags ARRAY<STRING>, ts TIMESTAMP) USING parquet "
            f"OPTIONS (path '{path}') WATERMARK ts DELAY OF INTERVAL 1 HOUR"
        )
    statement, window = STATEMENTS[case], "WINDOW (A, B) = 3 SECONDS"
    plain = session.spark.sql(statement.format("").replace("WHERE", f"WHERE {WITHIN} AND"))
    expected = Counter(map(tuple_of, plain.collect()))
    assert len(expected) > 5
    ours = session.sql(statement.format(window))
    assert ours.columns == plain.columns
    assert Counter(map(tuple_of, ours.collect())) == expected
    streamed = statement.format(window).replace(" a A", " s_a A").replace(" b B", " s_b B")
    streaming = session.sql(streamed)
    view = collect_once(streaming.toDF(*map(str, range(len(streaming.columns)))))
    assert Counter(map(tuple_of, session.table(view).collect())) == expected


def tuple_of(row: Row) -> str:
    """Return the values of a row without their names."""
    return str(tuple(row))
