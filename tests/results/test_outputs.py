"""A plan with several outputs: one pass makes the results of all, each gets its own."""

import dataclasses

import duckdb
from pyspark.sql import SparkSession

from tests.plans.catalogue import plan
from wjoin.executor.spark.compile import compile_plan
from wjoin.planner.plan.edges import with_columns
from wjoin.planner.plan.physical import Output
from wjoin.planner.plan.probes import arranged
from wjoin.planner.windows.bounds import Windows

ROWS = [(number * 13 % 40, number, number * 7 % 5) for number in range(60)]


def between(low: int, high: int) -> tuple[Windows, ...]:
    """Return the windows in which B is from ``low`` to ``high`` after A."""
    return (Windows.of([[0, high], [-low, 0]]),)


def test_two_outputs_have_windows_and_columns_of_their_own(spark: SparkSession) -> None:
    of_one = plan("SELECT A.v, B.v FROM ticks A, ticks B WINDOW = 5 WHERE A.w = B.w")
    planned, own = of_one.physical, of_one.output
    near = dataclasses.replace(own, sink="near", windows=between(-1, 2))
    later = Output("later", own.columns[:1], between(3, 5))
    tables = tuple(dataclasses.replace(each, streaming=False) for each in planned.streams)
    both = dataclasses.replace(planned, streams=tables, outputs=(near, later))
    both = arranged(with_columns(both), [None for _ in planned.stages])
    ticks = spark.createDataFrame(ROWS, "n BIGINT, v INT, w INT")
    found = compile_plan(both, [ticks, ticks])
    assert found.keys() == {"near", "later"}
    oracle = duckdb.connect()
    oracle.execute("CREATE TABLE ticks (n BIGINT, v INT, w INT)")
    oracle.executemany("INSERT INTO ticks VALUES (?, ?, ?)", ROWS)
    join = "FROM ticks A, ticks B WHERE A.w = B.w AND B.n - A.n BETWEEN"
    expected = oracle.execute(f"SELECT A.v, B.v {join} -1 AND 2 ORDER BY ALL").fetchall()
    rows = [tuple(row) for row in found["near"].selectExpr("A.v", "B.v AS other").collect()]
    assert sorted(rows) == expected
    expected = oracle.execute(f"SELECT A.v {join} 3 AND 5 ORDER BY ALL").fetchall()
    assert sorted(tuple(row) for row in found["later"].selectExpr("A.v").collect()) == expected
    assert found["later"].columns == ["A"]
    assert len(expected) > 20
