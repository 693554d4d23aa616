"""The queries of a Spark session that the live page shows, whoever has started them; ended ones stay."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from wjoin.executor.spark.once import SELECT
from wjoin.grammar.spans import Span
from wjoin.measured.beside import UNREACHABLE
from wjoin.measured.followed import Followed, follower_of
from wjoin.planner.explain.describe import describe
from wjoin.planner.explain.document import Document
from wjoin.planner.planning import PlannedSelect
from wjoin.queries.compiled import compiled
from wjoin.queries.running import Running
from wjoin.queries.session_queries import Queries, free
from wjoin.spark.failures import cause
from wjoin.web.present import ENDINGS, Known

ENDED = 20
"""Queries that have ended and are still shown, the latest ones."""

FRESH_SECONDS = 0.7
"""How old may be what somebody sees who looks."""

_PATIENCE_SECONDS = 3.0
"""How long whoever looks waits for Spark to answer; then they see what was known before."""

_NOWHERE = Span(0, 0)


class Watched:
    """A query and its last hour."""

    def __init__(self, running: Running, run: str, name: str) -> None:
        self._running = running
        plans = dict(zip(running.compiled, running.planned, strict=True))
        self._known = Known(
            run=run,
            id=running.followed.id,
            name=name,
            called=running.name,
            state="starting",
            started=running.started.timestamp(),
            hour=running.totals.history.read(),
            sink=running.sink,
            checkpoint=running.checkpoint,
            statement=running.written or None,
            plans=plans,
            documents=_described(plans),
        )

    def known(self) -> Known:
        """Return what is known of it now."""
        return replace(self._known, hour=self._running.totals.history.read())

    def look(self) -> None:
        """Take what Spark tells of it now; nothing more comes of one that has ended."""
        if self._known.active:
            self._running.followed.look()
            state = self._running.state
            if state in ENDINGS:
                self._running.followed.look()
            error = _error(self._running) if state == "failed" else None
            self._known = replace(self._known, state=state, error=error)
            self._find_plans()

    def lose(self) -> None:
        """Note that Spark has been stopped, and the query with it."""
        if self._known.active:
            error = "Spark no longer answers: it was stopped, or cannot be reached"
            self._known = replace(self._known, state="ended", error=error)

    def _find_plans(self) -> None:
        """Take the plans of the joins that its reports name, as far as they are known here."""
        named = {int(stage.partition(".")[0]) for stage in self._running.totals.total.matches}
        found = {number: compiled(number) for number in named - self._known.plans.keys()}
        new = {number: planned for number, planned in found.items() if planned is not None}
        if new:
            plans = dict(sorted({**self._known.plans, **new}.items()))
            self._known = replace(self._known, plans=plans, documents=_described(plans))


def _described(plans: Mapping[int, PlannedSelect]) -> dict[int, Document]:
    return {number: describe(each) for number, each in plans.items()}


class Watch:
    """Watches the queries of a Spark session; ``queries`` are those that a session of wjoin's has started."""

    def __init__(self, spark: SparkSession, queries: Queries) -> None:
        self._follower = follower_of(spark)
        self._queries = queries
        self._met: set[str] = set()
        self._taken = 0
        self._watched: dict[str, Watched] = {}
        self._looking = threading.Lock()
        self._looked = float("-inf")
        self._closed = threading.Event()
        self._follower.each_round(self._round)

    def read(self) -> tuple[Known, ...]:
        """Return the queries, oldest first, as they were less than a second ago where Spark answers."""
        if time.monotonic() - self._looked > FRESH_SECONDS:
            self.look()
        return tuple(each.known() for each in self._watched.values())

    def look(self) -> None:
        """Ask Spark about the queries, unless somebody else does and gets no answer."""
        if not self._looking.acquire(timeout=_PATIENCE_SECONDS):
            return
        try:
            if time.monotonic() - self._looked > FRESH_SECONDS and not self._closed.is_set():
                self._look()
        finally:
            self._looking.release()

    def close(self) -> None:
        """Take nothing of the queries any more."""
        self._closed.set()
        self._follower.no_round(self._round)

    def _round(self, followed: Sequence[Followed]) -> None:
        """Look where a query has begun or ended, also while nobody else looks."""
        known = {run for run, each in self._watched.items() if each.known().active}
        if known != {each.run for each in followed if each.ended is None}:
            self.look()

    def _look(self) -> None:
        """Ask Spark about each query that may still run; those that are gone are noted so."""
        try:
            for running in self._new():
                self._add(running)
            for each in self._watched.values():
                each.look()
        except UNREACHABLE:
            for each in self._watched.values():
                each.lose()
        over = [run for run, each in self._watched.items() if not each.known().active][:-ENDED]
        self._watched = {run: each for run, each in self._watched.items() if run not in over}
        self._looked = time.monotonic()

    def _add(self, running: Running) -> None:
        run = running.followed.run
        self._met.add(run)
        # A query may be found among those of Spark before its statement has noted it.
        others = [each.known() for other, each in self._watched.items() if other != run]
        taken = [each.name for each in others if each.active]
        self._watched = {**self._watched, run: Watched(running, run, free(running.name, taken.__contains__))}

    def _new(self) -> Iterator[Running]:
        """Yield the queries that are not watched yet."""
        started = self._queries.started
        while self._taken < len(started):
            running = started[self._taken]
            self._taken += 1
            yield running
        for followed in self._follower.followed:
            if followed.run not in self._met:
                yield _foreign(followed)


def _foreign(followed: Followed) -> Running:
    """Return a query that no statement has started."""
    name = followed.query.name or f"query {followed.id[:8]}"
    if name.startswith(SELECT):
        name = "SELECT"
    return Running(followed, "", _NOWHERE, _NOWHERE, name)


def _error(running: Running) -> str | None:
    """Return why a query has failed, None where it has not."""
    if running.text and (failed := running.failed) is not None:
        return str(failed)
    error = running.query.exception()
    return None if error is None else cause(error)
