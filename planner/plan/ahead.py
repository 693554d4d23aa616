"""Which event times of a stream lie too far ahead to be true.

One such row would move the stream's watermark past all rows to come, which would be late for good. So
streams drop them: those that no clock shows, and those further ahead of the micro-batch than was declared.
Over tables there is no watermark, and nothing is dropped.
"""

from wjoin.planner.plan.physical import TimeKind

GREATEST_TIMESTAMP = 221_845_392_000_000_000
"""The greatest timestamp that a clock is taken to show, in microseconds: 9000-01-01 00:00:00."""

GREATEST_NUMBER = (1 << 63) - (1 << 60) - 1
"""The greatest integral event time: windows and delays are added to it in 64 bits."""


def greatest_time(kind: TimeKind) -> int:
    """Return the greatest event time that a stream may have without a declared limit.

    >>> greatest_time(TimeKind.TIMESTAMP_NTZ) == GREATEST_TIMESTAMP
    True
    """
    return GREATEST_NUMBER if kind is TimeKind.INTEGRAL else GREATEST_TIMESTAMP


def too_far_ahead(time: str, kind: TimeKind, limit: int | None) -> str:
    """Return in SQL whether an event time lies too far ahead; false for none.

    ``limit`` is how many microseconds after the start of the micro-batch it may be, None where nothing is
    declared. That start is in the log of the checkpoint, so a repeated micro-batch drops the same rows.
    """
    least = GREATEST_TIMESTAMP if limit is None else min(limit, GREATEST_TIMESTAMP)
    if kind is TimeKind.INTEGRAL:
        beyond = f"CAST({time} AS BIGINT) > {GREATEST_NUMBER}"
    elif kind is TimeKind.TIMESTAMP:
        # In microseconds: Spark adds the days of an interval in local time.
        greatest = str(GREATEST_TIMESTAMP)
        if limit is not None:
            greatest = f"least({greatest}, unix_micros(current_timestamp()) + {least})"
        beyond = f"unix_micros({time}) > {greatest}"
    else:
        seconds, rest = divmod(least, 1_000_000)
        beyond = f"{time} > TIMESTAMP_NTZ '9000-01-01 00:00:00'"
        if limit is not None:
            beyond += f" OR {time} > localtimestamp() + INTERVAL '{seconds}.{rest:06d}' SECOND"
    return f"coalesce({beyond}, false)"
