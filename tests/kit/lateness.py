"""The model of LANGUAGE.md §3 for order, lateness and retention over given micro-batches."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tests.kit.oracle import Combination, Tables, combinations, event_times, project
from tests.kit.statement import Statement
from wjoin.planner.plan.ahead import greatest_time
from wjoin.planner.plan.physical import TimeKind

Oracle = Callable[[Statement, Tables], list[Combination]]
"""What finds the results over complete tables: ``combinations`` or ``brute_force``."""

Batch = Mapping[str, pa.Table]
"""The rows that arrive in one micro-batch, by alias."""


@dataclass(frozen=True)
class Survivors:
    """What is left of one stream: the rows that count, and the micro-batch that each came in.

    ``late``, ``null_times``, ``ahead`` and ``rows_in`` count per micro-batch; ``watermarks`` are those
    at the end of each micro-batch, None before the first event time.
    """

    table: pa.Table
    batch: tuple[int, ...]
    rows_in: tuple[int, ...]
    late: tuple[int, ...]
    null_times: tuple[int, ...]
    watermarks: tuple[int | None, ...]
    ahead: tuple[int, ...] = ()


def survivors(tables: Sequence[pa.Table], event_time: str, delay: int) -> Survivors:
    """Return what is left of a stream that arrives as the given micro-batches.

    A row is late when it is older than the largest event time of the micro-batches before
    its own minus ``delay``. Rows that a predicate removes count for the time like any other, those of a
    time that no clock shows do not.
    """
    integral = not pa.types.is_timestamp(tables[0].schema.field(event_time).type)
    limit = greatest_time(TimeKind.INTEGRAL if integral else TimeKind.TIMESTAMP)
    greatest: int | None = None
    kept: list[pa.Table] = []
    batch: list[int] = []
    late, nulls, watermarks, ahead = [], [], [], []
    for number, table in enumerate(tables):
        times = event_times(table, event_time)
        floor = None if greatest is None else greatest - delay
        known = [time for time in times if time is not None and time <= limit]
        keep = [time is not None and time <= limit and (floor is None or time >= floor) for time in times]
        kept.append(table.filter(pa.array(keep, pa.bool_())))
        batch += [number] * sum(keep)
        nulls.append(times.count(None))
        ahead.append(len(times) - len(known) - nulls[-1])
        late.append(len(known) - sum(keep))
        if known:
            greatest = max(known) if greatest is None else max(greatest, *known)
        watermarks.append(None if greatest is None else greatest - delay)
    counts = tuple(table.num_rows for table in tables)
    whole = pa.concat_tables(kept)
    return Survivors(whole, tuple(batch), counts, tuple(late), tuple(nulls), tuple(watermarks), tuple(ahead))


def surviving(statement: Statement, batches: Sequence[Batch]) -> dict[str, Survivors]:
    """Return the survivors of every stream of a statement."""
    return {
        item.alias: survivors([batch[item.alias] for batch in batches], item.event_time, item.delay)
        for item in statement.inputs
    }


def expected_batches(
    statement: Statement, batches: Sequence[Batch], oracle: Oracle = combinations
) -> list[Counter[tuple[Any, ...]]]:
    """Return the bag of rows that each micro-batch must emit, as an oracle finds them.

    A combination belongs to the micro-batch in which its last row arrives.
    """
    left = surviving(statement, batches)
    tables = {alias: each.table for alias, each in left.items()}
    found = oracle(statement, tables)
    bags: list[Counter[tuple[Any, ...]]] = [Counter() for _ in batches]
    for numbers, row in zip(found, project(statement, tables, found), strict=True):
        arrival = max(
            left[alias].batch[number] for alias, number in zip(statement.aliases, numbers, strict=True)
        )
        bags[arrival][row] += 1
    return bags


Upper = Mapping[tuple[str, str], int | None]
"""``upper[i, j]``: the greatest event time of j minus event time of i that a result may have."""


def retained(left: Mapping[str, Survivors], upper: Upper, event_time: str = "ts") -> list[dict[str, int]]:
    """Return how many rows of each stream must still be kept after each micro-batch.

    A row of i at time t is needed while the watermark of some other stream j has not passed
    ``t + upper[i, j]``; for ever where that is None.
    """
    times = {alias: event_times(each.table, event_time) for alias, each in left.items()}
    counts = []
    for number in range(len(next(iter(left.values())).rows_in)):
        marks = {alias: each.watermarks[number] for alias, each in left.items()}
        counts.append(
            {alias: _needed(alias, left[alias], times[alias], marks, upper, number) for alias in left}
        )
    return counts


def _needed(
    alias: str,
    stream: Survivors,
    times: Sequence[int | None],
    marks: Mapping[str, int | None],
    upper: Upper,
    number: int,
) -> int:
    limits = [(upper[alias, other], mark) for other, mark in marks.items() if other != alias]
    if any(reach is None or mark is None for reach, mark in limits):
        return sum(arrival <= number for arrival in stream.batch)
    least = min(mark - reach for reach, mark in limits if reach is not None and mark is not None)
    return sum(
        arrival <= number and time is not None and time >= least
        for arrival, time in zip(stream.batch, times, strict=True)
    )
