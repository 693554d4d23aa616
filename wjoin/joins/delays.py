"""What is known of the disorder of a query's columns, from the streams and W-joins that it reads."""

import re
from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame

from wjoin.grammar.tokens import names_in
from wjoin.joins.relations import explained
from wjoin.planner.bind.lineage import query_delays
from wjoin.planner.catalog import Delay, Delays
from wjoin.planner.plan.block_columns import MATCH_COLUMNS
from wjoin.planner.planning import PlannedSelect
from wjoin.sources.catalog import Catalog
from wjoin.spark.engine import Engine
from wjoin.spark.spark_failures import UNREAD

_VIEW = re.compile(r"\bView \((?:`(?:[^`]|``)*`\.)*`((?:[^`]|``)*)`,")
"""How Spark writes a temporary view, which each declared stream is, in an analyzed plan."""


def relation_delays(
    query: str,
    catalog: Catalog,
    engine: Engine,
    rows: Callable[[], DataFrame],
    joined: Mapping[str, Delays] | None = None,
) -> Delays | None:
    """Return the delays of a query's columns, None where it reads no stream.

    ``rows`` are those of the query, ``joined`` more streams. A query that reads a stream in a way that is
    not understood has no column of which the delay is known.
    """
    joined = joined or {}
    if not catalog.streams and not joined:
        return None

    def streams(name: str) -> bool:
        try:
            return bool(engine.run(f"SELECT * FROM {name}").isStreaming)
        except UNREAD:
            # Spark mostly refuses the statement, too; but a function may have parameters, which are not here.
            return "(" in name

    found = query_delays(query, {**catalog.delays, **joined}, streams)
    if found is None and (names_in(query) & joined.keys() or _hides(rows, catalog)):
        return {}
    return found


def _hides(rows: Callable[[], DataFrame], catalog: Catalog) -> bool:
    """Return whether Spark sees a declared stream in a query that streams."""
    try:
        found = rows()
        return bool(found.isStreaming) and not catalog.streams.keys().isdisjoint(views_in(found))
    except UNREAD:
        # Spark refuses the statement, too.
        return False


def views_in(rows: DataFrame) -> set[str]:
    """Return the names, lower case, of the temporary views that a DataFrame reads, at any depth."""
    # Of a stream Spark explains the analyzed plan only, and says why not the others.
    return {name.replace("``", "`").lower() for name in _VIEW.findall(explained(rows, "extended"))}


def output_delay(planned: PlannedSelect) -> int | None:
    """Return how far each time column of a join's results may lie behind the greatest time that it has had.

    A result is completed by a row of some stream i not older than M_i - delay_i, M_i being the
    greatest time seen on i. A member a then satisfies a >= t_i - between(a, i), and no emitted a
    exceeds M_i + between(i, a). A static relation's rows complete nothing. None when that has no
    bound: of an outer join, a row that can have no partner comes at once, others wait for them. A result that
    has waited for its count of rows of i has a latest row, of any stream, that is not older than that.
    """
    plan = planned.physical
    if plan.optional:
        return None
    delays = []
    for a in (number for number, scan in enumerate(plan.streams) if scan.dated):
        for i in plan.staged:
            latest = plan.staged if any(each.stream == i for each in plan.counted) else (i,)
            back = plan.windows.widest((a, other) for other in latest)
            forth = plan.windows.between(i, a)
            if back is None or forth is None:
                return None
            delays.append(plan.streams[i].delay + back + forth)
    return max(*delays, planned.output.match_delay or 0)


def output_delays(planned: PlannedSelect) -> Delays:
    """Return the delays of the columns of a join's results that are times: event times and match times."""
    delay = Delay(output_delay(planned))
    dated = (scan for scan in planned.physical.streams if scan.dated)
    own = {f"{scan.alias}.{scan.event_time}".lower(): delay for scan in dated}
    latest = Delay(planned.output.match_delay)
    return {**own, MATCH_COLUMNS["time"]: latest, MATCH_COLUMNS["start"]: delay}
