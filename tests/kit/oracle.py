"""Two independent oracles of LANGUAGE.md §3: DuckDB, and brute force in plain Python.

Both return combinations of input rows as tuples of row numbers in FROM order, so that rows
which are equal stay different rows. Neither completes window constraints: every term is
checked as it is written, on the event times as integers.
"""

import datetime
import functools
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from tests.kit.expressions import Row, evaluate, sql
from tests.kit.statement import (
    Between,
    Both,
    Condition,
    Either,
    Match,
    Pair,
    Path,
    Statement,
    Trailing,
    Within,
)
from wjoin.testing.rows import canonical

Tables = Mapping[str, pa.Table]
"""The rows of each stream, by alias."""

Combination = tuple[int, ...]


def event_times(table: pa.Table, column: str) -> list[int | None]:
    """Return event time as integers: microseconds since the epoch, or the number itself."""
    values = table.column(column)
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us", values.type.tz))
    times: list[int | None] = values.cast(pa.int64()).to_pylist()
    return times


# DuckDB ---------------------------------------------------------------------


def combinations(statement: Statement, tables: Tables) -> list[Combination]:
    """Return the row numbers of every result of the statement, computed by DuckDB, in order."""
    connection = _database().cursor()
    try:
        connection.execute("SET TimeZone = 'UTC'")
        for item in statement.inputs:
            table = tables[item.alias]
            times = pa.array(event_times(table, item.event_time), pa.int64())
            numbered = table.append_column("__row", pa.array(range(table.num_rows), pa.int64()))
            connection.register(f"input_{item.alias}", numbered.append_column("__time", times))
        return [tuple(row) for row in connection.execute(_query(statement)).fetchall()]
    finally:
        connection.close()


@functools.cache
def _database() -> duckdb.DuckDBPyConnection:
    """Return the one database of this process, without tables: to open one takes longer than most queries."""
    return duckdb.connect()


def _query(statement: Statement) -> str:
    rows = ", ".join(f"{alias}.__row" for alias in statement.aliases)
    # The difference of two numbers of 64 bits may have more.
    wide = "SELECT * REPLACE (CAST(__time AS HUGEINT) AS __time) FROM input_"
    source = ", ".join(f"({wide}{alias}) AS {alias}" for alias in statement.aliases)
    conditions = [f"{alias}.__time IS NOT NULL" for alias in statement.aliases]
    conditions.append(_window(statement.window, statement.aliases))
    conditions += [f"({sql(each)})" for each in statement.where]
    return f"SELECT {rows} FROM {source} WHERE {' AND '.join(conditions)} ORDER BY ALL"


def _window(condition: Condition, aliases: Sequence[str]) -> str:
    latest = f"greatest({', '.join(f'{alias}.__time' for alias in aliases)})"
    earliest = f"least({', '.join(f'{alias}.__time' for alias in aliases)})"
    match condition:
        case Within(width):
            return f"({latest} - {earliest} <= {width})"
        case Pair(first, second, width, directed):
            low = 0 if directed else -width
            return f"({second}.__time - {first}.__time BETWEEN {low} AND {width})"
        case Between(first, second, low, high):
            return f"({second}.__time - {first}.__time BETWEEN {low} AND {high})"
        case Trailing(stream, width):
            return f"({latest} - {stream}.__time <= {width})"
        case Path(streams, widths, bidirectional):
            forward = _hops(streams, widths)
            backward = _hops(streams[::-1], widths[::-1])
            return f"({forward} OR {backward})" if bidirectional else f"({forward})"
        case Both(terms):
            return "(" + " AND ".join(_window(each, aliases) for each in terms) + ")"
        case Either(terms):
            return "(" + " OR ".join(_window(each, aliases) for each in terms) + ")"


def _hops(streams: Sequence[str], widths: Sequence[int]) -> str:
    hops = zip(itertools.pairwise(streams), widths, strict=True)
    return " AND ".join(f"({b}.__time - {a}.__time BETWEEN 0 AND {width})" for (a, b), width in hops)


# Brute force ----------------------------------------------------------------


def brute_force(statement: Statement, tables: Tables) -> list[Combination]:
    """Return the same as ``combinations`` by trying every combination; for tiny inputs only."""
    rows = [tables[alias].to_pylist() for alias in statement.aliases]
    times = [event_times(tables[item.alias], item.event_time) for item in statement.inputs]
    found = []
    for numbers in itertools.product(*(range(len(each)) for each in rows)):
        instant = {alias: times[i][numbers[i]] for i, alias in enumerate(statement.aliases)}
        row = {alias: rows[i][numbers[i]] for i, alias in enumerate(statement.aliases)}
        known = {alias: time for alias, time in instant.items() if time is not None}
        timely = len(known) == len(instant) and _holds(statement.window, known)
        if timely and all(evaluate(each, row) is True for each in statement.where):
            found.append(numbers)
    return found


def _holds(condition: Condition, times: Mapping[str, int]) -> bool:
    match condition:
        case Within(width):
            pairs = itertools.permutations(times.values(), 2)
            return all(b - a <= width for a, b in pairs)
        case Pair(first, second, width, directed):
            gap = times[second] - times[first]
            return 0 <= gap <= width if directed else abs(gap) <= width
        case Between(first, second, low, high):
            return low <= times[second] - times[first] <= high
        case Trailing(stream, width):
            return all(time - times[stream] <= width for time in times.values())
        case Path(streams, widths, bidirectional):
            gaps = [times[b] - times[a] for a, b in itertools.pairwise(streams)]
            forward = all(0 <= gap <= width for gap, width in zip(gaps, widths, strict=True))
            backward = all(0 <= -gap <= width for gap, width in zip(gaps, widths, strict=True))
            return forward or (bidirectional and backward)
        case Both(terms):
            return all(_holds(each, times) for each in terms)
        case Either(terms):
            return any(_holds(each, times) for each in terms)


# Result rows ----------------------------------------------------------------


def project(statement: Statement, tables: Tables, found: Sequence[Combination]) -> list[tuple[Any, ...]]:
    """Return the select list of each combination as canonical values."""
    rows = {alias: _rows(tables[alias]) for alias in statement.aliases}
    times = {item.alias: event_times(tables[item.alias], item.event_time) for item in statement.inputs}
    results = []
    for numbers in found:
        members = dict(zip(statement.aliases, numbers, strict=True))
        row = {alias: rows[alias][number] for alias, number in members.items()}
        instants = {alias: times[alias][number] for alias, number in members.items()}
        values = [_output(statement, output.expression, row, instants) for output in statement.select]
        results.append(tuple(canonical(value) for value in values))
    return results


def _rows(table: pa.Table) -> list[Row]:
    columns = {name: _values(column) for name, column in zip(table.column_names, table.columns, strict=True)}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _values(column: pa.ChunkedArray) -> list[Any]:
    try:
        return list(column.to_pylist())
    except OverflowError:
        # Timestamps that Python does not have: whoever compares them gets microseconds.
        return list(column.cast(pa.int64()).to_pylist())


def expected(statement: Statement, tables: Tables) -> Counter[tuple[Any, ...]]:
    """Return the bag of result rows of the statement over complete tables, in canonical values."""
    return Counter(project(statement, tables, combinations(statement, tables)))


def _output(statement: Statement, expression: Any, row: Row, instants: Mapping[str, int | None]) -> Any:
    if not isinstance(expression, Match):
        return evaluate(expression, row)
    known = [(time, alias) for alias, time in instants.items() if time is not None]
    columns = {item.alias: item.event_time for item in statement.inputs}
    (earliest, first), (latest, last) = min(known), max(known)
    match expression.function:
        case "time":
            return row[last][columns[last]]
        case "start":
            return row[first][columns[first]]
        case "span":
            gap = latest - earliest
            return gap if statement.integral else datetime.timedelta(microseconds=gap)
    raise ValueError(f"no match function {expression.function}")


def difference(actual: Counter[Any], wanted: Counter[Any], limit: int = 10) -> str:
    """Return a readable account of how two bags differ, empty when they are the same."""
    lines = []
    for title, extra in (("missing", wanted - actual), ("not expected", actual - wanted)):
        lines += [f"{title}: {count} x {row}" for row, count in list(extra.items())[:limit]]
        if len(extra) > limit:
            lines.append(f"{title}: {sum(extra.values())} rows in all")
    return "\n".join(lines)
