"""What is counted on the way of rows: the counters that there are, and reports of them.

A counter is added here, and counted where it happens; it then travels with the blocks, and Spark's progress
has it (``executor.spark.observe``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from wjoin.parts.kernels.runs import int64_view

NOTHING_SEEN = -(1 << 63)
"""The greatest event time of a stream that has sent no row with one; nulls would turn to floats.

A clock that is not told is the same.
"""

NOTHING_FIRST = (1 << 63) - 1
"""The least event time of such a stream."""


class Fold(Enum):
    """How values of a counter are put together: of several messages, and of all workers."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"


class CounterScope(Enum):
    """What a counter is of: a stage; a stream in a stage; a stream where it enters, for its statistics."""

    STAGE = "stage"
    STREAM = "stream"
    STATISTICS = "statistics"


@dataclass(frozen=True)
class Counter:
    """A number that is counted under a name."""

    name: str
    scope: CounterScope
    fold: Fold = Fold.SUM

    @property
    def nothing(self) -> int:
        """Its value where nothing was counted."""
        return {Fold.SUM: 0, Fold.MAX: NOTHING_SEEN, Fold.MIN: NOTHING_FIRST}[self.fold]

    def folded(self, first: int, second: int) -> int:
        """Return two values put together."""
        if self.fold is Fold.SUM:
            return first + second
        return max(first, second) if self.fold is Fold.MAX else min(first, second)


COUNTERS = (
    # Combinations that were made, and comparisons of a tuple with a row.
    Counter("matches", CounterScope.STAGE),
    Counter("comparisons", CounterScope.STAGE),
    # Where rows are shed, the sum over keys (or rows) of the square of the results that each has part in.
    Counter("squares", CounterScope.STAGE),
    # In an approximate join, rows that have visited another node, those of them that have gone there to
    # measure only, and the bytes of what nodes tell of their windows; in millionths the share of the results
    # that is lost, with the least and the most it may be.
    Counter("visits", CounterScope.STAGE),
    Counter("trials", CounterScope.STAGE),
    Counter("summary_bytes", CounterScope.STAGE),
    # Which node tells it, and the rows that live there.
    Counter("node", CounterScope.STAGE, Fold.MAX),
    Counter("homed", CounterScope.STAGE),
    Counter("missing", CounterScope.STAGE, Fold.MAX),
    Counter("missing_least", CounterScope.STAGE, Fold.MAX),
    Counter("missing_most", CounterScope.STAGE, Fold.MAX),
    # Microseconds that tasks wait for what is sent to the stage, use the state, join, make rows of results.
    Counter("gathering", CounterScope.STAGE),
    Counter("keeping", CounterScope.STAGE),
    Counter("joining", CounterScope.STAGE),
    Counter("making", CounterScope.STAGE),
    # Rows read, rows of them without an event time, rows that were late; rows and bytes of state.
    Counter("rows", CounterScope.STREAM),
    Counter("undated", CounterScope.STREAM),
    Counter("late", CounterScope.STREAM),
    # Rows too far ahead; the greatest event time of those, or of the state where that is too far ahead.
    Counter("ahead", CounterScope.STREAM),
    Counter("furthest", CounterScope.STREAM, Fold.MAX),
    # Rows that were shed; in millionths the utilisation that decided it, the share of the results that it
    # loses, and the greatest such share among the micro-batches whose rows may still be met.
    Counter("shed", CounterScope.STREAM),
    Counter("utilization", CounterScope.STREAM, Fold.MAX),
    Counter("lost", CounterScope.STREAM, Fold.MAX),
    Counter("lost_most", CounterScope.STREAM, Fold.MAX),
    Counter("kept", CounterScope.STREAM),
    Counter("kept_bytes", CounterScope.STREAM),
    # The least event time of the rows of state.
    Counter("oldest", CounterScope.STREAM, Fold.MIN),
    # The greatest event time.
    Counter("seen", CounterScope.STREAM, Fold.MAX),
    # The least event time of the rows that windows of rows still have, where none in time ends that.
    Counter("kept_from", CounterScope.STREAM, Fold.MIN),
    # The clock of the micro-batch, and since when a stream is silent by it, in microseconds.
    Counter("clock", CounterScope.STREAM, Fold.MAX),
    Counter("silent", CounterScope.STREAM, Fold.MAX),
    # The declared disorder.
    Counter("delay", CounterScope.STREAM, Fold.MAX),
    # Microseconds that tasks wait for rows, which are read and sent to Python, and that they pack them.
    Counter("arriving", CounterScope.STREAM),
    Counter("packing", CounterScope.STREAM),
    # Rows that the join gets, and the bytes of their columns.
    Counter("passed", CounterScope.STATISTICS),
    Counter("size", CounterScope.STATISTICS),
    # Of some new rows: how many were counted, how many different keys they have, how many the heaviest.
    Counter("counted", CounterScope.STATISTICS),
    Counter("distinct", CounterScope.STATISTICS),
    Counter("heaviest", CounterScope.STATISTICS, Fold.MAX),
    # The greatest event time before the micro-batch, and the least one in it.
    Counter("before", CounterScope.STATISTICS, Fold.MAX),
    Counter("earliest", CounterScope.STATISTICS, Fold.MIN),
)

PLACES = {each.name: place for place, each in enumerate(COUNTERS)}
"""The place of each counter in the values of a report."""


_NOTHING = [each.nothing for each in COUNTERS]


@dataclass
class Report:
    """The values of all counters, in their order."""

    values: list[int] = field(default_factory=_NOTHING.copy)

    def __getitem__(self, name: str) -> int:
        return self.values[PLACES[name]]

    def add(self, name: str, value: int) -> None:
        """Count."""
        place = PLACES[name]
        self.values[place] = COUNTERS[place].folded(self.values[place], value)

    def merge(self, values: Sequence[int]) -> None:
        """Take over what another report has counted."""
        self.values = [
            each.folded(own, int(other))
            for each, own, other in zip(COUNTERS, self.values, values, strict=True)
        ]

    def note(self, times: pa.Array) -> None:
        """Count rows of a stream by their event times (int64).

        Nothing is said of the order of the rows: Spark may read many files as one partition, in an order
        of its own.
        """
        self.add("rows", len(times))
        self.add("undated", times.null_count)
        values = int64_view(times.drop_null())
        if len(values):
            self.add("earliest", int(values.min()))
            self.add("seen", int(values.max()))
