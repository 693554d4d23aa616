"""A plan with several outputs: one pass makes the results of all, each gets its own."""

import dataclasses
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.plans.catalogue import plan
from wjoin.executor.spark.compile import Compiled, compile_plan
from wjoin.planner.plan.edges import with_columns
from wjoin.planner.plan.physical import Output, PhysicalPlan
from wjoin.planner.plan.probes import arranged
from wjoin.planner.windows.bounds import Windows

ROWS = [(number * 13 % 40, number, number * 7 % 5) for number in range(60)]
COLUMNS = "n BIGINT, v INT, w INT"


def between(low: int, high: int) -> tuple[Windows, ...]:
    """Return the windows in which B is from ``low`` to ``high`` after A."""
    return (Windows.of([[0, high], [-low, 0]]),)


def of_two(*, streaming: bool) -> PhysicalPlan:
    """Return a plan of two outputs: pairs with B from -1 to 2 after A, and A alone with B from 3 to 5."""
    planned = plan("SELECT A.v, B.v FROM ticks A, ticks B WINDOW = 5 WHERE A.w = B.w")
    near = dataclasses.replace(planned.output, sink="near", windows=between(-1, 2))
    later = Output("later", near.columns[:1], between(3, 5))
    scans = tuple(dataclasses.replace(each, streaming=streaming) for each in planned.physical.streams)
    both = dataclasses.replace(planned.physical, streams=scans, outputs=(near, later))
    return arranged(with_columns(both), [None for _ in both.stages])


def read(compiled: Compiled, output: Output, made: DataFrame | None = None) -> list[tuple[object, ...]]:
    """Return the values of v of all results of an output."""
    rows = compiled.rows(output, made)
    return [
        tuple(each) for each in rows.selectExpr(*(f"{name}.v AS {name}" for name in rows.columns)).collect()
    ]


def expected(columns: str, low: int, high: int) -> list[tuple[object, ...]]:
    oracle = duckdb.connect()
    oracle.execute("CREATE TABLE ticks (n BIGINT, v INT, w INT)")
    oracle.executemany("INSERT INTO ticks VALUES (?, ?, ?)", ROWS)
    join = f"FROM ticks A, ticks B WHERE A.w = B.w AND B.n - A.n BETWEEN {low} AND {high}"
    return oracle.execute(f"SELECT {columns} {join} ORDER BY ALL").fetchall()


def test_two_outputs_have_windows_and_columns_of_their_own(spark: SparkSession) -> None:
    both = of_two(streaming=False)
    near, later = both.outputs
    ticks = spark.createDataFrame(ROWS, COLUMNS)
    compiled = compile_plan(both, [ticks, ticks])
    assert sorted(read(compiled, near)) == expected("A.v, B.v", -1, 2)
    assert sorted(read(compiled, later)) == expected("A.v", 3, 5)
    assert compiled.rows(later).columns == ["A"]
    assert len(expected("A.v", 3, 5)) > 20


@pytest.mark.long
def test_one_query_writes_two_outputs_of_each_micro_batch(spark: SparkSession, tmp_path: Path) -> None:
    both = of_two(streaming=True)
    for part in (sorted(ROWS)[:30], sorted(ROWS)[30:]):
        spark.createDataFrame(part, COLUMNS).coalesce(1).write.mode("append").parquet(str(tmp_path / "ticks"))
    source = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
    compiled = compile_plan(both, [source.parquet(str(tmp_path / "ticks")) for _ in both.streams])
    found: dict[str, list[tuple[object, ...]]] = {output.sink: [] for output in both.outputs}
    numbers = []

    def write(batch: DataFrame, number: int) -> None:
        numbers.append(number)
        batch.persist()
        for output in both.outputs:
            found[output.sink] += read(compiled, output, batch)
        batch.unpersist()

    assert compiled.made is not None
    writer = compiled.made.writeStream.foreachBatch(write).option(
        "checkpointLocation", str(tmp_path / "state")
    )
    writer.trigger(availableNow=True).start().awaitTermination()
    assert len(numbers) > 1
    assert sorted(found["near"]) == expected("A.v, B.v", -1, 2)
    assert sorted(found["later"]) == expected("A.v", 3, 5)
