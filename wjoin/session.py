"""The session: W-join SQL on a SparkSession."""

import datetime
import itertools
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from wjoin import statements
from wjoin.explanation import Explanation
from wjoin.failures import RAISED_BY_SPARK, failure, placed
from wjoin.grammar.errors import WJoinError, WJoinWarning
from wjoin.grammar.parser import parse_script, parse_statement
from wjoin.grammar.syntax import InsertInto, SparkStatement, Statement
from wjoin.inserts import insert
from wjoin.kept import Kept
from wjoin.options import configure, embedded_settings, in_pipeline, prepare
from wjoin.planner.lineage import joined_streams
from wjoin.planner.names import suggestion
from wjoin.recorder import Recorder
from wjoin.rewrite import Rewriting
from wjoin.settings import cost_settings, hint_defaults, set_option
from wjoin.spark_process import log_path, logged
from wjoin.streams import DATAFRAME, StreamDeclaration, declarations_of, declared_delays, microseconds
from wjoin.views import prepare_view
from wjoin.watch import settle, watch


class Session:
    """A SparkSession that understands W-join SQL.

    What it does not know itself (``read``, ``readStream``, ``table``, ``stop``…) it passes
    through to the SparkSession, so that it can stand in for one.
    """

    def __init__(self, spark: SparkSession, run_spark: Callable[..., DataFrame] | None = None) -> None:
        self.spark = spark
        self.declarations = declarations_of(spark)
        self.settings: dict[str, str] = {}
        self.queries: list[StreamingQuery] = []
        self._folders: dict[str, StreamingQuery] = {}
        self._recorders: dict[str, Recorder] = {}
        self._named_by_script: set[str] = set()
        # Kept apart from spark.sql, which enable() replaces.
        self.run_spark = run_spark or spark.sql

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
        script = parse_script(sqlQuery)
        positional = args is not None and not isinstance(args, Mapping)
        if len(script.statements) == 1 and not _is_sparks(script.statements[0], positional):
            named = params if positional else {**(args or {}), **params}
            self._named_by_script.clear()
            statement = script.statements[0]
            if isinstance(statement, InsertInto) and isinstance(statement.body, SparkStatement):
                # It may be Spark's altogether, and Spark's own error is then what its callers expect.
                return statements.execute(self, sqlQuery, statement, named)
            with placed(sqlQuery, statement.span):
                return statements.execute(self, sqlQuery, statement, named)
        if not all(_is_sparks(each, positional) for each in script.statements):
            raise WJoinError("WJ606", "sql() takes one statement", help="run several with run_script()")
        return self.pass_through(sqlQuery, args, params)

    def stream(
        self,
        name: str,
        df: DataFrame,
        event_time: str | None = None,
        delay: str | datetime.timedelta | None = None,
    ) -> None:
        """Register a DataFrame, streaming or static, as a stream of this session.

        ``event_time`` names its event-time column (the only timestamp column when left out),
        ``delay`` how far rows may be out of order: text with a unit, a timedelta, or for an
        integral event time a number in its own unit. Left out, it is that of the watermark that the
        column has in Spark, and else 0, of which a join of streams warns (WJ801). Raises WJoinError
        WJ202 where the DataFrame has no such column.
        """
        if event_time is not None and event_time.lower() not in map(str.lower, df.columns):
            remedy = suggestion(event_time, df.columns) or f"it has {', '.join(df.columns)}"
            raise WJoinError("WJ202", f"the stream {name} has no column {event_time}", help=remedy)
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
        delays = declared_delays(event_time, None if delay is None else microseconds(delay), columns)
        declared = StreamDeclaration(
            name, event_time, delays, DATAFRAME, frame=held, streaming=streaming, rows=df
        )
        self.declarations.add_stream(declared)

    def explain(self, sqlQuery: str, args: Any = None, **params: Any) -> Explanation:  # noqa: N803 (SparkSession's name)
        """Return how a statement with W-joins is planned: a text that a notebook shows as a page.

        Its method ``rendered`` gives it as ``json``, ``html`` or ``dot``.
        """
        statement = parse_statement(sqlQuery)
        return statements.explain(self, sqlQuery, statement, {**(args or {}), **params})

    def run_script(
        self,
        text: str,
        *,
        once: bool = True,
        checkpoint: str | None = None,
        name: str = "<script>",
        **params: Any,
    ) -> list[DataFrame | StreamingQuery]:
        """Run the statements of a script in order; return the DataFrames and the queries that it made.

        Each INSERT INTO a sink becomes a streaming query with a folder of its own below
        ``checkpoint``. With ``once`` a query works off all that its sources hold, then ends, and
        the script goes on after it; without, queries run on until they are stopped.
        """
        script = parse_script(text, name)
        self._named_by_script.clear()
        made: list[DataFrame | StreamingQuery] = []
        for statement in script.statements:
            made += self.run_statement(text, statement, once=once, checkpoint=checkpoint, **params)
        return made

    def run_statement(
        self, text: str, statement: Statement, *, once: bool, checkpoint: str | None, **params: Any
    ) -> list[DataFrame | StreamingQuery]:
        """Run one statement of a script (see ``run_script``)."""
        if isinstance(statement, InsertInto):
            with placed(text, statement.span):
                started = insert(self, text, statement, params, once=once, checkpoint=checkpoint)
            if once and started is not None:
                self._await(started, text, statement)
            return [started] if started is not None else []
        with placed(text, statement.span):
            return [statements.execute(self, text, statement, params)]

    def _await(self, query: StreamingQuery, text: str, statement: InsertInto) -> None:
        """Wait for the end of a query. Raises WJoinError where it failed."""
        name = statement.target[-1]
        try:
            query.awaitTermination()
        except RAISED_BY_SPARK as error:
            folder = self.folder_of(query)
            raise failure(error, name.span, text, sink=name.name, checkpoint=folder) from error
        finally:
            self.settle()

    def rewriting(
        self,
        text: str,
        statement: Statement,
        params: dict[str, Any],
        kept: Kept | None = None,
        *,
        metered: bool = False,
    ) -> Rewriting:
        """Return a statement with its W-joins planned, by what is kept beside its checkpoint.

        ``metered``: where EXPLAIN ANALYZE runs it.
        """
        piece = " " * statement.span.start + statement.span.of(text)
        settings = hint_defaults(self)
        costs = cost_settings(self)
        rewriting = Rewriting(
            self.spark,
            self.run_spark,
            self.declarations,
            params,
            settings,
            costs,
            text,
            piece,
            kept,
            metered,
        )
        rewriting.join_all()
        return rewriting

    def checkpoint_folder(self, directory: str, sink: str) -> str:
        """Return the checkpoint folder of the next query into a sink.

        It has the name of the sink: with a number where an earlier statement of the same script
        has that name, or a query that still runs.
        """
        for number in itertools.count(1):
            name = sink if number == 1 else f"{sink}-{number}"
            folder = f"{directory.rstrip('/')}/{name}"
            running = self._folders.get(folder)
            if folder not in self._named_by_script and not (running and running.isActive):
                return folder
        raise AssertionError("numbers do not end")

    def started(self, query: StreamingQuery, folder: str | None) -> None:
        """Note a query that an INSERT INTO has started, and its checkpoint folder."""
        self.queries.append(query)
        watch(self.spark, query)
        if folder is not None:
            self.named(folder)
            self._folders[folder] = query

    def named(self, folder: str) -> None:
        """Note the checkpoint folder of a statement, so that a later one of the script takes another."""
        self._named_by_script.add(folder)

    def folder_of(self, query: StreamingQuery) -> str | None:
        """Return the checkpoint folder of a query that an INSERT INTO has started."""
        return next((folder for folder, each in self._folders.items() if each is query), None)

    def record(self, folder: str | None, recorder: Recorder | None) -> None:
        """Measure the query that has been started on a checkpoint folder."""
        if folder is not None and recorder is not None:
            self._recorders[folder] = recorder
            recorder.start()

    def settle(self) -> None:
        """Tell what queries have dropped, and wait until what ended ones have measured is kept."""
        settle()
        for folder, recorder in list(self._recorders.items()):
            if not self._folders[folder].isActive:
                recorder.settle()
                del self._recorders[folder]

    def pass_through(self, text: str, args: Any, params: dict[str, Any]) -> DataFrame:
        """Send a statement to Spark as it stands."""
        prepared = prepare_view(self, text)
        variables = {
            name: value for name, value in params.items() if re.search(r"\{" + re.escape(name) + r"\b", text)
        }
        named = {name: value for name, value in params.items() if name not in variables}
        if named:
            args = {**(args or {}), **named}
        given = {} if args is None else {"args": args}
        rows = self.run_spark(prepared.text, **given, **variables)
        prepared.note(self.declarations)
        self._warn_of_unbounded(prepared.text, rows)
        return rows

    def _warn_of_unbounded(self, text: str, rows: DataFrame) -> None:
        """Warn where Spark joins streams without a window: it keeps every row of them for ever."""
        joined = joined_streams(text, self.declarations.delays)
        if not joined or not rows.isStreaming:
            return
        for names in joined:
            first, second, *_ = names
            warning = WJoinWarning(
                "WJ802",
                f"{' and '.join(names)} are joined without a window clause: Spark keeps all of their rows",
                help=f"write after FROM, for example, WINDOW ({first}, {second}) = 10 SECONDS",
            )
            self.declarations.warn_once(f"joined.{'.'.join(names)}.{text}", warning)


def _is_sparks(statement: Statement, positional: bool) -> bool:
    """Return whether a statement is Spark's alone; positional arguments are for such statements only."""
    if positional and isinstance(statement, InsertInto):
        statement = statement.body
    return isinstance(statement, SparkStatement)


def connect(spark: SparkSession | None = None, **conf: str) -> Session:
    """Return a Session on ``spark``, or on an embedded local Spark tuned for streaming on this machine.

    ``conf`` are Spark settings (``connect(**{"spark.driver.memory": "8g"})``); on a running
    session only those that it can still change take effect. Names that begin with ``wjoin.`` are
    settings of the session, as SET takes them, and ``wjoin.log``: the file of the embedded Spark's log,
    or ``stderr`` (see ``Session.spark_log``).
    """
    log = conf.pop("wjoin.log", None)
    own = {name: value for name, value in conf.items() if name.lower().startswith("wjoin.")}
    conf = {name: value for name, value in conf.items() if name not in own}
    session = _connected(spark, conf, log)
    for name, value in own.items():
        set_option(session, name, value)
    return session


def _connected(spark: SparkSession | None, conf: dict[str, str], log: str | None) -> Session:
    if spark is None:
        builder = configure(SparkSession.builder.master("local[*]").appName("wjoin"))
        for name, value in {**embedded_settings(), **conf}.items():
            builder = builder.config(name, value)
        with logged(log):
            return Session(builder.getOrCreate())
    if log is not None:
        raise WJoinError("WJ603", "wjoin.log is for the Spark that connect() starts, and this one runs")
    prepare(spark)
    for name, value in conf.items():
        spark.conf.set(name, value)
    return Session(spark)


_enabled: "WeakKeyDictionary[SparkSession, Session]" = WeakKeyDictionary()


def enable(spark: SparkSession) -> Session:
    """Make ``spark.sql`` understand W-join SQL; everything else passes through untouched.

    Returns the Session behind it. Enabling twice changes nothing.
    """
    if spark in _enabled:
        return _enabled[spark]
    prepare(spark)
    session = Session(spark, spark.sql)
    _enabled[spark] = session
    spark.sql = session.sql  # type: ignore[method-assign]  # undone by disable()
    return session


def disable(spark: SparkSession) -> None:
    """Undo ``enable``: ``spark.sql`` is Spark's own again."""
    if _enabled.pop(spark, None) is not None:
        del spark.sql
