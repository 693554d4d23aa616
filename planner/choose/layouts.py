"""Layouts of state: the stages and where their rows lie; which of them a plan over streams may have.

Rows that are held at their site are in no state, so that belongs to it.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from wjoin.grammar.canonical import canonical
from wjoin.parts.routes.registry import ROUTES
from wjoin.parts.routes.route import Placement
from wjoin.planner.bind.written import Written, numbered
from wjoin.planner.choose.placements import Placements, plain
from wjoin.planner.plan.physical import PhysicalPlan, Shipping
from wjoin.planner.plan.stage_kinds import Gather
from wjoin.planner.shape.decompose import Decomposition, DraftInput

NO_CHECKPOINT = "needs a new checkpoint (other stages or another route), and this statement names none"
OTHER_CHECKPOINT = "its stages or routes differ from the checkpoint's"


@dataclass(frozen=True)
class Layout:
    """How the state of a join of streams is laid out; it is kept beside a checkpoint.

    ``stages``: the sequence of stages as text, the same in every version (``sequence_name``, ``hops_name``);
    ``placements``: where the rows of each lie, None where they are in no slices and have no homes;
    ``held``: the streams whose rows are at their sites.
    """

    stages: str
    placements: tuple[Placement | None, ...] = ()
    held: tuple[int, ...] = ()

    @classmethod
    def of(cls, stages: str, plan: PhysicalPlan) -> "Layout":
        """Return the layout of a plan with a sequence of stages."""
        places = (each.placement for each in plan.stages)
        sites = ((stream, scan.site) for stream, scan in enumerate(plan.streams))
        return cls(
            stages,
            tuple(
                each if ROUTES[each.route].slices or ROUTES[each.route].approximate else None
                for each in places
            ),
            tuple(stream for stream, site in sites if site and site.shipping is Shipping.HELD),
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

    def held(self, stream: int) -> bool | None:
        """Return whether a stream is held at its site; None where that is still to be chosen."""
        return None if self.free else self.kept is not None and stream in self.kept.held

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


def sequence_name(draft: Decomposition, aliases: Sequence[str]) -> str:
    """Return the stages of a sequence as text, the same in every version and spelling: inputs and keys."""
    own = numbered(aliases)

    def shown(each: DraftInput) -> str:
        key = ", ".join(canonical(part.text, own) for part in each.key)
        return f"{_names(each.members)} [{key}]"

    return "; ".join(" x ".join(map(shown, stage.inputs)) for stage in draft.stages)


def hops_name(plan: PhysicalPlan) -> str:
    """Return hops as the name of a sequence: for each stream in which order its new rows meet the others.

    Of one in which they meet all at once, the streams.
    """
    first, *later = plan.stages
    if isinstance(later[0], Gather):
        return f"at once {_names(first.members)}"
    orders: dict[int, list[int]] = {}
    for stage in plan.stages:
        for place, each in enumerate(stage.inputs):
            for met in itertools.chain(*stage.chains(place)):
                orders.setdefault(each.newest[0], list(each.newest)).append(stage.inputs[met].members[0])
    return f"hops {', '.join(map(_names, orders.values()))}"


def _names(streams: Iterable[int]) -> str:
    return " ".join(f"${stream}" for stream in streams)


def laid_out(plan: PhysicalPlan, places: Placements | None) -> PhysicalPlan:
    """Return a plan with the rows of its stages where a checkpoint has them (``LayoutRule.placements``).

    None where that is not known: then they lie where the plan says.
    """
    if places is None:
        return plan
    pairs = zip(plan.stages, places, strict=True)
    return replace(plan, stages=tuple(replace(each, placement=place or plain(each)) for each, place in pairs))
