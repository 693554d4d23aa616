"""A Spark whose Java process has ended under the shell: killed, or out of memory."""

import signal
import sys
from typing import Any

from pyspark import SparkContext

HELP = "leave with .quit, and start the shell anew; .log shows the end of Spark's log"


def gone() -> str | None:
    """Return how the Java process has ended that this process has started, None while it runs."""
    process = getattr(SparkContext._gateway, "proc", None)
    status = None if process is None else process.poll()
    if status is None:
        return None
    how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
    return f"error: Spark's Java process has ended {how}, and all queries with it\nhelp: {HELP}"


def quiet_end() -> None:
    """Have PySpark not print a stack where Java ends while it waits for news of accumulators."""
    context = SparkContext._active_spark_context
    server: Any = None if context is None else context._accumulatorServer
    if server is None:
        return
    told = server.handle_error

    def handle(request: Any, address: Any) -> None:
        if not isinstance(sys.exception(), EOFError | ConnectionError):
            told(request, address)

    server.handle_error = handle
