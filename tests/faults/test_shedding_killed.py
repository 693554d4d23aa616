"""A micro-batch that is repeated after a kill sheds the rows that it shed before, whatever is set by then."""

import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

import wjoin
from tests.faults.killing import ORACLE, Kills, finish, kill_after_progress, start, write_streams
from wjoin.executor.shedding import kept_codes

KEYS = np.arange(60)
"""The keys of the streams."""

ALWAYS = (
    "wjoin.shedding=linear",
    "wjoin.memory=1t",
    "wjoin.utilization=0.000000000001 0.000000000002 0.000000000003 0.000000000003",
)
"""Settings with which the base is shed as soon as there is any state."""


def newest(root: Path) -> int:
    """Return the last micro-batch of which was decided what to shed; -1 where there is none."""
    folder = root / "checkpoints/tracked/wjoin/state/0/shed"
    return max((int(each.name) for each in folder.glob("*") if each.name.isdecimal()), default=-1)


def oracle(root: Path, ratios: Sequence[float]) -> set[tuple[int, ...]]:
    """Return the results of the rows that are kept where the micro-batches shed so much."""
    conditions = []
    for number, ratio in enumerate(ratios):
        kept = ", ".join(map(str, KEYS[kept_codes(KEYS, ratio, 0)]))
        conditions.append(f"(filename LIKE '%{number:05}.parquet' AND obj_id IN ({kept}))")
    query = ORACLE.format(root=root)
    for camera in ("camera1", "camera2", "camera3"):
        rows = f"read_parquet('{root}/{camera}/*.parquet'"
        query = query.replace(f"{rows})", f"(FROM {rows}, filename=true) WHERE {' OR '.join(conditions)})")
    return set(duckdb.sql(query).fetchall())


@pytest.mark.timeout(1800)
@pytest.mark.long
def test_a_query_that_sheds_is_killed_at_random_moments(tmp_path: Path, kills: int) -> None:
    batches = 4 * kills + 8
    write_streams(tmp_path, batches)
    chance, met = random.Random(time.time_ns()), Kills()
    # The first micro-batch finds no state.
    ratios = [0.0]
    for base in bases(kills):
        child = start(tmp_path, None, *ALWAYS, f"wjoin.shedding_base={base}")
        if met.done < kills:
            kill_after_progress(tmp_path, child, chance, met)
        else:
            finish(tmp_path, child)
        # What earlier runs have decided stays.
        ratios += [base] * (newest(tmp_path) + 1 - len(ratios))
    found = pq.read_table(wjoin.committed_files(tmp_path / "tracked")).to_pylist()
    rows = [tuple(each.values()) for each in found]
    assert len(rows) == len(set(rows)) > 100
    assert len(ratios) == batches
    assert set(rows) == oracle(tmp_path, ratios)
    print(f"{met.done} kills, {met.inside} inside a micro-batch, shed {ratios}")


def bases(kills: int) -> Iterator[float]:
    """Yield what each run sheds."""
    for number in range(kills + 1):
        yield (0.1, 0.6, 0.3)[number % 3]
