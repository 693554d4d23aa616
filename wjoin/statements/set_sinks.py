"""The sinks of a statement set: each gets the rows of its statement, a micro-batch at a time, once.

Spark's own sinks are written to, by the number of the micro-batch, so that one which comes again is left
out: by a folder of files for its log, by Delta and Iceberg for the identity of the query. Kafka and functions
get it again, as from any query.
"""

from typing import Any
from urllib.parse import quote

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame
from pyspark.sql.streaming import DataStreamWriter
from pyspark.sql.utils import ForeachBatchFunction

from wjoin.grammar.errors import WJoinError
from wjoin.queries.run_once import given_whole
from wjoin.queries.running_set import WaitingRows
from wjoin.sources.catalog import SinkDeclaration
from wjoin.sources.format_options import own_option
from wjoin.sources.record_formats import writing_options
from wjoin.spark.java_classes import java_class
from wjoin.spark.spark_failures import RAISED_BY_SPARK, first_line

_SOURCE = "org.apache.spark.sql.execution.datasources.DataSource"

_SHOWN = frozenset({"console", "noop"})
"""Formats that keep nothing, so that they may get a micro-batch again."""


class SetSinks:
    """Several sinks of a query, with their rows as Spark has analysed them once.

    ``shape`` is a relation ``without_rows`` in whose place the micro-batches come; ``at_once`` sinks are
    written at a time, after the first one, which makes the rows. If a sink fails, its rows wait in a folder
    of ``waiting``, up to ``most`` bytes, and are written before those of later micro-batches. Rows for which
    there is no room end the query, and WJ704 names the sink.
    """

    def __init__(self, shape: DataFrame, at_once: int, waiting: str, most: int) -> None:
        frame: Any = shape
        self._java = java_class(shape.sparkSession, "wjoin.sinks.SetSinks")(frame._jdf, at_once)
        self._waiting, self._most = waiting, most

    def add(
        self,
        sink: SinkDeclaration,
        rows: DataFrame,
        skipped: int = 0,
        ends: tuple[DataFrame, int] | None = None,
    ) -> None:
        """Add a sink with its rows over the shape; ``skipped``: micro-batches that were not for it.

        It numbers its own without a gap: Spark cannot read a sink's log that has one. ``ends``: rows over the
        shape with which a commit of several micro-batches ends, and the number of the last one that it has.

        Raises WJoinError WJ606 for one that cannot be written a micro-batch at a time.
        """
        frame: Any = rows
        own = sink_of(sink, rows)
        when: Any
        when, last = (None, -1) if ends is None else ends
        waiting = f"{self._waiting}/{folder_name(sink.name)}"
        self._java.add(
            *(sink.name, frame._jdf, own, sink.provider, writing_options(sink)),
            skipped,
            waiting,
            self._most,
            *(None if when is None else when._jdf, last),
        )

    def of(self, made: DataFrame) -> DataStreamWriter:
        """Return what writes a query into the sinks."""
        writer = made.writeStream
        java: Any = writer
        java._jwrite.foreachBatch(self._java)
        return writer

    def waiting(self) -> list[WaitingRows]:
        """Return for which sinks rows wait, in the order of the statements."""
        return [
            WaitingRows(
                each.sink(), each.microBatches(), each.bytes(), each.since() / 1000, each.why(), each.fails()
            )
            for each in self._java.waiting()
        ]

    def shut(self) -> None:
        """Let the micro-batch at work be written, and none after it: those wait for the end of the query."""
        self._java.shut()


def folder_name(sink: str) -> str:
    """Return the name of the folder in which rows wait for a sink."""
    return quote(sink.lower(), safe="")


def sink_of(sink: SinkDeclaration, rows: DataFrame) -> Any:
    """Return Spark's sink for rows, None for a format that keeps nothing.

    Raises WJoinError WJ606 for one that cannot be written a micro-batch at a time.
    """
    mode = own_option(sink.options, "outputMode") or "append"
    if mode.lower() != "append":
        raise _refused(sink, f"its outputMode is {mode}, and a statement set appends")
    try:
        return None if sink.provider.lower() in _SHOWN else _created(sink, rows)
    except RAISED_BY_SPARK as error:
        raise _refused(sink, first_line(error)) from error


def _created(sink: SinkDeclaration, rows: DataFrame) -> Any:
    """Return the sink of Spark's that a DataStreamWriter would have."""
    session: Any = rows.sparkSession
    if sink.write is not None:
        # As foreachBatch of a DataStreamWriter has it.
        ensure_callback_server_started(session._sc._gateway)  # type: ignore[no-untyped-call]  # has no types
        function = ForeachBatchFunction(session, given_whole(sink.write))
        return java_class(session, "wjoin.sinks.FunctionSink")(function)
    frame: Any = rows
    jvm, schema = session._jvm, frame._jdf.schema()
    options = writing_options(sink)
    table = java_class(rows.sparkSession, "wjoin.sinks.TableSink")
    found = table(session._jsparkSession, sink.provider, options, schema)
    if found.takesStreams():
        return found
    (constructor,) = jvm.java.lang.Class.forName(_SOURCE).getConstructors()
    utils, none = jvm.PythonUtils, jvm.scala.Option.empty()
    given = [
        *(session._jsparkSession, sink.provider, utils.toSeq([]), none),
        *(utils.toSeq(list(sink.partitioned_by)), none, utils.toScalaMap(options), none),
    ]
    # From Spark 4.3 on there is one more thing to give, and a sink is told the schema.
    later = constructor.getParameterCount() - len(given)
    source = jvm.org.apache.spark.sql.execution.datasources.DataSource(*given, *[none] * later)
    append = jvm.org.apache.spark.sql.streaming.OutputMode.Append()
    return source.createSink(append, schema) if later else source.createSink(append)


def _refused(sink: SinkDeclaration, why: str) -> WJoinError:
    message = f"the sink {sink.name} cannot be one of a statement set: {why}"
    return WJoinError("WJ606", message, help="run the statement as an INSERT INTO of its own")
