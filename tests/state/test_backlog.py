"""A query falls behind where more waits after each micro-batch, and not where it works off a backlog."""

import datetime
import warnings
from typing import Any, cast

import pytest

from wjoin.grammar.errors import WJoinWarning
from wjoin.measured.backlog import Backlog, waiting
from wjoin.measured.progress import read
from wjoin.measured.reports import MicroBatchReport


def report(batch: int, files: int, *, idle: bool = False) -> MicroBatchReport:
    times = {} if idle else {"addBatch": 1}
    metrics = {"numFilesOutstanding": str(files), "numBytesOutstanding": str(files * 1000)}
    body = {
        "id": "q",
        "batchId": batch,
        "durationMs": times,
        "timestamp": f"2026-01-01T00:00:{batch:02}Z",
        "sources": [{"numInputRows": 1, "metrics": metrics}],
    }
    return MicroBatchReport(cast(Any, body), read(body))


def backlog_of(*files: int) -> Backlog:
    found = Backlog("the query out")
    for batch, count in enumerate(files):
        found.take(report(batch, count))
    return found


@pytest.mark.parametrize(
    "files",
    [
        (0, 0, 0, 0),
        (9, 7, 5, 3, 1),
        (1, 2, 1, 2, 3),
        (5, 5, 5, 5),
        (1, 2, 0, 1, 2),
        # A source that lists its files anew when it has read those that it knows.
        (4, 2, 0, 4, 2, 0, 4, 2, 0, 4),
        # A little up and down.
        (70, 71, 60, 72, 65, 73),
    ],
)
def test_what_is_worked_off_or_stays_is_not_told(files: tuple[int, ...]) -> None:
    assert backlog_of(*files).words == ""


def test_three_rises_are_told_with_their_beginning_and_once_a_minute() -> None:
    found = backlog_of(0, 3, 5, 5, 9)
    assert found.words == "falls behind: 9 files (9 kB) wait, ever more since 2026-01-01T00:00:01Z"
    with pytest.warns(WJoinWarning, match="WJ816.*the query out falls behind: 9 files") as warned:
        found.tend()
        found.tend()
    assert len(warned) == 1


def test_longer_and_longer_lists_of_files_are_told() -> None:
    assert backlog_of(3, 1, 0, 5, 2, 0, 8, 4, 0, 12, 7).words.startswith("falls behind: 7 files")


def test_a_query_that_waits_for_rows_is_behind_no_more() -> None:
    found = backlog_of(1, 2, 3, 4)
    assert found.words
    found.take(report(4, 0, idle=True))
    assert found.words == ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.tend()


def test_records_of_kafka_wait_where_their_topics_go_on() -> None:
    sources = [
        {"endOffset": {"a": {"0": 5, "1": 7}}, "latestOffset": {"a": {"0": 9, "1": 7}}, "metrics": {}},
        {"endOffset": '{"b":{"0":1}}', "latestOffset": '{"b":{"0":4}}'},
        {"endOffset": 12, "latestOffset": 14},
        {"endOffset": {"sites": [{"lineage": "x", "next": 3}]}, "latestOffset": None, "metrics": None},
    ]
    assert waiting({"sources": sources}) == {"records": 7}


def lagging(*steps: tuple[float, float], pause: float = 0.0) -> Backlog:
    """Return what is told of micro-batches that took so many seconds, for so many of event time."""
    found = Backlog("the query out")
    clock, seen = 1_770_000_000.0, 1_770_000_000.0
    for batch, (took, came) in enumerate(steps):
        started = datetime.datetime.fromtimestamp(clock, datetime.UTC)
        clock, seen = clock + took, seen + came
        counts = {"rows:A": 1, "seen:A": round(seen * 1e6), "delay:A": 0}
        body = {
            "id": "q",
            "batchId": batch,
            "durationMs": {"addBatch": 1},
            "batchDuration": round(took * 1000),
            "timestamp": started.isoformat().replace("+00:00", "Z"),
            "observedMetrics": {"wjoin:1:0": {"counts": counts}},
        }
        found.take(MicroBatchReport(cast(Any, body), read(body)))
        clock += pause
    return found


def test_a_lag_that_grows_is_told_within_three_micro_batches() -> None:
    # Each has twice the rows of the one before, as these came while that ran.
    told = lagging((1, 1), (2, 1), (4, 2), (8, 4)).words
    assert told.startswith("falls behind: the newest row is 7.0 s behind the clock, ever more since 2026-")
    assert lagging((1, 1), (2, 1), (4, 2)).words == ""


@pytest.mark.parametrize(
    ("steps", "pause"),
    [
        # It keeps up, with a little up and down.
        (((0.3, 0.3), (0.35, 0.3), (0.36, 0.3), (0.4, 0.3), (0.3, 0.5)), 0.0),
        # Its source is what falls behind: it rests.
        (((1, 0), (1, 0), (1, 0), (1, 0)), 1.0),
    ],
)
def test_a_query_that_keeps_up_is_not_told(steps: tuple[tuple[float, float], ...], pause: float) -> None:
    assert lagging(*steps, pause=pause).words == ""
