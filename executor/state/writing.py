"""By what rules a worker writes its state: they are in the manifest, and the next micro-batch follows them.

A restart may come with another plan of the same statement, or with a newer version of wjoin, and may repeat a
micro-batch of which Spark keeps what the first attempt has written. So whatever decides how slices are cut
is decided one micro-batch ahead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from wjoin.executor.state.stored import whole
from wjoin.grammar.errors import WJoinError
from wjoin.parts.kernels.hash_window import HashWindow
from wjoin.parts.kernels.runs import RunShape
from wjoin.planner.plan.physical import Bounds, PhysicalPlan, Retention, Stage
from wjoin.planner.plan.probes import retention

VERSION = 1
"""Raised whenever slices are cut in another way than these rules tell (``state.slices.maintain``)."""


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


FIRST_CUTTING = Cutting(
    merged_at_once=4,
    large_slice=1 << 25,
    dead_share=0.25,
    stretch=1 << 25,
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

    def encode(self) -> dict[str, Any]:
        """Return the rules as plain data."""
        return {
            "version": VERSION,
            **asdict(self.cutting),
            "inputs": [
                {
                    "order": order,
                    "retention": [[each.stream, [list(pair) for pair in each.distances]] for each in kept],
                }
                for order, kept in zip(self.orders, self.retentions, strict=True)
            ],
        }


def compression(name: str) -> str:
    """Return the name of a compression that Arrow has. Raises ValueError."""
    if not pa.Codec.is_available(name):
        raise ValueError("a compression that is not known")
    return name


def decode_writing(body: Mapping[str, Any]) -> Writing:
    """Read the rules in a manifest; raises WJoinError WJ701 where this version does not cut by them."""
    if body["version"] != VERSION:
        raise WJoinError(
            "WJ701",
            f"the checkpoint's next micro-batch is to be written by rules number {body['version']}, "
            f"this version of wjoin knows number {VERSION}",
        )
    return Writing(
        tuple(str(each["order"]) for each in body["inputs"]),
        tuple(
            tuple(
                Retention(stream, tuple((member, distance) for member, distance in pairs))
                for stream, pairs in each["retention"]
            )
            for each in body["inputs"]
        ),
        Cutting(
            whole(body["merged_at_once"], 2),
            whole(body["large_slice"]),
            float(body["dead_share"]),
            whole(body["stretch"], 1),
            whole(body["merged_bytes"], 1),
            whole(body["piece"], 1),
            whole(body["costly_slice"], 1),
            whole(body["costly_at_once"], 2),
            compression(body["compression"]),
        ),
    )
