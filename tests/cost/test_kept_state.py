"""What inputs keep, which window decides it, and what a longer one adds: as other plans have it."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.kit.planned import plan_over, stream_of
from wjoin.measured.kept_streams import kept_streams, longer_windows
from wjoin.measured.progress import Done
from wjoin.planner.catalog import Delay
from wjoin.planner.cost.kept_state import SECOND, input_states, size_by_delay, slopes
from wjoin.planner.explain.kept_state import sizes_of, state_lines
from wjoin.planner.planning import PlannedSelect

STREAMS = [
    stream_of({"k": "bigint", "v": "string"}, {"rate": rate, "width": width, "distinct.k": 1_000_000_000})
    for rate, width in ((100, 50), (10, 500), (1, 20))
]
JOIN = "SELECT A.v, B.v AS w, C.v AS x FROM a A, b B, c C WINDOW {} WHERE A.k = B.k AND B.k = C.k"


def planned(*windows: str, hint: str = "PLAN(MULTIWAY)") -> PlannedSelect:
    text = JOIN.replace("SELECT", f"SELECT /*+ {hint} */")
    return plan_over(text.format(" AND WINDOW ".join(windows)), STREAMS)


def whole(plan: PlannedSelect) -> float:
    """The bytes of state that the planner expects."""
    return plan.candidates[0].estimated.cost.state_bytes


def test_the_inputs_are_the_whole_state() -> None:
    plan = planned("(A, B) = 5 SECONDS", "(B, C) = 3 SECONDS")
    found = input_states(plan)
    assert [each.members for each in found] == [(0,), (1,), (2,)]
    assert sum(each.size for each in found) == pytest.approx(whole(plan))
    # A row of A waits for C, which is within 8 s, one of B for A, one of C for A.
    assert [each.kept.span for each in found] == [8 * SECOND, 5 * SECOND, 8 * SECOND]
    assert [each.kept.awaited for each in found] == [2, 0, 0]
    assert [each.kept.windows for each in found] == [((0, 1), (1, 2)), ((1, 0),), ((2, 1), (1, 0))]


@pytest.mark.parametrize(
    ("windows", "longer"),
    [
        (("(A, B) = 5 SECONDS", "(B, C) = 3 SECONDS"), ("(A, B) = 6 SECONDS", "(B, C) = 4 SECONDS")),
        (
            ("(A, B) = 5 SECONDS", "(B, C) = 3 SECONDS", "(A, C) = 20 SECONDS"),
            ("(A, B) = 6 SECONDS", "(B, C) = 4 SECONDS", "(A, C) = 21 SECONDS"),
        ),
        (
            ("(A, B) = 50 SECONDS", "(B, C) = 30 SECONDS", "(A, C) = 10 SECONDS"),
            ("(A, B) = 51 SECONDS", "(B, C) = 31 SECONDS", "(A, C) = 11 SECONDS"),
        ),
    ],
)
def test_a_slope_is_what_a_longer_window_adds(windows: Sequence[str], longer: Sequence[str]) -> None:
    plan = planned(*windows)
    found = dict(slopes(plan, sizes_of(input_states(plan))))
    pairs = [(0, 1), (1, 2), (0, 2)][: len(windows)]
    for place, pair in enumerate(pairs):
        changed = [longer[n] if n == place else each for n, each in enumerate(windows)]
        added = whole(planned(*changed)) - whole(plan)
        assert found.get(pair, 0.0) == pytest.approx(added, rel=1e-6, abs=1e-3)


@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize("delay", [2, 7])
def test_the_size_by_delay_is_that_of_a_plan_with_it(late: int, delay: int) -> None:
    """Windows of 5 s and 3 s: rows of A wait for C, 8 s away, and the others for A."""
    plan = planned("(A, B) = 5 SECONDS", "(B, C) = 3 SECONDS")
    streams = [
        replace(each, delays={"ts": Delay(delay * SECOND)}) if number == late else each
        for number, each in enumerate(STREAMS)
    ]
    text = JOIN.format("(A, B) = 5 SECONDS AND WINDOW (B, C) = 3 SECONDS")
    other = plan_over(text.replace("SELECT", "SELECT /*+ PLAN(MULTIWAY) */"), streams)
    found = size_by_delay(plan.physical, {late}, delay * SECOND, sizes_of(input_states(plan)))
    assert found == pytest.approx(whole(other), rel=1e-6)
    assert size_by_delay(plan.physical, {late}, 0, sizes_of(input_states(plan))) == pytest.approx(whole(plan))


def test_explain_says_it() -> None:
    plan = planned("(A, B) = 5 SECONDS", "(B, C) = 3 SECONDS")
    assert list(state_lines(plan)) == [
        "A: 52.8 kB, kept for 8 s, until C has passed: window (A, B) and window (B, C)",
        "B: 25.8 kB, kept for 5 s, until A has passed: window (A, B)",
        "C: 288 bytes, kept for 8 s, until A has passed: window (B, C) and window (A, B)",
        "1 s more of window (A, B): 11.8 kB",
        "1 s more of window (B, C): 6.64 kB",
    ]


def test_what_is_to_come_follows_from_what_a_query_has_seen() -> None:
    plan = planned("(A, B) = 5 SECONDS", "(B, C) = 3 SECONDS")
    # All have come to 4 s; rows of A are kept for 8 s and those of B for 5 s.
    now = dict.fromkeys("ABC", 4 * SECOND)
    done = Done(
        kept_bytes={"A": 400, "B": 80, "C": 8}, oldest=dict.fromkeys("ABC", 0), seen=now, watermarks=now
    )
    found = kept_streams(plan, done)
    assert [(each.alias, each.to_come) for each in found] == [("A", 400.0), ("B", 20.0), ("C", 8.0)]
    assert found[0].words(plan).endswith("window (B, C); 400 bytes to come")
    # 100 bytes of A a second, 20 of B and 2 of C.
    assert list(longer_windows(plan, found)) == [
        "1 s more of window (A, B): 122 bytes",
        "1 s more of window (B, C): 102 bytes",
    ]
    old = replace(done, oldest=dict.fromkeys("ABC", -4 * SECOND))
    assert [each.to_come for each in kept_streams(plan, old)] == [0.0] * 3
