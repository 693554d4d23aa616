"""Of the combinations of rows that are meant, the one that is nearest to a result."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from typing import Any

from wjoin.asking.alternatives import Count
from wjoin.asking.arrival import History, arrived_by, in_time
from wjoin.asking.judged import Combination, Verdict, judged
from wjoin.asking.meant_rows import Candidates
from wjoin.asking.needs import Kind, Needs
from wjoin.asking.source_rows import BATCH, HIDDEN, PLACE
from wjoin.planner.text.scope import quoted_if_needed

_COUNTED = 1_000
"""Combinations, the nearest ones, for which windows of rows are counted."""

_SHOWN_COLUMNS = 8
_SHOWN = 60
"""Characters of a value that are shown."""

Values = tuple[str | None, ...]


@dataclass(frozen=True)
class Judged:
    """What a combination lacks, and the event times by stream of its rows that were ``in_time``.

    ``unknown``: what is not known of how they came; ``values``: those by which others are found (``_Asked``).
    """

    verdict: Verdict
    in_time: dict[int, int]
    unknown: tuple[str, ...]
    values: tuple[Values, ...]


@dataclass(frozen=True)
class _Asked:
    """By which values of rows others are found, as Spark expressions.

    For each window of rows those of its key, then by stream those that are equal in copies of a row.
    """

    counts: tuple[tuple[str, ...], ...]
    copies: Mapping[int, tuple[str, ...]]

    @property
    def lists(self) -> list[tuple[str, ...]]:
        return [*self.counts, *self.copies.values()]


def nearest_of(history: History, found: Sequence[Candidates], unique: Mapping[int, Sequence[str]]) -> Judged:
    """Return the combination of candidates that is nearest to a result.

    ``unique`` are the columns, by stream, that are equal in copies of a row; a query drops all but one.
    """
    needs = history.reader.needs
    names = [quoted_if_needed(name) for name in needs.names]
    copies = {
        number: tuple(f"{names[number]}.{quoted_if_needed(each)}" for each in columns)
        for number, columns in unique.items()
    }
    asked = _Asked(tuple(each.keys for each in needs.counts), copies)
    every = _judged(history, found, asked)
    nearest = nsmallest(_COUNTED if needs.counts else 1, every, key=lambda each: each.verdict.nearness)
    if needs.counts:
        nearest.sort(key=lambda each: each.verdict.nearness)
        nearest = [min(_with_counts(history, nearest), key=lambda each: each.verdict.nearness)]
    (best,) = nearest
    told = zip(copies.items(), best.values[len(asked.counts) :], strict=True)
    more = [
        each
        for (number, columns), values in told
        if (each := _copies(history, number, columns, values, unique[number]))
    ]
    return replace(best, unknown=(*best.unknown, *more))


def _judged(history: History, found: Sequence[Candidates], asked: _Asked) -> Iterator[Judged]:
    """Yield what each combination of the candidates lacks; windows of rows are not counted yet."""
    reader = history.reader
    needs = reader.needs
    parts = ["NULL" if time is None else time for time in needs.times]
    parts += [f"coalesce({each.test}, false)" for each in needs.conditions]
    parts += [each.beyond or "NULL" for each in needs.conditions]
    parts += [f"CAST({value} AS STRING)" for each in needs.conditions for value in each.told]
    shown = [_shown_columns(needs, number, each) for number, each in enumerate(found)]
    for columns in shown:
        parts += [f"CAST({column} AS STRING)" for column, _ in columns]
    for number, each in enumerate(found):
        name = quoted_if_needed(needs.names[number])
        told = BATCH in each.rows.columns
        parts += [f"{name}.{column}" if told else "NULL" for column in (PLACE, BATCH)]
    parts += [f"CAST({each} AS STRING)" for own in asked.lists for each in own]
    listed_parts = ", ".join(f"{part} AS c{place}" for place, part in enumerate(parts))
    tables = " CROSS JOIN ".join(reader.alias(number) for number in range(len(found)))
    frames = {number: each.rows for number, each in enumerate(found)}
    for row in reader.run(f"SELECT {listed_parts} FROM {tables}", frames).toLocalIterator():
        taken = iter(row)
        combination = _combination(needs, shown, taken)
        arrived = [arrived_by(next(taken), next(taken)) for _ in found]
        verdict, dropped = judged(needs, combination), history.dropped(arrived, combination.times)
        times = enumerate(combination.times)
        yield Judged(
            replace(verdict, faults=(*verdict.faults, *dropped.values())),
            {number: time for number, time in times if time is not None and number not in dropped},
            tuple(history.unknown(arrived, combination.times)),
            tuple(tuple(_text(next(taken)) for _ in own) for own in asked.lists),
        )


def _with_counts(history: History, found: Sequence[Judged]) -> Iterator[Judged]:
    """Yield what combinations lack, windows of rows among it."""
    needs = history.reader.needs
    counts = [_counts(history, number, each, found) for number, each in enumerate(needs.counts)]
    for number, each in enumerate(found):
        own = replace(each.verdict.combination, counts=tuple(count.get(number, 0) for count in counts))
        verdict = judged(needs, own)
        dropped = [fault for fault in each.verdict.faults if fault.kind is Kind.ARRIVAL]
        yield replace(each, verdict=replace(verdict, faults=(*verdict.faults, *dropped)))


def _counts(history: History, place: int, count: Count, found: Sequence[Judged]) -> dict[int, int]:
    """Return by combination how many rows a window of rows counts, where it counts some."""
    reader = history.reader
    engine, time = reader.asked.engine, reader.needs.times[count.stream]
    asked = []
    for number, each in enumerate(found):
        every = each.verdict.combination.times
        times = [own for stream in count.among if (own := every[stream]) is not None]
        begin = every[count.stream]
        asked.append((number, begin, max(times, default=None), *each.values[place]))
    names = [f"__wjoin_k{number}" for number in range(len(count.keys))]
    schema = ", ".join(["__wjoin_n INT, __wjoin_begin BIGINT, __wjoin_end BIGINT"])
    schema += "".join(f", {name} STRING" for name in names)
    tests = [f"{time} > __wjoin_begin", f"{time} <= __wjoin_end", *([f"({count.test})"] * bool(count.test))]
    tests += [f"CAST({key} AS STRING) <=> {name}" for key, name in zip(count.keys, names, strict=True)]
    rows = in_time(history, count.stream)
    alias = quoted_if_needed(reader.needs.names[count.stream])
    query = f"SELECT __wjoin_n, count(*) FROM {{asked}} JOIN {{rows}} AS {alias} ON {' AND '.join(tests)}"
    told = reader.query(f"{query} GROUP BY 1", asked=engine.rows(asked, schema), rows=rows).collect()
    return {row[0]: row[1] for row in told}


def _copies(
    history: History, number: int, columns: Sequence[str], values: Values, names: Sequence[str]
) -> str:
    """Return what is not known of a row that has copies, empty where it has none."""
    reader = history.reader
    schema = ", ".join(f"__wjoin_k{place} STRING" for place in range(len(columns)))
    own = [f"CAST({column} AS STRING) <=> __wjoin_k{place}" for place, column in enumerate(columns)]
    query = f"SELECT count(*) FROM {{own}} JOIN {{rows}} AS {quoted_if_needed(reader.needs.names[number])}"
    (row,) = reader.query(
        f"{query} ON {' AND '.join(own)}",
        own=reader.asked.engine.rows([values], schema),
        rows=reader.tables[number],
    ).collect()
    if row[0] < 2:
        return ""
    return (
        f"which of {row[0]:,} rows of {reader.needs.names[number]} with its {', '.join(names)} is not dropped"
    )


def _combination(
    needs: Needs, shown: Sequence[Sequence[tuple[str, str]]], taken: Iterator[Any]
) -> Combination:
    times = tuple(_whole(next(taken)) for _ in needs.times)
    holds = tuple(bool(next(taken)) for _ in needs.conditions)
    beyond = tuple(_whole(next(taken)) for _ in needs.conditions)
    told = tuple(tuple(_text(next(taken)) for _ in each.told) for each in needs.conditions)
    rows = tuple(", ".join(f"{name} {_short(next(taken))}" for _, name in columns) for columns in shown)
    return Combination(times, holds, beyond, told, rows)


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)


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
    listed_columns = [*needs.columns[number], *(each for each in found.rows.columns if each not in HIDDEN)]
    shown = list(dict.fromkeys(listed_columns))[:_SHOWN_COLUMNS]
    return [(f"{name}.{quoted_if_needed(each)}", each) for each in shown]
