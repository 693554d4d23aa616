"""FROM items to DataFrames and to what the planner must know of them."""

import contextlib
import io
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from wjoin.grammar.errors import WJoinError
from wjoin.planner.catalog import Column, Relation
from wjoin.planner.physical import TimeKind
from wjoin.streams import StreamDeclaration


@dataclass(frozen=True)
class SparkTypes:
    """Spark's typing rules over the inputs of one join (planner.catalog.Types)."""

    spark: SparkSession
    aliases: Sequence[str]
    inputs: Sequence[DataFrame]

    def of(self, stream: int, expression: str) -> str:
        """Return the type of an expression over FROM item ``stream``."""
        rows = self.inputs[stream].alias(self.aliases[stream])
        try:
            return rows.select(F.expr(expression)).schema[0].dataType.simpleString()
        except (AnalysisException, ParseException) as error:
            raise WJoinError("WJ607", f"Spark cannot read {expression}: {first_line(error)}") from error

    def common(self, first: str, second: str) -> str | None:
        """Return the type to which Spark widens both for ``=``, None when it has none."""
        left, right = f"CAST(NULL AS {first})", f"CAST(NULL AS {second})"
        try:
            pair = self.spark.sql(f"SELECT coalesce({left}, {right}) AS both, {left} = {right} AS equal")
            return pair.schema["both"].dataType.simpleString()
        except (AnalysisException, ParseException):
            return None


def describe(frame: DataFrame, declaration: StreamDeclaration | None) -> Relation:
    """Return a DataFrame as the planner sees it."""
    columns = tuple(Column(each.name, each.dataType.simpleString()) for each in frame.schema.fields)
    event_time, delay = None, 0
    if declaration is not None:
        event_time, delay = declaration.event_time, declaration.delay or 0
    return Relation(columns, event_time, delay, frame.isStreaming)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message; Py4J's own first line says nothing."""
    lines = str(error).strip().splitlines()
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        return lines[1].removeprefix(": ")
    return lines[0] if lines else type(error).__name__


def time_kind(spark_type: str) -> TimeKind:
    """Return the kind of event time that a column of a Spark type holds."""
    return TimeKind(spark_type) if spark_type.startswith("timestamp") else TimeKind.INTEGRAL


def spark_plan(frame: DataFrame) -> str:
    """Return Spark's own formatted plan of a DataFrame, or where a stream's is to be had."""
    if frame.isStreaming:
        # Spark refuses to explain a streaming DataFrame that has not been started.
        return "Spark plans a stream when it starts: see explain() of the running StreamingQuery"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        frame.explain("formatted")
    return printed.getvalue().rstrip()
