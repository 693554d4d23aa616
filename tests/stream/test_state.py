"""State is bounded, follows the window, and waits for a slow stream no longer than it must.

All is measured in rows of state as the query reports them, against the rows that the model
says must be kept.
"""

import dataclasses
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from tests.kit.check import PLAIN, sources_of
from tests.kit.expressions import Compare, Field, Literal, equal
from tests.kit.lateness import Upper, expected_batches, retained, surviving
from tests.kit.statement import Condition, Either, Pair, Path, Statement, Within, text
from tests.kit.tables import SECOND, events, statement
from wjoin import progress
from wjoin.testing.harness import Run, run_batches

pytestmark = pytest.mark.thorough

WINDOW = 10 * SECOND
"""Width of the windows in these tests."""

STEP = WINDOW // 2
"""Event time that passes in a micro-batch."""

RATE = 40
"""Rows of a stream in a micro-batch."""


def flow(
    aliases: str,
    steps: int,
    lag: Mapping[str, int] | None = None,
    silent: Mapping[str, range] | None = None,
    keys: int = 64,
    step: int = STEP,
) -> list[dict[str, pa.Table]]:
    """A steady flow of rows, each step one micro-batch.

    ``lag`` sets a stream's clock back, ``silent`` names steps in which a stream sends nothing.
    """
    chance = random.Random(7)
    batches = []
    for number in range(steps):
        batch = {}
        for place, alias in enumerate(aliases):
            start = number * step - (lag or {}).get(alias, 0)
            count = 0 if number in (silent or {}).get(alias, ()) else RATE * step // STEP
            times = sorted(start + chance.randrange(step) for _ in range(count))
            first = (place * 1000 + number) * 1000
            batch[alias] = events(
                [(first + i, time, chance.randrange(keys)) for i, time in enumerate(times)], "k"
            )
        batches.append(batch)
    return batches


def symmetric(aliases: str, width: int) -> Upper:
    """The bounds of form 1."""
    return {(a, b): width for a in aliases for b in aliases}


def state_rows(run: Run) -> list[dict[str, int]]:
    """The rows of state of each stream after every micro-batch."""
    return [progress.read(report).state_rows for report in run.progress]


def run_flow(session: Any, case: Statement, batches: Sequence[Mapping[str, pa.Table]]) -> Run:
    """Run a statement and check its result, too."""
    run = run_batches(session, text(case, PLAIN), sources_of(case, batches))
    assert run.bags == expected_batches(case, batches)
    assert run.bag
    return run


def keyed(aliases: str, window: Condition, delay: int = 0) -> Statement:
    """A join of all streams on one key."""
    return statement(
        aliases, window, *(equal(Field("A", "k"), Field(b, "k")) for b in aliases[1:]), delay=delay
    )


def assert_bounded(
    run: Run, needed: Sequence[Mapping[str, int]], factor: float = 1.5, slack: int = 4
) -> None:
    """Assert that every stream's state is at least what is needed and at most ``factor`` times it."""
    for number, (kept, least) in enumerate(zip(state_rows(run), needed, strict=False)):
        for alias, rows in least.items():
            assert rows <= kept.get(alias, 0) <= factor * rows + slack, (number, alias, kept, dict(least))


def test_state_follows_the_window_over_fifty_windows(session: Any) -> None:
    case = keyed("ABC", Within(WINDOW))
    batches = flow("ABC", 50, step=WINDOW)
    run = run_flow(session, case, batches)
    needed = retained(surviving(case, batches), symmetric("ABC", WINDOW))
    assert_bounded(run, needed)
    peak = max(sum(kept.values()) for kept in state_rows(run)[4:])
    assert peak <= 1.5 * 3 * RATE * (WINDOW // STEP)


DIRECTED: Upper = {
    # A before B before C, each within the window.
    ("A", "B"): WINDOW,
    ("B", "A"): 0,
    ("B", "C"): WINDOW,
    ("C", "B"): 0,
    ("A", "C"): 2 * WINDOW,
    ("C", "A"): 0,
}

FORMS: dict[str, tuple[str, Condition, Upper]] = {
    "directed path": ("ABC", Path(("A", "B", "C"), (WINDOW, WINDOW)), DIRECTED),
    "disjunction": (
        "AB",
        Either((Pair("A", "B", WINDOW, True), Pair("B", "A", STEP, True))),
        {("A", "B"): WINDOW, ("B", "A"): STEP},
    ),
    "missing pair": (
        "ABC",
        Path(("A", "B", "C"), (WINDOW, WINDOW), bidirectional=True),
        {pair: WINDOW * (1 + (set(pair) == {"A", "C"})) for pair in DIRECTED},
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_retention_of_each_stream_is_that_of_the_completed_graph(session: Any, name: str) -> None:
    aliases, window, upper = FORMS[name]
    case = keyed(aliases, window)
    batches = flow(aliases, 20)
    assert_bounded(run_flow(session, case, batches), retained(surviving(case, batches), upper))


def test_allowed_disorder_is_kept_on_top(session: Any) -> None:
    case = keyed("AB", Within(WINDOW), delay=2 * WINDOW)
    batches = flow("AB", 20)
    needed = retained(surviving(case, batches), symmetric("AB", WINDOW))
    assert needed[-1]["A"] >= 2.8 * RATE * WINDOW // STEP
    assert_bounded(run_flow(session, case, batches), needed)


def test_a_theta_join_is_bounded_too(session: Any) -> None:
    near = Compare(Field("A", "k"), "<", Field("B", "k"))
    few = Compare(Field("A", "k"), "<", Literal(3))
    case = dataclasses.replace(keyed("AB", Within(STEP)), where=(near, few))
    batches = flow("AB", 20)
    run = run_flow(session, case, batches)
    needed = retained(surviving(case, batches), symmetric("AB", STEP))
    # A's own filter leaves fewer rows of A than arrive.
    assert all(
        kept["B"] <= 1.5 * least["B"] + 4 and kept["A"] <= least["A"] / 4 + 4
        for kept, least in zip(state_rows(run), needed, strict=False)
    )


@pytest.mark.long
def test_a_slow_stream_holds_back_only_what_waits_for_it(session: Any) -> None:
    """C is three windows behind: A and B wait for it, C's own rows wait for nobody."""
    case = keyed("ABC", Within(WINDOW))
    batches = flow("ABC", 24, lag={"C": 3 * WINDOW}, keys=24)
    needed = retained(surviving(case, batches), symmetric("ABC", WINDOW))
    run = run_flow(session, case, batches)
    assert_bounded(run, needed)
    assert state_rows(run)[20]["A"] >= 3 * RATE * WINDOW // STEP
    assert state_rows(run)[20].get("C", 0) <= RATE // 4


def test_an_idle_stream_frees_what_it_held_when_it_is_back(session: Any) -> None:
    """While C is silent A and B are kept for it, C's rows go; afterwards all is as before."""
    case = keyed("ABC", Within(WINDOW))
    batches = flow("ABC", 24, silent={"C": range(6, 16)})
    needed = retained(surviving(case, batches), symmetric("ABC", WINDOW))
    run = run_flow(session, case, batches)
    assert_bounded(run, needed)
    kept = state_rows(run)
    assert kept[15]["A"] > 10 * RATE
    assert kept[15].get("C", 0) <= 4
    assert kept[20]["A"] <= 1.5 * RATE * (1 + WINDOW // STEP)
