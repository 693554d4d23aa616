"""The rows of the most frequent key in slices of time, those of other keys by their hash, on Spark."""

from collections import Counter
from pathlib import Path

import pytest

import wjoin
from tests.tiers import tiers

JOIN = "FROM a, b WINDOW = 2 SECONDS WHERE a.k = b.k"
INSERT = f"INSERT INTO out SELECT /*+ PLAN(SKEW) */ a.k, a.n, b.n AS m {JOIN}"
KEYS = {
    "BIGINT": "CAST(IF(id % 5 < 3, 7, id % 40) AS BIGINT)",
    "STRING": "IF(id % 5 < 3, 'hot', string(id % 40))",
}


def write(session: wjoin.Session, folder: Path, kind: str, start: int) -> None:
    """Write 400 rows over 40 s to each stream, three of five with one key."""
    for name in "ab":
        rows = session.range(start, start + 400, 1, 1)
        rows = rows.selectExpr(f"{KEYS[kind]} AS k", "id AS n", "timestamp_millis(id * 100) AS ts")
        rows.write.mode("append").parquet(str(folder / name))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", tiers(KEYS, long=set(KEYS) - {"STRING"}, thorough=["STRING"]))
def test_the_rows_of_the_most_frequent_key_are_shared_out(
    session: wjoin.Session, tmp_path: Path, kind: str
) -> None:
    session.spark.conf.set("spark.sql.shuffle.partitions", "4")
    write(session, tmp_path, kind, 0)
    for name in "ab":
        session.sql(
            f"CREATE STREAM {name} (k {kind}, n BIGINT, ts TIMESTAMP) USING parquet "
            f"OPTIONS (path '{tmp_path / name}') WATERMARK ts DELAY OF INTERVAL 1 SECOND"
        )
        session.sql(f"ANALYZE STREAM {name}")
    session.sql(f"CREATE SINK out USING parquet OPTIONS (path '{tmp_path / 'out'}')")
    session.sql(f"SET wjoin.checkpoint = {tmp_path / 'checkpoints'}")
    assert "route skew" in session.explain(f"EXPLAIN {INSERT}")
    session.run_script(INSERT)
    first = results(session, tmp_path)
    # Later files, and a start to which nothing is known of the key.
    write(session, tmp_path, kind, 400)
    for name in "ab":
        session.sql(f"ALTER STREAM {name} RESET STATISTICS")
    assert "route skew" in session.explain(f"EXPLAIN {INSERT}")
    session.run_script(INSERT)
    assert results(session, tmp_path).total() > first.total() > 0


@pytest.mark.timeout(900)
@pytest.mark.thorough
def test_a_query_that_has_begun_without_goes_on_so(session: wjoin.Session, tmp_path: Path) -> None:
    """Its checkpoint is written anew; the script tells by ANALYZE which key is the hot one."""
    partitions = "spark.sql.shuffle.partitions"
    session.spark.conf.set(partitions, "3")
    write(session, tmp_path, "STRING", 0)
    script = f"CREATE SINK out USING parquet OPTIONS (path '{tmp_path / 'out'}');"
    for name in "ab":
        script += (
            f"CREATE OR REPLACE STREAM {name} (k STRING, n BIGINT, ts TIMESTAMP) USING parquet "
            f"OPTIONS (path '{tmp_path / name}') WATERMARK ts DELAY OF INTERVAL 1 SECOND;"
        )
    old, new = (str(tmp_path / folder) for folder in ("old", "new"))
    session.run_script(script + INSERT.replace("/*+ PLAN(SKEW) */", ""), checkpoint=old)
    first = results(session, tmp_path)
    analyzed = script.replace("CREATE SINK", "CREATE OR REPLACE SINK") + "ANALYZE STREAM a; ANALYZE STREAM b;"
    fresh = wjoin.Session(session.spark)
    (moved,) = fresh.repartition(analyzed + INSERT, old, new, 5)
    assert (moved.before, moved.after) == (3, 5)
    session.spark.conf.set(partitions, "5")
    write(session, tmp_path, "STRING", 400)
    started = fresh.run_script(analyzed + INSERT, checkpoint=new)
    assert started
    assert results(session, tmp_path).total() > first.total() > 0


@pytest.mark.long
@pytest.mark.timeout(900)
def test_over_tables(session: wjoin.Session, tmp_path: Path) -> None:
    session.spark.conf.set("spark.sql.shuffle.partitions", "4")
    write(session, tmp_path, "STRING", 0)
    for name in "ab":
        session.stream(name, session.read.parquet(str(tmp_path / name)), "ts")
        session.sql(f"ANALYZE STREAM {name}")
    joined = session.sql(f"SELECT /*+ PLAN(SKEW, 3) */ a.k, a.n, b.n AS m {JOIN}")
    assert Counter(map(tuple, joined.collect())) == expected(session, tmp_path)


def results(session: wjoin.Session, folder: Path) -> Counter[tuple[object, ...]]:
    """Return what was written, which must be what Spark's own join finds."""
    written = Counter(map(tuple, session.read.parquet(str(folder / "out")).select("k", "n", "m").collect()))
    assert written == expected(session, folder)
    return written


def expected(session: wjoin.Session, folder: Path) -> Counter[tuple[object, ...]]:
    """Return what Spark's own join finds over the files as tables."""
    for name in "ab":
        session.read.parquet(str(folder / name)).createOrReplaceTempView(f"t{name}")
    found = session.spark.sql(
        "SELECT a.k, a.n, b.n AS m FROM ta AS a JOIN tb AS b ON a.k = b.k "
        "AND a.ts BETWEEN b.ts - INTERVAL 2 SECONDS AND b.ts + INTERVAL 2 SECONDS"
    )
    return Counter(map(tuple, found.collect()))
