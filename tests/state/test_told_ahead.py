"""What a query tells of rows of the far future that it has dropped."""

from collections.abc import Mapping
from typing import Any, cast

import pytest

import wjoin
from wjoin import progress
from wjoin.executor.report import COUNTERS, NOTHING_SEEN, Fold
from wjoin.measured.dropped_rows import Losses
from wjoin.measured.reports import MicroBatchReport
from wjoin.measured.totals import Totals
from wjoin.planner.plan.ahead import GREATEST_NUMBER

FAR = GREATEST_NUMBER + 1


def report(batch: int, counts: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    values = {f"{name}:{alias}": value for alias, each in counts.items() for name, value in each.items()}
    values |= {"matches": 0, "comparisons": 0, **{f"delay:{alias}": 0 for alias in counts}}
    return {
        "name": "out",
        "batchId": batch,
        "numInputRows": 1,
        "stateOperators": [],
        "observedMetrics": {"wjoin:0:0": {"counts": values}, "wjoin:0:1": {"counts": values}},
    }


def counted(**known: int) -> dict[str, int]:
    nothing = {each.name: NOTHING_SEEN if each.fold is Fold.MAX else 0 for each in COUNTERS}
    return {**nothing, "rows": 1, "seen": 1, **known}


def losses_of(bodies: list[dict[str, Any]]) -> Losses:
    totals = Totals()
    losses = Losses("the query out", totals)
    for body in bodies:
        told = MicroBatchReport(cast(Any, body), progress.read(body))
        totals.add(told.progress)
        losses.take(told)
    return losses


def test_rows_too_far_ahead_are_told_of_with_their_number() -> None:
    rows = counted(furthest=FAR + 5, ahead=2, rows=3)
    reports = [report(0, {"A": counted(), "B": counted()}), report(1, {"A": rows, "B": counted()})]
    assert progress.read(reports[1]).furthest == {"A": FAR + 5}
    with pytest.warns(wjoin.WJoinWarning) as warned:
        losses = losses_of(reports)
        losses.tend()
        losses.end()
    texts = {each.message.code: each.message.message for each in warned}
    assert texts["WJ807"].endswith(f"rows too far ahead (4 of A), the furthest at {FAR + 5} in A")
    assert texts.keys() == {"WJ806", "WJ807"}


def test_a_time_beyond_the_year_9999_is_told_as_a_date() -> None:
    """Milliseconds that are read as seconds come there, and a number of 19 digits tells nobody why."""
    read_as_seconds = 1_714_557_600_250 * 1_000_000
    with pytest.warns(wjoin.WJoinWarning, match=r"the furthest at 56302-03-03 16:04:10 in A\n") as warned:
        losses_of([report(0, {"A": counted(furthest=read_as_seconds, ahead=1)})]).end()
    assert "the unit of its numbers (docs/event-time.md)" in str(warned[0].message)


def test_rows_too_far_ahead_are_in_the_last_line() -> None:
    totals = Totals()
    totals.add(progress.read(report(0, {"A": counted(ahead=2, furthest=FAR, rows=3)})))
    assert "0 without event time, 4 too far ahead" in totals.line()
