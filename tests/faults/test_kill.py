"""Nothing lost and nothing twice when processes are killed at random moments of a running query."""

import random
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.faults.child import MORE
from tests.faults.killing import (
    Kills,
    assert_more,
    assert_part,
    assert_results,
    committed,
    finish,
    kill_after_progress,
    start,
    write_streams,
)
from tests.tiers import tiers
from wjoin.parts.routes.registry import ROUTES
from wjoin.planner.choose.choice import PLANS

pytestmark = pytest.mark.thorough

SLICED = [name for name, route in ROUTES.items() if route.slices and not route.values]

BY_ROWS = "set by rows"
"""Sets whose results rows of a stream commit."""

KINDS: dict[str, tuple[str, ...]] = {
    "plain": (),
    "in Spark's store": ("state=spark",),
    # Python workers that talk to Spark as they do before Spark 4.1.
    "tcp": ("spark.python.unix.domain.socket.enabled=false",),
    # Every worker joins its few rows in many stretches, and spills what waits.
    "spilling": ("wjoin.stretch=4096",),
    # The same results without a key, on several workers that share the state.
    **{parts["ROUTE"]: (f"plan={word}",) for word, parts in PLANS.items() if parts.get("ROUTE") in SLICED},
    # Three sinks, two of which share a join.
    "set": ("set=near+pairs",),
    "set that keeps": ("set=near+pairs", "clauses=RETAIN 1 DAY"),
    # Its last file has the row that commits the last results.
    BY_ROWS: ("set=near+pairs", "clauses=RETAIN 1 DAY COMMIT WHEN camera1 (row_id % 600 = 0)"),
    # The state keeps all rows, so that the history has all results, however late the statement is added.
    "set with history": ("set=pairs", "added=near", "clauses=COMMIT EVERY 5 SECONDS", "delay=600"),
    "set with an outer join": ("set=alone",),
    "set with an outer join in Spark's store": ("set=alone", "state=spark"),
    "set with several outer joins": ("set=between",),
    "set with several outer joins in Spark's store": ("set=between", "state=spark"),
    "set with an ASOF join": ("set=nearest",),
    "set with an ASOF join in Spark's store": ("set=nearest", "state=spark"),
    # In hops, and in one with a stage that puts results together.
    "hops": ("plan=PSP", "form=hops "),
    "at once": ("plan=PSP", "form=at once "),
}
"""Settings under which nothing may be lost or doubled either."""


def assert_exactly_once(spark: SparkSession, root: Path, kind: str) -> None:
    assert_results(root, committed(spark, root, "tracked"))
    for sink in others(kind):
        assert_more(root, sink, committed(spark, root, sink))


def others(kind: str) -> list[str]:
    """Return the other sinks that a kind writes."""
    return [sink for sink in MORE if any(sink in each.partition("=")[2].split("+") for each in KINDS[kind])]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", tiers(KINDS, long=["plain"], sparks=["plain"]))
def test_driver_killed_at_random_moments(tmp_path: Path, spark: SparkSession, kills: int, kind: str) -> None:
    files = 4 * kills + 8
    # After a kill Spark may read a file earlier than those of the other streams: then the row that commits
    # comes before the last results. Of the last two files all streams have read as many.
    together = files - 2 if kind == BY_ROWS else files
    write_streams(tmp_path, files, only=range(together))
    chance, met = random.Random(time.time_ns()), Kills()
    while met.done < kills:
        kill_after_progress(tmp_path, start(tmp_path, None, *KINDS[kind]), chance, met)
    finish(tmp_path, start(tmp_path, None, *KINDS[kind]))
    if together < files:
        write_streams(tmp_path, files, only=range(together, files))
        finish(tmp_path, start(tmp_path, None, *KINDS[kind]))
    print(f"{met.done} kills, {met.inside} inside a micro-batch")
    assert_exactly_once(spark, tmp_path, kind)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("state", ["files", "spark"])
def test_driver_killed_while_statements_come_and_go(
    tmp_path: Path, spark: SparkSession, kills: int, state: str
) -> None:
    write_streams(tmp_path, 4 * kills + 8)
    chance, met, statements = random.Random(time.time_ns()), Kills(), "near+pairs"
    while met.done < kills:
        child = start(tmp_path, None, f"state={state}", f"set={statements}")
        kill_after_progress(tmp_path, child, chance, met)
        statements = chance.choice(["near", "pairs", "near+pairs"])
    finish(tmp_path, start(tmp_path, None, f"state={state}", "set=near+pairs"))
    print(f"{met.done} kills, {met.inside} inside a micro-batch")
    assert_results(tmp_path, committed(spark, tmp_path, "tracked"))
    for sink in ("near", "pairs"):
        assert_part(tmp_path, sink, committed(spark, tmp_path, sink))


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("kind", "place"),
    [
        *((kind, place) for kind in KINDS for place in ("state-read", "before-state-write")),
        *(("plain", place) for place in ("slice-written", "before-manifest", "manifest-written")),
    ],
)
def test_python_workers_killed_and_their_tasks_retried(
    tmp_path: Path, spark: SparkSession, kind: str, place: str
) -> None:
    write_streams(tmp_path, 8)
    # Two tasks of each of eight micro-batches: in all but one run of thousands some worker is killed.
    # A task writes several slices.
    chance = 0.15 if place == "slice-written" else 0.4
    child = start(tmp_path, {"WJOIN_FAULT": f"{place}:{chance}"}, "spark.master=local[2,12]", *KINDS[kind])
    printed = finish(tmp_path, child)
    assert_exactly_once(spark, tmp_path, kind)
    assert "exited unexpectedly" in printed, "no worker was killed"
