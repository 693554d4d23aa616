"""What the planner expected of a query's W-joins, beside what they do."""

from collections.abc import Iterator

from wjoin.measured.expected import Compared, compared, expected_rows, stage_work, state_size
from wjoin.measured.points import Hour
from wjoin.planner.cost.stream_statistics import units_per_second
from wjoin.planner.figures import figure
from wjoin.planner.plan.physical import Method
from wjoin.planner.planning import PlannedSelect
from wjoin.web.present import QueryState, stage_name

FAR = 3.0
"""By how many times an estimate may be wrong before the page marks it."""


def estimates(at: QueryState) -> Iterator[Compared]:
    """Yield what was expected beside what is: of streams, of W-joins, of several stages."""
    plans = list(at.plans.values())
    if not plans:
        return
    total = at.hour.total
    for each in plans:
        yield from _stream_rates(at, each)
    counted = total.batches and all(each.physical.method is Method.MULTIWAY for each in plans)
    if counted:
        yield from compared(plans, at.hour)
        yield state_size(plans, total.state_bytes)
    expected = expected_rows(plans)
    for number, each in at.plans.items():
        unit = units_per_second(each.physical.time_kind)
        stages = list(stage_work(each)) if each.physical.method is Method.MULTIWAY else []
        for stage, (work, results) in enumerate(stages if len(stages) > 1 else ()):
            name, key = stage_name(at, number, stage), f"{number}.{stage}"
            for label, guess in (("comparisons", work), ("matches", results)):
                per_row = None if guess is None or not expected else guess * unit / expected
                done = total.of_stage(key, label)
                actual = done / total.rows_read if total.rows_read else None
                yield Compared(f"{name}: {label} a row", per_row, actual)


def _stream_rates(at: QueryState, planned: PlannedSelect) -> Iterator[Compared]:
    """Yield the rows of each stream in a second of event time (a unit of it where it is integral)."""
    unit = units_per_second(planned.physical.time_kind)
    word = "second" if unit > 1 else "unit"
    for scan, known in zip(planned.physical.streams, planned.statistics, strict=True):
        if scan.streaming:
            actual = _event_rate(at.hour, scan.alias)
            yield Compared(
                f"{scan.alias}: rows per {word} of event time",
                known.rate.value * unit,
                None if actual is None else actual * unit,
            )


def _event_rate(hour: Hour, name: str) -> float | None:
    """Return the rows of a stream in a unit of its event time, None where that has not moved on."""
    points = [each for each in hour.points if name in each.seen]
    if not points or points[-1].seen[name] <= points[0].seen[name]:
        return None
    rows = sum(each.rows_in.get(name, 0) for each in points[1:])
    return rows / (points[-1].seen[name] - points[0].seen[name])


def factor_text(each: Compared) -> str:
    """Return how many times as much as expected there is."""
    return "–" if each.factor is None else f"{figure(each.factor)} ×"


def is_far(each: Compared) -> bool:
    """Return whether an estimate was wrong by more than FAR times."""
    return each.factor is not None and not 1 / FAR <= each.factor <= FAR
