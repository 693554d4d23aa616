"""Assertions: a statement's result on Spark against the oracle, in batch and on a stream."""

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tests.kit.lateness import Batch, expected_batches
from tests.kit.oracle import difference, expected
from tests.kit.statement import Input, Statement, Style, text
from wjoin.testing.harness import Run, Source, run_batches, run_static
from wjoin.testing.rows import rows_of

PLAIN = Style()

HOUR = 3_600_000_000


def delay_of(item: Input, integral: bool) -> str | int:
    """Return the allowed disorder of a stream as ``Session.stream`` takes it."""
    return item.delay if integral else f"{item.delay} microseconds"


def sources_of(statement: Statement, batches: Sequence[Mapping[str, pa.Table | None]]) -> list[Source]:
    """Return the relations of a statement with their rows, each once."""
    inputs = {item.relation: item for item in statement.inputs}.values()
    return [
        Source(
            item.relation,
            [batch[item.alias] for batch in batches],
            item.event_time,
            delay_of(item, statement.integral),
        )
        for item in inputs
    ]


def assert_batch(
    session: Any, statement: Statement, tables: Mapping[str, pa.Table], style: Style = PLAIN
) -> Counter[tuple[Any, ...]]:
    """Assert that the statement over static tables gives the oracle's bag; return the bag."""
    written = text(statement, style)
    table = run_static(session, written, sources_of(statement, [tables]))
    assert_columns(statement, table)
    wanted = expected(statement, tables)
    assert_same(Counter(rows_of(table)), wanted, written)
    return wanted


def assert_stream(
    session: Any,
    statement: Statement,
    batches: Sequence[Batch],
    style: Style = PLAIN,
    restarts: Sequence[int] = (),
) -> Run:
    """Assert that each micro-batch of a streaming run emits exactly the oracle's bag for it."""
    written = text(statement, style)
    run = run_batches(session, written, sources_of(statement, batches), restarts=restarts)
    for number, (actual, wanted) in enumerate(
        zip(run.bags, expected_batches(statement, batches), strict=True)
    ):
        assert_same(actual, wanted, f"micro-batch {number} of {len(batches)} of\n{written}")
    return run


def assert_columns(statement: Statement, table: pa.Table) -> None:
    """Assert that a result has the columns of the select list, in order."""
    names = [each.name for each in statement.select]
    if table.column_names != names:
        raise AssertionError(f"columns are {table.column_names}, the select list has {names}")


def assert_same(actual: Counter[tuple[Any, ...]], wanted: Counter[tuple[Any, ...]], about: str) -> None:
    """Assert that two bags are equal, and say how they differ."""
    if actual != wanted:
        raise AssertionError(f"{about}\n{difference(actual, wanted)}")


def deal(tables: Mapping[str, pa.Table], parts: int) -> list[dict[str, pa.Table]]:
    """Deal the rows of every stream out to ``parts`` micro-batches, in turn."""
    return [
        {
            alias: table.take(pa.array(range(part, table.num_rows, parts), pa.int64()))
            for alias, table in tables.items()
        }
        for part in range(parts)
    ]


def patient(statement: Statement, delay: int = HOUR) -> Statement:
    """Return the statement with so much allowed disorder that no row of a small case is late."""
    inputs = tuple(dataclasses.replace(item, delay=delay) for item in statement.inputs)
    return dataclasses.replace(statement, inputs=inputs)
