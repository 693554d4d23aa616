"""Planning takes as many times more work as a statement is longer, whatever it has many of."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from tests.kit.planned import plan_over, stream_of
from tests.tiers import tiers
from wjoin.planner.explain.describe import describe
from wjoin.planner.explain.text import explain_text

FEW, MANY = 50, 200

JOIN = "SELECT {list} FROM a A, b B WINDOW {windows} WHERE {where}"


def statement(list: str = "A.c0", windows: str = "= 1 SECOND", where: str = "A.c0 = B.c0") -> str:
    return JOIN.format(list=list, windows=windows, where=where)


def joined(term: str, many: int, by: str) -> str:
    return by.join(term.format(n=n, next=n + 1) for n in range(many))


STATEMENTS: dict[str, Callable[[int], str]] = {
    "columns": lambda many: statement(list=joined("A.c{n}", many, ", ")),
    "columns without a qualifier": lambda many: statement(list=joined("d{n}", many, ", ")),
    "expressions": lambda many: statement(list=joined("A.c0 + {n} AS x{n}", many, ", ")),
    "equalities": lambda many: statement(where=joined("A.c{n} = B.c{n}", many, " AND ")),
    "one class": lambda many: statement(
        where=joined("A.c{n} = B.c{n} AND A.c{n} = B.c{next}", many - 1, " AND ")
    ),
    "comparisons": lambda many: statement(where=joined("A.c{n} < B.c{n}", many, " AND ")),
    "bands": lambda many: statement(where=joined("abs(A.c{n} - B.c{n}) <= {n}", many, " AND ")),
    "conditions": lambda many: statement(where=joined("A.c1 + B.c2 * {n} > 5", many, " AND ")),
    "filters": lambda many: statement(where=f"A.c0 = B.c0 AND {joined('A.c{n} <> {n}', many, ' AND ')}"),
    "values of IN": lambda many: statement(where=f"A.c0 = B.c0 AND A.c1 IN ({joined('{n}', many, ', ')})"),
    "windows": lambda many: statement(windows=joined("WINDOW (A, B) = {next} SECONDS", many, " AND ")[7:]),
}


def calls(sql: str) -> int:
    """Return how many functions are called, of Python and of C, to plan and explain a statement."""
    own = {f"c{n}": "bigint" for n in range(MANY)}
    relations = [stream_of({**own, **{f"{name}{n}": "bigint" for n in range(MANY)}}) for name in "de"]
    called = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal called
        called += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        explain_text(describe(plan_over(sql, relations)))
    finally:
        sys.setprofile(None)
    return called


@pytest.mark.parametrize(
    "kind",
    tiers(
        STATEMENTS,
        long=["equalities", "conditions"],
        thorough=STATEMENTS.keys() - {"columns", "equalities", "conditions"},
    ),
)
def test_work_grows_as_the_statement_does(kind: str) -> None:
    few, many = (STATEMENTS[kind](number) for number in (FEW, MANY))
    # What is read once is no part of it.
    calls(few)
    assert calls(many) < 1.3 * MANY / FEW * calls(few)
