"""A warm Python of which those are forked that Spark starts on the driver.

Spark starts a Python of its own at each start of a query, to learn the schema of its state, and for each
streaming source in Python. It waits ten seconds for it to call back: on a busy machine, not long enough.
"""

import contextlib
import itertools
import os
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from wjoin.executor.spark import workers
from wjoin.executor.spark.sockets import socket_folder

FOLDER = Path(workers.__file__).parent
"""The folder that Python processes of Spark find on their path: there is what asks for a fork."""

VARIABLE = "WJOIN_WARM"
"""The variable of their environment that names the socket of the warm Python."""

ALONE = ("pyspark.worker", "pyspark.sql.streaming.stateful_processor_api_client")
"""What is imported by the Python that Spark starts at each start of a query."""

_numbers = itertools.count()
_lock = threading.RLock()
_of_contexts: "WeakKeyDictionary[Any, Warm]" = WeakKeyDictionary()


@dataclass(frozen=True)
class Warm:
    """A warm Python that has been started, and its socket."""

    process: "subprocess.Popen[bytes]"
    path: Path

    @property
    def lives(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def end(self) -> None:
        """End it, with all that has been forked of it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        self.path.unlink(missing_ok=True)


def start(python: str, modules: Sequence[str], environment: Mapping[str, str]) -> Warm | None:
    """Start a Python that imports some modules; return at once. None where the system has no such sockets.

    ``environment`` is what its own has beside that of this process. It ends with this process.
    """
    folder = socket_folder()
    if folder is None or not (FOLDER / "wjoin_warm.py").is_file():
        return None
    path = folder / f"warm-{next(_numbers)}"
    paths = (environment.get("PYTHONPATH"), os.environ.get("PYTHONPATH"), str(FOLDER))
    own = {**os.environ, **environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    # Whoever asks before it is ready waits.
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        # -P: not what lies in the folder of this process; its forks import from theirs where Spark's would.
        command = [python, "-P", "-m", "wjoin_warm", str(listener.fileno()), *modules]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                env=own,
                pass_fds=[listener.fileno()],
            )
        except OSError:
            # Spark, too, will not find this Python, and say so.
            path.unlink()
            return None
    return Warm(process, path)


def end_with(context: Any, warm: Warm) -> None:
    """Have a SparkContext end a warm Python when it stops."""
    stop = context.stop

    def stop_both() -> None:
        stop()
        warm.end()

    context.stop = stop_both


@contextlib.contextmanager
def served(spark: SparkSession) -> Iterator[None]:
    """Have the Pythons that Spark starts on the driver for functions made inside be forked of a warm one.

    Without effect under Spark Connect, whose server gives functions their environment.
    """
    context: Any = getattr(spark, "_sc", None)
    if context is None or VARIABLE in context.environment:
        yield
        return
    with _lock:
        warm = _warm_of(context)
        environment: dict[str, str] = context.environment
        given = dict(environment)
        if warm is not None:
            path = filter(None, (given.get("PYTHONPATH"), str(FOLDER)))
            environment.update({VARIABLE: str(warm.path), "PYTHONPATH": os.pathsep.join(path)})
        try:
            yield
        finally:
            environment.clear()
            environment.update(given)


def _warm_of(context: Any) -> Warm | None:
    """Return the warm Python of a SparkContext that has been started elsewhere, which goes with it."""
    known = _of_contexts.get(context)
    if known is not None and known.lives:
        return known
    warm = start(context.pythonExec, ALONE, context.environment)
    if warm is not None:
        _of_contexts[context] = warm
        end_with(context, warm)
    return warm
