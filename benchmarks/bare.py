"""Spark's own engine in the shape of a join of wjoin: the same stages and no work in them."""

from collections.abc import Iterator
from functools import reduce
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StructType


def bare_stages(streams: list[DataFrame]) -> DataFrame:
    """Return no rows, by the shortest program that goes the way of a join of one stage on two partitions.

    Python gets all rows of every stream and makes one message for each of two workers; a worker reads one
    value of Spark's state and writes one; Python gets what the workers say. No engine that joins in Python
    on Spark's state takes less.
    """
    messages = "worker INT, block BINARY"
    # Spark parses a schema that is text in every task.
    names, data = StructType().add("name", "string"), StructType().add("data", "binary")

    # Defined here, so that Spark sends them to its workers whole.
    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            # As many bytes as there are, half of them to each worker; which ones makes no difference.
            block = bytes(batch.nbytes // 2)
            yield pa.RecordBatch.from_pydict(
                {
                    "worker": pa.array([0, 1], pa.int32()),
                    "block": pa.array([block] * 2, pa.binary()),
                }
            )

    class Worker(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            self._state = handle.getMapState("state", names, data)

        def handleInputRows(  # noqa: N802 (Spark's name)
            self,
            key: Any,
            rows: Iterator[pd.DataFrame],
            timerValues: Any,  # noqa: N803 (Spark's name)
        ) -> Iterator[pd.DataFrame]:
            read = sum(len(frame) for frame in rows)
            before = self._state.getValue(("rows",))
            total = read + (0 if before is None else int(before[0]))
            self._state.updateValue(("rows",), (str(total).encode(),))
            yield pd.DataFrame({"worker": [key[0]], "block": [b""]})

        def close(self) -> None:
            pass

    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.slice(0, 0)

    packed = (rows.mapInArrow(pack, messages) for rows in streams)
    grouped = reduce(DataFrame.union, packed).groupBy("worker")
    worked = grouped.transformWithStateInPandas(Worker(), messages, "append", "none")
    return worked.mapInArrow(unpack, messages)
