"""Blocks of columns: how the rows that a join reads come to Python where the rule of java/ is in force."""

from collections.abc import Iterator

import pyarrow as pa

COLUMN = "__wjoin_columns"
"""The one column of batches of blocks; java/wjoin/columns/BlocksExec.java has the same."""


def column_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of columns that are in blocks, without a copy; other batches as they are."""
    for batch in batches:
        if batch.schema.names != [COLUMN]:
            yield batch
            continue
        for block in batch.column(0):
            with pa.ipc.open_stream(block.as_buffer()) as stream:
                yield from stream
