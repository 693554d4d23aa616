"""One sequence of stages that a W-join could run by."""

from dataclasses import dataclass

from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.shape.decompose import Decomposition
from wjoin.planner.shape.join_keys import KeyPart


@dataclass(frozen=True)
class LaterCondition:
    """A condition that Spark evaluates on the joined rows.

    ``unread``: what keeps the join from testing it before, empty where the join does.
    """

    condition: str
    unread: str


@dataclass(frozen=True)
class Shape:
    """A sequence of stages: its plan, whose parts are still to be chosen, and what it leaves to Spark.

    ``keys`` are, for each stream, the parts of the key that each of its codes stands for.
    ``hops``: whether hops stand in the place of the one stage of the draft.
    """

    draft: Decomposition
    physical: PhysicalPlan
    residual: tuple[LaterCondition, ...]
    keys: tuple[tuple[tuple[KeyPart, ...], ...], ...]
    hops: bool = False

    @property
    def classes(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of the equality classes of each stage's key."""
        if self.hops:
            return (self.draft.stages[-1].classes,) * len(self.physical.stages)
        return tuple(stage.classes for stage in self.draft.stages)
