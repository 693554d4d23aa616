"""A statement set that runs: what is needed to change it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class RunningSet:
    """The statements of a set that runs, as they were written, and how it was started.

    ``once``: it ends when its sources are read; ``every``: how often micro-batches start. ``shut`` lets the
    micro-batch at work be written, and none after it: those wait for the query to be stopped.
    """

    name: str
    inserts: tuple[str, ...]
    params: Mapping[str, object]
    once: bool
    every: str | None
    shut: Callable[[], None]
