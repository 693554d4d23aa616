"""What each statement of the language does in a session."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from wjoin.beside import UNREACHABLE, exists
from wjoin.computed import with_computed
from wjoin.executor.layout import quoted
from wjoin.executor.state.identity import identity
from wjoin.explanation import Explanation
from wjoin.failures import RAISED_BY_SPARK, failure, first_line, placed
from wjoin.format_options import (
    STREAM_OPTIONS,
    check_options,
    own_option,
    without,
)
from wjoin.grammar.durations import from_pairs
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.hints import HINTS
from wjoin.grammar.spans import Span
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
from wjoin.kept import Kept
from wjoin.measured import measured_text
from wjoin.planner.catalog import Column
from wjoin.planner.choice import check_setting
from wjoin.planner.cost.constants import load_constants
from wjoin.planner.cost.model import CostSettings
from wjoin.planner.durations import duration_value
from wjoin.planner.event_time import checked_kind
from wjoin.planner.explain.cost import cost_text
from wjoin.planner.explain.document import document
from wjoin.planner.explain.text import explain_text
from wjoin.planner.lineage import reads
from wjoin.planner.names import suggestion
from wjoin.planner.time_columns import remedy_for_type
from wjoin.refused import refused_start
from wjoin.relations import event_time, spark_plan, stream_fields
from wjoin.rewrite import Rewriting
from wjoin.sinks import create_sink, describe_sink, drop_sink, find_stream, in_order, show_create, show_sinks
from wjoin.spark_process import resolved
from wjoin.statistics import alter_stream, analyze_stream, statistics_rows
from wjoin.streams import SinkDeclaration, StreamDeclaration, declared_delays, find
from wjoin.triggers import processing_time
from wjoin.views import create_view

if TYPE_CHECKING:
    from wjoin.session import Session

_HINT_SETTINGS = {f"wjoin.{name.lower()}": name for name in HINTS}
_FILES = frozenset({"parquet", "json", "csv", "orc", "text", "avro", "xml"})
"""Formats of Spark's file sink, which lists what it has written in ``_spark_metadata``."""

SETTINGS = ("wjoin.checkpoint", "wjoin.interval", "wjoin.memory", "wjoin.trigger", *_HINT_SETTINGS)
"""The settings that SET knows: ``wjoin.checkpoint`` is the folder of the checkpoints of INSERT INTO,
``wjoin.interval`` the event time that a micro-batch is expected to bring, ``wjoin.memory`` what the
state of a join may take, ``wjoin.trigger`` how often micro-batches start; the others are defaults for
the hints of their names."""


def execute(session: "Session", text: str, statement: Statement, params: dict[str, Any]) -> DataFrame:
    """Run one statement; return its DataFrame (empty where it has no rows)."""
    match statement:
        case Query():
            return _query(session, text, statement, params)
        case SparkStatement():
            return session.pass_through(statement.span.of(text), None, params)
        case CreateStream():
            return _create_stream(session, text, statement)
        case CreateSink():
            create_sink(session, text, statement)
            return _nothing(session)
        case CreateView():
            return _create_view(session, text, statement, params)
        case ShowStreams():
            return _show_streams(session)
        case DescribeStream():
            return _describe_stream(session, text, statement)
        case DropStream():
            return _drop_stream(session, text, statement)
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
    kept = Kept(session.spark, _explained_checkpoint(session, target))
    rewriting = session.rewriting(text, statement, params, kept, metered=mode == "ANALYZE")
    parts = [explain_text(planned) for planned in rewriting.planned]
    if mode == "COST":
        parts += [cost_text(planned) for planned in rewriting.planned]
    if mode == "ANALYZE":
        frame = _finish(rewriting, text, statement.span)
        with placed(text, statement.span):
            parts.append(measured_text(frame, rewriting.planned, rewriting.meters))
    if mode == "FORMATTED":
        parts.append("Spark plan\n" + spark_plan(_finish(rewriting, text, statement.span)))
    return Explanation("\n\n".join(parts), [document(planned) for planned in rewriting.planned])


def _explained_checkpoint(session: "Session", target: tuple[Identifier, ...]) -> str | None:
    """Return the folder of the first query into a sink, whether it runs or not; None where none is known."""
    sink = session.declarations.sinks.get(target[0].name.lower()) if len(target) == 1 else None
    directory = session.settings.get("wjoin.checkpoint")
    if sink is None:
        return None
    if directory is None:
        return sink.options.get("checkpointLocation")
    return f"{directory.rstrip('/')}/{sink.name}"


def insert(
    session: "Session",
    text: str,
    statement: InsertInto,
    params: dict[str, Any],
    *,
    once: bool,
    checkpoint: str | None,
    trigger: str | None = None,
) -> StreamingQuery | None:
    """Run an INSERT INTO: start a query where its rows stream into a sink, else write them (None).

    ``trigger`` says how often micro-batches start, whatever the sink and the session say.
    """
    sink = find_sink(session, text, statement)
    if sink is None:
        refuse_unknown_sink(session, text, statement, params)
        if isinstance(statement.body, SparkStatement):
            session.pass_through(statement.span.of(text), None, params)
        else:
            rewriting = session.rewriting(text, statement, params)
            _finish(rewriting, text, statement.span)
        return None
    planned = plan_insert(session, text, statement, params, sink, checkpoint)
    frame, joins, folder, kept = planned.frame, planned.joins, planned.folder, planned.kept
    if frame.isStreaming:
        if joins is not None:
            _keep(session, text, statement, kept, joins)
        every = trigger or own_option(sink.options, "trigger") or session.settings.get("wjoin.trigger")
        remedy = None if joins is None else _remedy(joins)
        query = _start(session, text, statement, frame, sink, folder, once=once, every=every, remedy=remedy)
        if joins is not None:
            session.record(folder, kept.recorder(query, joins.plans))
        return query
    options = without(sink.options, "trigger", "outputMode", "checkpointLocation")
    batch = frame.write.format(sink.provider).options(**options).mode("append")
    if sink.partitioned_by:
        batch = batch.partitionBy(*sink.partitioned_by)
    with placed(text, statement.span):
        batch.save()
    return None


@dataclass(frozen=True)
class PlannedInsert:
    """An INSERT INTO a sink before it runs; ``joins`` is None where it has no W-join."""

    frame: DataFrame
    joins: Rewriting | None
    folder: str | None
    kept: Kept


def plan_insert(
    session: "Session",
    text: str,
    statement: InsertInto,
    params: dict[str, Any],
    sink: SinkDeclaration,
    checkpoint: str | None,
) -> PlannedInsert:
    """Plan an INSERT INTO a sink, and compare it with what its checkpoint holds; nothing is written."""
    session.settle()
    folder = _checkpoint(session, sink, checkpoint)
    kept = Kept(session.spark, folder)
    joins: Rewriting | None = None
    if isinstance(statement.body, Query):
        joins = session.rewriting(text, statement.body, params, kept)
        frame = _finish(joins, text, statement.body.span)
    else:
        frame = execute(session, text, statement.body, params)
    frame = in_order(frame, statement, text)
    if frame.isStreaming and folder is not None:
        _refuse_checkpoint(session, text, statement, sink, folder, kept, joins)
    return PlannedInsert(frame, joins, folder, kept)


def _query(session: "Session", text: str, query: Query, params: dict[str, Any]) -> DataFrame:
    return _finish(session.rewriting(text, query, params), text, query.span)


def _finish(rewriting: Rewriting, text: str, span: Span) -> DataFrame:
    try:
        return rewriting.run()
    except RAISED_BY_SPARK as error:
        raise failure(error, span, text) from error


def _create_stream(session: "Session", text: str, statement: CreateStream) -> DataFrame:
    name = statement.name.name
    if session.declarations.stream(name) is not None:
        if statement.if_not_exists:
            return _nothing(session)
        if not statement.or_replace:
            raise WJoinError(
                "WJ601", f"the stream {name} exists already", span=statement.name.span, text=text
            )
    names = [option for option, _ in statement.options]
    check_options(names, STREAM_OPTIONS, statement.provider.name, statement.span, text)
    reader = session.spark.readStream.format(statement.provider.name).options(**dict(statement.options))
    try:
        if statement.columns is not None:
            reader = reader.schema(statement.columns)
        frame = with_computed(reader.load(), statement)
        fields = {field.name.lower(): field for field in frame.schema.fields}
    except WJoinError as error:
        raise error.within(text) from error.__cause__
    except Exception as error:  # a missing source reaches Python as Py4J's own error, not as Spark's
        message = f"the stream {name} cannot be opened: {first_line(error)}"
        unknown = statement.columns is None and "chema must be specified" in message
        remedy = f"give its columns: CREATE STREAM {name} (column TYPE, …) USING …" if unknown else None
        path = own_option(dict(statement.options), "path")
        if "PATH_NOT_FOUND" in message and path is not None:
            remedy = f"put files into {resolved(path)}, or give another path"
        raise WJoinError("WJ604", message, span=statement.span, text=text, help=remedy) from error
    event_time, delay = None, None
    if statement.watermark is not None:
        column = statement.watermark.column
        if column.name.lower() not in fields:
            raise WJoinError(
                "WJ202",
                f"the stream {name} has no column {column.name}",
                span=column.span,
                text=text,
                help=suggestion(column.name, fields) or f"it has {', '.join(fields)}",
            )
        event_time = fields[column.name.lower()].name
        columns = {each: Column(field.name, field.dataType.simpleString()) for each, field in fields.items()}
        try:
            kind = checked_kind(name, columns[event_time.lower()], [*columns.values()], column.span)
            if statement.watermark.delay is not None:
                delay = duration_value(statement.watermark.delay, kind, {})
        except WJoinError as error:
            raise _with_remedy(error, columns[event_time.lower()], [*columns.values()]).within(text) from None
    frame.createOrReplaceTempView(name)
    types = {each.name: each.dataType.simpleString() for each in fields.values()}
    delays = declared_delays(event_time, delay, types)
    options = {key.lower(): value.lower() for key, value in statement.options}
    rows = None if options.get("latestfirst") == "true" else frame
    declared = StreamDeclaration(
        name, event_time, delays, statement.provider.name, rows=rows, statement=statement
    )
    session.declarations.add_stream(declared)
    return _nothing(session)


def _with_remedy(error: WJoinError, column: Column, columns: list[Column]) -> WJoinError:
    """Return an error of a delay; one with a unit on whole numbers says how they become timestamps."""
    remedy = remedy_for_type(column, columns)
    if error.code != "WJ305" or not remedy:
        return error
    help = f"{remedy}; a delay in the column's own unit is a bare number"
    return WJoinError(error.code, error.message, span=error.span, help=help)


def _create_view(session: "Session", text: str, statement: CreateView, params: dict[str, Any]) -> DataFrame:
    rewriting = session.rewriting(text, statement.body, params)
    create_view(session, text, statement, rewriting, _finish(rewriting, text, statement.body.span))
    return _nothing(session)


def _show_streams(session: "Session") -> DataFrame:
    rows = []
    for stream in session.declarations.streams.values():
        rows.append((stream.name, stream.source, *event_time(stream, stream_fields(session.spark, stream))))
    return session.spark.createDataFrame(rows, "name STRING, source STRING, event_time STRING, delay STRING")


def _describe_stream(session: "Session", text: str, statement: DescribeStream) -> DataFrame:
    stream = find_stream(session.declarations, statement.name, text, "DESCRIBE SINK {}")
    fields = stream_fields(session.spark, stream)
    time, delay = event_time(stream, fields)
    computed = (
        {each.name.name: each.expression for each in stream.statement.computed} if stream.statement else {}
    )
    rows = []
    for name, kind in fields.items():
        notes = [f"event time, out of order by up to {delay}"] if name == time else []
        notes += [f"computed: {computed[name]}"] if name in computed else []
        rows.append((name, kind, "; ".join(notes) or None))
    return session.spark.createDataFrame(rows, "col_name STRING, data_type STRING, comment STRING")


def _drop_stream(session: "Session", text: str, statement: DropStream) -> DataFrame:
    name = statement.name.name
    if statement.if_exists and session.declarations.stream(name) is None:
        return _nothing(session)
    find_stream(session.declarations, statement.name, text, "DROP SINK {}")
    del session.declarations.streams[name.lower()]
    session.spark.catalog.dropTempView(name)
    return _nothing(session)


def hint_defaults(session: "Session") -> dict[str, str]:
    """Return the session's defaults for hints, by the name of the hint."""
    settings = session.settings
    return {hint: settings[key] for key, hint in _HINT_SETTINGS.items() if key in settings}


def cost_settings(session: "Session") -> CostSettings:
    """Return what plans are weighed with in a session. Raises WJoinError WJ610."""
    settings = session.settings
    interval, memory = settings.get("wjoin.interval"), settings.get("wjoin.memory")
    return CostSettings(
        load_constants(),
        1.0 if interval is None else _interval(interval),
        None if memory is None else _memory(memory),
    )


def _interval(value: str) -> float:
    """Return an interval in seconds. Raises WJoinError WJ603."""
    remedy = "give the event time that a micro-batch brings, such as '10 seconds' (not: how often they start)"
    try:
        seconds = from_pairs(value, Span(0, len(value))) / 1_000_000
    except WJoinError as error:
        raise WJoinError("WJ603", f"wjoin.interval is {value}: {error.message}", help=remedy) from None
    if seconds <= 0:
        raise WJoinError("WJ603", f"wjoin.interval is {value}, and a micro-batch brings time", help=remedy)
    return seconds


def _memory(value: str) -> int:
    """Return a size in bytes. Raises WJoinError WJ603."""
    found = re.fullmatch(r"(\d+) *([kmgt]?)b?", value.strip().lower())
    if found is None or int(found[1]) == 0:
        raise WJoinError("WJ603", f"wjoin.memory is {value}", help="give a size, such as '4g' or '512m'")
    return int(found[1]) << (10 * " kmgt".index(found[2] or " "))


_CHECKED: dict[str, Callable[[str], object]] = {
    "wjoin.interval": _interval,
    "wjoin.memory": _memory,
    "wjoin.trigger": lambda value: processing_time(value, "wjoin.trigger"),
}


def set_option(session: "Session", name: str, value: str) -> None:
    """Give a setting of wjoin a value. Raises WJoinError WJ502 or WJ603."""
    key = name.lower()
    if key not in SETTINGS:
        raise WJoinError("WJ603", f"wjoin has no setting {key}", help=f"known: {', '.join(SETTINGS)}")
    if key in _HINT_SETTINGS:
        check_setting(_HINT_SETTINGS[key], value)
    elif key in _CHECKED:
        _CHECKED[key](value)
    session.settings[key] = value


def _set_option(session: "Session", text: str, statement: SetOption) -> DataFrame:
    try:
        set_option(session, statement.key, statement.value)
    except WJoinError as error:
        raise WJoinError(error.code, error.message, span=statement.span, text=text, help=error.help) from None
    row = (statement.key.lower(), statement.value)
    return session.spark.createDataFrame([row], "key STRING, value STRING")


def find_sink(session: "Session", text: str, statement: InsertInto) -> SinkDeclaration | None:
    """Return the sink of an INSERT INTO, None where its target is not one. Raises WJoinError WJ612."""
    if len(statement.target) != 1:
        return None
    sink = session.declarations.sinks.get(statement.target[0].name.lower())
    if sink is None:
        _refuse_stream(session, text, statement)
    return sink


def _refuse_stream(session: "Session", text: str, statement: InsertInto) -> None:
    """Refuse rows for a stream or a view over streams."""
    target = statement.target[0]
    stream = session.declarations.stream(target.name)
    if stream is not None:
        raise WJoinError(
            "WJ612",
            f"{stream.name} is a {'view over streams' if stream.source == 'view' else 'stream'}, not a sink",
            span=target.span,
            text=text,
            help="CREATE SINK name USING parquet OPTIONS (path '…'), and INSERT INTO name",
        )


def refuse_unknown_sink(session: "Session", text: str, statement: InsertInto, params: dict[str, Any]) -> None:
    """Refuse streaming rows for a target that is no sink: Spark's INSERT INTO is for batches only."""
    target = statement.target[-1]
    if not session.declarations.sinks and session.spark.catalog.tableExists(
        ".".join(quoted(p.name) for p in statement.target)
    ):
        return
    body = statement.body
    streams = isinstance(body, Query) or reads(body.span.of(text), session.declarations.delays)
    if streams and execute(session, text, body, params).isStreaming:
        find(session.declarations.sinks, "sink", target.name, target.span, text)


def _remedy(joins: Rewriting) -> str | None:
    """Return what may be the matter where Spark refuses a query of these W-joins."""
    undated = [plan.undated for plan in joins.plans.values() if plan.undated and "time" in plan.match]
    return f"MATCH_TIME() has no watermark here: {undated[0]}" if undated else None


def _start(
    session: "Session",
    text: str,
    statement: InsertInto,
    frame: DataFrame,
    sink: SinkDeclaration,
    folder: str | None,
    *,
    once: bool,
    every: str | None,
    remedy: str | None,
) -> StreamingQuery:
    options = without(sink.options, "trigger", "outputMode")
    mode = own_option(sink.options, "outputMode") or "append"
    if folder is not None:
        options["checkpointLocation"] = folder
    elif sink.provider.lower() not in ("console", "memory", "noop"):
        raise WJoinError(
            "WJ606",
            f"the query into {sink.name} needs a checkpoint folder",
            span=statement.target[-1].span,
            text=text,
            help="give --checkpoint DIR, SET wjoin.checkpoint = DIR, or the sink's option checkpointLocation",
        )
    writer = frame.writeStream.format(sink.provider).options(**options).outputMode(mode)
    writer = writer.queryName(re.sub(r"\W", "_", sink.name))
    if sink.partitioned_by:
        writer = writer.partitionBy(*sink.partitioned_by)
    if once:
        writer = writer.trigger(availableNow=True)
    elif every is not None:
        writer = writer.trigger(processingTime=processing_time(every))
    try:
        query = writer.start()
    except RAISED_BY_SPARK as error:
        raise refused_start(text, statement, error, remedy) from error
    session.started(query, folder)
    return query


def _keep(session: "Session", text: str, statement: InsertInto, kept: Kept, joins: Rewriting) -> None:
    """Keep the chosen sequences of stages before there is any state. Raises WJoinError WJ607."""
    try:
        kept.keep([planned.sequence for planned in joins.planned], _identity(session, joins))
    except UNREACHABLE as error:
        message = f"Spark cannot write beside the checkpoint: {first_line(error)}"
        raise WJoinError("WJ607", message, span=statement.span, text=text) from error


def _identity(session: "Session", joins: Rewriting | None) -> dict[str, Any]:
    partitions = int(str(session.spark.conf.get("spark.sql.shuffle.partitions")))
    return identity([] if joins is None else list(joins.plans.values()), partitions)


def _checkpoint(session: "Session", sink: SinkDeclaration, directory: str | None) -> str | None:
    """Return the checkpoint folder of the next query into a sink, None where it is given none."""
    directory = directory or session.settings.get("wjoin.checkpoint")
    if directory is None:
        return sink.options.get("checkpointLocation")
    return session.checkpoint_folder(directory, sink.name)


def _refuse_checkpoint(
    session: "Session",
    text: str,
    statement: InsertInto,
    sink: SinkDeclaration,
    folder: str,
    kept: Kept,
    joins: Rewriting | None,
) -> None:
    """Refuse a checkpoint, or a folder of results, that is not of this query, before anything runs.

    Spark's file sink numbers what it writes by micro-batch and leaves out what it has already, so
    the first results of a query with a new checkpoint would be lost. Raises WJoinError WJ609, WJ611
    and WJ701 to WJ703.
    """
    name, path = statement.target[-1], resolved(own_option(sink.options, "path") or "").rstrip("/")
    # The folder alone may come of a query that Spark refused to start.
    written = path and exists(session.spark, f"{path}/_spark_metadata/[0-9]*")
    try:
        if written and not kept.begun:
            message = (
                f"the folder of {name.name}, {path}, holds what another query wrote, and {folder} is new"
            )
            raise WJoinError("WJ609", message)
        if path and not written and sink.provider.lower() in _FILES and kept.committed:
            message = (
                f"the folder of {name.name}, {path}, is gone or empty, but the checkpoint {folder} "
                "counts what was written there as done"
            )
            remedy = f"put the folder back; or remove {folder} as well, and everything is written anew"
            raise WJoinError("WJ611", message, help=remedy)
        kept.refuse_other(_identity(session, joins))
    except WJoinError as error:
        message = error.message.replace("the checkpoint was", f"the checkpoint {folder} of {name.name} was")
        raise WJoinError(error.code, message, span=name.span, text=text, help=error.help) from None


def _nothing(session: "Session") -> DataFrame:
    return session.spark.createDataFrame([], "nothing STRING").drop("nothing")
