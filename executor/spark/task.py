"""A phase of wjoin inside a task of one of Spark's Python workers."""

import functools
import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from wjoin.executor.spark.clock import clocked

Given = TypeVar("Given")
Made = TypeVar("Made")

_KEPT_BYTES = 3 << 26
"""Memory that a worker may keep for its next task, its modules' included."""


def run_phase(
    phase: str, work: Callable[[Iterator[Given]], Iterator[Made]], given: Iterator[Given]
) -> Iterator[Made]:
    """Yield what ``work(given)`` does, clocked where that is asked for."""
    _freeze_loaded()
    yield from clocked(phase, work, given)
    _give_back()


@functools.cache
def _freeze_loaded() -> None:
    """Exempt the modules that this process has loaded from garbage collection, once.

    Spark's worker collects all generations after every task. With NumPy, pandas and pyarrow
    loaded, that took as long as the phases themselves.
    """
    gc.collect()
    gc.freeze()


def _give_back() -> None:
    """Give the system what Arrow keeps after a large task: workers wait, in number and for long."""
    try:
        _, resident, shared, *_ = Path("/proc/self/statm").read_text().split()
    except OSError:
        return  # Not Linux.
    if (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE") > _KEPT_BYTES:
        pa.default_memory_pool().release_unused()
