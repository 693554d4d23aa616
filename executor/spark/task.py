"""A phase of wjoin inside a task of one of Spark's Python workers."""

import ctypes
import functools
import gc
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from io import BufferedReader, BufferedRWPair
from pathlib import Path
from types import FrameType
from typing import ParamSpec, TypeVar

import pyarrow as pa
from pyspark import TaskContext

Given = ParamSpec("Given")
Made = TypeVar("Made")

_KEPT_BYTES = 3 << 26
"""Memory that a worker may keep for its next task, its modules' included."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of settings of glibc's ``mallopt``."""

_HEAP_BYTES, _MAPPED_BYTES = 1 << 26, 1 << 25
"""Free memory that the heap keeps inside a task, and the least array that is mapped on its own."""


def phase(work: Callable[Given, Iterator[Made]]) -> Callable[Given, Iterator[Made]]:
    """Return a function that yields what another does, as a phase inside a task."""

    @functools.wraps(work)
    def run(*given: Given.args, **named: Given.kwargs) -> Iterator[Made]:
        _freeze_loaded()
        _keep_freed()
        yield from work(*given, **named)
        _give_back()

    return run


def unbroken(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows that Spark hands to a task, and make sure that they are all.

    Where a task breaks off (an executor is lost while its blocks are read, a query is stopped), Spark closes
    the connection, and Arrow takes that for the end of the rows if it comes between two batches. Raises
    EOFError.
    """
    yield from batches
    connection = _connection()
    if connection is not None and not connection.peek(1):
        raise EOFError("Spark has broken off the rows of this task")


def _connection() -> BufferedReader | BufferedRWPair | None:
    """Return that by which Spark sends a task its rows, and a mark after them; None where it is not found."""
    frame: FrameType | None = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None and not (frame.f_code.co_name == "main" and "infile" in frame.f_locals):
        frame = frame.f_back
    found = None if frame is None else frame.f_locals["infile"]
    return found if isinstance(found, BufferedReader | BufferedRWPair) else None


def named(
    work: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], name: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that has a name in Spark's plans: by it a rule of java/ knows what reads blocks."""

    def called(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return work(batches)

    called.__name__ = name
    return called


def local_property(name: str) -> str | None:
    """Return a property of the job that a task is of, None where it has none."""
    context = TaskContext.get()
    return None if context is None else context.getLocalProperty(name)


def micro_batch() -> int:
    """Return the number of the micro-batch that a task of a streaming query works for."""
    told = local_property("streaming.sql.batchId")
    if told is None:
        raise RuntimeError("a task of a streaming query runs outside of a micro-batch")
    return int(told)


def partition() -> int:
    """Return the number of the partition that a task works for."""
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("a partition has a task")
    return context.partitionId()


def clock_of(checkpoint: Path, number: int) -> int:
    """Return the clock of a micro-batch in microseconds, as Spark has it in the log of a checkpoint."""
    _, body, *_ = (checkpoint / "offsets" / str(number)).read_text().split("\n")
    return 1000 * int(json.loads(body)["batchTimestampMs"])


@functools.cache
def _freeze_loaded() -> None:
    """Exempt the modules that this process has loaded from garbage collection, once.

    Spark's worker collects all generations after every task. With NumPy, pandas and pyarrow
    loaded, that took as long as the phases themselves.
    """
    gc.collect()
    gc.freeze()


@functools.cache
def _keep_freed() -> None:
    """Have the heap keep what NumPy frees, once.

    As it is, it returns the array that an expression has freed to the system, which hands out the same pages
    for the next one, filled with zeros: twice the price of a function over a thousand numbers a pair.
    """
    glibc = _glibc()
    if glibc is not None:
        glibc.mallopt(_TRIM_THRESHOLD, _HEAP_BYTES)
        glibc.mallopt(_MMAP_THRESHOLD, _MAPPED_BYTES)


@functools.cache
def _glibc() -> ctypes.CDLL | None:
    """Return the C library where it is one with these settings."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None


def _give_back() -> None:
    """Give back what Arrow and the heap keep after a large task: workers wait, in number and for long."""
    try:
        _, resident, shared, *_ = Path("/proc/self/statm").read_text().split()
    except OSError:
        return  # Not Linux.
    if (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE") > _KEPT_BYTES:
        pa.default_memory_pool().release_unused()
        glibc = _glibc()
        if glibc is not None:
            glibc.malloc_trim(0)
