"""A statement to the handler of its kind."""

from typing import Any, assert_never

from pyspark.sql import DataFrame

from wjoin.context import Context
from wjoin.grammar.syntax import (
    AlterStream,
    AnalyzeStream,
    CreateSink,
    CreateStream,
    CreateView,
    DescribeQuery,
    DescribeSink,
    DescribeStream,
    DropSink,
    DropStream,
    Explain,
    InsertInto,
    Query,
    SetOption,
    ShowCreateSink,
    ShowCreateStream,
    ShowPredicates,
    ShowQueries,
    ShowSinks,
    ShowStreams,
    SparkStatement,
    Statement,
    StopQuery,
)
from wjoin.joins.predicates import show_predicates
from wjoin.joins.rewrite import joined_rows, joined_view
from wjoin.settings.session import set_option
from wjoin.spark.failures import located, placed
from wjoin.statements.explain import explain
from wjoin.statements.inserts import insert
from wjoin.statements.queries import describe_query, show_queries, stop_query
from wjoin.statements.sinks import create_sink, describe_sink, drop_sink, show_create, show_sinks
from wjoin.statements.spark import pass_through
from wjoin.statements.statistics import alter_stream, analyze_stream
from wjoin.statements.streaming_rows import refuse_actions
from wjoin.statements.streams import create_stream, describe_stream, drop_stream, show_streams
from wjoin.statements.views import create_view


def execute(context: Context, text: str, statement: Statement, params: dict[str, Any]) -> DataFrame:
    """Run one statement; return its DataFrame (empty where it has no rows).

    What Spark raises is an error at the place of the statement.
    """
    if isinstance(statement, InsertInto) and isinstance(statement.body, SparkStatement):
        # It may be Spark's altogether, and Spark's own error is then what its callers expect.
        with located(text):
            return _insert(context, text, statement, params)
    with placed(text, statement.span):
        return _executed(context, text, statement, params)


def _executed(context: Context, text: str, statement: Statement, params: dict[str, Any]) -> DataFrame:
    """Give a statement to the handler of its kind, with what that needs."""
    engine, catalog, settings = context.engine, context.catalog, context.settings
    match statement:
        case Query():
            return _query(context, text, statement, params)
        case InsertInto():
            return _insert(context, text, statement, params)
        case SparkStatement():
            return pass_through(engine, catalog, statement.span.of(text), None, params)
        case CreateView():
            _create_view(context, text, statement, params)
        case Explain():
            plan = explain(context, text, statement, params)
            # Java reads rows of Python's own types only.
            return engine.rows([(str(plan),)], "plan STRING")
        case CreateStream():
            create_stream(engine, catalog, text, statement, params)
        case ShowStreams():
            return show_streams(engine, catalog)
        case DescribeStream():
            return describe_stream(engine, catalog, statement)
        case DropStream():
            drop_stream(engine, catalog, statement)
        case AlterStream():
            return alter_stream(engine, catalog, statement, params)
        case AnalyzeStream():
            return analyze_stream(engine, catalog, statement)
        case CreateSink():
            create_sink(engine, catalog, text, statement, params)
        case ShowSinks():
            return show_sinks(engine, catalog)
        case ShowPredicates():
            return show_predicates(engine)
        case ShowQueries():
            return show_queries(engine, context.queries)
        case DescribeQuery():
            return describe_query(engine, context.queries, statement)
        case StopQuery():
            return stop_query(engine, context.queries, statement)
        case DescribeSink():
            return describe_sink(engine, catalog, statement)
        case DropSink():
            drop_sink(catalog, statement)
        case ShowCreateStream() | ShowCreateSink():
            return show_create(engine, catalog, statement)
        case SetOption():
            return set_option(engine, settings, text, statement, params)
        case _:
            assert_never(statement)
    return engine.nothing()


def _query(context: Context, text: str, query: Query, params: dict[str, Any]) -> DataFrame:
    rows, joins = joined_rows(context, text, query, params)
    return refuse_actions(rows) if any(each.physical.streaming for each in joins.planned) else rows


def _create_view(context: Context, text: str, statement: CreateView, params: dict[str, Any]) -> None:
    rows, delays = joined_view(context, text, statement.body, params)
    create_view(context.engine, context.catalog, statement, rows, delays)


def _insert(context: Context, text: str, statement: InsertInto, params: dict[str, Any]) -> DataFrame:
    running = insert(context, text, statement, params, once=False, checkpoint=None)
    if running is None:
        return context.engine.nothing()
    return context.engine.rows([(running.name, str(running.query.id))], "sink STRING, query STRING")
