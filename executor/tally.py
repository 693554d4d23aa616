"""What the rows of a stream tell of it on their way to the join: counts, sizes and event times."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from wjoin.executor.kernels.runs import int64_view

NOTHING_SEEN = -(1 << 63)
"""The greatest event time of a stream that has sent no row with one; nulls would turn to floats."""

NOTHING_FIRST = (1 << 63) - 1
"""The least event time of such a stream."""


@dataclass
class Tally:
    """Counts of the rows of one stream, named as in the rows that travel between Spark's stages.

    ``rows`` read, ``undated`` of them without event time, ``passed`` to the join with ``size``
    bytes of columns; the greatest (``seen``) and the least event time (``earliest``). Nothing is said of
    the order of the rows: Spark may read many files as one partition, in an order of its own.
    """

    seen: int = NOTHING_SEEN
    rows: int = 0
    undated: int = 0
    earliest: int = NOTHING_FIRST
    passed: int = 0
    size: int = 0

    def note(self, times: pa.Array) -> None:
        """Count rows by their event times (int64)."""
        self.rows += len(times)
        self.undated += times.null_count
        values = int64_view(times.drop_null())
        if not len(values):
            return
        self.earliest = min(self.earliest, int(values.min()))
        self.seen = max(self.seen, int(values.max()))

    def add(self, row: Mapping[Any, Any]) -> None:
        """Take over what a heartbeat tells."""
        self.seen = max(self.seen, row["seen"])
        self.earliest = min(self.earliest, row["earliest"])
        self.rows += row["rows"]
        self.undated += row["undated"]
        self.passed += row["passed"]
        self.size += row["size"]
