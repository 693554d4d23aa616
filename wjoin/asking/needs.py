"""What rows need to be a result of a window join: the conditions of its plan, in the order of asking."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from wjoin.planner.conditions.conjuncts import (
    ColumnComparison,
    Conjunct,
    Equality,
    Filter,
    PredicateCall,
    Residual,
    streams_of,
)
from wjoin.planner.plan.block_columns import MICROSECONDS, event_time_expression
from wjoin.planner.plan.physical import TimeKind
from wjoin.planner.planning import PlannedSelect
from wjoin.planner.windows.bounds import Windows
from wjoin.planner.windows.lengths import human


class Kind(Enum):
    """What a need is about; the values are the order in which they are asked."""

    FILTER = 0
    KEY = 1
    WINDOW = 2
    CONDITION = 3
    ARRIVAL = 4


@dataclass(frozen=True)
class Need:
    """A condition that the rows of some ``streams`` have to satisfy.

    ``text`` shows it, ``test`` is the Spark expression that is true where it is satisfied. ``sides`` has the
    expression of each stream of an equality.
    """

    kind: Kind
    streams: tuple[int, ...]
    text: str
    test: str
    sides: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Bound:
    """A window between two streams: ``second`` is from ``least`` to ``most`` later than ``first``.

    In microseconds, in the unit of the event time where that is integral; None where there is no bound.
    """

    first: int
    second: int
    least: int | None
    most: int | None

    @property
    def streams(self) -> tuple[int, int]:
        """The streams that it is about."""
        return self.first, self.second

    def beyond(self, times: Sequence[int]) -> int:
        """Return by how much the times of one row of each stream are outside, 0 inside."""
        later = times[self.second] - times[self.first]
        if self.most is not None and later > self.most:
            return later - self.most
        if self.least is not None and later < self.least:
            return self.least - later
        return 0


@dataclass(frozen=True)
class Needs:
    """All that a result of a block needs.

    ``names`` are those of its streams, ``times`` the Spark expressions of their event times in microseconds,
    None for a table without one, ``delays`` how far they may be out of order, and ``ahead`` how much later
    than the clock of their micro-batch, None where that is not declared. Of ``alternatives`` a
    result is inside all bounds of one. ``columns`` are those by which a row of each stream is shown.
    ``unjudged`` says what else decides, and is not judged.
    """

    names: tuple[str, ...]
    kind: TimeKind
    delays: tuple[int, ...]
    ahead: tuple[int | None, ...]
    times: tuple[str | None, ...]
    conditions: tuple[Need, ...]
    alternatives: tuple[tuple[Bound, ...], ...]
    columns: tuple[tuple[str, ...], ...]
    unjudged: tuple[str, ...]

    def inside(self, bound: Bound) -> str:
        """Return the Spark expression that is true inside a window."""
        return f"{self.beyond(bound)} = 0"

    def beyond(self, bound: Bound) -> str:
        """Return the Spark expression of how far rows are outside of a window, 0 inside."""
        later = f"{self.times[bound.second]} - {self.times[bound.first]}"
        sides = [] if bound.most is None else [f"{later} - ({bound.most})"]
        sides += [] if bound.least is None else [f"{bound.least} - ({later})"]
        return f"greatest({', '.join(sides)}, 0)"

    def shown(self, bound: Bound) -> str:
        """Return a window in words."""
        first, second = self.names[bound.first], self.names[bound.second]
        least, most = (None if each is None else human(each, self.kind) for each in (bound.least, bound.most))
        if bound.least is not None and bound.most == -bound.least:
            return f"window ({first}, {second}): {most} in both directions"
        if least is None or most is None:
            limit = f"at most {most}" if least is None else f"at least {least}"
            return f"window ({first}, {second}): {second} is {limit} later"
        return f"window ({first}, {second}): {second} is {least} to {most} later"


def needs_of(planned: PlannedSelect) -> Needs:
    """Return what a result of a planned block needs."""
    plan, bound = planned.physical, planned.bound
    times = tuple(
        MICROSECONDS[plan.time_kind].format(event_time_expression(scan)) if scan.dated else None
        for scan in plan.streams
    )
    found = [each for conjunct in bound.conjuncts if (each := _need(conjunct)) is not None]
    return Needs(
        names=planned.graph.names,
        kind=plan.time_kind,
        delays=tuple(scan.delay for scan in plan.streams),
        ahead=tuple(scan.ahead for scan in plan.streams),
        times=times,
        conditions=tuple(sorted(found, key=lambda each: each.kind.value)),
        alternatives=tuple(tuple(_bounds(each.given)) for each in planned.graph.branches),
        columns=tuple(_columns(planned, stream) for stream in range(len(times))),
        unjudged=tuple(_unjudged(planned)),
    )


def _need(conjunct: Conjunct) -> Need | None:
    streams = tuple(sorted(streams_of(conjunct)))
    match conjunct:
        case Filter():
            return None if conjunct.text.upper() == "TRUE" else _test(Kind.FILTER, streams, conjunct.text)
        case Equality(left, right):
            shown = f"{left.text} = {right.text}"
            sides = ((left.stream, left.text), (right.stream, right.text))
            return Need(Kind.KEY, streams, shown, shown, sides)
        case Residual(text, _, matches):
            return None if matches or not streams else _test(Kind.CONDITION, streams, text)
        case ColumnComparison() | PredicateCall():
            return _test(Kind.CONDITION, streams, conjunct.text)


def _test(kind: Kind, streams: tuple[int, ...], text: str) -> Need:
    return Need(kind, streams, text, text)


def _bounds(given: Windows) -> Iterator[Bound]:
    for first in range(given.size):
        for second in range(first + 1, given.size):
            most, back = given.between(first, second), given.between(second, first)
            if most is not None or back is not None:
                yield Bound(first, second, None if back is None else -back, most)


def _columns(planned: PlannedSelect, stream: int) -> tuple[str, ...]:
    """Return the columns by which a row is shown: its event time, and those that conditions read."""
    time = planned.bound.times[stream]
    names = [] if time is None else [time.column.name]
    for conjunct in planned.bound.conjuncts:
        match conjunct:
            case Equality(left, right):
                read = (*left.columns, *right.columns)
            case ColumnComparison(left, _, right):
                read = (*left.read, *right.read)
            case Residual(_, columns):
                read = columns
            case _:
                read = ()
        names += [each.column.name for each in read if each.stream == stream]
    return tuple(dict.fromkeys(names))


def _unjudged(planned: PlannedSelect) -> Iterator[str]:
    """Yield what decides of a result besides its needs."""
    plan, tree = planned.physical, planned.bound.tree
    if plan.counted:
        yield "windows of rows"
    for each in planned.bound.conjuncts:
        if isinstance(each, Residual) and each.matches:
            yield each.text
    if tree.joins:
        yield f"that this is {tree.kind.words}: the answer says whether the rows are partners"
