"""Streams at sites in a plan: what may come late, how they travel, and what hints say."""

from dataclasses import replace

import pytest

from tests.kit.planned import plan_over, stream_of
from wjoin.executor.state.identity import fingerprint
from wjoin.grammar.errors import WJoinError
from wjoin.planner.catalog import Estimate, Origin, Relation, SiteFacts
from wjoin.planner.choose.layouts import FREE, UNKNOWN, LayoutRule, of_checkpoint
from wjoin.planner.explain.describe import describe
from wjoin.planner.explain.text import explain_text
from wjoin.planner.plan.physical import Shipping, SiteScan
from wjoin.planner.planning import PlannedSelect

COLUMNS = {"id": "bigint", "x": "double", "payload": "binary", "note": "string"}
WIDTHS = {"ts": 8.0, "id": 8.0, "x": 8.0, "payload": 1400.0, "note": 30.0}
LINK = Estimate(0.005, Origin.MEASURED), Estimate(1e6, Origin.MEASURED)
LOCAL = stream_of(COLUMNS, {"rate": 1000, "distinct.id": 100_000})
REMOTE = replace(LOCAL, site=SiteFacts(WIDTHS, *LINK))


def planned(sql: str, *relations: Relation, **statistics: float) -> PlannedSelect:
    given = {name: Estimate(value, Origin.GIVEN) for name, value in statistics.items()}
    first, *others = relations or (REMOTE, LOCAL)
    return plan_over(sql, [replace(first, statistics={**first.statistics, **given}), *others])


def site(plan: PlannedSelect, stream: int = 0) -> SiteScan:
    found = plan.physical.streams[stream].site
    assert found is not None
    return found


def late(plan: PlannedSelect, stream: int = 0) -> list[str | None]:
    columns = plan.physical.streams[stream].columns
    return [columns[number].output for number in site(plan, stream).late]


@pytest.mark.parametrize(
    ("select", "where", "expected"),
    [
        ("A.payload, A.note", "A.id = B.id", ["payload", "note"]),
        ("A.*", "A.id = B.id", ["x", "payload", "note"]),
        ("A.payload, A.note", "A.id = B.id AND A.note <> 'x'", ["payload"]),
        ("A.payload, A.note", "A.id = B.id AND A.note <> B.note", ["payload"]),
        ("A.x, A.payload", "abs(A.x - B.x) <= 5", ["payload"]),
        ("A.x, A.id, A.ts", "A.id = B.id AND A.x < B.x", []),
        ("B.note", "A.id = B.id", []),
        # Spark evaluates what it alone can on the results, for which all columns are there.
        ("A.id", "A.id = B.id AND rand() < length(A.note) - length(B.note)", ["note"]),
    ],
)
def test_what_the_join_does_not_read_may_come_late(select: str, where: str, expected: list[str]) -> None:
    plan = planned(f"SELECT {select} FROM a A, b B WINDOW = 5 s WHERE {where}")
    assert sorted(map(str, late(plan))) == sorted(expected)
    read_first = set(site(plan).early)
    assert "ts" in read_first
    assert not read_first & set(expected)


PAYLOADS = "SELECT {hint} A.payload, B.payload AS other FROM a A, b B WINDOW = 5 s WHERE A.id = B.id"


def ways(hint: str, *relations: Relation, **statistics: float) -> list[Shipping | None]:
    plan = planned(PAYLOADS.format(hint=hint), *relations, **statistics).physical
    return [None if each.site is None else each.site.shipping for each in plan.streams]


def test_the_way_that_costs_less_is_taken_for_each_stream_by_itself() -> None:
    assert ways("") == [Shipping.PARTIAL, None]
    assert ways("", matched=0.9999) == [Shipping.FULL, None]
    assert ways("", REMOTE, REMOTE, matched=0.9999) == [Shipping.FULL, Shipping.PARTIAL]
    unlimited = replace(REMOTE, site=SiteFacts(WIDTHS, LINK[0], Estimate(1e12)))
    assert ways("", unlimited, REMOTE) == [Shipping.FULL, Shipping.PARTIAL]


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        ("/*+ PLAN(SIMPLE) */", ["full", "full"]),
        ("/*+ PLAN(SEMIJOIN) */", ["partial", "partial"]),
        ("/*+ SHIP(A = FULL) */", ["full", "partial"]),
        ("/*+ SHIP(`a` = full, B = PARTIAL) */", ["full", "partial"]),
        ("/*+ PLAN(SIMPLE), SHIP(B = PARTIAL) */", ["full", "partial"]),
    ],
)
def test_hints(hint: str, expected: list[str]) -> None:
    assert [way and way.value for way in ways(hint, REMOTE, REMOTE)] == expected


@pytest.mark.parametrize(
    ("sql", "relations", "message"),
    [
        (PAYLOADS.format(hint="/*+ PLAN(SEMIJOIN) */"), (LOCAL, LOCAL), "no stream is at a site"),
        (PAYLOADS.format(hint="/*+ SHIP(B = FULL) */"), (REMOTE, LOCAL), "B is not at a site"),
        (PAYLOADS.format(hint="/*+ SHIP(C = FULL) */"), (REMOTE, LOCAL), "there is no stream C"),
        (
            "SELECT /*+ SHIP(A = PARTIAL) */ A.id FROM a A, b B WINDOW = 5 s WHERE A.id = B.id",
            (REMOTE, LOCAL),
            "the join itself reads every column of A",
        ),
    ],
)
def test_hints_that_cannot_apply(sql: str, relations: tuple[Relation, ...], message: str) -> None:
    with pytest.raises(WJoinError, match=f"WJ504.*{message}"):
        planned(sql, *relations)


def test_a_stream_whose_late_rows_go_to_a_sink_sends_all_columns() -> None:
    told = replace(REMOTE, late_into="lost")
    found = planned(PAYLOADS.format(hint=""), told, LOCAL)
    assert not site(found).late
    assert set(site(found).early) == {*COLUMNS, "ts"}
    assert ways("", told, LOCAL) == [Shipping.FULL, None]
    for way, why in (
        ("PARTIAL", "LATE ROWS INTO reads every column"),
        ("HELD", "its late rows go to a sink"),
    ):
        with pytest.raises(WJoinError, match=f"WJ504.*{why}"):
            ways(f"/*+ SHIP(A = {way}) */", told, LOCAL)


def test_state_is_the_same_however_rows_have_come() -> None:
    """A checkpoint goes on when costs, or hints, have a stream travel in another way."""
    found = set()
    for hint in ("PLAN(SIMPLE)", "PLAN(SEMIJOIN)", "SHIP(A = FULL)"):
        plan = planned(PAYLOADS.format(hint=f"/*+ {hint} */"), REMOTE, REMOTE).physical
        found.add(fingerprint(plan, plan.stages[0]))
    assert len(found) == 1


def test_tables_and_static_relations_have_no_partial_tuples() -> None:
    table = replace(REMOTE, streaming=False)
    plan = planned(PAYLOADS.format(hint=""), table, table).physical
    assert [each.site for each in plan.streams] == [None, None]


def test_explain_tells_what_each_way_takes_and_what_that_rests_on() -> None:
    text = explain_text(describe(planned(PAYLOADS.format(hint=""), matched=0.01)))
    sites = text[text.index("Sites\n") : text.index("Stages\n")].splitlines()
    assert sites[1] == (
        "  A partial: ts, id of every row, payload only of rows in results; "
        "32.8 kB in 2 messages per second, 42.8 ms of link time"
    )
    assert sites[2].startswith("    instead of full: whole rows; 1.42 MB in 1 message per second, 1.42 s")
    assert sites[3] == (
        "    0.01 of rows are in results (given), "
        "latency 5 ms per message (measured), bandwidth 1 MB/s (measured)"
    )
    assert "__wjoin_row" not in text


OFTEN = {**LOCAL.statistics, "rate": Estimate(20_000.0), "distinct.id": Estimate(1e6)}
HELD = replace(LOCAL, site=SiteFacts(WIDTHS, *LINK, "ts", frozenset(WIDTHS)), statistics=OFTEN)
RARE = replace(LOCAL, statistics={**LOCAL.statistics, "rate": Estimate(0.2)})


def held(sql: str, *relations: Relation, layouts: LayoutRule = UNKNOWN) -> PlannedSelect:
    return plan_over(sql, list(relations or (HELD, RARE)), layouts=layouts)


def test_rows_are_held_where_few_others_ask_for_them_and_there_is_no_state_yet() -> None:
    plain = PAYLOADS.format(hint="")
    found = held(plain, layouts=FREE)
    assert site(found).shipping is Shipping.HELD
    assert found.layout.held == (0,)
    assert site(held(plain, HELD, LOCAL, layouts=FREE)).shipping is Shipping.PARTIAL
    assert site(held(plain)).shipping is Shipping.PARTIAL
    assert site(held(PAYLOADS.format(hint="/*+ SHIP(A = HELD) */"))).shipping is Shipping.HELD


def test_a_checkpoint_says_whether_rows_are_held() -> None:
    begun = held(PAYLOADS.format(hint=""), layouts=FREE).layout
    assert (
        site(held(PAYLOADS.format(hint=""), HELD, LOCAL, layouts=of_checkpoint(begun))).shipping
        is Shipping.HELD
    )
    kept = replace(begun, held=())
    assert site(held(PAYLOADS.format(hint=""), layouts=of_checkpoint(kept))).shipping is Shipping.PARTIAL
    for way, layout, why in (("FULL", begun, "rows at the site"), ("HELD", kept, "in the state")):
        with pytest.raises(WJoinError, match=f"WJ504.*{why}"):
            held(PAYLOADS.format(hint=f"/*+ SHIP(A = {way}) */"), layouts=of_checkpoint(layout))


def test_state_without_held_rows_is_another_one() -> None:
    plans = [held(PAYLOADS.format(hint=f"/*+ SHIP(A = {way}) */")).physical for way in ("FULL", "HELD")]
    assert len({fingerprint(plan, plan.stages[0]) for plan in plans}) == 2


@pytest.mark.parametrize(
    ("select", "where", "why"),
    [
        ("A.payload", "A.id = B.id AND A.note > 'x'", "Spark evaluates its filters"),
        ("A.payload", "A.id = B.id AND A.x = B.x", "its key is not a single column"),
        ("A.payload", "A.x = B.x", "its key is not a single column"),
        ("A.payload", "A.id < B.id", "no single key joins it"),
    ],
)
def test_what_cannot_be_held_says_why(select: str, where: str, why: str) -> None:
    with pytest.raises(WJoinError, match=f"WJ504.*{why}"):
        held(f"SELECT /*+ SHIP(A = HELD) */ {select} FROM a A, b B WINDOW = 5 s WHERE {where}")


def test_one_of_the_streams_that_meet_is_held() -> None:
    both = PAYLOADS.format(hint="/*+ SHIP(A = HELD, B = HELD) */")
    with pytest.raises(WJoinError, match=r"WJ504.*one stream of a stage can be held"):
        held(both, HELD, HELD)
    rare = replace(HELD, statistics={**HELD.statistics, "rate": Estimate(0.2)})
    found = held(PAYLOADS.format(hint=""), HELD, rare, layouts=FREE)
    assert [site(found, stream).shipping for stream in (0, 1)] == [Shipping.HELD, Shipping.FULL]


def test_explain_says_what_is_held_and_that_nothing_of_it_is_in_the_state() -> None:
    text = explain_text(describe(held(PAYLOADS.format(hint=""), layouts=FREE)))
    assert (
        "\n  A held: whole rows, only those whose key is in the other windows; not stored in the state;"
        in text
    )
    assert "A: held at its site until B's watermark passes ts + 5 s" in text
    assert "B: kept until A's watermark passes ts + 5 s" in text
    assert "; state: 1 row\n" in text


KINDS = {
    # Of a stream whose rows come without a partner all are in results.
    "A LEFT JOIN b B ON A.id = B.id": [("full", 1.0), ("partial", 0.095)],
    "A RIGHT JOIN b B ON A.id = B.id": [("partial", 0.095), ("full", 1.0)],
    "A FULL JOIN b B ON A.id = B.id": [("full", 1.0), ("full", 1.0)],
    "A SEMI JOIN b B ON A.id = B.id": [("partial", 0.095), ("full", 0.0)],
    "A ANTI JOIN b B ON A.id = B.id": [("partial", 0.905), ("full", 0.0)],
    # An ASOF JOIN chooses by all columns of the second stream.
    "A LEFT ASOF JOIN b B MATCH_CONDITION (A.ts >= B.ts) ON A.id = B.id": [("full", 1.0), ("full", 0.048)],
}


@pytest.mark.parametrize("join", KINDS)
def test_the_kind_of_a_join_says_how_many_rows_are_in_results(join: str) -> None:
    shown = "A.payload" if "SEMI" in join or "ANTI" in join else "A.payload, B.payload AS other"
    plan = planned(f"SELECT {shown} FROM a {join} WINDOW (A, B) = 5 s", REMOTE, REMOTE)
    found = [(each.chosen.value, round(each.matched.value, 3)) for each in plan.shipments]
    assert found == KINDS[join]


def test_what_a_join_keeps_out_by_itself_comes_before() -> None:
    """ON of a preserved stream is read of each row, and so is what tells which rows meet in a later join."""
    text = "SELECT A.note, A.payload FROM a A LEFT JOIN b B ON A.id = B.id AND A.note <> 'x' WINDOW = 5 s"
    assert late(planned(text)) == ["payload"]
    text = f"{text.removesuffix('WINDOW = 5 s')} LEFT JOIN c C ON A.id = C.id AND A.x > 1 WINDOW = 5 s"
    assert late(planned(text, REMOTE, LOCAL, LOCAL)) == ["payload"]


def test_of_a_stream_that_no_result_shows_only_what_the_join_reads_travels() -> None:
    text = "SELECT A.payload FROM a A ANTI JOIN b B ON A.id = B.id AND A.note < B.note WINDOW (A, B) = 5 s"
    plan = planned(text, LOCAL, REMOTE)
    assert (late(plan, 1), site(plan, 1).early) == ([], ("ts", "id", "note"))
    assert "B full: ts, id, note of every row; " in explain_text(describe(plan))


@pytest.mark.parametrize(
    ("join", "held", "why"),
    [
        ("A LEFT JOIN b B ON A.id = B.id", "A", "a LEFT OUTER JOIN keeps its rows without a partner"),
        ("A SEMI JOIN b B ON A.id = B.id", "A", "a LEFT SEMI JOIN keeps"),
        ("A FULL JOIN b B ON A.id = B.id", "B", "a FULL OUTER JOIN keeps"),
        ("A ASOF JOIN b B MATCH_CONDITION (A.ts > B.ts) ON A.id = B.id", "B", "an ASOF JOIN looks for"),
        ("A LEFT JOIN b B ON A.id = B.id LEFT JOIN c C ON A.id = C.id", "C", "one of several joins"),
    ],
)
def test_rows_that_may_have_no_partner_are_not_held(join: str, held: str, why: str) -> None:
    relations = [HELD, HELD, LOCAL] if "c C" not in join else [HELD, LOCAL, HELD]
    window = "WINDOW (A, B) = 5 s" + (" AND WINDOW (A, C) = 5 s" if "c C" in join else "")
    text = f"SELECT /*+ SHIP({held} = HELD) */ A.payload FROM a {join} {window}"
    with pytest.raises(WJoinError, match=f"WJ504.*{why}"):
        plan_over(text, relations[: 3 if "c C" in join else 2])


@pytest.mark.parametrize("kind", ["LEFT", "SEMI", "ANTI"])
def test_the_other_side_may_be_held(kind: str) -> None:
    text = (
        f"SELECT /*+ SHIP(B = HELD) */ A.payload FROM a A {kind} JOIN b B ON A.id = B.id WINDOW (A, B) = 5 s"
    )
    assert site(plan_over(text, [RARE, HELD]), 1).shipping is Shipping.HELD
