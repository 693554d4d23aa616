"""EXPLAIN ANALYZE: a query over what its sources hold, beside what was expected of it."""

import time
from collections.abc import Sequence

from pyspark.sql import DataFrame

from wjoin.executor.spark.beginning import begin
from wjoin.executor.spark.meter import Meter
from wjoin.executor.spark.once import select_name
from wjoin.grammar.plurals import counted
from wjoin.measured.compared_tables import measured_tables
from wjoin.measured.expected import Work, compared
from wjoin.measured.progress import Progress, read
from wjoin.measured.reports import recent_reports
from wjoin.planner.explain.cost import aligned
from wjoin.planner.planning import PlannedSelect

_POLL_SECONDS = 1
"""Spark keeps the progress of the last hundred micro-batches only."""


def measured_text(frame: DataFrame, planned: Sequence[PlannedSelect], meters: Sequence[Meter]) -> str:
    """Run a query to the end of what is there, throw its rows away, and compare with the estimates.

    On streams the counts are per row read, since how much event time was read is not known.
    ``meters`` count what each W-join does over tables.
    """
    if not frame.isStreaming:
        return measured_tables(frame, planned, meters)
    started = time.monotonic()
    batches = _run(frame)
    rows = sum(sum(each.rows_in.values()) for each in batches)
    seconds = time.monotonic() - started
    head = f"Measured over {counted(rows, 'row')} in {counted(len(batches), 'micro-batch')}, {seconds:.2f} s"
    if rows == 0:
        return head
    done = Work(
        rows,
        sum(each.comparisons for each in batches),
        sum(each.matches for each in batches),
        max(sum(each.state_rows.values()) for each in batches),
        sum(each.seconds for each in batches),
    )
    lines = [("", "estimated", "measured"), *(each.texts for each in compared(planned, done))]
    late = sum(sum(each.late.values()) for each in batches)
    return "\n".join([head, *aligned(lines), f"  {late:,} late rows were dropped"])


def _run(frame: DataFrame) -> list[Progress]:
    """Return the counts of every micro-batch over what the sources hold."""
    writer = frame.writeStream.format("noop").queryName(select_name()).trigger(availableNow=True)
    query = begin(frame.sparkSession, writer.start, "the query of EXPLAIN ANALYZE")
    found: dict[int, Progress] = {}
    while True:
        ended = query.awaitTermination(_POLL_SECONDS)
        found |= {each.batch: each for each in map(read, recent_reports(query))}
        if ended:
            return [found[batch] for batch in sorted(found)]
