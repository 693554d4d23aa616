"""Sinks that get a micro-batch at a time, each once: what one query writes into several of them.

Spark's own sinks are written to, by the number of the micro-batch, so that one which comes again is left
out: by a folder of files for its log, by Delta for the identity of the query. Kafka gets it again, as from
any query.
"""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from wjoin.grammar.errors import WJoinError
from wjoin.sources.catalog import SinkDeclaration
from wjoin.sources.format_options import own_option
from wjoin.sources.record_formats import writing_options
from wjoin.spark.spark_failures import RAISED_BY_SPARK, cause, first_line

_SOURCE = "org.apache.spark.sql.execution.datasources.DataSource"

_SHOWN = frozenset({"console", "noop"})
"""Formats that keep nothing, so that they may get a micro-batch again."""


@dataclass(frozen=True)
class MicroBatchSink:
    """A sink of a query that has several; ``java`` is Spark's own, None for a format that keeps nothing.

    ``skipped``: micro-batches that were not for it, for it numbers its own without a gap.
    """

    declared: SinkDeclaration
    java: Any
    skipped: int = 0

    @classmethod
    def of(cls, spark: SparkSession, sink: SinkDeclaration, rows: DataFrame) -> "MicroBatchSink":
        """Return a sink of rows such as ``rows``.

        Raises WJoinError WJ606 for one that cannot be written a micro-batch at a time.
        """
        mode = own_option(sink.options, "outputMode") or "append"
        if mode.lower() != "append":
            raise _refused(sink, f"its outputMode is {mode}, and a statement set appends")
        if sink.provider.lower() in _SHOWN:
            return cls(sink, None)
        try:
            return cls(sink, _sink(spark, sink, rows))
        except RAISED_BY_SPARK as error:
            raise _refused(sink, first_line(error)) from error

    def write(self, rows: DataFrame, number: int) -> None:
        """Write the rows of micro-batch ``number``. Raises WJoinError WJ704, which names the sink."""
        try:
            if self.java is None:
                writer = rows.write.format(self.declared.provider).options(**writing_options(self.declared))
                writer.mode("append").save()
            else:
                frame: Any = rows
                self.java.addBatch(number - self.skipped, frame._jdf)
        except RAISED_BY_SPARK as error:
            message = f"the sink {self.declared.name} could not be written: {cause(error)}"
            raise WJoinError("WJ704", message) from error


def _sink(spark: SparkSession, sink: SinkDeclaration, rows: DataFrame) -> Any:
    """Return the sink of Spark's that a DataStreamWriter would have."""
    session: Any = spark
    frame: Any = rows
    jvm = session._jvm
    (constructor,) = jvm.java.lang.Class.forName(_SOURCE).getConstructors()
    utils, none = jvm.PythonUtils, jvm.scala.Option.empty()
    given = [
        *(session._jsparkSession, sink.provider, utils.toSeq([]), none),
        *(utils.toSeq(list(sink.partitioned_by)), none, utils.toScalaMap(writing_options(sink)), none),
    ]
    # From Spark 4.3 on there is one more thing to give, and a sink is told the schema.
    later = constructor.getParameterCount() - len(given)
    source = jvm.org.apache.spark.sql.execution.datasources.DataSource(*given, *[none] * later)
    append = jvm.org.apache.spark.sql.streaming.OutputMode.Append()
    return source.createSink(append, frame._jdf.schema()) if later else source.createSink(append)


def _refused(sink: SinkDeclaration, why: str) -> WJoinError:
    message = f"the sink {sink.name} cannot be one of a statement set: {why}"
    return WJoinError("WJ606", message, help="run the statement as an INSERT INTO of its own")
