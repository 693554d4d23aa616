"""The process of the embedded Spark: the file of its log, and the folder of its relative paths."""

import atexit
import contextlib
import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

TERMINAL = "stderr"
"""The value of wjoin.log with which the log is written to standard error."""

_ERR = 2
_paths: list[Path] = []
_folders: list[Path] = []
_SCHEME = re.compile(r"[A-Za-z][\w+.-]*:")


def log_path() -> Path | None:
    """Return the file into which the Spark of this process writes its log, None where it has none."""
    return _paths[0] if _paths else None


def resolved(path: str) -> str:
    """Return a path as the embedded Spark finds it; as it stands where Spark was started elsewhere."""
    if not path or not _folders or _SCHEME.match(path):
        return path
    return str(_folders[0] / path)


@contextlib.contextmanager
def logged(wanted: str | None) -> Iterator[None]:
    """Let a JVM that is started inside write to a file what it would write to standard error.

    A process has one JVM, also after its Spark has been stopped: the first file holds for all. Without
    a ``wanted`` file it is a temporary one, which is removed when this process ends. What a JVM wrote
    that could not be started goes to standard error after all.
    """
    _folders.append(Path.cwd())
    if wanted == TERMINAL:
        yield
        return
    # PySpark logs as JSON, with the plan, whatever it raises as well.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    if _paths:
        yield
        return
    path = _temporary() if wanted is None else Path(wanted).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a") as log:
        try:
            sys.stderr.flush()
            with redirected([_ERR], log.fileno()):
                yield
        except Exception:  # whatever it is, what the JVM wrote tells why; it is raised again
            sys.stderr.write(path.read_text(errors="replace"))
            raise
    _paths.append(path)


def _temporary() -> Path:
    number, name = tempfile.mkstemp(prefix="wjoin-spark-", suffix=".log")
    os.close(number)
    atexit.register(Path(name).unlink, missing_ok=True)
    return Path(name)


@contextlib.contextmanager
def redirected(descriptors: Sequence[int], to: int) -> Iterator[None]:
    """Give processes that are started inside another file for some of their file descriptors."""
    kept = [os.dup(each) for each in descriptors]
    try:
        for each in descriptors:
            os.dup2(to, each)
        yield
    finally:
        for before, each in zip(kept, descriptors, strict=True):
            os.dup2(before, each)
            os.close(before)
