"""A sequence of joins to the stages of a plan, each with the conditions that first can be checked there."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from wjoin.parts.kernels.registry import KERNELS, refusal_of
from wjoin.parts.routes.registry import plainest
from wjoin.parts.routes.route import Placement
from wjoin.planner.catalog import Estimate
from wjoin.planner.conditions.column_bands import ColumnBand
from wjoin.planner.conditions.predicate_calls import ReadCall
from wjoin.planner.conditions.readable import ReadCondition
from wjoin.planner.plan.physical import (
    Band,
    Bounds,
    Comparison,
    Condition,
    Join,
    Joined,
    Operand,
    PredicateCheck,
    Scanned,
    Stage,
    StageEdge,
)
from wjoin.planner.shape.decompose import Decomposition, DraftStage
from wjoin.planner.shape.scans import ScanBuilder
from wjoin.planner.text.columns import StreamColumn


@dataclass(frozen=True)
class ColumnCheck:
    """An equality or comparison of two streams' columns inside the operator."""

    left: StreamColumn
    operator: str
    right: StreamColumn

    @property
    def streams(self) -> set[int]:
        """The streams whose rows it is about."""
        return {self.left.stream, self.right.stream}


@dataclass(frozen=True)
class Index:
    """A band that stages may search for, and the share of pairs that it keeps; as in ``Band``."""

    band: ColumnBand
    checked: bool
    share: Estimate

    @property
    def streams(self) -> set[int]:
        """The streams whose rows it is about."""
        return {self.band.left.stream, self.band.right.stream}


class _Link(Protocol):
    """What is asked of the rows of several streams."""

    @property
    def streams(self) -> set[int]: ...


Link = TypeVar("Link", bound=_Link)


def stages(
    draft: Decomposition,
    checks: Sequence[ColumnCheck],
    conditions: Sequence[ReadCondition],
    calls: Sequence[ReadCall],
    indexes: Sequence[Index],
    scans: Sequence[ScanBuilder],
) -> tuple[tuple[Stage, ...], dict[Band, Estimate]]:
    """Return the stages, and the shares of pairs that their bands keep."""
    made: list[Stage] = []
    shares: dict[Band, Estimate] = {}
    for each in draft.stages:
        ready, checks = _parted(checks, each.members)
        usable, indexes = _parted(indexes, each.members)
        tested, conditions = _parted(conditions, each.members)
        called, calls = _parted(calls, each.members)
        # Scans number their columns as they are asked for, which checkpoints remember.
        bands = {_physical_band(index, scans): index.share for index in usable}
        shares |= bands
        made.append(_stage(each, ready, tested, called, bands, scans))
    return tuple(made), shares


def _parted(links: Sequence[Link], members: Sequence[int]) -> tuple[list[Link], list[Link]]:
    """Return what is about some streams alone, and all else."""
    known = set(members)
    parted: tuple[list[Link], list[Link]] = ([], [])
    for each in links:
        parted[not each.streams <= known].append(each)
    return parted


def _stage(
    draft: DraftStage,
    checks: Sequence[ColumnCheck],
    conditions: Sequence[ReadCondition],
    calls: Sequence[ReadCall],
    bands: Mapping[Band, Estimate],
    scans: Sequence[ScanBuilder],
) -> Stage:
    inputs = []
    for each in draft.inputs:
        owner = each.key[0].stream if each.key else None
        key = None if owner is None else (owner, scans[owner].code(each))
        source = Scanned(*each.members) if each.stage is None else Joined(each.stage, each.members)
        inputs.append(StageEdge(source, key, _main_band(each.members, bands)))
    keyed, indexed = bool(draft.classes), any(each.index is not None for each in inputs)
    # Route and kernel are the first ones that can apply, until the choice is made.
    return Join(
        inputs=tuple(inputs),
        bounds=Bounds.EXACT,
        placement=Placement(plainest(keyed=keyed, inputs=len(inputs))),
        kernels=next(
            (name,) for name in KERNELS if refusal_of((name,), keyed=keyed, indexed=indexed) is None
        ),
        comparisons=tuple(
            Comparison(_operand(check.left, scans), check.operator, _operand(check.right, scans))
            for check in checks
        ),
        bands=tuple(bands),
        conditions=tuple(
            Condition(each.expression, tuple(_operand(column, scans) for column in each.columns))
            for each in conditions
        ),
        predicates=tuple(sorted((_predicate_check(each, scans) for each in calls), key=_calling_order)),
    )


def _predicate_check(call: ReadCall, scans: Sequence[ScanBuilder]) -> PredicateCheck:
    return PredicateCheck(
        predicate=call.predicate.name.lower(),
        arguments=tuple(
            _operand(each, scans) if isinstance(each, StreamColumn) else each for each in call.arguments
        ),
        asked=call.asked,
        cost_us=call.cost_us,
        share=call.share,
        tried="" if call.trial is None else call.trial.words,
    )


def _calling_order(check: PredicateCheck) -> float:
    """Return by what predicates are sorted: what it costs to be rid of a pair."""
    kept = check.share.value
    return check.cost_us.value / (1 - kept) if kept < 1 else math.inf


def _physical_band(index: Index, scans: Sequence[ScanBuilder]) -> Band:
    band = index.band
    left, right = (_searchable(column, scans) for column in (band.left, band.right))
    return Band(left, right, band.low, band.high, band.slack, index.checked)


def _searchable(column: StreamColumn, scans: Sequence[ScanBuilder]) -> Operand:
    if column.column.type.lower().startswith("decimal"):
        scan = scans[column.stream]
        return column.stream, scan.needed(f"CAST({scan.expression(column)} AS DOUBLE)", "double")
    return _operand(column, scans)


def _main_band(members: Collection[int], bands: Mapping[Band, Estimate]) -> Band | None:
    """Return the band that shall order the rows of an input: the first of those that keep least."""
    touching = [
        (share.value, number, band)
        for number, (band, share) in enumerate(bands.items())
        if (band.left[0] in members) != (band.right[0] in members)
    ]
    return min(touching, key=lambda each: each[:2])[2] if touching else None


def _operand(column: StreamColumn, scans: Sequence[ScanBuilder]) -> Operand:
    return column.stream, scans[column.stream].needed_column(column)
