"""A statement set that runs: what is needed to change it, and the rows that wait for its sinks."""

import datetime
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from wjoin.grammar.errors import WJoinWarning
from wjoin.grammar.plurals import counted
from wjoin.measured.reports import MicroBatchReport
from wjoin.planner.figures import size
from wjoin.spark.notices import AGAIN_SECONDS, tell


@dataclass(frozen=True)
class WaitingRows:
    """Rows of micro-batches that wait for a sink: their bytes, since when (Unix time), and why.

    ``fails``: whether the sink fails; else they wait for a row that commits them.
    """

    sink: str
    micro_batches: int
    bytes: int
    since: float
    why: str
    fails: bool

    @property
    def words(self) -> str:
        """How much waits, and since when."""
        since = datetime.datetime.fromtimestamp(self.since, datetime.UTC).isoformat(timespec="seconds")
        amount = f"{counted(self.micro_batches, 'micro-batch')} ({size(self.bytes)})"
        return f"{amount} for the sink {self.sink} since {since.removesuffix('+00:00')}Z"


@dataclass(frozen=True)
class RunningSet:
    """The statements of a set that runs, as they were written, and how it was started.

    ``once``: it ends when its sources are read; ``every``: how often micro-batches start. ``shut`` lets the
    micro-batch at work be written, and none after it: those wait for the query to be stopped. ``waiting``
    tells the rows that wait for sinks.
    """

    name: str
    inserts: tuple[str, ...]
    params: Mapping[str, object]
    once: bool
    every: str | None
    shut: Callable[[], None]
    waiting: Callable[[], Sequence[WaitingRows]]
    keep_others: bool = False


class ToldWaiting:
    """Tells of rows that wait for a sink of a running set, at most once a minute, and at its end.

    Of those that a row will commit it tells while they are more than ``most`` bytes.
    """

    def __init__(self, of_set: RunningSet, most: int) -> None:
        self._set, self._most = of_set, most
        self._told: dict[str, float] = {}

    def take(self, report: MicroBatchReport) -> None:
        """Do nothing: a report says nothing of sinks."""

    def tend(self) -> None:
        """Tell of each sink that fails, or for which too much waits."""
        now = time.monotonic()
        for each in self._worth_telling():
            if now - self._told.get(each.sink, float("-inf")) >= AGAIN_SECONDS:
                self._told[each.sink] = now
                self._tell(each)

    def end(self) -> None:
        """Tell of what waits still."""
        for each in self._worth_telling():
            self._tell(each)

    def _worth_telling(self) -> Iterator[WaitingRows]:
        return (each for each in self._set.waiting() if each.fails or each.bytes > self._most)

    def _tell(self, waiting: WaitingRows) -> None:
        tell(WJoinWarning("WJ818", f"in the set {self._set.name} wait {waiting.words}: {waiting.why}"))
