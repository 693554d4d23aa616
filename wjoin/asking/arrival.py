"""In which micro-batch a query has read a row of a file, and whether it was late there."""

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from wjoin.asking.judged import Fault
from wjoin.asking.meant_rows import Reader
from wjoin.asking.needs import Kind
from wjoin.asking.source_rows import FILE
from wjoin.measured.beside import exists
from wjoin.planner.plan.ahead import greatest_time
from wjoin.planner.windows.lengths import human


@dataclass(frozen=True)
class Read:
    """What a checkpoint says of what its query has read: by file the micro-batch, and the clock of each.

    Clocks are in microseconds since 1970; both are empty where no micro-batch has begun.
    """

    files: Mapping[str, int] = field(default_factory=dict)
    clocks: Mapping[int, int] = field(default_factory=dict)


def read_by(spark: SparkSession, checkpoint: str) -> Read:
    """Return what the query of a checkpoint has read. Raises what Spark raises."""
    return Read(_files(spark, checkpoint), _clocks(spark, checkpoint))


def _clocks(spark: SparkSession, checkpoint: str) -> dict[int, int]:
    log = f"{checkpoint}/offsets/[0-9]*"
    found: dict[int, int] = {}
    if exists(spark, log):
        name = F.element_at(F.split(F.input_file_name(), "/"), -1).cast("bigint")
        for row in spark.read.text(log).select(name.alias("number"), "value").collect():
            # The second line of each file has the settings and the clock; others are of sources.
            if row.value.startswith("{") and "batchTimestampMs" in row.value:
                found[row.number] = 1000 * int(json.loads(row.value)["batchTimestampMs"])
    return found


def _files(spark: SparkSession, checkpoint: str) -> dict[str, int]:
    """Return the micro-batch in which a query first read each of its files."""
    log = f"{checkpoint}/sources/*/*"
    found: dict[str, int] = {}
    for row in spark.read.text(log).collect() if exists(spark, log) else ():
        # The first line of each file is the version.
        if row.value.startswith("{"):
            entry = json.loads(row.value)
            if "path" in entry:
                batch = int(entry["batchId"])
                found[entry["path"]] = min(batch, found.get(entry["path"], batch))
    return found


@dataclass(frozen=True)
class ReadFile:
    """A file of a stream: the micro-batch that read it, and the watermark of the stream before that.

    None where it has not been read, and where nothing had been read before.
    """

    path: str
    batch: int | None
    mark: int | None


def files_of(reader: Reader, stream: int, read: Read) -> list[ReadFile]:
    """Return the files of a stream that have rows, with the micro-batches of a checkpoint."""
    needs = reader.needs
    time, files = needs.times[stream], read.files
    limits = [(path, _limit(reader, stream, read, number)) for path, number in files.items()]
    told = reader.asked.engine.rows(limits, f"{FILE} STRING, __wjoin_limit BIGINT")
    rows = reader.tables[stream].join(told, FILE, "left")
    # A row too far ahead is dropped, and moves no watermark.
    times = f"max({time}) FILTER (WHERE {time} <= coalesce(__wjoin_limit, {time}))"
    newest = f"SELECT {FILE}, {times} FROM {reader.alias(stream)} GROUP BY 1"
    found = reader.run(newest, {stream: rows}).collect()
    found.sort(key=lambda row: files.get(row[0], math.inf))
    made: list[ReadFile] = []
    mark: int | None = None
    for batch, group in itertools.groupby(found, key=lambda row: files.get(row[0])):
        own = [*group]
        made += (ReadFile(path, batch, None if batch is None else mark) for path, _ in own)
        last = [newest - needs.delays[stream] for _, newest in own if newest is not None]
        mark = max(last if mark is None else [mark, *last], default=None)
    return made


def _limit(reader: Reader, stream: int, read: Read, batch: int) -> int:
    """Return the greatest event time that a stream may have in a micro-batch."""
    greatest, ahead = greatest_time(reader.needs.kind), reader.needs.ahead[stream]
    clock = read.clocks.get(batch)
    return greatest if ahead is None or clock is None else min(greatest, clock + ahead)


def arrivals(
    reader: Reader, read: Read, rows: Sequence[str | None], times: Sequence[int | None]
) -> Iterator[tuple[int, Fault]]:
    """Yield which of some rows, by the numbers of their streams, are not read yet, and which were dropped.

    ``rows`` are the files of a row of each stream, None where it is of none, and ``times`` its event times.
    """
    needs = reader.needs
    for number, (name, path, time) in enumerate(zip(needs.names, rows, times, strict=True)):
        if path is None or time is None:
            continue
        file = next(each for each in files_of(reader, number, read) if each.path == path)
        if file.batch is None:
            text = f"{name} has not been read yet: no micro-batch has its file {path}"
            yield number, Fault(Kind.ARRIVAL, text)
            continue
        limit = _limit(reader, number, read, file.batch)
        if time > limit:
            ahead, clock = needs.ahead[number], read.clocks.get(file.batch)
            text = f"{name} was dropped as too far in the future by micro-batch {file.batch}"
            if ahead is not None and clock is not None:
                text += f": it is {human(time - clock, needs.kind)} ahead of its clock, and {name} may be "
                text += human(ahead, needs.kind)
            yield number, Fault(Kind.ARRIVAL, text)
        elif file.mark is not None and time < file.mark:
            late, delay = human(file.mark - time, needs.kind), human(needs.delays[number], needs.kind)
            text = (
                f"{name} came late, by {late}: micro-batch {file.batch} read it, and rows more than {delay} "
                f"newer, the delay of {name}, had been read before"
            )
            yield number, Fault(Kind.ARRIVAL, text)


def in_time(reader: Reader, stream: int, read: Read) -> tuple[DataFrame, int, int]:
    """Return the rows of a stream that a query has read in time, and how many were late or are not read.

    Of a stream that is not of files, all.
    """
    rows = reader.tables[stream]
    if FILE not in rows.columns or not read.files:
        return rows, 0, 0
    found = files_of(reader, stream, read)
    known = [
        (each.path, each.batch is not None, each.mark, _limit(reader, stream, read, each.batch or 0))
        for each in found
    ]
    schema = f"{FILE} STRING, __wjoin_read BOOLEAN, __wjoin_mark BIGINT, __wjoin_limit BIGINT"
    told = reader.asked.engine.rows(known, schema)
    marked = rows.join(told, FILE).alias(reader.needs.names[stream])
    time = reader.needs.times[stream]
    lost = F.expr(f"coalesce({time} < __wjoin_mark, false) OR coalesce({time} > __wjoin_limit, false)")
    there = F.col("__wjoin_read")
    (counts,) = marked.select(F.count_if(there & lost), F.count_if(~there)).collect()
    left = marked.filter(there & ~lost).drop("__wjoin_read", "__wjoin_mark", "__wjoin_limit")
    return left, counts[0], counts[1]
