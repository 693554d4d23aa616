"""What was expected of W-joins on streams, beside what they do."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from wjoin.measured.points import Hour
from wjoin.parts.kernels.registry import KERNELS
from wjoin.planner.cost.stream_statistics import units_per_second
from wjoin.planner.figures import figure, size
from wjoin.planner.figures import seconds as in_words
from wjoin.planner.plan.physical import Passes
from wjoin.planner.planning import PlannedSelect


@dataclass(frozen=True)
class Compared:
    """A number that was estimated, and what it is (None: not known); ``words`` tell such a number."""

    label: str
    estimated: float | None
    actual: float | None
    words: Callable[[float], str] = figure

    @property
    def factor(self) -> float | None:
        """How many times as much the actual one is as the estimated one, None where either is none."""
        return self.actual / self.estimated if self.actual and self.estimated else None

    @property
    def texts(self) -> tuple[str, str, str]:
        """The label and both numbers in words."""
        return self.label, self._text(self.estimated), self._text(self.actual)

    def _text(self, value: float | None) -> str:
        return "-" if value is None else self.words(value)


def compared(planned: Sequence[PlannedSelect], hour: Hour) -> list[Compared]:
    """Return what was expected of all W-joins of a statement, for a row read, beside what they did.

    How much event time was read is not known, so nothing is for a second of it.
    """
    done, most = hour.total, max((sum(each.state_rows.values()) for each in hour.points), default=0)
    costs = [each.candidates[0].estimated.cost for each in planned]
    expected = expected_rows(planned)

    def a_row(
        label: str, estimated: float, actual: float, words: Callable[[float], str] = figure
    ) -> Compared:
        per_row = estimated / expected if expected else None
        return Compared(label, per_row, actual / done.rows_read if done.rows_read else None, words)

    return [
        a_row("comparisons a row", sum(cost.comparisons for cost in costs), done.comparisons),
        a_row("results a row", sum(cost.results for cost in costs), done.matches),
        Compared("rows of state, at most", sum(cost.state_rows for cost in costs), most),
        a_row("time a row", sum(cost.seconds for cost in costs), done.seconds, in_words),
    ]


def state_size(planned: Sequence[PlannedSelect], actual: int) -> Compared:
    """Return the bytes of state that were expected, beside those that there are."""
    expected = sum(each.candidates[0].estimated.cost.state_bytes for each in planned)
    return Compared("bytes of state", expected, actual, size)


def expected_rows(planned: Sequence[PlannedSelect]) -> float:
    """Return how many rows streams bring in a second of event time (a unit where it is integral)."""
    return sum(
        known.rate.value * units_per_second(each.physical.time_kind)
        for each in planned
        for number, known in enumerate(each.statistics)
        if each.physical.streams[number].streaming
    )


def stage_work(planned: PlannedSelect) -> Iterator[tuple[float | None, float]]:
    """Yield the comparisons and the results of each stage that are expected in a unit of the plan's time.

    What the passes over alternatives compare is estimated for all stages together: it is None then.
    """
    best = planned.candidates[0]
    for stage, each in zip(best.plan.stages, best.estimated.stages, strict=True):
        kernel = KERNELS[stage.kernels[0]]
        work = sum(kernel.compared(step) for probe in each.probes for step in probe.steps)
        yield work if best.plan.passes is Passes.HULL else None, each.results
