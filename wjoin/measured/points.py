"""What a query did in a piece of time, and its last hour in such pieces."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from wjoin.measured.progress import OF_JOINS, Counts, Done, Progress, lags
from wjoin.planner.cost.shed_share import ExpectedResults

PRESENT_SECONDS = 10.0
"""Present rates are those of so many seconds, or of the last micro-batch where that is longer."""


@dataclass(frozen=True, kw_only=True)
class Point(Done):
    """What the micro-batches did that ended between two times, and how things stood after them.

    ``begins`` and ``ends`` are seconds since 1970; it begins where the point before ends.
    """

    begins: float
    ends: float
    batches: int = 0

    @property
    def rows_read(self) -> int:
        """The rows read: of the streams of the W-joins, or of all sources where there is no W-join."""
        return sum(self.rows_in.values()) if self.rows_in else self.source_rows

    def rate(self, count: float) -> float:
        """Return how often a second something happened that it has counted."""
        return count / max(self.ends - self.begins, 1e-3)

    def of_stage(self, stage: str, name: str) -> int:
        """Return the ``comparisons`` or ``matches`` of a stage."""
        return self.stages.get(stage, {}).get(name, 0)

    def by_stage(self, name: str) -> dict[str, int]:
        """Return the same of each stage."""
        return {stage: counts[name] for stage, counts in self.stages.items()}

    @property
    def lag(self) -> dict[str, float]:
        """The seconds by which its end is ahead of the newest row of each stream."""
        return lags(self.seen, self.ends)

    @property
    def rows_of_state(self) -> int:
        """The rows kept after it, by the W-joins and by Spark's own operators."""
        return sum(self.state_rows.values()) + self.spark_state_rows

    @property
    def bytes_of_state(self) -> int:
        """Their size."""
        return self.state_bytes + self.spark_state_bytes

    @property
    def losses(self) -> dict[str, Counts]:
        """The rows that W-joins have dropped, by reason and stream."""
        return {
            "late": self.late,
            "no time": self.null_times,
            "too far ahead": self.ahead,
            "shed": self.shed,
        }

    @property
    def lost(self) -> int:
        """The rows dropped, for whatever reason."""
        return self.dropped_by_spark + sum(sum(each.values()) for each in self.losses.values())

    def joined(self, later: "Point") -> "Point":
        """Return the point that covers this one and a later one."""
        sums = {name: _sum(getattr(self, name), getattr(later, name)) for name in _SUMMED}
        whole = replace(later, begins=self.begins, **sums)
        if not whole.visits or any(whole.shed.values()):
            return whole
        # Nodes tell what is lost since they began.
        latest = later if later.results_expected else self
        told = ExpectedResults.of_lost(whole.matches, *latest.results_lost)
        return replace(
            whole,
            results_expected=told.expected,
            results_least=told.least,
            results_most=told.most or 0.0,
            results_unknown=int(told.most is None),
        )


_DONE = tuple(each.name for each in fields(Done))
_STANDING = (*OF_JOINS, "spark_state_rows", "spark_state_bytes")
_SUMMED = ("batches", *(name for name in _DONE if name not in _STANDING))


def _sum(first: Any, second: Any) -> Any:
    """Return the sum of two numbers, or of counts by name, in the order in which the names came.

    >>> _sum({"A": 1}, {"A": 2, "B": 3})
    {'A': 3, 'B': 3}
    """
    if not isinstance(first, Mapping):
        return first + second
    return {
        **first,
        **{name: _sum(first[name], each) if name in first else each for name, each in second.items()},
    }


def point(progress: Progress, before: Point) -> Point:
    """Return what a report of Spark tells, after the point ``before``."""
    ends = before.ends if progress.ended is None else max(before.ends, progress.ended)
    if progress.idle:
        return Point(begins=before.ends, ends=ends, **before.some(_STANDING))
    return Point(begins=before.ends, ends=ends, batches=1, **progress.some(_DONE))


@dataclass(frozen=True)
class Hour:
    """What is known of a query at one moment: the points of the last hour, and all since its start in one."""

    width: float
    points: tuple[Point, ...]
    total: Point

    def present(self, clock: float, *, rests: bool) -> Point:
        """Return what is done at present: in the last ten seconds, or the last micro-batch if that is longer.

        Nothing, where the query ``rests`` and has done so for as long. ``clock``: seconds since 1970.
        """
        last = next((each.ends - each.begins for each in reversed(self.points) if each.batches), 0.0)
        length = max(PRESENT_SECONDS, 1.5 * last)
        if rests and clock - self.total.ends > length:
            return Point(begins=clock - length, ends=clock)
        recent = (each for each in self.points if each.ends > self.total.ends - PRESENT_SECONDS)
        return merged(recent) or self.total


def merged(points: Iterable[Point]) -> Point | None:
    """Return the point that covers some that follow each other, None of none."""
    whole: Point | None = None
    for each in points:
        whole = each if whole is None else whole.joined(each)
    return whole
