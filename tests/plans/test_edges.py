"""What travels along the edges of a plan, and the shape of its probes."""

import dataclasses

from tests.kit.planned import stream_of
from tests.plans.catalogue import plan
from wjoin.planner.choose.native_method import native_refusal
from wjoin.planner.plan.edges import result_columns
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.steps import Rows
from wjoin.planner.shape.decompose import decompose

TWO_STAGES = """
    SELECT C.door, A.code AS shown FROM badge A, badge B, badge C WINDOW = 5 SECONDS
    WHERE A.person = B.person AND B.code = C.code AND A.level > 3 AND A.door < B.door
"""


def expressions(plan: PhysicalPlan, names: tuple[str, ...]) -> set[str]:
    """Return the scan columns among block columns, as text, and the others by their names."""
    columns = {
        f"c{stream}_{number}": column.expression
        for stream, scan in enumerate(plan.streams)
        for number, column in enumerate(scan.columns)
    }
    return {columns.get(name, name) for name in names}


def test_an_edge_has_what_is_still_read_and_nothing_else() -> None:
    planned = plan(TWO_STAGES).physical
    first, second = planned.stages
    assert [each.members for each in first.inputs] == [(0,), (1,)]
    a, b = (expressions(planned, each.columns) for each in first.inputs)
    # Of A: its time and key, what is shown, what is compared. Its level was only filtered by.
    assert a == {"t0", "k0_0", "A.code", "A.door"}
    assert b == {"t1", "k1_0", "k1_1", "B.code", "B.door"}
    (joined,) = [each for each in second.inputs if each.stage == 0]
    # The first key and the comparison are done with; the real second key is compared with C's.
    assert expressions(planned, joined.columns) == {"t0", "t1", "k1_1", "A.code", "B.code"}
    assert result_columns(planned, 0) == joined.columns
    assert expressions(planned, result_columns(planned, 1)) == {"C.door", "A.code"}


def test_match_functions_need_the_times_and_a_count_needs_some_column() -> None:
    timed = plan("SELECT MATCH_TIME() AS t FROM camera1 A, camera2 B WINDOW = 5 s").physical
    assert result_columns(timed, 0) == ("t0", "t1")
    counted = plan("SELECT count(*) FROM camera1 A, camera2 B WINDOW = 5 s").physical
    assert result_columns(counted, 0) == ("t0",)


def test_on_streams_all_inputs_begin_results_and_new_rows_meet_once() -> None:
    planned = plan(
        "SELECT A.v FROM ticks A, ticks B, ticks C WINDOW = 5 WHERE A.v = B.v AND B.v = C.v"
    ).physical
    (stage,) = planned.stages
    met = {(probe.origin, step.input): step.rows for probe in stage.probes for step in probe.steps}
    assert {pair for pair, rows in met.items() if rows is Rows.ALL} == {(1, 0), (2, 0), (2, 1)}
    assert {pair for pair, rows in met.items() if rows is Rows.OLD} == {(0, 1), (0, 2), (1, 2)}
    assert all(each.stored for each in stage.inputs)


def test_over_tables_the_last_input_alone_begins_results_and_is_not_stored() -> None:
    sql = "SELECT A.frame FROM table1 A, table2 B WINDOW = 5 s WHERE A.obj_id = B.obj_id"
    (stage,) = plan(sql).physical.stages
    (probe,) = stage.probes
    assert (probe.origin, probe.order) == (1, (0,))
    assert [each.stored for each in stage.inputs] == [True, False]


def test_passes_are_probes_that_exclude_each_other() -> None:
    hint = "/*+ PASSES(UNION) */"
    path = "PATH (A, B, C) WITHIN (2, 3) BIDIRECTIONAL"
    planned = plan(f"SELECT {hint} A.v FROM ticks A, ticks B, ticks C {path}").physical
    (stage,) = planned.stages
    assert [probe.origin for probe in stage.probes] == [0, 0, 1, 1, 2, 2]
    assert [len(probe.excluded) for probe in stage.probes] == [0, 1] * 3
    assert {probe.windows for probe in stage.probes} == set(planned.branches)


def test_sparks_own_joins_make_no_results_that_lack_a_row() -> None:
    planned = plan("SELECT A.v FROM ticks A, ticks B WINDOW = 5 WHERE A.v = B.v")
    draft, graph = decompose(2, planned.classes), planned.graph
    outer = dataclasses.replace(planned.output, optional=frozenset({1}))
    padded = dataclasses.replace(planned.physical, outputs=(outer,))
    assert native_refusal(planned.physical, draft, graph, ()) is None
    streams = [stream_of({"v": "int"})]
    assert native_refusal(padded, draft, graph, streams) is not None


def test_a_statement_reads_the_output_of_its_own_name_in_a_plan_of_several() -> None:
    planned = plan("SELECT A.v, MATCH_TIME() FROM ticks A, ticks B WINDOW = 5 WHERE A.v = B.v")
    other = dataclasses.replace(planned.output, sink="other", match=frozenset())
    shared = dataclasses.replace(planned.physical, outputs=(other, planned.output))
    assert dataclasses.replace(planned, physical=shared).output.match == {"time"}
