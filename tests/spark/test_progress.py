"""What wjoin takes for granted of Spark's reports about running queries, and of what they observe."""

import datetime
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from wjoin.executor.spark.meter import Meter
from wjoin.progress import read

pytestmark = [pytest.mark.long, pytest.mark.core]


@pytest.fixture(scope="module")
def query(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamingQuery]:
    """A query without a state, that has worked off one micro-batch of 3 rows and now waits."""
    folder = tmp_path_factory.mktemp("rows")
    (folder / "0.json").write_text("".join(json.dumps({"id": number}) + "\n" for number in range(3)))
    rows = spark.readStream.schema("id BIGINT").json(str(folder))
    names = ("late:A", "seen:A", "matches", "comparisons")
    values = "aggregate(ids, 0L, (sum, id) -> sum + id), array_max(filter(ids, id -> id > 9)), size(ids), 3L"
    counts = f"transform(array(collect_list(id)), ids -> map_from_arrays(array{names}, array({values})))[0]"
    observed = rows.observe("wjoin:7:0", F.expr(f"{counts} AS counts"))
    query = observed.writeStream.format("noop").queryName("three_rows").start()
    query.processAllAvailable()
    deadline = time.monotonic() + 60
    while "addBatch" in reports(query)[-1]["durationMs"]:
        assert time.monotonic() < deadline, "an idle query reports so"
        time.sleep(0.2)
    yield query
    query.stop()


def reports(query: StreamingQuery) -> list[Any]:
    return list(query.recentProgress)


def test_a_report_has_the_fields_that_progress_reads(query: StreamingQuery) -> None:
    """Rests on it: progress.py, recorder.py and dropped.py of wjoin/measured/"""
    report = reports(query)[0]
    body = json.loads(report.json)
    assert (body["name"], body["batchId"], body["numInputRows"]) == ("three_rows", 0, 3)
    assert report["batchId"] == 0
    assert report["numInputRows"] == 3
    assert list(report["stateOperators"]) == []
    assert body["batchDuration"] >= body["durationMs"]["addBatch"] > 0
    assert body["durationMs"]["triggerExecution"] > 0
    started = datetime.datetime.fromisoformat(body["timestamp"])
    assert started.tzinfo is not None
    assert abs(datetime.datetime.now(datetime.UTC) - started) < datetime.timedelta(minutes=10)


def test_an_observed_metric_can_be_a_map_that_is_folded_from_a_list(query: StreamingQuery) -> None:
    """Rests on it: executor/spark/observe.py and ``observations`` (wjoin/measured/progress.py).

    All counts of a running join, its late rows among them, go this way, as one aggregate: Spark lets a
    list be collected there, and functions be applied to it. Its JSON has the map by the same names.
    """
    (name, row), *others = reports(query)[0]["observedMetrics"].items()
    assert (name, others) == ("wjoin:7:0", [])
    counts = {"late:A": 3, "seen:A": None, "matches": 3, "comparisons": 3}
    assert row.asDict() == {"counts": counts}
    assert json.loads(reports(query)[0].json)["observedMetrics"] == {"wjoin:7:0": {"counts": counts}}


def test_a_report_of_an_idle_query_has_no_added_batch_and_the_number_of_the_next(
    query: StreamingQuery,
) -> None:
    """Rests on it: ``Progress.idle``. Else ``wjoin run`` would count a micro-batch whenever nothing happens,
    and wjoin/measured/dropped_rows.py would take the next micro-batch for one that it has seen.
    """
    idle = reports(query)[-1]
    assert idle["batchId"] == 1
    assert idle["numInputRows"] == 0
    assert "addBatch" not in json.loads(idle.json)["durationMs"]
    assert read(idle).idle
    assert not read(reports(query)[0]).idle


def test_the_last_report_and_the_status_of_a_query(query: StreamingQuery) -> None:
    """Rests on it: wjoin/measured/ (lastProgress), wjoin/commands/live.py (status)."""
    assert query.lastProgress["batchId"] == reports(query)[-1]["batchId"]
    assert query.status["isDataAvailable"] is False
    assert query.status["isTriggerActive"] in (True, False)
    assert query.exception() is None
    assert query.awaitTermination(1) is False


def test_the_running_queries_are_those_of_one_session(query: StreamingQuery, spark: SparkSession) -> None:
    """Rests on it: wjoin/measured/dropped_rows.py has a thread a session; else it would tell rows twice."""
    assert [each.runId for each in spark.streams.active] == [query.runId]
    assert spark.newSession().streams.active == []


def test_spark_remembers_the_last_hundred_reports(spark: SparkSession) -> None:
    """Rests on it: wjoin/measured/dropped_rows.py reads all of them every 10 s, so that of short
    micro-batches none is missed.
    """
    default = spark._jvm.org.apache.spark.sql.internal.SQLConf()
    assert default.getConfString("spark.sql.streaming.numRecentProgressUpdates") == "100"


def test_an_optimized_part_observes_nothing(spark: SparkSession) -> None:
    """Java says so by an error, Spark 4.0 never does: EXPLAIN ANALYZE of ``… LIMIT 0`` must not wait."""
    meter = Meter()
    kept = meter.watch("kept", spark.range(3), ["count(1) AS rows"])
    rows = kept.union(meter.watch("none", spark.range(3), ["count(1) AS rows"]).limit(0))
    rows.write.format("noop").mode("overwrite").save()
    assert meter.counts(rows) == {"kept": {"rows": 3}}
