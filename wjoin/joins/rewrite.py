"""A statement with W-joins to a statement that Spark runs, over the joined DataFrames.

The innermost W-join is planned and cut out of the text first; where others are left, the
text is read again until no W-join remains. The user's own text around the joins reaches Spark as written.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import Any, TypeVar

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame

from wjoin.context import Context
from wjoin.executor.sites.stream import SiteStream
from wjoin.executor.spark.compile import Counting, HeldStream, compile_plan
from wjoin.executor.spark.meter import Meter
from wjoin.executor.state.identity import COMPUTED, Whole
from wjoin.grammar.canonical import canonical
from wjoin.grammar.errors import WJoinError, WJoinWarning
from wjoin.grammar.parser import parse_statement
from wjoin.grammar.spans import Span
from wjoin.grammar.suggestions import suggestion
from wjoin.grammar.syntax import FromItem, InsertInto, Query, SelectBlock
from wjoin.joins.delays import output_delays, relation_delays
from wjoin.joins.names import invented_names
from wjoin.joins.predicates import called_predicates
from wjoin.joins.relations import SparkTypes, describe
from wjoin.joins.trials import SampleTrials, sampled
from wjoin.measured.dropped import watch
from wjoin.measured.kept import Kept
from wjoin.planner.bind.lineage import session_name
from wjoin.planner.bind.written import in_order
from wjoin.planner.catalog import Delays, Origin, Relation
from wjoin.planner.choose.layouts import UNKNOWN
from wjoin.planner.plan.physical import Method, PhysicalPlan, Shipping, TimeKind
from wjoin.planner.planning import Edit, PlannedSelect, apply_edits, plan_select, statement_meaning
from wjoin.queries.compiled import remember
from wjoin.settings.options import require_operator, require_streaming
from wjoin.sources.catalog import DATAFRAME, StreamDeclaration
from wjoin.sources.site_leases import AtSites, keep_rows
from wjoin.sources.site_streams import held_at, kept_whole, read_as, site_facts, slow_link
from wjoin.sources.site_ways import Revising, way_file
from wjoin.spark.cluster import lasting_cores, weighed_with
from wjoin.spark.failures import first_line, placed
from wjoin.udfs.predicate import Predicate

Placed = TypeVar("Placed", WJoinError, WJoinWarning)

_TOLD = 120
"""Characters of a statement with which a failure in a worker is told."""

_PLACEHOLDER = re.compile(r"\b__wjoin_input_(\d+)\b")


@dataclass(frozen=True)
class Joins:
    """The W-joins of a statement as they are planned, innermost first.

    ``plans`` has them by the numbers under which they are compiled, ``meters`` those of a metered
    statement. ``whole`` is what else makes the statement.
    """

    planned: tuple[PlannedSelect, ...]
    plans: dict[int, PhysicalPlan]
    meters: tuple[Meter, ...]
    whole: Whole


def rewrite(
    context: Context,
    text: str,
    query: Query,
    params: dict[str, Any],
    kept: Kept | None = None,
    *,
    metered: bool = False,
) -> "Rewriting":
    """Return a query with its W-joins planned, by what is kept beside its checkpoint.

    ``query`` is a part of ``text``, ``metered`` where EXPLAIN ANALYZE runs it.
    """
    piece = " " * query.span.start + query.span.of(text)
    rewriting = Rewriting(context, params, text, piece, query, kept, metered)
    rewriting.plan()
    return rewriting


def joined_rows(
    context: Context, text: str, query: Query, params: dict[str, Any], kept: Kept | None = None
) -> tuple[DataFrame, Joins]:
    """Return the rows of a query and its W-joins (see ``rewrite``).

    What Spark refuses of the edited text is an error at the place of the query.
    """
    rewriting = rewrite(context, text, query, params, kept)
    return rewriting.run_placed(), rewriting.joins


def joined_view(
    context: Context, text: str, query: Query, params: dict[str, Any]
) -> tuple[DataFrame, Delays]:
    """Return the rows of a query (see ``joined_rows``) and the delays of its columns."""
    rewriting = rewrite(context, text, query, params)
    rows = rewriting.run_placed()
    return rows, rewriting.delays(rewriting.text, lambda: rows) or {}


@dataclass
class Rewriting:
    """A query on its way: its present text, the plans made, and what they join.

    A plan is compiled when its rows are first asked for, so that EXPLAIN need not wait for that;
    ``countings`` say what is counted of each. ``kept`` is what lies beside the checkpoint of the
    statement; it is asked where a join streams. Where the statement is ``metered``, each plan has a
    meter that counts what it does over tables.
    """

    context: Context
    parameters: dict[str, Any]
    original: str
    text: str
    statement: Query
    kept: Kept | None = None
    metered: bool = False
    planned: list[PlannedSelect] = field(default_factory=list)
    inputs: list[list[DataFrame]] = field(default_factory=list)
    sites: list[dict[int, SiteStream]] = field(default_factory=list)
    undated: list[frozenset[int]] = field(default_factory=list)
    told: list[dict[int, Path]] = field(default_factory=list)
    held: list[dict[int, HeldStream]] = field(default_factory=list)
    frames: dict[str, DataFrame] = field(default_factory=dict)
    passes: list[tuple[Edit, ...]] = field(default_factory=list)
    countings: list[Counting] = field(default_factory=list)
    computed: list[str] = field(default_factory=list)
    relations: list[list[str]] = field(default_factory=list)
    written: str = ""
    predicates: Mapping[str, Predicate] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Keep the statement as it was written, and find the predicates that it may call."""
        self.written = self.text
        self.predicates = called_predicates(self.context.engine.spark, self.text)

    def run(self) -> DataFrame:
        """Return the statement's DataFrame."""
        return self.query(self.text)

    @property
    def joins(self) -> Joins:
        """The W-joins that are planned."""
        pairs = zip(self.countings, self.planned, strict=True)
        plans = {counting.query: planned.physical for counting, planned in pairs}
        meters = tuple(each.meter for each in self.countings if each.meter is not None)
        return Joins(tuple(self.planned), plans, meters, self._whole())

    def _whole(self) -> Whole:
        """Return what makes the statement besides its joins: its text, parameters, computed columns."""
        parts = statement_meaning(self.text, self.planned, self.relations)
        parts["values"] = self._values(" ".join(parts.values()).split(" "))
        made = enumerate(sorted(set(map(canonical, self.computed))))
        parts.update((f"{COMPUTED} {number}", each) for number, each in made)
        return Whole(parts, tuple(each.written for each in self.planned))

    def _values(self, tokens: Iterable[str]) -> str:
        """Return the values of the parameters among some tokens."""
        named = {token[1:] for token in tokens if token.startswith(":")}
        return " ".join(
            f"{name} = {self.parameters[name]}" for name in sorted(named & self.parameters.keys())
        )

    def run_placed(self) -> DataFrame:
        """Return the statement's DataFrame; what Spark refuses is an error at the place of the query."""
        with placed(self.original, self.statement.span):
            return self.run()

    def query(self, text: str) -> DataFrame:
        """Run a piece of Spark SQL that may read the joined DataFrames."""
        numbers = {int(number) for number in _PLACEHOLDER.findall(text)}
        if self.planned and numbers:
            text = text.replace("{", "{{").replace("}", "}}")
            text = _PLACEHOLDER.sub(lambda found: "{" + found.group() + "}", text)
        return self._run(text, {_placeholder(number): self._compiled(number) for number in numbers})

    def _run(self, text: str, frames: Mapping[str, DataFrame]) -> DataFrame:
        """Run a piece of Spark SQL with the statement's parameters and DataFrames for its ``{names}``."""
        arguments: dict[str, object] = {"args": self.parameters} if self.parameters else {}
        return self.context.engine.run(text, **arguments, **frames)

    def _compiled(self, number: int) -> DataFrame:
        """Return the joined rows of a plan."""
        name = _placeholder(number)
        if name not in self.frames:
            if self.planned[number].physical.streaming:
                watch(self.context.engine.spark)
                remember(self.countings[number].query, self.planned[number])
            if self.sites[number]:
                query, planned = self.countings[number].query, self.planned[number]
                revising = Revising(query, planned, self.told[number])
                join = AtSites(self.sites[number], revising, self.undated[number])
                keep_rows(self.context.engine.spark, query, join)
            compiled = compile_plan(
                self.planned[number].physical,
                self.inputs[number],
                self.countings[number],
                self.context.settings.stretch(),
                self.predicates,
                shorten(self.written, _TOLD, placeholder=" …"),
                self.sites[number],
                self.held[number],
                lasting_cores(self.context.engine.spark, self.context.settings.costs()),
                () if self.kept is None else self.kept.fingerprints(number, self.planned[number].physical),
            )
            self.frames[name] = compiled.rows(self.planned[number].output)
        return self.frames[name]

    def plan(self) -> None:
        """Plan every W-join of the statement, innermost first; the text around one is read again after it."""
        blocks = self.statement.blocks
        while blocks:
            try:
                self._join(_innermost(blocks))
            except WJoinError as error:
                raise self._placed(error) from error.__cause__
            last = len(blocks) == 1 and not blocks[0].nested
            blocks = () if last else _blocks(self.text)

    def _join(self, block: SelectBlock) -> None:
        inputs, relations, aliases, samples = [], [], [], []
        for item in block.items:
            frame = self._frame(block, item)
            inputs.append(frame)
            samples.append(partial(self._sampled, block, item, frame))
            name = _session_name(item)
            known = {} if name is None else self.context.catalog.known(name)
            relation = describe(frame, self._declaration(block, item, frame), known)
            declared = self._declared(block, item)
            relation = _told_by_sites(relation, declared)
            relations.append(
                replace(relation, watermark=relation.watermark or self._watermarked(block, item))
            )
            if declared is not None and declared.statement is not None:
                made = declared.statement.computed
                self.computed += [f"{declared.name}.{each.name.name} AS {each.expression}" for each in made]
            aliases.append(item.alias.name if item.alias else item.parts[-1].name if item.parts else "")
        layouts = UNKNOWN
        if self.kept is not None and any(each.streaming for each in relations):
            layouts = self.kept.layout(len(self.planned))
            streams = zip(relations, aliases, layouts.named(aliases), strict=True)
            relations = [self._measured(*each) for each in streams]
            if layouts.written is not None:
                orders = zip(block.items, relations, layouts.written.columns, strict=False)
                relations = [
                    in_order(each, names) if self._has_names(block, item) else each
                    for item, each, names in orders
                ]
        placeholder = _placeholder(len(self.planned))
        spark = self.context.engine.spark
        types = SparkTypes(spark, aliases, inputs)
        planned = plan_select(
            self.text,
            block,
            tuple(relations),
            types,
            self.parameters,
            placeholder,
            self.context.settings.hint_defaults(),
            weighed_with(spark, self.context.settings.costs()),
            layouts,
            self.predicates,
            SampleTrials(spark, aliases, samples),
        )
        if planned.physical.streaming:
            require_streaming(self.context.engine.spark)
            if planned.physical.stages and planned.physical.method is not Method.NATIVE:
                require_operator(inputs[0])
            self._warn_of_delays(block, planned)
            self._warn_of_links(block, planned)
        self.undated.append(self._dated_otherwise(block, planned, relations))
        self.inputs.append(inputs)
        self.planned.append(planned)
        self.relations.append([item.relation.of(self.text) for item in block.items])
        self.countings.append(Counting(meter=Meter() if self.metered else None))
        self._read_from_sites(block, planned, inputs)
        kind = planned.physical.time_kind
        names = invented_names(self.text, block, planned.outputs, inputs, kind, self._run)
        edits = tuple(sorted([*planned.edits, *names]))
        self.passes.append(edits)
        self.text = apply_edits(self.text, edits)

    def _read_from_sites(self, block: SelectBlock, planned: PlannedSelect, inputs: list[DataFrame]) -> None:
        """Have the streams at sites read as a plan wants them, in the place of ``inputs``."""
        free = {each.stream for each in planned.shipments if each.revisable}
        sites: dict[int, SiteStream] = {}
        held: dict[int, HeldStream] = {}
        files = {stream: way_file(f"{self.countings[-1].query}-{stream}") for stream in free}
        for number, stream in enumerate(planned.physical.streams):
            declared = self._declared(block, block.items[number])
            if stream.site is not None and declared is not None and declared.site and declared.statement:
                spark, told = self.context.engine.spark, files.get(number)
                sites[number] = declared.site.stream
                if stream.site.shipping is Shipping.HELD:
                    held[number] = held_at(spark, declared.site, planned.physical.time_kind)
                    continue
                inputs[number] = read_as(spark, declared.site, declared.statement, stream, told)
        self.sites.append(sites)
        self.held.append(held)
        self.told.append(files)

    def _dated_otherwise(
        self, block: SelectBlock, planned: PlannedSelect, relations: Sequence[Relation]
    ) -> frozenset[int]:
        """Return the streams with another event time than that of their sites, which keep all rows; warn."""
        found: set[int] = set()
        for number, relation in enumerate(relations):
            item, time = block.items[number], planned.logical.event_times[number]
            if not relation.streaming or relation.site is None or relation.site.dated_by(time):
                continue
            found.add(number)
            warning = kept_whole(item.relation.of(self.text), time, relation.site, item.span)
            self.context.catalog.warn_once(
                f"{item.parts[-1].name.lower()}.site.{time}", self._placed(warning)
            )
        return frozenset(found)

    def _warn_of_links(self, block: SelectBlock, planned: PlannedSelect) -> None:
        """Warn of sites whose link is known to bring rows more slowly than they come."""
        if planned.physical.time_kind is TimeKind.INTEGRAL:
            return
        for each in planned.shipments:
            known = (planned.statistics[each.stream].rate, each.bandwidth)
            if each.keeps_up or any(one.origin is Origin.DEFAULT for one in known):
                continue
            item, name = block.items[each.stream], planned.logical.names[each.stream]
            stream = item.relation.of(self.text) if item.parts else name
            self.context.catalog.warn_once(
                f"{stream.lower()}.link", self._placed(slow_link(stream, each, item.span))
            )

    def _warn_of_delays(self, block: SelectBlock, planned: PlannedSelect) -> None:
        """Warn of streams whose rows may be dropped as late because nobody has told their delay."""
        for number in planned.undeclared:
            item, time = block.items[number], planned.logical.event_times[number]
            declared = self._declared(block, item)
            relation = item.relation.of(self.text) if item.parts else "(…)"
            name = planned.logical.names[number] if declared is None else declared.name
            remedy = f"{relation} WATERMARK {time} DELAY OF {{}} AS {planned.logical.names[number]}"
            if declared is not None and not declared.derived:
                remedy = f"CREATE STREAM {name} … WATERMARK {time} DELAY OF {{}}"
            if declared is not None and declared.source == DATAFRAME:
                remedy = f"session.stream('{name}', …, event_time='{time}', delay='10 seconds')"
            example = "10" if planned.physical.time_kind is TimeKind.INTEGRAL else "INTERVAL 10 SECONDS"
            warning = WJoinWarning(
                "WJ801",
                f"nobody has told how far rows of {name} may be out of order by {time}: "
                "a row that is older than one of an earlier micro-batch is dropped as late",
                span=item.span,
                help=f"declare it: {remedy.format(example)}; a delay of 0 where rows are in order",
            )
            self.context.catalog.warn_once(
                f"{declared.name.lower() if declared else relation}.{time}", self._placed(warning)
            )

    def _measured(self, relation: Relation, alias: str, before: str) -> Relation:
        """Return a relation with what earlier runs measured of it, under the alias of then."""
        joins, place = self.kept.measured() if self.kept is not None else [], len(self.planned)
        found = joins[place] if place < len(joins) else {}
        return replace(relation, measured=found.get(alias) or found.get(before))

    def _has_names(self, block: SelectBlock, item: FromItem) -> bool:
        """Return whether a FROM item is a stream whose source knows its columns by name, in any order."""
        declared = self._declared(block, item)
        if declared is None or declared.derived or declared.source == "view":
            return False
        statement = declared.statement
        formats = () if statement is None else (statement.provider, statement.record_format)
        return all(each is None or each.name.lower() != "csv" for each in formats)

    def _frame(self, block: SelectBlock, item: FromItem) -> DataFrame:
        declared = self._declared(block, item)
        if declared is not None and declared.frame is not None:
            return declared.frame
        text = self._with(block, item)
        try:
            frame = self.query(text)
            if item.streaming and item.parts and not frame.isStreaming:
                frame = self.context.engine.spark.readStream.table(item.relation.of(self.text))
            return frame
        except (AnalysisException, ParseException) as error:
            message = first_line(error)
            if "TABLE_OR_VIEW_NOT_FOUND" in message and item.parts:
                name = ".".join(part.name for part in item.parts)
                known = [each.name for each in self.context.engine.spark.catalog.listTables()]
                remedy = suggestion(name, known)
                raise WJoinError(
                    "WJ214", f"there is no table, view or stream {name}", span=item.relation, help=remedy
                ) from error
            raise WJoinError("WJ607", f"Spark cannot read this: {message}", span=item.relation) from error

    def _sampled(self, block: SelectBlock, item: FromItem, frame: DataFrame) -> DataFrame | None:
        """Return what a sample of an item may be taken of; not of the result of another W-join."""
        if _PLACEHOLDER.search(self._with(block, item)):
            return None
        return sampled(frame, self._declared(block, item))

    def _with(self, block: SelectBlock, item: FromItem) -> str:
        text = f"SELECT * FROM {item.relation.of(self.text)}"
        for clause in reversed(block.withs):
            text = f"{clause.of(self.text)} {text}"
            if clause is not block.withs[0]:
                text = f"SELECT * FROM ({text})"
        return text

    def _declared(self, block: SelectBlock, item: FromItem) -> StreamDeclaration | None:
        """Return the declaration of a FROM item that is a stream by its name."""
        name = None if block.withs and len(item.parts) == 1 else _session_name(item)
        return None if name is None else self.context.catalog.stream(name)

    def _declaration(self, block: SelectBlock, item: FromItem, frame: DataFrame) -> StreamDeclaration | None:
        """Return what is known of the time of a FROM item: declared, or derived from what it reads."""
        declared = self._declared(block, item)
        if declared is not None:
            return declared
        delays = self.delays(self._with(block, item), lambda: frame)
        return None if delays is None else StreamDeclaration("", None, delays, "view", derived=True)

    def delays(self, query: str, rows: Callable[[], DataFrame]) -> Delays | None:
        """Return the delays of a query's columns, None where it reads neither a stream nor a W-join.

        ``rows`` are those of the query.
        """
        joined = {_placeholder(number): output_delays(each) for number, each in enumerate(self.planned)}
        return relation_delays(query, self.context.catalog, self.context.engine, rows, joined)

    def _watermarked(self, block: SelectBlock, item: FromItem) -> bool:
        """Return whether a FROM item reads a W-join whose result has a watermark of Spark's."""
        inner = [self.planned[int(n)] for n in _PLACEHOLDER.findall(self._with(block, item))]
        return any(
            each.physical.streaming and (each.physical.method is Method.NATIVE or "time" in each.output.match)
            for each in inner
        )

    def _placed(self, error: Placed) -> Placed:
        """Return an error or warning with its place in the text as the user wrote it."""
        if error.span is None:
            return error
        start, end = error.span.start, error.span.end
        for edits in reversed(self.passes):
            start, end = _before(edits, start), _before(edits, end)
        return error.at(Span(start, max(start + 1, end)), self.original)


def _session_name(item: FromItem) -> str | None:
    """Return the name that a FROM item has in the session, None where it has none."""
    return session_name([part.name for part in item.parts]) if item.parts else None


def _told_by_sites(relation: Relation, declared: StreamDeclaration | None) -> Relation:
    """Return a relation with what its sites tell now, where it is at sites."""
    if declared is None or declared.site is None or declared.statement is None:
        return relation
    types = {each.name: each.type for each in relation.columns}
    facts, told = site_facts(declared.site, declared.statement, types)
    return replace(relation, site=facts, statistics={**told, **relation.statistics})


def _placeholder(number: int) -> str:
    """Return what stands for the joined rows of a plan in the rewritten text."""
    return f"__wjoin_input_{number}"


def _blocks(text: str) -> tuple[SelectBlock, ...]:
    """Return the outermost blocks with a window clause that are left in a statement."""
    statement = parse_statement(text)
    if isinstance(statement, InsertInto):
        statement = statement.body
    return statement.blocks if isinstance(statement, Query) else ()


def _innermost(blocks: tuple[SelectBlock, ...]) -> SelectBlock:
    block = blocks[0]
    while block.nested:
        block = block.nested[0]
    return block


def _before(edits: tuple[Edit, ...], place: int) -> int:
    """Return where a place in an edited text stood before the edits."""
    shift = 0
    for edit in edits:
        start = edit.start + shift
        if place < start:
            break
        if place < start + len(edit.text):
            return edit.start
        shift += len(edit.text) - (edit.end - edit.start)
    return place - shift
