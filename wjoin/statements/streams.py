"""The statements that declare streams, show them and forget them."""

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField

from wjoin.context import Asked
from wjoin.grammar.durations import from_pairs
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.grammar.statement_kinds import CreateStream, DescribeStream, DropStream, ShowStreams
from wjoin.grammar.suggestions import suggestion
from wjoin.grammar.syntax import BareNumber, Duration, Identifier, Parameter, TimeDuration, Watermark
from wjoin.joins.relations import event_time, stream_fields
from wjoin.planner.bind.event_time import checked_kind
from wjoin.planner.bind.time_columns import remedy_for_type
from wjoin.planner.catalog import Column
from wjoin.planner.plan.block_columns import quoted
from wjoin.planner.plan.physical import TimeKind
from wjoin.planner.windows.lengths import duration_value, human
from wjoin.settings.parameters import given_stream
from wjoin.sources.catalog import (
    AHEAD,
    OWN_OPTIONS,
    SHEDDING,
    StreamDeclaration,
    check_name,
    declared_ahead,
    declared_delays,
    declared_idle,
    declared_shedding,
    find_stream,
)
from wjoin.sources.computed import with_computed
from wjoin.sources.format_options import RECORDS_READ, STREAM_OPTIONS, check_options, own_option, without
from wjoin.sources.kafka import is_kafka, missing_package, read_from_the_start, refuse_absent
from wjoin.sources.late_rows import refuse_columns
from wjoin.sources.record_formats import check_format, read_records, reading_options, with_losses_told
from wjoin.sources.site_streams import at_sites, is_at_site, opened
from wjoin.spark.engine import Engine
from wjoin.spark.process import resolved
from wjoin.spark.spark_failures import first_line, located
from wjoin.statements.duplicates import without_duplicates


def create_stream(asked: Asked, statement: CreateStream) -> None:
    """Declare a stream.

    Raises WJoinError WJ106, WJ110, WJ202, WJ207, WJ212, WJ216, WJ220, WJ305, WJ601, WJ603, WJ604, WJ616,
    WJ617 and WJ623.
    """
    engine, catalog, text = asked.engine, asked.catalog, asked.text
    name = statement.name.name
    check_name("stream", name, statement.name.span)
    if catalog.stream(name) is not None:
        _forget_dropped(asked)
    if catalog.stream(name) is not None:
        if statement.if_not_exists:
            return
        if not statement.or_replace:
            raise WJoinError("WJ601", f"the stream {name} exists already", span=statement.name.span)
    statement = given_stream(statement, asked.params)
    check_format(statement)
    names = [option for option, _ in statement.options]
    more = RECORDS_READ[statement.record_format.name] if statement.record_format else frozenset[str]()
    check_options(names, STREAM_OPTIONS, statement.provider.name, statement.span, text, more)
    site = None
    try:
        if is_at_site(statement):
            site = at_sites(engine.spark, statement)
            frame, rows = opened(engine.spark, statement, site.options), None
        else:
            frame, rows = _opened(engine, statement, text)
        fields = {field.name.lower(): field for field in frame.schema.fields}
    except WJoinError as error:
        if error.span is not None:
            raise
        raise error.at(statement.provider.span) from error.__cause__
    except Exception as error:  # a missing source reaches Python as Py4J's own error, not as Spark's
        missing = missing_package(engine.spark, error) if is_kafka(statement.provider.name) else None
        if missing is not None:
            raise missing.at(statement.provider.span) from error
        message = f"the stream {name} cannot be opened: {first_line(error)}"
        unknown = statement.columns is None and "chema must be specified" in message
        remedy = f"give its columns: CREATE STREAM {name} (column TYPE, …) USING …" if unknown else None
        if "INVALID_TIMESTAMP_PRECISION" in message:
            remedy = "write TIMESTAMP, or TIMESTAMP_NTZ for times without a zone: both have microseconds"
        if "SCHEMA_DURING_READ" in message:
            remedy = f"leave the columns out, because the table has its own: CREATE STREAM {name} USING …"
        path = own_option(dict(statement.options), "path")
        if "PATH_NOT_FOUND" in message and path is not None:
            remedy = f"put files into {resolved(path)}, or give another path"
        raise WJoinError("WJ604", message, span=statement.span, help=remedy) from error
    event_time, delay = None, None
    if statement.watermark is not None:
        column = statement.watermark.column
        event_time = _field(name, column, fields).name
        columns = {each: Column(field.name, field.dataType.simpleString()) for each, field in fields.items()}
        try:
            kind = checked_kind(name, columns[event_time.lower()], [*columns.values()], column.span)
            if statement.watermark.delay is not None:
                delay = duration_value(statement.watermark.delay, kind, asked.params)
                if isinstance(statement.watermark.delay, Parameter):
                    statement = replace(statement, watermark=_with_delay(statement.watermark, delay, kind))
        except WJoinError as error:
            raise _with_remedy(error, columns[event_time.lower()], [*columns.values()]) from None
    types = {each.name: each.dataType.simpleString() for each in fields.values()}
    ahead, shedding = _ahead(statement, event_time, types, text), _shedding(statement, text)
    idle = None if statement.idle_after is None else _idle_after(statement.idle_after, asked.params)
    statement = replace(statement, idle_after=idle)
    idle_after = None if idle is None else idle.microseconds
    delays = declared_delays(event_time, delay, types, ahead, shedding, idle_after)
    if statement.unique:
        keys = [_field(name, each, fields).name for each in statement.unique]
        known = delays.get((event_time or "").lower())
        frame = without_duplicates(frame, statement, event_time, known, keys)
    late_into = _late_into(statement, fields)
    home = "" if statement.home is None else _field(name, statement.home, fields).name
    frame.createOrReplaceTempView(name)
    declared = StreamDeclaration(
        name,
        event_time,
        delays,
        statement.provider.name,
        rows=rows,
        statement=statement,
        site=site,
        late_into=late_into,
        home=home,
    )
    catalog.add_stream(declared)


def _with_delay(watermark: Watermark, delay: int, kind: TimeKind) -> Watermark:
    """Return a WATERMARK clause with its delay in figures. Raises WJoinError WJ110 for a negative one."""
    if delay < 0:
        raise WJoinError("WJ110", "a delay cannot be negative", span=watermark.span, help="give 0 or more")
    if kind is TimeKind.INTEGRAL:
        return replace(watermark, delay=BareNumber(delay, span=watermark.span))
    return replace(watermark, delay=TimeDuration(delay, span=watermark.span))


def _field(stream: str, column: Identifier, fields: Mapping[str, StructField]) -> StructField:
    """Return a column of a stream by its name. Raises WJ202."""
    if column.name.lower() not in fields:
        raise WJoinError(
            "WJ202",
            f"the stream {stream} has no column {column.name}",
            span=column.span,
            help=suggestion(column.name, fields) or f"it has {', '.join(fields)}",
        )
    return fields[column.name.lower()]


def _opened(engine: Engine, statement: CreateStream, text: str) -> tuple[DataFrame, DataFrame | None]:
    """Return a stream, and its rows as ``StreamDeclaration`` has them."""
    options = without(dict(statement.options), *OWN_OPTIONS)
    if is_kafka(statement.provider.name):
        options = read_from_the_start(options)
    source, own = reading_options(statement, options)
    reader = engine.spark.readStream.format(statement.provider.name).options(**source)
    if is_kafka(statement.provider.name):
        read = reader.load()
        refuse_absent(engine.spark, source)
        read = with_losses_told(read, statement, source)
    else:
        read = (reader if statement.columns is None else reader.schema(statement.columns)).load()
    if statement.record_format is None:
        frame = with_computed(read, statement)
        unordered = (own_option(options, "latestFirst") or "").lower() == "true"
        return frame, None if unordered else frame
    records = read_records(read, statement, own, text)
    frame = with_computed(records.frame, statement, records.hidden)
    # A computed column may have the name of one of Kafka's.
    place = [name for name in records.place if name not in frame.columns]
    hidden = [name for name in records.hidden if name not in place]
    return frame, with_computed(records.frame, statement, hidden)


def _late_into(statement: CreateStream, fields: Mapping[str, StructField]) -> str:
    """Return the sink for late rows, empty for none. Raises WJoinError WJ623 where they cannot be told."""
    sink, name = statement.late_rows, statement.name.name
    if sink is None:
        return ""
    refuse_columns(name, fields, sink.span)
    if statement.unique:
        message = f"Spark drops late rows of {name} as it drops duplicates, so that they cannot go to a sink"
        raise WJoinError("WJ623", message, span=sink.span, help="leave LATE ROWS INTO out")
    return sink.name


def _ahead(
    statement: CreateStream, event_time: str | None, types: Mapping[str, str], text: str
) -> int | None:
    """Return the declared limit for times ahead of the clock."""
    value = own_option(dict(statement.options), AHEAD)
    if value is None:
        return None
    span = _place(AHEAD, statement, text)
    with located(span):
        return declared_ahead(from_pairs(value, span), event_time, types)


def _idle_after(duration: Duration, params: Mapping[str, object]) -> TimeDuration:
    """Return the time of an IDLE AFTER clause in figures: by a clock, whatever the event time is."""
    with located(duration.span):
        value = declared_idle(duration_value(duration, TimeKind.TIMESTAMP, params))
    return TimeDuration(value, span=duration.span)


def _shedding(statement: CreateStream, text: str) -> str | None:
    """Return by which model the stream is shed, None where it does not say."""
    value = own_option(dict(statement.options), SHEDDING)
    if value is None:
        return None
    with located(_place(SHEDDING, statement, text)):
        return declared_shedding(value)


def _place(option: str, statement: CreateStream, text: str) -> Span:
    start = text.lower().index(option, statement.span.start)
    return Span(start, start + len(option))


def _with_remedy(error: WJoinError, column: Column, columns: list[Column]) -> WJoinError:
    """Return an error of a delay; one with a unit on whole numbers says how they become timestamps."""
    remedy = remedy_for_type(column, columns)
    if error.code != "WJ305" or not remedy:
        return error
    help = f"{remedy}; a delay in the column's own unit is a bare number"
    return WJoinError(error.code, error.message, span=error.span, help=help)


def show_streams(asked: Asked, _: ShowStreams) -> DataFrame:
    """Return a row for each stream."""
    _forget_dropped(asked)
    rows = []
    for stream in asked.catalog.streams.values():
        fields = stream_fields(asked.engine.spark, stream)
        rows.append((stream.name, stream.source, *event_time(stream, fields)))
    return asked.engine.rows(rows, "name STRING, source STRING, event_time STRING, delay STRING")


def _forget_dropped(asked: Asked) -> None:
    """Forget streams and views over streams that Spark was told to drop without us."""
    for name, stream in list(asked.catalog.streams.items()):
        if not asked.engine.exists(quoted(stream.name)):
            del asked.catalog.streams[name]


def describe_stream(asked: Asked, statement: DescribeStream) -> DataFrame:
    """Return the columns of a stream. Raises WJoinError WJ602."""
    _forget_dropped(asked)
    stream = find_stream(asked.catalog, statement.name, "DESCRIBE SINK {}")
    fields = stream_fields(asked.engine.spark, stream)
    time, delay = event_time(stream, fields)
    computed = (
        {each.name.name: each.expression for each in stream.statement.computed} if stream.statement else {}
    )
    unique = {each.name.lower() for each in stream.statement.unique} if stream.statement else set()
    rows = []
    for name, kind in fields.items():
        notes = [f"event time, out of order by up to {delay}"] if name == time else []
        known = stream.delays.get(name.lower()) if name == time else None
        if known is not None and known.ahead is not None:
            notes.append(f"at most {human(known.ahead, TimeKind.TIMESTAMP)} ahead of the clock")
        if name == time and stream.late_into:
            notes.append(f"late rows go to {stream.late_into}")
        if known is not None and known.shedding is not None:
            notes.append(f"shedding: {known.shedding}")
        if known is not None and known.idle_after is not None:
            notes.append(f"silent after {human(known.idle_after, TimeKind.TIMESTAMP)} without a row")
        notes += ["its value says at which node a row lives"] if name.lower() == stream.home.lower() else []
        notes += [f"computed: {computed[name]}"] if name in computed else []
        notes += ["equal in duplicates, which are dropped"] if name.lower() in unique else []
        rows.append((name, kind, "; ".join(notes) or None))
    return asked.engine.rows(rows, "col_name STRING, data_type STRING, comment STRING")


def drop_stream(asked: Asked, statement: DropStream) -> None:
    """Forget a stream. Raises WJoinError WJ602, also for a view or a sink of that name."""
    catalog, name = asked.catalog, statement.name.name
    declared = catalog.stream(name)
    if declared is None and statement.if_exists and name.lower() not in catalog.sinks:
        return
    if declared is not None and declared.source == "view":
        message = f"{name} is a view, not a stream"
        help = f"write DROP VIEW {name}"
        raise WJoinError("WJ602", message, span=statement.name.span, help=help)
    find_stream(catalog, statement.name, "DROP SINK {}")
    del catalog.streams[name.lower()]
    asked.engine.spark.catalog.dropTempView(name)
