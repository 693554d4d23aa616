"""Whether rows are in the state, and for what they wait: as the workers decide it."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.planned import plan_over, stream_of
from wjoin.asking.standing import Standing, awaited
from wjoin.executor.spark.state_rows import Showing
from wjoin.executor.state.kept_columns import kept_join
from wjoin.executor.state.kept_rows import kept, least_times
from wjoin.planner.plan.physical import PhysicalPlan

SECOND = 1_000_000
STREAMS = [stream_of({"k": "bigint", "j": "bigint"}) for _ in range(3)]

STATEMENTS = {
    "inner": "FROM a A, b B, c C WINDOW (A, B) = 5 SECONDS AND WINDOW (B, C) BETWEEN 1 SECOND AND 3 SECONDS "
    "WHERE A.k = B.k AND B.k = C.k",
    "two keys": "FROM a A, b B, c C WINDOW (A, B) = 5 SECONDS AND DWINDOW (B, C) = 3 SECONDS "
    "WHERE A.k = B.k AND B.j = C.j",
    "left": "FROM a A LEFT JOIN b B ON A.k = B.k LEFT JOIN c C ON A.j = C.j "
    "WINDOW (A, B) = 5 SECONDS AND WINDOW (A, C) = 2 SECONDS",
    "chain": "FROM a A LEFT JOIN b B ON A.k = B.k JOIN c C ON B.j = C.j "
    "WINDOW (A, B) = 5 SECONDS AND WINDOW (B, C) = 2 SECONDS",
}
PLANS = {name: plan_over(f"SELECT A.k, C.j {text}", STREAMS).physical for name, text in STATEMENTS.items()}
times = st.integers(0, 20)


@pytest.mark.parametrize("name", PLANS)
@given(st.dictionaries(st.integers(0, 2), times), times)
def test_a_row_waits_as_long_as_workers_keep_it(name: str, marks: dict[int, int], time: int) -> None:
    plan, seen = PLANS[name], {stream: each * SECOND for stream, each in marks.items()}
    standing = Standing(plan, 0, seen)
    for stream in range(3):
        stays = stays_somewhere(plan, stream, time * SECOND, seen)
        ends = awaited(plan, stream, time * SECOND)
        assert (ends is not None) == (stays is not None)
        if ends is not None:
            assert any(standing._waits(each, end) for each, end in ends.items()) == stays


def stays_somewhere(plan: PhysicalPlan, stream: int, time: int, seen: dict[int, int]) -> bool | None:
    """Whether some stage keeps a row of a stream; None where none ever keeps one."""
    found: bool | None = None
    for number, stage in enumerate(plan.stages):
        marks = least_times(plan, number, seen)
        for each in stage.inputs:
            if each.members == (stream,) and each.stored:
                now = bool(kept(each.retention, {stream: np.array([time])}, marks)[0])
                found = now or bool(found)
    return found


@pytest.mark.parametrize("name", PLANS)
@given(st.dictionaries(st.integers(0, 2), times), st.lists(st.tuples(times, times, times), min_size=1))
def test_rows_of_the_state_wait_as_long_as_workers_keep_them(
    name: str, marks: dict[int, int], rows: list[tuple[int, int, int]]
) -> None:
    plan, seen = PLANS[name], {stream: each * SECOND for stream, each in marks.items()}
    showing = Showing(kept_join(plan), 0, None, None)  # type: ignore[arg-type]  # of no use here
    own = {stream: np.array([row[stream] for row in rows]) * SECOND for stream in range(3)}
    for number, stage in enumerate(plan.stages):
        least = least_times(plan, number, seen)
        for each in stage.inputs:
            held = {member: own[member] for member in each.members}
            until, waits = showing._waits(number, each.retention, held, seen, len(rows))
            assert [len(row) > 0 for row in waits.to_pylist()] == [*kept(each.retention, held, least)]
            assert len(until) == len(rows) and waits.type == pa.map_(pa.string(), pa.timestamp("us", "UTC"))


def test_what_is_told_of_rows() -> None:
    begin = 1_700_000_000 * SECOND
    young = {0: begin + 8 * SECOND, 1: begin + 4 * SECOND}
    assert list(Standing(PLANS["inner"], 3, young).told({0: begin, 1: begin})) == [
        "A is kept until B's watermark passes 2023-11-14 22:13:25 (it is at 2023-11-14 22:13:24) and C's "
        "watermark passes 2023-11-14 22:13:28 (C has sent nothing).",
        "B is kept until C's watermark passes 2023-11-14 22:13:23 (C has sent nothing).",
    ]
    standing = Standing(PLANS["left"], 3, {**young, 2: begin + 4 * SECOND}, "Europe/Berlin")
    assert list(standing.told({0: begin, 1: begin - 20 * SECOND})) == [
        "Whether A has a partner is not decided until B's watermark passes 2023-11-14 23:13:25 (it is at "
        "2023-11-14 23:13:24).",
        "B was evicted: the watermark of A, at 2023-11-14 23:13:28, passed all that it could meet.",
    ]
    old = Standing(PLANS["left"], 3, dict.fromkeys(range(3), begin + 14 * SECOND))
    assert list(old.told({0: begin})) == [
        "A is decided: the watermark of B, at 2023-11-14 22:13:34, passed all that it could meet."
    ]
