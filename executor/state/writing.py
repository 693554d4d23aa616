"""By what rules a worker writes its state: they are in the manifest, and the next micro-batch follows them.

A restart may come with another plan of the same statement, or with a newer version of wjoin, and may repeat a
micro-batch of which Spark keeps what the first attempt has written. So whatever decides how slices are cut
is decided one micro-batch ahead.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from wjoin.grammar.errors import WJoinError
from wjoin.parts.kernels.hash_window import HashWindow
from wjoin.parts.kernels.runs import RunShape
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.probes import retention
from wjoin.planner.plan.stage_kinds import Bounds, Retention, Stage

VERSION = 1
"""Raised whenever slices are cut in another way than these rules tell (``state.slices.maintain``)."""


def check_compression(name: str) -> None:
    """Raise ValueError for a compression that Arrow does not have."""
    if not pa.Codec.is_available(name):
        raise ValueError("a compression that is not known")


@dataclass(frozen=True)
class Cutting:
    """How the slices of an input are cut.

    ``merged_at_once``: slices of one size class that are merged into one. ``large_slice``: bytes from
    which on a slice is large enough to be searched on its own, and is no longer merged. ``costly_slice``:
    bytes from which on to write a slice once more takes longer than to search some more of them, so that
    ``costly_at_once`` are merged. ``dead_share``: expired rows, as a share of the live ones, above which
    slices are rewritten without them. ``stretch``: bytes of new rows that are joined and written at once
    (``executor.stretches``), ``merged_bytes``: those that are merged at once; ``piece``: bytes of a slice
    that are one value of Spark's state, which are copied many times on their way; ``compression``: what
    these are compressed with.
    """

    merged_at_once: int
    large_slice: int
    dead_share: float
    stretch: int
    merged_bytes: int
    piece: int
    costly_slice: int
    costly_at_once: int
    compression: str

    def __post_init__(self) -> None:
        bytes_ = (self.stretch, self.merged_bytes, self.piece, self.costly_slice)
        if min(bytes_) < 1 or min(self.merged_at_once, self.costly_at_once) < 2 or self.large_slice < 0:
            raise ValueError("slices are not cut by such numbers")
        check_compression(self.compression)


FIRST_CUTTING = Cutting(
    merged_at_once=4,
    large_slice=1 << 25,
    dead_share=0.25,
    stretch=1 << 22,
    merged_bytes=1 << 26,
    piece=1 << 22,
    costly_slice=1 << 20,
    costly_at_once=16,
    compression="zstd",
)
"""How slices of the first micro-batch are cut; it may change together with the state format only."""

CUTTING = FIRST_CUTTING
"""How this version has slices cut from the second micro-batch on, but for the stretch of a session."""


@dataclass(frozen=True)
class Writing:
    """The rules; for each input of the stage the order of its runs (``RunShape.order_name``), and how long
    its rows are kept."""

    orders: tuple[str, ...]
    retentions: tuple[tuple[Retention, ...], ...]
    cutting: Cutting
    version: int = VERSION

    @classmethod
    def of(cls, stage: Stage, shapes: Sequence[RunShape], stretch: int) -> "Writing":
        """Return the rules of a stage whose runs have these shapes."""
        return cls(
            tuple(shape.order_name for shape in shapes),
            tuple(each.retention for each in stage.inputs),
            replace(CUTTING, stretch=stretch),
        )

    @classmethod
    def first(cls, plan: PhysicalPlan, stage: Stage) -> "Writing":
        """Return the rules of the first micro-batch: the same for every plan of a statement."""
        return cls(
            (HashWindow.order.value,) * len(stage.inputs),
            tuple(retention(plan, stage, each, Bounds.EXACT) for each in stage.inputs),
            FIRST_CUTTING,
        )


def refuse_rules(version: object) -> None:
    """Raise WJoinError WJ701 for rules by which this version does not cut."""
    if version != VERSION:
        raise WJoinError(
            "WJ701",
            f"the checkpoint's next micro-batch must be written by rules number {version}, "
            f"this version of wjoin knows number {VERSION}",
        )
