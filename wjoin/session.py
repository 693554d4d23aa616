"""The session: W-join SQL on a SparkSession."""

import datetime
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from wjoin.checkpoints.repartition import Repartitioned, repartition
from wjoin.context import Context
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_script, parse_statement
from wjoin.grammar.statement_kinds import (
    AlterSet,
    ExecuteImmediate,
    InsertInto,
    SparkStatement,
    Statement,
    StatementSet,
)
from wjoin.grammar.suggestions import suggestion
from wjoin.grammar.tokens import scan
from wjoin.joins.recognised import recognised
from wjoin.measured.followed import settle, unfollow
from wjoin.queries.open_groups import waits
from wjoin.queries.running import Running
from wjoin.queries.session_queries import Queries
from wjoin.results.snapshots import reading
from wjoin.settings.options import in_pipeline, prepare
from wjoin.settings.settable import Settings
from wjoin.sources.catalog import (
    DATAFRAME,
    FUNCTION,
    Catalog,
    SinkDeclaration,
    StreamDeclaration,
    catalog_of,
    check_name,
    declared_ahead,
    declared_delays,
    declared_idle,
    declared_shedding,
    forget,
    microseconds,
)
from wjoin.sources.late_rows import refuse_columns
from wjoin.spark.doors import LOOPBACK
from wjoin.spark.engine import Engine
from wjoin.spark.notices import tell
from wjoin.spark.process import log_path
from wjoin.spark.session_things import held
from wjoin.statements.alter_set import alter_set
from wjoin.statements.complete import completed, no_checkpoint, rest
from wjoin.statements.dispatch import execute
from wjoin.statements.explain import explain
from wjoin.statements.explanation import Explanation
from wjoin.statements.inserts import target_sink
from wjoin.statements.sharing import in_sets
from wjoin.statements.spark import pass_through
from wjoin.statements.statement_sets import execute_set, run_insert
from wjoin.web.page_access import Address
from wjoin.web.page_server import Web, serve


class Session:
    """A SparkSession that understands W-join SQL.

    What it does not know itself (``read``, ``readStream``, ``table``, ``stop``…) it passes
    through to the SparkSession, so that it can stand in for one.
    """

    def __init__(self, spark: SparkSession, run_spark: Callable[..., DataFrame] | None = None) -> None:
        self.spark = spark
        engine = Engine(spark, reading(spark, catalog_of(spark), run_spark or spark.sql))
        self.context = Context(engine, catalog_of(spark), Settings(), Queries())
        self._web: Web | None = None

    @property
    def declarations(self) -> Catalog:
        """The streams, views over streams and sinks that are declared."""
        return self.context.catalog

    @property
    def settings(self) -> dict[str, str]:
        """The settings that have a value, by name in lower case."""
        return self.context.settings.values

    @property
    def queries(self) -> list[StreamingQuery]:
        """The queries that INSERT INTO has started, oldest first."""
        return [each.query for each in self.context.queries.started]

    @property
    def running(self) -> list[Running]:
        """The same queries with their statements and plans, and what they have done; ended ones, too."""
        return self.context.queries.started

    @property
    def spark_log(self) -> Path | None:
        """The file into which the embedded Spark writes its log; None where Spark was started elsewhere."""
        return log_path()

    def __getattr__(self, name: str) -> Any:
        if name == "spark":
            raise AttributeError(name)
        return getattr(self.spark, name)

    def sql(self, sqlQuery: str, args: Any = None, **params: Any) -> DataFrame:  # noqa: N803 (SparkSession's name)
        """Run one statement and return its DataFrame: lazy, batch or streaming.

        ``params`` and ``args`` bind named parameters (``:name``); durations may be given as
        ``datetime.timedelta`` or as text (``"5 seconds"``). A statement without anything of
        wjoin's goes to Spark as it stands, with ``args`` and ``{name}`` variables as Spark
        takes them.

        Raises WJoinError for an error in the statement, with its place and remedy.
        """
        statements = parse_script(sqlQuery)
        positional = bool(args) and not isinstance(args, Mapping)
        if len(statements) == 1 and not positional:
            asked = self.context.asked(sqlQuery, {**(args or {}), **params})
            statements = (recognised(asked, statements[0]),)
        sparks = all(self._is_sparks(each, positional) for each in statements)
        if sparks:
            return pass_through(self.context, sqlQuery, params, args)
        if len(statements) > 1:
            raise WJoinError("WJ606", "sql() takes one statement", help="run several with run_script()")
        if positional:
            raise WJoinError(
                "WJ212",
                "parameters by position are for Spark's own statements",
                span=next((each.span for each in scan(sqlQuery) if each.text == "?"), None),
                text=sqlQuery,
                help="name them: :x, with {'x': value}",
            )
        self.context.queries.begin_script()
        return execute(self.context.asked(sqlQuery, {**(args or {}), **params}), statements[0])

    def _is_sparks(self, statement: Statement, positional: bool) -> bool:
        """Return whether a statement is Spark's alone; positional arguments are for such statements only."""
        if positional and isinstance(statement, InsertInto):
            return (
                isinstance(statement.body, SparkStatement)
                and target_sink(self.declarations, statement) is None
            )
        return isinstance(statement, SparkStatement) or (
            positional and isinstance(statement, ExecuteImmediate)
        )

    def stream(
        self,
        name: str,
        df: DataFrame,
        event_time: str | None = None,
        delay: str | datetime.timedelta | None = None,
        ahead: str | datetime.timedelta | None = None,
        shedding: str | None = None,
        idle_after: str | datetime.timedelta | None = None,
        late_rows_into: str | None = None,
        home_by: str | None = None,
    ) -> None:
        """Register a DataFrame, streaming or static, as a stream of this session.

        ``event_time`` names its event-time column (the only timestamp column when left out),
        ``delay`` how far rows may be out of order: text with a unit, a timedelta, or for an
        integral event time a number in its own unit. Left out, it is that of the watermark that the
        column has in Spark, and else 0, of which a join of streams warns (WJ801). ``ahead`` is how much
        later than its micro-batch a row may be, text with a unit or a timedelta: rows further ahead are
        dropped and counted. ``shedding`` is ``off``, ``linear`` or ``quadratic``: how rows are shed when a
        join is overloaded; left out, as the session says. After ``idle_after`` without a row, text with a
        unit or a timedelta, the stream is silent: its watermark goes on with those of the others.
        ``late_rows_into`` is the sink for late rows. ``home_by`` names the column that says at which node a
        row lives, for approximate joins. Raises WJoinError WJ202 where the DataFrame has no such
        column, WJ106 for a name that does not print, WJ110 for an ``ahead`` that is negative and an
        ``idle_after`` that is not above zero, WJ305 for an ``ahead`` of an integral event time, WJ603 for
        another ``shedding``, and WJ623 for a column that late rows have besides.
        """
        check_name("stream", name)
        for column in (event_time, home_by):
            if column is not None and column.lower() not in map(str.lower, df.columns):
                remedy = suggestion(column, df.columns) or f"it has {', '.join(df.columns)}"
                raise WJoinError("WJ202", f"the stream {name} has no column {column}", help=remedy)
        if late_rows_into is not None:
            refuse_columns(name, df.columns)
        held = None
        try:
            df.createOrReplaceTempView(name)
        except PySparkException as error:
            if not in_pipeline(error):
                raise
            held = df
        # What a pipeline's functions may not ask Spark any more.
        streaming = None if held is None else held.isStreaming
        columns = {each.name: each.dataType.simpleString() for each in df.schema.fields}
        delays = declared_delays(
            event_time,
            None if delay is None else microseconds(delay),
            columns,
            None if ahead is None else declared_ahead(microseconds(ahead), event_time, columns),
            None if shedding is None else declared_shedding(shedding),
            None if idle_after is None else declared_idle(microseconds(idle_after)),
        )
        declared = StreamDeclaration(
            name,
            event_time,
            delays,
            DATAFRAME,
            frame=held,
            streaming=streaming,
            rows=df,
            late_into=late_rows_into or "",
            home=home_by or "",
        )
        self.context.catalog.add_stream(declared)

    def sink(self, name: str, write: Callable[[DataFrame, int], None]) -> None:
        """Register a function as a sink of this session: INSERT INTO gives it the rows of each micro-batch.

        ``write`` gets them as a DataFrame, which it may read several times, and the number of the
        micro-batch. It may get a micro-batch again, after a crash, and then with the same number: it tells by
        that what it has. Rows that do not stream come once, with the number 0. Raises WJoinError WJ106 for a
        name that does not print.
        """
        check_name("sink", name)
        self.context.catalog.sinks[name.lower()] = SinkDeclaration(name, FUNCTION, {}, (), write=write)

    def explain(self, sqlQuery: str, args: Any = None, **params: Any) -> Explanation:  # noqa: N803 (SparkSession's name)
        """Return how a statement with W-joins is planned: a text that a notebook shows as a page.

        Its method ``rendered`` gives it as ``json`` or ``html``.
        """
        asked = self.context.asked(sqlQuery, {**(args or {}), **params})
        return explain(asked, recognised(asked, parse_statement(sqlQuery)))

    def run_script(
        self,
        text: str,
        *,
        once: bool = True,
        complete: bool = False,
        checkpoint: str | None = None,
        name: str = "<script>",
        **params: Any,
    ) -> list[DataFrame | StreamingQuery]:
        """Run the statements of a script in order; return the DataFrames and the queries that it made.

        Each INSERT INTO a sink becomes a streaming query with a folder of its own below
        ``checkpoint``. With ``once`` a query works off all that its sources hold, then ends, and
        the script goes on after it; without, queries run on until they are stopped. With ``complete``
        all streams then end: what waits for a partner is decided, and rows that come later may be late.
        Raises WJoinError WJ727 for a query of which that cannot be, and for ``complete`` without ``once``.
        """
        if complete and not once:
            raise WJoinError(
                "WJ727", "a query that runs on has no end", help="leave complete or once=False out"
            )
        statements = parse_script(text, name)
        self.context.queries.begin_script()
        made: list[DataFrame | StreamingQuery] = []
        for statement in in_sets(self.context.asked(text, params), statements):
            made += self.run_statement(
                text, statement, once=once, checkpoint=checkpoint, complete=complete, **params
            )
        return made

    def run_statement(
        self,
        text: str,
        statement: Statement,
        *,
        once: bool,
        checkpoint: str | None,
        complete: bool = False,
        **params: Any,
    ) -> list[DataFrame | StreamingQuery]:
        """Run one statement of a script (see ``run_script``)."""
        asked = self.context.asked(text, params)
        if isinstance(statement, AlterSet | InsertInto | StatementSet):
            with asked.placed(statement.span):
                if isinstance(statement, InsertInto):
                    started = run_insert(asked, statement, once=once, checkpoint=checkpoint)
                elif isinstance(statement, AlterSet):
                    started = alter_set(asked, statement)
                else:
                    started = execute_set(asked, statement, once=once, checkpoint=checkpoint)
            if started is None:
                return []
            made: list[DataFrame | StreamingQuery] = [started.query]
            if once:
                started.wait()
                for again in rest(asked, statement, started):
                    again.wait()
                    made.append(again.query)
                for last in completed(asked, statement, [started]) if complete else ():
                    last.wait()
                    made.append(last.query)
                    started = last
                if started.waits:
                    tell(waits(f"the query {started.name}", started.waits))
            return made
        with asked.placed(statement.span):
            found = execute(asked, statement)
            if complete and found.isStreaming:
                raise no_checkpoint(statement.span)
            return [found]

    def repartition(
        self, text: str, old: str, new: str, partitions: int, *, name: str = "<script>", **params: Any
    ) -> list[Repartitioned]:
        """Rewrite the checkpoints of a script for another number of shuffle partitions or of workers.

        ``old`` is the folder that ``run_script`` was given as ``checkpoint``, or the checkpoint of a single
        query, also of a SELECT that has been started with ``writeStream``. It stays as it is. ``new`` is a
        folder that is not there yet and appears when all is written. ``text`` is the script with which the
        queries go on: the hint PLAN may have another n or route. Set ``spark.sql.shuffle.partitions`` to
        ``partitions`` before they start. Raises WJoinError WJ701 and WJ702 where a checkpoint is another
        statement's, and WJ708 to WJ711.
        """
        return repartition(self.context.asked(text, params), old, new, partitions, name)

    def serve_web(self, port: int | None = None, host: str = LOOPBACK, token: str | None = None) -> Web:
        """Serve a page with the running queries of the Spark session and their numbers.

        ``port``: 4950, or the next free one, where none is given; 0 for any. Where ``host`` is not this
        machine alone, the page asks for a token: ``token``, the environment's WJOIN_WEB_TOKEN, or a new one,
        which ``Web.url`` has. It ends with the process. A second call without other wishes returns the page
        that is served already. Raises WJoinError WJ618.
        """
        web = self._web
        same = web is not None and web.open and web.host == host and port in (None, web.port)
        if web is None or not same or token not in (None, web.token):
            if web is not None:
                web.close()
            web = self._web = serve(self.spark, self.context.queries, Address(host, port), token)
        return web

    def settle(self) -> None:
        """Tell what queries have dropped, and see that what ended ones have measured is kept."""
        settle()

    def let_go(self) -> None:
        """Forget what is declared here: nobody uses the session any more, and its queries have ended."""
        self.settle()
        unfollow(self.spark)
        forget(self.spark)


def enable(spark: SparkSession) -> Session:
    """Make ``spark.sql`` understand W-join SQL; everything else passes through untouched.

    Returns the Session behind it. Enabling twice changes nothing.
    """
    known = held(spark).known(Session)
    if known is not None:
        return known
    prepare(spark)
    session = held(spark).get(Session, lambda: Session(spark, spark.sql))
    spark.sql = session.sql  # type: ignore[method-assign]  # undone by disable()
    return session


def disable(spark: SparkSession) -> None:
    """Undo ``enable``: ``spark.sql`` is Spark's own again."""
    if held(spark).drop(Session) is not None:
        del spark.sql
