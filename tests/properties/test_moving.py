"""State that is brought to other workers between two micro-batches: by any route, on any number of them."""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.kit.local import LocalWorkers, MemoryStore
from tests.plans.catalogue import plan
from tests.properties import test_counted, test_join_trees
from tests.properties.drawn_plans import PREDICATES, Row, block, combinations, expected, plans
from tests.properties.test_outer import Case, Oracle, Stamped, cases, found_in
from tests.properties.test_outer import block as block_of
from tests.properties.test_routes import SLICES, SLOW, routed, with_slices
from tests.properties.test_step import STRETCHES
from tests.tiers import examples, tiers
from wjoin.executor import counted
from wjoin.executor.arrivals import Arrivals
from wjoin.executor.counts import Counts
from wjoin.executor.state import moving
from wjoin.executor.state.manifest import Manifest
from wjoin.executor.state.marks import MATCHED, preserved_inputs
from wjoin.executor.state.moving import StageMove, moved_rows
from wjoin.executor.stretches import STRETCH_BYTES
from wjoin.parts.routes.registry import ROUTES as REGISTERED
from wjoin.parts.routes.route import Role
from wjoin.planner.plan.edges import scan_columns
from wjoin.planner.plan.physical import Passes, PhysicalPlan
from wjoin.planner.plan.slicing import closed_bands
from wjoin.planner.shape.at_once import at_once
from wjoin.planner.shape.hops import can_hop, in_hops


def moved(
    before: PhysicalPlan, old: LocalWorkers, after: PhysicalPlan, new: LocalWorkers, stretch: int
) -> None:
    """Give new workers, which have nothing, the state of old ones."""
    for number, (givers, takers) in enumerate(zip(old._stages, new._stages, strict=True)):
        move = StageMove(before, after, number, tuple(range(len(givers))), tuple(range(len(takers))))
        logic = move.logic(stretch)
        arrivals = [Arrivals([[] for _ in logic.stage.inputs]) for _ in takers]
        for worker, giver in enumerate(givers):
            for own in arrivals:
                for stream, time in giver.manifest.seen.items():
                    own.seen[stream] = max(time, own.seen.get(stream, time))
            kept = _kept(giver.manifest, giver.store, move)
            groups = [[giver.store.load(each) for each in group] for group in giver.manifest.counted]
            for place, own_rows in (*kept, *counted.moved_rows(before, number, groups)):
                routers = move.old_routers[place], move.new_routers[place]
                for to, rows in moved_rows(*routers, worker, own_rows):
                    arrivals[to].blocks[place].append((Role.STORE, rows))
            told = counted.moved_ticks(before, after, number, worker, groups, move.new_workers)
            for window, places, ticks in told:
                for to in places:
                    arrivals[to].ticks.setdefault(window, []).append(ticks)
            for to, rows in counted.moved_results(after, number, groups, move.new_workers):
                arrivals[to].waiting.append(rows)
        for taker, own in zip(takers, arrivals, strict=True):
            *made, after_it = logic.stream(move.begun(logic), taker.store, own, Counts())
            assert isinstance(after_it, Manifest)
            # Rows without a partner that a slice still has after they have come are dropped.
            assert preserved_inputs(logic.stage) or not made, "nothing is joined on the way"
            # Local workers have no fingerprint.
            taker.manifest = dataclasses.replace(after_it, plan="local")


def _kept(manifest: Manifest, store: MemoryStore, move: StageMove) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows that a worker keeps of each input, with their marks where they have some."""
    preserved = preserved_inputs(move.before.stages[move.number])
    for place, group in enumerate(manifest.slices):
        for each in group:
            rows = store.load(each)
            if place in preserved:
                known = manifest.marks.get(each.name)
                none = pa.array(np.zeros(rows.num_rows, bool))
                marks = none if known is None else store.load(known).column(MATCHED)
                rows = rows.append_column(MATCHED, marks)
            yield place, rows


# Rows of approximate joins cannot move.
ROUTES = {name: route for name, route in REGISTERED.items() if not route.approximate}


def fits(route: str, plan: PhysicalPlan) -> bool:
    stages = plan.stages
    applies = all(
        ROUTES[route].applies(keyed=each.keyed, inputs=len(each.inputs), near=bool(closed_bands(each)))
        for each in stages
    )
    return applies and (not ROUTES[route].visits or all(len(stage.inputs) == 2 for stage in stages))


COPIES = st.integers(1, 3)


@pytest.mark.parametrize("route", tiers(ROUTES, long=ROUTES.keys() - {"hash"}))
@settings(max_examples=examples(15), suppress_health_check=SLOW)
@given(st.data())
def test_every_result_is_made_once_over_moves(route: str, data: st.DataObject) -> None:
    drawn = data.draw(plans(near=ROUTES[route].values))
    assume(fits(route, drawn))
    assert_made_once_over_moves(drawn, drawn, route, [name for name in ROUTES if fits(name, drawn)], data)


@pytest.mark.long
@settings(max_examples=examples(12), suppress_health_check=SLOW)
@given(st.data())
def test_in_hops_every_result_is_made_once_over_moves(data: st.DataObject) -> None:
    drawn = data.draw(plans())
    assume(can_hop(drawn))
    drawn = dataclasses.replace(drawn, passes=Passes.HULL)
    hopping = data.draw(st.sampled_from([in_hops, at_once]))
    assert_made_once_over_moves(drawn, hopping(drawn), "psp", ["psp"], data)


def assert_made_once_over_moves(
    drawn: PhysicalPlan, form: PhysicalPlan, route: str, routes: Sequence[str], data: st.DataObject
) -> None:
    """Run a form of a plan whose rows are moved, by any of some routes; compare its results."""
    others = st.sampled_from(routes)
    counts, stretch = st.integers(1, 9), data.draw(STRETCHES)
    now = with_slices(routed(form, route), data.draw(SLICES), data.draw(COPIES))
    local = LocalWorkers(now, data.draw(counts), stretch, PREDICATES)
    rows: list[list[Row]] = [[] for _ in drawn.streams]
    found: Counter[tuple[Row, ...]] = Counter()
    seen: dict[int, int] = {}
    for clock in range(0, 5 * data.draw(st.integers(2, 4)), 5):
        row = st.tuples(st.integers(0, 2), st.integers(clock - 4, clock + 5), st.none() | st.integers(0, 3))
        batch = {n: data.draw(st.lists(row, max_size=5)) for n in range(len(drawn.streams))}
        for n, new in batch.items():
            mark = seen[n] - drawn.streams[n].delay if n in seen else None
            rows[n] += [each for each in new if mark is None or each[1] >= mark]
            seen |= {n: max(*(time for _, time, _ in new), seen.get(n, -99))} if new else {}
        blocks: dict[int, pa.RecordBatch] = {
            n: block(drawn, n, new, scan_columns(drawn, n)) for n, new in batch.items()
        }
        found.update(each for result in local.run(blocks, Counts()) for each in combinations(drawn, result))
        if data.draw(st.booleans()):
            then = with_slices(routed(form, data.draw(others)), data.draw(SLICES), data.draw(COPIES))
            new_local = LocalWorkers(then, data.draw(counts), stretch, PREDICATES)
            moved(now, local, then, new_local, stretch)
            now, local = then, new_local
    assert found == expected(drawn, rows)


@given(test_counted.cases(), st.integers(1, 4), st.integers(1, 4))
def test_results_that_wait_for_counts_move(case: test_counted.Case, first: int, then: int) -> None:
    plan, oracle = case.planned.physical, test_counted.Oracle(case)
    workers = LocalWorkers(plan, first)
    for number, batch in enumerate(case.batches):
        if number == len(case.batches) // 2:
            old, workers = workers, LocalWorkers(plan, then)
            moved(plan, old, plan, workers, STRETCH_BYTES)
        ended = case.ends and number == len(case.batches) - 1
        blocks = {stream: test_counted.block(plan, stream, rows) for stream, rows in enumerate(batch) if rows}
        found = test_counted.found_in(plan, workers.run(blocks, Counts(), ended=ended))
        assert found == oracle.take(batch, ended=ended)


@pytest.mark.parametrize("partitions", tiers([((1, 3),), ((3, 2),)], long=[((1, 3),)]))
def test_rows_that_wait_before_they_are_joined_move(partitions: tuple[int, int]) -> None:
    @given(test_join_trees.cases(rows_counted=True))
    def run(case: test_join_trees.Case) -> None:
        first, then = partitions

        class Moving(LocalWorkers):
            """Workers whose state moves after the second micro-batch."""

            batches = 0

            def run(self, *given: Any, **named: Any) -> list[pa.RecordBatch]:
                self.batches += 1
                if self.batches == 3:
                    new = LocalWorkers(self._plan, then, predicates=test_join_trees.PREDICATES)
                    for worker in (each for stage in new._stages for each in stage):
                        worker.store = Stamped()
                    moved(self._plan, self, self._plan, new, STRETCH_BYTES)
                    self._stages = new._stages
                return super().run(*given, **named)

        with patch.object(test_join_trees, "LocalWorkers", Moving):
            test_join_trees.check(case, first)

    run()


TICKS = "SELECT A.v, B.v AS w FROM ticks A, ticks B WINDOW (A, B) BETWEEN 2 AND 30 WHERE abs(A.w - B.w) < 3"
MOVES = (("atr", 3), ("ctr", 4), ("psp", 2), ("ctr", 5), ("single", 1))


def ticks(plan: PhysicalPlan, start: int) -> dict[int, pa.RecordBatch]:
    """Return forty rows of each stream."""
    times = np.arange(start, start + 40)
    return {
        n: pa.RecordBatch.from_pydict(
            {name: times if name.startswith("t") else times * (n + 1) % 7 for name in scan_columns(plan, n)}
        )
        for n in range(len(plan.streams))
    }


def found_over_moves(drawn: PhysicalPlan, first: str, moves: Sequence[tuple[str, int]]) -> Counter[Any]:
    """Return the results of a micro-batch before each move and one after all."""
    now = with_slices(routed(drawn, first), 5, 2)
    local, found = LocalWorkers(now, 4), Counter[Any]()
    for number in range(len(moves) + 1):
        for result in local.run(ticks(drawn, number * 20), Counts()):
            found.update(tuple(row.values()) for row in result.to_pylist())
        if number < len(moves):
            route, workers = moves[number]
            then = with_slices(routed(drawn, route), 5, 2)
            new_local = LocalWorkers(then, workers)
            moved(now, local, then, new_local, 1 << 25)
            now, local = then, new_local
    return found


def test_copies_are_left_out_and_no_worker_is_forgotten() -> None:
    """Over moves with many copies; without either, the results are others."""
    drawn = plan(TICKS).physical
    scans = tuple(dataclasses.replace(each, streaming=True) for each in drawn.streams)
    drawn = dataclasses.replace(drawn, streams=scans)
    wanted = found_over_moves(drawn, "single", (("single", 1),) * len(MOVES))
    assert max(wanted.values()) > 1 or len(wanted) > 20
    assert found_over_moves(drawn, "atr", MOVES) == wanted
    own_rows = moving.own_rows
    with patch.object(moving, "own_rows", lambda router, worker, kept: kept):
        assert found_over_moves(drawn, "atr", MOVES).total() > wanted.total()
    with patch.object(
        moving, "own_rows", lambda router, worker, kept: own_rows(router, worker, kept).slice(0, worker * 99)
    ):
        assert found_over_moves(drawn, "atr", MOVES).total() < wanted.total()


@settings(max_examples=examples(100), suppress_health_check=SLOW)
@given(cases(), st.data())
def test_marks_go_with_their_rows_over_moves(case: Case, data: st.DataObject) -> None:
    """Of joins with a key and without: no row without a partner comes twice, or too late."""
    lengths, counts = st.sampled_from([None, 1, 3, 10]), st.integers(1, 4)
    case = dataclasses.replace(case, idle=(None, None), ends=[False] * len(case.batches))
    now, oracle = case.plan("HW"), Oracle(case)
    local = stamped(LocalWorkers(now, data.draw(counts)))
    for batch in case.batches:
        blocks = {stream: block_of(now, stream, rows) for stream, rows in enumerate(batch) if rows}
        found = found_in(now, local.run(blocks, Counts()))
        assert found == oracle.take(batch, 0, ended=False)
        if data.draw(st.booleans()):
            then = dataclasses.replace(case, length=data.draw(lengths)).plan("HW")
            new = stamped(LocalWorkers(then, data.draw(counts)))
            moved(now, local, then, new, STRETCH_BYTES)
            now, local = then, new


def stamped(workers: LocalWorkers) -> LocalWorkers:
    for worker in workers._stages[0]:
        worker.store = Stamped()
    return workers
