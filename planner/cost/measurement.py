"""What a running query measures of a stream, and the statistics that follow from it.

A measurement is a few sums and the newest counts of keys. It is kept as JSON beside a checkpoint,
goes on from there at the next start, and forgets by halves, so that it follows a change of the load.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

REMEMBERED = 16
"""Micro-batches whose counts of keys are remembered."""

_STEPS = 80
"""Halvings after which the number of distinct values is known to a float's precision."""


@dataclass(frozen=True)
class KeyCount:
    """The key codes of some rows: how many rows, different codes, and rows with the most frequent code."""

    rows: int
    distinct: int
    heaviest: int

    def __post_init__(self) -> None:
        if not 0 < self.distinct <= self.rows or not 0 < self.heaviest <= self.rows:
            raise ValueError(f"{self} cannot have been counted")


@dataclass(frozen=True)
class Arrived:
    """What one micro-batch told of one stream; times are in the plan's unit.

    ``rows``: rows read; ``passed``: those that the join gets; ``size``: bytes of their columns.
    ``before`` and ``latest``: the greatest event time before the micro-batch and after it,
    ``before`` None where there was none; ``earliest``: the least one in it. ``key``: the counts of the
    key of that name.
    """

    rows: int
    passed: int
    size: int
    before: int | None
    earliest: int
    latest: int
    key: tuple[str, KeyCount] | None


@dataclass(frozen=True)
class Measurement:
    """What is known of one stream from the micro-batches of a query.

    ``paced`` rows came while event time advanced by ``advance``; ``first`` and ``first_span`` are
    those of the first micro-batch, whose own span tells the rate until a second one has come.
    ``disorder`` is the most that a row was behind the micro-batches before its own. ``met``: for a
    stage by the name of its streams, the rows that it got of this one, and the results that it made.
    """

    rows: float = 0.0
    passed: float = 0.0
    size: float = 0.0
    paced: float = 0.0
    advance: float = 0.0
    first: float = 0.0
    first_span: float = 0.0
    disorder: float = 0.0
    keys: Mapping[str, tuple[KeyCount, ...]] = field(default_factory=dict)
    met: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sums = (self.rows, self.passed, self.size, self.paced, self.advance, self.first, self.first_span)
        if min(self.disorder, *sums, *itertools.chain(*self.met.values())) < 0:
            raise ValueError("not a measurement: a sum is below 0")

    def add(self, each: Arrived) -> "Measurement":
        """Return the measurement with one micro-batch more."""
        paced, advance, disorder = self.paced, self.advance, self.disorder
        first, first_span = self.first, self.first_span
        if each.before is None:
            first, first_span = float(each.rows), float(each.latest - each.earliest)
        else:
            paced, advance = paced + each.rows, advance + each.latest - each.before
            disorder = max(self.disorder, float(each.before - each.earliest))
        keys = dict(self.keys)
        if each.key is not None:
            name, count = each.key
            keys[name] = (*keys.get(name, ()), count)[-REMEMBERED:]
        return replace(
            self,
            rows=self.rows + each.rows,
            passed=self.passed + each.passed,
            size=self.size + each.size,
            paced=paced,
            advance=advance,
            first=first,
            first_span=first_span,
            disorder=disorder,
            keys=keys,
        )

    def meet(self, stage: str, passed: int, results: int) -> "Measurement":
        """Return the measurement with what a stage got of the stream, and made, in one micro-batch more."""
        rows, made = self.met.get(stage, (0.0, 0.0))
        return replace(self, met={**self.met, stage: (rows + passed, made + results)})

    def faded(self) -> "Measurement":
        """Return the measurement with half its weight, against what will be measured from now on."""
        names = ("rows", "passed", "size", "paced", "advance", "disorder")
        met = {stage: (rows / 2, results / 2) for stage, (rows, results) in self.met.items()}
        return replace(self, met=met, **{name: getattr(self, name) / 2 for name in names})

    def results_of_row(self) -> dict[str, float]:
        """Return the results of a stage for each row of the stream, by the stage's name."""
        # Where there was none, half a one is as likely as one more row would tell.
        return {stage: max(results, 0.5) / rows for stage, (rows, results) in self.met.items() if rows > 0}

    def statistics(self, units: int) -> dict[str, float]:
        """Return the statistics by name (``cost.stream_statistics``); ``units`` of time are a second."""
        values: dict[str, float] = {}
        if self.rows > 0:
            values["selectivity"] = min(1.0, self.passed / self.rows)
        if self.paced > 0:
            values["disorder"] = self.disorder
        if self.passed > 0:
            values["width"] = max(0.0, self.size / self.passed)
        if self.advance > 0:
            values["rate"] = self.paced / self.advance * units
        elif self.first_span > 0:
            values["rate"] = self.first / self.first_span * units
        for name, counts in self.keys.items():
            distinct = distinct_values(counts)
            values[f"distinct.{name}"] = distinct
            values[f"heaviest.{name}"] = heaviest_share(counts, distinct)
        return {name: value for name, value in values.items() if value > 0 or name in ("disorder", "width")}


def stage_name(aliases: Iterable[str]) -> str:
    """Return the name under which the results of a stage over some streams are measured.

    >>> stage_name(["B", "A"])
    'A, B'
    """
    return ", ".join(sorted(aliases))


def measured_key(expressions: Sequence[str]) -> str:
    """Return the name under which the values of a key of some expressions are measured.

    >>> measured_key(["A.x", "lower(A.name)"])
    '(A.x, lower(A.name))'
    """
    return f"({', '.join(expressions)})"


def distinct_values(counts: Sequence[KeyCount]) -> float:
    """Return how many different values a key has, from counts of some of its rows.

    ``n`` rows drawn from ``D`` values that are all as frequent have ``D (1 - (1 - 1/D)^n)``
    different ones; ``D`` is that for which the counts are the expected ones. The most frequent
    value is left out on both sides, as it is not as frequent as the others.

    >>> round(distinct_values([KeyCount(1000, 100, 12)]))
    100
    >>> round(distinct_values([KeyCount(100, 95, 2)] * 10), -2)
    1200.0
    """
    others = [(each.rows - each.heaviest, each.distinct - 1) for each in counts]
    seen = sum(distinct for _, distinct in others)
    if seen == 0:
        return 1.0
    low = float(max(distinct for _, distinct in others))
    # Without a repeated value the rows tell a least number only: that of half a repeat.
    high = max(low, float(sum(rows * rows for rows, _ in others)))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if sum(_expected(middle, rows) for rows, _ in others) < seen:
            low = middle
        else:
            high = middle
    return 1.0 + high


def _expected(values: float, rows: int) -> float:
    return values if values <= 1 else -values * math.expm1(rows * math.log1p(-1 / values))


def heaviest_share(counts: Sequence[KeyCount], distinct: float) -> float:
    """Return the share of the most frequent value: that of any value where chance explains the counts.

    >>> heaviest_share([KeyCount(1000, 100, 18)], 100.0)
    0.01
    >>> heaviest_share([KeyCount(1000, 100, 300)], 100.0)
    0.3
    """
    rows = sum(each.rows for each in counts)
    most = sum(each.heaviest for each in counts)
    means = [each.rows / distinct for each in counts]
    # Of values that come as often as any other, hardly one comes five deviations more often.
    by_chance = sum(mean + 5 * math.sqrt(mean) + 5 for mean in means)
    return max(most / rows if most > by_chance else 0.0, 1 / distinct)
