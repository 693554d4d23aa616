"""The rows of FROM items as tables, with the micro-batch of a query that has read each."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from wjoin.asking.read_log import Read, Stretch
from wjoin.executor.spark.once import collect_once
from wjoin.grammar.statement_kinds import CreateStream
from wjoin.joins.from_items import FromSource
from wjoin.planner.plan.block_columns import quoted
from wjoin.sources.kafka import is_kafka, reads_topic
from wjoin.sources.record_formats import RECORD_PLACE, topics_as_table

PLACE, BATCH = "__wjoin_place", "__wjoin_batch"
"""The columns with where a row comes from, in words, and with the micro-batch that read it, NULL for none."""

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
                made.append(collect_once(each.frame))
                frames.append(spark.table(made[-1]))
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
    told = rows.sparkSession.createDataFrame([*read.files.items()], f"__wjoin_file STRING, {BATCH} INT")
    named = rows.withColumn("__wjoin_file", F.input_file_name())
    words = F.concat(F.lit("its file "), F.col("__wjoin_file")).alias(PLACE)
    return named.join(F.broadcast(told), "__wjoin_file", "left").select(*rows.columns, words, BATCH)


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
