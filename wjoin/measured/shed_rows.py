"""Tells of queries that shed rows because they are overloaded: when that begins, goes on, and ends."""

import time
from collections.abc import Mapping

from wjoin.grammar.errors import WJoinWarning
from wjoin.grammar.plurals import counted
from wjoin.measured.points import Point
from wjoin.measured.progress import Done
from wjoin.measured.reports import MicroBatchReport
from wjoin.spark.notices import AGAIN_SECONDS, tell

_CODE = "WJ819"


class ShedRows:
    """The rows that one run of a query sheds; ``subject`` is the query in words.

    A micro-batch of which nothing is shed ends an overload.
    """

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._now: Point | None = None
        self._untold = False
        self._ended: Point | None = None
        self._utilization = 0.0
        self._told = float("-inf")

    def take(self, report: MicroBatchReport) -> None:
        """Add up what is shed."""
        progress = report.progress
        if progress.idle or not progress.rows_in:
            return
        if not any(progress.shed.values()):
            self._ended, self._now = self._now or self._ended, None
            return
        self._utilization = progress.utilization
        done = Point(begins=0.0, ends=progress.ended or 0.0, batches=1, **progress.some(_ADDED))
        self._untold |= self._now is None
        self._now = done if self._now is None else self._now.joined(done)

    def tend(self) -> None:
        """Tell of an overload that has begun, or ended, or goes on for a minute after it was last told of."""
        now = time.monotonic()
        if self._now is not None and (self._untold or now - self._told >= AGAIN_SECONDS):
            self._untold, self._told = False, now
            self._tell(f"sheds rows, with a utilization of {self._utilization:.2f}", self._now)
        self._tell_ended()

    def end(self) -> None:
        """Tell of what has not been told: an ended query sheds no more."""
        self._ended, self._now = self._now or self._ended, None
        self._tell_ended()

    def _tell_ended(self) -> None:
        if self._ended is not None:
            self._tell("sheds no more rows", self._ended)
            self._ended = None

    def _tell(self, what: str, done: Point) -> None:
        tell(WJoinWarning(_CODE, f"{self._subject} {what}: {shed_words(done)}"))


_ADDED = ("shed", "matches", "results_expected", "results_least", "results_most", "results_unknown")


def shed_words(done: Done) -> str:
    """Return how many rows of which streams were shed, and what that has lost."""
    return f"{_by_stream(done.shed)} shed, {lost_words(done)}"


def _by_stream(counts: Mapping[str, int]) -> str:
    found = ", ".join(f"{count:,} of {alias}" for alias, count in counts.items() if count)
    return f"{counted(sum(counts.values()), 'row')} ({found})"


def lost_words(done: Done) -> str:
    """Return the share of the results that is lost.

    >>> lost_words(Done(matches=60, results_expected=100, results_least=80, results_most=120))
    'about 40.0 % of the results lost, 25.0 to 50.0 %'
    """
    lost, least, most = done.results_lost
    return f"about {100 * lost:.1f} % of the results lost, {100 * least:.1f} to {100 * most:.1f} %"
