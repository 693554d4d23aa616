"""Every choice of kernel, bounds, passes and plan gives the same rows."""

import itertools
import random
from typing import Any

import pyarrow as pa
import pytest

from tests.kit.check import assert_batch, assert_stream
from tests.kit.expressions import Call, Compare, Expression, Field, Literal, equal
from tests.kit.statement import Between, Both, Condition, Either, Pair, Path, Statement, Style
from tests.kit.tables import SECOND, events, statement
from tests.tiers import tiers

pytestmark = pytest.mark.thorough

KEY = equal(Field("A", "k"), Field("B", "k"))
KEYS = (KEY, equal(Field("B", "k"), Field("C", "k")))


def near(first: str, second: str) -> Compare:
    """Return the condition that m differs by at most one."""
    difference = Call("-", (Field(first, "m"), Field(second, "m")))
    return Compare(Call("abs", (difference,)), "<=", Literal(1))


CASES: dict[str, tuple[str, Condition, tuple[Expression, ...]]] = {
    "chain": ("ABC", Both((Pair("A", "B", 2 * SECOND), Pair("B", "C", 9 * SECOND))), KEYS),
    "path": ("ABC", Path(("A", "B", "C"), (3 * SECOND, 5 * SECOND), bidirectional=True), KEYS),
    "overlap": (
        "AB",
        Either((Pair("A", "B", 4 * SECOND, True), Between("A", "B", -4 * SECOND, 2 * SECOND))),
        (KEY,),
    ),
    "cascade": (
        "ABC",
        Both((Pair("A", "B", 4 * SECOND), Pair("B", "C", 8 * SECOND))),
        (KEY, equal(Field("B", "m"), Field("C", "m"))),
    ),
    "theta": ("AB", Pair("A", "B", 3 * SECOND), (Compare(Field("A", "k"), "<", Field("B", "k")),)),
    "band": ("AB", Pair("A", "B", 9 * SECOND), (KEY, near("A", "B"))),
    "bands": (
        "ABC",
        Both((Pair("A", "B", 3 * SECOND), Pair("B", "C", 4 * SECOND))),
        (near("A", "B"), Compare(Field("C", "m"), ">=", Call("-", (Field("B", "m"), Literal(1))))),
    ),
}

BANDED = ("theta", "band", "bands")


def rows(seed: int, first: int, seconds: int) -> pa.Table:
    """Thirty rows over some seconds, out of order."""
    chance = random.Random(seed)
    made = [
        (first + n, chance.randrange(seconds * SECOND), chance.randrange(4), chance.randrange(3))
        for n in range(30)
    ]
    return events(made, "k", "m")


NATIVE = ("PLAN(NATIVE)",)
KEYLESS = ("theta", "bands")
PSP, ATR, CTR = ("PLAN(PSP)",), ("PLAN(ATR)",), ("PLAN(CTR)",)
SLICED = {
    "theta": [PSP, ATR, CTR, ("PLAN(PSP, 1)",)],
    "bands": [PSP, ATR, CTR, ("PLAN(RANGE)", "ALGORITHM(ORDERED)"), ("PLAN(ATR, 2)", "ALGORITHM(MW)")],
    "chain": [ATR],
    "path": [("PLAN(ATR)", "PASSES(UNION)")],
    "overlap": [PSP, ("PLAN(PSP, 2)", "PASSES(UNION)")],
    "cascade": [PSP, CTR, ("PLAN(ATR)", "ALGORITHM(ADAPTIVE)")],
    "band": [("PLAN(RANGE)",), ("PLAN(PSP)", "ALGORITHM(ORDERED)")],
}
"""Hints for slices of time, with an equality and without."""


def choices(case: str) -> list[tuple[str, ...]]:
    """Every combination of hints that can apply to a case."""
    kernels = ["MW", "NLW"] if case in KEYLESS else ["HW", "MW", "NLW", "ADAPTIVE"]
    kernels += ["ORDERED"] if case in BANDED else []
    passes = ["PASSES(HULL)", "PASSES(UNION)"] if case in ("path", "overlap") else [""]
    combined = itertools.product(kernels, ["EXACT", "GCA", "LCA"], passes)
    return [
        tuple(each for each in (f"ALGORITHM({kernel})", f"BOUNDS({bounds})", way) if each)
        for kernel, bounds, way in combined
    ]


def made(case: str, delay: int = 0) -> Statement:
    aliases, window, where = CASES[case]
    return statement(aliases, window, *where, delay=delay)


@pytest.mark.parametrize("case", tiers(CASES, long=["chain"]))
def test_every_choice_in_batch(session: Any, case: str) -> None:
    whole = made(case)
    tables = {alias: rows(n, 100 * n, 20) for n, alias in enumerate(whole.aliases)}
    for hints in [*choices(case), NATIVE, *SLICED.get(case, [])]:
        assert assert_batch(session, whole, tables, Style(hints=hints)).total() > 20, hints


@pytest.mark.parametrize("case", CASES)
def test_choices_on_a_stream(session: Any, case: str) -> None:
    """Some of the choices of each case, so that every kernel, bounds and passes is met, and NATIVE."""
    whole = made(case, delay=20 * SECOND)
    batches = [
        {alias: rows(10 * batch + n, 1000 * batch + 100 * n, 20) for n, alias in enumerate(whole.aliases)}
        for batch in range(3)
    ]
    found = choices(case)
    # The last one is ORDERED where there is a band; the other kernels have cases of their own.
    picked = [found[-1]]
    if case not in ("band", "bands"):
        picked += [found[0], found[len(found) // 2], *([] if case == "theta" else [NATIVE])]
    for hints in [*picked, *SLICED.get(case, [])]:
        run = assert_stream(session, whole, batches, Style(hints=hints), restarts=(1,))
        assert run.bag.total() > 20, hints
