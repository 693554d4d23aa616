"""What of a source's rows tells the order in which they come."""

from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from wjoin.planner.plan.block_columns import quoted

NAME, MAJOR, START = "__wjoin_name", "__wjoin_major", "__wjoin_start"
"""The columns of a row's place: of its file or log, of that among the others, and of the row in it."""


@dataclass(frozen=True)
class ReadOrder:
    """Columns that tell the place of a row; ``log`` as in ``ReadParts``."""

    columns: tuple[Column, ...]
    log: bool


def order_of(frame: DataFrame) -> ReadOrder | None:
    """Return what tells the order of a stream's rows, None where nothing does.

    Spark's source of files reads them by the time of their modification, a split of one in the
    order of its rows. Kafka numbers the rows of a partition in a column ``offset``.
    """
    if not frame.isStreaming:
        # Rows of a table come all at once.
        return None
    return _of_files(frame) or _of_log(frame)


def part_of(frame: DataFrame) -> tuple[str, Column] | None:
    """Return what parts a stream's source has (``catalog.PART_TYPES``), and the column that tells that of a
    row: the name of its file, or the number of its partition. None where nothing tells.

    It is the same however often a row is read, and the same for files, and partitions, of several streams.
    """
    order = order_of(frame)
    if order is None:
        return None
    if order.log:
        return "partition", F.col("partition")
    return "file", frame.metadataColumn("_metadata").getField("file_name")


def _of_files(frame: DataFrame) -> ReadOrder | None:
    try:
        hidden = frame.metadataColumn("_metadata")
        places = {
            NAME: hidden.getField("file_path"),
            MAJOR: F.unix_micros(hidden.getField("file_modification_time")),
            START: hidden.getField("file_block_start"),
        }
        columns = tuple(place.alias(name) for name, place in places.items())
        # Spark Connect looks for columns when it is asked for them only.
        known = frame.select(*columns).columns
    except AnalysisException:
        return None
    return ReadOrder(columns, log=False) if known else None


def _of_log(frame: DataFrame) -> ReadOrder | None:
    fields = {each.name.lower(): each for each in frame.schema.fields}
    kinds = {name: each.dataType.simpleString() for name, each in fields.items()}
    if (kinds.get("partition"), kinds.get("offset")) != ("int", "bigint"):
        return None
    named = [name for name in ("topic", "partition") if name in fields]
    name = F.concat_ws("/", *(F.col(quoted(fields[each].name)).cast("string") for each in named))
    start = F.coalesce(F.col(quoted(fields["offset"].name)), F.lit(-1).cast("bigint"))
    columns = (name.alias(NAME), F.lit(0).cast("bigint").alias(MAJOR), start.alias(START))
    return ReadOrder(columns, log=True)
