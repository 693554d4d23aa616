"""What is known of the disorder of a query's columns, from the streams and W-joins that it reads."""

from collections.abc import Mapping

from pyspark.errors import AnalysisException, ParseException

from wjoin.catalog import Catalog
from wjoin.engine import Engine
from wjoin.planner.catalog import Delay, Delays
from wjoin.planner.conjuncts import MATCH_COLUMNS
from wjoin.planner.lineage import query_delays
from wjoin.planner.plan import PlannedSelect


def relation_delays(
    query: str, catalog: Catalog, engine: Engine, joined: Mapping[str, Delays] | None = None
) -> Delays | None:
    """Return the delays of a query's columns, None where it reads no stream; ``joined`` are more streams."""

    def streams(name: str) -> bool:
        try:
            return bool(engine.run(f"SELECT * FROM {name}").isStreaming)
        except (AnalysisException, ParseException):
            # Spark refuses the statement, too.
            return False

    return query_delays(query, {**catalog.delays, **(joined or {})}, streams)


def output_delay(planned: PlannedSelect) -> int | None:
    """Return how far any time column of a join's results may lie behind the greatest one emitted.

    A result is completed by a row of some stream i not older than M_i - delay_i, M_i being the
    greatest time seen on i. A member a then satisfies a >= t_i - upper[a][i], and no emitted a
    exceeds M_i + upper[i][a]. A static relation's rows complete nothing. None when that has no
    bound.
    """
    plan = planned.physical
    delays = []
    for a in range(len(plan.streams)):
        for i in plan.staged:
            back, forth = plan.upper[a][i], plan.upper[i][a]
            if back is None or forth is None:
                return None
            delays.append(plan.streams[i].delay + back + forth)
    return max(*delays, plan.outputs[0].match_delay or 0)


def output_delays(planned: PlannedSelect) -> Delays:
    """Return the delays of the columns of a join's results that are times: event times and match times."""
    delay = Delay(output_delay(planned))
    times = zip(planned.physical.streams, planned.logical.event_times, strict=True)
    own = {f"{scan.alias}.{time}".lower(): delay for scan, time in times}
    latest = Delay(planned.physical.outputs[0].match_delay)
    return {**own, MATCH_COLUMNS["time"]: latest, MATCH_COLUMNS["start"]: delay}
