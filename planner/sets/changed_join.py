"""Statements that take their results of the join of a checkpoint, which was planned for others.

The state has the rows and columns that its first statements needed, for as long as they needed them.
Another one can go on with it that asks for no more: windows inside those, columns that are stored, filters
at least as strict. The join goes on to write the state as its first statements have it, so that every later
change, also one back to them, finds the same.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from wjoin.grammar.join_kinds import JoinKind
from wjoin.grammar.tokens import names_in
from wjoin.parts.kernels.registry import KERNELS, first_usable
from wjoin.parts.kernels.runs import Order
from wjoin.planner.catalog import INTEGRAL, Column
from wjoin.planner.conditions.conjuncts import ColumnComparison, Conjunct, Equality, Filter, Residual
from wjoin.planner.conditions.implied import implied
from wjoin.planner.plan.block_columns import stored_column
from wjoin.planner.plan.checks import Comparison, Operand
from wjoin.planner.plan.physical import Output, Passes, PhysicalPlan, ScanColumn, StreamScan
from wjoin.planner.plan.probes import arranged_stage, chosen_orders
from wjoin.planner.plan.stage_kinds import Join, Stage
from wjoin.planner.plan.validate import validate
from wjoin.planner.planning import PlannedSelect
from wjoin.planner.sets.shared_join import (
    Member,
    Shared,
    apart,
    condition_text,
    in_order,
    left_of,
    makes_key,
    text_over,
)
from wjoin.planner.shape.shape import LaterCondition
from wjoin.planner.text.aliases import renamed
from wjoin.planner.windows.bounds import Windows, hull
from wjoin.planner.windows.lengths import human

_NUMBERS = ("float", "double", "decimal", *INTEGRAL)
"""What the types begin with whose values are compared as numbers."""


def unfit(base: Member, member: Member) -> str:
    """Return what a statement asks for that the join of a checkpoint does not have, empty for nothing.

    ``base`` is the SELECT of that join, as it was planned when the state began.
    """
    if reason := apart(base) or apart(member):
        return f"{reason}, so only the statement that began the state can resume from it"
    kept, own = base.key, member.key
    if kept.streams != own.streams:
        return "it has other streams, event times or delays"
    if kept.classes != own.classes:
        return "it has other equalities between the streams, which determine the layout of the state"
    if kept.hints != own.hints:
        return "it has other hints"
    if kept.joins != own.joins:
        return "it has other joins, windows or conditions of ON, which say which rows have no partner"
    return (
        _wider(base, member)
        or _lets_through(base, member)
        or _tests_less(base, member)
        or _lacks(base, member)
    )


def changed(
    planned: PlannedSelect, base: Member, members: Sequence[Member], histories: Collection[str] = ()
) -> tuple[PlannedSelect, tuple[Shared, ...]]:
    """Return the plan of the join of a checkpoint with an output for each member, and what each takes of it.

    ``planned`` is that join as it was planned when the state began. All members fit it (``unfit``); without
    any it makes nothing, and keeps its state. ``histories`` are the members, in lower case, that have the
    results among stored rows, too.
    """
    plan = planned.physical
    tested, left = _tested(base, members), _left_to_spark(planned, base, members)
    scans = tuple(
        _scan(base, stream, [each for member in members for each in _columns(base, member, stream, tested)])
        for stream in range(len(plan.streams))
    )
    windows = [_of_plan(base, each) for each in members]
    narrow = _narrows(plan)
    # What is inside the windows of all needs no choice, but for stored rows: they were kept for wider ones.
    begins = any(each.name.lower() in histories for each in members)
    alike = narrow and len(set(windows)) == 1 and len(windows[0]) == 1 and not begins
    plan = replace(plan, streams=scans, begun=plan)
    shared = []
    for each, own in zip(members, windows, strict=True):
        later = left_of(each, tested)
        match = each.planned.output.match | planned.output.match
        columns = tuple(_operands(plan, planned, base, each, tested, left))
        history = each.name.lower() in histories
        inside = () if alike or base.outer else own
        optional = planned.output.optional
        output = Output(each.name, columns, inside, match, optional=optional, history=history)
        shared.append(Shared(each, output, text_over(planned, each, later), tuple(later)))
    outputs = tuple(each.output for each in shared) or plan.outputs
    plan = replace(plan, outputs=outputs)
    last = plan.stages[-1]
    if not members:
        # The rows that an outer join keeps go on to be marked.
        if not plan.optional:
            plan = plan.with_stage(len(plan.stages) - 1, replace(last, probes=()))
    elif narrow:
        # Where the first statements had a pass for each of their windows, these have one.
        alternatives = tuple(dict.fromkeys(one for each in windows for one in each)) if plan.apart else ()
        several = len(alternatives) > 1
        plan = replace(
            plan, branches=alternatives if several else (), passes=plan.passes if several else Passes.HULL
        )
        last = last if _keeps_checks(base, members) else _without_checks(last)
        asked = replace(plan, windows=hull([one for each in windows for one in each]))
        probes = arranged_stage(asked, last, chosen_orders(last)).probes
        plan = plan.with_stage(0, replace(last, probes=probes))
    validate(plan)
    return replace(planned, physical=plan, residual=left, sink=outputs[0].sink), tuple(shared)


def _narrows(plan: PhysicalPlan) -> bool:
    """Return whether the join may look within narrower windows and test less: its state has no results.

    Of a join that is not an inner one the windows and conditions say what has no partner.
    """
    (first, *others) = plan.stages
    return not others and isinstance(first, Join) and first.kind is JoinKind.INNER


def _wider(base: Member, member: Member) -> str:
    plan = base.planned.physical
    if not _narrows(plan):
        inside = all(any(wide.includes(each) for wide in base.windows) for each in member.windows)
        return "" if inside else "its windows are not inside those of the stored partial results"
    wide = in_order(plan.windows, base.order)
    for each in member.windows:
        for i in range(each.size):
            for j in range(each.size):
                bound, kept = each.between(i, j), wide.between(i, j)
                if bound is not None and kept is not None and bound > kept:
                    one, other = member.aliases[i], member.aliases[j]
                    found, known = (human(one, plan.time_kind) for one in (bound, kept))
                    return (
                        f"it lets {other} be {found} later than {one}, and rows of {one} are gone when "
                        f"{other} can be more than {known} later"
                    )
    return ""


def _lets_through(base: Member, member: Member) -> str:
    for condition in base.conditions.values():
        if not isinstance(condition, Filter):
            continue
        place = base.order.index(condition.stream)
        alias, own = base.aliases[place], member.aliases[place]
        known = [
            renamed(each.text, own, alias)
            for each in member.conditions.values()
            if isinstance(each, Filter) and member.order.index(each.stream) == place
        ]
        columns = base.bound.sources[condition.stream].relation.columns
        numeric = {each.name.lower() for each in columns if each.type.lower().startswith(_NUMBERS)}
        if not implied(condition.text, known, numeric):
            return f"the state has only the rows of {own} for which {renamed(condition.text, alias, own)}"
    return ""


def _joined(base: Member) -> dict[str, Conjunct]:
    """Return the conditions on several streams that make no key."""
    return {
        words: each
        for words, each in base.conditions.items()
        if not isinstance(each, Filter) and not makes_key(base, each)
    }


def _tests_less(base: Member, member: Member) -> str:
    plan = base.planned.physical
    missing = [each for words, each in _joined(base).items() if words not in member.conditions]
    if not missing or (_narrows(plan) and plan.stages[0].placement.band is None):
        return ""
    return f"it leaves out {condition_text(missing[0])}, which determine the layout of the state"


def _lacks(base: Member, member: Member) -> str:
    tested = _tested(base, [member])
    for place, stream in enumerate(base.order):
        for column in _columns(base, member, stream, tested):
            if _stored(base, _scan(base, stream, [column]), stream, column) is None:
                return f"the state does not have the column {column.name} of {member.aliases[place]}"
    return ""


def _keeps_checks(base: Member, members: Sequence[Member]) -> bool:
    """Return whether all members have all that the join tests of several streams."""
    return all(words in each.conditions for words in _joined(base) for each in members)


def _tested(base: Member, members: Sequence[Member]) -> dict[str, Conjunct]:
    """Return the conditions that all results of the join satisfy."""
    filters = {words: each for words, each in base.conditions.items() if isinstance(each, Filter)}
    return filters | (_joined(base) if _keeps_checks(base, members) else {})


def _left_to_spark(
    planned: PlannedSelect, base: Member, members: Sequence[Member]
) -> tuple[LaterCondition, ...]:
    """Return the conditions on the joined rows that all members have: those that make keys, at least."""
    if _keeps_checks(base, members):
        return planned.residual
    texts = {condition_text(each) for each in _joined(base).values()}
    return tuple(each for each in planned.residual if each.condition not in texts)


def _without_checks(stage: Stage) -> Stage:
    """Return a stage that tests its keys only."""
    keys = tuple(each for each in stage.checks if isinstance(each, Comparison) and each.operator == "=")
    by_value = any(KERNELS[each].order is Order.VALUE for each in stage.kernels)
    return replace(
        stage,
        inputs=tuple(replace(each, index=None) for each in stage.inputs),
        kernels=first_usable(keyed=stage.keyed, indexed=False) if by_value else stage.kernels,
        checks=keys,
    )


def _of_plan(base: Member, member: Member) -> tuple[Windows, ...]:
    """Return the windows of a member by the numbers that the streams have in the plan."""
    places = [base.order.index(stream) for stream in range(len(base.order))]
    return tuple(in_order(each, places) for each in member.windows)


def _columns(base: Member, member: Member, stream: int, tested: Mapping[str, Conjunct]) -> Iterator[Column]:
    """Yield the columns of a stream of the join that a member reads of joined rows."""
    own = member.order[base.order.index(stream)]
    scan = member.planned.physical.streams[own]
    read = {
        str(scan.columns[number].output).lower()
        for owner, number in member.planned.output.columns
        if owner == own
    }
    for words, each in member.conditions.items():
        if words not in tested and not makes_key(member, each):
            read |= _names_read(each, own)
    for column in base.bound.sources[stream].relation.columns:
        if column.name.lower() in read:
            yield column


def _names_read(condition: Conjunct, stream: int) -> set[str]:
    match condition:
        case Filter(owner, text):
            return names_in(text) if owner == stream else set()
        case Equality(left, right):
            columns = (*left.columns, *right.columns)
        case ColumnComparison(left, _, right):
            columns = (*left.read, *right.read)
        case Residual(_, columns):
            pass
        case _:
            raise AssertionError("statements that call a predicate share no join")
    return {each.column.name.lower() for each in columns if each.stream == stream}


def _scan(base: Member, stream: int, read: Sequence[Column]) -> StreamScan:
    """Return what is read of a stream, with columns that are stored already under names for them."""
    scan, source = base.planned.physical.streams[stream], base.bound.sources[stream]
    columns = list(scan.columns)
    for each in read:
        made = ScanColumn(source.expression(each.name), each.type, each.name)
        if any(str(one.output).lower() == each.name.lower() for one in columns if one.output):
            continue
        unnamed = replace(made, output=None)
        if unnamed in columns and not each.type.lower().startswith("interval"):
            columns[columns.index(unnamed)] = made
        else:
            columns.append(made)
    return replace(scan, columns=tuple(columns))


def _stored(base: Member, scan: StreamScan, stream: int, column: Column) -> int | None:
    """Return the number of the scan column with a column of the relation, None where no block has it."""
    plan = base.planned.physical
    known = {name for each in plan.stages[-1].inputs for name in each.columns}
    plan = replace(plan, streams=(*plan.streams[:stream], scan, *plan.streams[stream + 1 :]))
    for number, each in enumerate(scan.columns):
        if each.output is not None and each.output.lower() == column.name.lower():
            return number if stored_column(plan, stream, number).name in known else None
    return None


def _operands(
    plan: PhysicalPlan,
    planned: PlannedSelect,
    base: Member,
    member: Member,
    tested: Mapping[str, Conjunct],
    left: Sequence[LaterCondition],
) -> Iterator[Operand]:
    """Yield the scan columns that a member reads, and what is left to Spark for all of them."""
    later = {name for each in left for name in names_in(each.condition)}
    for stream, scan in enumerate(plan.streams):
        numbers = [_stored(base, scan, stream, each) for each in _columns(base, member, stream, tested)]
        numbers += [
            number
            for owner, number in planned.output.columns
            if owner == stream and str(scan.columns[number].output).lower() in later
        ]
        yield from ((stream, number) for number in dict.fromkeys(numbers) if number is not None)
