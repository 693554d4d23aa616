"""What is enumerated, and which plan is taken."""

import re
from dataclasses import replace

import pytest

from tests.plans import catalogue
from wjoin.parts.kernels.registry import KERNELS, refusal_of
from wjoin.planner.catalog import Estimate, Origin
from wjoin.planner.choose.native_method import pair_joins
from wjoin.planner.choose.plan_candidates import BY_HINT, UNKNOWN_SIZES, shared_terms
from wjoin.planner.cost.model import CostSettings
from wjoin.planner.explain.cost import cost_text, statistics_lines
from wjoin.planner.explain.describe import describe
from wjoin.planner.explain.text import explain_text
from wjoin.planner.plan.physical import Method
from wjoin.planner.plan.probes import chosen_orders
from wjoin.planner.plan.stage_kinds import Bounds
from wjoin.planner.planning import PlannedSelect, plan_select
from wjoin.planner.request import Request

JOIN = """
SELECT {hint} A.obj_id FROM camera1 A, camera2 B, camera3 C
WINDOW (A, B) = 5 SECONDS AND WINDOW (B, C) = 9 SECONDS WHERE A.obj_id = B.obj_id AND B.obj_id = C.obj_id
"""


def plan(sql: str, settings: CostSettings | None = None, **rates: float) -> PlannedSelect:
    """Plan a statement over the catalogue, the rates of some streams given."""
    block = catalogue.first_block(sql)
    relations = []
    for item in block.items:
        relation = catalogue.relation_of(item)
        rate = rates.get(item.alias.name if item.alias else "")
        known = {} if rate is None else {"rate": Estimate(rate, Origin.GIVEN)}
        relations.append(replace(relation, statistics=known))
    types = catalogue.FakeTypes(tuple(relations))
    return plan_select(Request(sql, block, relations, types, "joined", costs=settings or CostSettings()))


KEYED = [name for name in KERNELS if refusal_of((name,), keyed=True, indexed=False) is None]
PLANS = len(Bounds) * len(KEYED)


def shapes(planned: PlannedSelect) -> set[tuple[str, str]]:
    return {(each.plan.stages[0].bounds.value, each.plan.stages[0].kernels[0]) for each in planned.candidates}


def test_every_combination_is_weighed_and_the_first_is_the_plan():
    planned = plan(JOIN.format(hint=""))
    assert len(shapes(planned)) == PLANS
    assert [each.plan.method for each in planned.candidates] == [Method.MULTIWAY] * PLANS + [Method.NATIVE]
    assert planned.candidates[-1].lost == BY_HINT
    assert planned.physical is planned.candidates[0].plan
    assert planned.candidates[0].lost == ""
    assert all(each.lost for each in planned.candidates[1:])
    costs = [each.estimated.cost.seconds for each in planned.candidates[1:-1]]
    assert costs == sorted(costs)


def test_hints_leave_what_they_name():
    assert shapes(plan(JOIN.format(hint="/*+ ALGORITHM(MW), BOUNDS(GCA) */"))) == {("gca", "mw")}
    assert shapes(plan(JOIN.format(hint="/*+ ALGORITHM(NLW) */"))) == {
        ("exact", "nlw"),
        ("lca", "nlw"),
        ("gca", "nlw"),
    }


def test_windows_open_on_one_side_have_exact_bounds_only():
    sql = "SELECT A.obj_id FROM camera1 A, camera2 B WINDOW A = 5 s WHERE A.obj_id = B.obj_id"
    assert shapes(plan(sql)) == {("exact", kernel) for kernel in KEYED}


def test_new_rows_meet_the_slowest_stream_first():
    orders = chosen_orders(plan(JOIN.format(hint=""), A=1000, B=1000, C=1).physical.stages[0])
    assert orders in ({0: (2, 1), 1: (2, 0), 2: (0, 1)}, {0: (2, 1), 1: (2, 0), 2: (1, 0)})
    assert chosen_orders(plan(JOIN.format(hint="")).physical.stages[0]) is None


def test_plans_whose_state_does_not_fit_are_not_taken():
    free = plan(JOIN.format(hint=""))
    smallest = min(each.estimated.cost.state_bytes for each in free.candidates)
    tight = plan(JOIN.format(hint=""), CostSettings(memory=int(smallest) + 1))
    assert tight.candidates[0].estimated.cost.state_bytes == smallest
    larger = [each for each in tight.candidates if each.plan.stages[0].bounds is not Bounds.EXACT]
    assert {each.lost for each in larger} == {"state exceeds wjoin.memory"}


@pytest.mark.parametrize("streams", [8, 12])
def test_enumeration_is_bounded(streams):
    names = "ABCDEFGHIJKL"[:streams]
    sources = ", ".join(f"camera1 {name}" for name in names)
    equal = " AND ".join(f"A.obj_id = {name}.obj_id" for name in names[1:])
    planned = plan(f"SELECT A.obj_id FROM {sources} WINDOW = 5 SECONDS WHERE {equal}", A=10)
    assert len(planned.candidates) <= PLANS + 1
    orders = chosen_orders(planned.physical.stages[0])
    assert list(orders) == list(range(streams))
    for first, order in orders.items():
        assert sorted((first, *order)) == list(range(streams))


def test_every_stage_has_a_kernel_of_its_own():
    sql = """
        SELECT A.obj_id FROM camera1 A, camera2 B, camera3 C WINDOW = 5 SECONDS
        WHERE A.obj_id = B.obj_id AND B.frame = C.frame
    """
    mixes = {tuple(stage.kernels[0] for stage in each.plan.stages) for each in plan(sql).candidates}
    assert len(mixes) == len(KEYED) ** 2


def test_a_stage_that_is_expected_to_find_nothing_is_estimated():
    sql = """
        SELECT A.obj_id FROM table1 A, table2 B, table1 C WINDOW (A, B) BETWEEN 3 DAYS AND 4 DAYS
        AND WINDOW (B, C) = 1 s WHERE A.obj_id = B.obj_id AND B.frame = C.frame
    """
    assert {each.estimated.cost.results for each in plan(sql).candidates} == {0}


def test_tables_may_be_joined_in_another_sequence_of_stages():
    sql = """
        SELECT A.obj_id FROM table1 A, table2 B, table1 C WINDOW = 5 SECONDS
        WHERE A.obj_id = B.obj_id AND B.frame = C.frame
    """
    first = {each.plan.stages[0].members for each in plan(sql).candidates}
    assert first == {(0, 1), (1, 2)}


TABLES = """
SELECT {hint} A.obj_id FROM table1 A, table2 B, table1 C WINDOW = 5 SECONDS
WHERE A.obj_id = B.obj_id AND B.obj_id = C.obj_id
"""


def over_tables(sql: str, distinct: float = 1000, **rows: float) -> PlannedSelect:
    """Plan a statement over the catalogue's tables, the rows of some of them known, an hour of event time."""
    block = catalogue.first_block(sql)
    relations = []
    for item in block.items:
        relation = replace(catalogue.relation_of(item), streaming=False)
        count = rows.get(item.alias.name if item.alias else "")
        if count is not None:
            known = {"rows": count, "rate": count / 3600, "distinct.obj_id": distinct}
            analyzed = {name: Estimate(value, Origin.ANALYZED) for name, value in known.items()}
            relation = replace(relation, statistics=analyzed)
        relations.append(relation)
    return plan_select(Request(sql, block, relations, catalogue.FakeTypes(tuple(relations)), "joined"))


@pytest.mark.parametrize(
    "sql",
    [
        TABLES.format(hint=""),
        "SELECT A.obj_id FROM table1 A, table2 B WINDOW = 1 ms WHERE A.obj_id = B.obj_id",
        "SELECT A.obj_id FROM table1 A, table2 B WINDOW = 5 SECONDS",
        # 3,600 rows by default, which Spark would join in less time.
        "SELECT A.n FROM ticks A, ticks B WINDOW = 5 WHERE A.v = B.v",
    ],
)
def test_tables_of_unknown_size_are_joined_by_wjoins_own_stages(sql):
    for planned in (over_tables(sql), over_tables(sql, A=10)):
        assert planned.physical.method is Method.MULTIWAY
        native = [each for each in planned.candidates if each.plan.method is Method.NATIVE]
        reasons = {each.lost for each in native}
        assert reasons == {UNKNOWN_SIZES}


def test_small_tables_are_joined_by_spark_and_many_rows_of_a_key_are_not():
    sql = TABLES.format(hint="")
    assert over_tables(sql, A=1e3, B=1e3, C=1e3).physical.method is Method.NATIVE
    assert over_tables(sql, distinct=1e5, A=1e5, B=1e5, C=1e5).physical.method is Method.NATIVE
    assert over_tables(sql, distinct=10, A=3e5, B=3e5, C=3e5).physical.method is Method.MULTIWAY


@pytest.mark.parametrize("hint", ["ALGORITHM(HW)", "BOUNDS(LCA)", "PLAN(MULTIWAY)"])
def test_hints_for_wjoins_own_stages_rule_sparks_joins_out(hint):
    planned = over_tables(TABLES.format(hint=f"/*+ {hint} */"), A=1e3, B=1e3, C=1e3)
    assert {each.plan.method for each in planned.candidates} == {Method.MULTIWAY}


def test_streams_are_joined_by_spark_where_a_hint_asks_only():
    small = plan(JOIN.format(hint=""), A=1, B=1, C=1)
    assert small.candidates[-1].plan.method is Method.NATIVE
    assert small.candidates[-1].lost == BY_HINT


@pytest.mark.parametrize(
    "window", ["= 5 SECONDS", "BETWEEN 30 MINUTES AND 31 MINUTES", "BETWEEN 3 DAYS AND 4 DAYS"]
)
def test_spark_compares_all_rows_of_a_key_whatever_the_window(window):
    sql = f"SELECT A.obj_id FROM table1 A, table2 B WINDOW (A, B) {window} WHERE A.obj_id = B.obj_id"
    planned = over_tables(sql, distinct=100, A=36_000, B=36_000)
    (native,) = [each for each in planned.candidates if each.plan.method is Method.NATIVE]
    assert native.estimated.cost.comparisons * 3600 == pytest.approx(36_000 * 360, rel=0.01)


def test_spark_joins_tables_in_the_order_of_the_fewest_rows_and_streams_in_theirs():
    planned = over_tables(TABLES.format(hint=""), distinct=1e5, A=1e5, B=10, C=1e5)
    (native,) = [each.plan for each in planned.candidates if each.plan.method is Method.NATIVE]
    first, second = pair_joins(native)
    assert (first.left, first.right) == ((2,), (1,))
    assert (second.left, second.right) == ((2, 1), (0,))
    streams = plan(JOIN.format(hint="/*+ PLAN(NATIVE) */"), A=1000, B=1, C=1000).physical
    assert chosen_orders(streams.stages[0])[2] == (1, 0)
    assert [(each.left, each.right) for each in pair_joins(streams)] == [((0,), (1,)), ((0, 1), (2,))]


def test_the_cost_of_all_is_set_apart_and_numbers_are_for_people():
    planned = plan(JOIN.format(hint=""))
    head, shared, names, *rows = cost_text(describe(planned)).splitlines()
    assert "per second of event time" in head
    assert re.match("  every plan costs at least .* ms: micro-.*, results .*, reading rows .*$", shared)
    assert names.split()[:2] == ["plan", "extra"]
    assert "micro-batches" not in names
    assert rows[0].startswith("  looks up by key, then by time (exact hw) ")
    assert rows[0].endswith("chosen")
    assert len(rows) == PLANS + 1
    assert rows[-1].startswith("  Spark's own two-way joins (native): ")
    assert rows[-1].endswith(BY_HINT)
    ranked = [each for each in planned.candidates if each.ranked]
    for name, value in shared_terms(planned.candidates).items():
        assert 0 < value <= min(each.estimated.cost.terms[name] for each in ranked)
    huge = plan("SELECT A.frame FROM camera1 A, camera2 B, camera3 C WINDOW = 30 DAYS")
    text = cost_text(describe(huge)) + explain_text(describe(huge))
    assert "more than 1,000 billion" in text
    assert not re.search(r"\de[+-]\d", text)


def test_with_nothing_known_explain_says_so_first():
    lines = explain_text(describe(plan(JOIN.format(hint="")))).splitlines()
    place = lines.index("Statistics")
    assert lines[place + 1].startswith("  No statistics for camera1, camera2, camera3; using defaults (")
    assert "ALTER STREAM camera1 SET STATISTICS (rate = …)" in lines[place + 2]
    some = list(statistics_lines(describe(plan(JOIN.format(hint=""), B=7))))
    assert some[0].startswith("No statistics for camera1, camera3; using defaults (")
    assert [each for each in some if each.startswith("B: 7 rows/s (given)")]
    every = statistics_lines(describe(plan(JOIN.format(hint=""), A=1, B=2, C=3)))
    assert not any("nothing is known" in each for each in every)
