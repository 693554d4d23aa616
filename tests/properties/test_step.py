"""The pure step of the join under random plans, data, cuts, lateness and crashes, against brute force."""

import copy
import dataclasses
import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kit.local import MemoryStore
from tests.properties.drawn_plans import (
    NAMES,
    PREDICATES,
    Row,
    block,
    columns,
    combinations,
    expected,
    plans,
    with_choice,
)
from tests.tiers import examples
from wjoin.executor import multiway, sifting
from wjoin.executor.arrivals import Arrivals
from wjoin.executor.counts import Counts
from wjoin.executor.state.manifest import Manifest, decode_manifest
from wjoin.executor.state.slices import Stored, digest_of
from wjoin.executor.state.writing import Cutting
from wjoin.executor.step import StageLogic
from wjoin.executor.stretches import STRETCH_BYTES
from wjoin.parts.kernels import adaptive
from wjoin.parts.routes.route import Placement, Role
from wjoin.planner.plan.edges import with_columns
from wjoin.planner.plan.physical import KeyCode, Output, PhysicalPlan, ScanColumn, StreamScan, TimeKind
from wjoin.planner.plan.probes import arranged
from wjoin.planner.plan.stage_kinds import Bounds, Join, Scanned, StageEdge
from wjoin.planner.plan.to_come import least_to_come
from wjoin.planner.windows.bounds import Windows


@pytest.fixture(scope="module", autouse=True)
def small_blocks() -> Iterator[None]:
    """Conditions are tested in blocks, and predicates called for parts, however few pairs there are."""
    with (
        patch.multiple(sifting, TUPLES=2, ROWS=3, _LEAST_PAIRS=1, _LEAST_SHARE=0.01),
        patch.object(multiway, "CALL_BYTES", 40),
    ):
        yield


STRETCHES = st.sampled_from([STRETCH_BYTES, 300, 100, 1])


class StrictStore(MemoryStore):
    """Slices in a dictionary, none written twice; a crash is a return to an earlier copy."""

    def save(self, name: str, batch: pa.RecordBatch, cutting: Cutting) -> Stored:
        assert name not in self.slices
        # A manifest that is read names each slice by a digest.
        return replace(super().save(name, batch, cutting), digest=digest_of(name.encode()))


@dataclass
class Worker:
    """One worker of every stage of a plan, run batch by batch."""

    plan: PhysicalPlan
    stores: list[StrictStore]
    manifests: list[bytes]
    stretch: int = STRETCH_BYTES

    @classmethod
    def fresh(cls, plan: PhysicalPlan) -> "Worker":
        empty = [Manifest.fresh("plan", 1, len(stage.inputs)).encode() for stage in plan.stages]
        return cls(plan, [StrictStore() for _ in plan.stages], empty)

    def run(self, batches: dict[int, list[Row]], counts: Counts) -> list[tuple[Row, ...]]:
        """Run one micro-batch; return the combinations of the last stage in stream order."""
        outputs: list[list[pa.RecordBatch]] = []
        for number, stage in enumerate(self.plan.stages):
            logic = StageLogic(self.plan, number, self.stretch, PREDICATES)
            arrivals = Arrivals([[] for _ in stage.inputs])
            for place, each in enumerate(stage.inputs):
                new = outputs[each.stage] if each.stage is not None else []
                if each.stage is None and batches[each.members[0]]:
                    new = [block(self.plan, each.members[0], batches[each.members[0]], each.columns)]
                for one in new:
                    arrivals.add(place, Role.BOTH, one, logic.shapes, self.stretch)
            for stream in stage.members:
                times = [time for _, time, _ in batches[stream]]
                if times:
                    arrivals.seen[stream] = max(times)
            manifest = decode_manifest(self.manifests[number], "plan", 1)
            results: list[pa.RecordBatch] = []
            stage_counts = Counts()
            for result in logic.stream(manifest, self.stores[number], arrivals, stage_counts):
                if isinstance(result, Manifest):
                    self.manifests[number] = result.encode()
                else:
                    results.append(result.rows)
            for stream, report in stage_counts.streams.items():
                counts.of(stream).add("late", report["late"])
            outputs.append(results)
        return [combination for result in outputs[-1] for combination in combinations(self.plan, result)]

    def kept(self, number: int) -> list[list[int]]:
        """Return for each input of a stage the row counts of its slices."""
        manifest = decode_manifest(self.manifests[number], "plan", 1)
        return [[each.rows for each in group] for group in manifest.slices]


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(plans(), st.data())
def test_any_cut_any_disorder_and_any_crash_give_the_defined_result(
    plan: PhysicalPlan, data: st.DataObject
) -> None:
    assert_defined_result(plan, data, NAMES)


@pytest.mark.long
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow])
@given(plans().filter(lambda plan: bool(plan.streams[0].codes)), st.data())
def test_a_worker_that_changes_its_kernel_all_the_time(plan: PhysicalPlan, data: st.DataObject) -> None:
    with patch.object(adaptive, "LEAST_ROWS", 1), patch.object(adaptive, "CHANGE", 0.01):
        assert_defined_result(with_choice(plan, kernel="adaptive"), data, ["adaptive"])


ENDS = tuple(end + step for end, step in itertools.product((-(1 << 63), (1 << 63) - 8), range(8)))
"""The times with the least and the greatest numbers that there are."""


@settings(max_examples=examples(50), suppress_health_check=list(HealthCheck))
@given(plans(), st.data())
def test_no_sum_overflows_at_the_ends_of_64_bits(plan: PhysicalPlan, data: st.DataObject) -> None:
    assert_defined_result(plan, data, NAMES, ENDS)


def assert_defined_result(
    plan: PhysicalPlan, data: st.DataObject, kernels: Collection[str], ends: Sequence[int] = ()
) -> None:
    """Assert that a run over random micro-batches with crashes gives what brute force does.

    And that no result is earlier than what could be told before its micro-batch. Where there are ``ends``,
    half of the rows have one of them as event time.
    """
    worker = Worker.fresh(plan)
    seen: dict[int, int] = {}
    on_time: list[list[Row]] = [[] for _ in plan.streams]
    late = 0
    counts = Counts()
    produced: Counter[tuple[Row, ...]] = Counter()
    clock = 0
    for _ in range(data.draw(st.integers(1, 6))):
        clock += data.draw(st.integers(0, 6))
        worker.stretch = data.draw(STRETCHES)
        times = st.integers(clock - 5, clock + 5)
        times = times | st.sampled_from(ends) if ends else times
        row = st.tuples(st.integers(0, 1), times, st.none() | st.integers(0, 3))
        batches = {n: data.draw(st.lists(row, max_size=4)) for n in range(len(plan.streams))}
        for n, rows in batches.items():
            mark = seen[n] - plan.streams[n].delay if n in seen else None
            for each in rows:
                if mark is not None and each[1] < mark:
                    late += 1
                else:
                    on_time[n].append(each)
        least = least_to_come(plan, seen)
        for n, rows in batches.items():
            if rows:
                seen[n] = (
                    max(time for _, time, _ in rows)
                    if n not in seen
                    else max(seen[n], *(t for _, t, _ in rows))
                )
        first = None
        if data.draw(st.integers(0, 4)) == 0:
            # An attempt that dies after its work and before its commit leaves no results.
            first = copy.deepcopy(worker)
            first.run({n: data.draw(st.permutations(rows)) for n, rows in batches.items()}, Counts())
        if data.draw(st.integers(0, 3)) == 0:
            # A hint may change between two runs on one checkpoint.
            bounds = data.draw(st.none() | st.sampled_from(Bounds))
            kernel = data.draw(st.sampled_from(list(kernels)))
            worker.plan = with_choice(worker.plan, kernel=kernel, bounds=bounds)
        results = worker.run(batches, counts)
        assert least is None or all(max(time for _, time, _ in each) >= least for each in results)
        produced.update(results)
        if first is not None and data.draw(st.booleans()):
            # Spark may keep what it wrote of the state, and go on with the next attempt's manifest.
            for store, kept in zip(worker.stores, first.stores, strict=True):
                store.slices.update(
                    {name: each for name, each in kept.slices.items() if name in store.slices}
                )
    assert produced == expected(plan, on_time)
    assert sum(report["late"] for report in counts.streams.values()) == late


def comparisons(plan: PhysicalPlan, bounds: Bounds, kernel: str, rows: dict[int, list[Row]]) -> int:
    """How many comparisons a choice costs in the first stage, over complete inputs."""
    scans = tuple(dataclasses.replace(each, streaming=False) for each in plan.streams)
    chosen = with_choice(dataclasses.replace(plan, streams=scans), kernel=kernel, bounds=bounds)
    logic = StageLogic(chosen, 0, predicates=PREDICATES)
    inputs = logic.stage.inputs
    arrivals = Arrivals(
        [
            [(Role.BOTH, block(logic.plan, each.members[0], rows[each.members[0]], each.columns))]
            for each in inputs
        ]
    )
    counts = Counts()
    list(logic.batch(arrivals, counts))
    return counts.stage["comparisons"]


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.too_slow])
@given(plans(), st.sampled_from(NAMES), st.data())
def test_tables_in_stretches(plan: PhysicalPlan, kernel: str, data: st.DataObject) -> None:
    """Complete inputs that are joined bit by bit have the results that brute force finds."""
    row = st.tuples(st.integers(0, 2), st.integers(0, 20), st.none() | st.integers(0, 3))
    rows = {n: data.draw(st.lists(row, max_size=8)) for n in range(len(plan.streams))}
    scans = tuple(dataclasses.replace(each, streaming=False) for each in plan.streams)
    plan = with_choice(dataclasses.replace(plan, streams=scans), kernel=kernel)
    outputs: list[list[pa.RecordBatch]] = []
    for number, stage in enumerate(plan.stages):
        logic = StageLogic(plan, number, data.draw(STRETCHES), PREDICATES)
        arrivals = Arrivals([[] for _ in stage.inputs])
        for place, each in enumerate(stage.inputs):
            stream = each.members[0]
            new = (
                [block(plan, stream, rows[stream], each.columns)]
                if each.stage is None
                else outputs[each.stage]
            )
            for one in new:
                arrivals.add(place, Role.BOTH, one, logic.shapes, logic.stretch)
        outputs.append([made.rows for made in logic.batch(arrivals, Counts())])
    found = Counter(each for result in outputs[-1] for each in combinations(plan, result))
    assert found == expected(plan, [rows[n] for n in range(len(plan.streams))])


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.too_slow])
@given(plans(), st.data())
def test_wider_bounds_and_nested_loops_compare_more(plan: PhysicalPlan, data: st.DataObject) -> None:
    row = st.tuples(st.integers(0, 2), st.integers(0, 20), st.none() | st.integers(0, 3))
    rows = {n: data.draw(st.lists(row, min_size=1, max_size=8)) for n in range(len(plan.streams))}
    cost = {(b, k): comparisons(plan, b, k, rows) for b in Bounds for k in NAMES}
    for kernel in NAMES:
        assert cost[Bounds.EXACT, kernel] <= cost[Bounds.LCA, kernel] <= cost[Bounds.GCA, kernel]
    for bounds in Bounds:
        assert max(cost[bounds, each] for each in NAMES) == cost[bounds, "nlw"]
        assert cost[bounds, "adaptive"] in (cost[bounds, "hw"], cost[bounds, "mw"])


@settings(max_examples=examples(20))
@given(st.integers(1, 12), st.integers(0, 5), st.integers(1, 15))
def test_state_follows_the_window(window: int, delay: int, per_batch: int) -> None:
    windows = Windows.of([[0, window], [window, 0]])
    scans = tuple(
        StreamScan(
            name,
            "ts",
            delay,
            (),
            (ScanColumn("v", "int", "v"), ScanColumn("key", "int", "key")),
            (KeyCode(("k",), ("bigint",), True, ()),),
            True,
        )
        for name in "AB"
    )
    inputs = tuple(StageEdge(Scanned(n), (n, 0)) for n in range(2))
    stage = Join(inputs, Bounds.EXACT, Placement("hash"), ("hw",))
    outputs = (Output("", columns(2), (), frozenset({"time"})),)
    drawn = PhysicalPlan(scans, TimeKind.INTEGRAL, windows, (), (stage,), outputs)
    plan = arranged(with_columns(drawn), [None])
    worker = Worker.fresh(plan)
    for start in range(0, 20 * window, per_batch):
        times = range(start, start + per_batch)
        batch: list[Row] = [(time % 3, time, 0) for time in times]
        worker.run({0: batch, 1: batch}, Counts())
        mark = times[-1] - delay
        inside = times[-1] - max(mark - window, 0) + 1
        for slices in worker.kept(0):
            assert inside <= sum(slices) <= 1.5 * inside
            assert len(slices) <= 24
