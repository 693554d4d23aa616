"""Which sequence of stages a join takes: any over tables, on streams what the checkpoint allows."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.plans import catalogue
from wjoin.planner.catalog import Estimate, Origin
from wjoin.planner.choose.layouts import (
    FREE,
    NO_CHECKPOINT,
    OTHER_CHECKPOINT,
    UNKNOWN,
    Layout,
    LayoutRule,
    of_checkpoint,
)
from wjoin.planner.cost.model import CostSettings
from wjoin.planner.explain.cost import faster_lines
from wjoin.planner.explain.describe import describe
from wjoin.planner.planning import PlannedSelect, plan_select
from wjoin.planner.request import Request
from wjoin.udfs.predicate import Predicate

JOIN = """
SELECT {hint} A.obj_id FROM camera1 A, camera2 B, camera3 C
WINDOW (A, B) = 5 SECONDS AND WINDOW (B, C) = 9 SECONDS WHERE A.obj_id = B.obj_id AND B.frame = C.frame
"""
FIRST = Layout("$0 [$0 . obj_id] x $1 [$1 . obj_id]; $0 $1 [$1 . frame] x $2 [$2 . frame]", (None, None))
OTHER = Layout("$1 [$1 . frame] x $2 [$2 . frame]; $1 $2 [$1 . obj_id] x $0 [$0 . obj_id]", (None, None))

FEW = {"distinct.obj_id": 2.0, "distinct.frame": 1e6}
"""Statistics by which joining A and B first makes far more combinations than joining B and C first."""


def plan(
    rule: LayoutRule = UNKNOWN,
    known: Mapping[str, float] = FEW,
    hint: str = "",
    memory: int | None = None,
    sql: str = JOIN,
    predicates: Mapping[str, Predicate] | None = None,
    cores: int | None = None,
) -> PlannedSelect:
    """Plan the join with the same statistics of every stream."""
    sql = sql.format(hint=hint)
    block = catalogue.first_block(sql)
    given = {name: Estimate(value, Origin.GIVEN) for name, value in known.items()}
    relations = tuple(replace(catalogue.relation_of(item), statistics=given) for item in block.items)
    types = catalogue.FakeTypes(relations)
    costs = CostSettings(memory=memory, cores=cores)
    return plan_select(
        Request(sql, block, relations, types, "joined", costs=costs, layouts=rule, predicates=predicates)
    )


def lost(rule: LayoutRule) -> set[str]:
    return {each.lost for each in plan(rule).candidates if each.lost in (NO_CHECKPOINT, OTHER_CHECKPOINT)}


def test_the_first_start_takes_the_cheapest_sequence() -> None:
    assert plan(FREE).layout == OTHER
    assert plan(FREE, known={}).layout == FIRST
    assert plan(FREE).physical.stages[0].members == (1, 2)
    assert lost(FREE) == set()


def test_a_checkpoint_stays_with_its_sequence_whatever_the_statistics_say() -> None:
    assert plan(of_checkpoint(OTHER), known={}).layout == OTHER
    assert plan(of_checkpoint(FIRST)).layout == FIRST
    assert lost(of_checkpoint(FIRST)) == {OTHER_CHECKPOINT}


@pytest.mark.parametrize("kept", [None, Layout("$0 [$0 . x] x $1 [$1 . x]", (None,))])
def test_a_checkpoint_without_a_sequence_of_the_statement_has_the_first_one(kept: Layout | None) -> None:
    assert plan(of_checkpoint(kept)).layout == FIRST


def test_where_no_checkpoint_is_known_others_are_shown_and_never_taken() -> None:
    assert plan().layout == FIRST
    assert lost(UNKNOWN) == {NO_CHECKPOINT}
    # Not even where the first one does not fit into the memory.
    assert plan(memory=1).layout == FIRST
    assert plan(hint="/*+ PLAN(NATIVE) */").layout == FIRST


def test_explain_tells_of_a_plan_that_only_the_state_forbids() -> None:
    costly = "SELECT {hint} A.frame FROM camera1 A, camera2 B WINDOW = 5 s WHERE costly(A.frame, B.frame) > 0"
    predicates = {
        "costly": Predicate("costly", lambda left, right: left, "double", cost_us=100, selectivity=0.5)
    }

    def told(rule: LayoutRule, hint: str = "") -> list[str]:
        planned = plan(rule, {}, hint, sql=costly, predicates=predicates, cores=2)
        return list(faster_lines(describe(planned)))

    assert told(UNKNOWN) == [
        "2 times as fast: looks up by time (exact psp(2) mw)",
        (
            "  INSERT INTO uses it with a new checkpoint, and this statement names none; "
            "a SELECT uses it with the hint PLAN(PSP)"
        ),
    ]
    assert told(FREE) == told(UNKNOWN, "/*+ PLAN(PSP) */") == []
    begun = list(faster_lines(describe(plan(of_checkpoint(FIRST)))))
    assert begun[0].endswith("times as fast: looks up by key, then by time (exact hw in 2 stages, B C first)")
    assert begun[1:] == ["  it needs a new checkpoint"]


def test_a_join_of_tables_takes_the_cheapest_sequence_under_every_rule() -> None:
    tables = JOIN
    for camera, table in (("camera1", "table1"), ("camera2", "table2"), ("camera3", "table1")):
        tables = tables.replace(camera, table)
    assert plan(UNKNOWN, sql=tables).layout == OTHER
    assert plan(of_checkpoint(FIRST), sql=tables).layout == OTHER
