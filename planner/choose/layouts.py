"""Layouts of state: the stages and where their rows lie; which of them a plan over streams may have.

Rows that are held at their site are in no state, so that belongs to it.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from wjoin.parts.routes.registry import ROUTES
from wjoin.parts.routes.route import Placement
from wjoin.planner.bind.written import Written
from wjoin.planner.choose.placements import Placements, plain
from wjoin.planner.plan.physical import Gather, PhysicalPlan, Shipping
from wjoin.planner.shape.decompose import Decomposition

NO_CHECKPOINT = "needs a new checkpoint (other stages or another route), and this statement names none"
OTHER_CHECKPOINT = "its stages or routes differ from the checkpoint's"


@dataclass(frozen=True)
class Layout:
    """How the state of a join of streams is laid out; it is kept beside a checkpoint.

    ``stages``: the sequence of stages as text, the same in every version (``sequence_name``, ``hops_name``);
    ``placements``: where the rows of each lie, None where they are in no slices; ``held``: the aliases of the
    streams whose rows are at their sites.
    """

    stages: str
    placements: tuple[Placement | None, ...] = ()
    held: tuple[str, ...] = ()

    @classmethod
    def of(cls, stages: str, plan: PhysicalPlan, rule: "LayoutRule") -> "Layout":
        """Return the layout of a plan with a sequence of stages; ``rule``: in whose words."""
        places = (each.placement for each in plan.stages)
        held = [scan.site is not None and scan.site.shipping is Shipping.HELD for scan in plan.streams]
        names = rule.named([scan.alias for scan in plan.streams])
        return cls(
            stages,
            tuple(each if ROUTES[each.route].slices else None for each in places),
            tuple(itertools.compress(names, held)),
        )


@dataclass(frozen=True)
class LayoutRule:
    """Which layouts a join of streams may have; over tables it may have any.

    The state of a checkpoint has one. ``free``: any, as there is no state yet. Else ``kept``, and the
    statement's own first one where it has no such layout; ``reason`` says why the others are not taken.
    ``moving``: the state is about to be laid out anew, by the same stages; where there is no such layout, a
    hint asks for another one of them. ``written``: how the statement was written of which ``kept`` tells.
    """

    free: bool
    kept: Layout | None
    reason: str
    moving: bool = False
    written: Written | None = None

    def over(self, streams: int) -> "LayoutRule":
        """Return the rule for a join of so many streams: one of others was written by another statement."""
        same = self.written is None or len(self.written.aliases) == streams
        return self if same else replace(self, written=None)

    def named(self, aliases: Sequence[str]) -> tuple[str, ...]:
        """Return the aliases of the streams in layouts."""
        return tuple(aliases) if self.written is None else self.written.aliases

    def refusals(self, layouts: Sequence[Layout]) -> list[str]:
        """Return for each layout, the statement's own first, why it cannot be taken; empty where it can."""
        if self.free:
            return ["" for _ in layouts]
        # What is held at sites is chosen after the stages.
        kept = None if self.kept is None else replace(self.kept, held=())
        taken = kept if kept in layouts else self._instead(layouts)
        return ["" if each == taken else self.reason for each in layouts]

    def _instead(self, layouts: Sequence[Layout]) -> Layout:
        """Return what is taken where there is no such layout as the one that is kept."""
        alike = (each for each in layouts if self.moving and each.stages == self.stages)
        return next(alike, layouts[0])

    @property
    def stages(self) -> str | None:
        """The sequence of stages that is kept, None where it is not known."""
        return None if self.kept is None else self.kept.stages

    def held(self, plan: PhysicalPlan, stream: int) -> bool | None:
        """Return whether a stream is held at its site; None where that is still to be chosen."""
        if self.free:
            return None
        alias = self.named([scan.alias for scan in plan.streams])[stream]
        return self.kept is not None and alias in self.kept.held

    def placements(self, stages: str) -> Placements | None:
        """Return where the rows of a sequence of stages lie on the checkpoint, None where in no slices.

        None for all where the checkpoint is not known, or has other stages.
        """
        return None if self.kept is None or self.kept.stages != stages else self.kept.placements


UNKNOWN = LayoutRule(False, None, NO_CHECKPOINT)
"""The rule where nothing is known of a checkpoint."""

FREE = LayoutRule(True, None, "")
"""The rule where there is no state yet."""


def of_checkpoint(kept: Layout | None, *, moving: bool = False, written: Written | None = None) -> LayoutRule:
    """Return the rule for a checkpoint with a layout, None where it has kept none.

    ``moving``: its state is about to be laid out anew. ``written``: how its statement was written.
    """
    return LayoutRule(False, kept, OTHER_CHECKPOINT, moving, written)


def sequence_name(draft: Decomposition, streams: Sequence[str], before: Written | None = None) -> str:
    """Return the stages of a sequence as text, the same in every version: their inputs and keys.

    ``before``: in whose words.
    """
    names = streams if before is None else before.aliases
    stages = []
    for stage in draft.stages:
        inputs = []
        for each in stage.inputs:
            key = ", ".join(part.text if before is None else before.text(part, streams) for part in each.key)
            inputs.append(f"{' '.join(names[member] for member in each.members)} [{key}]")
        stages.append(" x ".join(inputs))
    return "; ".join(stages)


def hops_name(plan: PhysicalPlan, streams: Sequence[str]) -> str:
    """Return hops as the name of a sequence: for each stream in which order its new rows meet the others.

    Of one in which they meet all at once, the streams.
    """
    first, *later = plan.stages
    if isinstance(later[0], Gather):
        return f"at once {' '.join(streams[stream] for stream in first.members)}"
    orders: dict[int, list[int]] = {}
    for stage in plan.stages:
        for place, each in enumerate(stage.inputs):
            for met in itertools.chain(*stage.chains(place)):
                orders.setdefault(each.newest[0], list(each.newest)).append(stage.inputs[met].members[0])
    return f"hops {', '.join(' '.join(streams[stream] for stream in each) for each in orders.values())}"


def laid_out(plan: PhysicalPlan, places: Placements | None) -> PhysicalPlan:
    """Return a plan with the rows of its stages where a checkpoint has them (``LayoutRule.placements``).

    None where that is not known: then they lie where the plan says.
    """
    if places is None:
        return plan
    pairs = zip(plan.stages, places, strict=True)
    return replace(plan, stages=tuple(replace(each, placement=place or plain(each)) for each, place in pairs))
