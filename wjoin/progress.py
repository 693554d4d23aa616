"""What a running query's W-joins did in a micro-batch: ``read`` takes the progress that Spark reports."""

from wjoin.measured.progress import Progress, read

__all__ = ["Progress", "read"]
