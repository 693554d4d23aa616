"""Keys that are tied to time: what a run measures of the join itself puts the next estimate right."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from choices import COLUMNS, SECOND, Workload, planned

from tests.kit.local import LocalWorkers
from tests.kit.planned import plan_over, stream_of
from wjoin.executor.counts import Counts
from wjoin.grammar.plain import plain, typed
from wjoin.planner.cost.measurement import Arrived, KeyCount, Measurement, stage_name
from wjoin.planner.cost.model import CostSettings
from wjoin.planner.explain.cost import statistics_lines
from wjoin.planner.explain.describe import describe
from wjoin.planner.plan.block_columns import code_name, time_name
from wjoin.planner.planning import PlannedSelect

RATE, LIFE, KEYS, BATCH, BATCHES = 300, 2, 100, 20, 4
"""Rows a second of each stream; seconds for which KEYS keys live; seconds of a micro-batch, and how many."""

PATH = Workload("path", "PATH (A, B, C) WITHIN (1 SECOND, 1 SECOND)", (RATE, RATE, RATE), KEYS, 0.0, 2.0)
BOTH_WAYS = replace(PATH, windows=f"{PATH.windows} BIDIRECTIONAL")


def stretch(plan: PlannedSelect, number: int) -> dict[int, pa.RecordBatch]:
    """Return a micro-batch; every LIFE seconds KEYS new keys follow the old ones."""
    random = np.random.default_rng(number)
    blocks = {}
    for stream in range(3):
        times = np.sort(random.integers(0, BATCH * SECOND, RATE * BATCH)) + number * BATCH * SECOND
        keys = times // (LIFE * SECOND) * KEYS + random.integers(0, KEYS, len(times))
        columns = {time_name(stream): times, code_name(stream, 0): keys}
        blocks[stream] = pa.RecordBatch.from_pydict(columns)
    return blocks


def run(load: Workload) -> tuple[list[Measurement], float]:
    """Run a workload that nothing is known of; return what was measured, and its results a second."""
    plan = planned(load, CostSettings())
    worker, results = LocalWorkers(plan.physical), 0
    measured = [Measurement() for _ in load.rates]
    for number in range(BATCHES):
        blocks, counts = stretch(plan, number), Counts()
        found = sum(each.num_rows for each in worker.run(blocks, counts))
        results += found
        for stream, block in blocks.items():
            times = block.column(0).to_numpy()
            keys = np.unique(block.column(1).to_numpy(), return_counts=True)[1]
            arrived = Arrived(
                rows=len(times),
                passed=len(times),
                size=8 * len(times),
                before=int(times.min()) - 1 if number else None,
                earliest=int(times.min()),
                latest=int(times.max()),
                key=(f"({'ABC'[stream]}.k)", KeyCount(len(times), len(keys), int(keys.max()))),
            )
            measured[stream] = measured[stream].add(arrived).meet("A, B, C", len(times), found)
    return measured, results / (BATCH * BATCHES)


def again(load: Workload, measured: list[Measurement], **given: float) -> PlannedSelect:
    """Plan a workload with what was measured."""
    known = {name.replace("_", "."): value for name, value in given.items()}
    relations = [replace(stream_of(COLUMNS, known), measured=each) for each in measured]
    return plan_over(load.sql, relations)


@pytest.mark.parametrize("load", [PATH, BOTH_WAYS], ids=["one way", "both ways"])
def test_the_results_of_keys_tied_to_time_are_as_measured(load: Workload) -> None:
    measured, results = run(load)
    blind = again(load, [replace(each, met={}) for each in measured])
    # The keys of a micro-batch are not those of a window: here there are ten times as many.
    assert results > 20 * blind.candidates[0].estimated.cost.results
    assert blind.candidates[0].estimated.stages[0].agreement is None
    plan = again(load, measured)
    assert plan.candidates[0].estimated.cost.results == pytest.approx(results, rel=0.1)
    for candidate in plan.candidates:
        # The estimates of wider bounds are those of other samples.
        assert candidate.estimated.cost.results == pytest.approx(results, rel=0.4)
        assert candidate.estimated.stages[0].agreement == pytest.approx(10, rel=0.5)


def test_what_a_user_says_of_keys_counts_before() -> None:
    measured, _ = run(PATH)
    plan = again(PATH, measured, distinct_k=50.0)
    assert plan.candidates[0].estimated.stages[0].agreement is None


def test_explain_says_what_rests_on_independence() -> None:
    measured, _ = run(PATH)
    blind = list(statistics_lines(describe(again(PATH, [replace(each, met={}) for each in measured]))))
    assert blind[-1].endswith("assumes that keys and times are independent")
    known = list(statistics_lines(describe(again(PATH, measured))))
    assert "keys agree" in known[-1]
    assert known[-1].endswith("(measured)")


def test_results_are_kept_and_fade() -> None:
    each = Measurement(passed=10).meet(stage_name(["B", "A"]), 10, 30)
    assert typed(Measurement, plain(each)) == each
    assert each.results_of_row() == {"A, B": 3.0}
    assert each.faded().met == {"A, B": (5.0, 15.0)}
    assert each.faded().results_of_row() == {"A, B": 3.0}
    assert Measurement().meet("A, B", 10, 0).results_of_row() == {"A, B": 0.05}
    with pytest.raises(ValueError, match="a sum is below 0"):
        typed(Measurement, {**plain(each), "met": {"A, B": [1, -1]}})
