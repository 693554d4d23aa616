"""Short ways to write the rows of hand-made cases."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from tests.kit.expressions import Expression
from tests.kit.statement import Condition, Input, Match, Output, Statement, columns

SECOND = 1_000_000

TIMESTAMP = pa.timestamp("us", "UTC")

EPOCH = 1_767_225_600 * SECOND
"""2026-01-01 00:00:00 UTC in microseconds: time 0 of hand-made cases."""


def events(
    rows: Iterable[tuple[Any, ...]],
    *names: str,
    types: tuple[pa.DataType, ...] = (),
    time: pa.DataType = TIMESTAMP,
) -> pa.Table:
    """Return a stream of rows ``(id, time, further values…)``.

    Times are microseconds after ``EPOCH``, or the number itself where ``time`` is integral.
    ``names`` and ``types`` are those of the further columns (BIGINT by default).
    """
    ids, times, *rest = list(zip(*rows, strict=True)) or [(), (), *(() for _ in names)]
    start = EPOCH if pa.types.is_timestamp(time) else 0
    instants = pa.array([None if each is None else start + each for each in times], pa.int64())
    data = {"id": pa.array(ids, pa.int64()), "ts": instants.cast(time)}
    kinds = types or (pa.int64(),) * len(names)
    for name, kind, values in zip(names, kinds, rest, strict=True):
        data[name] = pa.array(values, kind)
    return pa.table(data)


def statement(
    aliases: str,
    window: Condition,
    *where: Expression,
    match: tuple[str, ...] = (),
    integral: bool = False,
    delay: int = 0,
) -> Statement:
    """Return a statement over streams with one-letter names that selects every ``id``."""
    inputs = tuple(Input(alias, f"s_{alias.lower()}", delay=delay) for alias in aliases)
    outputs = tuple(output for alias in aliases for output in columns(alias, "id"))
    functions = tuple(Output(Match(each), f"match_{each}") for each in match)
    return Statement(inputs, window, where, outputs + functions, integral)
