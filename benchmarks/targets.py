"""What wjoin is to reach, and whether a run of the benchmark has shown it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cold_start import ColdStart
from latency import Latency
from outcomes import Outcome
from sections import LONG_WINDOW, WINDOW
from systems import SYSTEMS
from tables import aligned


@dataclass(frozen=True)
class Target:
    """One line of the summary: a value with its unit, and the bound that is wanted, None where none is.

    ``most`` tells that the value may be at most ``wanted``; else it is to be at least that.
    """

    what: str
    value: float
    unit: str
    wanted: float | None = None
    most: bool = True

    @property
    def reached(self) -> bool | None:
        """Whether the value is what is wanted; None where nothing is."""
        if self.wanted is None:
            return None
        return self.value <= self.wanted if self.most else self.value >= self.wanted

    def cells(self) -> list[str]:
        """Return the line's cells."""
        wanted = "" if self.wanted is None else f"{'≤' if self.most else '≥'} {self._figure(self.wanted)}"
        verdict = {None: "", True: "reached", False: "NOT reached"}[self.reached]
        return [self.what, self._figure(self.value), wanted, verdict]

    def _figure(self, value: float) -> str:
        digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 10 else 2
        return f"{value:,.{digits}f} {self.unit}"


_TIMES = "×"
_RATE = "rows/s"


def targets(outcomes: Sequence[Outcome], started: ColdStart | None, waited: Latency | None) -> list[Target]:
    """Return a line for everything that a run has measured both sides of."""
    found = [*_against_reading(outcomes), *_against_the_chain(outcomes), *_large(outcomes)]
    found += [*_eight_streams(outcomes), *_two_stages(outcomes), *_long_window(outcomes)]
    if started is not None:
        what = "first result of wjoin run examples/12_streams.sql --once"
        bare = started.bare.seconds
        found.append(Target(f"{what}, later: Spark's start", started.prepared.seconds / bare, _TIMES, 1.6))
        found.append(Target(f"{what}, at first: Spark's start", started.script.seconds / bare, _TIMES))
        found.append(Target("Spark alone: a session and a trivial query", bare, "s"))
    if waited is not None:
        what = "3 × 5,000 rows/s: from a row's file to its result's commit"
        found.append(Target(f"{what}: p50", waited.p50, "s"))
        found.append(Target(f"{what}: p99", waited.p99, "s"))
    return found


def summary(found: Sequence[Target]) -> str:
    """Return the lines as a table."""
    return aligned([["", "measured", "wanted", ""], *(each.cells() for each in found)])


def _against_reading(outcomes: Sequence[Outcome]) -> Iterator[Target]:
    for when, ours, other in _pairs(outcomes, "3k", "drop"):
        wanted = 1.9 if when == "practised" else None
        what = f"3 × 1,000 rows: time of a micro-batch / of reading and dropping, {when}"
        yield Target(what, ours.seconds / other.seconds, _TIMES, wanted)
    for when, ours, other in _pairs(outcomes, "3k", "bare"):
        what = f"3 × 1,000 rows: time of a micro-batch / of Spark's engine with no join, {when}"
        yield Target(what, ours.seconds / other.seconds, _TIMES)


def _against_the_chain(outcomes: Sequence[Outcome]) -> Iterator[Target]:
    for when, ours, other in _pairs(outcomes, "300k", "hdfs"):
        wanted = 7.0 if when == "practised" else 6.0
        what = f"300,000 rows: rate / of the {SYSTEMS['hdfs'].title}, {when}"
        yield Target(what, ours.rows_per_second / other.rows_per_second, _TIMES, wanted, most=False)


def _large(outcomes: Sequence[Outcome]) -> Iterator[Target]:
    for when, ours, other in _pairs(outcomes, "1500k", "drop"):
        wanted = 1.4 if when == "practised" else None
        what = f"1,500,000 rows: rate of reading and dropping / of wjoin, {when}"
        yield Target(what, other.rows_per_second / ours.rows_per_second, _TIMES, wanted)
        yield Target(f"1,500,000 rows: rate, {when}", ours.rows_per_second, _RATE)
    yield from _of_the_engine(outcomes, "1500k", "1,500,000 rows")


def _eight_streams(outcomes: Sequence[Outcome]) -> Iterator[Target]:
    for ours in _of(outcomes, "streams", "wjoin"):
        wanted = 550_000 if ours.when == "practised" else None
        what = f"8 streams on one key, 300,000 rows: rate, {ours.when}"
        yield Target(what, ours.rows_per_second, _RATE, wanted, most=False)
    yield from _of_the_engine(outcomes, "streams", "8 streams on one key, 300,000 rows")


def _of_the_engine(outcomes: Sequence[Outcome], part: str, what: str) -> Iterator[Target]:
    for each in _of(outcomes, part, "bare"):
        yield Target(f"{what}: rate of Spark's engine with no join, {each.when}", each.rows_per_second, _RATE)


def _two_stages(outcomes: Sequence[Outcome]) -> Iterator[Target]:
    found = _of(outcomes, "stages", "wjoin")
    for ours in found:
        for one in found:
            if one.when == ours.when and (ours.load.stages, one.load.stages) == (2, 1):
                wanted = 0.6 if ours.when == "practised" else None
                what = f"two stages, 300,000 rows: rate / of one stage, {ours.when}"
                yield Target(what, ours.rows_per_second / one.rows_per_second, _TIMES, wanted, most=False)


def _long_window(outcomes: Sequence[Outcome]) -> Iterator[Target]:
    rates = {each.load.window: each.rows_per_second for each in _of(outcomes, "window", "wjoin")}
    if {WINDOW, LONG_WINDOW} <= set(rates):
        loss = 100 * (1 - rates[LONG_WINDOW] / rates[WINDOW])
        yield Target(f"a window {LONG_WINDOW // WINDOW} times longer: rows/s lost", loss, "%", 10)


def _pairs(outcomes: Sequence[Outcome], part: str, other: str) -> Iterator[tuple[str, Outcome, Outcome]]:
    """Yield wjoin's outcome of a section beside another system's, fresh and practised."""
    for ours in _of(outcomes, part, "wjoin"):
        for theirs in _of(outcomes, part, other):
            if theirs.when == ours.when:
                yield ours.when, ours, theirs


def _of(outcomes: Sequence[Outcome], part: str, system: str) -> list[Outcome]:
    return [each for each in outcomes if (each.part, each.system) == (part, system)]
