"""Conditions between event times as bounds on their differences, exact to the microsecond.

``C.ts BETWEEN I.ts AND I.ts + INTERVAL 10 MINUTES`` is ``WINDOW (I, C) BETWEEN 0 SECONDS AND 10 MINUTES``.
What truncates (``timestampdiff``, ``unix_seconds``) implies the tightest bounds that hold for every rest.
Spark takes the difference of two TIMESTAMPs, and adds days to one, by the clocks of the session's time
zone: where these are put forward and back, the bounds are wider by as much.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil, floor

from sqlglot import exp

from wjoin.planner.conditions.column_bands import at_most
from wjoin.planner.conditions.meaning import Meaning
from wjoin.planner.conditions.time_values import MAXIMUM_DEPTH, NEAR, EventClock, TimeValue, ValueReader
from wjoin.planner.conditions.time_zones import ANY_ZONE

MAXIMUM_ALTERNATIVES = 16
"""Of more alternatives of one condition only what all of them imply is taken."""


@dataclass(frozen=True)
class TimeBound:
    """``t_target - t_source <= bound``, in the unit of the event times."""

    source: int
    target: int
    bound: int


@dataclass(frozen=True)
class TimeBounds:
    """What a condition says of event times: that all bounds of one of its alternatives hold.

    ``exact``: it says nothing else.
    """

    alternatives: tuple[tuple[TimeBound, ...], ...]
    exact: bool

    @property
    def hull(self) -> tuple[TimeBound, ...]:
        """The bounds that follow from each of the alternatives."""
        first, *others = [_tightest(each) for each in self.alternatives]
        pairs = [pair for pair in first if all(pair in each for each in others)]
        return tuple(TimeBound(*pair, max(each[pair] for each in (first, *others))) for pair in pairs)


def time_bounds(tree: exp.Expr, meaning: Meaning, clock: EventClock) -> TimeBounds | None:
    """Return what a condition says of the event times of two or more streams, None where it says nothing."""
    found = _Reader(meaning, clock).said(tree, negated=False)
    if found is None or not all(found.alternatives):
        return None
    if len(found.alternatives) > MAXIMUM_ALTERNATIVES:
        found = TimeBounds((found.hull,), exact=False)
    return found if all(found.alternatives) else None


def _tightest(bounds: Sequence[TimeBound]) -> Mapping[tuple[int, int], int]:
    found: dict[tuple[int, int], int] = {}
    for each in bounds:
        pair = (each.source, each.target)
        found[pair] = min(each.bound, found.get(pair, each.bound))
    return found


class _Reader(ValueReader):
    """Reads conditions as alternatives of bounds."""

    def said(self, tree: exp.Expr, *, negated: bool) -> TimeBounds | None:
        """Return what is so where a condition is true, or where it is false; None for nothing."""
        self._depth += 1
        try:
            return None if self._depth > MAXIMUM_DEPTH else self._said(tree, negated=negated)
        finally:
            self._depth -= 1

    def _said(self, tree: exp.Expr, *, negated: bool) -> TimeBounds | None:
        match tree:
            case exp.Paren():
                return self.said(tree.this, negated=negated)
            case exp.Not():
                return self.said(tree.this, negated=not negated)
            case exp.And() | exp.Or():
                parts = [self.said(each, negated=negated) for each in tree.flatten()]
                return _any(parts) if isinstance(tree, exp.Or) != negated else _all(parts)
            case exp.Between() if not tree.args.get("symmetric"):
                ends = [self._compared(*each, negated=negated) for each in at_most(tree)]
                return _any(ends) if negated else _all(ends)
            case exp.EQ() if not negated:
                sides = (tree.this, tree.expression)
                return _all([self._compared(*sides, False), self._compared(*sides[::-1], False)])
            case exp.NEQ() if negated:
                return self.said(exp.EQ(this=tree.this, expression=tree.expression), negated=False)
            case exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                (found,) = at_most(tree)
                return self._compared(*found, negated=negated)
        return None

    def _compared(
        self, left: exp.Expr, right: exp.Expr, strict: bool, *, negated: bool = False
    ) -> TimeBounds | None:
        """Return what ``left <= right`` says, or ``left < right`` where it is ``strict``."""
        if negated:
            left, right, strict = right, left, not strict
        inside = self._absolute(left)
        if inside is not None:
            most = self.form(right)
            if most is None or most.unit is not None:
                return None
            return _all([self._least(each, most, strict) for each in (inside, -inside)])
        inside = self._absolute(right)
        if inside is not None:
            least = self.form(left)
            # No length is below 0.
            if least is None or least.unit is not None or least.kind != inside.kind:
                return None
            trivial = least.constant < 0 or (least.constant == 0 and not strict)
            return TimeBounds(((),), exact=True) if trivial else None
        first, second = self.form(left), self.form(right)
        return None if first is None or second is None else self._least(first, second, strict)

    def _least(self, left: TimeValue, right: TimeValue, strict: bool) -> TimeBounds | None:
        if left.kind != right.kind:
            return None
        apart = left.plus_other(-right, left.kind)
        if apart is None or apart.unit is None or len(apart.plus) != 1 or len(apart.minus) != 1:
            return None
        (later,), (earlier,) = apart.plus, apart.minus
        if later == earlier:
            return None
        most = _greatest(apart, apart.unit, strict)
        if apart.clocks and max(map(abs, (most, apart.low, apart.high))) > NEAR:
            most += apart.clocks * ANY_ZONE
        bound = TimeBound(earlier, later, most)
        return TimeBounds(((bound,),), exact=apart.low == apart.high and apart.unit.denominator == 1)

    def _absolute(self, node: exp.Expr) -> TimeValue | None:
        node = node.unnest()
        if isinstance(node, exp.Abs):
            inside = self.form(node.this)
        elif isinstance(node, exp.Anonymous) and self._meaning.function(node) == "abs":
            inside = self.form(node.expressions[0]) if len(node.expressions) == 1 else None
        else:
            return None
        return inside if inside is not None and inside.kind != "time" and inside.unit is not None else None


def _greatest(apart: TimeValue, unit: Fraction, strict: bool) -> int:
    """Return the greatest difference of the times of a value that is at most 0, or below."""
    most = -apart.constant
    if apart.whole:
        least = Fraction(ceil(most) - 1 if strict else floor(most))
        if apart.cut and least >= 0:
            return floor((least + 1) * unit) - 1 - apart.low
        return floor(least * unit) - apart.low
    limit = most * unit - apart.low
    return ceil(limit) - 1 if strict else floor(limit)


def _all(parts: Sequence[TimeBounds | None]) -> TimeBounds | None:
    """Return what conditions say together."""
    known = [each for each in parts if each is not None]
    if not known:
        return None
    exact = len(known) == len(parts) and all(each.exact for each in known)
    count = 1
    for each in known:
        count *= len(each.alternatives)
    if count > MAXIMUM_ALTERNATIVES:
        return TimeBounds((tuple(bound for each in known for bound in each.hull),), exact=False)
    chosen = product(*(each.alternatives for each in known))
    return TimeBounds(tuple(tuple(bound for own in each for bound in own) for each in chosen), exact)


def _any(parts: Sequence[TimeBounds | None]) -> TimeBounds | None:
    """Return what is so where one of some conditions is true."""
    known = [each for each in parts if each is not None]
    if len(known) < len(parts):
        return None
    return TimeBounds(
        tuple(each for part in known for each in part.alternatives), all(each.exact for each in known)
    )
