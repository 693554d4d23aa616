"""EXPLAIN DELAY: what each delay of a stream would lose, and what it costs."""

from collections.abc import Iterator, Mapping

from wjoin.context import Asked
from wjoin.executor.spark.disorder import Lateness, lateness
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.plurals import counted
from wjoin.grammar.statement_kinds import ExplainDelay
from wjoin.joins.relations import event_time, kind_of, stream_fields
from wjoin.measured.kept import Kept
from wjoin.planner.cost.measurement import Measurement, stage_name
from wjoin.planner.cost.stream_statistics import units_per_second
from wjoin.planner.figures import figure
from wjoin.planner.plan.block_columns import quoted
from wjoin.planner.plan.physical import TimeKind
from wjoin.planner.windows.lengths import human
from wjoin.sources.catalog import StreamDeclaration, find
from wjoin.spark.spark_failures import RAISED_BY_SPARK, cause

_SHARES = (0.1, 0.01, 0.001, 0.0001)
"""The shares of rows that proposed delays lose at the most."""

_BAR = 40
"""Characters of the longest bar."""


def explain_delay(asked: Asked, statement: ExplainDelay) -> str:
    """Return what several delays of a stream would lose. Raises WJoinError."""
    spark, name = asked.engine.spark, statement.name
    stream = find(asked.catalog.streams, "stream", name.name, name.span)
    fields = stream_fields(spark, stream)
    time, _ = event_time(stream, fields)
    if time is None:
        message = f"it is not clear which column of {stream.name} is its event time"
        raise WJoinError("WJ206", message, span=name.span, help="declare it: WATERMARK column DELAY OF …")
    try:
        frame = spark.table(quoted(stream.name)) if stream.rows is None else stream.rows
        found = lateness(frame, time, _own(stream, time))
    except RAISED_BY_SPARK as error:
        message = f"the stream {stream.name} cannot be read: {cause(error)}"
        raise WJoinError("WJ604", message, span=statement.span) from error
    if found is None:
        return f"{stream.name}: the order of the rows in its source is not known, or it has none."
    return "\n".join(_told(stream, time, kind_of(time, fields), found, dict(_results(asked, stream))))


def _own(stream: StreamDeclaration, time: str) -> int | None:
    """Return the declared delay of a stream, None where there is none."""
    declared = stream.delays.get(time.lower())
    return declared.value if declared is not None and declared.declared else None


def _results(asked: Asked, stream: StreamDeclaration) -> Iterator[tuple[str, float]]:
    """Yield the queries of the session that have read a stream, with their results for each row of it."""
    for running in asked.queries.known:
        measured = Kept(asked.engine.spark, running.checkpoint).measured() if running.checkpoint else []
        for planned, streams in zip(running.planned, measured, strict=False):
            plan = planned.physical
            last = stage_name(
                plan.streams[each].alias for stage in plan.stages[-1:] for each in stage.members
            )
            made = max((each.met[last][1] for each in streams.values() if last in each.met), default=None)
            for number, relation in enumerate(planned.relations):
                own = streams.get(str(number), Measurement())
                if relation.lower() == stream.name.lower() and own.rows and made is not None:
                    yield running.name, made / own.rows


def _told(
    stream: StreamDeclaration, time: str, kind: TimeKind, found: Lateness, results: Mapping[str, float]
) -> Iterator[str]:
    yield f"{stream.name}: {counted(found.rows, 'row')} with {time}, in order of arrival"
    own = _own(stream, time)
    delays = delays_of(found) | ({own} if own is not None else set())
    lines = [
        (human(each, kind), found.beyond(each), " (declared)" * (each == own)) for each in sorted(delays)
    ]
    most = max((late for _, late, _ in lines), default=0)
    width = max(len(delay + mark) for delay, _, mark in lines)
    heads = {f"lost of {query}": each_row for query, each_row in results.items()}
    columns = "".join(f"  {each:>12}" for each in heads)
    yield f"  {'delay':<{width}}  {'late rows':>12}  {'of all':>9}{columns}"
    for delay, late, mark in lines:
        bar = "█" * round(_BAR * late / most) if most else ""
        lost = "".join(f"  {figure(late * each):>{max(12, len(name))}}" for name, each in heads.items())
        share = _share(late / found.rows)
        yield f"  {delay + mark:<{width}}  {late:>12,}  {share:>9}{lost}  {bar}".rstrip()
    yield "These are upper limits: a row is not late if the newer ones before it are in the same micro-batch."
    yield "A late row is in no result."
    for query, each_row in results.items():
        yield f"Lost of {query}, as measured: {figure(each_row)} of its results for each row, on average."
    span = (found.last - found.first) / units_per_second(kind)
    if span > 0:
        rate = figure(found.rows / span)
        each = "unit" if kind is TimeKind.INTEGRAL else "second"
        yield f"Each {each} of delay keeps {rate} more rows of every stream that it joins at the same rate."


def _share(share: float) -> str:
    return "none" if share == 0 else f"{share * 100:.3g} %"


def delays_of(found: Lateness) -> set[int]:
    """Return the delays that are told: 0, those that lose a small share of rows, what loses none."""
    behind = sorted(found.late)
    proposed = {0, behind[-1]}
    for share in _SHARES:
        proposed.add(next(each for each in behind if found.beyond(each) <= share * found.rows))
    return proposed
