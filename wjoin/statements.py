"""What each statement of the language does in a session."""

from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from wjoin.explanation import Explanation
from wjoin.failures import placed
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.syntax import (
    AlterStream,
    AnalyzeStream,
    CreateSink,
    CreateStream,
    CreateView,
    DescribeSink,
    DescribeStream,
    DropSink,
    DropStream,
    Explain,
    Identifier,
    InsertInto,
    Query,
    SetOption,
    ShowCreateSink,
    ShowCreateStream,
    ShowSinks,
    ShowStreams,
    SparkStatement,
    Statement,
)
from wjoin.inserts import explained_checkpoint, insert
from wjoin.kept import Kept
from wjoin.measured import measured_text
from wjoin.planner.explain.cost import cost_text
from wjoin.planner.explain.describe import describe
from wjoin.planner.explain.text import explain_text
from wjoin.relations import spark_plan
from wjoin.settings import set_option
from wjoin.sinks import create_sink, describe_sink, drop_sink, show_create, show_sinks
from wjoin.statistics import alter_stream, analyze_stream, statistics_rows
from wjoin.stream_statements import create_stream, describe_stream, drop_stream, show_streams
from wjoin.views import create_view

if TYPE_CHECKING:
    from wjoin.session import Session


def execute(session: "Session", text: str, statement: Statement, params: dict[str, Any]) -> DataFrame:
    """Run one statement; return its DataFrame (empty where it has no rows)."""
    match statement:
        case Query():
            return _query(session, text, statement, params)
        case SparkStatement():
            return session.pass_through(statement.span.of(text), None, params)
        case CreateStream():
            create_stream(session, text, statement)
            return _nothing(session)
        case CreateSink():
            create_sink(session, text, statement)
            return _nothing(session)
        case CreateView():
            return _create_view(session, text, statement, params)
        case ShowStreams():
            return show_streams(session)
        case DescribeStream():
            return describe_stream(session, text, statement)
        case DropStream():
            drop_stream(session, text, statement)
            return _nothing(session)
        case ShowSinks():
            return show_sinks(session)
        case DescribeSink():
            return describe_sink(session, text, statement)
        case DropSink():
            drop_sink(session, text, statement)
            return _nothing(session)
        case ShowCreateStream() | ShowCreateSink():
            return show_create(session, text, statement)
        case SetOption():
            return _set_option(session, text, statement)
        case AlterStream():
            alter_stream(session, text, statement, params)
            return statistics_rows(session, statement.name.name)
        case AnalyzeStream():
            return analyze_stream(session, text, statement)
        case Explain():
            plan = explain(session, text, statement, params)
            return session.spark.createDataFrame([(plan,)], "plan STRING")
        case InsertInto():
            query = insert(session, text, statement, params, once=False, checkpoint=None)
            if query is None:
                return _nothing(session)
            row = (query.name or "", str(query.id))
            return session.spark.createDataFrame([row], "sink STRING, query STRING")


def explain(
    session: "Session", text: str, statement: Statement, params: dict[str, Any], mode: str = ""
) -> Explanation:
    """Return the plans of a statement's W-joins, and in the text what the mode asks for besides.

    An INSERT INTO is planned as on the checkpoint that it would have. COST: every candidate.
    ANALYZE: what the query does, which it runs. FORMATTED: Spark's own plan.
    """
    target: tuple[Identifier, ...] = ()
    if isinstance(statement, Explain | InsertInto):
        target = statement.target
    if isinstance(statement, Explain):
        mode = statement.mode or mode
    if isinstance(statement, CreateView | Explain | InsertInto):
        statement = statement.body
    if not isinstance(statement, Query):
        with placed(text, statement.span):
            frame = session.run_spark(f"EXPLAIN {mode} {statement.span.of(text)}")
        return Explanation("\n".join(row[0] for row in frame.collect()))
    kept = Kept(session.spark, explained_checkpoint(session, target))
    rewriting = session.rewriting(text, statement, params, kept, metered=mode == "ANALYZE")
    documents = [describe(planned) for planned in rewriting.planned]
    parts = [explain_text(each) for each in documents]
    if mode == "COST":
        parts += [cost_text(each) for each in documents]
    if mode == "ANALYZE":
        frame = rewriting.run_at(statement.span)
        with placed(text, statement.span):
            parts.append(measured_text(frame, rewriting.planned, rewriting.meters))
    if mode == "FORMATTED":
        parts.append("Spark plan\n" + spark_plan(rewriting.run_at(statement.span)))
    return Explanation("\n\n".join(parts), documents)


def _query(session: "Session", text: str, query: Query, params: dict[str, Any]) -> DataFrame:
    return session.rewriting(text, query, params).run_at(query.span)


def _create_view(session: "Session", text: str, statement: CreateView, params: dict[str, Any]) -> DataFrame:
    rewriting = session.rewriting(text, statement.body, params)
    create_view(session, text, statement, rewriting, rewriting.run_at(statement.body.span))
    return _nothing(session)


def _set_option(session: "Session", text: str, statement: SetOption) -> DataFrame:
    try:
        set_option(session, statement.key, statement.value)
    except WJoinError as error:
        raise WJoinError(error.code, error.message, span=statement.span, text=text, help=error.help) from None
    row = (statement.key.lower(), statement.value)
    return session.spark.createDataFrame([row], "key STRING, value STRING")


def _nothing(session: "Session") -> DataFrame:
    return session.spark.createDataFrame([], "nothing STRING").drop("nothing")
