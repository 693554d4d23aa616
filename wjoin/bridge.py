"""The process that plans W-join SQL for a Spark that Python has not started: spark-sql, JDBC, Scala, Connect.

``wjoin.sql.Extensions`` (java/) starts it. It is a client of the Java process, asks it for statements, and
answers with plans and rows; it ends when its standard input does.
"""

import gc
import logging
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import Column, DataFrame, SparkSession

from wjoin.commands.complaints import printed_warnings
from wjoin.connecting import connect
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.nesting import QUERY_WORDS
from wjoin.grammar.parser import begins_set, parse_script
from wjoin.grammar.plurals import counted
from wjoin.grammar.statement_kinds import (
    AlterSet,
    CreateSink,
    CreateStream,
    CreateView,
    DescribeQuery,
    DropSink,
    DropStream,
    ExecuteImmediate,
    ExplainSet,
    InsertInto,
    Query,
    ShowQueries,
    SparkStatement,
    Statement,
    StatementSet,
    StateSelect,
    StopQuery,
)
from wjoin.grammar.tokens import first_word
from wjoin.joins.predicates import called_names, called_predicates
from wjoin.joins.recognised import recognised
from wjoin.queries.running import Running
from wjoin.session import Session
from wjoin.sources.token_folders import TOKEN_FOLDERS
from wjoin.spark.engine import at_work
from wjoin.spark.spark_failures import cause
from wjoin.statements.about import changed_view, subject
from wjoin.statements.queries import STOPPED_SCHEMA
from wjoin.statements.views import PreparedView, prepare_view, view_head

INSIDE = "wjoin.inside"
"""The local property of threads whose statements are Spark's (``wjoin.sql.Planner``)."""

WORK = "wjoin-work"
"""By which name the process of Spark has the object that gives work (``wjoin.sql.Work``)."""

THREADS = 16
"""How many statements are planned at once."""

_ABOUT_QUERIES = (ShowQueries, DescribeQuery, StopQuery, StateSelect)

_CHANGES = (CreateStream, CreateSink, CreateView, DropStream, DropSink)
"""Statements that answer no rows, and may not be run twice."""

_BEGUN = "statement_set STRING"
"""What the beginning of a statement set answers."""

_DESCRIBED = "col_name STRING, data_type STRING, comment STRING"
"""What DESCRIBE of a query answers."""


def command_schema(statement: Statement, text: str) -> str | None:
    """Return the columns of what a statement answers that is run once, None for one that is planned."""
    if isinstance(statement, Query):
        first = first_word(text)
        return None if first in QUERY_WORDS else _DESCRIBED if first in ("DESC", "DESCRIBE") else ""
    if isinstance(statement, StopQuery):
        return STOPPED_SCHEMA
    if isinstance(statement, AlterSet | InsertInto | StatementSet):
        return "sink STRING, query STRING"
    if isinstance(statement, ExplainSet):
        return "plan STRING"
    return "" if isinstance(statement, _CHANGES) else None


class Bridge:
    """The sessions of an application, and what is asked of them."""

    def __init__(self, gateway: Any) -> None:
        jvm = gateway.jvm
        context = jvm.org.apache.spark.SparkContext.getOrCreate()
        java = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(context)
        self._context = SparkContext(
            gateway=gateway, jsc=java, conf=SparkConf(_jvm=jvm, _jconf=java.getConf())
        )
        # Who sends SQL here is not who may read the files of this Spark.
        self._context._conf.setIfMissing(TOKEN_FOLDERS, "")
        # PySpark makes the first session that it sees the application's own: not a user's, who will leave.
        SparkSession(self._context)
        self._work = JavaObject(WORK, gateway._gateway_client)
        self._sessions: dict[str, Session] = {}
        self._ended: set[str] = set()
        self._users: dict[str, str | None] = {}
        self._lock = threading.Lock()

    def serve(self) -> None:
        """Answer what is asked, until the process ends."""
        with ThreadPoolExecutor(THREADS) as pool:
            while True:
                request = self._work.next()
                if request is not None:
                    self._take(request, pool)
                self._let_go()

    def _take(self, request: Any, pool: ThreadPoolExecutor) -> None:
        ended = request.ended()
        if ended is None:
            pool.submit(self._answer, request)
        else:
            self._ended.add(ended)

    def _let_go(self) -> None:
        """Let go of the sessions that have ended, once their queries have."""
        for name in list(self._ended):
            session = self._sessions.get(name)
            if session is None or not any(each.query.isActive for each in session.running):
                self._ended.discard(name)
                if session is not None:
                    session.let_go()
                    with self._lock:
                        del self._sessions[name], self._users[name]
                        self._work.holds(len(self._sessions))
                    # Java keeps what Python refers to, and some of that refers to itself.
                    del session
                    gc.collect()

    def _answer(self, request: Any) -> None:
        try:
            self._context.setLocalProperty(INSIDE, "true")
            self._answered(request)
        except WJoinError as error:
            request.refused(error.code, str(error))
        except Exception as error:  # noqa: BLE001  # who has asked waits for an answer, whatever it is
            request.refused("WJ607", f"error[WJ607]: {cause(error)}")

    def _answered(self, request: Any) -> None:
        text = request.text()
        begun = begins_set(text) if request.inPieces() else None
        if begun is not None:
            self._begin(request, begun)
            return
        statements = parse_script(text)
        if len(statements) != 1:
            request.leave()
            return
        statement = self._recognised(request, text, statements[0])
        of_spark = isinstance(statement, SparkStatement)
        if isinstance(statement, ExecuteImmediate) or (
            of_spark and not request.run() and not self._is_command(request, text)
        ):
            # Spark asks again for the statement that is executed.
            request.leave()
            return
        schema = "" if of_spark else command_schema(statement, text)
        session = self._session(request)
        if isinstance(statement, _ABOUT_QUERIES):
            session.context.queries.left = self._left_by(request.user())
        parameters = {str(name): _value(each) for name, each in dict(request.parameters()).items()}
        if request.run():
            before = len(session.running)
            rows = _rows(session.sql(text, parameters))
            self._tell_of(session.running[before:])
            request.answered(rows)
        elif schema is not None:
            request.command(schema)
        else:
            request.planned(session.sql(text, parameters)._jdf.queryExecution().analyzed())

    def _recognised(self, request: Any, text: str, statement: Statement) -> Statement:
        """Return a statement, as a W-join where it is one of streams of its session by its conditions."""
        with self._lock:
            session = self._sessions.get(request.session().sessionUUID())
        if session is None:
            return statement
        at_work(session.spark)
        parameters = {str(name): _value(each) for name, each in dict(request.parameters()).items()}
        return recognised(session.context.asked(text, parameters), statement)

    def _begin(self, request: Any, begun: StatementSet | ExplainSet) -> None:
        """Answer how far a statement set has come: Spark's shells hand it over in pieces, END as the last."""
        if not request.run():
            request.command(_BEGUN)
            return
        inserts = begun.body.inserts if isinstance(begun, ExplainSet) else begun.inserts
        told = f"{counted(len(inserts), 'statement')} so far; END; starts the set"
        request.begun(_rows(self._session(request).context.engine.rows([(told,)], _BEGUN)))

    def _tell_of(self, begun: list[Running]) -> None:
        """Have Java say, when the application ends, which of the queries that have begun end with it."""
        for each in begun:
            run = str(each.query.runId)
            self._work.runs(run, each.name)
            if not each.query.isActive:
                self._work.ended(run)

    def _is_command(self, request: Any, text: str) -> bool:
        """Return whether a statement of Spark's is ours to run: it is about a view of a stream.

        Tells Spark of predicates in it.
        """
        if not called_names(text) and view_head(text) is None and subject(text) is None:
            return False
        session = self._session(request)
        called_predicates(session.spark, text)
        declared = session.declarations
        changed = changed_view(session.context, text) or prepare_view(session.context.engine, declared, text)
        if isinstance(changed, PreparedView) and changed.delays is not None:
            return True
        return changed.name is not None and declared.stream(changed.name) is not None

    def _left_by(self, user: str | None) -> tuple[Running, ...]:
        """Return the queries that run on from sessions that a user of JDBC has ended."""
        if user is None:
            return ()
        with self._lock:
            ended = [
                self._sessions[each]
                for each, whose in self._users.items()
                if each in self._ended and whose == user
            ]
        return tuple(each for session in ended for each in session.running if each.query.isActive)

    def _session(self, request: Any) -> Session:
        with self._lock:
            java = request.session()
            name = java.sessionUUID()
            if name not in self._sessions:
                self._sessions[name] = connect(SparkSession(self._context, java))
                self._users[name] = request.user()
                self._work.holds(len(self._sessions))
            found = self._sessions[name]
        at_work(found.spark)
        return found


def _value(parameter: Any) -> Any:
    """Return the value of a parameter, as ``wjoin.sql.Parameters`` hands it over."""
    if not isinstance(parameter, JavaObject):
        return parameter
    if parameter.getClass().getName() == "java.time.Duration":
        return timedelta(seconds=parameter.getSeconds(), microseconds=parameter.getNano() // 1000)
    return Column(parameter)


def _rows(frame: DataFrame) -> Any:
    return frame._jdf.collectAsList()


def main() -> None:
    """Serve the Java process that has started this one."""
    # Whoever has asked is told; here PySpark would print the same with a stack.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    threading.Thread(target=_end_with_input, daemon=True).start()
    bridge = Bridge(launch_gateway())  # type: ignore[no-untyped-call]  # PySpark's own
    # A terminal's Ctrl-C is for Spark's shell, and comes here as well; PySpark would end with it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with printed_warnings("<sql>"):
        bridge.serve()


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
