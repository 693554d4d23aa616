"""The route of a join without a key: chosen by cost at the first start, and the same ever after."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

import wjoin
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.plain import typed
from wjoin.planner.choose.layouts import Layout
from wjoin.udfs.built_in import known_predicates

pytestmark = pytest.mark.thorough

SELECT = "SELECT a.n AS an, b.n AS bn FROM {} a, {} b WINDOW = 1 SECOND WHERE close_by(a.x, b.x)"
INSERT = f"INSERT INTO out {SELECT.format('a', 'b')}"


@wjoin.predicate(cost_us=20_000, selectivity=0.1)
def close_by(left: Any, right: Any) -> Any:
    """Return which numbers are near each other, and claim to take long for it."""
    return abs(left - right) < 3


@pytest.fixture
def streams(session: wjoin.Session, tmp_path: Path) -> wjoin.Session:
    """Two streams of ten rows a second, over 20 s."""
    write(session, tmp_path, 0)
    for name in "ab":
        session.sql(
            f"CREATE STREAM {name} (n BIGINT, x BIGINT, ts TIMESTAMP) USING parquet "
            f"OPTIONS (path '{tmp_path / name}') WATERMARK ts DELAY OF INTERVAL 1 SECOND"
        )
        session.sql(f"ALTER STREAM {name} SET STATISTICS (rate = 10)")
    session.sql(f"CREATE SINK out USING parquet OPTIONS (path '{tmp_path / 'out'}')")
    session.sql(f"SET wjoin.checkpoint = {tmp_path / 'checkpoints'}")
    session.sql("SET wjoin.cores = 2")
    return session


def write(session: wjoin.Session, folder: Path, start: int) -> None:
    for seed, name in enumerate("ab"):
        rows = session.range(start, start + 200, 1, 1)
        rows = rows.selectExpr(
            "id AS n", f"pmod(hash(id, {seed}), 100) AS x", "timestamp_millis(id * 100) AS ts"
        )
        rows.write.mode("append").parquet(str(folder / name))


def kept(folder: Path) -> list[Layout]:
    (found,) = (folder / "checkpoints" / "out" / "wjoin" / "layouts").glob("*/*.txt")
    return [typed(Layout, each) for each in json.loads(found.read_text())["value"]]


def results_are_right(session: wjoin.Session, folder: Path) -> None:
    """Compare what was written with what DuckDB finds over the files."""
    files = {name: f"'{folder / name}/*.parquet'" for name in "ab"}
    expected = Counter(
        duckdb.sql(
            f"SELECT a.n, b.n FROM {files['a']} a, {files['b']} b "
            "WHERE abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 1000000 AND abs(a.x - b.x) < 3"
        ).fetchall()
    )
    written = Counter(map(tuple, session.read.parquet(str(folder / "out")).select("an", "bn").collect()))
    assert written == expected
    assert written


@pytest.mark.long
def test_the_first_start_chooses_and_later_ones_stay_with_it(streams: wjoin.Session, tmp_path: Path) -> None:
    assert "close_by" in known_predicates()
    assert "route single" in streams.explain(SELECT.format("a", "b"))
    assert "needs a new checkpoint" in streams.explain(f"EXPLAIN COST {SELECT.format('a', 'b')}")
    shown = streams.explain(f"EXPLAIN {INSERT}")
    assert "assigned to 2 workers round-robin" in shown
    streams.run_script(INSERT)
    (layout,) = kept(tmp_path)
    assert layout.stages == "$0 [] x $1 []"
    (placement,) = layout.placements
    assert placement is not None
    assert placement.route in ("psp", "atr")
    assert placement.workers == 2

    # On one core, or with few rows, nobody would share the work.
    streams.sql("SET wjoin.cores = 1")
    for name in "ab":
        streams.sql(f"ALTER STREAM {name} SET STATISTICS (rate = 0.001)")
    assert "assigned to 2 workers round-robin" in streams.explain(f"EXPLAIN {INSERT}")
    write(streams, tmp_path, 200)
    streams.run_script(INSERT)
    assert kept(tmp_path) == [layout]
    results_are_right(streams, tmp_path)


def test_a_checkpoint_of_one_worker_stays_there(streams: wjoin.Session, tmp_path: Path) -> None:
    streams.sql("SET wjoin.cores = 1")
    streams.run_script(INSERT)
    assert kept(tmp_path) == [Layout("$0 [] x $1 []", (None,))]
    streams.sql("SET wjoin.cores = 2")
    assert "route single" in streams.explain(f"EXPLAIN {INSERT}")
    write(streams, tmp_path, 200)
    streams.run_script(INSERT)
    results_are_right(streams, tmp_path)
    with pytest.raises(WJoinError, match="WJ702"):
        streams.run_script(INSERT.replace("SELECT", "SELECT /*+ PLAN(PSP) */"))
