"""The words of Spark that wjoin looks for in errors; without them an error gets another code."""

import logging
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, ParseException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.spark.spark_failures import (
    _JOB,
    _POSITION,
    _QUERY,
    _SPARK_CLASS,
    RAISED_BY_SPARK,
    cause,
    failure,
    first_line,
)

pytestmark = [pytest.mark.long, pytest.mark.core]


def error_of(action: Any) -> BaseException:
    with pytest.raises(RAISED_BY_SPARK) as raised:
        action()
    return raised.value


def failed(rows: DataFrame, **options: str) -> StreamingQueryException:
    query = rows.writeStream.format("noop").options(**options).trigger(availableNow=True).start()
    with pytest.raises(StreamingQueryException) as raised:
        query.awaitTermination()
    return raised.value


@pytest.fixture
def rows(session: Any, spark: SparkSession, tmp_path: Path) -> DataFrame:
    """A stream of one row; ``session`` stops its queries."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.json").write_text('{"id": 1}\n')
    return spark.readStream.schema("id BIGINT").json(str(tmp_path / "in"))


def test_a_position_in_a_text_stands_at_the_end_of_the_first_line(spark: SparkSession) -> None:
    """Rests on it: ``_plain`` (wjoin/spark/spark_failures.py) takes it away: the user has not written the
    text it is in.
    """
    line = str(error_of(lambda: spark.sql("SELECT nothing"))).splitlines()[0]
    assert _POSITION.search(line)
    assert not _POSITION.search(first_line(AnalysisException(line)))
    assert isinstance(error_of(lambda: spark.sql("SELEC 1")), ParseException)


def test_names_of_dataframes_in_a_statement_begin_with_pyspark(spark: SparkSession) -> None:
    """Rests on it: ``_INNER_NAME`` (wjoin/spark/spark_failures.py). Else users would read names that they
    have not given.
    """
    error = error_of(lambda: spark.sql("SELECT r.nothing FROM {rows} AS r JOIN {rows}", rows=spark.range(1)))
    assert "_pyspark_" not in first_line(error)
    plan = spark.sql("SELECT * FROM {rows}", rows=spark.range(1))._jdf.queryExecution().toString()
    assert "_pyspark_" in plan


def test_an_error_of_java_begins_with_a_line_of_py4j(spark: SparkSession) -> None:
    """Rests on it: ``first_line`` and ``cause`` (wjoin/spark/spark_failures.py), which leave that line out.

    A format that is not there is such an error, and none of PySpark's (wjoin/statements/streams.py).
    """
    error = error_of(lambda: spark.readStream.format("nowhere").load())
    assert isinstance(error, Py4JError)
    head, second, *_ = str(error).splitlines()
    assert head.startswith("An error occurred while calling")
    assert second.startswith(": org.apache.spark.")
    assert _SPARK_CLASS.match(second.removeprefix(": "))
    assert first_line(error).startswith("[DATA_SOURCE_NOT_FOUND]")


def test_a_failed_task_has_the_error_of_python_in_it(rows: DataFrame) -> None:
    """Rests on it: an error of a worker, such as WJ702, keeps its code on the way to the user (``_OWN`` and
    ``_PYTHON`` in wjoin/spark/spark_failures.py, executor/state/identity.py).
    """

    def refuse(batches: Any) -> Any:
        raise WJoinError("WJ702", "of another statement", help="start anew")
        yield from batches

    error = failed(rows.mapInArrow(refuse, "id BIGINT"))
    assert "error[WJ702]: of another statement" in str(error)
    told = failure(error, Span(0, 1), "x", sink="out", checkpoint="/c")
    assert (told.code, told.help) == ("WJ702", "start anew")

    def divide(batches: Any) -> Any:
        for _ in batches:
            yield 1 // 0

    error = failed(rows.mapInArrow(divide, "id BIGINT"))
    assert cause(error).startswith("ZeroDivisionError: ")


def test_a_failed_query_says_so_before_the_cause(rows: DataFrame) -> None:
    """Rests on it: ``cause`` (wjoin/spark/spark_failures.py), which unwraps query, job and Java's classes."""
    error = failed(rows.selectExpr("CAST(concat('x', id) AS INT) AS n"))
    head = str(error).strip().splitlines()[0]
    assert _QUERY.search(head), head
    assert cause(error).startswith("[CAST_INVALID_INPUT] The value 'x1'")
    assert "\n" not in cause(error)


def test_a_job_that_is_aborted_names_task_and_host_before_the_cause(spark: SparkSession) -> None:
    """Rests on it: ``_JOB`` (wjoin/spark/spark_failures.py), which takes that away."""

    def die(batches: Any) -> Any:
        os._exit(1)
        yield from batches

    error = error_of(spark.range(1).mapInArrow(die, "id BIGINT").collect)
    line = next(line for line in str(error).splitlines() if "Job aborted" in line)
    assert _JOB.search(line[line.index("Job aborted") :])
    assert "TID" not in cause(error)


def test_a_sort_of_a_stream_is_refused_as_unsupported(rows: DataFrame) -> None:
    """Rests on it: an error of analysis has the code WJ607, others WJ704 (``_REFUSED`` in
    wjoin/spark/spark_failures.py).
    """
    error = error_of(lambda: rows.orderBy("id").writeStream.format("noop").start())
    assert isinstance(error, AnalysisException)
    assert "Sorting is not supported" in first_line(error)


def test_an_aggregate_without_a_watermark_is_refused_in_known_words(rows: DataFrame) -> None:
    """Rests on it: wjoin/spark/refused.py, which then names the remedy."""
    error = error_of(lambda: rows.groupBy("id").count().writeStream.format("noop").start())
    assert "STREAMING_OUTPUT_MODE" in str(error) or "Append output mode not supported" in str(error)


def test_a_source_without_columns_asks_for_a_schema(spark: SparkSession, tmp_path: Path) -> None:
    """Rests on it: the remedy of WJ604 (wjoin/statements/streams.py)."""
    (tmp_path / "in").mkdir()
    error = error_of(lambda: spark.readStream.format("json").load(str(tmp_path / "in")))
    assert "chema must be specified" in str(error)
    error = error_of(lambda: spark.readStream.format("json").schema("id INT").load(str(tmp_path / "none")))
    assert "PATH_NOT_FOUND" in str(error)


def test_a_source_whose_folder_is_gone_speaks_of_its_base_path(rows: DataFrame, tmp_path: Path) -> None:
    """Rests on it: ``_IN_OTHER_WORDS`` (wjoin/spark/spark_failures.py)."""
    checkpoint = str(tmp_path / "checkpoint")
    writer = rows.writeStream.format("noop").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()
    # A micro-batch that is repeated reads the files that it has listed.
    shutil.rmtree(tmp_path / "checkpoint" / "commits")
    shutil.rmtree(tmp_path / "in")
    assert cause(failed(rows, checkpointLocation=checkpoint)) == "the folder of a source is missing"


def test_pyspark_logs_what_it_raises_under_a_known_name(spark: SparkSession) -> None:
    """Rests on it: wjoin/spark/process.py silences that logger; else each refused statement would
    print JSON.
    """
    asked: list[int] = []
    logger = logging.getLogger("SQLQueryContextLogger")
    # Of this one logger, until the end of the test; append() returns None, so nothing is logged.
    logger.isEnabledFor = lambda level: bool(asked.append(level))
    try:
        error_of(lambda: spark.sql("SELECT nothing"))
    finally:
        del logger.isEnabledFor
    assert asked == [logging.ERROR]
