"""Sequences of stages: what tells one from another, and which of them a plan over streams may have."""

from collections.abc import Sequence
from dataclasses import dataclass

from wjoin.planner.decompose import Decomposition

NO_CHECKPOINT = "another sequence of stages, which INSERT INTO may take: here the checkpoint is not known"
OTHER_CHECKPOINT = "not the sequence of stages of the checkpoint"


@dataclass(frozen=True)
class SequenceRule:
    """Which sequences of stages a join of streams may have; over tables it may have any.

    The state of a checkpoint is that of one sequence. ``free``: any, as there is no state yet.
    Else the one named ``kept``, and the statement's own first one where there is none of that
    name; ``reason`` says why the others are not taken.
    """

    free: bool
    kept: str | None
    reason: str

    def refusals(self, names: Sequence[str]) -> list[str]:
        """Return for each sequence, the statement's own first, why it cannot be taken; empty where it can."""
        if self.free:
            return ["" for _ in names]
        taken = self.kept if self.kept in names else names[0]
        return ["" if name == taken else self.reason for name in names]


UNKNOWN = SequenceRule(False, None, NO_CHECKPOINT)
"""The rule where nothing is known of a checkpoint."""

FREE = SequenceRule(True, None, "")
"""The rule where there is no state yet."""


def of_checkpoint(kept: str | None) -> SequenceRule:
    """Return the rule for a checkpoint with a sequence of that name, None where it has kept no name."""
    return SequenceRule(False, kept, OTHER_CHECKPOINT)


def sequence_name(draft: Decomposition, streams: Sequence[str]) -> str:
    """Return the stages of a sequence as text, the same in every version: their inputs and keys."""
    stages = []
    for stage in draft.stages:
        inputs = []
        for each in stage.inputs:
            key = ", ".join(part.text for part in each.key)
            inputs.append(f"{' '.join(streams[member] for member in each.members)} [{key}]")
        stages.append(" x ".join(inputs))
    return "; ".join(stages)
