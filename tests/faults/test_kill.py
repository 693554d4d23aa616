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
    "set by rows": ("set=near+pairs", "clauses=RETAIN 1 DAY COMMIT WHEN camera1 (row_id % 600 = 0)"),
    # Few micro-batches pass before the statement is added, so that the state has all rows for its history.
    "set with history": ("set=pairs", "added=near", "clauses=COMMIT EVERY 5 SECONDS"),
    # In hops, and in one with a stage that puts results together.
    "hops": ("plan=PSP", "form=hops "),
    "at once": ("plan=PSP", "form=at once "),
}
"""Settings under which nothing may be lost or doubled either."""


def assert_exactly_once(spark: SparkSession, root: Path, kind: str) -> None:
    assert_results(root, committed(spark, root, "tracked"))
    for sink in MORE if kind.startswith("set") else ():
        assert_more(root, sink, committed(spark, root, sink))


def committed(spark: SparkSession, root: Path, sink: str) -> list[str]:
    """Return files with the rows that a sink has committed."""
    # Read by Spark, which reads what the file sink committed; files of attempts that died lie beside it.
    spark.read.parquet(str(root / sink)).write.parquet(str(root / f"{sink}_committed"))
    return [str(path) for path in (root / f"{sink}_committed").glob("*.parquet")]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", tiers(KINDS, long=["plain"], sparks=["plain"]))
def test_driver_killed_at_random_moments(tmp_path: Path, spark: SparkSession, kills: int, kind: str) -> None:
    write_streams(tmp_path, 4 * kills + 8)
    chance, met = random.Random(time.time_ns()), Kills()
    while met.done < kills:
        kill_after_progress(tmp_path, start(tmp_path, None, *KINDS[kind]), chance, met)
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
    for sink in MORE:
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
