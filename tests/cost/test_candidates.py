"""What is enumerated, and which plan is taken."""

from dataclasses import replace

import pytest

from tests.plans import catalogue
from wjoin.planner.catalog import Estimate, Origin
from wjoin.planner.cost.model import CostSettings
from wjoin.planner.physical import Bounds, Method
from wjoin.planner.plan import PlannedSelect, plan_select

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
    return plan_select(sql, block, relations, types, {}, "joined", {}, settings)


def shapes(planned: PlannedSelect) -> set[tuple[str, str]]:
    return {
        (each.plan.stages[0].bounds.value, each.plan.stages[0].kernel.value) for each in planned.candidates
    }


def test_every_combination_is_weighed_and_the_first_is_the_plan():
    planned = plan(JOIN.format(hint=""))
    assert len(shapes(planned)) == 9
    assert [each.plan.method for each in planned.candidates] == [Method.MULTIWAY] * 9 + [Method.NATIVE]
    assert planned.candidates[-1].lost == "taken where a hint asks for it only"
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
    assert shapes(plan(sql)) == {("exact", "hw"), ("exact", "mw"), ("exact", "nlw")}


def test_new_rows_meet_the_slowest_stream_first():
    orders = plan(JOIN.format(hint=""), A=1000, B=1000, C=1).physical.stages[0].orders
    assert orders == ((2, 1), (2, 0), (0, 1)) or orders == ((2, 1), (2, 0), (1, 0))
    assert plan(JOIN.format(hint="")).physical.stages[0].orders == ()


def test_plans_whose_state_does_not_fit_are_not_taken():
    free = plan(JOIN.format(hint=""))
    smallest = min(each.estimated.cost.state_bytes for each in free.candidates)
    tight = plan(JOIN.format(hint=""), CostSettings(memory=int(smallest) + 1))
    assert tight.candidates[0].estimated.cost.state_bytes == smallest
    larger = [each for each in tight.candidates if each.plan.stages[0].bounds is not Bounds.EXACT]
    assert {each.lost for each in larger} == {"its state does not fit into wjoin.memory"}


@pytest.mark.parametrize(("streams", "most"), [(8, 10), (12, 10)])
def test_enumeration_is_bounded(streams, most):
    names = "ABCDEFGHIJKL"[:streams]
    sources = ", ".join(f"camera1 {name}" for name in names)
    equal = " AND ".join(f"A.obj_id = {name}.obj_id" for name in names[1:])
    planned = plan(f"SELECT A.obj_id FROM {sources} WINDOW = 5 SECONDS WHERE {equal}", A=10)
    assert len(planned.candidates) <= most
    for first, order in enumerate(planned.physical.stages[0].orders):
        assert sorted((first, *order)) == list(range(streams))


def test_every_stage_has_a_kernel_of_its_own():
    sql = """
        SELECT A.obj_id FROM camera1 A, camera2 B, camera3 C WINDOW = 5 SECONDS
        WHERE A.obj_id = B.obj_id AND B.frame = C.frame
    """
    mixes = {tuple(stage.kernel.value for stage in each.plan.stages) for each in plan(sql).candidates}
    assert len(mixes) == 9


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
