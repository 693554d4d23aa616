"""Late rows are in their sink once, and in no result, when the query is killed at random moments."""

import random
import time
from collections import Counter
from itertools import product
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

import wjoin
from tests.faults.child import CAMERAS
from tests.faults.killing import ORACLE, Kills, finish, kill_after_progress, start, write_streams
from tests.tiers import tiers

JUDGED = """
CREATE VIEW {camera} AS SELECT obj_id, ts, row_id, seen - ts AS behind
FROM read_parquet('{root}/{camera}/*.parquet', filename=true)
LEFT JOIN (
  SELECT filename, max(max(ts)) OVER before AS seen
  FROM read_parquet('{root}/{camera}/*.parquet', filename=true) GROUP BY filename
  WINDOW before AS (ORDER BY filename ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
) USING (filename)
"""
"""Each row, and how far it is behind the watermark: the delay is 0, and a micro-batch reads a file."""


@pytest.mark.timeout(1800)
@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "state"),
    tiers(
        product(["set=near+pairs", "chain=1"], ["files", "spark"]),
        thorough=[("set=near+pairs", "spark"), ("chain=1", "files")],
    ),
)
def test_a_query_with_a_sink_for_late_rows_is_killed_at_random_moments(
    tmp_path: Path, kills: int, kind: str, state: str
) -> None:
    """Also one whose results go on to another join."""
    settings = ("late=lost", "delay=0", kind, f"state={state}")
    write_streams(tmp_path, 4 * kills + 8)
    chance, met = random.Random(time.time_ns()), Kills()
    while met.done < kills:
        kill_after_progress(tmp_path, start(tmp_path, None, *settings), chance, met)
    finish(tmp_path, start(tmp_path, None, *settings))
    print(f"{met.done} kills, {met.inside} inside a micro-batch")
    with duckdb.connect() as oracle:
        query = ORACLE.format(root=tmp_path)
        for camera in CAMERAS:
            oracle.execute(JUDGED.format(root=tmp_path, camera=camera))
            rows = f"(FROM {camera} WHERE behind IS NULL OR behind <= INTERVAL 0 SECONDS)"
            query = query.replace(f"read_parquet('{tmp_path}/{camera}/*.parquet')", rows)
        late = " UNION ALL ".join(f"FROM {each} WHERE behind > INTERVAL 0 SECONDS" for each in CAMERAS)
        told = f"SELECT obj_id, epoch_us(ts), row_id, behind, 'tracked' FROM ({late})"
        expected = Counter(oracle.execute(told).fetchall())
        written = wjoin.committed_files(tmp_path / "lost" / "late_for=tracked")
        columns = "obj_id, epoch_us(ts), row_id, to_microseconds(late_by), late_for"
        found = Counter(oracle.execute(f"SELECT {columns} FROM read_parquet(?)", [written]).fetchall())
        results = Counter(oracle.execute(query).fetchall())
    assert found == expected and len(expected) > 1000
    made = pq.read_table(wjoin.committed_files(tmp_path / "tracked")).to_pylist()
    assert Counter(tuple(each.values()) for each in made) == results and len(results) > 100
