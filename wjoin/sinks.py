"""The statements about sinks, and those that show how streams and sinks were declared."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from wjoin.format_options import SINK_OPTIONS, check_options, option_span, own_option
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.printer import print_declaration
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import (
    CreateSink,
    CreateStream,
    DescribeSink,
    DropSink,
    Identifier,
    InsertInto,
    ShowCreateSink,
    ShowCreateStream,
)
from wjoin.streams import Declarations, SinkDeclaration, StreamDeclaration, find
from wjoin.triggers import processing_time

if TYPE_CHECKING:
    from wjoin.session import Session


def create_sink(session: "Session", text: str, statement: CreateSink) -> None:
    """Declare a sink. Raises WJoinError WJ601 and WJ603."""
    name = statement.name.name
    sinks = session.declarations.sinks
    if name.lower() in sinks:
        if statement.if_not_exists:
            return
        if not statement.or_replace:
            raise WJoinError("WJ601", f"the sink {name} exists already", span=statement.name.span, text=text)
    columns = tuple(column.name for column in statement.partitioned_by)
    options = dict(statement.options)
    check_options(options, SINK_OPTIONS, statement.provider.name, statement.span, text)
    _check_trigger(options, statement.span, text)
    sinks[name.lower()] = SinkDeclaration(name, statement.provider.name, options, columns, statement)


def _check_trigger(options: dict[str, str], span: Span, text: str) -> None:
    """Refuse a sink's option trigger that is no time. Raises WJoinError WJ603."""
    every = own_option(options, "trigger")
    if every is not None:
        try:
            processing_time(every)
        except WJoinError as error:
            raise error.at(option_span("trigger", span, text), text) from None


def show_sinks(session: "Session") -> DataFrame:
    """Return a row for each sink."""
    rows = [
        (sink.name, sink.provider, sink.options.get("path"), ", ".join(sink.partitioned_by) or None)
        for sink in session.declarations.sinks.values()
    ]
    return session.spark.createDataFrame(
        rows, "name STRING, format STRING, path STRING, partitioned_by STRING"
    )


def describe_sink(session: "Session", text: str, statement: DescribeSink) -> DataFrame:
    """Return what a sink is: its format, partition columns and options. Raises WJoinError WJ602."""
    sink = find_sink(session.declarations, statement.name, text, "DESCRIBE STREAM {}")
    rows: list[tuple[str, str]] = [("format", sink.provider)]
    if sink.partitioned_by:
        rows.append(("partitioned by", ", ".join(sink.partitioned_by)))
    rows += [(f"option {key}", value) for key, value in sink.options.items()]
    return session.spark.createDataFrame(rows, "property STRING, value STRING")


def drop_sink(session: "Session", text: str, statement: DropSink) -> None:
    """Forget a sink; what was written stays, and so do its running queries. Raises WJoinError WJ602."""
    name = statement.name.name.lower()
    declared = session.declarations
    if statement.if_exists and name not in declared.sinks:
        return
    find_sink(declared, statement.name, text, "DROP STREAM {}")
    del declared.sinks[name]


def show_create(session: "Session", text: str, statement: ShowCreateStream | ShowCreateSink) -> DataFrame:
    """Return the statement that declares a stream or sink again. Raises WJoinError WJ602 or WJ606."""
    name = statement.name
    declared: StreamDeclaration | SinkDeclaration
    if isinstance(statement, ShowCreateStream):
        declared = find_stream(session.declarations, name, text, "SHOW CREATE SINK {}")
    else:
        declared = find_sink(session.declarations, name, text, "SHOW CREATE STREAM {}")
    if declared.statement is None:
        raise WJoinError(
            "WJ606",
            f"{declared.name} was not declared by CREATE STREAM, so there is no statement to show",
            span=name.span,
            text=text,
            help="DESCRIBE STREAM shows its columns; it comes from a view or a DataFrame of Python",
        )
    shown: CreateStream | CreateSink = replace(declared.statement, or_replace=False, if_not_exists=False)
    return session.spark.createDataFrame([(print_declaration(shown),)], "statement STRING")


def refuse_repeated(frame: DataFrame, sink: SinkDeclaration, statement: InsertInto, text: str) -> None:
    """Refuse columns of one name: files of them could not be read again. Raises WJoinError WJ613."""
    if sink.provider.lower() in ("console", "memory", "noop"):
        return
    names = [name.lower() for name in frame.columns]
    repeated = [name for number, name in enumerate(frame.columns) if name.lower() in names[:number]]
    if repeated:
        raise WJoinError(
            "WJ613",
            f"the rows for {sink.name} have more than one column named {repeated[0]}",
            span=statement.body.span,
            text=text,
            help=f"give each a name of its own: … AS {repeated[0]}_2, or INSERT INTO {sink.name} (names …)",
        )


def in_order(frame: DataFrame, statement: InsertInto, text: str) -> DataFrame:
    """Return the rows of an INSERT INTO with the columns that it names. Raises WJoinError WJ106."""
    names = [column.name for column in statement.columns]
    if not names:
        return frame
    if len(names) != len(frame.columns):
        raise WJoinError(
            "WJ106",
            f"the INSERT names {_columns(len(names))}, its query has {_columns(len(frame.columns))}",
            span=statement.columns[0].span.cover(statement.columns[-1].span),
            text=text,
            help=f"columns are named by position; the query has {', '.join(frame.columns)}",
        )
    return frame.toDF(*names)


def _columns(number: int) -> str:
    return f"{number} column{'' if number == 1 else 's'}"


def find_stream(declared: Declarations, name: Identifier, text: str, instead: str) -> StreamDeclaration:
    """Return a stream by name. Raises WJoinError WJ602; of a sink it says to write ``instead``."""
    _refuse_other(declared.streams, declared.sinks, name, text, ("a sink", "a stream"), instead)
    return find(declared.streams, "stream", name.name, name.span, text)


def find_sink(declared: Declarations, name: Identifier, text: str, instead: str) -> SinkDeclaration:
    """Return a sink by name; as ``find_stream``."""
    _refuse_other(declared.sinks, declared.streams, name, text, ("a stream", "a sink"), instead)
    return find(declared.sinks, "sink", name.name, name.span, text)


def _refuse_other(
    meant: Mapping[str, object],
    other: Mapping[str, object],
    name: Identifier,
    text: str,
    kinds: tuple[str, str],
    instead: str,
) -> None:
    if name.name.lower() in meant or name.name.lower() not in other:
        return
    message = f"{name.name} is {kinds[0]}, not {kinds[1]}"
    help = f"write {instead.format(name.name)}"
    raise WJoinError("WJ602", message, span=name.span, text=text, help=help)
