"""The rows of FROM items as tables, with the micro-batch of a query that has read each."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from wjoin.asking.read_log import Read, Stretch
from wjoin.executor.spark.once import collect_once
from wjoin.grammar.statement_kinds import CreateStream
from wjoin.joins.from_items import FromSource
from wjoin.planner.plan.block_columns import quoted
from wjoin.sources.kafka import is_kafka, reads_topic
from wjoin.sources.record_formats import RECORD_PLACE, topics_as_table
from wjoin.spark.spark_failures import RAISED_BY_SPARK

PLACE, BATCH = "__wjoin_place", "__wjoin_batch"
"""The columns with where a row comes from, in words, and with the micro-batch that read it, NULL for none."""

_FILE = "__wjoin_file"

HIDDEN = (PLACE, BATCH)
"""The columns of a table that its stream has not."""


@contextmanager
def as_tables(spark: SparkSession, sources: Sequence[FromSource], read: Read) -> Iterator[list[DataFrame]]:
    """Give the rows of FROM items as tables, with HIDDEN where ``read`` tells of their source.

    Files of a stream and topics are read as such, all that there is; other streams are read once, to their
    present end. Raises what Spark raises.
    """
    made: list[str] = []
    frames: list[DataFrame] = []
    try:
        for number, each in enumerate(sources):
            if not each.frame.isStreaming:
                frames.append(each.frame)
            elif (files := each.sample()) is not None:
                frames.append(_of_files(files, read) if read.files else files)
            elif (statement := _of_kafka(each)) is not None:
                alike = [other for other in sources[:number] if _of_kafka(other) == statement]
                stretches = _stretches_of(statement, read, len(alike))
                frames.append(_of_records(topics_as_table(spark, statement), stretches, read))
            else:
                frames.append(_of_stream(each.frame, read, made))
        yield frames
    finally:
        for name in made:
            spark.catalog.dropTempView(name)


def _of_kafka(source: FromSource) -> CreateStream | None:
    """Return the declaration of a stream of topics that is named as such, None of anything else."""
    declared = source.declared
    if declared is None or declared.derived or declared.site is not None:
        return None
    statement = declared.statement
    return statement if statement is not None and is_kafka(statement.provider.name) else None


def _of_files(rows: DataFrame, read: Read) -> DataFrame:
    return _by_file(rows.withColumn(_FILE, F.input_file_name()), read)


def _by_file(named: DataFrame, read: Read) -> DataFrame:
    """Return rows with HIDDEN instead of the name of the file that each comes from."""
    told = named.sparkSession.createDataFrame([*read.files.items()], f"{_FILE} STRING, {BATCH} INT")
    words = F.concat(F.lit("its file "), F.col(_FILE)).alias(PLACE)
    shown = [F.col(quoted(name)) for name in named.columns if name != _FILE]
    return named.join(F.broadcast(told), _FILE, "left").select(*shown, words, BATCH)


def _of_stream(frame: DataFrame, read: Read, made: list[str]) -> DataFrame:
    """Return the rows of a stream, read once, to its present end; the name of their table goes to ``made``.

    A view over one stream of files knows the file of each row, unless it groups rows or joins others.
    """
    if read.files:
        with suppress(*RAISED_BY_SPARK):
            made.append(collect_once(frame.withColumn(_FILE, F.input_file_name())))
            named = frame.sparkSession.table(made[-1])
            if named.filter(F.col(_FILE) == "").isEmpty():
                return _by_file(named, read)
            return named.drop(_FILE)
    made.append(collect_once(frame))
    return frame.sparkSession.table(made[-1])


def _stretches_of(statement: CreateStream, read: Read, number: int) -> Sequence[Stretch]:
    """Return what a query has read of the topics of a stream.

    ``number``: how many FROM items before it read the same stream; each is a source of its own.
    """
    options = dict(statement.options)
    found = [each for each in read.topics if any(reads_topic(options, one.topic) for one in each)]
    return found[min(number, len(found) - 1)] if found else ()


def _of_records(rows: DataFrame, stretches: Sequence[Stretch], read: Read) -> DataFrame:
    shown = [name for name in rows.columns if name not in RECORD_PLACE]
    if not read:
        return rows.select(*shown)
    topic, partition, offset = (F.col(name) for name in RECORD_PLACE)
    told = rows.sparkSession.createDataFrame(
        [(each.topic, each.partition, each.begin, each.end, each.batch) for each in stretches],
        f"of STRING, within INT, begin BIGINT, end BIGINT, {BATCH} INT",
    ).alias("told")
    inside = (topic == F.col("told.of")) & (partition == F.col("told.within"))
    inside &= F.coalesce(offset >= F.col("told.begin"), F.lit(True))
    inside &= offset < F.col("told.end")
    words = F.format_string("offset %d of partition %d of %s", offset, partition, topic).alias(PLACE)
    own = [F.col(f"rows.{quoted(name)}") for name in shown]
    return rows.alias("rows").join(F.broadcast(told), inside, "left").select(*own, words, f"told.{BATCH}")
