"""Window joins of several statements over the same streams, as one join that has the results of all.

Its windows are those of all statements, one or the other, and its conditions those that all have; of a
stream it reads the rows that the filters of some statement let through. Each statement has an output of its
own, with its windows and columns, and tests what is left of its conditions on the joined rows. So tasks share
streams, shuffle and state (S2J, section 3.1.1).
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from wjoin.grammar.canonical import canonical
from wjoin.grammar.join_kinds import JoinKind
from wjoin.grammar.syntax import FromItem, SelectBlock
from wjoin.grammar.tokens import names_in
from wjoin.planner.bind.binding import BoundSelect
from wjoin.planner.bind.outer_joins import absent_items
from wjoin.planner.bind.written import meaning
from wjoin.planner.conditions.conjuncts import Conjunct, Equality, Filter, PredicateCall, Residual
from wjoin.planner.conditions.readable import Unread
from wjoin.planner.plan.edges import with_columns
from wjoin.planner.plan.physical import Output, TimeKind
from wjoin.planner.plan.probes import arranged, chosen_orders
from wjoin.planner.plan.validate import validate
from wjoin.planner.planning import Edit, PlannedSelect, apply_edits, edits_of
from wjoin.planner.shape.join_keys import can_be_key
from wjoin.planner.shape.shape import LaterCondition
from wjoin.planner.text.aliases import renamed
from wjoin.planner.text.scope import quoted_if_needed
from wjoin.planner.windows.bounds import Windows


class JoinKey(NamedTuple):
    """What statements that share a join have in common: streams, their times, keys and hints.

    Without a key also what they have ``tested`` of several streams: the join could test nothing that they do
    not all have, and would make every pair inside the windows. Where not all joins are inner ones also these,
    with their ON and their windows, ``joins``: they say which rows have no partner.
    """

    streams: Hashable
    classes: Hashable
    hints: Hashable
    tested: Hashable
    joins: Hashable = None


@dataclass(frozen=True)
class Member:
    """A statement of a set whose one window join is planned by itself.

    ``name`` is that of its sink. ``block`` is its SELECT in ``text``, ``names`` are the edits that name its
    columns. The shared join has the streams in an order of its own, ``order`` by their numbers here, for
    statements may list them in another.
    """

    name: str
    text: str
    block: SelectBlock
    planned: PlannedSelect
    names: tuple[Edit, ...] = ()

    @property
    def bound(self) -> BoundSelect:
        """The block with the columns of its names."""
        return self.planned.bound

    @cached_property
    def outer(self) -> bool:
        """Whether not all of its joins are inner ones."""
        return self.planned.physical.kind is not JoinKind.INNER

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The numbers of the streams here, in the order of the shared join."""
        relations = self.planned.relations
        if self.outer:
            return tuple(range(len(relations)))
        return tuple(sorted(range(len(relations)), key=lambda each: (canonical(relations[each]), each)))

    @cached_property
    def aliases(self) -> tuple[str, ...]:
        """The aliases of the streams, in the order of the shared join."""
        return tuple(self.bound.sources[each].name for each in self.order)

    @cached_property
    def conditions(self) -> dict[str, Conjunct]:
        """The conditions by what they mean, whatever their spelling, aliases and the order of FROM.

        Where not all joins are inner ones those of WHERE only.
        """
        return {words: each for words, each in self._meanings if not self.outer or each.on is None}

    @cached_property
    def on(self) -> dict[int, list[Conjunct]]:
        """The conditions of ON and USING by the numbers of items, where not all joins are inner ones."""
        found: dict[int, list[Conjunct]] = {}
        for _, each in self._meanings:
            if self.outer and each.on is not None:
                found.setdefault(each.on, []).append(each)
        return found

    @cached_property
    def _meanings(self) -> list[tuple[str, Conjunct]]:
        places = [""] * len(self.order)
        for place, stream in enumerate(self.order):
            places[stream] = f"${place}"
        own = [each.name for each in self.bound.sources]

        def placed(each: Conjunct) -> str:
            words = meaning(each, own).split(" ")
            return " ".join(places[int(word[1:])] if _is_place(word) else word for word in words)

        return [(placed(each), each) for each in self.bound.conjuncts]

    @cached_property
    def windows(self) -> tuple[Windows, ...]:
        """The windows that a result must be inside one of, in the order of the shared join."""
        plan = self.planned.physical
        return tuple(in_order(each, self.order) for each in plan.branches or (plan.windows,))

    @cached_property
    def key(self) -> "JoinKey":
        """What it has in common with all statements with which it can share a join."""
        plan = self.planned.physical
        streams = [
            (
                canonical(self.planned.relations[each]),
                self.bound.sources[each].item.streaming,
                plan.streams[each].event_time.lower(),
                plan.streams[each].delay,
                plan.streams[each].ahead,
                plan.streams[each].shedding,
                plan.streams[each].idle_after,
            )
            for each in self.order
        ]
        own = {alias.lower(): f"${place}" for place, alias in enumerate(self.aliases)}
        classes = frozenset(
            frozenset((canonical(part.side.text, own), part.type) for part in each.parts)
            for each in self.planned.classes
        )
        hints = frozenset((each.name, each.arguments) for each in self.block.hints)
        tested = (words for words, each in self.conditions.items() if not isinstance(each, Filter))
        joins = self._joins() if self.outer else None
        return JoinKey(tuple(streams), classes, hints, frozenset() if classes else frozenset(tested), joins)

    def _joins(self) -> Hashable:
        kinds = tuple(
            (each.kind, each.sides, each.nearest, each.timed_by, each.timed_to)
            for each in self.bound.tree.joins
        )
        on = frozenset((words, each.on) for words, each in self._meanings if each.on is not None)
        return self.bound.tree.base, kinds, on, self.windows, self.planned.graph.joins


@dataclass(frozen=True)
class Shared:
    """What a member takes of the join that it shares: its output, and the text that runs over its rows.

    ``left`` are the conditions that the text tests.
    """

    member: Member
    output: Output
    text: str
    left: tuple[str, ...]


def apart(member: Member) -> str:
    """Return why a statement cannot share a join with others, empty where it can."""
    plan, sources = member.planned.physical, member.bound.sources
    if member.block.exists or absent_items(sources, member.block):
        return f"it has {plan.kind.words} that WHERE or a path makes"
    if plan.counted:
        return "it has a window of rows"
    if member.outer and not member.block.window_span.of(member.text) and not member.bound.tree.asof:
        return "the windows of its joins are in its conditions"
    if plan.approximate is not None:
        return "it is approximate"
    if plan.lookups:
        return "it reads a table beside the streams"
    if any(each.site is not None for each in plan.streams):
        return "it reads a stream at a site"
    if member.block.withs or not all(each.item.parts for each in sources):
        return "its FROM has more than names of streams"
    if any(hint.name == "SHIP" for hint in member.block.hints):
        return "a hint is about one of its streams"
    if not member.outer and any(
        bound is None for each in member.windows for table in each.tables for row in table for bound in row
    ):
        return "its windows leave the time between two streams open"
    if any(isinstance(each, PredicateCall) for each in member.conditions.values()):
        return "it calls a predicate of several streams"
    columns = [column for source in sources for column in source.relation.columns]
    of_char = {each.name.lower() for each in columns if each.declared is not None}
    if any(of_char & names_in(condition_text(each)) for each in member.conditions.values()):
        return "a condition of it reads a column of type CHAR"
    return ""


def shared_text(members: Sequence[Member]) -> str:
    """Return the SELECT whose join has the results of all members, in the words of the first one."""
    first, common = members[0], common_conditions(members)
    columns = [
        f"{quoted_if_needed(alias)}.{quoted_if_needed(name)}"
        for place, alias in enumerate(first.aliases)
        if first.order[place] not in first.bound.tree.hidden
        for name in _by_case(name for each in members for name in columns_read(each, place, common))
    ]
    hints = ", ".join(
        f"{each.name}({', '.join(each.arguments)})" if each.arguments else each.name
        for each in first.block.hints
    )
    if first.outer:
        items, windows = _joined_items(first), first.block.window_span.of(first.text)
    else:
        items = ", ".join(_item(first, first.bound.sources[each].item) for each in first.order)
        alternatives = dict.fromkeys(each for member in members for each in member.windows)
        windows = " OR ".join(_window(each, first) for each in alternatives)
    conditions = [
        *_equalities(first),
        *map(condition_text, common.values()),
        *_weakest_filters(members, common),
    ]
    where = f" WHERE {' AND '.join(f'({each})' for each in conditions)}" if conditions else ""
    hinted = f"/*+ {hints} */ " if hints else ""
    return f"SELECT {hinted}{', '.join(columns) or '1'} FROM {items} {windows}{where}"


def with_outputs(
    planned: PlannedSelect, members: Sequence[Member]
) -> tuple[PlannedSelect, tuple[Shared, ...]]:
    """Return the plan of ``shared_text`` with an output for each member, and what each takes of it."""
    common = common_conditions(members)
    alike = len({member.windows for member in members}) == 1
    shared = tuple(
        Shared(
            each,
            _output(planned, each, common, alike=alike),
            text_over(planned, each, left_of(each, common)),
            tuple(left_of(each, common)),
        )
        for each in members
    )
    plan = planned.physical
    orders = [chosen_orders(stage) for stage in plan.stages]
    plan = arranged(with_columns(replace(plan, outputs=tuple(each.output for each in shared))), orders)
    validate(plan)
    return replace(planned, physical=plan, sink=shared[0].output.sink), shared


def common_conditions(members: Sequence[Member]) -> dict[str, Conjunct]:
    """Return the conditions that all members have and a join can test, as the first one has them.

    Equalities that make keys are left out.
    """
    first, *others = members
    return {
        words: each
        for words, each in first.conditions.items()
        if not makes_key(first, each)
        and not (isinstance(each, Residual) and isinstance(each.read, Unread))
        and all(words in other.conditions for other in others)
    }


def left_of(member: Member, common: Mapping[str, Conjunct]) -> list[str]:
    """Return the conditions of a member that the shared join does not test, filters of a stream first."""
    left = [
        each
        for words, each in member.conditions.items()
        if words not in common and not makes_key(member, each)
    ]
    # Else in the order in which they are written: one may be there to keep rows from the next.
    return [condition_text(each) for each in sorted(left, key=lambda each: not isinstance(each, Filter))]


def columns_read(member: Member, place: int, common: Mapping[str, Conjunct]) -> Iterator[str]:
    """Yield the columns of a stream that a member reads of joined rows, and those of the same names."""
    stream = member.order[place]
    scan = member.planned.physical.streams[stream]
    listed = {
        str(scan.columns[number].output).lower()
        for owner, number in member.planned.output.columns
        if owner == stream
    }
    texts = [*left_of(member, common), *map(condition_text, common.values())]
    named = {name for text in texts for name in names_in(text)}
    for column in member.bound.sources[stream].relation.columns:
        if column.name.lower() in listed | named:
            yield column.name


def condition_text(condition: Conjunct) -> str:
    """Return a condition as it can be tested on joined rows."""
    if isinstance(condition, Equality):
        return f"{condition.left.text} = {condition.right.text}"
    return condition.text


def _is_place(word: str) -> bool:
    return word.startswith("$") and word[1:].isdigit()


def in_order(windows: Windows, order: Sequence[int]) -> Windows:
    """Return windows with the streams in another order, by their numbers in this one."""
    tables = ([[table[i][j] for j in order] for i in order] for table in windows.tables)
    return Windows(tuple(tuple(map(tuple, table)) for table in tables))


def makes_key(member: Member, condition: Conjunct) -> bool:
    """Return whether a condition is an equality that is in a class of equal values."""
    if not isinstance(condition, Equality):
        return False
    sides = [(side.stream, side.identity) for side in (condition.left, condition.right)]
    classes = (
        [part.identity[:2] for part in each.parts] for each in member.planned.classes if can_be_key(each.type)
    )
    return any(all(side in parts for side in sides) for parts in classes)


def _by_case(names: Iterator[str]) -> list[str]:
    """Return each name once, whatever its case, in a fixed order."""
    return sorted({name.lower(): name for name in names}.values(), key=str.lower)


def _item(member: Member, item: FromItem) -> str:
    text = item.span.of(member.text)
    return text if item.alias is not None else f"{text} AS {quoted_if_needed(item.parts[-1].name)}"


def _joined_items(member: Member) -> str:
    """Return the FROM list of a statement with joins that are not inner ones."""
    return _joined_from(member, 0, len(member.bound.sources))


def _joined_from(member: Member, start: int, stop: int) -> str:
    """Return the joins of some items that follow each other."""
    sources, place = member.bound.sources, start + 1
    text = _item(member, sources[start].item)
    while place < stop:
        each = sources[place]
        right = _joined_from(member, place, place + each.item.joined)
        conditions = [condition_text(one) for one in member.on.get(each.number, ())]
        inner = each.item.kind is JoinKind.INNER
        kind = "CROSS" if inner and not conditions else each.item.kind.value
        match = f" {each.item.match.span.of(member.text)}" if each.item.match else ""
        on = f" ON {' AND '.join(f'({one})' for one in conditions)}" if conditions else ""
        text += f" {kind} JOIN {f'({right})' if each.item.joined > 1 else right}{match}{on}"
        place += each.item.joined
    return text


def _equalities(member: Member) -> Iterator[str]:
    """Yield what makes the keys; of joins that are not inner ones only what WHERE has of it."""
    if member.outer:
        equalities = (each for each in member.conditions.values() if makes_key(member, each))
        yield from map(condition_text, equalities)
        return
    for each in member.planned.classes:
        first, *others = each.parts
        yield from (f"{first.side.text} = {other.side.text}" for other in others)


def _weakest_filters(members: Sequence[Member], common: Mapping[str, Conjunct]) -> Iterator[str]:
    """Yield, by stream, what lets a row through that some member lets through."""
    first = members[0]
    for place, alias in enumerate(first.aliases):
        if first.order[place] in first.planned.physical.optional:
            # Its rows are partners before WHERE tests them.
            continue
        alternatives = []
        for each in members:
            own = [
                condition.text
                for words, condition in each.conditions.items()
                if isinstance(condition, Filter)
                and condition.stream == each.order[place]
                and words not in common
            ]
            if not own:
                break
            alternatives.append(renamed(" AND ".join(f"({one})" for one in own), each.aliases[place], alias))
        else:
            yield " OR ".join(f"({each})" for each in dict.fromkeys(alternatives))


def _window(windows: Windows, member: Member) -> str:
    unit = "" if member.planned.physical.time_kind is TimeKind.INTEGRAL else " MICROSECONDS"
    names = [quoted_if_needed(each) for each in member.aliases]
    terms = [
        f"WINDOW ({names[i]}, {names[j]}) BETWEEN {_least(windows, i, j)}{unit} "
        f"AND {windows.between(i, j)}{unit}"
        for i in range(windows.size)
        for j in range(i + 1, windows.size)
    ]
    return f"({' AND '.join(terms)})"


def _least(windows: Windows, first: int, second: int) -> int:
    bound = windows.between(second, first)
    if bound is None:
        raise AssertionError("statements with open windows share no join")
    return -bound


def _output(planned: PlannedSelect, member: Member, common: Mapping[str, Conjunct], *, alike: bool) -> Output:
    later = {name for each in planned.residual for name in names_in(each.condition)}
    columns = []
    for place, scan_of in enumerate(planned.physical.streams):
        read = {name.lower() for name in columns_read(member, place, common)} | later
        columns += [
            (place, number)
            for number, column in enumerate(scan_of.columns)
            if column.output is not None and column.output.lower() in read
        ]
    match = member.planned.output.match | planned.output.match
    # Whoever needs MATCH_TIME as an event time of Spark's shares nothing.
    return Output(
        member.name,
        tuple(columns),
        () if alike else member.windows,
        match,
        optional=planned.output.optional,
    )


def text_over(planned: PlannedSelect, member: Member, left: Sequence[str]) -> str:
    """Return the text of a member over joined rows, of which it tests the conditions that are ``left``."""
    later = [LaterCondition(each, "") for each in left]
    edits = edits_of(member.block, member.bound, later, planned.sink)
    return apply_edits(member.text, sorted([*edits, *member.names]))
