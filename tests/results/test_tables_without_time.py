"""Tables without event time beside streams and beside tables: joined on their conditions, in no window."""

from collections import Counter
from pathlib import Path

import pytest

import wjoin
from tests.tiers import tiers
from wjoin.executor.spark.once import collect_once

WITHIN = "abs(unix_micros(A.ts) - unix_micros(B.ts)) <= 6000000"

STATEMENTS = {
    "one equality": (
        "SELECT A.id, B.id, N.name FROM a A, b B, names N {} WHERE A.k = B.k AND A.k = N.k",
        "WINDOW (A, B) = 6 SECONDS",
    ),
    "all windows": (
        "SELECT * FROM a A JOIN b B USING (k) JOIN names N USING (k) {} WHERE N.name <> 'two'",
        "WINDOW = 6 SECONDS",
    ),
    "links two streams": (
        "SELECT A.id, B.id, name FROM names N, a A, b B {} WHERE N.k = A.k AND B.k = N.k",
        "WINDOW A = 6 SECONDS AND WINDOW (B, A) = 6 SECONDS",
    ),
    "two tables, one a subquery": (
        "SELECT A.id, B.id, N.name, C.class FROM a A, b B, (SELECT k, upper(name) AS name FROM names) N, "
        "classes C {} WHERE A.k = B.k AND A.k = N.k AND C.name = lower(N.name) AND A.id < B.id",
        "WINDOW = 6 SECONDS",
    ),
    "a range": (
        "SELECT A.id, B.id, C.class FROM a A, b B, classes C {} "
        "WHERE A.k = B.k AND A.id BETWEEN C.low AND C.high",
        "WINDOW (A, B) BETWEEN -6 SECONDS AND 6 SECONDS",
    ),
    "each row": (
        "SELECT A.id, B.id FROM a A, b B CROSS JOIN classes C {} WHERE A.k = B.k AND C.low > 4",
        "WINDOW = 6 SECONDS",
    ),
    "alternatives": (
        "SELECT A.id, B.id, N.name FROM a A, names N, b B {} WHERE A.k = B.k AND N.k = B.k",
        "(DWINDOW (A, B) = 6 SECONDS OR DWINDOW (B, A) = 6 SECONDS)",
    ),
    "left": (
        "SELECT A.id, B.id, N.name, MATCH_TIME() AS at FROM a A JOIN b B USING (k) "
        "LEFT JOIN names N ON A.k = N.k AND A.id < 4 AND N.name <> 'two' {} WHERE B.id <> 3",
        "WINDOW = 6 SECONDS",
    ),
    "left, by Spark alone": (
        "SELECT /*+ PLAN(NATIVE) */ A.id, B.id, N.name FROM a A JOIN b B ON A.k = B.k "
        "LEFT JOIN names N ON A.k = N.k AND A.id < 4 ANTI JOIN classes C ON C.low = B.id {} WHERE B.id <> 3",
        "WINDOW (A, B) = 6 SECONDS",
    ),
}

OUTER = ("left", "left, by Spark alone")


@pytest.fixture
def declared(session: wjoin.Session, tmp_path: Path) -> wjoin.Session:
    """Two tables with event times as files, streams of the same files, and two tables without any."""
    for place, name in enumerate("ab"):
        rows = session.range(8).selectExpr(
            "id", f"IF(id = 5, NULL, (id + {place}) % 3) AS k", f"timestamp_seconds(id * 2 + {place}) AS ts"
        )
        path = str(tmp_path / name)
        rows.coalesce(2).write.parquet(path)
        session.sql(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM parquet.`{path}`")
        session.sql(
            f"CREATE STREAM s_{name} (id BIGINT, k BIGINT, ts TIMESTAMP) USING parquet "
            f"OPTIONS (path '{path}', maxFilesPerTrigger '1') WATERMARK ts DELAY OF INTERVAL 1 HOUR"
        )
    session.sql(
        "CREATE TEMP VIEW names AS SELECT * FROM VALUES (0L, 'no'), (1L, 'one'), (2L, 'two'), "
        "(NULL, 'none'), (1L, 'uno') AS t(k, name)"
    )
    session.sql(
        "CREATE TEMP VIEW classes AS SELECT * FROM VALUES ('one', 0, 3, 'low'), ('two', 2, 6, 'mid'), "
        "('uno', 5, 9, 'high') AS t(name, low, high, class)"
    )
    return session


@pytest.mark.parametrize(
    "case",
    tiers(
        STATEMENTS,
        long=["all windows", "a range", "alternatives", *OUTER],
        thorough=STATEMENTS.keys() - {"all windows", "a range", "alternatives", *OUTER},
    ),
)
def test_the_result_is_that_of_spark(declared: wjoin.Session, case: str) -> None:
    """Over tables Spark joins them itself, the window as a condition; over streams of the same files."""
    statement, window = STATEMENTS[case]
    plain = declared.spark.sql(
        statement.format("")
        .replace("WHERE", f"WHERE {WITHIN} AND")
        .replace("MATCH_TIME()", "greatest(A.ts, B.ts)")
    )
    expected = Counter(map(tuple, plain.collect()))
    assert len(expected) > 1
    ours = declared.sql(statement.format(window))
    assert ours.columns == plain.columns
    assert Counter(map(tuple, ours.collect())) == expected
    streamed = statement.format(window).replace(" a A", " s_a A").replace(" b B", " s_b B")
    view = collect_once(declared.sql(streamed))
    assert Counter(map(tuple, declared.table(view).collect())) == expected
