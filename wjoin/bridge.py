"""The process that plans W-join SQL for a Spark that Python has not started: spark-sql, JDBC, Scala, Connect.

``wjoin.sql.Extensions`` (java/) starts it. It is a client of the Java process, asks it for statements, and
answers with plans and rows; it ends when its standard input does.
"""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession

from wjoin.failures import cause
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_script
from wjoin.grammar.syntax import (
    CreateSink,
    CreateStream,
    CreateView,
    DropSink,
    DropStream,
    InsertInto,
    SparkStatement,
    Statement,
    StopQuery,
)
from wjoin.query_statements import STOPPED_SCHEMA
from wjoin.session import Session, connect

INSIDE = "wjoin.inside"
"""The local property of threads whose statements are Spark's (``wjoin.sql.Planner``)."""

THREADS = 16
"""How many statements are planned at once."""

_CHANGES = (CreateStream, CreateSink, CreateView, DropStream, DropSink)
"""Statements that answer no rows, and may not be run twice."""


def command_schema(statement: Statement) -> str | None:
    """Return the columns of what a statement answers that changes something, None for any other."""
    if isinstance(statement, StopQuery):
        return STOPPED_SCHEMA
    if isinstance(statement, InsertInto):
        return "sink STRING, query STRING"
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
        self._planner = jvm.wjoin.sql.Planner
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()

    def serve(self) -> None:
        """Answer what is asked, until the process ends."""
        with ThreadPoolExecutor(THREADS) as pool:
            while True:
                request = self._planner.next()
                if request is not None:
                    pool.submit(self._answer, request)

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
        statements = parse_script(text).statements
        if len(statements) != 1 or isinstance(statements[0], SparkStatement):
            request.leave()
            return
        schema = command_schema(statements[0])
        session = self._session(request.session())
        if request.run():
            request.answered(_rows(session.sql(text)))
        elif schema is not None:
            request.command(schema)
        else:
            request.planned(session.sql(text)._jdf.queryExecution().analyzed())

    def _session(self, java: Any) -> Session:
        with self._lock:
            name = java.sessionUUID()
            if name not in self._sessions:
                self._sessions[name] = connect(SparkSession(self._context, java))
            return self._sessions[name]


def _rows(frame: DataFrame) -> Any:
    return frame._jdf.collectAsList()


def main() -> None:
    """Serve the Java process that has started this one."""
    threading.Thread(target=_end_with_input, daemon=True).start()
    Bridge(launch_gateway()).serve()  # type: ignore[no-untyped-call]  # PySpark's own


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
