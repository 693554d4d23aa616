"""A stage as Spark's stateful processor; read without anything that joins, so that queries start sooner."""

import pickle
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from pyspark import cloudpickle
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import MapState

# Spark parses a schema that is text in every task, with a round trip to the JVM.
_NAMES = StructType([StructField("name", StringType())])
_DATA = StructType([StructField("data", BinaryType())])


class Joining(Protocol):
    """What a stage does with the new blocks of a worker: ``Operator``."""

    def join(
        self, worker: int, state: "MapState", frames: Iterator["pd.DataFrame"]
    ) -> Iterator["pd.DataFrame"]:
        """Join them with the worker's state and with each other."""
        ...


class JoinProcessor(StatefulProcessor):
    """Runs one stage's step on Spark's state: a manifest and the slices that it lists.

    When a query starts, Spark has a process of its own read the processor and call ``init``, to learn the
    state's schema, while all else waits. There the operator, which needs pandas and pyarrow, is not read.
    """

    def __init__(self, operator: Joining) -> None:
        # A predicate of the user's may be a function that no module has.
        self._operator = cloudpickle.dumps(operator)  # type: ignore[no-untyped-call]  # has no types

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state. One variable: every further one costs round trips to the JVM in every task."""
        self._state = handle.getMapState("state", _NAMES, _DATA)

    def handleInputRows(  # noqa: N802 (Spark's name)
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: N803 (Spark's name)
    ) -> Iterator["pd.DataFrame"]:
        """Join the new blocks of one worker with its state and with each other."""
        operator: Joining = pickle.loads(self._operator)
        return operator.join(int(key[0]), self._state, rows)

    def close(self) -> None:
        """Nothing is held between micro-batches."""
