"""The queries of a Spark session that the live page shows, whoever has started them; ended ones stay."""

import threading
from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from wjoin.executor.spark.once import SELECT
from wjoin.grammar.spans import Span
from wjoin.measured.followed import Followed, follower_of
from wjoin.planner.explain.describe import describe
from wjoin.planner.explain.document import Document
from wjoin.planner.planning import PlannedSelect
from wjoin.queries.compiled import compiled
from wjoin.queries.running import Running
from wjoin.queries.session_queries import Queries, free
from wjoin.spark.spark_failures import cause
from wjoin.web.present import ENDINGS, QueryState

ENDED = 20
"""Queries that have ended and are still shown, the latest ones."""

_LOST = "Spark no longer answers: it was stopped, or cannot be reached"
_NOWHERE = Span(0, 0)


class Watched:
    """A query, and what it is called among those that are shown."""

    def __init__(self, running: Running, name: str) -> None:
        self.running = running
        self.name = name
        self._plans = dict(zip(running.compiled, running.planned, strict=True))
        self._documents = _described(self._plans)

    def known(self, *, reached: bool) -> QueryState:
        """Return what was known of it at the follower's last look, at which Spark was ``reached`` or not."""
        running, hour = self.running, self.running.totals.hour()
        state, error = running.state, None
        if state not in ENDINGS and not reached:
            state, error = "ended", _LOST
        elif state == "failed":
            error = _error(running)
        if (newest := running.totals.newest) is not None:
            self._find_plans(set(newest.joins))
        return QueryState(
            run=running.followed.run,
            id=running.followed.id,
            name=self.name,
            called=running.name,
            state=state,
            started=running.started.timestamp(),
            hour=hour,
            error=error,
            note=running.followed.silence.words,
            sink=running.sink,
            checkpoint=running.checkpoint,
            statement=running.written or None,
            plans=self._plans,
            documents=self._documents,
        )

    def _find_plans(self, named: set[int]) -> None:
        """Take the plans of the joins that its reports name, as far as they are known here."""
        found = {number: compiled(number) for number in named - self._plans.keys()}
        new = {number: planned for number, planned in found.items() if planned is not None}
        if new:
            self._plans = dict(sorted({**self._plans, **new}.items()))
            self._documents = _described(self._plans)


def _described(plans: Mapping[int, PlannedSelect]) -> dict[int, Document]:
    return {number: describe(each) for number, each in plans.items()}


class QueryWatch:
    """Watches the queries of a Spark session; ``queries`` are those that a session of wjoin's has started.

    It asks Spark nothing: it tells what their follower has seen, half a second ago where Spark answers.
    """

    def __init__(self, spark: SparkSession, queries: Queries) -> None:
        self._follower = follower_of(spark)
        self._queries = queries
        self._watched: dict[str, Watched] = {}
        self._met: set[str] = set()
        self._changing = threading.Lock()
        self._follower.each_round(self._meet)

    def read(self) -> tuple[QueryState, ...]:
        """Return the queries, oldest first."""
        self._meet(self._follower.followed)
        with self._changing:
            found = [each.known(reached=self._follower.reached) for each in self._watched.values()]
            for ended in [each.run for each in found if not each.active][:-ENDED]:
                del self._watched[ended]
        return tuple(each for each in found if each.run in self._watched)

    def close(self) -> None:
        """Take nothing of the queries any more."""
        self._follower.no_round(self._meet)

    def _meet(self, followed: Sequence[Followed]) -> None:
        """Take the queries that are new: those of statements, and those that others have started."""
        with self._changing:
            for each in self._queries.started:
                known = self._watched.get(each.followed.run)
                # The follower may have met it before its statement has noted it.
                if each.followed.run not in self._met or (known is not None and known.running is not each):
                    self._add(each)
            for new in followed:
                if new.run not in self._met:
                    self._add(_foreign(new))

    def _add(self, running: Running) -> None:
        run = running.followed.run
        self._met.add(run)
        others = (each.running for other, each in self._watched.items() if other != run)
        taken = {each.name for each in others if each.state not in ENDINGS}
        self._watched[run] = Watched(running, free(running.name, taken.__contains__))


def _foreign(followed: Followed) -> Running:
    """Return a query that no statement has started."""
    name = followed.query.name or f"query {followed.id[:8]}"
    if name.startswith(SELECT):
        name = "SELECT"
    return Running(followed, "", _NOWHERE, _NOWHERE, name)


def _error(running: Running) -> str | None:
    """Return why a query has failed."""
    if running.text:
        return None if running.failed is None else str(running.failed)
    error = running.followed.error
    return None if error is None else cause(error)
