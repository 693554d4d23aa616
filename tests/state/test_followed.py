"""A query's reports are read once, for all who follow it; what is due is done at its end, and once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from wjoin.measured import followed
from wjoin.measured.followed import Followed, Follower
from wjoin.measured.reports import MicroBatchReport


@dataclass
class Query:
    """A query that runs, and what Spark keeps of its reports; they are counted as they are asked for."""

    runId: str  # noqa: N815 (Spark's name)
    recentProgress: list[dict[str, Any]] = field(default_factory=list)  # noqa: N815 (Spark's name)
    isActive: bool = True  # noqa: N815 (Spark's name)
    id: str = "q"
    name: str = "out"

    @property
    def status(self) -> dict[str, bool]:
        return {"isTriggerActive": True, "isDataAvailable": bool(self.recentProgress)}

    def exception(self) -> Exception | None:
        return None if self.isActive else RuntimeError("broken")

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802 (Spark's name)
        return self.recentProgress[-1] if self.recentProgress else None

    def reports(self, batch: int, rows: int = 1) -> None:
        times = {"addBatch": 1} if rows else {}
        at = f"2026-01-01T00:00:{len(self.recentProgress):02}Z"
        self.recentProgress.append(
            {"id": "q", "batchId": batch, "numInputRows": rows, "durationMs": times, "timestamp": at}
        )


@dataclass
class Seen:
    """Follows a query, and notes what it is told."""

    taken: list[int] = field(default_factory=list)
    tended: int = 0
    ended: int = 0

    def take(self, report: MicroBatchReport) -> None:
        self.taken.append(report.progress.batch)

    def tend(self) -> None:
        self.tended += 1

    def end(self) -> None:
        self.ended += 1


def followed_of(query: Query) -> Followed:
    return Followed(cast(Any, query))


@pytest.fixture
def running() -> list[Query]:
    return []


@pytest.fixture
def follower(running: list[Query]) -> Iterator[Follower]:
    found = Follower(cast(Any, SimpleNamespace(streams=SimpleNamespace(active=running))))
    yield found
    found.end()


def test_each_report_is_taken_once_whoever_looks() -> None:
    query, seen, later = Query("r"), Seen(), Seen()
    run = followed_of(query)
    run.observe(seen)
    query.reports(0)
    run.look()
    run.observe(later)
    run.look()
    for batch in (1, 2, 3):
        query.reports(batch)
    run.tend()
    query.reports(4, rows=0)
    run.look()
    query.reports(4)
    run.look()
    assert seen.taken == [0, 1, 2, 3, 4, 4]
    assert later.taken == seen.taken
    assert (run.totals.total.batches, run.totals.total.rows_read) == (5, 5)
    assert run.last is not None
    assert run.last.body is query.lastProgress
    assert run.micro_batch is run.last


def test_the_last_micro_batch_is_known_when_an_idle_time_has_followed() -> None:
    query = Query("r")
    run = followed_of(query)
    query.reports(0, rows=0)
    run.look()
    assert (run.last is not None, run.micro_batch) == (True, None)
    query.reports(0)
    query.reports(1, rows=0)
    run.look()
    assert run.last is not None
    assert run.micro_batch is not None
    assert (run.last.progress.idle, run.last.progress.batch) == (True, 1)
    assert (run.micro_batch.progress.idle, run.micro_batch.progress.batch) == (False, 0)


def test_idle_times_before_the_first_rows_are_told_of_once_each() -> None:
    query, seen = Query("r"), Seen()
    run = followed_of(query)
    run.observe(seen)
    for _ in range(3):
        query.reports(0, rows=0)
        query.reports(0, rows=0)
        run.look()
        run.look()
    for batch in (0, 1):
        query.reports(batch)
    run.look()
    # Of two idle times between looks the later one is enough.
    assert seen.taken == [0, 0, 0, 0, 0, 1]
    assert run.totals.total.batches == 2


def test_whoever_comes_late_gets_the_first_reports_too() -> None:
    query, seen = Query("r"), Seen()
    run = followed_of(query)
    for batch in range(3):
        query.reports(batch)
    run.look()
    run.observe(seen)
    query.reports(3)
    run.look()
    assert seen.taken == [0, 1, 2, 3]


def test_the_end_comes_once_after_the_last_report() -> None:
    query, seen = Query("r"), Seen()
    run = followed_of(query)
    run.observe(seen)
    query.reports(0)
    run.tend()
    assert (seen.tended, seen.ended, run.ended) == (1, 0, None)
    query.reports(1)
    query.isActive = False
    run.settle()
    run.tend()
    run.settle()
    assert (seen.taken, seen.tended, seen.ended) == ([0, 1], 1, 1)
    assert run.ended is not None
    assert str(run.error) == "broken"


def test_queries_of_others_are_followed_and_ended_ones_are_known_for_a_while(
    follower: Follower, running: list[Query], monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[list[str]] = []

    def note(followed: Sequence[Followed]) -> None:
        rounds.append([each.run for each in followed])

    follower.each_round(note)
    own, other = Query("own"), Query("other")
    run = follower.follow(cast(Any, own))
    running[:] = [own, other]
    follower.look()
    assert follower.follow(cast(Any, own)) is run
    running.remove(own)
    own.isActive = False
    follower.look()
    assert follower.follow(cast(Any, own)) is run, "else what it has dropped would be told of twice"
    monkeypatch.setattr(followed, "_LINGERS_SECONDS", 0.0)
    follower.look()
    assert rounds == [["own", "other"], ["own", "other"], ["other"]]
    follower.no_round(note)
    follower.look()
    assert len(rounds) == 3


def test_a_failing_session_ends_the_thread(
    follower: Follower, monkeypatch: pytest.MonkeyPatch, running: list[Query]
) -> None:
    def fail() -> bool:
        raise ConnectionError("gone")

    query = Query("r")
    running.append(query)
    monkeypatch.setattr(followed, "_SECONDS", 0.001)
    monkeypatch.setattr(followed, "stopped", lambda spark: True)
    failing = property(lambda _: fail())
    monkeypatch.setattr(Query, "isActive", failing)
    follower.begin()
    thread = follower._thread
    assert thread is not None
    thread.join(10)
    assert not thread.is_alive()
    follower.settle()


def test_who_comes_once_a_query_has_ended_does_what_is_left_to_do() -> None:
    query, seen = Query("r"), Seen()
    run = followed_of(query)
    query.reports(0)
    query.isActive = False
    run.tend()
    run.observe(seen)
    run.tend()
    assert (seen.taken, seen.tended, seen.ended) == ([0], 0, 1)
