"""Layouts of state: the stages and where their rows lie; which of them a plan over streams may have.

Rows that are held at their site are in no state, so that belongs to it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from wjoin.parts.routes.registry import ROUTES, plainest
from wjoin.planner.bind.written import Written
from wjoin.planner.choose.placements import Placement, lying
from wjoin.planner.plan.physical import PhysicalPlan, Shipping
from wjoin.planner.shape.decompose import Decomposition

NO_CHECKPOINT = "other stages or another route, which need a new checkpoint: none is named here"
OTHER_CHECKPOINT = "not the stages and routes of the checkpoint"

_OF = r"(?: of band (\d+))?(?: of bucket (\d+))?(?: in (\d+) copies)?(?: of input (\d+))?"
_LYING = rf"; (\d+) (\w+) on (\d+|all) by ([-+\d.e]+){_OF}"
_HELD = "; held at sites: "
_LAYOUT = re.compile(rf"(?P<sequence>.*?)(?P<lying>(?:{_LYING})*)(?:{_HELD}(?P<held>.*))?", re.DOTALL)


@dataclass(frozen=True)
class LayoutRule:
    """Which layouts a join of streams may have; over tables it may have any.

    The state of a checkpoint has one. ``free``: any, as there is no state yet. Else the one named ``kept``,
    and the statement's own first one where there is none of that name; ``reason`` says why the others are
    not taken. ``moving``: the state is about to be laid out anew, by the same stages; where no layout has the
    name, a hint asks for another one of them. ``written``: how the statement was written that has named it.
    """

    free: bool
    kept: str | None
    reason: str
    moving: bool = False
    written: Written | None = None

    def over(self, streams: int) -> "LayoutRule":
        """Return the rule for a join of so many streams: one of others was written by another statement."""
        same = self.written is None or len(self.written.aliases) == streams
        return self if same else replace(self, written=None)

    def named(self, aliases: Sequence[str]) -> tuple[str, ...]:
        """Return the aliases of the streams in the names of layouts."""
        return tuple(aliases) if self.written is None else self.written.aliases

    def refusals(self, names: Sequence[str]) -> list[str]:
        """Return for each layout, the statement's own first, why it cannot be taken; empty where it can."""
        if self.free:
            return ["" for _ in names]
        kept = None if self.kept is None else self.kept.partition(_HELD)[0]
        taken = kept if kept in names else self._instead(names)
        return ["" if name == taken else self.reason for name in names]

    def _instead(self, names: Sequence[str]) -> str:
        """Return the layout that is taken where none has the name that is kept."""
        alike = (name for name in names if self.moving and sequence_of(name) == sequence_of(self.kept))
        return next(alike, names[0])

    def held(self, plan: PhysicalPlan, stream: int) -> bool | None:
        """Return whether a stream is held at its site; None where that is still to be chosen."""
        if self.free:
            return None
        alias = self.named([scan.alias for scan in plan.streams])[stream]
        found = None if self.kept is None else _LAYOUT.fullmatch(self.kept)
        return found is not None and found["held"] is not None and alias in found["held"].split(", ")

    def placements(self, sequence: str | None) -> dict[int, Placement] | None:
        """Return where the rows of the stages of a sequence lie on the checkpoint, by their numbers from 0.

        A stage that is not there has no slices. None where the checkpoint is not known, or has other stages.
        """
        found = None if self.kept is None else _LAYOUT.fullmatch(self.kept)
        if found is None or found["sequence"] != sequence:
            return None
        return {
            int(number) - 1: Placement(
                route,
                None if workers == "all" else int(workers),
                int(length) if length.isdecimal() else float(length),
                int(copies or 1),
                int(band) - 1 if band else None,
                int(bucket) if bucket else None,
                int(master) - 1 if master else 0,
            )
            for number, route, workers, length, band, bucket, copies, master in re.findall(
                _LYING, found["lying"]
            )
        }


UNKNOWN = LayoutRule(False, None, NO_CHECKPOINT)
"""The rule where nothing is known of a checkpoint."""

FREE = LayoutRule(True, None, "")
"""The rule where there is no state yet."""


def of_checkpoint(kept: str | None, *, moving: bool = False, written: Written | None = None) -> LayoutRule:
    """Return the rule for a checkpoint with a layout of that name, None where it has kept no name.

    ``moving``: its state is about to be laid out anew. ``written``: how its statement was written.
    """
    return LayoutRule(False, kept, OTHER_CHECKPOINT, moving, written)


def sequence_of(layout: str | None) -> str | None:
    """Return the sequence of stages in the name of a layout."""
    found = None if layout is None else _LAYOUT.fullmatch(layout)
    return None if found is None else found["sequence"]


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
    if later[0].gathers:
        return f"at once {' '.join(streams[stream] for stream in first.members)}"
    orders = []
    for each in first.inputs:
        order = [first.inputs[met].members[0] for met in each.meets or ()]
        for stage in later:
            (own,) = (source for source in stage.inputs if source.newest == each.newest and source.meets)
            order += [stage.inputs[met].members[0] for met in own.meets or ()]
        orders.append(" ".join(streams[stream] for stream in (*each.members, *order)))
    return f"hops {', '.join(orders)}"


def laid_out(plan: PhysicalPlan, places: Mapping[int, Placement] | None) -> PhysicalPlan:
    """Return a plan with the rows of its stages where a checkpoint has them (``LayoutRule.placements``).

    None where that is not known: then they lie where the plan says.
    """
    if places is None:
        return plan
    stages = []
    for number, stage in enumerate(plan.stages):
        plain = Placement(plainest(keyed=stage.keyed, inputs=len(stage.inputs), hop=stage.hop))
        stages.append(lying(stage, places.get(number, plain)))
    return replace(plan, stages=tuple(stages))


def layout_name(sequence: str, plan: PhysicalPlan, rule: LayoutRule = FREE) -> str:
    """Return the name of a sequence of stages and of where their rows lie, the same in every version.

    ``rule``: in whose words.
    """
    placed = "".join(
        f"; {number} {stage.route} on {stage.workers or 'all'} by {stage.slice}"
        + ("" if stage.ranged is None else f" of band {stage.ranged + 1}")
        + ("" if stage.bucket is None else f" of bucket {stage.bucket}")
        + (f" in {stage.copies} copies" if stage.copies > 1 else "")
        + (f" of input {stage.master + 1}" if stage.master else "")
        for number, stage in enumerate(plan.stages, start=1)
        if ROUTES[stage.route].slices
    )
    names = rule.named([scan.alias for scan in plan.streams])
    held = [
        name
        for name, scan in zip(names, plan.streams, strict=True)
        if scan.site is not None and scan.site.shipping is Shipping.HELD
    ]
    return sequence + placed + (_HELD + ", ".join(held) if held else "")
