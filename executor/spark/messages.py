"""The messages between Spark's stages: blocks, progress, announcements and reports, as rows of one schema.

- A *block* brings tuples to a worker, for an input of its stage, as what the route says (``Role``).
- *Progress* tells a worker the greatest event time of a stream, and the clock of the micro-batch where a
  stream of the join may be silent, and that all streams have ended; out of the last stage, the least
  MATCH_TIME that may still come.
- An *announcement* tells a worker of new rows that are held at their site, for an input of its stage.
- *Ticks* tell a worker what a window of rows counts; results that wait for that come when a state is moved.
- *Late rows* of an earlier stage go past a worker, to a sink.
- A *report* tells what was counted of a stream, or of a stage; it is addressed to one worker, so that it
  counts once. One without counts wakes a worker.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from typing import Any

import pyarrow as pa
from pyspark.sql.types import ArrayType, BinaryType, IntegerType, LongType, StructField, StructType

from wjoin.executor.arrivals import Arrivals
from wjoin.executor.blocks import cut, encode_block
from wjoin.executor.report import Report
from wjoin.executor.routing import Router
from wjoin.executor.sites.ranges import Announced
from wjoin.parts.routes.route import Role

BLOCK_ROWS = 1 << 18
"""Rows of one block at the most."""

BLOCK_BYTES = 1 << 16
"""About the most bytes of one block: Spark holds as many blocks at once as an Arrow batch may have rows."""

HEADER_BYTES, COLUMN_BYTES = 250, 100
"""About the bytes of a block that are no values, with what Spark has around it: any, and for each column."""

HEADERS = 0.05
"""The share of a full block that these may take: a block of many columns is larger (S2J, theorem 1)."""

PROGRESS, REPORT, ANNOUNCED, LATE_ROWS, TICKS, WAITING = -1, -2, -3, -4, -5, -6
"""The kinds of the other messages; that of a block is its role."""

NO_STREAM = -1
"""What the report of a stage is of, and the progress of its results."""

CLOCK = -2
"""What the progress is of that tells the clock of the micro-batch."""

ENDED = -3
"""What the progress is of that tells a worker that all streams end with this micro-batch."""

OUT = -1
"""The worker that results are for, which leave the stages."""

SCHEMA = pa.schema(
    [
        ("worker", pa.int32()),
        ("kind", pa.int32()),
        # The input of a block or an announcement, the stream of progress and of a report, what ticks are for.
        ("number", pa.int32()),
        ("seen", pa.int64()),
        # Of a report the counters; of an announcement the values of ``Announced``; of progress ``came``.
        ("counts", pa.list_(pa.int64())),
        ("block", pa.binary()),
    ]
)

MESSAGES = StructType(
    [
        *(StructField(name, IntegerType()) for name in ("worker", "kind", "number")),
        StructField("seen", LongType()),
        StructField("counts", ArrayType(LongType())),
        StructField("block", BinaryType()),
    ]
)

Message = dict[str, object]
"""A row of the schema by the names of its columns."""


def blocks(worker: int, number: int, role: Role, tuples: pa.RecordBatch) -> Iterator[Message]:
    """Yield tuples as blocks of a size that travels well."""
    yield from _blocks(worker, int(role), number, tuples)


def late_rows(worker: int, tuples: pa.RecordBatch) -> Iterator[Message]:
    """Yield late rows as blocks that go past a worker."""
    yield from _blocks(worker, LATE_ROWS, NO_STREAM, tuples)


def waiting(worker: int, tuples: pa.RecordBatch) -> Iterator[Message]:
    """Yield results that wait for what windows of rows count as blocks for a worker."""
    yield from _blocks(worker, WAITING, NO_STREAM, tuples)


def ticks(workers: Sequence[int], window: int, tuples: pa.RecordBatch) -> Iterator[Message]:
    """Yield ticks of a window of rows as blocks for some workers."""
    for piece in cut(tuples, BLOCK_ROWS, full_block(tuples.num_columns)):
        block = encode_block(piece)
        yield from (_message(worker, TICKS, window, block=block) for worker in workers)


def _blocks(worker: int, kind: int, number: int, tuples: pa.RecordBatch) -> Iterator[Message]:
    for piece in cut(tuples, BLOCK_ROWS, full_block(tuples.num_columns)):
        yield _message(worker, kind, number, block=encode_block(piece))


def full_block(columns: int) -> int:
    """Return about the most bytes of the values of a block with so many columns."""
    return max(BLOCK_BYTES, round((HEADER_BYTES + COLUMN_BYTES * columns) / HEADERS))


def routed(router: Router, tuples: pa.RecordBatch, *, whole: bool = False) -> Iterator[Message]:
    """Yield tuples as blocks for the workers that a router says; ``whole``: they are all that a task has."""
    for worker, share, role in router.parts(tuples, whole=whole):
        yield from blocks(worker, router.number, role, share)


def progress(worker: int, stream: int, seen: int, came: int | None = None) -> Message:
    """Return the progress of a stream; of the results (``NO_STREAM``), or of the clock (``CLOCK``).

    ``came``: the clock when the last row of the stream came, where the workers need it.
    """
    return _message(worker, PROGRESS, stream, seen=seen, counts=None if came is None else [came])


def report(worker: int, stream: int, *counted: Report) -> Message:
    """Return what was counted of a stream; of a stage (``NO_STREAM``) and of its streams."""
    return _message(worker, REPORT, stream, counts=[value for each in counted for value in each.values])


def ended(worker: int) -> Message:
    """Return what tells a worker that all streams end with this micro-batch."""
    return _message(worker, PROGRESS, ENDED)


def wake(worker: int) -> Message:
    """Return what tells a worker only that there is a micro-batch: all of a stage have one, or none has."""
    return _message(worker, REPORT, NO_STREAM)


def announcement(worker: int, number: int, rows: Announced) -> Message:
    """Return what tells a worker of new rows of an input that are held at their site."""
    return _message(worker, ANNOUNCED, number, counts=list(astuple(rows)))


def batch(messages: list[Message]) -> pa.RecordBatch:
    """Return messages as a record batch."""
    return pa.RecordBatch.from_pylist(messages, schema=SCHEMA)


def _message(
    worker: int,
    kind: int,
    number: int,
    *,
    # A null would make floats of whole numbers in pandas.
    seen: int = 0,
    counts: list[int] | None = None,
    block: bytes | None = None,
) -> Message:
    return dict(zip(SCHEMA.names, (worker, kind, number, seen, counts, block), strict=True))


def take_progress(arrivals: Arrivals, message: Mapping[Any, Any]) -> None:
    """Add to what has come for a worker what progress tells it, and of which streams reports are."""
    number, seen = message["number"], int(message["seen"])
    if message["kind"] == REPORT and number >= 0:
        arrivals.told.setdefault(number, Report())
    if message["kind"] != PROGRESS:
        return
    if number == CLOCK:
        arrivals.clock = max(seen, arrivals.clock or 0)
    elif number == ENDED:
        arrivals.ended = True
    elif number >= 0:
        arrivals.seen[number] = max(seen, arrivals.seen.get(number, seen))
        if message["counts"] is not None:
            arrivals.came[number] = max(int(message["counts"][0]), arrivals.came.get(number, 0))


def is_block(message: Mapping[Any, Any]) -> bool:
    """Return whether a message is a block."""
    return bool(message["kind"] >= 0)
