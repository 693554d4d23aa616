"""A statement to the handler of its kind."""

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame

from wjoin.context import Asked
from wjoin.grammar import statement_kinds
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_statement
from wjoin.grammar.statement_kinds import ExecuteImmediate, InsertInto, SparkStatement, Statement
from wjoin.joins.predicates import show_predicates
from wjoin.joins.recognised import recognised
from wjoin.joins.rewrite import joined_rows, joined_view
from wjoin.settings.parameters import setting_value
from wjoin.spark.spark_failures import located
from wjoin.statements.alter_set import alter_set
from wjoin.statements.explain import explain
from wjoin.statements.queries import describe_query, show_queries, stop_query
from wjoin.statements.sinks import create_sink, describe_sink, drop_sink, show_create, show_sinks
from wjoin.statements.spark import pass_through, send
from wjoin.statements.state import select_state
from wjoin.statements.statement_sets import execute_set, run_insert
from wjoin.statements.statistics import alter_stream, analyze_stream
from wjoin.statements.streaming_rows import refuse_actions
from wjoin.statements.streams import create_stream, describe_stream, drop_stream, show_streams
from wjoin.statements.views import create_view


def execute(asked: Asked, statement: Statement) -> DataFrame:
    """Run one statement; return its DataFrame (empty where it has no rows).

    What Spark raises is an error at the place of the statement.
    """
    # These may be Spark's altogether, and Spark's own error is then what its callers expect.
    sparks = isinstance(statement, ExecuteImmediate) or (
        isinstance(statement, InsertInto) and isinstance(statement.body, SparkStatement)
    )
    with asked.placed(None if sparks else statement.span):
        rows = HANDLERS[type(statement)](asked, statement)
        return asked.engine.nothing() if rows is None else rows


def _query(asked: Asked, query: statement_kinds.Query) -> DataFrame:
    rows, joins = joined_rows(asked, query)
    return refuse_actions(rows) if any(each.physical.streaming for each in joins.planned) else rows


def _execute_immediate(asked: Asked, statement: ExecuteImmediate) -> DataFrame:
    """Run the statement that an expression says. Raises WJoinError WJ606 for one that cannot be run so."""
    given = {"args": asked.params} if asked.params else {}
    (text,) = asked.engine.run(f"SELECT {statement.said.of(asked.text)}", **given).first() or (None,)
    said = recognised(asked.asked(str(text), {}), parse_statement(str(text))) if text else statement
    if isinstance(said, ExecuteImmediate) or (statement.bound and isinstance(said, SparkStatement)):
        return send(asked, statement)
    if isinstance(said, SparkStatement):
        return pass_through(asked, str(text), {})
    if statement.bound or isinstance(said, InsertInto):
        message = "EXECUTE IMMEDIATE runs a statement of wjoin's without INTO and USING, and starts no query"
        raise WJoinError("WJ606", message, span=statement.span, help="run the statement itself")
    return execute(asked.asked(str(text), {}), said)


def _create_view(asked: Asked, statement: statement_kinds.CreateView) -> None:
    create_view(asked, statement, *joined_view(asked, statement.body))


def _explain(asked: Asked, statement: Statement) -> DataFrame:
    # Java reads rows of Python's own types only.
    return asked.engine.rows([(str(explain(asked, statement)),)], "plan STRING")


def _insert(asked: Asked, statement: InsertInto) -> DataFrame | None:
    running = run_insert(asked, statement, once=False, checkpoint=None)
    if running is None:
        return None
    return asked.engine.rows([(running.name, str(running.query.id))], "sink STRING, query STRING")


def _statement_set(asked: Asked, statement: statement_kinds.StatementSet) -> DataFrame:
    running = execute_set(asked, statement, once=False, checkpoint=None)
    return asked.engine.rows([(running.sink, str(running.query.id))], "sink STRING, query STRING")


def _alter_set(asked: Asked, statement: statement_kinds.AlterSet) -> DataFrame:
    running = alter_set(asked, statement)
    return asked.engine.rows([(running.sink, str(running.query.id))], "sink STRING, query STRING")


def _set_option(asked: Asked, statement: statement_kinds.SetOption) -> DataFrame:
    """Give a setting of wjoin a value; return its name and value. Raises WJoinError WJ212 and WJ603."""
    with located(statement.span):
        value = setting_value(statement.value, asked.params)
        asked.settings.set(statement.key, value)
    return asked.engine.rows([(statement.key.lower(), value)], "key STRING, value STRING")


HANDLERS: dict[type[Statement], Callable[[Asked, Any], DataFrame | None]] = {
    statement_kinds.Query: _query,
    statement_kinds.InsertInto: _insert,
    statement_kinds.StatementSet: _statement_set,
    statement_kinds.AlterSet: _alter_set,
    statement_kinds.SparkStatement: send,
    statement_kinds.StateSelect: select_state,
    statement_kinds.ExecuteImmediate: _execute_immediate,
    statement_kinds.CreateView: _create_view,
    statement_kinds.Explain: _explain,
    statement_kinds.ExplainSet: _explain,
    statement_kinds.ExplainDelay: _explain,
    statement_kinds.CreateStream: create_stream,
    statement_kinds.ShowStreams: show_streams,
    statement_kinds.DescribeStream: describe_stream,
    statement_kinds.DropStream: drop_stream,
    statement_kinds.ShowCreateStream: show_create,
    statement_kinds.AlterStream: alter_stream,
    statement_kinds.AnalyzeStream: analyze_stream,
    statement_kinds.CreateSink: create_sink,
    statement_kinds.ShowSinks: show_sinks,
    statement_kinds.DescribeSink: describe_sink,
    statement_kinds.DropSink: drop_sink,
    statement_kinds.ShowCreateSink: show_create,
    statement_kinds.ShowPredicates: lambda asked, _: show_predicates(asked.engine),
    statement_kinds.ShowQueries: show_queries,
    statement_kinds.DescribeQuery: describe_query,
    statement_kinds.StopQuery: stop_query,
    statement_kinds.SetOption: _set_option,
}
"""What runs a statement of each kind; None stands for no rows."""
