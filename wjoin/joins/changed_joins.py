"""Statements that go on with the state of others: which join of a checkpoint each takes its results of."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from wjoin.context import Asked
from wjoin.executor.state.identity import Whole, identity
from wjoin.grammar.canonical import canonical
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_statement
from wjoin.grammar.statement_kinds import Query
from wjoin.grammar.tokens import scan
from wjoin.joins.rewrite import Rewriting, rewrite
from wjoin.joins.set_joins import SetJoin, SetStatement, by_itself, groups_in, member_of, of_member
from wjoin.measured.begun import Begun, BegunJoin, Columns, KnownSink, Value, kept_values
from wjoin.measured.kept import Kept
from wjoin.planner.conditions.conjuncts import Filter
from wjoin.planner.sets.changed_join import changed, unfit
from wjoin.planner.sets.shared_join import Member, apart, condition_text
from wjoin.planner.sets.with_history import no_history
from wjoin.spark.cluster import partitions

_NEW = "leave WITH HISTORY out: the statement gets the results that later rows complete"

Group = Sequence[tuple[SetStatement, Member]]
"""Statements, each as it is planned by itself."""


@dataclass(frozen=True)
class _Base:
    """A join of a checkpoint as the state began with it, planned once more."""

    begun: BegunJoin
    rewriting: Rewriting
    member: Member

    def refusal(self, asked: Asked, statement: SetStatement, member: Member, begun: Begun) -> str:
        """Return why a statement cannot take its results of the join, empty where it can."""
        for name in self._tested_with():
            known = begun.parameters.get(name)
            if asked.params.get(name, known) != known:
                return f"the join of its state tests a condition with {known} for the parameter :{name}"
        if not self.begun.sinks:
            part = by_itself(self.rewriting, statement, begun.parameters)
            if found := groups_in(part.sample(*part.takers)):
                return f"Spark has a state of its own for the first statement ({found})"
        return unfit(self.member, member)

    def _tested_with(self) -> Iterator[str]:
        """Yield the parameters of the conditions on several streams; of a filter they are in its text."""
        for each in self.member.conditions.values():
            if not isinstance(each, Filter):
                yield from (token.text[1:] for token in scan(condition_text(each)) if token.text[:1] == ":")

    def is_begun_by(self, asked: Asked, statement: SetStatement, member: Member, begun: Begun) -> bool:
        """Return whether a statement is the one that began the join, word for word, and with its hints."""
        return (
            self.begun.sinks in ("", statement.sink.name)
            and canonical(member.text) == canonical(self.rewriting.written)
            and member.key == self.member.key
            and kept_values(asked.params) == begun.parameters
        )


def begun_with(asked: Asked, parts: Sequence[SetJoin], columns: Mapping[str, Columns]) -> Begun | None:
    """Return what is kept of a set that begins, None where no other can go on with its state.

    ``columns`` are those of the rows of its sinks, by their names.
    """
    joins = (
        BegunJoin(part.rewriting.written.strip(), ", ".join(each.statement.sink.name for each in part.takers))
        for part in parts
    )
    values = kept_values(asked.params)
    return None if values is None else _beginning(joins, values, columns)


def _beginning(joins: Iterable[BegunJoin], values: dict[str, Value], columns: Mapping[str, Columns]) -> Begun:
    return Begun(tuple(joins), values, {name.lower(): KnownSink(each) for name, each in columns.items()})


def begun_alone(asked: Asked, statement: SetStatement, columns: Columns) -> Begun | None:
    """Return the same for a statement by itself."""
    body, values = statement.insert.body, kept_values(asked.params)
    if values is None or not isinstance(body, Query) or body.only_block is None:
        return None
    join = BegunJoin(body.written(asked.text).strip())
    return _beginning([join], values, {statement.sink.name: columns})


def changed_parts(
    asked: Asked,
    statements: Sequence[SetStatement],
    kept: Kept,
    checkpoint: str,
    other: str,
    histories: Collection[str] = (),
) -> tuple[SetJoin, ...] | None:
    """Return the joins of a checkpoint with statements that need not be those that began it.

    A join of which no statement takes results keeps its state. None where it is not known with which
    statements the state began. ``checkpoint``: in what words errors speak of it, ``other``: that it is of
    other statements. ``histories``: sinks, in lower case, that come WITH HISTORY. Raises WJoinError WJ702 for
    a statement that needs more than the state has, and WJ606.
    """
    begun = kept.begun_with
    if begun is None or not hasattr(asked.engine.spark, "_jsparkSession"):
        return None
    if not all(each.plain for each in begun.joins):
        return None
    bases = [_base(asked, begun, number, kept) for number in range(len(begun.joins))]
    _refuse_other(asked, bases, kept, checkpoint)
    groups: list[list[tuple[SetStatement, Member]]] = [[] for _ in bases]
    for each in statements:
        member = member_of(asked, each)
        groups[_place(asked, each, member, bases, begun, other)].append((each, member))
    histories = begun.histories.union(histories)
    files = kept.state(0) is not None
    parts = tuple(_part(asked, *each, histories, files=files) for each in zip(bases, groups, strict=True))
    for part in parts:
        for taker in part.takers:
            if found := groups_in(part.sample(taker)):
                name = taker.statement.sink.name
                raise _refused(other, name, f"it needs more than one result at a time ({found})")
    return parts


def _base(asked: Asked, begun: Begun, number: int, kept: Kept) -> _Base:
    join = begun.joins[number]
    query = parse_statement(join.text, asked.looked_for)
    if not isinstance(query, Query):
        raise AssertionError("a state begins with a window join")
    rewriting = rewrite(asked.asked(join.text, dict(begun.parameters)), query, kept, first=number)
    (done,) = rewriting.done
    names = tuple(each for each in done.edits if each not in done.planned.edits)
    return _Base(join, rewriting, Member("", rewriting.written, query.blocks[0], done.planned, names))


def _refuse_other(asked: Asked, bases: Sequence[_Base], kept: Kept, checkpoint: str) -> None:
    """Compare the joins that are planned once more with those of the checkpoint.

    What stands behind their names may have changed since. Raises WJoinError WJ701 to WJ703.
    """
    found = [each.rewriting.joins for each in bases]
    meaning = {
        f"{part} of {base.begun.sinks}" if base.begun.sinks else part: each
        for base, joins in zip(bases, found, strict=True)
        for part, each in joins.whole.meaning.items()
    }
    plans = [plan for joins in found for plan in joins.plans.values()]
    written = tuple(each for joins in found for each in joins.whole.written)
    whole = Whole({**kept.meaning, **meaning}, written)
    kept.refuse_other(identity(plans, partitions(asked.engine.spark), whole), checkpoint)


def _place(
    asked: Asked,
    statement: SetStatement,
    member: Member,
    bases: Sequence[_Base],
    begun: Begun,
    other: str,
) -> int:
    """Return the number of the join that a statement takes its results of. Raises WJoinError WJ702."""
    reasons = []
    for number, base in enumerate(bases):
        if apart(base.member) and base.is_begun_by(asked, statement, member, begun):
            return number
        reason = base.refusal(asked, statement, member, begun)
        if not reason:
            return number
        reasons.append((member.key.streams != base.member.key.streams, reason))
    # Of the join of the same streams, where there is one.
    _, reason = min(reasons, key=lambda each: each[0])
    raise _refused(other, statement.sink.name, reason)


def _refused(other: str, sink: str, reason: str) -> WJoinError:
    return WJoinError(
        "WJ702", f"{other}; the state cannot be used by the new statement into {sink}: {reason}"
    )


def _part(asked: Asked, base: _Base, group: Group, histories: Collection[str], *, files: bool) -> SetJoin:
    """Return a join of the checkpoint with its statements.

    ``files``: whether the state is in files. Raises WJoinError WJ606 for a history that no worker can make.
    """
    rewriting = base.rewriting
    if group and apart(base.member):
        ((statement, _),) = group
        return by_itself(rewriting, statement, asked.params)
    (done,) = rewriting.done
    reason = no_history(done.planned.physical, shared=files)
    for statement, _ in group:
        if reason and statement.sink.name.lower() in histories:
            message = f"the state has no history for {statement.sink.name}: {reason}"
            raise WJoinError("WJ606", message, help=_NEW)
    planned, shared = changed(done.planned, base.member, [member for _, member in group], histories)
    rewriting.done[0] = replace(done, planned=planned)
    takers = [
        of_member(asked, statement, planned, each, base.member.aliases)
        for (statement, _), each in zip(group, shared, strict=True)
    ]
    return SetJoin(rewriting, tuple(takers))
