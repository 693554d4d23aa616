"""A Spark whose Java process has ended under the shell: killed, or out of memory."""

import contextlib
import signal
import subprocess
import sys
from typing import Any

from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext

HELP = "leave with .quit, and restart the shell; .log shows the end of Spark's log"


NOT_REACHED = (ConnectionError, EOFError, Py4JNetworkError)
"""What is raised where nobody answers."""

ENDING_SECONDS = 5.0
"""How long a Java process takes at the most to end that answers no more: its sockets go before its memory."""


def gone(seconds: float = 0) -> str | None:
    """Return how the Java process has ended that this process has started, None while it runs.

    It is given some ``seconds`` to end.
    """
    process = getattr(SparkContext._gateway, "proc", None)
    status = None
    if process is not None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = process.wait(seconds)
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
