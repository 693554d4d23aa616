"""Where the rows of a join without a key lie: what is weighed, what is taken, what a checkpoint keeps."""

import itertools
from dataclasses import replace

import pytest

from tests.plans import catalogue
from wjoin.grammar.errors import WJoinError
from wjoin.parts.routes.route import Placement
from wjoin.planner.catalog import Estimate, Origin
from wjoin.planner.choose.layouts import FREE, NO_CHECKPOINT, UNKNOWN, Layout, LayoutRule, of_checkpoint
from wjoin.planner.cost.model import CostSettings
from wjoin.planner.cost.psp import Spread, shared, spread
from wjoin.planner.cost.stage_estimates import Arrival
from wjoin.planner.explain.describe import describe
from wjoin.planner.explain.plan_words import plan_words
from wjoin.planner.explain.text import explain_text
from wjoin.planner.plan.physical import Method, PhysicalPlan
from wjoin.planner.plan.stage_kinds import Stage
from wjoin.planner.planning import PlannedSelect, plan_select
from wjoin.planner.request import Request

CHEAP = "A.speed + B.speed > 3"
COSTLY = "similar(A.frame, B.frame) > 0.9"
"""A predicate of a millisecond a pair."""

PLAIN = Layout("$0 [] x $1 []", (None,))


def plan(
    where: str = COSTLY,
    cores: int = 4,
    rule: LayoutRule = FREE,
    hint: str = "",
    rate: float = 20.0,
    streams: str = "AB",
    *,
    tables: bool = False,
    throughput: bool = False,
    network: float | None = None,
    heaviest: float | None = None,
    bucket: int | None = None,
) -> PlannedSelect:
    """Plan a join inside a window of five seconds with streams of one rate."""
    kind = "table" if tables else "camera"
    sources = ", ".join(f"{kind}{number % 2 + 1} {name}" for number, name in enumerate(streams))
    sql = f"SELECT {hint} A.obj_id FROM {sources} WINDOW = 5 SECONDS WHERE {where}"
    block = catalogue.first_block(sql)
    known = {"rate": Estimate(rate, Origin.GIVEN)}
    if heaviest is not None:
        known["heaviest.obj_id"] = Estimate(heaviest, Origin.GIVEN)
    if bucket is not None:
        known["bucket.obj_id"] = Estimate(float(bucket), Origin.ANALYZED)
    relations = tuple(replace(catalogue.relation_of(item), statistics=known) for item in block.items)
    costs = CostSettings(cores=cores, partitions=200, throughput=throughput, network=network)
    types = catalogue.FakeTypes(relations)
    asked = Request(
        sql,
        block,
        relations,
        types,
        "joined",
        costs=costs,
        layouts=rule,
        predicates=catalogue.PREDICATES,
    )
    return plan_select(asked)


def stage(planned: PlannedSelect) -> Stage:
    return planned.physical.stages[0]


def lying(plan: PhysicalPlan) -> Placement:
    return plan.stages[0].placement


def place(planned: PlannedSelect) -> Placement:
    return lying(planned.physical)


def test_a_costly_predicate_is_worth_all_workers_and_a_cheap_condition_is_not() -> None:
    costly = place(plan())
    assert costly.route in ("psp", "atr")
    assert costly.workers == 4
    assert place(plan(CHEAP)).route == "single"


def test_one_core_has_nothing_to_share() -> None:
    planned = plan(cores=1)
    assert place(planned).route == "single"
    assert {lying(each.plan).route for each in planned.candidates} == {"single"}


def test_workers_are_weighed_by_powers_of_two_up_to_the_cores() -> None:
    found = {lying(each.plan).workers for each in plan(cores=12).candidates}
    assert found == {None, 2, 4, 8, 12}


def test_a_hint_says_the_number_or_leaves_it_to_the_cost() -> None:
    assert place(plan(hint="/*+ PLAN(PSP, 3) */")).workers == 3
    assert place(plan(hint="/*+ PLAN(PSP) */")).workers == 4
    assert place(plan(CHEAP, hint="/*+ PLAN(PSP) */")).workers in (None, 2)
    # A checkpoint that nothing is known of has the one that needs no statistics.
    assert place(plan(hint="/*+ PLAN(PSP) */", rule=UNKNOWN)).workers is None


def test_where_no_checkpoint_is_known_other_routes_are_shown_and_never_taken() -> None:
    planned = plan(rule=UNKNOWN)
    assert place(planned).route == "single"
    assert planned.layout == PLAIN
    assert {each.lost for each in planned.candidates if lying(each.plan).route == "psp"} == {NO_CHECKPOINT}


def test_tables_take_any_route() -> None:
    assert place(plan(rule=UNKNOWN, tables=True)).route != "single"


def test_a_checkpoint_keeps_its_route_its_workers_and_its_slices_on_any_machine() -> None:
    first = plan()
    for cores, rate, where in ((1, 20.0, COSTLY), (16, 20.0, COSTLY), (4, 0.01, COSTLY)):
        again = plan(where, cores, of_checkpoint(first.layout), rate=rate)
        assert again.layout == first.layout
        assert place(again) == place(first)
    # One of an earlier version, or of a cheap join, has all rows on one worker.
    assert place(plan(rule=of_checkpoint(PLAIN))).route == "single"
    assert place(plan(rule=of_checkpoint(None))).route == "single"


def test_a_hint_goes_before_what_a_checkpoint_keeps() -> None:
    kept = of_checkpoint(replace(PLAIN, placements=(Placement("psp", 4, 78_125),)))
    assert place(plan(hint="/*+ PLAN(PSP) */", rule=kept)).workers == 4
    # Its slices, which were longer once, stay as long.
    assert place(plan(hint="/*+ PLAN(PSP) */", rule=kept)).length == 78_125
    assert place(plan(rule=kept)).length == 78_125
    assert (place(plan(hint="/*+ PLAN(PSP) */")).length or 0) < 78_125
    assert place(plan(hint="/*+ PLAN(PSP, 4) */", rule=kept)).workers == 4
    assert place(plan(hint="/*+ PLAN(PSP, 2) */", rule=kept)).workers == 2
    assert place(plan(hint="/*+ PLAN(ATR) */", rule=kept)).route == "atr"


def test_three_streams_are_joined_by_two_where_that_is_cheaper() -> None:
    where = "similar(A.frame, B.frame) > 0.9 AND similar(B.frame, C.frame) > 0.9"
    planned = plan(where, streams="ABC")
    routes = {tuple(each.placement.route for each in found.plan.stages) for found in planned.candidates}
    chains = set(itertools.product(("psp", "ctr"), repeat=2))
    assert routes == {("single",), ("atr",), *chains}
    words = {plan_words(each.plan) for each in planned.candidates}
    assert {"exact psp(4) mw in 2 stages, A B first", "exact psp(4) mw in 2 stages, B C first"} <= words
    assert place(planned).route != "single"


@pytest.mark.parametrize(("share", "shared_out"), [(0.9, True), (0.001, False)])
def test_a_hot_key_is_shared_out_where_one_worker_would_carry_most(share: float, shared_out: bool) -> None:
    where = "A.obj_id = B.obj_id"
    planned = plan(where, cores=8, rate=3000.0, heaviest=share)
    assert (place(planned).route in ("psp", "atr")) == shared_out
    assert stage(planned).kernels == ("hw",)
    routes = {lying(each.plan).route for each in planned.candidates if each.plan.method is Method.MULTIWAY}
    assert routes == ({"hash", "psp", "atr", "ctr"} if shared_out else {"hash"})
    if shared_out:
        alone = next(each for each in planned.candidates if lying(each.plan).route == "hash")
        assert alone.estimated.cost.terms["idle"] > planned.candidates[0].estimated.cost.terms["idle"]


def test_where_the_heaviest_key_is_known_its_rows_alone_are_in_slices() -> None:
    """They go to all workers, and those of other keys to one: of 30 % that is a third of the rows sent."""
    keyed = "A.obj_id = B.obj_id"
    planned = plan(keyed, cores=8, rate=3000.0, heaviest=0.3, bucket=77)
    assert (place(planned).route, place(planned).bucket) == ("skew", 77)
    skew, psp = (lies(planned, route) for route in ("skew", "psp"))
    assert skew.sent == pytest.approx((1 + 0.3 * 7,) * 2)
    assert psp.sent == pytest.approx((8.0,) * 2)
    assert skew.busy == pytest.approx(8, rel=0.01)
    text = explain_text(describe(planned))
    assert "each key is on one of 8 workers, except the most frequent key:" in text
    # No key is heavy enough, or none is known.
    assert place(plan(keyed, cores=8, rate=3000.0, heaviest=0.001, bucket=77)).route == "hash"
    unknown = plan(keyed, cores=8, rate=3000.0, heaviest=0.3)
    assert "skew" not in {lying(each.plan).route for each in unknown.candidates}


def lies(planned: PlannedSelect, route: str) -> Spread:
    """Return how the rows of a candidate on eight workers lie."""
    found = next(
        each
        for each in planned.candidates
        if (lying(each.plan).route, lying(each.plan).workers) == (route, 8)
    )
    (estimated,) = found.estimated.stages
    arrival = Arrival(1_000_000, 3_600_000_000, True)
    return spread(found.plan, found.plan.stages[0], estimated.inputs, 200, 8, arrival)


def test_a_checkpoint_keeps_the_bucket_whatever_is_known_later() -> None:
    keyed = "A.obj_id = B.obj_id"
    first = plan(keyed, cores=8, rate=3000.0, heaviest=0.3, bucket=77)
    kept = of_checkpoint(first.layout)
    for again in (
        plan(keyed, cores=2, rule=kept),
        plan(keyed, cores=8, rate=3000.0, heaviest=0.3, bucket=5, rule=kept),
        plan(keyed, cores=8, rule=kept, hint="/*+ PLAN(SKEW) */"),
    ):
        assert (place(again).route, place(again).bucket, again.layout) == (
            "skew",
            77,
            first.layout,
        )


def test_a_hint_for_the_heaviest_key_needs_to_know_it() -> None:
    keyed = "A.obj_id = B.obj_id"
    asked = plan(keyed, hint="/*+ PLAN(SKEW, 3) */", bucket=0)
    assert (place(asked).route, place(asked).bucket, place(asked).workers) == (
        "skew",
        0,
        3,
    )
    mixed = plan(f"{keyed} AND B.speed + C.speed > 3", hint="/*+ PLAN(SKEW) */", streams="ABC", bucket=9)
    assert [each.placement.route for each in mixed.physical.stages] == ["skew", "single"]
    for where in (keyed, CHEAP):
        with pytest.raises(WJoinError, match="whose most frequent value is known"):
            plan(where, hint="/*+ PLAN(SKEW) */", bucket=None if where == keyed else 9)


def test_hints_slice_joins_on_a_key_as_well() -> None:
    keyed = "A.obj_id = B.obj_id"
    assert place(plan(keyed, hint="/*+ PLAN(PSP, 2) */")).route == "psp"
    three = f"{keyed} AND B.obj_id = C.obj_id"
    assert place(plan(three, hint="/*+ PLAN(ATR, 2) */", streams="ABC")).route == "atr"
    mixed = f"{keyed} AND B.speed + C.speed > 3"
    found = plan(mixed, hint="/*+ PLAN(ATR, 2) */", streams="ABC").physical.stages
    assert [each.placement.route for each in found] == ["hash", "atr"]
    with pytest.raises(WJoinError, match="it is for two streams"):
        plan(three, hint="/*+ PLAN(PSP) */", streams="ABC")


def test_long_slices_cost_few_copies_and_short_ones_keep_all_busy() -> None:
    found = {
        lying(each.plan).length: each.estimated.cost
        for each in plan().candidates
        if lying(each.plan).route == "atr" and lying(each.plan).workers == 4
    }
    short, long = min(found), max(found)
    assert (short, long) == (125_000, 20_000_000)
    assert found[short].state_rows > found[long].state_rows
    assert found[short].terms["idle"] < found[long].terms["idle"]


def test_throughput_is_weighed_over_large_micro_batches() -> None:
    latency = {plan_words(each.plan): each for each in plan().candidates}
    throughput = {plan_words(each.plan): each for each in plan(throughput=True).candidates}
    one, other = (
        next(each for name, each in found.items() if name.startswith("exact psp(2)"))
        for found in (latency, throughput)
    )
    assert other.estimated.cost.terms["micro-batches"] == pytest.approx(
        one.estimated.cost.terms["micro-batches"] / 60
    )


@pytest.mark.parametrize(
    ("slices", "workers", "busy"), [(0.3, 4, 1), (1, 4, 1), (4, 4, 4), (5, 4, 2.5), (8, 4, 4), (100, 4, 4)]
)
def test_the_worker_with_most_slices_sets_the_pace(slices: float, workers: int, busy: float) -> None:
    assert shared(slices, workers) == busy


@pytest.mark.parametrize(
    ("copies", "interval", "busy"), [(2, 1.0, 7.4), (4, 1.0, 6.6), (2, 0.1, 4.9), (4, 0.1, 2.4)]
)
def test_copies_save_visits_and_keep_fewer_workers_busy(copies: int, interval: float, busy: float) -> None:
    """``busy``: by counting the pairs of 8 workers, those of all over those of the one with most."""
    planned = plan(hint=f"/*+ PLAN(CTR, {copies}) */", cores=8)
    inputs = planned.candidates[0].estimated.stages[0].inputs
    arrival = Arrival(interval * 1e6, 1e9, streaming=True)
    chosen = replace(stage(planned), placement=replace(place(planned), workers=8, length=78_125))
    lies = spread(planned.physical, chosen, inputs, 200, 8, arrival)
    assert lies.kept == (copies, copies)
    assert lies.searching == (8 / copies, 8 / copies)
    assert lies.sent == (8 / copies + copies - 1,) * 2
    assert lies.busy == pytest.approx(busy, rel=0.1)


def test_copies_are_weighed_and_asked_for_by_a_hint() -> None:
    weighed = {
        (lying(each.plan).workers, lying(each.plan).copies)
        for each in plan(cores=16).candidates
        if lying(each.plan).route == "ctr"
    }
    assert weighed == {(4, 2), (8, 2), (8, 4), (16, 2), (16, 4), (16, 8)}
    asked = plan(hint="/*+ PLAN(CTR, 3) */", rule=UNKNOWN)
    assert (place(asked).route, place(asked).workers, place(asked).copies) == (
        "ctr",
        None,
        3,
    )
    kept = of_checkpoint(replace(PLAIN, placements=(Placement("ctr", 8, 78_125, copies=4),)))
    goes_on = place(plan(rule=kept, cores=2))
    assert goes_on == Placement("ctr", 8, 78_125, copies=4)
    assert place(plan(hint="/*+ PLAN(CTR, 2) */", rule=kept)).copies == 2
    shown = explain_text(describe(plan(hint="/*+ PLAN(CTR, 4) */", rule=kept)))
    assert "assigned to 8 workers round-robin, 4 copies each" in shown
    assert (
        "A: each row is stored on the workers of its slice and probes the fewest workers that hold all slices"
        in shown
    )


@pytest.mark.parametrize(("cores", "busy"), [(6, 6), (4, 3), (1, 1)])
def test_more_workers_than_cores_take_turns(cores: int, busy: float) -> None:
    planned = plan(hint="/*+ PLAN(PSP, 6) */")
    inputs = planned.candidates[0].estimated.stages[0].inputs
    arrival = Arrival(1e6, 1e9, streaming=True)
    lies = spread(planned.physical, stage(planned), inputs, 200, cores, arrival)
    assert lies.workers == 6
    assert lies.busy == pytest.approx(busy, rel=0.02)
    assert lies.sent == (6.0, 6.0)
    assert lies.kept == (1.0, 1.0)


def test_explain_warns_where_the_network_sets_the_pace() -> None:
    hint = "/*+ PLAN(PSP, 16) */"
    slow = plan(CHEAP, 16, hint=hint, rate=1000.0, network=1e6)
    fast = plan(CHEAP, 16, hint=hint, rate=1000.0, network=1e9)
    assert fast.candidates[0].estimated.cost.network < 1 < slow.candidates[0].estimated.cost.network
    assert "warning: sending rows to the workers takes" in explain_text(describe(slow))
    assert "sending rows" not in explain_text(describe(fast))


def test_explain_says_how_rows_lie() -> None:
    shown = explain_text(describe(plan(hint="/*+ PLAN(ATR, 4) */")))
    assert "slices of 125 ms of event time, assigned to 4 workers round-robin" in shown
    assert "A: each row goes to the worker of its slice" in shown
    assert "B: each row probes the workers in reach (4 of 4)" in shown
    assert "A: each row is stored on the worker of its slice and probes the workers in reach (4 of 4)" in (
        explain_text(describe(plan(hint="/*+ PLAN(PSP, 4) */")))
    )


BAND = "abs(A.speed - B.speed) <= 5 AND similar(A.frame, B.frame) > 0.9"


def test_ranges_of_values_are_weighed_where_a_band_is_closed() -> None:
    of_four = [each for each in plan(BAND).candidates if lying(each.plan).workers == 4]
    found = {lying(each.plan).route: each for each in of_four}
    assert "range" not in {lying(each.plan).route for each in plan("A.speed < B.speed").candidates}
    assert lying(found["range"].plan).length == pytest.approx(80)
    # A hundredth of the pairs is inside, so all values are a hundred widths; each worker gets two ranges.
    many = [lying(each.plan) for each in plan(BAND, cores=32).candidates]
    lengths = [each.length for each in many if each.route == "range" and each.workers == 32]
    assert lengths == pytest.approx([1000 / 64] * len(lengths))
    times, values = (found[name].estimated.cost for name in ("psp", "range"))
    assert values.shuffled_bytes < times.shuffled_bytes / 2
    with pytest.raises(WJoinError, match="closed on both sides"):
        plan(hint="/*+ PLAN(RANGE) */")


@pytest.mark.parametrize("cores", [1, 2, 4])
@pytest.mark.parametrize(
    "where",
    ["abs(A.speed - B.speed) <= 5", "abs(A.speed - B.speed) <= 5 AND B.speed < C.speed"],
)
def test_ranges_of_values_for_one_link_of_three_streams(cores: int, where: str) -> None:
    """The other link has rows by time, and all on one worker where there is one core."""
    planned = plan(where, cores, hint="/*+ PLAN(RANGE, 2) */", streams="ABC")
    routes = [each.placement.route for each in planned.physical.stages]
    assert routes == ["range", "single" if cores == 1 else "psp"]


def test_ranges_of_values_stay_on_a_checkpoint() -> None:
    asked = plan(BAND, hint="/*+ PLAN(RANGE, 3) */")
    lies = place(asked)
    assert (lies.route, lies.workers, lies.band) == ("range", 3, 0)
    kept = asked.layout
    assert place(plan(BAND, rule=of_checkpoint(kept), cores=2)) == lies
    shown = explain_text(describe(asked))
    assert "of A.speed and B.speed, assigned to 3 workers round-robin" in shown
    assert (
        "A: each row is stored on the worker of its slice and probes the workers in reach (1.12 of 3)"
        in shown
    )


@pytest.mark.parametrize("order", ["AB", "BA"])
def test_the_input_in_slices_is_the_one_whose_copies_would_cost_most(order: str) -> None:
    """PSP 2009, section 7: rows of the others are copied to each slice of the master that they can reach."""
    rates = {"A": 1000.0, "B": 10.0}
    sources = ", ".join(f"camera{'AB'.index(name) + 1} {name}" for name in order)
    sql = f"SELECT /*+ PLAN(ATR, 8) */ A.obj_id FROM {sources} WINDOW = 60 SECONDS WHERE {COSTLY}"
    block = catalogue.first_block(sql)
    relations = tuple(
        replace(catalogue.relation_of(item), statistics={"rate": Estimate(rates[name], Origin.GIVEN)})
        for item, name in zip(block.items, order, strict=True)
    )

    def planned(rule: LayoutRule) -> PlannedSelect:
        asked = Request(
            sql,
            block,
            relations,
            catalogue.FakeTypes(relations),
            "joined",
            costs=CostSettings(cores=8, partitions=200),
            layouts=rule,
            predicates=catalogue.PREDICATES,
        )
        return plan_select(asked)

    found = planned(FREE)
    taken = place(found)
    assert (taken.route, taken.master) == ("atr", order.index("A"))
    assert place(planned(of_checkpoint(found.layout))) == taken
    first = of_checkpoint(replace(found.layout, placements=(replace(taken, master=0),)))
    assert place(planned(first)).master == 0
