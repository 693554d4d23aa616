"""Asking for approximate joins: what is planned, what EXPLAIN says, and what is refused."""

from dataclasses import replace

import pytest

from tests.kit.planned import plan_over, stream_of
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.hints import APPROXIMATE_PLANS
from wjoin.parts.routes.registry import ROUTES, routes_of
from wjoin.planner.choose.layouts import FREE
from wjoin.planner.cost.model import CostSettings
from wjoin.planner.explain.cost import cost_text
from wjoin.planner.explain.describe import describe
from wjoin.planner.explain.text import explain_text
from wjoin.planner.plan.approximation import Approximation
from wjoin.planner.plan.block_columns import stored_column
from wjoin.planner.plan.counting import goes_by
from wjoin.planner.plan.stage_kinds import Hop, Join

HOMED = stream_of({"k": "bigint", "v": "string", "region": "int"}, {"rate": 5000}, home="region")
COSTS = CostSettings(cores=2, partitions=16)
KEYS_OF_THREE = "WHERE A.k = B.k AND B.k = C.k"
JOIN = "FROM a A, b B WINDOW (A, B) = 5 s WHERE A.k = B.k"


def planned(hints: str, rest: str = JOIN, relations=(HOMED, HOMED), columns: str = "A.v, B.v AS w", **more):
    text = f"SELECT /*+ {hints} */ {columns} {rest}" if hints else f"SELECT {columns} {rest}"
    return plan_over(text, relations, costs=COSTS, **more)


def test_every_summary_has_a_plan_of_its_name() -> None:
    assert {each.upper() for each in routes_of("approximate")} == set(APPROXIMATE_PLANS)


def test_no_join_is_approximate_unasked() -> None:
    found = planned("")
    assert found.physical.approximate is None
    assert not any(ROUTES[stage.placement.route].approximate for stage in found.physical.stages)
    assert all(each.plan.approximate is None for each in found.candidates)


@pytest.mark.parametrize(
    ("hints", "route", "workers", "asked"),
    [
        ("PLAN(BASE, 4)", "base", 4, (None, None)),
        ("PLAN(BLOOM)", "bloom", None, (None, None)),
        ("approximate(error = 0.15), PLAN(dft, 16)", "dft", 16, (0.15, None)),
        ("APPROXIMATE(messages=2)", "digest", None, (None, 2.0)),
    ],
)
def test_hints(hints: str, route: str, workers: int | None, asked: tuple[float | None, float | None]) -> None:
    plan = planned(hints).physical
    (stage,) = plan.stages
    assert isinstance(stage, Join) and plan.approximate is not None
    assert (stage.placement.route, stage.placement.workers) == (route, workers)
    assert (plan.approximate.error, plan.approximate.messages) == asked
    # The home travels with the rows.
    assert all(plan.streams[n].home == 1 and f"k{n}_1" in each.columns for n, each in enumerate(stage.inputs))


def test_the_home_of_a_row_is_a_column_of_its_own() -> None:
    homed = stream_of({"k": "bigint", "depot": "bigint"}, home="depot")
    plan = planned(
        "PLAN(BLOOM, 4)", relations=(homed, homed), columns="A.depot, B.k, B.depot AS other"
    ).physical
    for number in range(2):
        (depot,) = (n for n, each in enumerate(plan.streams[number].columns) if each.output == "depot")
        stored = stored_column(plan, number, depot)
        assert stored.name != f"k{number}_1" and not stored.restored
    by_key = stream_of({"k": "bigint"}, home="k")
    plan = planned("PLAN(BLOOM, 4)", relations=(by_key, by_key), columns="A.k, B.ts").physical
    assert stored_column(plan, 0, 0).name == "k0_0"


def test_a_setting_is_for_joins_that_can_have_it() -> None:
    settings = {"APPROXIMATE": "messages = 2", "PLAN": "bloom"}
    assert planned("", settings=settings).physical.stages[0].placement.route == "bloom"
    plain = stream_of({"k": "bigint", "v": "string"})
    assert planned("", relations=(plain, plain), settings=settings).physical.approximate is None
    assert planned("", settings={"APPROXIMATE": "off"}).physical.approximate is None


def test_three_streams_meet_one_after_the_other() -> None:
    rest = f"FROM a A, b B, c C WINDOW = 5 s {KEYS_OF_THREE}"
    plan = planned("PLAN(DIGEST, 4)", rest, (HOMED,) * 3).physical
    assert len(plan.stages) == 2
    assert all(isinstance(each, Hop) and each.placement.route == "digest" for each in plan.stages)


@pytest.mark.parametrize(
    ("hints", "rest", "says"),
    [
        ("PLAN(BLOOM)", "FROM a A LEFT JOIN b B ON A.k = B.k WINDOW (A, B) = 5 s", "inner joins only"),
        ("PLAN(BLOOM)", "FROM a A, b B WINDOW (A, B) = 5 s", "one key"),
        ("APPROXIMATE(error = 0.1)", f"{JOIN} GROUP BY A.v, B.v", "no groups"),
    ],
)
def test_what_no_approximate_join_has(hints: str, rest: str, says: str) -> None:
    with pytest.raises(WJoinError, match=says) as raised:
        planned(hints, rest)
    assert raised.value.code == "WJ505" and raised.value.help


def test_rows_live_by_the_part_of_their_source_where_nothing_else_is_declared() -> None:
    from_files, from_topic = (replace(HOMED, home="", part=part) for part in ("file", "partition"))
    found = planned("PLAN(BLOOM, 4)", relations=(from_files, from_topic))
    codes = [each.codes[each.home or 0] for each in found.physical.streams]
    assert [each.exact for each in codes] == [False, True]
    text = explain_text(describe(found))
    assert "A: each row is stored at the node of its file" in text
    assert "B: each row is stored at the node of its partition of the topic" in text
    assert "__wjoin" not in text
    assert "A.region" in explain_text(
        describe(planned("PLAN(BLOOM, 4)", relations=(replace(HOMED, part="file"), HOMED)))
    )


@pytest.mark.parametrize(
    "rows", ["A = 3 ROWS", "A SINCE (A.v = 'x')", "A = 3 ROWS PER KEY", "A = 3 ROWS PER HOME"]
)
def test_windows_of_rows_count_at_all_nodes(rows: str) -> None:
    plan = planned("PLAN(BLOOM, 4)", f"FROM a A, b B WINDOW (A, B) = 5 s AND WINDOW {rows} WHERE A.k = B.k")
    (window,) = plan.physical.counted
    assert plan.physical.approximate is not None and goes_by(plan.physical, 0, window) is None


@pytest.mark.parametrize("hint", ["PLAN(BLOOM, 4)", ""])
def test_rows_of_a_home_are_counted_by_what_it_is_and_not_by_its_node(hint: str) -> None:
    found = planned(hint, "FROM a A, b B WINDOW (A, B) = 5 s AND WINDOW A = 3 ROWS PER HOME WHERE A.k = B.k")
    (window,) = found.physical.counted
    scan = found.physical.streams[0]
    assert [scan.codes[each].expressions for each in window.keys] == [("A.region",)]
    assert scan.home not in window.keys
    assert "fewer than 3 rows of A of the same home" in explain_text(describe(found))


def test_nothing_tells_the_homes_of_the_rows_of_a_view() -> None:
    rest = "FROM a A, b B WINDOW (A, B) = 5 s AND WINDOW A = 3 ROWS PER HOME WHERE A.k = B.k"
    for derived, reason in ((True, "no view or subquery tells"), (False, "nothing tells")):
        homeless = replace(HOMED, home="", derived=derived)
        with pytest.raises(WJoinError, match=f"{reason} where the rows of A live"):
            planned("", rest, (homeless, HOMED))


def test_windows_of_rows_of_three_streams_are_counted_in_hops() -> None:
    rest = (
        f"FROM a A, b B, c C WINDOW A = 3 ROWS AND WINDOW B = 2 ROWS PER KEY AND WINDOW = 5 s {KEYS_OF_THREE}"
    )
    plan = planned("PLAN(DIGEST, 4)", rest, (HOMED,) * 3).physical
    assert len(plan.counted) == 2 and all(isinstance(each, Hop) for each in plan.stages)
    # Without APPROXIMATE they stay in one stage, or in a chain of joins of two.
    exact = planned("", rest, (HOMED,) * 3)
    assert not any(isinstance(each, Hop) for found in exact.candidates for each in found.plan.stages)


def test_hops_have_one_pass() -> None:
    rest = f"FROM a A, b B, c C PATH (A, B, C) WITHIN (2 s, 2 s) BIDIRECTIONAL {KEYS_OF_THREE}"
    with pytest.raises(WJoinError, match=r"PASSES\(UNION\) cannot apply: an approximate") as raised:
        planned("PLAN(BLOOM), PASSES(UNION)", rest, (HOMED,) * 3)
    assert raised.value.code == "WJ504"
    # What a session prefers is for joins that can have it.
    assert planned("PLAN(BLOOM)", rest, (HOMED,) * 3, settings={"PASSES": "union"}).physical.approximate


def test_remedies_name_what_is_asked_for() -> None:
    names = "ABCDEFGHIJ"
    keys = " AND ".join(f"A.k = {each}.k" for each in names[1:])
    with pytest.raises(WJoinError, match="has 9 streams at most") as raised:
        planned("PLAN(BLOOM)", f"FROM {', '.join(names)} WINDOW = 5 s WHERE {keys}", (HOMED,) * 10)
    assert raised.value.help == "join the others to its results, or leave PLAN(BLOOM) out"
    with pytest.raises(WJoinError, match="needs one key") as raised:
        planned("PLAN(BLOOM), APPROXIMATE(messages = 1)", "FROM a A, b B WINDOW (A, B) = 5 s")
    assert raised.value.help == "write one, for example A.id = B.id, or leave APPROXIMATE and PLAN(BLOOM) out"


def test_aggregates_homes_and_exact_plans() -> None:
    with pytest.raises(WJoinError, match="no groups or aggregates"):
        planned("PLAN(BLOOM)", columns="count(*)")
    homeless = replace(HOMED, home="")
    with pytest.raises(WJoinError, match="where the rows of B live"):
        planned("PLAN(BLOOM)", relations=(HOMED, homeless))
    with pytest.raises(WJoinError, match="which no view or subquery tells"):
        planned("PLAN(BLOOM)", relations=(HOMED, replace(homeless, derived=True)))
    with pytest.raises(WJoinError, match="is exact") as raised:
        planned("PLAN(PSP), APPROXIMATE(error = 0.1)")
    assert raised.value.code == "WJ504"


@pytest.mark.parametrize(
    "hint", ["error = 1", "error = 0", "messages = 0", "error", "speed = 2", "error = a"]
)
def test_goals_that_are_none(hint: str) -> None:
    with pytest.raises(WJoinError) as raised:
        planned(f"APPROXIMATE({hint})")
    assert raised.value.code == "WJ112"


def test_tables_have_an_exact_join() -> None:
    tables = (replace(HOMED, streaming=False),) * 2
    found = planned("APPROXIMATE(error = 0.1), PLAN(BLOOM, 4)", relations=tables)
    assert found.physical.approximate is None
    assert "over tables the join is exact" in explain_text(describe(found))


def test_explain_says_what_is_sent_where_and_what_is_lost() -> None:
    text = explain_text(describe(planned("APPROXIMATE(error = 0.1), PLAN(BLOOM, 16)")))
    for words in (
        "route bloom on 16 nodes",
        "A: each row is stored at the node of its A.region",
        "each row visits as few other nodes as possible, losing 0.1 of the results",
        "a counting Bloom filter",
        "one in 64 keys visits all nodes",
    ):
        assert words in text


def test_what_lives_together_needs_fewer_visits() -> None:
    found = {}
    for local in (0.0, 0.9):
        stream = stream_of(
            {"k": "bigint", "v": "string", "region": "int"}, {"rate": 5000, "local.k": local}, home="region"
        )
        plan = planned("APPROXIMATE(error = 0.1), PLAN(DIGEST, 16)", relations=(stream, stream))
        found[local] = plan.candidates[0].estimated.cost.visits
        text = explain_text(describe(plan))
    assert found[0.9] < 0.7 * found[0.0]
    assert "0.9 of the pairs with one key at one node" in text


def test_an_error_takes_what_sends_least_and_explain_cost_lists_all() -> None:
    found = planned("APPROXIMATE(error = 0.15), ALGORITHM(HW), BOUNDS(EXACT)", layouts=FREE)
    assert {each.plan.stages[0].placement.route for each in found.candidates} == set(routes_of("approximate"))
    sent = [each.estimated.cost.shuffled_bytes for each in found.candidates]
    assert sent[0] == min(sent)
    assert all(each.estimated.cost.missing <= 0.16 for each in found.candidates)
    text = cost_text(describe(found))
    assert "visits a row" in text and "digest(all nodes, 1.02 kB)" in text
    assert found.physical.approximate != Approximation()
