"""A checkpoint in which an earlier version has taken in a row of the far future says so."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pytest
from pyspark.sql.streaming.tws_tester import TwsTester

import wjoin
from wjoin import progress
from wjoin.executor.report import COUNTERS, NOTHING_SEEN, PLACES, Fold
from wjoin.executor.spark import messages
from wjoin.executor.spark.operator import Operator
from wjoin.executor.spark.processor import JoinProcessor
from wjoin.executor.step import StageLogic
from wjoin.measured.dropped import Losses
from wjoin.measured.totals import Totals
from wjoin.parts.kernels.registry import kernels_of
from wjoin.planner.plan.ahead import GREATEST_NUMBER
from wjoin.planner.plan.edges import with_columns
from wjoin.planner.plan.physical import (
    Bounds,
    KeyCode,
    Output,
    PhysicalPlan,
    Shipping,
    Stage,
    StageInput,
    StreamScan,
    TimeKind,
)
from wjoin.planner.plan.probes import arranged

FAR = GREATEST_NUMBER + 1


def processor() -> JoinProcessor:
    code = KeyCode(("k",), ("bigint",), exact=True, verify=())
    scans = tuple(StreamScan(name, "ts", 0, (), (), (code,), True) for name in "AB")
    inputs = tuple(StageInput((n,), None, (n, 0)) for n in range(2))
    stage = Stage(inputs, Bounds.EXACT, "hash", kernels_of("hw"), Shipping.BLOCKS)
    drawn = PhysicalPlan(scans, TimeKind.INTEGRAL, ((0, 5), (5, 0)), (), (stage,), (Output("", ()),))
    return JoinProcessor(Operator(StageLogic(arranged(with_columns(drawn), [None]), 0), (0,), {}, "plan"))


def told(tester: TwsTester, seen: Mapping[int, int]) -> dict[str, dict[str, int]]:
    """Run a micro-batch that brings the progress of streams; return what is counted of each stream."""
    brought = [messages.progress(0, stream, time) for stream, time in seen.items()]
    found = tester.testInPandas(0, pd.DataFrame(brought, columns=messages.SCHEMA.names))
    (values,) = (row["counts"] for _, row in found.iterrows() if row["kind"] == messages.REPORT)
    # Those of the stage come first.
    size = len(COUNTERS)
    own = (values[size * number : size * (number + 1)] for number in (1, 2))
    counts = [{name: int(each[place]) for name, place in PLACES.items()} for each in own]
    return dict(zip("AB", counts, strict=True))


def test_the_operator_counts_a_time_that_it_finds_too_far_ahead() -> None:
    tester = TwsTester(processor())
    assert told(tester, {0: 7, 1: GREATEST_NUMBER})["A"]["furthest"] == NOTHING_SEEN
    assert told(tester, {0: 8, 1: FAR})["B"]["furthest"] == NOTHING_SEEN
    counts = told(tester, {0: 9})
    assert (counts["A"]["furthest"], counts["A"]["ahead"]) == (NOTHING_SEEN, 0)
    assert (counts["B"]["furthest"], counts["B"]["ahead"]) == (FAR, 0)


@dataclass
class Told:
    """What a query has to tell; that of a running one is Spark's."""

    recentProgress: Sequence[Mapping[str, Any]]  # noqa: N815 (Spark's name)
    name: str = "out"
    id: uuid.UUID = field(default_factory=uuid.uuid4)

    @property
    def lastProgress(self) -> Mapping[str, Any]:  # noqa: N802 (Spark's name)
        return self.recentProgress[-1]


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


def losses_of(reports: list[dict[str, Any]]) -> Losses:
    # A query with reports, of which nothing else is asked.
    return Losses(Told(reports))  # type: ignore[arg-type]


def test_the_state_is_told_of_once_and_rows_by_their_number() -> None:
    far, rows = counted(furthest=FAR), counted(furthest=FAR + 5, ahead=2, rows=3)
    reports = [report(0, {"A": counted(), "B": far}), report(1, {"A": rows, "B": far})]
    read = progress.read(reports[1])
    assert read.furthest == {"A": FAR + 5, "B": FAR}
    with pytest.warns(wjoin.WJoinWarning) as warned:
        losses = losses_of(reports)
        losses.look()
        losses.end()
    texts = {each.message.code: each.message.message for each in warned}  # type: ignore[union-attr]
    assert texts["WJ808"] == (
        f"in the checkpoint of the query out time has come to {FAR} in B: all rows before that are late"
    )
    assert texts["WJ807"].endswith(f"rows too far ahead (4 of A), the furthest at {FAR + 5} in A")
    assert len(warned) == len(texts)


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
