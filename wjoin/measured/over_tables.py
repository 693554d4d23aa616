"""EXPLAIN ANALYZE over tables: what a statement did, beside what was expected of it."""

import time
from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import DataFrame

from wjoin.executor.spark.meter import RESULTS, Meter, rows_part, stage_part
from wjoin.grammar.plurals import counted
from wjoin.measured.expected import stage_work
from wjoin.planner.cost.stream_statistics import units_per_second
from wjoin.planner.explain.cost import aligned
from wjoin.planner.figures import figure
from wjoin.planner.figures import seconds as in_words
from wjoin.planner.plan.physical import Method
from wjoin.planner.planning import PlannedSelect

_NOT_COUNTED, _UNKNOWN = "not counted", "-"

Line = tuple[str, str, str]
Counts = Mapping[str, Mapping[str, int]]


def measured_tables(frame: DataFrame, planned: Sequence[PlannedSelect], meters: Sequence[Meter]) -> str:
    """Run a batch statement, throw its rows away, and compare with the estimates.

    ``meters`` count what each of its W-joins does.
    """
    whole = Meter()
    frame = whole.watch(RESULTS, frame, ["count(1) AS rows"])
    started = time.monotonic()
    frame.write.format("noop").mode("overwrite").save()
    seconds = time.monotonic() - started
    rows = whole.counts(frame)[RESULTS]["rows"]
    lines: list[Line] = [("", "estimated", "measured")]
    notes = []
    expected = 0.0
    for number, (each, meter) in enumerate(zip(planned, meters, strict=True), start=1):
        counts = meter.counts(frame)
        join = f"join {number}: " if len(planned) > 1 else ""
        lines += [(join + label, guess, fact) for label, guess, fact in _lines(each, counts)]
        expected += each.candidates[0].estimated.cost.seconds * _seconds_of_event_time(each)
        if not counts:
            notes.append(f"{join}Spark left the join out, because the statement does not need it")
        elif each.physical.method is Method.NATIVE:
            notes.append(f"{join}Spark's own joins count no comparisons")
    lines.append(("time (estimated: of one core)", in_words(expected), in_words(seconds)))
    head = f"Measured over tables: {counted(rows, 'row')} in {seconds:.2f} s"
    return "\n".join([head, *aligned(lines), *(f"  {note}" for note in notes)])


def _lines(planned: PlannedSelect, counts: Counts) -> Iterator[Line]:
    """Yield the lines of one W-join: rows, comparisons and results, by stage where there are several."""
    best = planned.candidates[0]
    plan, estimated = best.plan, best.estimated
    span = _span(planned)
    for stream in plan.staged:
        rows = planned.statistics[stream].kept_rate * span
        yield f"rows of {plan.streams[stream].alias}", figure(rows), _count(counts, rows_part(stream), "rows")
    if plan.method is Method.NATIVE:
        yield "comparisons", _total(planned, estimated.cost.comparisons), _NOT_COUNTED
        yield "results", _total(planned, estimated.cost.results), _count(counts, RESULTS, "matches")
        return
    stages = [stage_part(number) for number in range(len(plan.stages))]
    if len(stages) > 1:
        for number, (compared, results) in enumerate(stage_work(planned)):
            shown = _UNKNOWN if compared is None else figure(compared * span)
            name = f"stage {number + 1}: "
            yield name + "comparisons", shown, _count(counts, stages[number], "comparisons")
            yield name + "results", figure(results * span), _count(counts, stages[number], "matches")
    known = [counts[part]["comparisons"] or 0 for part in stages if part in counts]
    yield "comparisons", _total(planned, estimated.cost.comparisons), f"{sum(known):,}" if known else _UNKNOWN
    yield "results", _total(planned, estimated.cost.results), _count(counts, stages[-1], "matches")


def _count(counts: Counts, part: str, name: str) -> str:
    # A sum over no rows at all is NULL.
    return f"{counts[part][name] or 0:,}" if part in counts else _UNKNOWN


def _total(planned: PlannedSelect, per_second: float) -> str:
    return figure(per_second * _seconds_of_event_time(planned))


def _span(planned: PlannedSelect) -> float:
    """Return the event time that the tables are taken to span, in the plan's unit."""
    return max(planned.statistics[stream].duration.value for stream in planned.physical.staged)


def _seconds_of_event_time(planned: PlannedSelect) -> float:
    return _span(planned) / units_per_second(planned.physical.time_kind)
