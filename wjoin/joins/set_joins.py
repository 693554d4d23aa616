"""The window joins of a statement set: which statements share one, and what each makes of its results."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from wjoin.context import Asked
from wjoin.executor.spark.compile import Compiled
from wjoin.executor.spark.operator import PART, part_column
from wjoin.executor.spark.stages import Stages, made_of
from wjoin.executor.state.identity import Whole
from wjoin.grammar.canonical import canonical
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_statement
from wjoin.grammar.statement_kinds import InsertInto, Query
from wjoin.joins.planned_joins import Joins
from wjoin.joins.rewrite import FIRST, Rewriting, over_joined, rewrite
from wjoin.measured.kept import Kept
from wjoin.planner.plan.block_columns import quoted
from wjoin.planner.plan.physical import Method, Output
from wjoin.planner.planning import PlannedSelect
from wjoin.planner.sets.shared_join import Member, Shared, apart, shared_text, with_outputs
from wjoin.planner.windows.bounds import Clock
from wjoin.sources.catalog import SinkDeclaration

_BY_ROW = frozenset({"Filter", "Generate", "LocalRelation", "LogicalRDD", "Project", "SubqueryAlias", "View"})
"""What Spark may do to joined rows in a set: it makes rows of each row by itself."""


@dataclass(frozen=True)
class SetStatement:
    """A statement of a set and its sink."""

    insert: InsertInto
    sink: SinkDeclaration


@dataclass(frozen=True)
class Taker:
    """A statement of a set as it is planned by itself, the output that it takes, and the text over its rows.

    ``aliases``: by the join's aliases, under which the rows come, the statement's own. ``conditions`` are
    left to Spark for all statements that share the join, ``left`` those for this one alone. ``meaning`` is
    what else makes the statement, ``params`` are the values of the parameters of its text.
    """

    statement: SetStatement
    planned: PlannedSelect
    output: Output
    text: str
    aliases: Mapping[str, str]
    conditions: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    meaning: str = ""
    params: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class SetJoin:
    """Statements of a set that share a window join. ``alone``: why one shares with no other."""

    rewriting: Rewriting
    takers: tuple[Taker, ...]
    alone: str = ""

    @cached_property
    def compiled(self) -> Compiled:
        """The join as DataFrames."""
        return self.rewriting.compiled(0)

    @property
    def stages(self) -> Stages:
        """What makes the results for all of them."""
        stages = self.compiled.stages
        if stages is None:
            raise AssertionError("a part of a set has stages")
        return stages

    @property
    def made(self) -> DataFrame:
        """What the join makes for all of them, by itself."""
        return made_of({0: self.stages})

    @property
    def runs_with_others(self) -> bool:
        """Whether the same tasks can work off its stages and those of other joins."""
        return self.stages.state is not None and self.stages.in_turn

    def sample(self, taker: Taker) -> DataFrame:
        """Return no rows with the columns of a statement's."""
        asked = self.rewriting.asked
        return self.rows(taker, without_rows(asked.engine.spark, self.stages.schema))

    def rows(self, taker: Taker, made: DataFrame) -> DataFrame:
        """Return the rows of a statement of what the join has ``made``."""
        rows, params = self.compiled.rows(taker.output, made), self.rewriting.asked.params
        run = self.rewriting.asked.engine.run
        if taker.conditions:
            tested = f"SELECT * FROM {FIRST} WHERE {' AND '.join(f'({each})' for each in taker.conditions)}"
            rows = over_joined(run, tested, params, partial(_same, rows))
        named = rows.select(*(F.col(quoted(name)).alias(_own(name, taker.aliases)) for name in rows.columns))
        return over_joined(run, taker.text, taker.params, partial(_same, named))


def parts_of(asked: Asked, statements: Sequence[SetStatement], kept: Kept) -> tuple[SetJoin, ...]:
    """Return the joins of a set, each with its statements, in the order in which they are written.

    Raises WJoinError for what is wrong with a statement, and WJ606 for one that cannot be in a set.
    """
    groups: dict[Hashable, list[tuple[SetStatement, Member]]] = {}
    reasons: dict[Hashable, str] = {}
    for number, each in enumerate(statements):
        member = member_of(asked, each)
        reason = apart(member)
        key: Hashable = number if reason else member.key
        groups.setdefault(key, []).append((each, member))
        reasons[key] = reason
    parts: list[SetJoin] = []
    for key, group in groups.items():
        make = _shared if len(group) > 1 else _own_part
        part = make(asked, group, kept, len(parts))
        others = "" if len(groups) == 1 else "no other statement has its streams, keys and hints"
        parts.append(part if len(group) > 1 else replace(part, alone=reasons[key] or others))
    return tuple(parts)


def joins_of(parts: Sequence[SetJoin]) -> Joins:
    """Return the W-joins of a set, and what makes it besides them."""
    found = [part.rewriting.joins for part in parts]
    meaning = {
        f"{words} of {_names(part)}": each
        for part, joins in zip(parts, found, strict=True)
        for words, each in joins.whole.meaning.items()
    }
    meaning |= {
        f"rows of {taker.statement.sink.name}": taker.meaning for part in parts for taker in part.takers
    }
    return Joins(
        tuple(planned for joins in found for planned in joins.planned),
        {number: plan for joins in found for number, plan in joins.plans.items()},
        (),
        Whole(meaning, tuple(written for joins in found for written in joins.whole.written)),
    )


def run_together(parts: Sequence[SetJoin], kept: Kept) -> list[int]:
    """Return the numbers of the joins of a set that run in the same tasks; none but several do."""
    found = [number for number, part in enumerate(parts) if part.runs_with_others]
    return found if len(found) > 1 and kept.together else []


def all_made(parts: Sequence[SetJoin], kept: Kept, beside: Sequence[DataFrame] = ()) -> DataFrame:
    """Return what the joins of a set make, in one DataFrame, with rows ``beside`` that have numbers, too.

    Joins that can run with others do; what several of them read of one name is read once.
    """
    if len(parts) == 1 and not beside:
        return parts[0].made
    together = run_together(parts, kept)
    made = [made_of({number: parts[number].stages for number in together})] if together else []
    made += [_numbered(part.made, number) for number, part in enumerate(parts) if number not in together]
    first, *others = (*made, *beside)
    for each in others:
        first = first.unionByName(each, allowMissingColumns=True)
    return first


def rows_of(parts: Sequence[SetJoin], made: DataFrame) -> Iterator[tuple[SetStatement, DataFrame]]:
    """Yield each statement of a set with its rows of what the joins have ``made``.

    Raises WJoinError WJ606 for a statement whose rows depend on more than one result.
    """
    for number, part in enumerate(parts):
        own = _of_part(part, number, made)
        for taker in part.takers:
            rows = part.rows(taker, own)
            _refuse_groups(taker, rows)
            yield taker.statement, rows


def without_rows(spark: SparkSession, schema: StructType) -> DataFrame:
    """Return a relation with columns: a plan of one leaf, in whose place others can be put."""
    session: Any = spark
    java = session._jsparkSession
    none = session._jvm.java.util.ArrayList()
    return DataFrame(java.createDataFrame(none, java.parseDataType(schema.json())), session)


def _of_part(part: SetJoin, number: int, made: DataFrame) -> DataFrame:
    if PART not in made.columns:
        return made
    own = [F.col(part_column(name, number)).alias(name) for name in part.stages.schema.names]
    return made.filter(F.col(PART) == number).select(*own)


def _numbered(made: DataFrame, number: int) -> DataFrame:
    """Return what a part makes, under names that no other part has."""
    own = (F.col(name).alias(part_column(name, number)) for name in made.columns)
    return made.select(F.lit(number).alias(PART), *own)


def _same(rows: DataFrame, _: int) -> DataFrame:
    """Return the rows of the one join that a statement of a set has."""
    return rows


def _names(part: SetJoin) -> str:
    return ", ".join(taker.statement.sink.name for taker in part.takers)


def _own(name: str, aliases: Mapping[str, str]) -> str:
    """Return the name of a column of joined rows under a statement's own alias."""
    alias, dot, column = name.partition(".")
    return f"{aliases[alias]}{dot}{column}" if alias in aliases else name


def member_of(asked: Asked, statement: SetStatement) -> Member:
    """Return a statement with its one window join planned by itself. Raises WJoinError WJ606 for another."""
    body, name = statement.insert.body, statement.sink.name
    block = body.only_block if isinstance(body, Query) else None
    if not isinstance(body, Query) or block is None:
        found = "no window join" if not isinstance(body, Query) else "several window joins"
        raise _not_in_set(statement, f"the statement into {name} has {found}")
    kept = Kept(asked.engine.spark, None, asked.settings.home())
    rewriting = rewrite(asked, body, kept, runs=False)
    (join,) = rewriting.done
    plan = join.planned.physical
    if not plan.streaming or not plan.stages or plan.method is Method.NATIVE:
        raise _not_in_set(
            statement, f"the statement into {name} joins fewer than two streams by stages of wjoin"
        )
    names = tuple(each for each in join.edits if each not in join.planned.edits)
    return Member(name, rewriting.written, block, join.planned, names)


def _own_part(asked: Asked, group: Sequence[tuple[SetStatement, Member]], kept: Kept, number: int) -> SetJoin:
    """Return the join of a statement that shares it with no other."""
    ((statement, _),) = group
    body = statement.insert.body
    if not isinstance(body, Query):
        raise AssertionError("a member of a set has a window join")
    return by_itself(rewrite(asked, body, kept, first=number), statement, asked.params)


def by_itself(rewriting: Rewriting, statement: SetStatement, params: Mapping[str, object]) -> SetJoin:
    """Return a join with one statement, which is the one that was rewritten."""
    (planned,) = rewriting.planned
    names = {each.name: each.name for each in planned.bound.sources}
    taker = Taker(statement, planned, planned.output, rewriting.text, names, params=params)
    return SetJoin(rewriting, (taker,))


def _shared(asked: Asked, group: Sequence[tuple[SetStatement, Member]], kept: Kept, number: int) -> SetJoin:
    """Return the join that statements share."""
    members = [member for _, member in group]
    text = shared_text(members)
    query = parse_statement(text, asked.looked_for)
    if not isinstance(query, Query):
        raise AssertionError("a shared join has a window clause")
    rewriting = rewrite(asked.asked(text, asked.params), query, kept, first=number)
    (join,) = rewriting.done
    planned, shared = with_outputs(join.planned, members)
    rewriting.done[0] = replace(join, planned=planned)
    takers = (
        of_member(asked, statement, planned, each, planned.graph.names, number)
        for (statement, _), each in zip(group, shared, strict=True)
    )
    return SetJoin(rewriting, tuple(takers))


def of_member(
    asked: Asked,
    statement: SetStatement,
    planned: PlannedSelect,
    shared: Shared,
    aliases: Sequence[str],
    number: int = 0,
) -> Taker:
    """Return a statement that takes its results of a join, whose streams have ``aliases`` there.

    ``number`` is that of the join on the checkpoint.
    """
    member = shared.member
    places = {alias.lower(): f"${number}.{place}" for place, alias in enumerate(member.aliases)}
    windows = " OR ".join(sorted(str(one.tables[Clock.TIME]) for one in member.windows))
    return Taker(
        statement,
        member.planned,
        shared.output,
        shared.text,
        dict(zip(aliases, member.aliases, strict=True)),
        tuple(each.condition for each in planned.residual),
        shared.left,
        f"{canonical(shared.text, places)} WINDOW {windows}",
        asked.params,
    )


def _refuse_groups(taker: Taker, rows: DataFrame) -> None:
    """Refuse a statement whose rows depend on more than one result: WJoinError WJ606.

    A sink of a set gets a micro-batch at a time, so a group over several would be cut.
    """
    found = groups_in(rows)
    if found is not None:
        name = taker.statement.sink.name
        raise _not_in_set(
            taker.statement, f"the statement into {name} needs more than one result at a time ({found})"
        )


def groups_in(rows: DataFrame) -> str | None:
    """Return what of a statement over joined rows needs more than one result at a time, None for nothing."""
    frame: Any = rows
    plan = frame._jdf.queryExecution().analyzed()
    found = next((name for name in _operators(plan) if name not in _BY_ROW), None)
    return "a subquery" if found is None and plan.subqueriesAll().size() else found


def _operators(plan: Any) -> Iterator[str]:
    """Yield the names of the operators of a plan of Spark's."""
    yield str(plan.nodeName())
    children = plan.children()
    for number in range(children.size()):
        yield from _operators(children.apply(number))


def _not_in_set(statement: SetStatement, message: str) -> WJoinError:
    return WJoinError(
        "WJ606",
        f"{message}, which a statement set cannot run",
        span=statement.insert.body.span,
        help="take it out of the set, and run it as an INSERT INTO of its own",
    )
