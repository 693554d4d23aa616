"""Event times that no clock shows: rows with them move no window, and are in no result.

Queries drop such rows (wjoin.planner.plan.ahead, which has the same two numbers).
"""

import pyarrow as pa

GREATEST_TIMESTAMP = 221_845_392_000_000_000
"""The greatest timestamp that a clock is taken to show, in microseconds: 9000-01-01 00:00:00."""

GREATEST_NUMBER = (1 << 63) - (1 << 60) - 1
"""The greatest integral event time."""


def greatest_time(type: pa.DataType) -> int:
    """Return the greatest event time of a column of a type that counts.

    >>> greatest_time(pa.timestamp("us", "UTC")) == GREATEST_TIMESTAMP
    True
    """
    return GREATEST_TIMESTAMP if pa.types.is_timestamp(type) else GREATEST_NUMBER
