"""What bounds in the row become: a window up to their limit, and a comparison that decides."""

import pytest

from tests.kit.planned import ColumnTypes, stream_of
from tests.tiers import tiers
from wjoin.grammar.parser import parse_script
from wjoin.grammar.statement_kinds import Query
from wjoin.planner.bind.written import meaning
from wjoin.planner.explain.describe import describe
from wjoin.planner.explain.text import explain_text
from wjoin.planner.planning import PlannedSelect, plan_select
from wjoin.planner.request import Request

SECOND = 1_000_000
A = stream_of({"id": "bigint", "until": "timestamp", "keep": "interval day to second", "d": "date"})


def planned(window: str, joined: str = "FROM a A, b B {} WHERE A.id = B.id") -> PlannedSelect:
    sql = f"SELECT A.id {joined.format(window)}"
    (statement,) = parse_script(sql)
    assert isinstance(statement, Query)
    (block,) = statement.blocks
    relations = [A] * len(block.items)
    return plan_select(Request(sql, block, relations, ColumnTypes(relations), "joined", {"s": 5}))


@pytest.mark.parametrize(
    ("window", "compared", "bounds"),
    [
        ("DWINDOW (A, B) = A.until - A.ts AT MOST 1 HOUR", ["B.ts <= A.until"], (3600, 0)),
        ("DWINDOW (A, B) = ((A.until - a.TS)) AT MOST 1 HOUR", ["B.ts <= A.until"], (3600, 0)),
        ("DWINDOW (A, B) = A.keep AT MOST 1 HOUR", ["B.ts <= A.ts + (A.keep)"], (3600, 0)),
        ("DWINDOW (A, B) = B.keep AT MOST 1 HOUR", ["A.ts >= B.ts - (B.keep)"], (3600, 0)),
        ("DWINDOW (A, B) = B.ts - B.until AT MOST 9 s", ["A.ts >= B.until"], (9, 0)),
        ("DWINDOW (A, B) = A.d - A.ts AT MOST 9 s", ["B.ts <= A.ts + (A.d - A.ts)"], (9, 0)),
        (
            "WINDOW (A, B) = B.keep AT MOST 9 s",
            ["A.ts <= B.ts + (B.keep)", "A.ts >= B.ts - (B.keep)"],
            (9, 9),
        ),
    ],
)
@pytest.mark.parametrize("kind", tiers(["JOIN", "LEFT JOIN", "FULL JOIN"], long=["FULL JOIN"]))
def test_the_limit_is_a_window_and_the_row_a_comparison(
    kind: str, window: str, compared: list[str], bounds: tuple[int, int]
) -> None:
    found = planned(window, f"FROM a A {kind} b B ON A.id = B.id {{}}")
    windows = found.graph.windows
    assert (windows.between(0, 1), windows.between(1, 0)) == tuple(each * SECOND for each in bounds)
    told = explain_text(describe(found))
    assert [line.strip() for line in told.splitlines() if " check " in line] == [
        f"check {c}" for c in compared
    ]
    assert "AT MOST" in told
    ends = [each.partition("<= ")[2] for each in compared if " <= " in each and each.startswith("B")]
    limit = "1 h" if bounds[0] > 9 else "9 s"
    assert all(f"  A: kept until B's watermark passes ts + {limit} or {each}\n" in told for each in ends)
    assert not found.residual
    assert found.bound.tree.join_of({0, 1}, found.bound.conjuncts[-1].on) == (-1 if kind == "JOIN" else 0)


def test_other_windows_are_derived_from_the_limit() -> None:
    found = planned(
        "DWINDOW (A, B) = A.keep AT MOST 1 HOUR AND DWINDOW (B, C) = 1 HOUR",
        "FROM a A, b B, c C {} WHERE A.id = B.id AND B.id = C.id",
    )
    assert found.graph.windows.between(0, 2) == 7200 * SECOND


def test_what_rows_say_is_told_apart_in_checkpoints() -> None:
    first, second = (
        planned(f"DWINDOW (A, B) = {each} AT MOST 1 HOUR") for each in ("A.keep", "A.until - A.ts")
    )
    told = [meaning(each.bound.conjuncts[-1], ["A", "B"]) for each in (first, second)]
    assert len({*told}) == 2
    assert first.written.conditions[-1] == told[0]
