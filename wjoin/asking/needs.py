"""What rows need to be a result of a window join: the conditions of its plan, in the order of asking."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from wjoin.asking.alternatives import Bound, Count, alternatives_of, can_be_told
from wjoin.grammar.join_kinds import JoinKind
from wjoin.grammar.plurals import counted, listed
from wjoin.grammar.spans import Span
from wjoin.planner.bind.in_row import RowEnd
from wjoin.planner.conditions.conjuncts import (
    OF_LATERAL,
    ColumnComparison,
    Conjunct,
    Equality,
    Filter,
    PredicateCall,
    Residual,
    streams_of,
)
from wjoin.planner.conditions.readable import Unread
from wjoin.planner.plan.block_columns import (
    MATCH_COLUMNS,
    MICROSECONDS,
    event_time_expression,
    match_expression,
)
from wjoin.planner.plan.physical import TimeKind
from wjoin.planner.planning import PlannedSelect
from wjoin.planner.text.pieces import read_condition
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
    expression of each stream of an equality. Of a window that a row says itself ``beyond`` is that of how far
    another row, of ``other``, is outside; that is too late where it ends ``after`` the row. ``values`` are
    what is told where it is not satisfied, in words and as Spark expressions. ``later``: it is one of WHERE,
    asked of what outer joins have made.
    """

    kind: Kind
    streams: tuple[int, ...]
    text: str
    test: str
    sides: tuple[tuple[int, str], ...] = ()
    beyond: str = ""
    other: int = 0
    after: bool = True
    values: tuple[tuple[str, str], ...] = ()
    later: bool = False

    @property
    def told(self) -> tuple[str, ...]:
        """The Spark expressions of what is told where it is not satisfied."""
        return tuple(each for _, each in self.sides) + tuple(each for _, each in self.values)


@dataclass(frozen=True)
class Needs:
    """All that a result of a block needs.

    ``names`` are those of its streams, ``times`` the Spark expressions of their event times in microseconds,
    None for a table without one, ``delays`` how far they may be out of order, and ``ahead`` how much later
    than the clock of their micro-batch, None where that is not declared. Of ``alternatives`` a
    result is inside all bounds of one, and of those of ``counts`` whose numbers ``asked`` has for that.
    ``columns`` are those by which a row of each stream is shown.
    ``unjudged`` says what else decides, and is not judged. ``partners`` says what becomes of rows that are
    partners in an outer join; where there is none they are a result. Streams that are ``idle`` may be silent.
    An ``approximate`` join may lose a result.
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
    counts: tuple[Count, ...] = ()
    asked: tuple[tuple[int, ...], ...] = ()
    partners: tuple[str, ...] = ()
    idle: frozenset[int] = frozenset()
    approximate: bool = False

    def inside(self, bound: Bound, times: tuple[str, str] | None = None) -> str:
        """Return the Spark expression that is true inside a window; see ``beyond``."""
        return f"{self.beyond(bound, times)} = 0"

    def beyond(self, bound: Bound, times: tuple[str, str] | None = None) -> str:
        """Return the Spark expression of how far rows are outside of a window, 0 inside.

        ``times``: those of its streams, where other ones are meant than they have.
        """
        first, second = times or (self.times[bound.first], self.times[bound.second])
        later = f"{second} - {first}"
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
        if bound.most is not None and bound.most <= 0:
            least, most = human(-bound.most, self.kind), human(-(bound.least or 0), self.kind)
            return f"window ({first}, {second}): {second} is {least} to {most} earlier"
        if bound.least is not None and bound.least < 0:
            sides = f"from {human(-bound.least, self.kind)} earlier to {most} later"
            return f"window ({first}, {second}): {second} is {sides}"
        return f"window ({first}, {second}): {second} is {least} to {most} later"

    def shown_count(self, count: Count) -> str:
        """Return a window of rows in words."""
        name = self.names[count.stream]
        if count.test:
            return f"window {name} since ({' '.join(count.test.split())})"
        return f"window {name}: {counted(count.rows, 'row')}{count.per.clause.lower()}"


def needs_of(planned: PlannedSelect) -> Needs:
    """Return what a result of a planned block needs."""
    plan, bound = planned.physical, planned.bound
    times = tuple(
        MICROSECONDS[plan.time_kind].format(event_time_expression(scan)) if scan.dated else None
        for scan in plan.streams
    )
    written = len(bound.conjuncts) - len(bound.row_ends)
    outer = bound.tree.kind is not JoinKind.INNER
    found = [
        replace(need, later=outer and conjunct.on is None and need.kind is not Kind.KEY)
        for conjunct in bound.conjuncts[:written]
        if (need := _need(planned, conjunct)) is not None
    ]
    ends = zip(bound.row_ends, bound.conjuncts[written:], strict=True)
    found += [_end(end, conjunct, planned, times) for end, conjunct in ends]
    alternatives = tuple(alternatives_of(planned))
    counts = tuple(dict.fromkeys(each for _, own in alternatives for each in own))
    return Needs(
        names=planned.graph.names,
        kind=plan.time_kind,
        delays=tuple(scan.delay for scan in plan.streams),
        ahead=tuple(scan.ahead for scan in plan.streams),
        times=times,
        conditions=tuple(sorted(found, key=lambda each: each.kind.value)),
        alternatives=tuple(bounds for bounds, _ in alternatives),
        columns=tuple(_columns(planned, stream) for stream in range(len(times))),
        unjudged=tuple(_unjudged(planned)),
        counts=counts,
        asked=tuple(tuple(map(counts.index, own)) for _, own in alternatives) if counts else (),
        partners=tuple(_partners(planned)),
        idle=frozenset(number for number, each in enumerate(plan.streams) if each.idle_after is not None),
        approximate=plan.approximate is not None
        or any(each.site and each.site.likely for each in plan.streams),
    )


def _need(planned: PlannedSelect, conjunct: Conjunct) -> Need | None:
    streams = tuple(sorted(streams_of(conjunct)))
    match conjunct:
        case Filter():
            return None if conjunct.text.upper() == "TRUE" else _test(Kind.FILTER, streams, conjunct.text)
        case Equality(left, right):
            shown = f"{left.text} = {right.text}"
            sides = ((left.stream, left.text), (right.stream, right.text))
            return Need(Kind.KEY, streams, shown, shown, sides)
        case Residual(text, _, matches):
            if _unasked(conjunct):
                return None
            every = tuple(range(len(planned.graph.names)))
            need = _test(Kind.CONDITION, every if matches or not streams else streams, text)
            return _by_match(planned, need, matches) if matches else need
        case ColumnComparison() | PredicateCall():
            return _test(Kind.CONDITION, streams, conjunct.text)


def _unasked(condition: Residual) -> str:
    """Return why a condition cannot be asked of rows alone, empty where it can be."""
    if isinstance(condition.read, Unread) and condition.read.what == OF_LATERAL:
        return "it reads a LATERAL VIEW"
    volatile = read_condition(condition.text, Span(0, len(condition.text))).is_volatile
    return "it is not the same twice" if volatile else ""


def _by_match(planned: PlannedSelect, need: Need, matches: Collection[str]) -> Need:
    """Return a condition on match functions as one on the event times that they go by."""
    plan = planned.physical
    dated = [scan for number, scan in enumerate(plan.streams) if scan.dated and number not in plan.hidden]
    times = [event_time_expression(each) for each in dated]
    if plan.time_kind is TimeKind.INTEGRAL:
        times = [f"CAST({each} AS BIGINT)" for each in times]
    found = {each: match_expression(plan.time_kind, each, times) for each in sorted(matches)}
    test = need.test
    for each, value in found.items():
        test = test.replace(MATCH_COLUMNS[each], f"({value})")
    values = tuple((_as_written(MATCH_COLUMNS[each]), value) for each, value in found.items())
    return replace(need, text=_as_written(need.text), test=test, values=values)


def _as_written(text: str) -> str:
    """Return a condition with the match functions as people write them."""
    for each, name in MATCH_COLUMNS.items():
        text = text.replace(name, f"MATCH_{each.upper()}()")
    return text


def _end(end: RowEnd, conjunct: Conjunct, planned: PlannedSelect, times: Sequence[str | None]) -> Need:
    """Return what a row says itself of how near another is; ``conjunct``: the same as a condition."""
    names = planned.graph.names
    sides = str(times[end.other]), MICROSECONDS[planned.physical.time_kind].format(end.time)
    text = f"window ({names[end.owner]}, {names[end.other]}) = {end.shown}"
    test = conjunct.text if isinstance(conjunct, ColumnComparison) else ""
    beyond = " - ".join(sides if end.after else reversed(sides))
    streams = tuple(sorted((end.owner, end.other)))
    return Need(Kind.WINDOW, streams, text, test, beyond=beyond, other=end.other, after=end.after)


def _test(kind: Kind, streams: tuple[int, ...], text: str) -> Need:
    return Need(kind, streams, text, text)


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
    if not can_be_told(planned.graph):
        yield "which alternatives of the windows hold, of so many"
    for each in planned.bound.conjuncts:
        if isinstance(each, Residual) and (why := _unasked(each)):
            yield f"{_as_written(each.text)} ({why})"


def _partners(planned: PlannedSelect) -> Iterator[str]:
    names = planned.graph.names
    for each in planned.bound.tree.joins:
        left, right = (listed([names[stream] for stream in side], "or") for side in each.sides)
        kept = (left, right) if each.kind is JoinKind.FULL else ((left, right)[each.kind is JoinKind.RIGHT],)
        match each.kind:
            case JoinKind.INNER:
                continue
            case JoinKind.ANTI:
                yield f"a row of {left} with a partner in {right} is no result"
            case JoinKind.SEMI:
                yield f"a row of {left} with a partner in {right} is a result, once"
            case JoinKind.ASOF | JoinKind.LEFT_ASOF:
                yield f"a row of {left} takes of its partners in {right} the one that is nearest in time"
        if each.kind.alone and each.kind is not JoinKind.ANTI:
            yield f"a row of {' or of '.join(kept)} without a partner is a result alone"
