"""The state of a worker while a stage uses it, and the time that this takes."""

from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from wjoin.executor.spark.watch import Watch
from wjoin.executor.state.slices import Slice, SliceStore, Stored
from wjoin.executor.state.writing import Cutting


class WorkerState(SliceStore, Protocol):
    """The state of a worker: its slices, the manifest of the micro-batch before, and the next one."""

    def manifest(self) -> bytes | None:
        """Return the manifest, None before the first one."""
        ...

    def commit(self, manifest: bytes) -> None:
        """Write the next manifest, once all its slices are written."""
        ...


@dataclass(frozen=True)
class TimedSlices:
    """The slices of a store, whose time is added up."""

    slices: SliceStore
    watch: Watch

    def load(self, stored: Slice) -> pa.RecordBatch:
        """Return the rows of a slice."""
        with self.watch.running():
            return self.slices.load(stored)

    def save(self, name: str, batch: pa.RecordBatch, cutting: Cutting) -> Stored:
        """Write the rows of a slice."""
        with self.watch.running():
            return self.slices.save(name, batch, cutting)

    def remove(self, stored: Slice) -> None:
        """Remove a slice."""
        with self.watch.running():
            self.slices.remove(stored)


@dataclass(frozen=True)
class Watches:
    """The time in which a task has waited for messages, and used the state."""

    gathering: Watch = field(default_factory=Watch)
    keeping: Watch = field(default_factory=Watch)
