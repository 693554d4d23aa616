"""Watermarks of Spark's own, for the operators of Spark that read streams."""

from pyspark.sql import Column
from pyspark.sql import functions as F

WATERMARK = "spark.watermarkDelayMs"
"""The metadata by which Spark knows a column with a watermark."""

_NO_PARTITION = (1 << 31) - 1
"""A number that no partition has."""

WATERMARKED = {WATERMARK: 0}
"""Spark takes no second ``withWatermark`` above the first; a column may say that it keeps to that one."""


def unmoved(condition: str) -> Column:
    """Return a condition that Spark checks where it is written, and lets no later one pass."""
    # It would pull a deterministic filter, or a term of one, below a watermark.
    return F.expr(f"spark_partition_id() >= IF({condition}, 0, {_NO_PARTITION})")


def watermark_delay(delay: int) -> str:
    """Return a delay in microseconds as Spark's watermark takes it."""
    return f"{_milliseconds(delay)} milliseconds"


def watermarked(delay: int) -> dict[str, int]:
    """Return the metadata of a column that goes by a watermark below it, with a delay in microseconds."""
    return {WATERMARK: _milliseconds(delay)}


def _milliseconds(delay: int) -> int:
    # Spark's watermark is in milliseconds, and a row that is no newer than it is late; ours must be older.
    return delay // 1000 + 1
