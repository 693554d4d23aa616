"""Tells of streams that are silent, and of the rows that wait for them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from wjoin.executor.report import NOTHING_SEEN
from wjoin.grammar.errors import WJoinWarning
from wjoin.grammar.plurals import listed
from wjoin.measured.progress import observations
from wjoin.measured.reports import MicroBatchReport
from wjoin.spark.notices import tell

QUIET_SECONDS = 60.0
"""A stream without a row for so long is silent to whoever waits for it, by the clock of the micro-batches."""


@dataclass
class _Stream:
    """A stream of a join: when its last row came, or it was first waited for (seconds since 1970).

    ``mark`` is its watermark, None before its first row, ``kept`` the rows of it in the state. ``gone_on``:
    since when it has been silent for its IDLE AFTER, None where it has not.
    """

    last: float
    mark: int | None = None
    kept: int = 0
    gone_on: float | None = None


@dataclass
class Silence:
    """The streams of the joins of one run of a query; ``subject`` is the query in words."""

    subject: str
    _joins: dict[int, dict[str, _Stream]] = field(default_factory=dict)
    _clock: float = 0.0
    _told: set[tuple[int, str, float]] = field(default_factory=set)

    def take(self, report: MicroBatchReport) -> None:
        """Take what a report tells of the streams of each join."""
        if report.progress.idle or not report.progress.started:
            return
        self._clock = datetime.fromisoformat(report.progress.started).timestamp()
        found: dict[int, dict[str, dict[str, int]]] = {}
        for join, _, values in observations(report.body):
            for name, value in values.items():
                count, _, alias = name.partition(":")
                if alias and value is not None:
                    counts = found.setdefault(join, {}).setdefault(alias, {})
                    # One stage has what it counts of a stream, and others its least value.
                    counts[count] = max(value, counts.get(count, value))
        for join, streams in found.items():
            known = self._joins.setdefault(join, {})
            for alias, counts in streams.items():
                self._take(known.setdefault(alias, _Stream(self._clock)), counts)

    def _take(self, stream: _Stream, counts: dict[str, int]) -> None:
        if counts.get("rows"):
            stream.last = self._clock
        if (seen := counts.get("seen", NOTHING_SEEN)) != NOTHING_SEEN:
            stream.mark = seen - counts.get("delay", 0)
        stream.kept = counts.get("kept", stream.kept)
        silent = counts.get("silent", NOTHING_SEEN)
        stream.gone_on = None if silent == NOTHING_SEEN else silent / 1e6

    def _waiting(self) -> Iterator[tuple[int, str, list[str]]]:
        """Yield the streams that others wait for, with the numbers of their joins, and those others."""
        for join, streams in self._joins.items():
            for alias, each in streams.items():
                if each.gone_on is not None or self._clock - each.last < QUIET_SECONDS:
                    continue
                held = [
                    other
                    for other, its in streams.items()
                    if its.kept and its.mark is not None and (each.mark is None or each.mark < its.mark)
                ]
                if held:
                    yield join, alias, held

    @property
    def words(self) -> str:
        """Who waits for whom, and since when, and which streams are waited for no more; empty for none."""
        told = [self._words(join, alias, held) for join, alias, held in self._waiting()]
        for streams in self._joins.values():
            told += [
                f"{alias} has sent nothing since {_time(each.gone_on)}, and is not waited for (IDLE AFTER)"
                for alias, each in streams.items()
                if each.gone_on is not None
            ]
        return "; ".join(told)

    def _words(self, join: int, alias: str, held: list[str]) -> str:
        since = _time(self._joins[join][alias].last)
        verb = "waits" if len(held) == 1 else "wait"
        return f"{listed(held)} {verb} for {alias}, which has sent nothing since {since}"

    def tend(self) -> None:
        """Tell of each silence for which others wait, once."""
        for join, alias, held in self._waiting():
            key = join, alias, self._joins[join][alias].last
            if key not in self._told:
                self._told.add(key)
                tell(WJoinWarning("WJ823", f"in {self.subject} {self._words(join, alias, held)}"))

    def end(self) -> None:
        """Tell of what has not been told."""
        self.tend()


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").removesuffix("+00:00") + "Z"
