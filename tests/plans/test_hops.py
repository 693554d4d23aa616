"""Hops: the orders in which new rows meet the other streams, and the stages that are made of them."""

import dataclasses
import itertools
import re
from collections.abc import Collection, Iterator, Mapping

import pytest

from tests.kit.planned import plan_over, stream_of
from tests.plans.catalogue import plan
from wjoin.executor.state.identity import fingerprint
from wjoin.planner.choose.layouts import FREE, UNKNOWN, LayoutRule, of_checkpoint
from wjoin.planner.cost.model import CostSettings
from wjoin.planner.explain.plan_words import plan_words
from wjoin.planner.plan.edges import destination, destinations, result_columns
from wjoin.planner.plan.physical import Passes, PhysicalPlan
from wjoin.planner.plan.probes import arranged
from wjoin.planner.plan.stage_kinds import Hop, Partial, PassedOn, Scanned
from wjoin.planner.plan.steps import Precedence, Rows
from wjoin.planner.planning import PlannedSelect
from wjoin.planner.shape.hops import can_hop, hop_orders, in_hops
from wjoin.udfs.predicate import Predicate

Orders = Mapping[int, tuple[int, ...]]

CHAIN = """
    SELECT A.code, C.door FROM badge A, badge B, badge C
    WINDOW (A, B) = 5 SECONDS AND WINDOW (B, C) BETWEEN -2 SECONDS AND 9 SECONDS
    WHERE A.level < B.level AND B.person <> C.person
"""


def kept(orders: Orders) -> int:
    """Return how many streams all hops keep."""
    return len({(hop, stream) for order in orders.values() for hop, stream in enumerate(order)})


def unlinked(orders: Orders, links: Collection[Collection[int]]) -> int:
    """Return how often a stream comes next that no condition links with those before."""
    return sum(
        not any(stream in link and set(link) <= {origin, *order[: hop + 1]} for link in links)
        for origin, order in orders.items()
        for hop, stream in enumerate(order)
    )


def all_orders(streams: int) -> Iterator[Orders]:
    ways = [
        list(itertools.permutations([other for other in range(streams) if other != stream]))
        for stream in range(streams)
    ]
    for choice in itertools.product(*ways):
        yield dict(enumerate(choice))


PAIRS = list(itertools.combinations(range(4), 2))
GRAPHS = [
    *((3, links) for count in range(4) for links in itertools.combinations([*PAIRS[:2], (1, 2)], count)),
    *((4, links) for links in itertools.combinations(PAIRS, 3)),
    (4, ()),
    (4, tuple(PAIRS)),
    (4, ((0, 1, 2), (2, 3))),
]


@pytest.mark.parametrize(("streams", "links"), GRAPHS)
def test_no_orders_keep_fewer_streams(streams: int, links: Collection[Collection[int]]) -> None:
    found = hop_orders(range(streams), links)
    best = min((unlinked(each, links), kept(each)) for each in all_orders(streams))
    assert (unlinked(found, links), kept(found)) == best


def test_of_streams_that_are_all_linked_all_but_two_are_kept_twice() -> None:
    for streams in range(3, 10):
        found = hop_orders(range(streams), list(itertools.combinations(range(streams), 2)))
        assert kept(found) == 2 * (streams - 1)
        for stream, order in found.items():
            assert sorted((stream, *order)) == list(range(streams))


def hops(text: str = CHAIN) -> PhysicalPlan:
    single = plan(text).physical
    assert can_hop(single)
    made = in_hops(single)
    return arranged(made, [None] * len(made.stages))


def test_each_hop_keeps_what_is_met_there() -> None:
    first, second = hops().stages
    assert isinstance(first, Hop)
    assert isinstance(second, Hop)
    assert [(each.source, each.stored) for each in first.inputs] == [
        (Scanned(0), True),
        (Scanned(1), True),
        (Scanned(2), False),
    ]
    assert first.meets == ((1,), (0,), (1,))
    assert [(each.source, each.stored) for each in second.inputs] == [
        (PassedOn(0, 0), True),
        (PassedOn(0, 2), True),
        (Partial(0, (0, 1), 0), False),
        (Partial(0, (0, 1), 1), False),
        (Partial(0, (1, 2), 2), False),
    ]
    assert second.meets == ((), (), (1,), (1,), (0,))
    assert {first.placement.route, second.placement.route} == {"psp"}
    assert set(first.members) == set(second.members) == {0, 1, 2}


def test_a_row_is_kept_for_the_new_rows_that_come_to_meet_it() -> None:
    first, second = hops().stages
    seconds = 1_000_000
    kept_for = [
        [(each.stream, each.distances) for each in source.retention]
        for source in (*first.inputs, *second.inputs)
    ]
    assert kept_for[0] == [(1, ((0, 5 * seconds),))]
    # B is met by new rows of A and of C, with the windows of each.
    assert kept_for[1] == [(0, ((1, 5 * seconds),)), (2, ((1, 9 * seconds),))]
    assert kept_for[2] == []
    assert kept_for[3] == [(2, ((0, 14 * seconds),))]
    assert kept_for[4] == [(0, ((2, 7 * seconds),)), (1, ((2, 2 * seconds),))]


def test_a_partial_result_meets_new_rows_before_its_newest_one() -> None:
    *_, second = hops().stages
    orders = {
        probe.origin: step.order for probe in second.probes for step in probe.steps if step.rows is Rows.NEW
    }
    assert orders == {
        2: Precedence((2,), (0,), equal=False),
        3: Precedence((2,), (1,), equal=False),
        4: Precedence((0,), (2,), equal=True),
    }


def test_what_goes_on_has_a_place_of_its_own_by_its_newest_row() -> None:
    made = hops()
    first, second = made.stages
    assert destinations(made, 0) == tuple((1, place) for place in range(5))
    assert [destination(made, 0, first.inputs[probe.origin], probe.order) for probe in first.probes[::2]] == [
        (1, 2),
        (1, 3),
        (1, 4),
    ]
    passed_on = [destination(made, 0, each) for each in first.inputs]
    assert passed_on == [(1, 0), None, (1, 1)]
    assert result_columns(made, 0, (1, 1)) == second.inputs[1].columns
    assert {destination(made, 1, second.inputs[probe.origin], probe.order) for probe in second.probes} == {
        None
    }


def test_conditions_are_checked_in_the_hop_where_they_can_be_first() -> None:
    found = {
        (number, probe.origin, condition.streams)
        for number, stage in enumerate(hops().stages)
        for probe in stage.probes
        for step in probe.steps
        for condition in step.checks
    }
    link, other = frozenset({0, 1}), frozenset({1, 2})
    assert found == {
        (0, 0, link),
        (0, 1, link),
        (0, 2, other),
        (1, 2, other),
        (1, 3, other),
        (1, 4, link),
    }


def test_only_streams_without_a_key_go_in_hops() -> None:
    assert not can_hop(plan("SELECT A.code FROM badge A, badge B WINDOW = 5 SECONDS").physical)
    keyed = plan("""
        SELECT A.code FROM badge A, badge B, badge C WINDOW = 5 SECONDS
        WHERE A.person = B.person AND B.person = C.person
    """)
    assert not can_hop(keyed.physical)


COSTLY = Predicate("alike", lambda left, right: left, "boolean", cost_us=1000, selectivity=0.5)
ALIKE = """
    SELECT {} A.n AS a, B.n AS b FROM a A, b B, c C WINDOW = 10 SECONDS
    WHERE alike(A.x, B.x) AND alike(B.x, C.x)
"""


def planned(
    layouts: LayoutRule = FREE, cores: int = 4, hint: str = "", predicate: Predicate = COSTLY
) -> PlannedSelect:
    relations = [stream_of({"n": "bigint", "x": "double"}, {"rate": 30, "width": 100})] * 3
    costs = CostSettings(cores=cores, partitions=8)
    return plan_over(ALIKE.format(hint), relations, None, costs, layouts, {"alike": predicate})


@pytest.mark.long
def test_psp_is_hops_where_pairs_would_be_many() -> None:
    layout = planned(hint="/*+ PLAN(PSP) */").layout
    assert layout.stages == "hops $0 $1 $2, $1 $0 $2, $2 $1 $0"
    assert [each and each.route for each in layout.placements] == ["psp", "psp"]
    (pairs, *_) = [
        each for each in planned(hint="/*+ PLAN(PSP) */").candidates if "times the state" in each.lost
    ]
    assert not isinstance(pairs.plan.stages[0], Hop)
    # Of which few are true, few pairs are kept; and a hop more than that is a hop more to pay for.
    few = Predicate("alike", COSTLY.function, "boolean", cost_us=1000, selectivity=0.001)
    kept = planned(hint="/*+ PLAN(PSP) */", predicate=few)
    assert not isinstance(kept.physical.stages[0], Hop)


def test_what_hops_keep_is_all_streams_and_their_copies() -> None:
    found = planned(hint="/*+ PLAN(PSP) */")
    assert re.fullmatch(r"exact psp\(\w+\) .* in 2 hops", plan_words(found.physical))
    assert found.candidates[0].estimated.cost.state_rows == pytest.approx(4 * 30 * 10, rel=0.01)
    by_pairs = next(each for each in found.candidates if not isinstance(each.plan.stages[0], Hop))
    assert by_pairs.estimated.cost.state_rows > 20 * 4 * 30 * 10
    # Whatever the form, as many results are expected.
    rates = {round(each.estimated.cost.results, -3) for each in (found.candidates[0], by_pairs)}
    assert max(rates) < 1.1 * min(rates)


@pytest.mark.long
@pytest.mark.parametrize("first", ["hops ", "$0 [] x $1 []; $0 $1 [] x $2 []"])
def test_a_checkpoint_goes_on_with_its_stages_on_any_number_of_cores(first: str) -> None:
    found = {each.layout for each in planned().candidates}
    layouts = {each for each in found if each.stages.startswith(first) and any(each.placements)}
    assert layouts
    for layout in layouts:
        for cores in (1, 2, 4):
            assert planned(of_checkpoint(layout), cores).layout == layout


def test_without_a_known_checkpoint_a_hint_takes_the_pairs_that_it_always_took() -> None:
    layout = planned(UNKNOWN, hint="/*+ PLAN(PSP) */").layout
    assert layout.stages == "$0 [] x $1 []; $0 $1 [] x $2 []"
    assert [(each.route, each.workers) for each in layout.placements if each] == [("psp", None)] * 2


@pytest.mark.long
def test_alternatives_apart_are_not_for_hops() -> None:
    relations = [stream_of({"n": "bigint"})] * 3
    text = "SELECT {} A.n FROM a A, b B, c C PATH (A, B, C) WITHIN (1 SECOND, 2 SECONDS) BIDIRECTIONAL"
    costs = CostSettings(cores=4)

    def hops(hint: str) -> list[Passes]:
        found = plan_over(text.format(hint), relations, None, costs, FREE).candidates
        return [each.plan.passes for each in found if isinstance(each.plan.stages[0], Hop)]

    assert set(hops("")) == {Passes.HULL}
    assert hops("/*+ PASSES(UNION) */") == []


def test_a_layout_of_hops_is_another_plan_of_the_checkpoint() -> None:
    found = {each.layout.stages: each.plan for each in planned().candidates}
    hops = next(plan for stages, plan in found.items() if stages.startswith("hops "))
    marks = [fingerprint(hops, stage) for stage in hops.stages]
    assert len(set(marks)) == 2
    first = hops.stages[0]
    assert isinstance(first, Hop)
    turned = dataclasses.replace(first, meets=(*first.meets[:2], (0,)))
    assert fingerprint(hops, turned) != marks[0]
