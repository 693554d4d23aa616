"""How busy a query was in its last micro-batch, by what Spark reports."""

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from wjoin.measured.progress import Progress
from wjoin.measured.reports import MicroBatchReport
from wjoin.measured.utilization import Busy, Utilization, UtilizationRules

BEGAN = datetime(2026, 11, 29, 10, tzinfo=UTC)
RULES = UtilizationRules(fixed=0.3, interval=1.0, memory=1000)


def report(
    second: float,
    took: float,
    tasks: float,
    seen: float | None = None,
    state: int = 0,
    *,
    idle: bool = False,
) -> MicroBatchReport:
    """Return what is told of a micro-batch that began at a second; ``seen``: of which one its last row is."""
    at = BEGAN + timedelta(seconds=second)
    newest = None if seen is None else round((BEGAN + timedelta(seconds=seen)).timestamp() * 1e6)
    progress = Progress(
        query="q",
        batch=0,
        started=at.isoformat().replace("+00:00", "Z"),
        seconds=took,
        parts={"addBatch": round(1000 * tasks)},
        seen={} if newest is None else {"A": newest},
        state_bytes=state,
        idle=idle,
    )
    return MicroBatchReport(cast(Any, {}), progress)


def measured(*reports: MicroBatchReport) -> Busy | None:
    utilization = Utilization(RULES)
    for each in reports:
        utilization.take(each)
    return utilization.now


def test_a_query_is_busy_with_rows_for_a_share_of_the_time_in_which_they_came() -> None:
    # Those of the second micro-batch came in ten seconds, and took one less what any micro-batch takes.
    found = measured(report(0, 1, 0.8, seen=0), report(10, 1.5, 1.3, seen=10))
    assert found == Busy(pytest.approx(0.1), "2026-11-29T10:00:11Z")
    assert found.words == "measured: busy 10% of the time, at 2026-11-29T10:00:11Z"


def test_times_that_are_not_of_the_present_tell_nothing_so_the_clock_does() -> None:
    found = measured(report(0, 1, 0.8, seen=-(10**7)), report(1, 4, 3.5, seen=-9 * 10**6))
    assert found is not None
    assert found.utilization == pytest.approx(3.2 / 4)


def test_a_state_that_is_nearly_full_counts_where_it_is_worse() -> None:
    found = measured(report(0, 1, 0.8, seen=0), report(10, 1.5, 1.3, seen=10, state=700))
    assert found is not None
    assert found.utilization == pytest.approx(0.7)


def test_a_short_micro_batch_is_in_time_and_one_after_a_rest_is_not_compared() -> None:
    found = measured(report(0, 0.5, 0.4), report(0.5, 0.5, 0.4))
    assert found is not None
    assert found.utilization == pytest.approx(0.1)
    assert measured(report(0, 1, 0.8), report(5, 0, 0, idle=True), report(9, 1, 0.8)) is None
