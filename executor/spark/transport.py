"""The rows that carry blocks between Spark stages."""

import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from wjoin.executor.tally import NOTHING_FIRST, NOTHING_SEEN

SCHEMA = pa.schema(
    [("worker", pa.int32()), ("input", pa.int32()), ("stream", pa.int32())]
    + [(name, pa.int64()) for name in ("seen", "rows", "undated", "late", "kept", "kept_bytes")]
    + [("matches", pa.int64()), ("comparisons", pa.int64())]
    + [(name, pa.int64()) for name in ("earliest", "passed", "size")]
    + [(name, pa.int64()) for name in ("before", "counted", "distinct", "heaviest")]
    + [("block", pa.binary())]
)

TRANSPORT = StructType(
    [StructField(name, IntegerType()) for name in ("worker", "input", "stream")]
    + [StructField(name, LongType()) for name in SCHEMA.names[3:-1]]
    + [StructField("block", BinaryType())]
)
"""A row with an input carries a block of tuples for it to one worker; a row without one is a heartbeat.

A heartbeat tells the greatest event time of a stream (``seen``), and what was counted on the
way: rows sent, rows without event time, late rows, rows and bytes of state, matches, and
comparisons of a tuple with a row. For the statistics of the stream it tells the least event time
(``earliest``), the rows that the join gets and the bytes of their columns (``passed``, ``size``), the
greatest event time before the micro-batch (``before``), and of some of its new rows how many were
``counted``, how many ``distinct`` keys they have and how many have the ``heaviest`` of them. With a block
it brings the times of rows of the stream that cannot join, so that late ones are counted.
"""

BLOCK_ROWS = 1 << 18
"""Rows of one block at the most."""

BLOCK_BYTES = 1 << 24
"""About the most bytes of one block: far below the limit of a binary column."""


def transport_row(
    worker: int,
    number: int = -1,
    *,
    stream: int = -1,
    seen: int = NOTHING_SEEN,
    rows: int = 0,
    undated: int = 0,
    late: int = 0,
    kept: int = 0,
    kept_bytes: int = 0,
    matches: int = 0,
    comparisons: int = 0,
    earliest: int = NOTHING_FIRST,
    passed: int = 0,
    size: int = 0,
    before: int = NOTHING_SEEN,
    counted: int = 0,
    distinct: int = 0,
    heaviest: int = 0,
    block: bytes | None = None,
) -> dict[str, object]:
    """Return one transport row as a mapping by column name."""
    return {
        "worker": worker,
        "input": number,
        "stream": stream,
        "seen": seen,
        "rows": rows,
        "undated": undated,
        "late": late,
        "kept": kept,
        "kept_bytes": kept_bytes,
        "matches": matches,
        "comparisons": comparisons,
        "earliest": earliest,
        "passed": passed,
        "size": size,
        "before": before,
        "counted": counted,
        "distinct": distinct,
        "heaviest": heaviest,
        "block": block,
    }
