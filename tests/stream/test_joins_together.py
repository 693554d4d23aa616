"""The joins of a set that run in the same tasks: what they read of one stream is read once."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import wjoin
from tests.stream.joined import Streams, set_of
from tests.stream.test_alter_sets import settled

SEED = 11
DELAY = 1000


@pytest.fixture
def streams(streams: Streams) -> Streams:
    streams.session.context.settings.set("wjoin.state", "files")
    return streams


def executed(session: wjoin.Session) -> str:
    """Return the plan of the last micro-batch as Spark has run it."""
    query: Any = session.running[-1].query
    return str(query._jsq.streamingQuery().lastExecution().executedPlan().toString())


def assert_as_duckdb(streams: Streams, meant: dict[str, str]) -> None:
    for name, query in meant.items():
        assert streams.found(name) == streams.expected(query), name
        assert streams.found(name).total() > 5, name


OTHER_KEYS = {
    "by_k": (
        "SELECT A.n AS a, B.s FROM one A, two B WINDOW (A, B) BETWEEN 0 AND 4 WHERE A.k = B.k AND A.v > 2",
        "SELECT A.n, B.s FROM one A, two B WHERE B.n - A.n BETWEEN 0 AND 4 AND A.k = B.k AND A.v > 2",
    ),
    # On the rows that the filter removes the condition beside it fails.
    "by_j": (
        """SELECT Y.n AS a, X.v FROM two X, one Y WINDOW (X, Y) BETWEEN -3 AND 3
           WHERE X.j = Y.j AND Y.k <> 0 AND 12 / Y.k > 3.5 AND Y.s <> 'y'""",
        """SELECT Y.n, X.v FROM two X, one Y WHERE Y.n - X.n BETWEEN -3 AND 3
           AND X.j = Y.j AND Y.k <> 0 AND 12 / Y.k > 3.5 AND Y.s <> 'y'""",
    ),
    # It has its first stream twice.
    "itself": (
        """SELECT A.n AS a, B.n AS b FROM one A, one B WINDOW (A, B) BETWEEN 1 AND 5
           WHERE A.s = B.s AND A.v < B.v""",
        "SELECT A.n, B.n FROM one A, one B WHERE B.n - A.n BETWEEN 1 AND 5 AND A.s = B.s AND A.v < B.v",
    ),
    "by_pairs": (
        "SELECT A.n AS a, B.n AS b FROM one A, two B WINDOW (A, B) BETWEEN 0 AND 2 WHERE abs(A.v - B.v) <= 1",
        "SELECT A.n, B.n FROM one A, two B WHERE B.n - A.n BETWEEN 0 AND 2 AND abs(A.v - B.v) <= 1",
    ),
}
"""Statements over two streams that share no join: for wjoin and for DuckDB."""


def inserts(statements: dict[str, tuple[str, str]]) -> list[str]:
    return [f"INSERT INTO {name} {own}" for name, (own, _) in statements.items()]


def meant(statements: dict[str, tuple[str, str]]) -> dict[str, str]:
    return {name: query for name, (_, query) in statements.items()}


@pytest.mark.long
def test_joins_with_other_keys_read_a_stream_once_and_shuffle_once(streams: Streams) -> None:
    streams.sinks(list(OTHER_KEYS))
    streams.arrive(3)
    explained = str(streams.session.explain(set_of(inserts(OTHER_KEYS))))
    assert "4 statements, 4 window joins, one query" in explained
    assert "run in the same tasks, if their state is in files; read once for several: one, two" in explained
    streams.run(inserts(OTHER_KEYS))
    plan = executed(streams.session)
    assert plan.count("FileScan") == 2
    assert plan.count("Exchange") == 1
    assert_as_duckdb(streams, meant(OTHER_KEYS))
    streams.arrive(2)
    streams.run(inserts(OTHER_KEYS))
    assert_as_duckdb(streams, meant(OTHER_KEYS))
    (running,) = [each for each in streams.session.running if each.sink == ", ".join(OTHER_KEYS)][-1:]
    # Each join has counts of its own.
    assert len(running.planned) == 4


IN_STAGES = {
    "two_stages": (
        """SELECT A.n AS a, B.n AS b, C.s FROM one A, two B, three C
           WINDOW (A, B) BETWEEN 0 AND 4 AND WINDOW (B, C) BETWEEN -2 AND 2 WHERE A.k = B.k AND B.j = C.j""",
        """SELECT A.n, B.n, C.s FROM one A, two B, three C WHERE B.n - A.n BETWEEN 0 AND 4
           AND C.n - B.n BETWEEN -2 AND 2 AND A.k = B.k AND B.j = C.j""",
    ),
    "other_stages": (
        """SELECT A.n AS a, B.n AS b, C.s FROM three A, one B, two C
           WINDOW (A, B) BETWEEN -1 AND 4 AND WINDOW (B, C) BETWEEN -2 AND 0 WHERE A.j = B.j AND B.s = C.s""",
        """SELECT A.n, B.n, C.s FROM three A, one B, two C WHERE B.n - A.n BETWEEN -1 AND 4
           AND C.n - B.n BETWEEN -2 AND 0 AND A.j = B.j AND B.s = C.s""",
    ),
    "one_stage": OTHER_KEYS["by_k"],
    # It goes to its partners in hops.
    "hops": (
        """SELECT /*+ PLAN(PSP) */ A.n AS a, B.n AS b, C.n AS c FROM one A, two B, three C
           WINDOW (A, B) BETWEEN 0 AND 3 AND WINDOW (B, C) BETWEEN 0 AND 3
           WHERE abs(A.v - B.v) <= 1 AND abs(B.v - C.v) <= 1""",
        """SELECT A.n, B.n, C.n FROM one A, two B, three C
           WHERE B.n - A.n BETWEEN 0 AND 3 AND C.n - B.n BETWEEN 0 AND 3
           AND abs(A.v - B.v) <= 1 AND abs(B.v - C.v) <= 1""",
    ),
}


@pytest.mark.parametrize(
    "names", [list(IN_STAGES), ["two_stages", "other_stages"], ["hops", "one_stage"]], ids=len
)
@pytest.mark.long
def test_joins_in_several_stages_run_with_others(streams: Streams, names: Sequence[str]) -> None:
    chosen = {name: IN_STAGES[name] for name in names}
    streams.sinks(list(chosen))
    for _ in range(2):
        streams.arrive(2)
        streams.run(inserts(chosen))
        assert_as_duckdb(streams, meant(chosen))


OF_TYPES = {
    "id BIGINT": "id",
    "k INT": "CAST(id % 3 AS INT)",
    "d DECIMAL(20, 4)": "CAST(id / 7 AS DECIMAL(20, 4))",
    "a ARRAY<INT>": "array(CAST(id AS INT), NULL)",
    "r STRUCT<x: INT, y: STRING>": "named_struct('x', CAST(id AS INT), 'y', CAST(id AS STRING))",
    "m MAP<STRING, INT>": "map('m', CAST(id AS INT))",
    "day DATE": "DATE '2026-01-01' + CAST(id AS INT)",
    "ts TIMESTAMP": "timestamp_seconds(id)",
    "local TIMESTAMP_NTZ": "CAST(timestamp_seconds(id) AS TIMESTAMP_NTZ)",
    "span INTERVAL YEAR TO MONTH": "make_ym_interval(1, CAST(id % 12 AS INT))",
    "took INTERVAL DAY TO SECOND": "make_dt_interval(0, 0, 0, id)",
    "c STRING": "CASE WHEN id % 4 > 0 THEN CAST(id AS STRING) END",
    "f DOUBLE": "CASE id % 5 WHEN 0 THEN DOUBLE('NaN') WHEN 1 THEN DOUBLE('Infinity') ELSE id / 3 END",
    "b BINARY": "CAST(CAST(id AS STRING) AS BINARY)",
    "yes BOOLEAN": "id % 2 = 0",
}
"""Columns of many types, and their values."""

AS_TEXT = "to_json(struct(*)) AS row"
"""PySpark has no value for an interval of years and months."""


@pytest.mark.long
def test_values_of_every_type_come_through(session: wjoin.Session, tmp_path: Path) -> None:
    """The columns of a join stand beside those of others, which are NULL in its rows."""
    session.context.settings.set("wjoin.state", "files")
    spark = session.spark
    values = (f"{value} AS {column.split()[0]}" for column, value in OF_TYPES.items())
    rows = spark.range(60).selectExpr(*values).coalesce(1)
    for name in ("lefts", "rights"):
        rows.write.parquet(str(tmp_path / name))
        session.sql(
            f"""CREATE STREAM {name} ({", ".join(OF_TYPES)}, WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS)
                USING parquet OPTIONS (path '{tmp_path / name}')"""
        )
    statements = {
        "all_of_left": "SELECT A.* FROM lefts A, rights B WINDOW (A, B) = 2 SECONDS WHERE A.k = B.k",
        "all_of_right": """SELECT B.* FROM lefts A, rights B WINDOW (A, B) = 3 SECONDS
            WHERE A.yes = B.yes AND A.d > 2""",
        "some": """SELECT A.m, B.span, A.took, A.ts FROM lefts A, rights B WINDOW (A, B) = 1 SECOND
            WHERE A.day = B.day""",
    }
    written = {}
    for together in (True, False):
        for name in statements:
            path = tmp_path / f"{name}_{together}"
            session.sql(f"CREATE OR REPLACE SINK {name} USING parquet OPTIONS (path '{path}')")
        texts = [f"INSERT INTO {name} {text}" for name, text in statements.items()]
        script = set_of(texts) if together else "; ".join(texts)
        session.run_script(script, checkpoint=str(tmp_path / f"checkpoints_{together}"))
        found = {name: spark.read.parquet(str(tmp_path / f"{name}_{together}")) for name in statements}
        written[together] = {
            name: Counter(map(str, rows.selectExpr(AS_TEXT).collect())) for name, rows in found.items()
        }
    assert written[True] == written[False]
    assert all(rows.total() > 20 for rows in written[True].values())


NARROW_THEN_WIDE = {
    "early": (
        "SELECT A.n AS a, B.n AS b, C.n AS c FROM one A, two B, three C "
        "WINDOW (A, B) = 1 AND WINDOW (B, C) = 40 WHERE A.k = B.k AND B.k = C.k",
        "SELECT A.n, B.n, C.n FROM one A, two B, three C "
        "WHERE abs(A.n - B.n) <= 1 AND abs(B.n - C.n) <= 40 AND A.k = B.k AND B.k = C.k",
    ),
    "late": (
        "SELECT A.n AS a, B.n AS b, C.n AS c FROM one A, two B, three C "
        "WINDOW (A, B) = 40 AND WINDOW (B, C) = 1 WHERE A.k = B.k AND B.k = C.k",
        "SELECT A.n, B.n, C.n FROM one A, two B, three C "
        "WHERE abs(A.n - B.n) <= 40 AND abs(B.n - C.n) <= 1 AND A.k = B.k AND B.k = C.k",
    ),
}
"""What lies inside the windows of both together is far more than what either wants."""

NARROWER = (
    "SELECT A.n AS a, B.n AS b, C.n AS c FROM one A, two B, three C "
    "WINDOW (A, B) = 30 AND WINDOW (B, C) = 1 WHERE A.k = B.k AND B.k = C.k",
    "SELECT A.n, B.n, C.n FROM one A, two B, three C "
    "WHERE abs(A.n - B.n) <= 30 AND abs(B.n - C.n) <= 1 AND A.k = B.k AND B.k = C.k",
)


@pytest.mark.long
def test_statements_with_windows_unlike_each_other_have_a_probe_each(streams: Streams) -> None:
    """Also once the set has changed; the state is one."""
    streams.sinks([*NARROW_THEN_WIDE, "narrower"])
    streams.arrive(2)
    for name in streams.names:
        streams.session.sql(f"ALTER STREAM {name} SET STATISTICS (rate = 1000, distinct.k = 10)")
    text = set_of(inserts(NARROW_THEN_WIDE), "unlike")
    assert "a pass over the state for each alternative" in str(streams.session.explain(text))
    checkpoint = str(streams.root / "checkpoints")
    streams.session.run_script(text, once=False, checkpoint=checkpoint)
    settled(streams)
    assert_as_duckdb(streams, meant(NARROW_THEN_WIDE))
    with pytest.warns(wjoin.WJoinWarning, match="WJ821"):
        streams.session.sql(f"ALTER STATEMENT SET unlike ADD INSERT INTO narrower {NARROWER[0]} WITH HISTORY")
    (running,) = [each for each in streams.session.running if each.query.isActive]
    assert running.planned[0].physical.apart
    streams.arrive(1)
    settled(streams)
    assert_as_duckdb(streams, {**meant(NARROW_THEN_WIDE), "narrower": NARROWER[1]})
    streams.session.sql("ALTER STATEMENT SET unlike DROP early")
    gone = streams.expected(NARROW_THEN_WIDE["early"][1])
    streams.arrive(1)
    settled(streams)
    assert streams.found("early") == gone
    assert_as_duckdb(streams, {"late": NARROW_THEN_WIDE["late"][1], "narrower": NARROWER[1]})


@pytest.mark.long
def test_joins_whose_state_spark_has_run_by_themselves(streams: Streams) -> None:
    streams.session.context.settings.set("wjoin.state", "spark")
    chosen = {name: OTHER_KEYS[name] for name in ("by_k", "by_j")}
    streams.sinks(list(chosen))
    streams.arrive(2)
    streams.run(inserts(chosen))
    assert executed(streams.session).count("FileScan") == 4
    assert_as_duckdb(streams, meant(chosen))


@pytest.mark.long
def test_state_that_moves_into_files_goes_on_with_the_sources_that_the_checkpoint_knows(
    streams: Streams,
) -> None:
    session, chosen = streams.session, {name: OTHER_KEYS[name] for name in ("by_k", "by_j")}
    streams.sinks(list(chosen))
    old, new = (str(streams.root / each) for each in ("checkpoints", "moved"))
    session.context.settings.set("wjoin.state", "spark")
    streams.arrive(2)
    session.run_script(set_of(inserts(chosen)), checkpoint=old)
    session.context.settings.set("wjoin.state", "files")
    session.repartition(set_of(inserts(chosen)), old, new, 2)
    streams.arrive(2)
    session.run_script(set_of(inserts(chosen)), checkpoint=new)
    assert executed(session).count("FileScan") == 4
    assert_as_duckdb(streams, meant(chosen))


@pytest.mark.long
def test_joins_that_read_together_do_not_move_into_sparks_store(streams: Streams) -> None:
    session, chosen = streams.session, {name: OTHER_KEYS[name] for name in ("by_k", "by_j")}
    streams.sinks(list(chosen))
    streams.arrive(1)
    streams.run(inserts(chosen))
    session.context.settings.set("wjoin.state", "spark")
    old, new = (str(streams.root / each) for each in ("checkpoints", "moved"))
    with pytest.raises(wjoin.WJoinError, match="read their streams together") as refused:
        session.repartition(set_of(inserts(chosen)), old, new, 2)
    assert refused.value.code == "WJ711"
