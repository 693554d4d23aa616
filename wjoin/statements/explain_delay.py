"""EXPLAIN DELAY: what each delay of a stream would lose, and what it costs."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from wjoin.context import Asked
from wjoin.executor.spark.disorder import Lateness, lateness
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_statement
from wjoin.grammar.plurals import counted
from wjoin.grammar.spans import Span
from wjoin.grammar.statement_kinds import ExplainDelay, Query
from wjoin.grammar.syntax import Identifier
from wjoin.joins.relations import event_time, kind_of, stream_fields
from wjoin.joins.rewrite import rewrite
from wjoin.measured.kept import Kept
from wjoin.measured.kept_streams import kept_streams, whole_sizes
from wjoin.planner.cost.kept_state import input_states, size_by_delay
from wjoin.planner.cost.measurement import Measurement, stage_name
from wjoin.planner.cost.stream_statistics import units_per_second
from wjoin.planner.explain.kept_state import sizes_of
from wjoin.planner.figures import figure, size
from wjoin.planner.plan.block_columns import quoted
from wjoin.planner.plan.physical import PhysicalPlan, TimeKind
from wjoin.planner.planning import PlannedSelect
from wjoin.planner.windows.lengths import human
from wjoin.sources.catalog import StreamDeclaration, find
from wjoin.spark.spark_failures import RAISED_BY_SPARK, cause
from wjoin.statements.inserts import explained_checkpoint

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
    return "\n".join(_told(stream, time, kind_of(time, fields), found, [*_readers(asked, stream)]))


def _own(stream: StreamDeclaration, time: str) -> int | None:
    """Return the declared delay of a stream, None where there is none."""
    declared = stream.delays.get(time.lower())
    return declared.value if declared is not None and declared.declared else None


@dataclass(frozen=True)
class _Reader:
    """A query that reads a stream, under its ``name``: its results for ``each_row`` of it, if measured.

    ``joins``: its plans, the numbers of the stream in each, and the bytes of the inputs by their streams.
    """

    name: str
    each_row: float | None
    joins: tuple[tuple[PhysicalPlan, frozenset[int], Mapping[tuple[int, ...], float]], ...]

    def state(self, delay: int) -> float:
        """Return the bytes of its state with another delay of the stream."""
        return sum(size_by_delay(plan, numbers, delay, sizes) for plan, numbers, sizes in self.joins)


def _readers(asked: Asked, stream: StreamDeclaration) -> Iterator[_Reader]:
    """Yield the queries that read a stream: of the session, then of the checkpoints of its sinks."""
    spark = asked.engine.spark
    newest = {each.name.lower(): each for each in asked.queries.known if each.checkpoint}
    for running in newest.values():
        done = running.totals.total
        joins = [(each, whole_sizes(kept_streams(each, done))) for each in running.planned]
        yield from _reader(running.name, Kept(spark, running.checkpoint), joins, stream)
    for sink in asked.catalog.sinks.values():
        if sink.name.lower() not in newest:
            kept = Kept(spark, explained_checkpoint(asked, (Identifier(sink.name, span=Span(0, 0)),)))
            planned = _begun(asked, kept)
            estimates = [(each, sizes_of(input_states(each))) for each in planned]
            yield from _reader(sink.name, kept, estimates, stream)


def _begun(asked: Asked, kept: Kept) -> list[PlannedSelect]:
    """Return the joins of the statement that began a checkpoint; none where they cannot be planned here."""
    if not kept.has_checkpoint or kept.begun_with is None:
        return []
    begun, found = kept.begun_with, []
    with suppress(WJoinError):
        for number, join in enumerate(begun.joins):
            query = parse_statement(join.text, asked.looked_for)
            if join.plain and isinstance(query, Query):
                own = asked.asked(join.text, dict(begun.parameters))
                found += rewrite(own, query, kept, runs=False, first=number).planned
    return found


def _reader(
    name: str,
    kept: Kept,
    joins: Sequence[tuple[PlannedSelect, Mapping[tuple[int, ...], float]]],
    stream: StreamDeclaration,
) -> Iterator[_Reader]:
    found, each_row = [], None
    measured = kept.measured()
    for place, (planned, sizes) in enumerate(joins):
        names = [relation.lower() for relation in planned.relations]
        numbers = frozenset(n for n, relation in enumerate(names) if relation == stream.name.lower())
        if numbers:
            found.append((planned.physical, numbers, sizes))
            told = measured[place] if place < len(measured) else {}
            each_row = next(_results(planned.physical, numbers, told), each_row)
    if found:
        yield _Reader(name, each_row, tuple(found))


def _results(
    plan: PhysicalPlan, numbers: Collection[int], streams: Mapping[str, Measurement]
) -> Iterator[float]:
    """Yield the results of a join for each row of a stream."""
    last = stage_name(plan.streams[each].alias for stage in plan.stages[-1:] for each in stage.members)
    made = max((each.met[last][1] for each in streams.values() if last in each.met), default=None)
    for number in numbers:
        own = streams.get(str(number), Measurement())
        if own.rows and made is not None:
            yield made / own.rows


def _told(
    stream: StreamDeclaration, time: str, kind: TimeKind, found: Lateness, readers: Sequence[_Reader]
) -> Iterator[str]:
    yield f"{stream.name}: {counted(found.rows, 'row')} with {time}, in order of arrival"
    own = _own(stream, time)
    delays = delays_of(found) | ({own} if own is not None else set())
    lines = [(each, found.beyond(each), " (declared)" * (each == own)) for each in sorted(delays)]
    most = max((late for _, late, _ in lines), default=0)
    width = max(len(human(delay, kind) + mark) for delay, _, mark in lines)
    lost = {f"lost of {each.name}": each.each_row for each in readers if each.each_row is not None}
    kept = {f"state of {each.name}": each for each in readers if each.state(own or 0) > 0}
    columns = "".join(f"  {each:>12}" for each in (*lost, *kept))
    yield f"  {'delay':<{width}}  {'late rows':>12}  {'of all':>9}{columns}"
    for delay, late, mark in lines:
        bar = "█" * round(_BAR * late / most) if most else ""
        cells = [figure(late * each) for each in lost.values()]
        cells += [size(each.state(delay)) for each in kept.values()]
        wide = zip((*lost, *kept), cells, strict=True)
        own_columns = "".join(f"  {cell:>{max(12, len(name))}}" for name, cell in wide)
        share = _share(late / found.rows)
        yield f"  {human(delay, kind) + mark:<{width}}  {late:>12,}  {share:>9}{own_columns}  {bar}".rstrip()
    yield "These are upper limits: a row is not late if the newer ones before it are in the same micro-batch."
    yield "A late row is in no result."
    for reader in readers:
        if (each_row := reader.each_row) is not None:
            told = f"{figure(each_row)} of its results for each row, on average"
            yield f"Lost of {reader.name}, as measured: {told}."
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
