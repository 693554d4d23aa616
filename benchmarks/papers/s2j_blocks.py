"""What blocks cost in bytes: headers and rows of wjoin's own messages, as Spark shuffles them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import kit_path  # noqa: F401 (finds the package beside)
import numpy as np
import pyarrow as pa

from wjoin.executor.blocks import cut, value_bytes
from wjoin.executor.routing import Router
from wjoin.executor.spark import messages
from wjoin.parts.routes.route import Role
from wjoin.planner.plan.block_columns import code_name, column_name, time_name
from wjoin.planner.plan.physical import PhysicalPlan

ROW_OF_SPARK = 4 + 8 + 8 * len(messages.SCHEMA)
"""Bytes of a message around its block: its length, one word for nulls and one for each column (UnsafeRow)."""

COMPRESSED_AT_ONCE = 32 * 1024
"""Bytes that Spark's shuffle compresses at once (spark.io.compression.lz4.blockSize), where it does."""


@dataclass(frozen=True)
class Sent:
    """What was sent to workers: blocks, rows (a row to two workers twice), bytes of values, and all bytes.

    ``packed``: all bytes as LZ4 makes them, of what one task has for one worker at once.
    """

    blocks: int = 0
    rows: int = 0
    values: int = 0
    size: int = 0
    packed: int = 0

    def __add__(self, other: "Sent") -> "Sent":
        return Sent(
            *(own + more for own, more in zip(vars(self).values(), vars(other).values(), strict=True))
        )

    @property
    def headers(self) -> float:
        """The share of the bytes that are no values."""
        return 1 - self.values / self.size

    @property
    def rows_of_block(self) -> float:
        """The rows of a block on average."""
        return self.rows / self.blocks


def sent(plan: PhysicalPlan, rows: Mapping[int, pa.RecordBatch], workers: int, tasks: int) -> Sent:
    """Return what brings a micro-batch's rows of each stream to the workers of a plan with one stage.

    Each stream comes from so many ``tasks``, with equal shares of its rows.
    """
    (stage,) = plan.stages
    total = Sent()
    for place, source in enumerate(stage.inputs):
        router = Router.to(plan, stage, place, tuple(range(workers)))
        for share in _shares(rows[source.members[0]].select(source.columns), tasks):
            total += sent_by_task(router, share)
    return total


def sent_by_task(router: Router, rows: pa.RecordBatch) -> Sent:
    """Return what one task sends of its rows."""
    return sum((in_blocks(share, None) for _, share, _ in router.parts(rows, whole=True)), Sent())


def rows_of(columns: int, rows: int) -> pa.RecordBatch:
    """Return rows as they travel: an event time, a key code, and whole numbers in the other columns."""
    random = np.random.default_rng(1)
    drawn = {time_name(0): np.sort(random.integers(0, 10_000_000, rows))}
    drawn[code_name(0, 0)] = random.integers(0, 10_000, rows)
    drawn |= {column_name(0, place): random.integers(0, 1000, rows) for place in range(columns - 2)}
    return pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in drawn.items()})


def in_blocks(rows: pa.RecordBatch, most: int | None) -> Sent:
    """Return what one task sends to one worker, in blocks of so many rows; None for those of wjoin's size."""
    pieces = [rows] if most is None else cut(rows, most, rows.nbytes + 1)
    sent_ = [each for piece in pieces for each in messages.blocks(0, 0, Role.BOTH, piece)]
    blocks = [_bytes(each) for each in sent_]
    size = sum(len(block) + ROW_OF_SPARK for block in blocks)
    return Sent(len(blocks), rows.num_rows, value_bytes(rows), size, _packed(blocks))


def _bytes(message: messages.Message) -> bytes:
    block = message["block"]
    if not isinstance(block, bytes):
        raise TypeError("a message without a block")
    return block


def _packed(blocks: Sequence[bytes]) -> int:
    """Return the bytes of messages as Spark's shuffle writes them."""
    around = bytes(ROW_OF_SPARK)
    data = b"".join(around + block for block in blocks)
    pieces = (data[begin : begin + COMPRESSED_AT_ONCE] for begin in range(0, len(data), COMPRESSED_AT_ONCE))
    return sum(len(pa.compress(piece, "lz4_raw", asbytes=True)) for piece in pieces)


def _shares(rows: pa.RecordBatch, tasks: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of each task that has any."""
    edges = [rows.num_rows * task // tasks for task in range(tasks + 1)]
    for begin, end in pairwise(edges):
        if end > begin:
            yield rows.slice(begin, end - begin)
