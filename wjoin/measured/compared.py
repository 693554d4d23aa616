"""EXPLAIN ANALYZE over streams: what a statement did, beside what was expected of it."""

import time
from collections.abc import Sequence

from pyspark.sql import DataFrame

from wjoin.executor.spark.beginning import begin
from wjoin.executor.spark.meter import Meter
from wjoin.executor.spark.once import select_name
from wjoin.grammar.plurals import counted
from wjoin.measured.expected import compared
from wjoin.measured.followed import Followed
from wjoin.measured.layers import layer_lines
from wjoin.measured.over_tables import measured_tables
from wjoin.measured.points import Hour
from wjoin.measured.shed_rows import shed_words
from wjoin.measured.site_choices import SITES_HEAD, site_rows
from wjoin.measured.visits import NODE_HEAD, node_rows, visits_words
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
    hour = _run(frame)
    total, seconds = hour.total, time.monotonic() - started
    batches = counted(total.batches, "micro-batch")
    head = f"Measured over {counted(total.rows_read, 'row')} in {batches}, {seconds:.2f} s"
    if not total.rows_read:
        return head
    lines = [("", "estimated", "measured"), *(each.texts for each in compared(planned, hour))]
    late = f"  {sum(total.late.values()):,} late rows were dropped"
    if any(total.shed.values()):
        late += f"\n  {shed_words(total)}"
    if total.approximate:
        late += f"\n  {visits_words(total)}"
    nodes = [NODE_HEAD, *node_rows(total)] if total.rows_by_node else []
    sites = [SITES_HEAD, *site_rows(total.sites)] if total.sites else []
    layers = layer_lines(total.parts, total.layers, total.batches)
    return "\n".join([head, *aligned(lines), late, *aligned(nodes), *aligned(sites), *aligned(layers)])


def _run(frame: DataFrame) -> Hour:
    """Return what a query did over what its sources hold."""
    writer = frame.writeStream.format("noop").queryName(select_name()).trigger(availableNow=True)
    query = begin(frame.sparkSession, writer.start, "the query of EXPLAIN ANALYZE")
    followed = Followed(query)
    while followed.ended is None:
        query.awaitTermination(_POLL_SECONDS)
        followed.look()
    return followed.totals.hour()
