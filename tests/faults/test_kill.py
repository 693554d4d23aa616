"""Nothing lost and nothing twice when processes are killed at random moments of a running query."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from wjoin.parts.routes.registry import ROUTES
from wjoin.planner.choice import PLANS

CHILD = Path(__file__).with_name("child.py")

SLICED = [name for name, route in ROUTES.items() if route.slices and not route.values]

_KINDS = {
    "plain": (),
    # Python workers that talk to Spark as they do before Spark 4.1.
    "tcp": ("spark.python.unix.domain.socket.enabled=false",),
    # Every worker joins its few rows in many stretches, and spills what waits.
    "spilling": ("wjoin.stretch=4096",),
    # The same results without a key, on several workers that share the state.
    **{parts["ROUTE"]: (f"plan={word}",) for word, parts in PLANS.items() if parts.get("ROUTE") in SLICED},
    # In hops, and in one with a stage that puts results together.
    "hops": ("plan=PSP", "form=hops "),
    "at once": ("plan=PSP", "form=at once "),
}
KINDS = [
    pytest.param(conf, id=name, marks=() if name == "plain" else pytest.mark.thorough)
    for name, conf in _KINDS.items()
]
"""Settings under which nothing may be lost or doubled either."""

ORACLE = """
SELECT a.row_id AS a, b.row_id AS b, c.row_id AS c
FROM read_parquet('{root}/camera1/*.parquet') a, read_parquet('{root}/camera2/*.parquet') b,
     read_parquet('{root}/camera3/*.parquet') c
WHERE a.obj_id = b.obj_id AND b.obj_id = c.obj_id
  AND abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 5000000 AND abs(epoch_us(b.ts) - epoch_us(c.ts)) <= 10000000
"""


def streams(batches: int, size: int = 300) -> Iterator[tuple[str, int, pa.Table]]:
    """The rows of each stream and micro-batch, ``size`` of them: 3 s of event time, disorder below 2 s."""
    chance = random.Random(7)
    row_id = 0
    for camera in ("camera1", "camera2", "camera3"):
        for batch in range(batches):
            rows = []
            for _ in range(size):
                row_id += 1
                time_us = 1_700_000_000_000_000 + batch * 3_000_000 + chance.randrange(4_900_000)
                rows.append({"obj_id": chance.randrange(60), "ts": time_us, "row_id": row_id})
            schema = pa.schema(
                [("obj_id", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("row_id", pa.int64())]
            )
            yield camera, batch, pa.Table.from_pylist(rows, schema)


def write_streams(root: Path, batches: int) -> None:
    """Write one file a stream and micro-batch."""
    for camera, batch, rows in streams(batches):
        path = root / camera / f"{batch:05}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(rows, path)
        os.utime(path, (1_700_000_000 + batch, 1_700_000_000 + batch))


def commits(root: Path, log: str) -> set[int]:
    folder = root / "checkpoints" / "tracked" / log
    return {int(path.name) for path in folder.glob("*") if path.name.isdigit()}


@dataclass
class Kills:
    """What the kills met."""

    done: int = 0
    inside: int = 0


def start(root: Path, environment: dict[str, str] | None = None, *conf: str) -> subprocess.Popen[bytes]:
    with (root / "child.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, str(CHILD), str(root), *conf],
            env={**os.environ, **(environment or {})},
            start_new_session=True,
            stdout=log,
            stderr=log,
        )


def finish(root: Path, child: subprocess.Popen[bytes]) -> str:
    """Wait for a child that must end well; return what it printed."""
    try:
        child.wait(timeout=400)
    except subprocess.TimeoutExpired:
        pytest.fail(hanging(root, child))
    printed = (root / "child.log").read_text()
    assert child.returncode == 0, printed[-2000:]
    return printed


def hanging(root: Path, child: subprocess.Popen[bytes]) -> str:
    """Return where all threads of a child and of its Java process are, and end it."""
    before = (root / "child.log").stat().st_size
    os.killpg(child.pid, signal.SIGQUIT)
    time.sleep(5)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    printed = (root / "child.log").read_bytes()[max(0, before - 2000) :].decode(errors="replace")
    return f"no end, and {len(commits(root, 'commits'))} commits: {printed}"


def kill_after_progress(
    root: Path, child: subprocess.Popen[bytes], chance: random.Random, kills: Kills
) -> None:
    """Kill the child's whole process group after some commits."""
    before, wanted = commits(root, "commits"), chance.randint(1, 3)
    deadline = time.monotonic() + 240
    try:
        while len(commits(root, "commits") - before) < wanted:
            assert child.poll() is None, ended(root, child)
            if time.monotonic() > deadline:
                pytest.fail(hanging(root, child))
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.8))
        assert child.poll() is None, ended(root, child)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    kills.done += 1
    kills.inside += bool(commits(root, "offsets") - commits(root, "commits"))


def ended(root: Path, child: subprocess.Popen[bytes]) -> str:
    """Return what is known of a child that has ended before it was killed."""
    printed = (root / "child.log").read_text()
    return (
        f"ended by itself with {child.returncode}, {len(commits(root, 'commits'))} commits: {printed[-8000:]}"
    )


def assert_exactly_once(spark: SparkSession, root: Path) -> None:
    # Read by Spark, which reads what the file sink committed; files of attempts that died lie beside it.
    spark.read.parquet(str(root / "tracked")).write.parquet(str(root / "committed"))
    assert_results(root, [str(path) for path in (root / "committed").glob("*.parquet")])


def assert_results(root: Path, files: list[str]) -> None:
    """Assert that files hold every result once."""
    duckdb.sql(f"CREATE OR REPLACE VIEW got AS SELECT * FROM read_parquet({files})")
    duckdb.sql(f"CREATE OR REPLACE VIEW expected AS {ORACLE.format(root=root)}")
    expected = count("expected")
    assert expected > 1000
    lost, wrong = count("(FROM expected EXCEPT FROM got)"), count("(FROM got EXCEPT FROM expected)")
    doubled = count("got") - count("(SELECT DISTINCT * FROM got)")
    assert (lost, wrong, doubled, count("got")) == (0, 0, 0, expected)


def count(rows: str) -> int:
    return int(duckdb.sql(f"SELECT count(*) FROM {rows}").fetchall()[0][0])


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("conf", KINDS)
def test_driver_killed_at_random_moments(
    tmp_path: Path, spark: SparkSession, kills: int, conf: tuple[str, ...]
) -> None:
    write_streams(tmp_path, 4 * kills + 8)
    chance, met = random.Random(time.time_ns()), Kills()
    while met.done < kills:
        kill_after_progress(tmp_path, start(tmp_path, None, *conf), chance, met)
    finish(tmp_path, start(tmp_path, None, *conf))
    print(f"{met.done} kills, {met.inside} inside a micro-batch")
    assert_exactly_once(spark, tmp_path)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("place", ["state-read", "before-state-write"])
@pytest.mark.parametrize("conf", KINDS)
def test_python_workers_killed_and_their_tasks_retried(
    tmp_path: Path, spark: SparkSession, conf: tuple[str, ...], place: str
) -> None:
    write_streams(tmp_path, 8)
    # Two tasks of each of eight micro-batches: in all but one run of thousands some worker is killed.
    child = start(tmp_path, {"WJOIN_FAULT": f"{place}:0.4"}, "spark.master=local[2,12]", *conf)
    printed = finish(tmp_path, child)
    assert_exactly_once(spark, tmp_path)
    assert "exited unexpectedly" in printed, "no worker was killed"
