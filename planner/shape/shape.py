"""One sequence of stages that a W-join could run by."""

from collections.abc import Mapping
from dataclasses import dataclass

from wjoin.planner.catalog import Estimate
from wjoin.planner.plan.physical import Band, PhysicalPlan
from wjoin.planner.shape.decompose import Decomposition
from wjoin.planner.shape.join_keys import KeyPart
from wjoin.planner.shape.logical import LaterCondition


@dataclass(frozen=True)
class Shape:
    """A sequence of stages: its plan, whose parts are still to be chosen, and what it leaves to Spark.

    ``keys`` are, for each stream, the parts of the key that each of its codes stands for, ``shares``
    the shares of pairs that the bands of the stages keep. ``hops``: whether hops stand in the place of the
    one stage of the draft.
    """

    draft: Decomposition
    physical: PhysicalPlan
    residual: tuple[LaterCondition, ...]
    keys: tuple[tuple[tuple[KeyPart, ...], ...], ...]
    shares: Mapping[Band, Estimate]
    hops: bool = False

    @property
    def classes(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of the equality classes of each stage's key."""
        if self.hops:
            return ((),) * len(self.physical.stages)
        return tuple(stage.classes for stage in self.draft.stages)
