"""A sequence of joins to the stages of a plan, each with the conditions that first can be checked there."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from wjoin.parts.kernels.registry import first_usable
from wjoin.parts.routes.registry import plainest
from wjoin.parts.routes.route import Placement
from wjoin.planner.catalog import Estimate
from wjoin.planner.conditions.column_bands import ColumnBand
from wjoin.planner.conditions.conjuncts import ColumnComparison
from wjoin.planner.conditions.expressions import Call, Input, is_decimal
from wjoin.planner.conditions.predicate_calls import ReadCall
from wjoin.planner.conditions.readable import ReadCondition
from wjoin.planner.plan.checks import Band, Check, Comparison, Condition, Operand, PredicateCheck
from wjoin.planner.plan.stage_kinds import Bounds, Join, Joined, Scanned, Stage, StageEdge
from wjoin.planner.shape.decompose import Decomposition, DraftStage
from wjoin.planner.shape.join_keys import EXACT, KeyPart, TypedEquality
from wjoin.planner.shape.scans import ScanBuilder
from wjoin.planner.text.scope import StreamColumn


@dataclass(frozen=True)
class Index:
    """A band that stages may search for, and the share of pairs that it keeps; as in ``Band``."""

    band: ColumnBand
    checked: bool
    share: Estimate

    @property
    def streams(self) -> frozenset[int]:
        """The streams whose rows it is about."""
        return self.band.streams


@dataclass(frozen=True)
class EqualParts:
    """An equality of expressions of two streams that no key enforces, in one type."""

    left: KeyPart
    right: KeyPart

    @property
    def streams(self) -> frozenset[int]:
        """The streams whose rows it is about."""
        return frozenset((self.left.stream, self.right.stream))


CheckedLink = ColumnComparison | ReadCondition | EqualParts
"""What becomes a check of values."""

Link = CheckedLink | Index | ReadCall
"""What is asked of the rows of several streams, by the names of their columns."""


def equal_parts(equality: TypedEquality) -> EqualParts:
    """Return an equality as one of expressions."""
    sides = equality.equality.left, equality.equality.right
    left, right = (KeyPart(*each, equality.common) for each in zip(sides, equality.types, strict=True))
    return EqualParts(left, right)


def can_decide(link: EqualParts) -> bool:
    """Return whether a stage can tell itself whether two expressions are equal."""
    kind = link.left.type.lower()
    return kind in EXACT or kind in ("string", "float", "double") or is_decimal(kind)


def stages(draft: Decomposition, links: Sequence[Link], scans: Sequence[ScanBuilder]) -> tuple[Stage, ...]:
    """Return the stages, each with what can be checked there first."""
    made = []
    for each in draft.stages:
        known = set(each.members)
        made.append(_stage(each, [link for link in links if link.streams <= known], scans))
        links = [link for link in links if not link.streams <= known]
    return tuple(made)


def _stage(draft: DraftStage, links: Sequence[Link], scans: Sequence[ScanBuilder]) -> Stage:
    # Scans number their columns as they are asked for, which checkpoints remember.
    bands = [_band(each, scans) for each in links if isinstance(each, Index)]
    inputs = []
    for each in draft.inputs:
        owner = each.key[0].stream if each.key else None
        key = None if owner is None else (owner, scans[owner].code(each))
        source = Scanned(*each.members) if each.stage is None else Joined(each.stage, each.members)
        inputs.append(StageEdge(source, key, _main_band(each.members, bands)))
    keyed, indexed = bool(draft.classes), any(each.index is not None for each in inputs)
    checks = [_check(each, scans) for each in links if not isinstance(each, Index)]
    # Route and kernel are the first ones that can apply, until the choice is made.
    return Join(
        inputs=tuple(inputs),
        bounds=Bounds.EXACT,
        placement=Placement(plainest(keyed=keyed, inputs=len(inputs))),
        kernels=first_usable(keyed=keyed, indexed=indexed),
        checks=in_calling_order((*bands, *checks)),
    )


def check_of(link: CheckedLink, scans: Sequence[ScanBuilder]) -> Comparison | Condition:
    """Return what checks values, over the columns of scans that have them."""
    match link:
        case ColumnComparison():
            left, right = (_operand(each, scans) for each in (link.left, link.right))
            return Comparison(left, link.operator, right, link.left.column.type)
        case EqualParts(left=first, right=second):
            parts = first, second
            operands = tuple((each.stream, scans[each.stream].needed(each.text, each.type)) for each in parts)
            kind = first.type.lower()
            return Condition(Call("=", (Input(0, kind), Input(1, kind)), "boolean"), operands)
    return Condition(link.expression, tuple(_operand(column, scans) for column in link.columns))


def _check(link: CheckedLink | ReadCall, scans: Sequence[ScanBuilder]) -> Check:
    return call_of(link, scans) if isinstance(link, ReadCall) else check_of(link, scans)


def call_of(link: ReadCall, scans: Sequence[ScanBuilder]) -> PredicateCheck:
    """Return what calls a predicate, over the columns of scans that have its arguments."""
    return PredicateCheck(
        predicate=link.predicate.name.lower(),
        arguments=tuple(
            _operand(each, scans) if isinstance(each, StreamColumn) else each for each in link.arguments
        ),
        asked=link.asked,
        cost_us=link.cost_us,
        share=link.share,
        tried="" if link.trial is None else link.trial.words,
    )


def in_calling_order(checks: Sequence[Check]) -> tuple[Check, ...]:
    """Return checks in the order in which they are made: bands first, predicates last."""
    bands = [each for each in checks if isinstance(each, Band)]
    others = [each for each in checks if not isinstance(each, Band)]
    return (*bands, *sorted(others, key=_calling_order))


def _calling_order(check: Check) -> float:
    """Return by what checks are sorted: predicates last, by what it costs to be rid of a pair."""
    if not isinstance(check, PredicateCheck):
        return -1.0
    kept = check.share.value
    return check.cost_us.value / (1 - kept) if kept < 1 else math.inf


def _band(index: Index, scans: Sequence[ScanBuilder]) -> Band:
    band = index.band
    left, right = (_searchable(column, scans) for column in (band.left, band.right))
    return Band(left, right, band.low, band.high, band.slack, index.checked, index.share)


def _searchable(column: StreamColumn, scans: Sequence[ScanBuilder]) -> Operand:
    if column.column.type.lower().startswith("decimal"):
        scan = scans[column.stream]
        return column.stream, scan.needed(f"CAST({scan.expression(column)} AS DOUBLE)", "double")
    return _operand(column, scans)


def _main_band(members: Collection[int], bands: Sequence[Band]) -> Band | None:
    """Return the band that shall order the rows of an input: the first of those that keep least."""
    touching = [each for each in bands if (each.left[0] in members) != (each.right[0] in members)]
    return min(touching, key=lambda each: each.share.value, default=None)


def _operand(column: StreamColumn, scans: Sequence[ScanBuilder]) -> Operand:
    return column.stream, scans[column.stream].needed_column(column)
