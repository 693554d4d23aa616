"""A statement with W-joins to a statement that Spark runs, over the joined DataFrames.

The innermost W-join is planned and cut out of the text first; where others are left, the
text is read again until no W-join remains. The user's own text around the joins reaches Spark as written.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import shorten
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession

from wjoin.context import Asked
from wjoin.executor.spark.compile import Compiled, compile_plan
from wjoin.executor.spark.meter import Meter
from wjoin.executor.spark.stages import Counting
from wjoin.grammar.errors import WJoinError, WJoinWarning
from wjoin.grammar.parser import parse_statement
from wjoin.grammar.spans import Span
from wjoin.grammar.statement_kinds import InsertInto, Query
from wjoin.grammar.suggestions import suggestion
from wjoin.grammar.syntax import FromItem, SelectBlock, innermost_first
from wjoin.grammar.tokens import first_word
from wjoin.homes.handed import HandedStages, folder_of, hand_over
from wjoin.homes.homes import FILES, SPARK, state_workers
from wjoin.joins.delays import output_delays, relation_delays
from wjoin.joins.ended_later import ended_later
from wjoin.joins.from_items import (
    PLACEHOLDER,
    FromSource,
    as_kept,
    dated,
    dated_otherwise,
    name_in_session,
    query_of,
    told_by_sites,
    warnings_of,
)
from wjoin.joins.from_sites import read_from_sites
from wjoin.joins.late_refusals import refuse_lost, refuse_unwritten, told_streams
from wjoin.joins.names import invented_names
from wjoin.joins.planned_joins import Joins, PlannedJoin, named_streams, whole_of
from wjoin.joins.predicates import called_predicates
from wjoin.joins.relations import SparkTypes, describe
from wjoin.joins.trials import SampleTrials
from wjoin.measured.followed import follower_of
from wjoin.measured.kept import Kept
from wjoin.planner.catalog import Delays
from wjoin.planner.choose.approximate import asks_approximately
from wjoin.planner.choose.layouts import UNKNOWN, LayoutRule
from wjoin.planner.explain.describe import describe as document_of
from wjoin.planner.explain.document import Document
from wjoin.planner.explain.overload_description import overload_entry
from wjoin.planner.plan.physical import Method, PhysicalPlan
from wjoin.planner.plan.shedding_models import Shedding, shedding_of
from wjoin.planner.planning import PlannedSelect, apply_edits, has_windows, plan_select, statement_meaning
from wjoin.planner.request import Request
from wjoin.planner.text.edits import place_before
from wjoin.queries.compiled import remember
from wjoin.settings.options import require_operator, require_streaming
from wjoin.sources.catalog import StreamDeclaration
from wjoin.sources.site_leases import AtSites, keep_rows
from wjoin.sources.site_ways import Revising, way_file
from wjoin.spark.cluster import lasting_cores, weighed_with
from wjoin.spark.spark_failures import UNREAD, first_line, located, never_ends

_KEEP_ROWS = frozenset("CREATE DECLARE REPLACE SET".split())
"""First words of statements of Spark's that keep the rows of a query: CREATE TABLE … AS, SET VAR."""

Placed = TypeVar("Placed", WJoinError, WJoinWarning)

_UNBOUNDED = ("WJ301", "WJ308")
"""Errors of conditions that leave streams unbounded."""

_NO_WINDOWS = ("WJ302", "WJ309")
"""Those of conditions that contradict each other, and that name streams in the place of their times."""

_PAIR = 2

_TOLD = 120
"""Characters of a statement with which a failure in a worker is told."""


def rewrite(
    asked: Asked,
    query: Query,
    kept: Kept | None = None,
    *,
    metered: bool = False,
    runs: bool = True,
    first: int = 0,
    apart: bool = False,
) -> "Rewriting":
    """Return a query with its W-joins planned, by what is kept beside its checkpoint.

    ``query`` is a part of the text, ``metered`` where EXPLAIN ANALYZE runs it. Unless it ``runs``, no
    function of the user's is called. ``first``: the number of its first W-join on the checkpoint. ``apart``:
    whether late rows are read apart from its W-joins.
    """
    piece = " " * query.span.start + query.written(asked.text)
    rewriting = Rewriting(asked, piece, query, kept, metered, runs, first, apart)
    rewriting.plan()
    return rewriting


def joined_rows(
    asked: Asked, query: Query, kept: Kept | None = None, *, apart: bool = False
) -> tuple[DataFrame, Joins]:
    """Return the rows of a query and its W-joins (see ``rewrite``).

    What Spark refuses of the edited text is an error at the place of the query. Raises WJoinError WJ621.
    """
    rewriting = rewrite(asked, query, kept, apart=apart)
    rewriting.refuse_endless()
    return rewriting.run_placed(), rewriting.joins


def joined_view(asked: Asked, query: Query) -> tuple[DataFrame, Delays]:
    """Return the rows of a query (see ``joined_rows``) and the delays of its columns."""
    rewriting = rewrite(asked, query)
    rows = rewriting.run_placed()
    return rows, rewriting.delays(rewriting.text, lambda: rows) or {}


@dataclass
class Rewriting:
    """A query on its way: its present text, and the W-joins that are planned, innermost first.

    A plan is compiled when its rows are first asked for, so that EXPLAIN need not wait for that. ``kept`` is
    what lies beside the checkpoint of the statement; it is asked where a join streams. Where the statement is
    ``metered``, each plan has a meter that counts what it does over tables. Where it ``runs``, functions of
    the user's may be tried. ``first``: how many W-joins on the checkpoint come before its own. ``apart``:
    whether late rows that go to sinks are read apart from its W-joins. ``left`` are SELECTs that are Spark's.
    """

    asked: Asked
    text: str
    statement: Query
    kept: Kept | None = None
    metered: bool = False
    runs: bool = True
    first: int = 0
    apart: bool = False
    done: list[PlannedJoin] = field(default_factory=list)
    frames: dict[str, DataFrame] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Keep the statement as it was written, and find the predicates that it may call."""
        self.written = self.text
        self.predicates = called_predicates(self._spark, self.text)

    @property
    def _spark(self) -> SparkSession:
        return self.asked.engine.spark

    @property
    def planned(self) -> list[PlannedSelect]:
        """The plans of the W-joins."""
        return [each.planned for each in self.done]

    @property
    def streaming(self) -> bool:
        """Whether a W-join of the statement is over streams."""
        return any(each.physical.streaming for each in self.planned)

    @property
    def documents(self) -> list[Document]:
        """How each of the W-joins is planned, for EXPLAIN."""
        rules, files = self.asked.settings.shedding(), self._in_files()
        return [document_of(each, overload_entry(each, rules, files=files)) for each in self.planned]

    def refuse_endless(self) -> None:
        """Refuse a statement that keeps all rows of a stream, before it writes any: WJoinError WJ621."""
        if self.streaming and first_word(self.statement.written(self.asked.text)) in _KEEP_ROWS:
            raise never_ends("the statement", self.statement.blocks[0].window_span, self.asked.text)

    def run(self) -> DataFrame:
        """Return the statement's DataFrame."""
        return self.query(self.text)

    @property
    def joins(self) -> Joins:
        """The W-joins that are planned."""
        plans = {each.counting.query: each.planned.physical for each in self.done}
        meters = tuple(each.counting.meter for each in self.done if each.counting.meter is not None)
        relations = [[source.written for source in each.sources] for each in self.done]
        parts = statement_meaning(self.text, self.planned, relations, self.first)
        whole = whole_of(parts, self.done, self._telling.values(), self.asked.params)
        return Joins(tuple(self.planned), plans, meters, whole, self._telling)

    @property
    def _telling(self) -> dict[int, PlannedJoin]:
        """The W-joins whose late rows are read apart from them, by their places."""
        plans = {number: each.planned.physical for number, each in enumerate(self.done) if self.apart}
        return {number: self.done[number] for number, plan in plans.items() if plan.telling and plan.stages}

    def run_placed(self) -> DataFrame:
        """Return the statement's DataFrame; what Spark refuses is an error at the place of the query."""
        with self.asked.placed(self.statement.span):
            return self.run()

    def query(self, text: str) -> DataFrame:
        """Run a piece of Spark SQL that may read the joined DataFrames."""
        return over_joined(
            self.asked.engine.run, text, self.asked.params, self._compiled if self.done else None
        )

    def _run(self, text: str, frames: Mapping[str, DataFrame]) -> DataFrame:
        return _run(self.asked.engine.run, text, self.asked.params, frames)

    def _compiled(self, number: int) -> DataFrame:
        """Return the joined rows of a plan."""
        name = _placeholder(number)
        if name not in self.frames:
            if not self.metered and not self.apart:
                self._refuse_unwritten(number)
            self.frames[name] = self.compiled(number).rows(self.done[number].planned.output)
        return self.frames[name]

    def _refuse_in_spark(self, number: int) -> None:
        message = "an approximate join needs its state in files: its nodes read there what others have"
        help = "INSERT INTO a sink, with a checkpoint on a file system that all workers reach (wjoin.state)"
        raise self._placed(WJoinError("WJ728", message, help=help), number)

    def _refuse_unwritten(self, number: int) -> None:
        join = self.done[number]
        try:
            refuse_unwritten(join.planned.physical, join.sources)
        except WJoinError as error:
            raise self._placed(error, number) from None

    def compiled(self, number: int) -> Compiled:
        """Return a plan as DataFrames."""
        join = self.done[number]
        plan, query = join.planned.physical, join.counting.query
        if self.apart:
            plan = plan.untelling
        if plan.streaming:
            follower_of(self._spark)
            remember(query, join.planned)
        if join.sites:
            undated = dated_otherwise(join.planned, join.sources)
            revising = Revising(query, join.planned, join.ways)
            keep_rows(self._spark, query, AtSites(join.sites, revising, undated))
        state = self._state(number, join) if plan.streaming else None
        if plan.approximate is not None and state is None:
            self._refuse_in_spark(number)
        settings = self.asked.settings
        return compile_plan(
            plan,
            join.inputs,
            join.counting,
            settings.stretch(),
            self.predicates,
            shorten(self.written, _TOLD, placeholder=" …"),
            join.sites,
            join.held,
            lasting_cores(self._spark, settings.costs()),
            state,
            self._shedding(plan, state),
            dict(named_streams(join)),
            None if self.kept is None else self.kept.ending,
            self._ended(plan, state),
        )

    def _ended(self, plan: PhysicalPlan, state: Path | None) -> Sequence[Mapping[int, int]]:
        """Return how far streams have come at later stages once all have ended (``Stages.ended``)."""
        kept = self.kept
        if kept is None or kept.ending is None or kept.folder is None or state is not None:
            return ()
        return ended_later(self._spark, kept.folder, plan) if plan.ends_earlier else ()

    def _shedding(self, plan: PhysicalPlan, state: Path | None) -> Shedding | None:
        """Return how a join sheds whose state is in a folder, None where that is in Spark's store."""
        if state is None and self.metered:
            # What EXPLAIN ANALYZE runs ends with what is there, and can be no overload.
            return None
        costs = self.asked.settings.costs().constants.in_files()
        fixed = costs.fixed([state_workers(self._spark, plan)])
        with located(self.statement.span):
            return shedding_of(plan, self.asked.settings.shedding(), fixed, files=state is not None)

    def _state(self, number: int, join: PlannedJoin) -> Path | None:
        """Return the folder of a join's state, None where it is not in files.

        Where somebody else starts the query it is a relative one, of a name that follows from the plan.
        """
        if self.kept is not None and self.kept.has_checkpoint:
            return self.kept.state(self.first + number)
        plan, spark = join.planned.physical, self._spark
        workers = state_workers(spark, plan)
        files = self._in_files() or (plan.approximate is not None and self.asked.settings.home() != SPARK)
        if not files or not workers or not hasattr(spark, "_jsparkSession"):
            return None
        folder = folder_of(plan)
        hand_over(spark, join.counting.query, HandedStages(folder, workers))
        return Path(folder)

    def _in_files(self) -> bool:
        """Return whether the state of the query is in files, as far as is known before it starts."""
        return self.asked.settings.home() == FILES if self.kept is None else self.kept.home.files

    def plan(self) -> None:
        """Plan every W-join of the statement, innermost first; the text around one is read again after it."""
        blocks = self.statement.blocks
        while (block := self._next(blocks)) is not None:
            if block.implicit and not self.decided(block):
                self.left.add(block.span.of(self.text))
                continue
            try:
                self._join(block)
            except WJoinError as error:
                raise self._placed(error) from error.__cause__
            last = len(blocks) == 1 and not blocks[0].nested
            blocks = () if last else _blocks(self.text, self.asked.looked_for)

    def _next(self, blocks: tuple[SelectBlock, ...]) -> SelectBlock | None:
        """Return the first of the innermost blocks that are to be planned, None where none is left."""
        every = innermost_first(blocks)
        return next((each for each in every if each.span.of(self.text) not in self.left), None)

    def decided(self, block: SelectBlock) -> bool:
        """Return whether a block without a window clause is a W-join: its conditions are windows of streams.

        Raises WJoinError for one of streams whose conditions leave two of them unbounded, and for one in
        which nothing can meet.
        """
        try:
            sources = [self._source(block, item) for item in block.items]
        except WJoinError:
            return False
        if len(dated(sources)) < _PAIR:
            return False
        try:
            return has_windows(self._request(block, sources, UNKNOWN))
        except WJoinError as error:
            unbounded = error.code in _UNBOUNDED and any(each.relation.streaming for each in sources)
            if unbounded or error.code in _NO_WINDOWS:
                raise self._placed(error) from error.__cause__
            return False

    def _request(self, block: SelectBlock, sources: Sequence[FromSource], layouts: LayoutRule) -> Request:
        aliases, frames = [each.alias for each in sources], [each.frame for each in sources]
        return Request(
            self.text,
            block,
            tuple(each.relation for each in sources),
            SparkTypes(self._spark, aliases, frames),
            _placeholder(len(self.done)),
            self.asked.params,
            self.asked.settings.hint_defaults(),
            replace(weighed_with(self._spark, self.asked.settings.costs()), files=self._in_files()),
            layouts,
            self.predicates,
            SampleTrials(self._spark, aliases, [each.sample for each in sources], self.runs),
            self.asked.settings.windows_from_where(),
            dated(sources) if block.implicit else None,
        )

    def _join(self, block: SelectBlock) -> None:
        found = [self._source(block, item) for item in block.items]
        sources, layouts = as_kept(self.kept, self.first + len(self.done), found)
        frames = [each.frame for each in sources]
        planned = plan_select(self._request(block, sources, layouts))
        told = {name for each in self._telling.values() for name in told_streams(each.sources)}
        refuse_lost(self.asked.catalog, planned.physical, sources, told)
        if planned.physical.streaming:
            require_streaming(self._spark)
            if planned.physical.stages and planned.physical.method is not Method.NATIVE:
                require_operator(frames[0])
        for key, warning in warnings_of(planned, sources):
            self.asked.catalog.warn_once(key, self._placed(warning))
        counting = Counting(meter=Meter() if self.metered else None)
        free = {each.stream for each in planned.shipments if each.revisable}
        ways = {stream: way_file(f"{counting.query}-{stream}") for stream in free}
        frames = [
            each.with_homes() if scan.home is not None and not each.relation.home else frame
            for each, scan, frame in zip(sources, planned.physical.streams, frames, strict=True)
        ]
        sites, held = read_from_sites(self._spark, planned, sources, ways, frames, str(counting.query))
        kind = planned.physical.time_kind
        names = invented_names(self.text, block, planned.outputs, frames, kind, self._run)
        edits = tuple(sorted([*planned.edits, *names]))
        self.done.append(
            PlannedJoin(planned, tuple(sources), tuple(frames), counting, edits, sites, held, ways)
        )
        self.text = apply_edits(self.text, edits)

    def _source(self, block: SelectBlock, item: FromItem) -> FromSource:
        """Return a FROM item with its rows and all that is known of it."""
        query, name, catalog = query_of(self.text, block, item), name_in_session(item), self.asked.catalog
        hidden = block.withs and len(item.parts) == 1
        declared = None if name is None or hidden else catalog.stream(name)
        frame = self._frame(item, query, declared)
        timed = declared
        if timed is None and (delays := self.delays(query, lambda: frame)) is not None:
            timed = StreamDeclaration("", None, delays, "view", derived=True)
        known = {} if name is None else catalog.known(name)
        relation = told_by_sites(describe(frame, timed, known), declared)
        watermark = relation.watermark or self._watermarked(query)
        relation = replace(relation, watermark=watermark)
        found = FromSource(item, item.relation.of(self.text), query, frame, declared, relation)
        asked = asks_approximately(block, self.asked.settings.hint_defaults())
        return found.with_part() if asked else found

    def _frame(self, item: FromItem, query: str, declared: StreamDeclaration | None) -> DataFrame:
        if declared is not None and declared.frame is not None:
            return declared.frame
        try:
            frame = self.query(query)
            if item.streaming and item.parts and not frame.isStreaming:
                frame = self._spark.readStream.table(item.relation.of(self.text))
            return frame
        except UNREAD as error:
            message = first_line(error)
            if "TABLE_OR_VIEW_NOT_FOUND" in message and item.parts:
                name = ".".join(part.name for part in item.parts)
                known = [each.name for each in self._spark.catalog.listTables()]
                remedy = suggestion(name, known)
                raise WJoinError(
                    "WJ214", f"no table, view or stream is named {name}", span=item.relation, help=remedy
                ) from error
            raise WJoinError("WJ607", f"Spark cannot read this: {message}", span=item.relation) from error

    def delays(self, query: str, rows: Callable[[], DataFrame]) -> Delays | None:
        """Return the delays of a query's columns, None where it reads neither a stream nor a W-join.

        ``rows`` are those of the query.
        """
        joined = {_placeholder(number): output_delays(each) for number, each in enumerate(self.planned)}
        return relation_delays(query, self.asked.catalog, self.asked.engine, rows, joined)

    def _watermarked(self, query: str) -> bool:
        """Return whether a query reads a W-join whose result has a watermark of Spark's."""
        inner = [self.done[int(number)].planned for number in PLACEHOLDER.findall(query)]
        return any(
            each.physical.streaming and (each.physical.method is Method.NATIVE or "time" in each.output.match)
            for each in inner
        )

    def _placed(self, error: Placed, done: int | None = None) -> Placed:
        """Return an error or warning with its place in the text as the user wrote it.

        ``done``: how many W-joins had been cut out of the text in which its place is, None for all.
        """
        if error.span is None:
            return error
        start, end = error.span.start, error.span.end
        for each in reversed(self.done[:done]):
            start, end = place_before(each.edits, start), place_before(each.edits, end)
        return error.at(Span(start, max(start + 1, end)), self.asked.text)


def over_joined(
    run: Callable[..., DataFrame],
    text: str,
    params: Mapping[str, object],
    joined: Callable[[int], DataFrame] | None,
) -> DataFrame:
    """Run a piece of Spark SQL over joined rows, which ``joined`` has; None: there are none."""
    numbers = {int(number) for number in PLACEHOLDER.findall(text)}
    if joined is None or not numbers:
        return _run(run, text, params, {})
    text = text.replace("{", "{{").replace("}", "}}")
    text = PLACEHOLDER.sub(lambda found: "{" + found.group() + "}", text)
    return _run(run, text, params, {_placeholder(number): joined(number) for number in numbers})


def _run(
    run: Callable[..., DataFrame],
    text: str,
    params: Mapping[str, object],
    frames: Mapping[str, DataFrame],
) -> DataFrame:
    """Run a piece of Spark SQL with a statement's parameters and DataFrames for its ``{names}``."""
    arguments: dict[str, object] = {"args": params} if params else {}
    return run(text, **arguments, **frames)


def _placeholder(number: int) -> str:
    """Return what stands for the joined rows of a plan in the rewritten text."""
    return f"__wjoin_input_{number}"


FIRST = _placeholder(0)
"""What stands for the joined rows of the first plan of a statement."""


def _blocks(text: str, names: frozenset[str]) -> tuple[SelectBlock, ...]:
    """Return the outermost W-joins that are left in a statement, and joins of streams of these names."""
    statement = parse_statement(text, names)
    if isinstance(statement, InsertInto):
        statement = statement.body
    return statement.blocks if isinstance(statement, Query) else ()
