"""Over tables whose rows are few bytes, Spark merges tasks: not where the work is in pairs of rows."""

import numpy as np
import pytest
from pyspark.sql import functions as F

import wjoin
from wjoin.udfs.predicate import PREDICATES, Predicate

JOIN = "SELECT {} l.n AS ln, r.n AS rn FROM lefts l, rights r WINDOW = 10 SECONDS WHERE {}"


@pytest.fixture
def tables(session: wjoin.Session, monkeypatch: pytest.MonkeyPatch) -> wjoin.Session:
    """Two tables of 100 rows each, and more shuffle partitions than there are cores."""
    monkeypatch.setitem(PREDICATES, "same", Predicate("same", np.equal, cost_us=1000.0, selectivity=0.01))
    session.spark.conf.set("spark.sql.shuffle.partitions", "20")
    for name in ("lefts", "rights"):
        rows = session.range(0, 100, 1, 1).selectExpr(
            "id AS n", "id % 10 AS k", "timestamp_millis(id * 1000) AS ts"
        )
        session.stream(name, rows, "ts")
    return session


@pytest.mark.parametrize(
    ("hint", "condition", "tasks"),
    [
        ("/*+ PLAN(PSP) */", "same(l.n, r.n)", 2),
        ("/*+ PLAN(PSP, 5) */", "same(l.n, r.n)", 5),
        pytest.param("/*+ PLAN(PSP) */", "l.n + r.n = 2 * l.n", 2, marks=pytest.mark.long),
        pytest.param("", "same(l.n, r.n) AND l.k = r.k", 6, marks=pytest.mark.long),
        ("", "l.n = r.n", 1),
    ],
)
def test_work_in_pairs_is_shared_out(tables: wjoin.Session, hint: str, condition: str, tasks: int) -> None:
    found = tables.sql(JOIN.format(hint, condition))
    rows = found.select("ln", "rn", F.spark_partition_id().alias("task")).collect()
    assert sorted((row.ln, row.rn) for row in rows) == [(number, number) for number in range(100)]
    used = {row.task for row in rows}
    # A key of ten values may leave some of its tasks without a row.
    assert len(used) == tasks if condition != "same(l.n, r.n) AND l.k = r.k" else 2 < len(used) <= tasks


def test_the_setting_tells_how_many_cores_there_are(tables: wjoin.Session) -> None:
    tables.sql("SET wjoin.cores = 4")
    found = tables.sql(JOIN.format("/*+ PLAN(PSP) */", "same(l.n, r.n)"))
    assert len(found.select(F.spark_partition_id()).distinct().collect()) == 4
