"""The statements about sinks, and those that show how streams and sinks were declared."""

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame

from wjoin.context import Asked
from wjoin.grammar.durations import spell
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.plurals import counted
from wjoin.grammar.printer import print_declaration
from wjoin.grammar.shown import redacted
from wjoin.grammar.spans import Span
from wjoin.grammar.statement_kinds import (
    CreateSink,
    CreateStream,
    DescribeSink,
    DropSink,
    InsertInto,
    ShowCreateSink,
    ShowCreateStream,
    ShowSinks,
)
from wjoin.grammar.syntax import Duration, TimeDuration
from wjoin.planner.plan.physical import TimeKind
from wjoin.planner.windows.lengths import duration_value
from wjoin.settings.parameters import given_sink
from wjoin.settings.triggers import processing_time
from wjoin.sources.catalog import SinkDeclaration, StreamDeclaration, check_name, find_sink, find_stream
from wjoin.sources.format_options import (
    FILE_FORMATS,
    RECORDS_WRITTEN,
    SINK_OPTIONS,
    check_options,
    option_span,
    own_option,
)
from wjoin.sources.kafka import SERVERS, is_kafka, refuse_absent, require_connector
from wjoin.sources.record_formats import check_format, written_records
from wjoin.sources.sink_retention import Retention
from wjoin.spark.engine import Engine
from wjoin.spark.spark_failures import located

_GRACE = 60 * 60 * 1000
"""How long files of results that are kept no more stay for their readers, where nothing is said: an hour."""

_KEEPS_OTHERWISE = {
    "delta": "Delta has time travel of its own: SELECT … FROM delta.`path` TIMESTAMP AS OF '…', and VACUUM",
    "iceberg": "Iceberg has snapshots of its own: FROM table TIMESTAMP AS OF '…', and expire_snapshots",
    "kafka": "Kafka has it for a topic: retention.ms",
}


def create_sink(asked: Asked, statement: CreateSink) -> None:
    """Declare a sink. Raises WJoinError WJ106, WJ212, WJ601, WJ603, WJ616 and WJ617."""
    statement = given_sink(statement, asked.params)
    name = statement.name.name
    check_name("sink", name, statement.name.span)
    if name.lower() in asked.catalog.sinks:
        if statement.if_not_exists:
            return
        if not statement.or_replace:
            raise WJoinError("WJ601", f"the sink {name} exists already", span=statement.name.span)
    columns = tuple(column.name for column in statement.partitioned_by)
    options = dict(statement.options)
    check_format(statement)
    more = RECORDS_WRITTEN[statement.record_format.name] if statement.record_format else frozenset[str]()
    check_options(options, SINK_OPTIONS, statement.provider.name, statement.span, asked.text, more)
    statement = _with_times(statement, options, asked.params)
    _check_trigger(options, statement.span, asked.text)
    if is_kafka(statement.provider.name):
        _check_kafka(asked.engine, options, statement)
    declared = SinkDeclaration(
        name, statement.provider.name, options, columns, statement, _retained(statement, options)
    )
    asked.catalog.sinks[name.lower()] = declared


def _with_times(statement: CreateSink, options: dict[str, str], params: Mapping[str, object]) -> CreateSink:
    """Return a declaration with its times in figures; COMMIT EVERY is the option trigger.

    Raises WJoinError WJ106 where both are given, and what ``duration_value`` raises.
    """

    def told(duration: Duration) -> TimeDuration:
        value = duration_value(duration, TimeKind.TIMESTAMP, params)
        if value < 1000:
            message = "a time of a sink is below a millisecond"
            raise WJoinError(
                "WJ110", message, span=duration.span, help="write one such as 1 DAY or 10 SECONDS"
            )
        return TimeDuration(value, span=duration.span)

    retain, every = statement.retain, statement.commit_every
    if every is not None and statement.commit_when is not None:
        message = "COMMIT EVERY and COMMIT WHEN exclude each other"
        help = "keep one of them; the option trigger says how often micro-batches start"
        raise WJoinError("WJ106", message, span=every.span, help=help)
    if every is not None:
        if own_option(options, "trigger") is not None:
            message = "COMMIT EVERY and the option trigger say the same"
            raise WJoinError("WJ106", message, span=every.span, help="keep one of them")
        every = told(every)
        options["trigger"] = spell(every.microseconds)
    if retain is not None:
        grace = None if retain.grace is None else told(retain.grace)
        retain = replace(retain, time=told(retain.time), grace=grace)
    return replace(statement, retain=retain, commit_every=every)


def _retained(statement: CreateSink, options: dict[str, str]) -> Retention | None:
    """Return how long results are kept. Raises WJoinError WJ106 where they cannot be."""
    retain, format = statement.retain, statement.provider.name.lower()
    if retain is None:
        return None
    message = remedy = None
    if format not in FILE_FORMATS:
        message = f"RETAIN is for sinks of files, and {statement.provider.name} is none"
        remedy = _KEEPS_OTHERWISE.get(format, f"use one of {', '.join(sorted(FILE_FORMATS))}")
    elif own_option(options, "path") is None:
        message, remedy = "a sink with RETAIN has no path", "write OPTIONS (path '…')"
    elif own_option(options, "retention") is not None:
        message, remedy = "RETAIN and the option retention exclude each other", "leave the option out"
    if message is not None:
        raise WJoinError("WJ106", message, span=retain.span, help=remedy)
    times = retain.time, retain.grace
    kept, grace = (each.microseconds // 1000 if isinstance(each, TimeDuration) else _GRACE for each in times)
    return Retention(kept, grace)


def _check_kafka(engine: Engine, options: dict[str, str], statement: CreateSink) -> None:
    """Refuse a sink of Kafka's that Spark could not write to, before it tries for minutes."""
    if statement.partitioned_by:
        message = "a sink of Kafka's has no folders, so no PARTITIONED BY"
        help = "Kafka chooses the partition of a record by its key: FORMAT JSON KEY (column)"
        raise WJoinError("WJ106", message, span=statement.partitioned_by[0].span, help=help)
    wanted = (SERVERS, "topic") if statement.record_format else (SERVERS,)
    missing = [name for name in wanted if own_option(options, name) is None]
    if missing:
        message = f"the sink {statement.name.name} lacks the option {missing[0]}"
        help = f"write OPTIONS ({SERVERS} 'host:9092', topic 'name')"
        raise WJoinError("WJ603", message, span=statement.provider.span, help=help)
    with located(statement.provider.span):
        require_connector(engine.spark)
        refuse_absent(engine.spark, options)


def _check_trigger(options: dict[str, str], span: Span, text: str) -> None:
    """Refuse a sink's option trigger that is no time. Raises WJoinError WJ603."""
    every = own_option(options, "trigger")
    if every is not None:
        with located(option_span("trigger", span, text)):
            processing_time(every)


def show_sinks(asked: Asked, _: ShowSinks) -> DataFrame:
    """Return a row for each sink."""
    rows = [
        (sink.name, sink.provider, sink.options.get("path"), ", ".join(sink.partitioned_by) or None)
        for sink in asked.catalog.sinks.values()
    ]
    return asked.engine.rows(rows, "name STRING, format STRING, path STRING, partitioned_by STRING")


def describe_sink(asked: Asked, statement: DescribeSink) -> DataFrame:
    """Return what a sink is: its format, partition columns and options. Raises WJoinError WJ602."""
    sink = find_sink(asked.catalog, statement.name, "DESCRIBE STREAM {}")
    rows: list[tuple[str, str]] = [("format", sink.provider)]
    if sink.partitioned_by:
        rows.append(("partitioned by", ", ".join(sink.partitioned_by)))
    if sink.retain is not None:
        times = (("retain", sink.retain.time), ("grace", sink.retain.grace))
        rows += [(name, spell(1000 * time).lower()) for name, time in times]
    if (when := sink.commit_when) is not None:
        rows.append(("commit when", f"{when.stream.name} ({when.condition})"))
    rows += [(f"option {key}", value) for key, value in sink.options.items()]
    return asked.engine.rows(rows, "property STRING, value STRING")


def drop_sink(asked: Asked, statement: DropSink) -> None:
    """Forget a sink; what was written stays, and so do its running queries. Raises WJoinError WJ602."""
    catalog, name = asked.catalog, statement.name.name.lower()
    declared = catalog.stream(name)
    if statement.if_exists and name not in catalog.sinks and (declared is None or declared.source == "view"):
        return
    find_sink(catalog, statement.name, "DROP STREAM {}")
    del catalog.sinks[name]


def show_create(asked: Asked, statement: ShowCreateStream | ShowCreateSink) -> DataFrame:
    """Return the statement that declares a stream or sink again. Raises WJoinError WJ602 or WJ606."""
    catalog, name = asked.catalog, statement.name
    declared: StreamDeclaration | SinkDeclaration
    if isinstance(statement, ShowCreateStream):
        declared = find_stream(catalog, name, "SHOW CREATE SINK {}")
    else:
        declared = find_sink(catalog, name, "SHOW CREATE STREAM {}")
    if declared.statement is None and isinstance(declared, SinkDeclaration):
        raise WJoinError(
            "WJ606",
            f"{declared.name} is a function, so there is no statement to show",
            span=name.span,
            help="session.sink(name, function) registers it",
        )
    if declared.statement is None:
        raise WJoinError(
            "WJ606",
            f"{declared.name} was not declared by CREATE STREAM, so there is no statement to show",
            span=name.span,
            help="DESCRIBE STREAM shows its columns; it comes from a view or a DataFrame of Python",
        )
    shown: CreateStream | CreateSink = replace(declared.statement, or_replace=False, if_not_exists=False)
    return asked.engine.rows([(redacted(print_declaration(shown)),)], "statement STRING")


def rows_for(sink: SinkDeclaration, frame: DataFrame, statement: InsertInto) -> DataFrame:
    """Return the rows of an INSERT INTO as its sink gets them. Raises WJoinError WJ106, WJ202 and WJ613."""
    frame = _in_order(frame, statement)
    _refuse_repeated(frame, sink, statement)
    return written_records(sink, frame, statement)


def _refuse_repeated(frame: DataFrame, sink: SinkDeclaration, statement: InsertInto) -> None:
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
            help=f"give each a name of its own: … AS {repeated[0]}_2, or INSERT INTO {sink.name} (names …)",
        )


def _in_order(frame: DataFrame, statement: InsertInto) -> DataFrame:
    """Return the rows of an INSERT INTO with the columns that it names. Raises WJoinError WJ106."""
    names = [column.name for column in statement.columns]
    if not names:
        return frame
    if len(names) != len(frame.columns):
        named, found = (counted(len(each), "column") for each in (names, frame.columns))
        raise WJoinError(
            "WJ106",
            f"the INSERT names {named}, its query has {found}",
            span=statement.columns[0].span.cover(statement.columns[-1].span),
            help=f"columns are named by position; the query has {', '.join(frame.columns)}",
        )
    return frame.toDF(*names)
