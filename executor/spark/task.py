"""A phase of wjoin inside a task of one of Spark's Python workers."""

import functools
import gc
from collections.abc import Callable, Iterator
from typing import TypeVar

from wjoin.executor.spark.clock import clocked

Given = TypeVar("Given")
Made = TypeVar("Made")


def run_phase(
    phase: str, work: Callable[[Iterator[Given]], Iterator[Made]], given: Iterator[Given]
) -> Iterator[Made]:
    """Return ``work(given)``, clocked where that is asked for."""
    _freeze_loaded()
    return clocked(phase, work, given)


@functools.cache
def _freeze_loaded() -> None:
    """Exempt the modules that this process has loaded from garbage collection, once.

    Spark's worker collects all generations after every task. With NumPy, pandas and pyarrow
    loaded, that took as long as the phases themselves.
    """
    gc.collect()
    gc.freeze()
