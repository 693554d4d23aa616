"""Rows and pairs are shared out evenly whatever the rate does (PSP 2009, section 6)."""

import dataclasses
import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.local import Load, LocalWorkers
from tests.kit.planned import block_of, plan_over, stream_of
from tests.tiers import tiers
from wjoin.executor.counts import Counts
from wjoin.executor.routing import Router, turns
from wjoin.parts.kernels.runs import Int64Array
from wjoin.parts.routes.route import Role
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.slicing import kept_anywhere

SECOND = 1_000_000
WINDOW = 10
RATE = 100
SPAN = 40
WORKERS = 8

EVEN = 1.3
"""How many times its even share the worker with most may have of the rows that are kept, or of the pairs."""

EVENER = 1.15
"""The same where rows are assigned one by one."""

BURSTS = (13.0, 17.77, 22.5, 24.01, 31.3)
"""When bursts begin: a hundredth of a window each."""


@dataclass(frozen=True)
class Rate:
    """Rows a second over time, as pieces: from when on, and how many."""

    pieces: tuple[tuple[float, float], ...]

    def times(self, seed: int) -> Int64Array:
        """Return the event times of a stream, which arrive at random."""
        chance = np.random.default_rng(seed)
        ends = [start for start, _ in self.pieces[1:]] + [float(SPAN)]
        parts = [
            chance.integers(int(start * SECOND), int(end * SECOND), chance.poisson((end - start) * rate))
            for (start, rate), end in zip(self.pieces, ends, strict=True)
        ]
        return np.sort(np.concatenate(parts)).astype(np.int64)


DOUBLES = Rate(((0, RATE), (SPAN / 2, 2 * RATE)))
IN_BURSTS = Rate(
    (
        (0, RATE),
        *((at + late, rate) for at in BURSTS for late, rate in ((0, 20 * RATE), (WINDOW / 100, RATE))),
    )
)


def plan(window: float = WINDOW, workers: int = WORKERS) -> PhysicalPlan:
    sql = (
        f"SELECT /*+ PLAN(PSP, {workers}) */ A.n AS a, B.n AS b FROM a A, b B "
        f"WINDOW = {round(window * SECOND)} MICROSECONDS WHERE A.x + B.x > 195"
    )
    return plan_over(sql, [stream_of({"n": "bigint", "x": "double"})] * 2).physical


def with_slices(plan: PhysicalPlan, length: int) -> PhysicalPlan:
    stages = tuple(
        dataclasses.replace(each, placement=dataclasses.replace(each.placement, length=length))
        for each in plan.stages
    )
    return dataclasses.replace(plan, stages=stages)


def streams(rate: Rate) -> list[pa.Table]:
    found = []
    for seed in (1, 2):
        times = rate.times(seed)
        values = np.random.default_rng(seed + 10).random(len(times)) * 100
        found.append(pa.table({"ts": times, "n": np.arange(len(times)), "x": values}))
    return found


def run(
    plan: PhysicalPlan, tables: Sequence[pa.Table], *, whole: bool
) -> tuple[Counter[Any], list[list[Load]]]:
    """Join in micro-batches of a second; return the results, and what workers did with full windows."""
    local = LocalWorkers(plan, WORKERS, whole=whole)
    rows = [each.combine_chunks().to_batches()[0] for each in tables]
    results: Counter[Any] = Counter()
    loads = []
    for second in range(SPAN):
        blocks = {}
        for number, each in enumerate(rows):
            first, last = np.searchsorted(each["ts"].to_numpy(), [second * SECOND, (second + 1) * SECOND])
            blocks[number] = block_of(plan, number, each.slice(first, last - first))
        for made in local.run(blocks, Counts()):
            results.update(numbers(made, len(rows)))
        if second > WINDOW:
            loads.append(local.loads[0])
    return results, loads


def numbers(made: pa.RecordBatch, streams: int) -> Iterator[tuple[int, ...]]:
    """Yield of each result the number of its row of each stream."""
    columns = [
        next(name for name in made.column_names if name.startswith(f"c{stream}")) for stream in range(streams)
    ]
    yield from zip(*(made[name].to_pylist() for name in columns), strict=True)


def by_duckdb(names: str, tables: Sequence[pa.Table], window: int, condition: str) -> Counter[Any]:
    """Return the results by DuckDB: all rows of a result are within ``window`` seconds of each other."""
    inside = [
        f"abs({one}.ts - {other}.ts) <= {window * SECOND}" for one, other in itertools.combinations(names, 2)
    ]
    columns = ", ".join(f"{name}.n" for name in names)
    sql = f"SELECT {columns} FROM {', '.join(names)} WHERE {' AND '.join([*inside, condition])}"
    with duckdb.connect() as database:
        for name, each in zip(names, tables, strict=True):
            database.register(name, each)
        return Counter(database.execute(sql).fetchall())


def expected(tables: Sequence[pa.Table]) -> Counter[Any]:
    """Return the results of ``plan``."""
    return by_duckdb("ab", tables, WINDOW, "a.x + b.x > 195")


def shares(loads: Sequence[Sequence[Load]], what: str) -> Iterator[float]:
    """Yield by micro-batch how many times its even share the worker with most has."""
    for each in loads:
        values = [getattr(load, what) for load in each]
        yield max(values) * len(values) / sum(values)


@pytest.mark.parametrize(
    ("rate", "whole", "most"),
    [
        pytest.param(IN_BURSTS, False, EVEN, marks=pytest.mark.long, id="by slices, bursts"),
        pytest.param(DOUBLES, False, EVEN, marks=pytest.mark.long, id="by slices, doubles"),
        pytest.param(IN_BURSTS, True, EVENER, marks=pytest.mark.long, id="one by one, bursts"),
        pytest.param(DOUBLES, True, EVENER, marks=pytest.mark.long, id="one by one, doubles"),
    ],
)
def test_every_worker_has_about_as_many_rows_and_pairs_whatever_the_rate_does(
    rate: Rate, whole: bool, most: float
) -> None:
    tables = streams(rate)
    found, loads = run(plan(), tables, whole=whole)
    assert found == expected(tables)
    assert found
    for what in ("kept", "compared"):
        assert max(shares(loads, what)) < most
    # Each row is sent to all, as a window is much longer than a slice.
    assert max(shares(loads, "rows")) == 1


@pytest.mark.parametrize("names", ["ab", "abc"])
def test_few_rows_of_a_table_are_dealt_out_one_by_one(names: str) -> None:
    """Over tables the rows of one stream stay, and those of the others come to every worker."""
    count, workers = 200, 4
    chance = np.random.default_rng(7)
    tables = []
    for _ in names:
        times, values = chance.integers(0, 10 * SECOND, count), chance.random(count)
        tables.append(pa.table({"ts": times, "n": np.arange(count), "x": values}))
    relation = dataclasses.replace(stream_of({"n": "bigint", "x": "double"}), streaming=False)
    columns = ", ".join(f"{name}.n AS n{number}" for number, name in enumerate(names))
    condition = " AND ".join(f"{one}.x + {other}.x > 1.2" for one, other in itertools.pairwise(names))
    sources = ", ".join(f"{name} {name}" for name in names)
    sql = f"SELECT /*+ PLAN(PSP, {workers}) */ {columns} FROM {sources} WINDOW = 2 SECONDS WHERE {condition}"
    planned = plan_over(sql, [relation] * len(names)).physical
    wanted = by_duckdb(names, tables, 2, condition)
    blocks = {
        number: block_of(planned, number, each.combine_chunks().to_batches()[0])
        for number, each in enumerate(tables)
    }
    busiest = {}
    for whole in (True, False):
        local = LocalWorkers(planned, workers, whole=whole)
        found: Counter[Any] = Counter()
        for made in local.run(blocks, Counts()):
            found.update(numbers(made, len(names)))
        assert found == wanted
        assert found
        busiest[whole] = next(shares(local.loads[:1], "compared"))
    assert busiest[True] < 1.03 < busiest[False]


@pytest.mark.long
def test_a_slice_a_worker_leaves_most_to_some_of_them_while_the_rate_doubles() -> None:
    """As pieces of a window do in the paper, which are as long on each node, until sections 5.5 and 6."""
    tables = streams(DOUBLES)
    found, loads = run(with_slices(plan(), WINDOW * SECOND // WORKERS), tables, whole=False)
    assert found == expected(tables)
    steady, changing = loads[: SPAN // 2 - WINDOW - 1], loads[SPAN // 2 - WINDOW :]
    for what in ("kept", "compared"):
        assert max(shares(steady, what)) < EVEN < 1.5 < max(shares(changing, what))


@given(st.lists(st.integers(-5, 5), min_size=1), st.randoms(use_true_random=False))
def test_turns_follow_from_the_times_not_from_their_order(times: list[int], chance: random.Random) -> None:
    shuffled = list(times)
    chance.shuffle(shuffled)
    first, second = (
        dict(zip(each, turns(np.array(each, np.int64)).tolist(), strict=True)) for each in (times, shuffled)
    )
    assert first == second
    assert sorted(first.values()) == list(range(min(first.values()), min(first.values()) + len(set(times))))


def test_tasks_with_a_row_each_do_not_all_begin_with_one_worker() -> None:
    begins = [int(turns(np.array([time * SECOND], np.int64))[0]) % 4 for time in range(200)]
    assert all(begins.count(worker) > 25 for worker in range(4))


def test_a_row_is_kept_by_the_worker_of_its_slice_where_not_all_workers_are_visited() -> None:
    short, long = plan(), with_slices(plan(), WINDOW * SECOND)
    assert [kept_anywhere(each, each.stages[0], WORKERS) for each in (short, long)] == [True, False]


@pytest.mark.parametrize("step", tiers([0.001, 0.01, 0.1, 1, 60], long=[0.001, 0.01, 0.1]))
def test_times_that_are_whole_seconds_or_minutes_lie_on_all_workers(step: float) -> None:
    """Slices that go into a second a whole number of times would put them all on a few."""
    for window, workers in itertools.product((0.5, 1, 2, 4, 5, 8, 10, 16, 30, 60, 600), (2, 3, 4, 8, 16)):
        times = np.arange(1.7e9, 1.7e9 + window, step) * SECOND
        if not workers <= len(times) <= 10_000:
            continue
        planned = plan(window, workers)
        router = Router.to(planned, planned.stages[0], 0, tuple(range(workers)))
        block = block_of(planned, 0, {"ts": times.astype(np.int64), "n": times, "x": times})
        kept = [rows.num_rows for _, rows, role in router.parts(block) if role is Role.BOTH]
        assert sum(kept) == len(times)
        assert max(kept) <= 2 * math.ceil(len(times) / workers), (window, workers)
