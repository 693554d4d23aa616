"""FORMAT: the columns of a stream out of the records of Kafka, and rows as records into it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, StructType

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.statement_kinds import CreateSink, CreateStream, InsertInto
from wjoin.grammar.suggestions import suggestion
from wjoin.grammar.syntax import Identifier
from wjoin.measured.progress import BROKEN, LOSABLE
from wjoin.planner.plan.block_columns import quoted
from wjoin.sources.avro_schema import avro_schema, nullable
from wjoin.sources.catalog import OWN_OPTIONS, SinkDeclaration
from wjoin.sources.computed import with_computed
from wjoin.sources.format_options import (
    RECORDS_READ,
    RECORDS_WRITTEN,
    option_span,
    own_option,
    record_options,
    without,
)
from wjoin.sources.kafka import is_kafka, missing_package, whole_topics
from wjoin.spark.spark_failures import first_line, located

QUALIFIER = "kafka"
"""The struct, for computed columns, of all that Kafka tells of a record."""

_RECORD, _IS_BROKEN = "__wjoin_record", "__wjoin_broken"
_PERMISSIVE, _DROPPING, _FAILING = "PERMISSIVE", "DROPMALFORMED", "FAILFAST"
_CORRUPT_OPTION, _AVRO_SCHEMA = "columnNameOfCorruptRecord", "avroSchema"
_PLACE = ("topic", "partition", "offset")
RECORD_PLACE = tuple(f"__wjoin_{name}" for name in _PLACE)
"""The columns of a table of records with the place of each."""

_SHOWN_CHARACTERS = 200
_WRITTEN_TIMES = {
    # Spark's own default leaves off what is less than a millisecond.
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS][XXX]",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]",
}


@dataclass(frozen=True)
class Records:
    """The rows of a stream of records, as computed columns see them.

    ``hidden`` are columns of ``frame`` that are not the stream's: those of Kafka itself. ``place`` are those
    of them that tell where in its topic a record is.
    """

    frame: DataFrame
    hidden: tuple[str, ...]
    place: tuple[str, ...]


def check_format(statement: CreateStream | CreateSink) -> None:
    """Refuse FORMAT and KEY of other sources and sinks than Kafka, and its columns without FORMAT.

    Raises WJoinError WJ106.
    """
    written, provider = statement.record_format, statement.provider.name
    key = statement.key if isinstance(statement, CreateSink) else None
    odd = None if is_kafka(provider) else written or key
    if odd is not None:
        raise WJoinError(
            "WJ106",
            f"{'FORMAT' if odd is written else 'KEY'} is for the records of Kafka, and {provider} has none",
            span=odd.span,
            help="leave it out: the word after USING says how files are written",
        )
    if written is None and key is not None:
        message = f"the sink {statement.name.name} has a key, but no format for its records"
        raise WJoinError("WJ106", message, span=key.span, help="write FORMAT JSON, CSV or AVRO")
    if not isinstance(statement, CreateStream) or not is_kafka(provider):
        return
    if written is None and statement.columns is not None:
        message = f"the stream {statement.name.name} has columns, but no format for its records"
        help = "write FORMAT JSON, CSV or AVRO; without it the columns are Kafka's own"
        raise WJoinError("WJ106", message, span=statement.name.span, help=help)
    if written is not None and statement.columns is None:
        message = f"the records of the stream {statement.name.name} have no columns"
        help = f"give them: CREATE STREAM {statement.name.name} (column TYPE, …) USING kafka …"
        raise WJoinError("WJ106", message, span=written.span, help=help)


def with_losses_told(source: DataFrame, statement: CreateStream, options: Mapping[str, str]) -> DataFrame:
    """Return a source whose topics are observed where it goes on without records that are gone."""
    if (own_option(options, "failOnDataLoss") or "true").lower() != "false":
        return source
    return source.observe(f"{LOSABLE}{statement.name.name}", F.collect_set("topic").alias("topics"))


def read_records(
    source: DataFrame, statement: CreateStream, options: Mapping[str, str], text: str
) -> Records:
    """Return the columns that a stream's records have, as its FORMAT and ``options`` say.

    Raises WJoinError WJ603 for a mode that there is not, WJ604 for a column that the format has not, and
    WJ616 where Spark has no Avro.
    """
    mode = _mode(statement, options, text)
    columns = _fields(statement)
    parsed = _parsed(source, statement, columns, options, mode)
    rows = source.select("*", parsed.alias(_RECORD))
    if mode != _PERMISSIVE:
        rows = rows.withColumn(_IS_BROKEN, _broken(rows, options))
    if mode == _DROPPING:
        counted = F.count_if(F.col(_IS_BROKEN)).alias("broken")
        rows = rows.observe(f"{BROKEN}{statement.name.name}", counted).where(f"NOT {_IS_BROKEN}")
    elif mode == _FAILING:
        read = F.when(F.col(_IS_BROKEN), _refusal(statement)).otherwise(F.col(_RECORD))
        rows = rows.withColumn(_RECORD, read)
    shown = {each.name: F.col(_RECORD).getField(each.name) for each in columns}
    if own_option(options, _AVRO_SCHEMA) is not None:
        # The records have the types of that schema.
        shown = {each.name: shown[each.name].cast(each.dataType) for each in columns}
    return _exposed(rows, source.columns, [column.alias(name) for name, column in shown.items()], columns)


def topics_as_table(spark: SparkSession, statement: CreateStream) -> DataFrame:
    """Return all rows that the topics of a stream have now, with RECORD_PLACE. Raises what Spark raises."""
    source, own = reading_options(statement, without(dict(statement.options), *OWN_OPTIONS))
    read = spark.read.format(statement.provider.name).options(**whole_topics(source)).load()
    placed = read.withColumns(dict(zip(RECORD_PLACE, map(F.col, _PLACE), strict=True)))
    if statement.record_format is None:
        return with_computed(placed, statement)
    records = read_records(placed, statement, own, "")
    hidden = [name for name in records.hidden if name not in RECORD_PLACE]
    return with_computed(records.frame, statement, hidden)


def _fields(statement: CreateStream) -> StructType:
    columns = DataType.fromDDL(statement.columns or "")
    if not isinstance(columns, StructType):
        raise TypeError(f"{statement.columns} are not columns")
    return columns


def _exposed(rows: DataFrame, told: Sequence[str], shown: list[Column], columns: StructType) -> Records:
    """Return the declared columns, and behind them those of Kafka that have no declared one's name."""
    declared = {each.name.lower() for each in columns}
    hidden = [name for name in told if name.lower() not in declared]
    shown = shown + [F.col(name) for name in hidden]
    if QUALIFIER not in declared:
        shown.append(F.struct(*told).alias(QUALIFIER))
        hidden.append(QUALIFIER)
    return Records(rows.select(*shown), tuple(hidden), tuple(name for name in _PLACE if name in hidden))


def _mode(statement: CreateStream, options: Mapping[str, str], text: str) -> str:
    mode = (own_option(options, "mode") or _PERMISSIVE).upper()
    if mode not in (_PERMISSIVE, _DROPPING, _FAILING):
        raise WJoinError(
            "WJ603",
            f"there is no mode {mode} for reading records",
            span=option_span("mode", statement.span, text),
            help=f"write {_PERMISSIVE}, {_DROPPING} or {_FAILING}",
        )
    return mode


def _parsed(
    source: DataFrame, statement: CreateStream, columns: StructType, options: Mapping[str, str], mode: str
) -> Column:
    """Return a record as a struct: of NULLs, as far as it cannot be read."""
    written = statement.record_format.name if statement.record_format else ""
    if written == "avro":
        schema = own_option(options, _AVRO_SCHEMA) or _schema_of(columns, statement.name)
        read = F.expr(f"from_avro(value, {_literal(schema)}, map('mode', '{_PERMISSIVE}'))")
        return _with_avro(source, read)
    given, ddl = without(options, "mode"), statement.columns or ""
    if mode != _PERMISSIVE:
        corrupt = _corrupt_column(options)
        given = {**without(given, _CORRUPT_OPTION), _CORRUPT_OPTION: corrupt}
        if corrupt.lower() not in {each.name.lower() for each in columns}:
            ddl = f"{ddl}, {quoted(corrupt)} STRING"
    parse = F.from_json if written == "json" else F.from_csv
    # Spark Connect takes no empty ones.
    return parse(F.col("value").cast("string"), ddl, given or None)


def _corrupt_column(options: Mapping[str, str]) -> str:
    return own_option(options, _CORRUPT_OPTION) or "_corrupt_record"


def _broken(rows: DataFrame, options: Mapping[str, str]) -> Column:
    """Return whether something of a record cannot be read; a record without a value is not broken."""
    record = F.col(_RECORD)
    names = rows.select(f"{_RECORD}.*").columns
    corrupt = [name for name in names if name.lower() == _corrupt_column(options).lower()]
    if corrupt:
        unread = record.getField(corrupt[0]).isNotNull()
    else:
        # Of Avro all is read or nothing.
        unread = reduce(Column.__and__, (record.getField(name).isNull() for name in names))
    return F.col("value").isNotNull() & (record.isNull() | unread | (F.length("value") == 0))


def _refusal(statement: CreateStream) -> Column:
    """Return what ends a query at a record that cannot be read, as an error of wjoin's own."""
    shown = f"translate(left(CAST(value AS STRING), {_SHOWN_CHARACTERS}), '\\n\\r', '  ')"
    if statement.record_format is not None and statement.record_format.name == "avro":
        shown = f"concat('0x', left(hex(value), {_SHOWN_CHARACTERS}))"
    parts = (
        "'error[WJ712]: a record cannot be read, at offset '",
        "offset",
        "' of partition '",
        "partition",
        "' of topic '",
        "topic",
        "': '",
        shown,
        "'\\nhelp: fix it, or choose another mode for the stream: PERMISSIVE or DROPMALFORMED\\n'",
    )
    return F.expr(f"raise_error(concat({', '.join(parts)}))")


def _schema_of(columns: StructType, name: Identifier) -> str:
    try:
        return avro_schema(columns)
    except ValueError as error:
        raise WJoinError("WJ604", str(error), span=name.span, help="declare another type") from None


def _with_avro(frame: DataFrame, converted: Column) -> Column:
    """Return a column from or to Avro.

    Raises WJoinError, without its place, WJ616 where Spark has no Avro and WJ604 where it refuses the schema.
    """
    try:
        _ = frame.select(converted).schema
    except Exception as error:  # whatever it is, it is raised
        missing = missing_package(frame.sparkSession, error, avro=True)
        raise missing or WJoinError("WJ604", first_line(error)) from error
    return converted


def _literal(text: str) -> str:
    """Return a constant string; quotes have another meaning with other settings of Spark."""
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


def written_records(sink: SinkDeclaration, frame: DataFrame, statement: InsertInto) -> DataFrame:
    """Return rows as the records of a sink. Raises WJoinError WJ202, WJ604 and WJ616."""
    declared = sink.statement
    if declared is None or declared.record_format is None:
        if is_kafka(sink.provider) and "value" not in {name.lower() for name in frame.columns}:
            raise WJoinError(
                "WJ202",
                f"the rows for {sink.name} have no column value, which is what Kafka keeps",
                span=statement.body.span,
                help="CREATE SINK … FORMAT JSON makes records of whole rows",
            )
        return frame
    _, options = record_options(sink.options, RECORDS_WRITTEN, declared.record_format.name)
    with located(statement.body.span):
        value = _value(frame, declared, options)
    columns = [value.alias("value")]
    if declared.key is not None:
        columns.insert(0, _key(frame, declared.key, sink, statement))
    return frame.select(*columns)


def _value(frame: DataFrame, declared: CreateSink, options: Mapping[str, str]) -> Column:
    written = declared.record_format.name if declared.record_format else ""
    row = F.struct(*(F.col(quoted(name)) for name in frame.columns))
    if written == "avro":
        schema = own_option(options, _AVRO_SCHEMA) or _schema_of(nullable(frame.schema), declared.name)
        names = ", ".join(map(quoted, frame.columns))
        return _with_avro(frame, F.expr(f"to_avro(struct({names}), {_literal(schema)})"))
    given = {**without(_WRITTEN_TIMES, *options), **options}
    return (F.to_json if written == "json" else F.to_csv)(row, given)


def _key(frame: DataFrame, key: Identifier, sink: SinkDeclaration, statement: InsertInto) -> Column:
    found = next((each for each in frame.schema if key.matches(each.name)), None)
    if found is None:
        raise WJoinError(
            "WJ202",
            f"the rows for {sink.name} have no column {key.name}, which is its key",
            span=statement.body.span,
            help=suggestion(key.name, frame.columns) or f"they have {', '.join(frame.columns)}",
        )
    column = F.col(quoted(found.name))
    return (column if isinstance(found.dataType, BinaryType) else column.cast("string")).alias("key")


def reading_options(
    statement: CreateStream, options: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the options of a stream's source, and apart from them those of its records."""
    written = statement.record_format
    return record_options(options, RECORDS_READ, None if written is None else written.name)


def writing_options(sink: SinkDeclaration) -> dict[str, str]:
    """Return the options of a sink for its format, without those of its records and of its query."""
    written = None if sink.statement is None else sink.statement.record_format
    options, _ = record_options(sink.options, RECORDS_WRITTEN, None if written is None else written.name)
    options = without(options, "trigger", "outputMode", "checkpointLocation")
    if sink.retain is not None:
        options["retention"] = f"{sink.retain.logged}ms"
    return options
