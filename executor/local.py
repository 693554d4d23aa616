"""All stages of a plan on one worker in this process: for calibration, benchmarks and tests."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from wjoin.executor.kernels.runs import int64_view
from wjoin.executor.layout import time_name
from wjoin.executor.state.manifest import Manifest
from wjoin.executor.step import Arrivals, Counts, StageLogic
from wjoin.planner.physical import PhysicalPlan


@dataclass
class MemoryStore:
    """Slices in a dictionary."""

    slices: dict[str, pa.RecordBatch] = field(default_factory=dict)

    def load(self, name: str) -> pa.RecordBatch:
        """Return the rows of a slice."""
        return self.slices[name]

    def save(self, name: str, batch: pa.RecordBatch) -> int:
        """Keep a slice; return its size in bytes."""
        self.slices[name] = batch
        return int(batch.nbytes)

    def remove(self, name: str) -> None:
        """Forget a slice."""
        del self.slices[name]


class LocalWorker:
    """Runs micro-batches one after the other and keeps the state between them."""

    def __init__(self, plan: PhysicalPlan) -> None:
        self._plan = plan
        self._stages = [StageLogic(plan, number) for number in range(len(plan.stages))]
        self._stores = [MemoryStore() for _ in plan.stages]
        self._manifests = [Manifest.fresh("local", 1, len(stage.inputs)) for stage in plan.stages]

    @property
    def state_rows(self) -> int:
        """The rows that are kept now."""
        groups = (group for manifest in self._manifests for group in manifest.slices)
        return sum(piece.rows for group in groups for piece in group)

    def run(self, blocks: Mapping[int, pa.RecordBatch], counts: Counts) -> list[pa.RecordBatch]:
        """Join the new rows of each stream; return the results of the last stage."""
        seen = {
            stream: int(int64_view(block.column(time_name(stream))).max())
            for stream, block in blocks.items()
            if block.num_rows
        }
        results: list[list[pa.RecordBatch]] = []
        for number, stage in enumerate(self._plan.stages):
            arrivals = Arrivals([[] for _ in stage.inputs])
            arrivals.seen = {stream: time for stream, time in seen.items() if stream in stage.members}
            for place, each in enumerate(stage.inputs):
                if each.stage is not None:
                    arrivals.blocks[place] = results[each.stage]
                elif each.members[0] in seen:
                    arrivals.blocks[place] = [blocks[each.members[0]]]
            results.append(self._stage(number, arrivals, counts))
        return results[-1]

    def _stage(self, number: int, arrivals: Arrivals, counts: Counts) -> list[pa.RecordBatch]:
        found = []
        logic, store = self._stages[number], self._stores[number]
        for each in logic.stream(self._manifests[number], store, arrivals, counts):
            if isinstance(each, Manifest):
                self._manifests[number] = each
            else:
                found.append(each)
        return found
