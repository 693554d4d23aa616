"""EXPLAIN MATCH: why the rows that are meant are no result of a window join."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from wjoin.asking.arrival import Read, arrivals, read_by
from wjoin.asking.funnel import funnel
from wjoin.asking.judged import Combination, Fault, Verdict, judged
from wjoin.asking.meant_rows import Candidates, Reader
from wjoin.asking.needs import Kind, Needs, needs_of
from wjoin.asking.source_rows import FILE, as_tables
from wjoin.asking.standing import Standing
from wjoin.context import Asked
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.plurals import counted, listed
from wjoin.grammar.statement_kinds import MeantRows, Query
from wjoin.homes.homes import keeps_state
from wjoin.joins.rewrite import Rewriting, rewrite
from wjoin.measured.kept import Kept
from wjoin.measured.last_manifest import last_manifest
from wjoin.planner.text.scope import quoted_if_needed

_SHOWN_COLUMNS = 8
_SHOWN = 60
"""Characters of a value that are shown."""


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
    with asked.placed(query.span), as_tables(spark, join.sources) as tables:
        reader = Reader(asked, needs, tables)
        read = Read() if checkpoint is None else read_by(spark, checkpoint)
        if not meant:
            return "\n".join(funnel(reader, read))
        found = reader.candidates(meant)
        standing = None if kept is None else _standing(spark, str(checkpoint), kept, rewriting)
        lines = list(_missing(reader, found, meant))
        if lines:
            if standing is not None:
                lines += standing.told(_only_times(reader, found))
        else:
            verdict = min(_verdicts(reader, found), key=lambda each: each.nearness)
            combination, dropped = verdict.combination, dict[int, Fault]()
            if read.files:
                dropped = dict(arrivals(reader, read, combination.files, combination.times))
                verdict = replace(verdict, faults=(*verdict.faults, *dropped.values()))
            lines = list(_told(needs, found, verdict))
            if standing is not None and verdict.faults:
                times = enumerate(combination.times)
                lines += standing.told(
                    {n: time for n, time in times if time is not None and n not in dropped}
                )
    return "\n".join(lines)


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


def _only_times(reader: Reader, found: Sequence[Candidates]) -> dict[int, int]:
    """Return the event times of those streams of which one row is meant, and is there."""
    times: dict[int, int] = {}
    for number, each in enumerate(found):
        time = reader.needs.times[number]
        if each.found == 1 and each.condition and time is not None:
            (row,) = reader.run(f"SELECT {time} FROM {reader.alias(number)}", {number: each.rows}).collect()
            if row[0] is not None:
                times[number] = row[0]
    return times


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


def _verdicts(reader: Reader, found: Sequence[Candidates]) -> Iterator[Verdict]:
    """Yield what each combination of the candidates lacks."""
    needs = reader.needs
    parts = ["NULL" if time is None else time for time in needs.times]
    parts += [f"coalesce({each.test}, false)" for each in needs.conditions]
    keys = [number for number, each in enumerate(needs.conditions) if each.kind is Kind.KEY]
    for number in keys:
        parts += [f"CAST({side} AS STRING)" for _, side in needs.conditions[number].sides]
    shown = [_shown_columns(needs, number, each) for number, each in enumerate(found)]
    for number, (columns, each) in enumerate(zip(shown, found, strict=True)):
        parts += [f"CAST({column} AS STRING)" for column, _ in columns]
        name = quoted_if_needed(needs.names[number])
        parts.append(f"{name}.{FILE}" if FILE in each.rows.columns else "NULL")
    listed_parts = ", ".join(f"{part} AS c{place}" for place, part in enumerate(parts))
    tables = " CROSS JOIN ".join(reader.alias(number) for number in range(len(found)))
    frames = {number: each.rows for number, each in enumerate(found)}
    for row in reader.run(f"SELECT {listed_parts} FROM {tables}", frames).toLocalIterator():
        yield judged(needs, _combination(needs, keys, shown, list(row)))


def _combination(
    needs: Needs, keys: Sequence[int], shown: Sequence[Sequence[tuple[str, str]]], values: list[object]
) -> Combination:
    taken = iter(values)
    times = tuple(None if (each := next(taken)) is None else int(str(each)) for _ in needs.times)
    holds = tuple(bool(next(taken)) for _ in needs.conditions)
    sides: list[tuple[str | None, str | None] | None] = [None] * len(needs.conditions)
    for number in keys:
        left, right = next(taken), next(taken)
        sides[number] = (_text(left), _text(right))
    rows, files = [], []
    for columns in shown:
        rows.append(", ".join(f"{name} {_short(next(taken))}" for _, name in columns))
        files.append(_text(next(taken)))
    return Combination(times, holds, tuple(sides), tuple(rows), tuple(files))


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _short(value: object) -> str:
    text = "NULL" if value is None else str(value)
    text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    # Blanks at an end are seen between quotes only.
    return text if text == text.strip() else repr(text)


def _shown_columns(needs: Needs, number: int, found: Candidates) -> list[tuple[str, str]]:
    """Return the expressions of the columns by which a row is shown, and their names."""
    name = quoted_if_needed(needs.names[number])
    listed_columns = [*needs.columns[number], *(each for each in found.rows.columns if each != FILE)]
    shown = list(dict.fromkeys(listed_columns))[:_SHOWN_COLUMNS]
    return [(f"{name}.{quoted_if_needed(each)}", each) for each in shown]


def _told(needs: Needs, found: Sequence[Candidates], verdict: Verdict) -> Iterator[str]:
    """Yield what is told of the nearest combination."""
    yield "These rows are no result:" if verdict.faults else "These rows are a result:"
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
    if needs.unjudged:
        yield f"Not judged: {listed(needs.unjudged)}."


def _of(found: Candidates) -> str:
    if found.found <= 1:
        return ""
    return f"   (the nearest of {found.found:,} rows{' that are meant' if found.condition else ''})"
