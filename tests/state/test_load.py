"""The load while a query runs, from the reports of its micro-batches: what executors follow."""

import datetime
from typing import Any, cast

import pytest

from wjoin.measured.load import Following, Load
from wjoin.measured.progress import read
from wjoin.measured.reports import MicroBatchReport
from wjoin.spark.executors import Executors

BEGIN = 1_700_000_000


class Noted(Following):
    """Notes the loads of two executors, and asks for nothing."""

    def __init__(self) -> None:
        self.loads: list[float] = []
        self.worked = 0.0

    def found(self) -> Executors:
        """Return executors that have worked for so long."""
        return Executors(("0", "1"), 2, self.worked)

    def put(self, run: str, load: float) -> None:
        """Note a load."""
        assert run == "run"
        self.loads.append(load)


def report(second: int, *, newest: int | None = None, shed: int = 0, idle: bool = False) -> MicroBatchReport:
    """Return the report of a micro-batch that ends at a second, with the rows until the ``newest``."""
    seen = (BEGIN + (second if newest is None else newest)) * 1_000_000
    counts = {"rows:A": 10, "seen:A": seen, "delay:A": 0, "shed:A": shed, "comparisons": 1, "matches": 0}
    body = {
        "id": "q",
        "batchId": second,
        "batchDuration": 1000,
        "durationMs": {} if idle else {"addBatch": 900},
        "timestamp": datetime.datetime.fromtimestamp(BEGIN + second - 1, datetime.UTC).isoformat(),
        "sources": [{"numInputRows": 10}],
        "observedMetrics": {} if idle else {"wjoin:0:0": {"counts": counts}},
    }
    return MicroBatchReport(cast(Any, body), read(body))


def loads(*reports: tuple[float, MicroBatchReport]) -> list[float]:
    """Return the loads after reports, each with the seconds of tasks until then."""
    noted = Noted()
    load = Load("run", 1.0, noted)
    for worked, each in reports:
        noted.worked = worked
        load.take(each)
    return noted.loads


def test_it_is_the_time_of_tasks_by_that_of_all_that_run_at_once() -> None:
    found = loads((1.0, report(0)), (9.0, report(4)), (9.5, report(5)))
    assert found == pytest.approx([8 / 16, 0.5 / 4])


def test_rows_that_came_in_less_time_are_too_much() -> None:
    assert loads((0.0, report(0)), (16.0, report(4, newest=2))) == pytest.approx([2.0])
    # Those of a backlog are worked off as fast as it goes.
    assert loads((0.0, report(0)), (16.0, report(4, newest=60))) == pytest.approx([1.0])


def test_what_is_shed_counts() -> None:
    assert loads((0.0, report(0)), (8.0, report(4, shed=5))) == pytest.approx([1.0])


def test_a_query_that_rests_has_none_and_a_short_micro_batch_is_in_time() -> None:
    assert loads((0.0, report(0)), (3.0, report(9, idle=True))) == [0.0]
    assert loads((0.0, report(0)), (0.4, report(1, newest=0))) == pytest.approx([0.1])
