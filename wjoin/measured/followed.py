"""The queries of a Spark session, followed by one thread: each report of Spark is read once, for all who ask.

Reports are asked for now and then. A listener would be told of every micro-batch, but what PySpark does for
one costs as much as a small micro-batch itself.
"""

import atexit
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from wjoin.executor.spark.once import SELECT
from wjoin.measured.backlog import Backlog
from wjoin.measured.beside import UNREACHABLE, stopped
from wjoin.measured.dropped_rows import Losses
from wjoin.measured.reports import MicroBatchReport, new_reports
from wjoin.measured.shed_rows import ShedRows
from wjoin.measured.silent_streams import Silence
from wjoin.measured.totals import Totals
from wjoin.measured.visits import Visits
from wjoin.spark.session_things import held, held_by_all

_SECONDS = 0.5
"""How often queries are looked at: hardly one that can have late rows is shorter."""

_MOST_FAILURES = 60
"""Rounds that fail one after the other until the session is taken to have ended."""

_LINGERS_SECONDS = 60.0
"""How long an ended query is remembered: whoever has just started it may ask for it after its end."""

_EARLY = 100
"""Reports that an observer gets which comes after the first ones, as many as Spark keeps."""

_log = logging.getLogger("wjoin")


class Observer(Protocol):
    """What follows a query: it takes each report once, in their order."""

    def take(self, report: MicroBatchReport) -> None:
        """Take a report."""

    def tend(self) -> None:
        """Do what is due, between reports."""
        return

    def end(self) -> None:
        """Do what is left to do: the query has ended."""
        return


class Followed:
    """One run of a query: its reports, added up since its start.

    ``last`` is the newest report, ``micro_batch`` the newest of a micro-batch: one of an idle time tells
    nothing of joins. ``ended`` is when it was first seen to have ended (``time.monotonic``), None while it
    runs. At the last look: ``works`` tells whether it had rows to work on, ``error`` why it has failed.
    ``losses`` are the rows that it has dropped, ``backlog`` is what waits in its sources, ``silence`` what
    waits for streams that send nothing.
    """

    def __init__(self, query: StreamingQuery) -> None:
        self.query = query
        self.id, self.run = str(query.id), str(query.runId)
        name = query.name or self.id
        self.totals = Totals()
        subject = "the SELECT" if name.startswith(SELECT) else f"the query {name}"
        self.losses = Losses(subject, self.totals)
        self.backlog = Backlog(subject)
        self.silence = Silence(subject)
        self.last: MicroBatchReport | None = None
        self.micro_batch: MicroBatchReport | None = None
        self.ended: float | None = None
        self.works = False
        self.error: Exception | None = None
        self._closed = False
        self._early: deque[MicroBatchReport] = deque(maxlen=_EARLY)
        self._observers: list[Observer] = [
            *(self.losses, self.backlog, self.silence),
            *(ShedRows(subject), Visits(subject)),
        ]
        self._looking = threading.RLock()

    def observe(self, observer: Observer) -> None:
        """Have somebody follow the query from its start, which must be just now; it may have ended since."""
        with self._looking:
            for report in self._early:
                observer.take(report)
            self._observers.append(observer)
            if self._closed:
                observer.end()

    def look(self) -> None:
        """Take what Spark has reported since the last time; it keeps a hundred reports of a query."""
        with self._looking:
            active = self.query.isActive
            for report in new_reports(self.query, self.last, self.totals.newest):
                self.totals.add(report.progress)
                self.last = report
                if not report.progress.idle:
                    self.micro_batch = report
                self._early.append(report)
                for observer in self._observers:
                    observer.take(report)
            if active:
                status = self.query.status
                self.works = status["isTriggerActive"] and status["isDataAvailable"]
            elif self.ended is None:
                self.error = self.query.exception()
                self.ended = time.monotonic()

    def tend(self) -> None:
        """Look at the query, and have its observers do what is due; once it has ended, the last time."""
        with self._looking:
            if self._closed:
                return
            self.look()
            for observer in self._observers:
                if self.ended is None:
                    observer.tend()
                else:
                    observer.end()
            self._closed = self.ended is not None

    def settle(self) -> None:
        """Tell what the query has dropped until now; once it has ended, see that all is done."""
        self.tend()
        with self._looking:
            self.losses.end()


class Follower:
    """Follows the queries of one Spark session, whoever has started them, until that has ended.

    ``reached`` tells whether Spark has answered the last time.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._followed: dict[str, Followed] = {}
        self._rounds: list[Callable[[Sequence[Followed]], None]] = []
        self.reached = True
        self._changing = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Follow the queries from now on."""
        with self._changing:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="wjoin-follower", daemon=True)
                self._thread.start()

    def follow(self, query: StreamingQuery) -> Followed:
        """Return a query as it is followed; a new one from now on."""
        run = str(query.runId)
        with self._changing:
            if run not in self._followed:
                self._followed[run] = Followed(query)
            return self._followed[run]

    def each_round(self, call: Callable[[Sequence[Followed]], None]) -> None:
        """Call ``call`` after each look at the queries, with them: ended ones are among them for a while."""
        with self._changing:
            if call not in self._rounds:
                self._rounds.append(call)

    def no_round(self, call: Callable[[Sequence[Followed]], None]) -> None:
        """Call ``call`` no more."""
        with self._changing:
            self._rounds.remove(call)

    def look(self) -> None:
        """Look at the queries once."""
        for query in self._spark.streams.active:
            self.follow(query)
        for each in self.followed:
            each.tend()
        with self._changing:
            gone = time.monotonic() - _LINGERS_SECONDS
            self._followed = {
                run: each for run, each in self._followed.items() if each.ended is None or each.ended > gone
            }
            rounds = [*self._rounds]
        for call in rounds:
            call(self.followed)

    @property
    def followed(self) -> Sequence[Followed]:
        """The queries that are followed, oldest first."""
        with self._changing:
            return tuple(self._followed.values())

    def settle(self) -> None:
        """Tell what the queries have dropped until now, and see that all is done for ended ones."""
        try:
            for each in self.followed:
                each.settle()
        except UNREACHABLE as error:
            # Its queries have ended with it.
            _log.debug("what queries have dropped cannot be read: %s", error)

    def end(self) -> None:
        """Follow the queries no more."""
        self.settle()
        self._ended.set()

    def _run(self) -> None:
        failures = 0
        while failures < _MOST_FAILURES and not self._ended.wait(_SECONDS):
            try:
                self.look()
                self.reached, failures = True, 0
            except UNREACHABLE as error:
                self.reached = False
                failures = _MOST_FAILURES if stopped(self._spark) else failures + 1
                _log.debug("the queries cannot be looked at: %s", error)
            except RuntimeError:
                # A client of Spark Connect asks nothing more once the program is at its end.
                if threading.main_thread().is_alive():
                    raise
                return


def follower_of(spark: SparkSession) -> Follower:
    """Return what follows the queries of a Spark session: from now on, where nothing did."""
    found = held(spark).get(Follower, lambda: Follower(spark))
    found.begin()
    return found


def unfollow(spark: SparkSession) -> None:
    """Follow the queries of a session no more."""
    found = held(spark).drop(Follower)
    if found is not None:
        found.end()


@atexit.register
def settle() -> None:
    """Do for all sessions what ``Follower.settle`` does."""
    for each in held_by_all(Follower):
        each.settle()
