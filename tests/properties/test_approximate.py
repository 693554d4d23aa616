"""Approximate joins under random plans, rows, cuts and restarts: a part of the exact result, none twice."""

import copy
import dataclasses
from collections import Counter
from collections.abc import Mapping
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.kit.local import LocalWorkers
from tests.properties import test_counted
from tests.properties.drawn_plans import (
    NAMES,
    PREDICATES,
    Row,
    block,
    combinations,
    expected,
    plans,
    with_choice,
)
from tests.properties.test_outer import Stamped
from tests.properties.test_routes import routed
from tests.properties.test_step import STRETCHES
from tests.tiers import examples, tiers
from wjoin.executor import nodes
from wjoin.executor.counts import Counts
from wjoin.executor.state.manifest import written_manifest
from wjoin.parts.routes.registry import ROUTES
from wjoin.planner.plan.approximation import Approximation
from wjoin.planner.plan.edges import scan_columns, with_columns
from wjoin.planner.plan.physical import KeyCode, Passes, PhysicalPlan
from wjoin.planner.plan.probes import arranged, chosen_orders
from wjoin.planner.shape.hops import can_hop, in_hops

GOALS = st.one_of(
    st.just(Approximation(size=64, rows=16)),
    st.builds(Approximation, error=st.sampled_from([0.05, 0.3, 0.9]), size=st.just(64), rows=st.just(16)),
    st.builds(Approximation, messages=st.sampled_from([0.1, 1.0, 3.0]), size=st.just(64), rows=st.just(16)),
)
"""What may be asked, with small summaries."""

HOME = KeyCode(("v",), ("int",), True, ())
"""Rows live by their value: that of NULL is at the first node."""

ALL = 1 - 2.0**-40
"""The sample that has every key."""

SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much]


@st.composite
def approximate_plans(draw: st.DrawFn, route: str) -> tuple[PhysicalPlan, PhysicalPlan]:
    """Draw a plan on one key of all streams: the exact one, and an approximate one of the same meaning."""
    exact = draw(plans())
    assume(len(exact.stages) == 1 and exact.stages[0].keyed)
    goal = draw(GOALS)
    streams = tuple(
        dataclasses.replace(each, codes=(*each.codes, HOME), home=len(each.codes)) for each in exact.streams
    )
    plan = with_columns(dataclasses.replace(exact, streams=streams, approximate=goal))
    if len(plan.streams) > 2:
        plan = dataclasses.replace(plan, passes=Passes.HULL)
        assert can_hop(plan)
        plan = in_hops(plan)
    plan = arranged(plan, [chosen_orders(each) for each in plan.stages])
    return exact, routed(plan, route)


APPROXIMATE = [name for name, each in ROUTES.items() if each.approximate]


@pytest.mark.parametrize("route", tiers(APPROXIMATE, long=set(APPROXIMATE) - {"digest"}))
@settings(max_examples=examples(10), suppress_health_check=SLOW)
@given(st.integers(1, 6), st.data())
def test_the_result_is_a_part_of_the_exact_one(route: str, workers: int, data: st.DataObject) -> None:
    exact, plan = data.draw(approximate_plans(route))
    with patch.object(nodes, "SAMPLE", data.draw(st.sampled_from([0.0, 0.3, ALL]))):
        found, rows = run(plan, workers, data)
        whole = expected(exact, rows)
        assert not found - whole
        if route == "base" or nodes.SAMPLE == ALL:
            assert found == whole


@st.composite
def counted_cases(draw: st.DrawFn, route: str) -> test_counted.Case:
    """Draw a join on one key with windows of rows, whose rows live by the other column."""
    case = draw(test_counted.cases())
    assume(case.links and all(key == 0 for _, _, key in case.links))
    return dataclasses.replace(case, settings={"PLAN": route})


@pytest.mark.parametrize("route", tiers(APPROXIMATE, long=set(APPROXIMATE) - {"base", "bloom"}))
@settings(max_examples=examples(10), suppress_health_check=SLOW)
@given(st.integers(1, 4), STRETCHES, st.sampled_from([0.0, 0.3, ALL]), st.data())
def test_windows_of_rows_count_the_rows_of_all_nodes(
    route: str, workers: int, stretch: int, sample: float, data: st.DataObject
) -> None:
    """Each result comes in the micro-batch that decides it, also after restarts."""
    case = data.draw(counted_cases(route))
    plan = case.planned.physical
    # Windows of rows may be those of an alternative that another one has within it.
    assume(plan.counted)
    assert plan.approximate is not None
    local, oracle = LocalWorkers(plan, workers, stretch), test_counted.Oracle(case)
    every = [worker for stage in local._stages for worker in stage]
    for each in every:
        each.store = Stamped()
    with patch.object(nodes, "SAMPLE", sample):
        for number, batch in enumerate(case.batches):
            ended = case.ends and number == len(case.batches) - 1
            blocks = {n: test_counted.block(plan, n, rows) for n, rows in enumerate(batch) if rows}
            if data.draw(st.booleans()):
                # The micro-batch fails once its work is done, and is repeated.
                copy.deepcopy(local).run(blocks, Counts(), ended=ended)
            found = test_counted.found_in(plan, local.run(blocks, Counts(), ended=ended))
            whole = oracle.take(batch, ended=ended)
            assert not found - whole
            if route == "base" or sample == ALL:
                assert found == whole
            for each in every:
                # As after a restart.
                each.manifest = written_manifest(each.manifest.encode())


@pytest.mark.parametrize("route", ["digest", "bloom"])
@settings(max_examples=examples(10), suppress_health_check=SLOW)
@given(st.integers(1, 6), st.data())
def test_nothing_is_lost_where_summaries_lose_nothing(route: str, workers: int, data: st.DataObject) -> None:
    """Rows come one by one, so that all are known of before the next comes; digests send none in vain."""
    exact, plan = data.draw(approximate_plans(route))
    assume(len(plan.streams) == 2)
    goal = Approximation(error=0.05, size=4096, rows=16)
    plan = dataclasses.replace(plan, approximate=goal)
    local = LocalWorkers(plan, workers, predicates=PREDICATES)
    row = st.tuples(st.integers(0, 1), st.integers(0, 2), st.none() | st.integers(0, 3))
    rows: list[list[Row]] = [[], []]
    found: Counter[tuple[Row, ...]] = Counter()
    with patch.object(nodes, "SAMPLE", 0.0), patch.object(nodes, "LEAST", 0.0):
        for clock, (stream, key, value) in enumerate(data.draw(st.lists(row, max_size=12))):
            one = key, clock, value
            rows[stream].append(one)
            counts = Counts()
            made = local.run({stream: block(plan, stream, [one], scan_columns(plan, stream))}, counts)
            found.update(each for result in made for each in combinations(plan, result))
            there = {(each[2] or 0) % workers for each in rows[1 - stream] if each[0] == key}
            if route == "digest" and clock:
                assert counts.stage["visits"] <= len(there - {(value or 0) % workers})
        assert found == expected(exact, rows)


def run(
    plan: PhysicalPlan, workers: int, data: st.DataObject
) -> tuple[Counter[tuple[Row, ...]], list[list[Row]]]:
    """Run a plan on so many nodes; return its results, and the rows that are on time."""
    local = LocalWorkers(plan, workers, data.draw(STRETCHES), PREDICATES)
    rows: list[list[Row]] = [[] for _ in plan.streams]
    found: Counter[tuple[Row, ...]] = Counter()
    seen: dict[int, int] = {}
    row = st.tuples(st.integers(0, 2), st.integers(-4, 5), st.none() | st.integers(0, 3))
    for clock in range(0, 5 * data.draw(st.integers(1, 5)), 5):
        drawn = {n: data.draw(st.lists(row, max_size=5)) for n in range(len(plan.streams))}
        batch = {n: [(key, clock + time, value) for key, time, value in own] for n, own in drawn.items()}
        for n, new in batch.items():
            mark = seen[n] - plan.streams[n].delay if n in seen else None
            rows[n] += [each for each in new if mark is None or each[1] >= mark]
        for n, new in batch.items():
            seen |= {n: max(*(time for _, time, _ in new), seen.get(n, -99))} if new else {}
        blocks = {n: block(plan, n, new, scan_columns(plan, n)) for n, new in batch.items()}
        attempts = [copy.deepcopy(local)] if data.draw(st.booleans()) else []
        if data.draw(st.booleans()):
            local.change(data.draw(other_plans(plan)))
        # The micro-batch fails once its work is done, and is repeated, maybe by another plan.
        (first, visits), *repeated = [worked_off(plan, attempt, blocks) for attempt in (*attempts, local)]
        assert not repeated or repeated == [(first, visits)]
        found.update(first)
    return found, rows


def worked_off(
    plan: PhysicalPlan, local: LocalWorkers, blocks: Mapping[int, pa.RecordBatch]
) -> tuple[Counter[tuple[Row, ...]], int]:
    """Return the results of a micro-batch, and how many visits its rows made."""
    counts = Counts()
    made = local.run(blocks, counts)
    return Counter(each for result in made for each in combinations(plan, result)), counts.stage["visits"]


@st.composite
def other_plans(draw: st.DrawFn, plan: PhysicalPlan) -> PhysicalPlan:
    """Draw a plan that a restart may come with: another kernel, and summaries laid out for more rows."""
    asked = plan.approximate
    assert asked is not None
    size, rows = draw(st.sampled_from([64, 256])), draw(st.sampled_from([16, 64]))
    asked = dataclasses.replace(asked, size=size, rows=rows)
    return dataclasses.replace(with_choice(plan, kernel=draw(st.sampled_from(NAMES))), approximate=asked)
