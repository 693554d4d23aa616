"""Order, lateness and idleness: every stream has its own watermark, and nothing else is ever lost."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from tests.kit.check import PLAIN, assert_stream, sources_of
from tests.kit.expressions import Compare, Field, Literal, equal
from tests.kit.lateness import expected_batches, surviving
from tests.kit.statement import Between, Pair, Statement, Within, text
from tests.kit.tables import SECOND, events, statement
from wjoin import progress
from wjoin.testing.harness import Run, run_batches

pytestmark = pytest.mark.thorough

ON_K = equal(Field("A", "k"), Field("B", "k"))


def cut(*batches: Mapping[str, Sequence[tuple[Any, ...]]]) -> list[dict[str, pa.Table]]:
    """Micro-batches of rows ``(id, second, k)``; a stream that is not named gets no row."""
    aliases = sorted({alias for batch in batches for alias in batch})
    return [{alias: _events(batch.get(alias, ())) for alias in aliases} for batch in batches]


def _events(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    return events([(i, None if t is None else round(t * SECOND), k) for i, t, k in rows], "k")


def counts(run: Run, name: str, alias: str) -> list[int]:
    """One count of one stream in every micro-batch."""
    return [getattr(progress.read(report), name).get(alias, 0) for report in run.progress]


@pytest.mark.long
def test_a_row_at_the_watermark_is_kept_and_an_older_one_is_dropped(session: Any) -> None:
    case = statement("AB", Within(60 * SECOND), ON_K, delay=5 * SECOND)
    batches = cut(
        {"A": [(1, 100, 0)], "B": [(10, 60, 0)]},
        {"A": [(2, 95, 0), (3, 95 - 0.000001, 0)]},
        {"B": [(11, 90, 0)]},
    )
    run = assert_stream(session, case, batches)
    assert run.bags == [Counter([(1, 10)]), Counter([(2, 10)]), Counter([(1, 11), (2, 11)])]
    assert counts(run, "late", "A")[:3] == [0, 1, 0]
    assert counts(run, "late", "B")[:3] == [0, 0, 0]


def test_the_watermark_is_that_of_the_start_of_the_micro_batch(session: Any) -> None:
    """Inside one micro-batch no row is late, however old."""
    case = statement("AB", Within(10 * SECOND), ON_K)
    batches = cut({"A": [(1, 1000, 0), (2, 5, 0)], "B": [(10, 1000, 0), (11, 1, 0)]})
    assert assert_stream(session, case, batches).bag == Counter([(1, 10), (2, 11)])


def test_a_stream_ahead_makes_no_row_of_another_late(session: Any) -> None:
    case = statement("AB", Pair("A", "B", 5 * SECOND, directed=True), ON_K)
    batches = cut(
        {"A": [(i, i, 0) for i in range(20)]},
        {"A": [(100, 1_000_000, 0)]},
        {"B": [(200, 3, 0)]},
        {"B": [(201, 18, 0)]},
        {"B": [(202, 1_000_001, 0)]},
    )
    run = assert_stream(session, case, batches)
    assert run.bags[2] == Counter((i, 200) for i in range(4))
    assert run.bags[3] == Counter((i, 201) for i in range(13, 19))
    assert run.bags[4] == Counter([(100, 202)])


def test_disorder_inside_the_delay_loses_nothing(session: Any) -> None:
    case = statement("AB", Within(2 * SECOND), ON_K, delay=13 * SECOND)
    times = [5, 1, 9, 3, 14, 1, 8]
    batches = cut(
        *({"A": [(i, times[i], 0)], "B": [(100 + i, times[-1 - i], 0)]} for i in range(len(times))),
    )
    run = assert_stream(session, case, batches)
    assert run.bag == Counter(
        (i, 100 + j) for i, a in enumerate(times) for j, b in enumerate(times[::-1]) if abs(a - b) <= 2
    )


def test_rows_that_a_filter_removes_advance_time(session: Any) -> None:
    """A row is late by the time of rows that WHERE removes, and they let other streams evict."""
    small = Compare(Field("A", "k"), "<", Literal(10))
    case = statement("AB", Within(10 * SECOND), ON_K, small)
    batches = cut(
        {"A": [(1, 0, 0)], "B": [(10 + i, i, 0) for i in range(8)]},
        {"A": [(2, 500, 99)], "B": [(20, 100, 0)]},
        {"A": [(3, 100, 0)], "B": [(21, 200, 0)]},
        {"A": [(4, 600, 99)], "B": [(22, 590, 0)]},
    )
    run = assert_stream(session, case, batches)
    assert sum(counts(run, "late", "A")) == 1
    assert run.bag == Counter((1, 10 + i) for i in range(8))
    # All of A before 590 s is over: only the last row of B may still meet one.
    assert counts(run, "state_rows", "B")[3] <= 2
    assert counts(run, "watermarks", "A")[3] - counts(run, "watermarks", "B")[3] == 10 * SECOND


def test_late_rows_that_could_not_join_are_counted_too(session: Any) -> None:
    """Rows that WHERE removes, and rows with a NULL key."""
    small = Compare(Field("A", "k"), "<", Literal(10))
    case = statement("AB", Within(10 * SECOND), ON_K, small)
    batches = cut(
        {"A": [(1, 100, 0)], "B": [(10, 100, 0)]},
        {"A": [(2, 99, 99), (3, 100, 99), (4, 50, None), (5, 90, 0)], "B": [(11, 20, None)]},
        {"A": [(6, 99, None), (7, None, 99)]},
    )
    run = assert_stream(session, case, batches)
    assert counts(run, "late", "A")[:3] == [0, 3, 1]
    assert counts(run, "late", "B")[:3] == [0, 1, 0]
    assert counts(run, "null_times", "A")[:3] == [0, 0, 1]


@pytest.mark.long
def test_rows_without_event_time_are_dropped_and_counted(session: Any) -> None:
    case = statement("AB", Within(10 * SECOND), ON_K)
    batches = cut(
        {"A": [(1, None, 0), (2, 1, 0), (3, None, 5)], "B": [(10, 1, 0)]},
        {"B": [(11, None, 0), (12, 2, 0)]},
    )
    run = assert_stream(session, case, batches)
    assert run.bag == Counter([(2, 10), (2, 12)])
    assert counts(run, "null_times", "A")[:2] == [2, 0]
    assert counts(run, "null_times", "B")[:2] == [0, 1]


@pytest.mark.quick
def test_late_rows_are_counted_per_stream(session: Any) -> None:
    case = statement("ABC", Within(30 * SECOND), delay=2 * SECOND)
    batches = cut(
        {"A": [(1, 50, 0)], "B": [(10, 50, 0)], "C": [(20, 50, 0)]},
        {"A": [(2, 40, 0), (3, 41, 0), (4, 49, 0)], "B": [(11, 47.9, 0)], "C": [(21, 48, 0)]},
        {"A": [(5, 10, 0)], "C": [(22, 60, 0), (23, 47, 0)]},
    )
    run = assert_stream(session, case, batches)
    left = surviving(case, batches)
    for alias, total in (("A", 3), ("B", 1), ("C", 1)):
        assert sum(left[alias].late) == total
        assert counts(run, "late", alias)[:3] == list(left[alias].late)
        assert counts(run, "rows_in", alias)[:3] == list(left[alias].rows_in)


def test_null_keys_match_nothing_on_a_stream_but_advance_time(session: Any) -> None:
    case = statement("AB", Within(10 * SECOND), ON_K)
    batches = cut(
        {"A": [(1, 0, None), (2, 0, 1)], "B": [(10, 0, None), (11, 0, 1)]},
        {"A": [(3, 100, None)]},
        {"A": [(4, 99, 1)], "B": [(12, 5, 1), (13, 99, 1)]},
    )
    run = assert_stream(session, case, batches)
    assert run.bag == Counter([(2, 11), (2, 12)])
    assert sum(counts(run, "late", "A")) == 1


@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.parametrize("first", ["A", "B"])
@pytest.mark.parametrize("stored", [True, False], ids=["stored before", "arriving after"])
def test_a_row_is_kept_to_the_last_instant_at_which_it_can_be_joined(
    session: Any, stored: bool, first: str, delay: int
) -> None:
    """The other watermark stands exactly at the bound: a row that is just not late meets the kept row."""
    second = "B" if first == "A" else "A"
    window = Between(first, second, -SECOND, 5 * SECOND)
    case = statement("AB", window, ON_K, delay=delay * SECOND)
    kept = {first: [(1, 100, 0), (2, 90, 0), (3, 91, 0)]}
    mark = {second: [(20, 105 + delay, 9)]}
    last = [{second: [(11, 105, 0)]}, {second: [(12, 105, 0)]}]
    batches = cut(*([kept, mark, *last] if stored else [mark, kept, *last]))
    run = assert_stream(session, case, batches)
    assert run.bag.total() == 2


@pytest.mark.parametrize(
    "restarts",
    [pytest.param((), marks=pytest.mark.long), pytest.param((1,), marks=pytest.mark.long), (1, 2, 3, 4)],
    ids=str,
)
def test_a_restart_keeps_rows_and_watermarks(session: Any, restarts: tuple[int, ...]) -> None:
    case = statement("AB", Between("A", "B", -SECOND, 5 * SECOND), ON_K, match=("time",))
    batches = cut(
        {"A": [(1, 10, 0)], "B": [(10, 8, 0)]},
        {"B": [(11, 9, 0)]},
        {"A": [(2, 9, 0), (3, 11, 0)]},
        {"B": [(12, 15, 0)]},
        {"B": [(13, 14, 0), (14, 16, 0)]},
    )
    run = assert_stream(session, case, batches, restarts=restarts)
    assert sum(counts(run, "late", "A")) == 1
    assert sum(counts(run, "late", "B")) == 1


def run_with_absent_files(session: Any, case: Statement, batches: list[dict[str, pa.Table]]) -> Run:
    """Run with no file at all, instead of an empty one, where a stream has no row."""
    absent = [
        {alias: table if table.num_rows else None for alias, table in batch.items()} for batch in batches
    ]
    return run_batches(session, text(case, PLAIN), sources_of(case, absent))


def test_a_source_without_new_files_is_an_idle_stream(session: Any) -> None:
    case = statement("AB", Within(5 * SECOND), ON_K)
    batches = cut(
        {"A": [(1, 0, 0)], "B": [(10, 2, 0)]},
        {"A": [(2, 3, 0)]},
        {"A": [(3, 60, 0)]},
        {"B": [(11, 4, 0)]},
        {"B": [(12, 58, 0)]},
    )
    run = run_with_absent_files(session, case, batches)
    assert run.bags == expected_batches(case, batches)
    assert run.bag == Counter([(1, 10), (2, 10), (1, 11), (2, 11), (3, 12)])


def test_a_stream_that_never_sends_loses_nothing_and_finds_nothing(session: Any) -> None:
    case = statement("ABC", Within(5 * SECOND))
    empty: dict[str, Sequence[tuple[Any, ...]]] = {"A": [(1, 0, 0)], "B": [(10, 0, 0)], "C": []}
    batches = cut(empty, {"A": [(2, 100, 0)]}, {"B": [(11, 100, 0)]}, {"C": [(20, 100, 0), (21, 0, 0)]})
    run = assert_stream(session, case, batches)
    assert run.bag == Counter([(2, 11, 20), (1, 10, 21)])
