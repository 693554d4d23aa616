"""EXPLAIN MATCH: why the rows that are meant are no result of a window join."""

from collections.abc import Iterator, Sequence

from pyspark.sql import SparkSession

from wjoin.asking.arrival import Arrived, History, arrived_by
from wjoin.asking.funnel import funnel
from wjoin.asking.judged import Verdict
from wjoin.asking.meant_rows import Candidates, Reader
from wjoin.asking.nearest import Judged, nearest_of
from wjoin.asking.needs import Needs, needs_of
from wjoin.asking.read_log import Read, read_by
from wjoin.asking.source_rows import BATCH, HIDDEN, as_tables
from wjoin.asking.standing import Standing
from wjoin.context import Asked
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.plurals import counted, listed
from wjoin.grammar.statement_kinds import MeantRows, Query
from wjoin.homes.homes import keeps_state
from wjoin.joins.from_items import FromSource
from wjoin.joins.rewrite import Rewriting, rewrite
from wjoin.measured.kept import Kept
from wjoin.measured.last_manifest import last_manifest


def explain_match(asked: Asked, query: Query, meant: Sequence[MeantRows], checkpoint: str | None) -> str:
    """Return why rows that are meant are no result of a query, or that they are one.

    The last window join of the query is asked; without rows that are meant it tells at which step rows are
    lost. With the ``checkpoint`` of a query it tells which rows came late there. Raises WJoinError.
    """
    kept = None if checkpoint is None else Kept(asked.engine.spark, checkpoint, asked.settings.home())
    try:
        rewriting = rewrite(asked, query, kept, runs=False, apart=True)
    except WJoinError:
        # The checkpoint may be of another statement; why rows are no result of this one can be told.
        kept, rewriting = None, rewrite(asked, query, runs=False, apart=True)
    if not rewriting.done:
        raise WJoinError("WJ503", "EXPLAIN MATCH is for window joins", span=query.span, text=asked.text)
    join = rewriting.done[-1]
    needs = needs_of(join.planned)
    spark = asked.engine.spark
    read = Read() if checkpoint is None else read_by(spark, checkpoint)
    with asked.placed(query.span), as_tables(spark, join.sources, read) as tables:
        reader = Reader(asked, needs, tables)
        streaming = frozenset(number for number, each in enumerate(join.sources) if each.frame.isStreaming)
        standing = None if kept is None else _standing(spark, str(checkpoint), kept, rewriting)
        history = History(reader, read, streaming, standing)
        if not meant:
            return "\n".join(funnel(history))
        found = reader.candidates(meant)
        lines = list(_missing(reader, found, meant))
        if lines:
            lines += _of_those_there(history, found)
        else:
            nearest = nearest_of(history, found, _unique(join.sources))
            lines = list(_told(needs, found, nearest))
            if standing is not None and nearest.verdict.faults:
                lines += standing.told(nearest.in_time, history.untold)
            elif standing is not None:
                lines += standing.undecided(nearest.in_time)
    return "\n".join(lines)


def _unique(sources: Sequence[FromSource]) -> dict[int, list[str]]:
    """Return by stream the columns that are equal in copies of a row, where it drops these."""
    return {
        number: [column.name for column in each.declared.statement.unique]
        for number, each in enumerate(sources)
        if each.declared is not None
        and each.declared.statement is not None
        and each.declared.statement.unique
    }


def _standing(spark: SparkSession, checkpoint: str, kept: Kept, rewriting: Rewriting) -> Standing | None:
    """Return how far the query of a checkpoint has come, None where it has not yet, or that is not known."""
    plan = rewriting.done[-1].planned.physical
    if not keeps_state(plan) or not plan.stages or kept.last_commit < 0:
        return None
    try:
        last = last_manifest(spark, checkpoint, kept, len(rewriting.done) - 1, plan)
    except WJoinError:
        # Its next start tells what is wrong with it.
        return None
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    return None if last is None else Standing(plan, kept.last_commit, last.seen, zone)


def _of_those_there(history: History, found: Sequence[Candidates]) -> Iterator[str]:
    """Yield what is told of those streams of which one row is meant, and is there, where others have none."""
    reader = history.reader
    times: list[int | None] = [None] * len(found)
    arrived: list[Arrived | None] = [None] * len(found)
    for number, each in enumerate(found):
        time = reader.needs.times[number]
        if each.found == 1 and each.condition and time is not None:
            hidden = ", ".join(HIDDEN if BATCH in each.rows.columns else ("NULL", "NULL"))
            query = f"SELECT {time}, {hidden} FROM {reader.alias(number)}"
            (row,) = reader.run(query, {number: each.rows}).collect()
            times[number], arrived[number] = row[0], arrived_by(row[1], row[2])
    dropped = history.dropped(arrived, times)
    for fault in dropped.values():
        yield from fault.lines
    if history.standing is not None:
        rows = {n: time for n, time in enumerate(times) if time is not None and n not in dropped}
        yield from history.standing.told(rows, history.untold)


def _missing(reader: Reader, found: Sequence[Candidates], meant: Sequence[MeantRows]) -> Iterator[str]:
    """Yield what is told where a stream has no row that could take part."""
    for number, (name, each) in enumerate(zip(reader.needs.names, found, strict=True)):
        if each.found:
            continue
        if not each.all:
            yield f"{name} has no rows."
        elif each.condition:
            yield f"No row of {name} satisfies {each.condition}. {name} has {counted(each.all, 'row')}:"
            for part, count in reader.alone(number, each.condition):
                yield f"  {part}: {counted(count, 'row') if count else 'no row'}"


def _told(needs: Needs, found: Sequence[Candidates], nearest: Judged) -> Iterator[str]:
    """Yield what is told of the nearest combination."""
    verdict, unjudged = nearest.verdict, (*needs.unjudged, *nearest.unknown)
    yield f"These rows are {_what(needs, verdict)}:"
    for name, each, row in zip(needs.names, found, verdict.combination.rows, strict=True):
        yield f"  {name}  {row}{_of(each)}"
    if verdict.faults:
        first, *others = verdict.faults
        for begin, fault in [("First thing that fails:", first), *(("Also:", each) for each in others)]:
            text, *hints = fault.lines
            yield f"{begin} {text}"
            yield from hints
    if verdict.satisfied:
        yield f"Satisfied: {'; '.join(verdict.satisfied)}."
    if needs.partners:
        text = "; ".join(needs.partners)
        where = (
            " Each result must satisfy WHERE, too." if any(each.later for each in needs.conditions) else ""
        )
        yield f"{text[0].upper()}{text[1:]}.{where}"
    if needs.approximate and not verdict.faults:
        yield "The join is approximate: it may have lost this result, if the rows live at different nodes."
    if unjudged:
        yield f"Not judged: {listed(unjudged)}."


def _what(needs: Needs, verdict: Verdict) -> str:
    if not needs.partners:
        return "no result" if verdict.faults else "a result"
    if not verdict.faults:
        return "partners"
    return "partners, but no result" if all(each.later for each in verdict.faults) else "no partners"


def _of(found: Candidates) -> str:
    if found.found <= 1:
        return ""
    return f"   (the nearest of {found.found:,} rows{' that are meant' if found.condition else ''})"
