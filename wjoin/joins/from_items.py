"""The FROM items of a W-join: their rows, what is declared of them, and what may be wrong with them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from wjoin.executor.spark.arrival import part_of
from wjoin.grammar.errors import WJoinWarning
from wjoin.grammar.syntax import FromItem, SelectBlock
from wjoin.joins.trials import sampled
from wjoin.measured.kept import Kept
from wjoin.planner.bind.lineage import session_name
from wjoin.planner.catalog import SOURCE_HOME, Origin, Relation
from wjoin.planner.choose.layouts import UNKNOWN, LayoutRule
from wjoin.planner.plan.block_columns import quoted
from wjoin.planner.plan.physical import TimeKind
from wjoin.planner.planning import PlannedSelect
from wjoin.sources.catalog import DATAFRAME, StreamDeclaration
from wjoin.sources.site_streams import kept_whole, site_facts, slow_link

PLACEHOLDER = re.compile(r"\b__wjoin_input_(\d+)\b")
"""What stands for the joined rows of another W-join, by its number."""


@dataclass(frozen=True)
class FromSource:
    """A FROM item of a W-join: as it is written, a query for its rows, and these.

    ``declared`` is the stream that it names, None where it is none. ``relation`` is what the planner knows.
    """

    item: FromItem
    written: str
    query: str
    frame: DataFrame
    declared: StreamDeclaration | None
    relation: Relation

    @property
    def alias(self) -> str:
        """The name by which the statement reads it."""
        if self.item.alias is not None:
            return self.item.alias.name
        return self.item.parts[-1].name if self.item.parts else ""

    @property
    def has_names(self) -> bool:
        """Whether it is a stream whose source knows its columns by name, in any order."""
        if self.declared is None or self.declared.derived or self.declared.source == "view":
            return False
        statement = self.declared.statement
        formats = () if statement is None else (statement.provider, statement.record_format)
        return all(each is None or each.name.lower() != "csv" for each in formats)

    @property
    def computed(self) -> Iterator[str]:
        """The computed columns of the stream, as they are declared."""
        if self.declared is not None and self.declared.statement is not None:
            for each in self.declared.statement.computed:
                yield f"{self.declared.name}.{each.name.name} AS {each.expression}"

    def with_part(self) -> "FromSource":
        """Return it with what its source tells of where rows live, where nothing else does."""
        rows = self._rows
        if rows is None or self.relation.home or not self.relation.streaming:
            return self
        found = part_of(rows)
        return self if found is None else replace(self, relation=replace(self.relation, part=found[0]))

    def with_homes(self) -> DataFrame:
        """Return its rows with the part of its source that each comes from."""
        found = None if self._rows is None else part_of(self._rows)
        if self._rows is None or found is None:
            raise ValueError(f"nothing tells where the rows of {self.alias} come from")
        columns = [self._rows[quoted(name)] for name in self.frame.columns]
        return self._rows.select(*columns, found[1].alias(SOURCE_HOME))

    @property
    def _rows(self) -> DataFrame | None:
        """Its rows as its source has them, None where they are not those of one."""
        declared = self.declared
        if declared is None or declared.derived or declared.site is not None:
            return None
        if declared.statement is not None and declared.statement.unique:
            # Which of several alike is left is chance.
            return None
        return declared.rows

    def sample(self) -> DataFrame | None:
        """Return what a sample of its rows may be taken of; not of the result of another W-join."""
        return None if PLACEHOLDER.search(self.query) else sampled(self.frame, self.declared)


def name_in_session(item: FromItem) -> str | None:
    """Return the name that a FROM item has in the session, None where it has none."""
    return session_name([part.name for part in item.parts]) if item.parts else None


def query_of(text: str, block: SelectBlock, item: FromItem) -> str:
    """Return a query for the rows of a FROM item, under the WITH clauses of its block."""
    found = f"SELECT * FROM {item.relation.of(text)}"
    for clause in reversed(block.withs):
        found = f"{clause.of(text)} {found}"
        if clause is not block.withs[0]:
            found = f"SELECT * FROM ({found})"
    return found


def told_by_sites(relation: Relation, declared: StreamDeclaration | None) -> Relation:
    """Return a relation with what its sites tell now, where it is at sites."""
    if declared is None or declared.site is None or declared.statement is None:
        return relation
    types = {each.name: each.type for each in relation.columns}
    facts, told = site_facts(declared.site, declared.statement, types)
    return replace(relation, site=facts, statistics={**told, **relation.statistics})


def as_kept(kept: Kept | None, place: int, sources: list[FromSource]) -> tuple[list[FromSource], LayoutRule]:
    """Return the FROM items of a W-join as a checkpoint has them, and which layouts of state it allows.

    ``place`` is the number of the W-join on the checkpoint.
    """
    if kept is None or not any(each.relation.streaming for each in sources):
        return sources, UNKNOWN
    layouts, joins = kept.layout(place), kept.measured()
    measured = joins[place] if place < len(joins) else {}
    found = []
    for number, each in enumerate(sources):
        relation = each.relation
        if layouts.written is not None and each.has_names:
            relation = layouts.written.relation(number, relation)
        found.append(replace(each, relation=replace(relation, measured=measured.get(str(number)))))
    return found, layouts


def dated_otherwise(planned: PlannedSelect, sources: Sequence[FromSource]) -> frozenset[int]:
    """Return the streams with another event time than that of their sites, which keep all rows."""
    scans = zip(sources, planned.physical.streams, strict=True)
    return frozenset(
        number
        for number, (each, scan) in enumerate(scans)
        if each.relation.streaming
        and each.relation.site is not None
        and not each.relation.site.dated_by(scan.event_time)
    )


def warnings_of(planned: PlannedSelect, sources: Sequence[FromSource]) -> Iterator[tuple[str, WJoinWarning]]:
    """Yield what is to be told of the streams of a W-join, with a key: once in a session."""
    if planned.physical.streaming:
        yield from _delays(planned, sources)
        yield from _links(planned, sources)
    yield from _natural_times(planned)
    for number in sorted(dated_otherwise(planned, sources)):
        each, time = sources[number], planned.physical.streams[number].event_time
        if each.relation.site is not None:
            warning = kept_whole(each.written, time, each.relation.site, each.item.span)
            yield f"{each.item.parts[-1].name.lower()}.site.{time}", warning


def _delays(planned: PlannedSelect, sources: Sequence[FromSource]) -> Iterator[tuple[str, WJoinWarning]]:
    """Streams whose rows may be dropped as late because nobody has told their delay."""
    example = "10" if planned.physical.time_kind is TimeKind.INTEGRAL else "INTERVAL 10 SECONDS"
    for number in planned.undeclared:
        time, alias = planned.physical.streams[number].event_time, planned.graph.names[number]
        each, declared = sources[number], sources[number].declared
        relation = each.written if each.item.parts else "(…)"
        name = alias if declared is None else declared.name
        remedy = f"{relation} WATERMARK {time} DELAY OF {example} AS {alias}"
        if declared is not None and declared.source == DATAFRAME:
            remedy = f"session.stream('{name}', …, event_time='{time}', delay='10 seconds')"
        elif declared is not None and not declared.derived:
            remedy = f"CREATE STREAM {name} … WATERMARK {time} DELAY OF {example}"
        yield (
            f"{declared.name.lower() if declared else relation}.{time}",
            WJoinWarning(
                "WJ801",
                f"{name} has no declared delay on {time}, so "
                "a row that is older than one of an earlier micro-batch is dropped as late",
                span=each.item.span,
                help=f"declare it: {remedy}; a delay of 0 where rows are in order",
            ),
        )


def _natural_times(planned: PlannedSelect) -> Iterator[tuple[str, WJoinWarning]]:
    """NATURAL JOINs that compare event times, so that windows say nothing."""
    for pair in planned.bound.natural:
        columns = [*pair.left, pair.right]
        times = [planned.bound.times[each.stream] for each in columns]
        if all(time and time.column == each.column for time, each in zip(times, columns, strict=True)):
            first, second = (
                f"{planned.graph.names[each.stream]}.{each.column.name}" for each in columns[-2:]
            )
            message = (
                f"NATURAL JOIN compares the event times: only rows of one instant, {first} = {second}, meet"
            )
            remedy = "name the columns to compare: JOIN … USING (column, …)"
            yield f"{first} = {second}", WJoinWarning("WJ824", message, span=pair.span, help=remedy)


def _links(planned: PlannedSelect, sources: Sequence[FromSource]) -> Iterator[tuple[str, WJoinWarning]]:
    """Sites whose link is known to bring rows more slowly than they come."""
    if planned.physical.time_kind is TimeKind.INTEGRAL:
        return
    for each in planned.shipments:
        known = (planned.statistics[each.stream].rate, each.bandwidth)
        if each.keeps_up or any(one.origin is Origin.DEFAULT for one in known):
            continue
        source = sources[each.stream]
        stream = source.written if source.item.parts else planned.graph.names[each.stream]
        yield f"{stream.lower()}.link", slow_link(stream, each, source.item.span)


def dated(sources: Sequence[FromSource]) -> frozenset[int]:
    """Return the FROM items that are streams, declared or by what they read."""
    return frozenset(
        number
        for number, each in enumerate(sources)
        if each.declared is not None or each.relation.streaming or each.relation.derived
    )
