"""Predicates that do not declare what they cost are tried on a sample before planning, once in a session."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark.errors import PySparkException

import wjoin
from wjoin.executor.spark.sample import sample
from wjoin.udfs.predicate import PREDICATES, Predicate

SELECT = "SELECT l.n AS ln, r.n AS rn FROM lefts l, rights r WINDOW = 10 SECONDS WHERE {}"


class Near:
    """A predicate that notes how many pairs it is called for in this process."""

    def __init__(self) -> None:
        self.pairs = 0
        self.__name__ = "near"

    def __call__(self, left: Any, right: Any, most: Any) -> Any:
        """Whether two numbers are near each other."""
        self.pairs += len(left)
        return abs(left - right) <= most


@pytest.fixture
def near() -> Iterator[Near]:
    """A predicate of which nothing is declared."""
    made = Near()
    with patch.dict(PREDICATES, {"near": Predicate("near", made)}):
        yield made


@pytest.fixture
def tables(session: wjoin.Session) -> wjoin.Session:
    """Two tables of about 100 rows each, numbered."""
    for first, name in enumerate(("lefts", "rights")):
        rows = session.range(first, 100, 1, 1).selectExpr("id AS n", "timestamp_millis(id * 100) AS ts")
        session.stream(name, rows, "ts")
    return session


def call(session: wjoin.Session, condition: str) -> dict[str, Any]:
    """Return what EXPLAIN tells of the call of a statement that has been made ready to run."""
    session.sql(SELECT.format(condition))
    found = session.explain(SELECT.format(condition)).documents[0]
    (each,) = found["stages"][0]["calls"]
    assert json.loads(json.dumps(each)) == each
    return dict(each)


@pytest.mark.long
def test_tables_are_sampled_and_the_figures_kept(tables: wjoin.Session, near: Near) -> None:
    first = call(tables, "near(l.n, r.n, 3)")
    assert (first["cost_us"]["source"], first["keeps"]["source"]) == ("measured", "measured")
    assert first["keeps"]["value"] == pytest.approx(7 / 64, rel=0.4)
    assert 0 < first["cost_us"]["value"] < 1000
    assert first["tried"] == "tried on 4,096 pairs of the first rows, 64 of l and 64 of r"
    tried = near.pairs
    assert tried >= 4096
    assert call(tables, "near(l.n, r.n, 3)") == first
    tables.sql(SELECT.format("near(l.n, r.n, 3)")).count()
    assert near.pairs == tried
    assert "tried on" in tables.explain(SELECT.format("near(l.n, r.n, 3)"))
    # Another condition keeps another share.
    assert call(tables, "near(l.n, r.n, 30)")["keeps"]["value"] > 3 * first["keeps"]["value"]
    assert call(tables, "NOT near(l.n, r.n, 30)")["keeps"]["value"] < 0.6


@pytest.mark.long
def test_explain_calls_no_function_and_tells_what_a_run_has_measured(
    tables: wjoin.Session, near: Near
) -> None:
    statement = SELECT.format("near(l.n, r.n, 3)")
    why = "not measured: EXPLAIN calls no function; EXPLAIN ANALYZE and the run of a query do"
    for mode in ("", "COST", "FORMATTED"):
        shown = tables.explain(f"EXPLAIN {mode} {statement}")
        assert why in shown
        assert (near.pairs, shown.documents[0]["stages"][0]["calls"][0]["keeps"]["source"]) == (0, "default")
    assert "tried on 4,096 pairs" in tables.explain(f"EXPLAIN ANALYZE {statement}")
    tried = near.pairs
    assert "tried on 4,096 pairs" in tables.explain(statement)
    assert near.pairs == tried > 0


def test_show_predicates_says_where_figures_come_from(tables: wjoin.Session, near: Near) -> None:
    def listed() -> tuple[Any, ...]:
        rows = {row["name"]: row for row in tables.sql("SHOW PREDICATES").collect()}
        own = rows["near"]
        assert (rows["same_set"]["cost_us"], rows["same_set"]["cost_source"]) == (2.0, "given")
        return own["cost_us"], own["cost_source"], own["selectivity"], own["selectivity_source"]

    assert listed() == (10.0, "default", 0.1, "default")
    found = call(tables, "near(l.n, r.n, 3)")
    figures = found["cost_us"]["value"], "measured", found["keeps"]["value"], "measured"
    assert listed() == figures


def test_what_is_declared_is_not_tried(tables: wjoin.Session, near: Near) -> None:
    with patch.dict(PREDICATES, {"near": Predicate("near", near, cost_us=5, selectivity=0.25)}):
        found = call(tables, "near(l.n, r.n, 3)")
    assert (found["cost_us"], found["tried"]) == ({"value": 5, "source": "given"}, "")
    assert near.pairs == 0


@pytest.mark.long
def test_a_table_joined_with_itself_is_not_paired_by_row(tables: wjoin.Session) -> None:
    same = Predicate("same", lambda left, right: left == right)
    text = "SELECT a.n FROM lefts a, lefts b WINDOW = 10 SECONDS WHERE same(a.n, b.n)"
    with patch.dict(PREDICATES, {"same": same}):
        tables.sql(text)
        found = tables.explain(text).documents[0]["stages"][0]["calls"][0]
    assert found["keeps"]["value"] < 1e-3
    assert found["tried"].startswith("tried on 4,032 pairs")


@pytest.mark.long
def test_a_failure_on_the_sample_is_told_and_no_other(tables: wjoin.Session) -> None:
    """Rows that fail in the sample may be none of the join's: it says so when it meets them."""

    def brittle(left: Any, right: Any) -> Any:
        if (left == 7).any():
            raise ArithmeticError("seven\nof all")
        return left == right

    with patch.dict(PREDICATES, {"brittle": Predicate("brittle", brittle)}):
        found = call(tables, "brittle(l.n, r.n)")
        assert found["tried"] == "not measured: a call for sampled rows failed: ArithmeticError: seven of all"
        assert (found["cost_us"]["source"], found["cost_us"]["value"]) == ("default", 10.0)
        assert "not measured" in tables.explain(SELECT.format("brittle(l.n, r.n)"))
        rows = tables.sql(SELECT.format("brittle(l.n, r.n) AND l.n > 20")).collect()
        assert len(rows) == 79
        with pytest.raises(PySparkException, match="WJ706"):
            tables.sql(SELECT.format("brittle(l.n, r.n)")).collect()


def test_without_rows_nothing_is_measured(tables: wjoin.Session, near: Near) -> None:
    none = tables.range(0).selectExpr("id AS n", "timestamp_millis(id) AS ts")
    tables.stream("lefts", none, "ts")
    assert call(tables, "near(l.n, r.n, 3)")["tried"] == "not measured: no rows to try it on"


@pytest.mark.long
def test_files_of_a_stream_are_read_as_a_table(session: wjoin.Session, near: Near, tmp_path: Path) -> None:
    for name in ("lefts", "rights"):
        rows = session.range(0, 100, 1, 1).selectExpr("id AS n", "timestamp_millis(id * 100) AS ts")
        rows.write.json(str(tmp_path / name))
        session.sql(
            f"CREATE STREAM {name} (n BIGINT, ts TIMESTAMP, x AS n + 1) USING json "
            f"OPTIONS (path '{tmp_path / name}', maxFilesPerTrigger 1) "
            "WATERMARK ts DELAY OF INTERVAL 1 SECOND"
        )
    found = call(session, "near(l.x, r.n, 3)")
    assert found["keeps"]["source"] == found["cost_us"]["source"] == "measured"
    assert found["tried"] == "tried on 4,096 pairs of the first rows, 64 of l and 64 of r"


def test_what_only_streams_is_taken_for_the_usual(session: wjoin.Session, near: Near) -> None:
    for name in ("lefts", "rights"):
        frame = session.spark.readStream.format("rate").load().selectExpr("value AS n", "timestamp AS ts")
        session.stream(name, frame, "ts", "1 second")
    found = call(session, "near(l.n, r.n, 3)")
    assert (found["cost_us"]["source"], near.pairs) == ("default", 0)
    assert found["tried"] == "not measured: the rows of l exist only while the query runs"


@pytest.mark.long
def test_rows_that_take_long_are_given_up(session: wjoin.Session) -> None:
    """A hundred billion numbers are added up for longer than a second."""
    slow = session.range(100_000_000_000).selectExpr("sum(hash(id, id + 1)) AS n")
    start = time.monotonic()
    with pytest.raises(TimeoutError, match="longer than 1 s"):
        sample(slow, ["n"], seconds=1.0)
    assert time.monotonic() - start < 20
    assert sample(session.range(3).toDF("n"), ["n"])["n"].to_pylist() == [0, 1, 2]
