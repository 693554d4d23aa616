"""A statement set that runs: what is needed to change it, and a gate between its micro-batches."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from wjoin.grammar.errors import WJoinError

Write = Callable[[DataFrame, int], None]
"""What writes a micro-batch, which has a number."""

_STOPPING_SECONDS = 60.0
_LOOK_SECONDS = 0.02


class Gate:
    """Lets a micro-batch be written, and is shut between two: then none is written any more."""

    def __init__(self) -> None:
        self._writing = threading.Lock()
        self._stopping: StreamingQuery | None = None

    def guarded(self, write: Write) -> Write:
        """Return what writes a micro-batch while the gate is open, and raises WJoinError WJ704 else."""

        def guarded(made: DataFrame, number: int) -> None:
            with self._writing:
                stopping = self._stopping
                if stopping is None:
                    write(made, number)
                    return
            # Spark is told once it is stopping, and so does not take it for a failure of the sinks.
            end = time.monotonic() + _STOPPING_SECONDS
            while stopping.isActive and time.monotonic() < end:
                time.sleep(_LOOK_SECONDS)
            raise WJoinError("WJ704", f"the statement set is changed before micro-batch {number}")

        return guarded

    def shut(self, query: StreamingQuery) -> None:
        """Shut the gate for a query that is about to be stopped, once the micro-batch at work is written."""
        with self._writing:
            self._stopping = query


@dataclass(frozen=True)
class RunningSet:
    """The statements of a set that runs, as they were written, and how it was started.

    ``once``: it ends when its sources are read; ``every``: how often micro-batches start.
    """

    name: str
    inserts: tuple[str, ...]
    params: Mapping[str, object]
    once: bool
    every: str | None
    gate: Gate = field(default_factory=Gate)
