"""What a stage checks of the rows of several streams: by which columns, and whether that decides."""

from tests.plans.catalogue import plan
from wjoin.planner.plan.checks import Band, Comparison, Condition, PredicateCheck, of_kind

EVERY_KIND = """
    SELECT A.v FROM ticks A, ticks B WINDOW = 5 WHERE A.v < B.v AND A.w + B.w > 7 AND abs(A.w - B.w) <= 2
    AND edit_distance(A.name, B.name) < 3
"""


def test_checks_of_all_kinds_are_in_one_tuple_and_what_does_not_decide_is_left_to_spark() -> None:
    planned = plan(EVERY_KIND)
    (stage,) = planned.physical.stages
    kinds = {type(each): each.decides for each in stage.checks}
    assert kinds == {Band: False, Comparison: True, Condition: False, PredicateCheck: True}
    tested = [each.condition for each in planned.residual if not each.unread]
    assert tested == ["A.w + B.w > 7", "abs(A.w - B.w) <= 2"]
    assert len(of_kind(stage.checks, Condition)) == len(tested)
    assert {each.streams for each in stage.checks} == {frozenset({0, 1})}
    assert all(stage.checks[-1] is each.checks[-1] for probe in stage.probes for each in probe.steps)


def test_a_band_that_a_comparison_of_the_stage_implies_is_searched_by_and_not_tested() -> None:
    (stage,) = plan(EVERY_KIND).physical.stages
    implied = [band for band in stage.bands if not band.tested]
    (comparison,) = of_kind(stage.checks, Comparison)
    assert [band.columns for band in implied] == [comparison.columns]
    steps = [step for probe in stage.probes for step in probe.steps]
    assert all(set(step.checks) == set(stage.checks) - set(implied) for step in steps)
