"""Queries that tests kill, over three streams of cameras and in processes of their own, and their results."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import wjoin
from wjoin.measured.recorder import STATISTICS

CHILD = Path(__file__).with_name("child.py")

ORACLE = """
SELECT a.row_id AS a, b.row_id AS b, c.row_id AS c
FROM read_parquet('{root}/camera1/*.parquet') a, read_parquet('{root}/camera2/*.parquet') b,
     read_parquet('{root}/camera3/*.parquet') c
WHERE a.obj_id = b.obj_id AND b.obj_id = c.obj_id
  AND abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 5000000 AND abs(epoch_us(b.ts) - epoch_us(c.ts)) <= 10000000
"""


MORE = {
    "near": f"""SELECT b, a, c FROM ({ORACLE}) WHERE a % 2 = 0 AND (a, b, c) IN (
        SELECT a.row_id, b.row_id, c.row_id
        FROM read_parquet('{{root}}/camera1/*.parquet') a, read_parquet('{{root}}/camera2/*.parquet') b,
             read_parquet('{{root}}/camera3/*.parquet') c
        WHERE a.obj_id = b.obj_id AND b.obj_id = c.obj_id
          AND abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 1000000
          AND abs(epoch_us(b.ts) - epoch_us(c.ts)) <= 2000000)""",
    "pairs": """SELECT a.row_id AS a, b.row_id AS b
        FROM read_parquet('{root}/camera1/*.parquet') a, read_parquet('{root}/camera2/*.parquet') b
        WHERE a.obj_id = b.obj_id AND abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 1000000""",
    # At the end the last rows are not decided, by a delay of 2 s, but those that ON leaves without a partner.
    "alone": """WITH a AS (SELECT *, epoch_us(ts) AS t FROM read_parquet('{root}/camera1/*.parquet')),
            b AS (SELECT *, epoch_us(ts) AS t FROM read_parquet('{root}/camera2/*.parquet'))
        SELECT a.row_id AS a, b.row_id AS b
        FROM a FULL JOIN b ON a.obj_id = b.obj_id AND b.row_id % 3 = 0 AND abs(a.t - b.t) <= 1000000
        WHERE (a.t IS NOT NULL AND b.t IS NOT NULL)
            OR (b.t IS NULL AND a.t + 1000000 < (SELECT max(t) - 2000000 FROM b))
            OR (a.t IS NULL AND (b.row_id % 3 <> 0 OR b.t + 1000000 < (SELECT max(t) - 2000000 FROM a)))""",
    # Of rows of the first stream after which none of the third follows.
    "between": """WITH a AS (SELECT *, epoch_us(ts) AS t FROM read_parquet('{root}/camera1/*.parquet')),
            b AS (SELECT *, epoch_us(ts) AS t FROM read_parquet('{root}/camera2/*.parquet')),
            c AS (SELECT *, epoch_us(ts) AS t FROM read_parquet('{root}/camera3/*.parquet'))
        SELECT a.row_id AS a, b.row_id AS b FROM a LEFT JOIN b
            ON a.obj_id = b.obj_id AND b.t BETWEEN a.t AND a.t + 1000000
        WHERE NOT EXISTS
            (SELECT * FROM c WHERE c.obj_id = a.obj_id AND c.row_id % 2 = 0
                AND c.t BETWEEN a.t AND a.t + 500000)
        AND (b.t IS NOT NULL OR a.t + 1000000 < (SELECT max(t) - 2000000 FROM b))
        AND a.t + 500000 < (SELECT max(t) - 2000000 FROM c)""",
    "nearest": """WITH a AS (SELECT *, epoch_us(ts) AS t FROM read_parquet('{root}/camera1/*.parquet')),
            b AS (SELECT *, epoch_us(ts) AS t FROM read_parquet('{root}/camera2/*.parquet')),
            placed AS (SELECT a.row_id AS a, b.row_id AS b, row_number() OVER (
                PARTITION BY a.row_id ORDER BY abs(a.t - b.t), b.t, b.row_id) AS place
            FROM a LEFT JOIN b ON a.obj_id = b.obj_id AND abs(a.t - b.t) <= 1000000
            WHERE a.t + 1000000 < (SELECT max(t) - 2000000 FROM b))
        SELECT a, b FROM placed WHERE place = 1""",
}
"""What the other statements of a set (``child.MORE``) find."""


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


def write_streams(root: Path, batches: int, size: int = 300, only: range | None = None) -> None:
    """Write one file a stream and micro-batch; ``only`` some of them."""
    for camera, batch, rows in streams(batches, size):
        if only is not None and batch not in only:
            continue
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

    def note(self, root: Path) -> None:
        """Note a kill, and whether a micro-batch was begun that is not committed."""
        self.done += 1
        self.inside += bool(commits(root, "offsets") - commits(root, "commits"))


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
    _end(child)
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
        _end(child)
    kills.note(root)


def kill_inside_commit(
    root: Path, child: subprocess.Popen[bytes], kills: Kills, files: Callable[[], int]
) -> None:
    """Kill the child's whole process group as soon as a later micro-batch than its first has more files.

    ``files`` counts those that the commit of a micro-batch to a table writes, before Spark commits it.
    """
    known, deadline = commits(root, "commits"), time.monotonic() + 240
    before: int | None = None
    try:
        while before is None or files() <= before:
            if time.monotonic() > deadline:
                pytest.fail(hanging(root, child))
            if before is None and commits(root, "commits") - known:
                before = files()
            assert child.poll() is None, ended(root, child)
            time.sleep(0.001)
    finally:
        _end(child)
    kills.note(root)


def _end(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def ended(root: Path, child: subprocess.Popen[bytes]) -> str:
    """Return what is known of a child that has ended before it was killed."""
    printed = (root / "child.log").read_text()
    return (
        f"ended by itself with {child.returncode}, {len(commits(root, 'commits'))} commits: {printed[-8000:]}"
    )


def committed(spark: SparkSession, root: Path, sink: str) -> list[str]:
    """Return files with the rows that a sink has committed."""
    # Read by Spark, which reads what the file sink committed; files of attempts that died lie beside it.
    spark.read.parquet(str(root / sink)).write.parquet(str(root / f"{sink}_committed"))
    return committed_files(root, sink)


def committed_files(root: Path, sink: str) -> list[str]:
    """Return the files that ``committed`` has written."""
    return [str(path) for path in (root / f"{sink}_committed").glob("*.parquet")]


def results(root: Path) -> Counter[tuple[int, ...]]:
    """Return the results that a child has committed."""
    made = pq.read_table(wjoin.committed_files(root / "tracked")).to_pylist()
    return Counter(tuple(each.values()) for each in made)


def assert_results(root: Path, files: list[str]) -> None:
    """Assert that files hold every result once."""
    _assert_once(ORACLE.format(root=root), files, 1000)


def assert_more(root: Path, sink: str, files: list[str]) -> None:
    """Assert that files hold every result of another statement of a set once."""
    _assert_once(MORE[sink].format(root=root), files, 50)


def assert_part(root: Path, sink: str, files: list[str]) -> None:
    """Assert that files hold results of another statement of a set, none of them twice."""
    _compare(MORE[sink].format(root=root), files)
    wrong, doubled = count("(FROM got EXCEPT FROM expected)"), _doubled()
    assert (wrong, doubled) == (0, 0)
    assert count("got") > 0


def _doubled() -> int:
    return count("got") - count("(SELECT DISTINCT * FROM got)")


def _compare(query: str, files: list[str]) -> None:
    duckdb.sql(f"CREATE OR REPLACE VIEW got AS SELECT * FROM read_parquet({files})")
    duckdb.sql(f"CREATE OR REPLACE VIEW expected AS {query}")


def _assert_once(query: str, files: list[str], least: int) -> None:
    _compare(query, files)
    expected = count("expected")
    assert expected > least
    lost, wrong = count("(FROM expected EXCEPT FROM got)"), count("(FROM got EXCEPT FROM expected)")
    doubled = _doubled()
    assert (lost, wrong, doubled, count("got")) == (0, 0, 0, expected)


def count(rows: str) -> int:
    return int(duckdb.sql(f"SELECT count(*) FROM {rows}").fetchall()[0][0])


def assert_part_as_undisturbed(folder: Path, kills: int, settings: Sequence[str], *, learns: bool) -> None:
    """Assert that an approximate query that is killed at random moments has some results, none of them twice.

    They are those of a query that is not killed, but where a restart ``learns``: by what was measured it may
    choose other summaries.
    """
    killed, whole = folder / "killed", folder / "whole"
    for root in (killed, whole):
        root.mkdir()
        write_streams(root, batches_for(kills))
    chance, met = random.Random(time.time_ns()), Kills()
    while met.done < kills:
        kill_after_progress(killed, start(killed, None, *settings), chance, met)
        if not learns:
            shutil.rmtree(killed / "checkpoints" / "tracked" / "wjoin" / STATISTICS, ignore_errors=True)
    for root in (killed, whole):
        finish(root, start(root, None, *settings))
    print(f"{met.done} kills, {met.inside} inside a micro-batch")
    with duckdb.connect() as oracle:
        exact = Counter(oracle.execute(ORACLE.format(root=whole)).fetchall())
    found, undisturbed = results(killed), results(whole)
    assert learns or found == undisturbed
    assert not found - exact
    assert 0 < found.total() < exact.total()


def batches_for(kills: int) -> int:
    """Return how many batches of rows last for so many kills."""
    return 4 * kills + 6
