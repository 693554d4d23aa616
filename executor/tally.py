"""What the rows of a stream tell of it on their way to the join: counts, sizes and event times."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
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
    bytes of columns; the greatest (``seen``) and the least event time (``earliest``), and the
    most that a row was ``behind`` one that came before it.
    """

    seen: int = NOTHING_SEEN
    rows: int = 0
    undated: int = 0
    earliest: int = NOTHING_FIRST
    behind: int = 0
    passed: int = 0
    size: int = 0

    def note(self, times: pa.Array) -> None:
        """Count rows by their event times (int64), in the order in which they came."""
        self.rows += len(times)
        self.undated += times.null_count
        values = int64_view(times.drop_null())
        if not len(values):
            return
        latest = np.maximum.accumulate(values)
        earliest = int(values.min())
        before = 0 if self.seen == NOTHING_SEEN else self.seen - earliest
        self.behind = max(self.behind, before, int((latest - values).max()))
        self.earliest = min(self.earliest, earliest)
        self.seen = max(self.seen, int(latest[-1]))

    def add(self, row: Mapping[Any, Any]) -> None:
        """Take over what a heartbeat tells."""
        self.seen = max(self.seen, row["seen"])
        self.earliest = min(self.earliest, row["earliest"])
        self.behind = max(self.behind, row["behind"])
        self.rows += row["rows"]
        self.undated += row["undated"]
        self.passed += row["passed"]
        self.size += row["size"]
