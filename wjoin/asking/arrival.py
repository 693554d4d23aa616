"""In which micro-batch a query has read a row of a file, and whether it was late there."""

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from wjoin.asking.judged import Fault
from wjoin.asking.meant_rows import Reader
from wjoin.asking.needs import Kind
from wjoin.asking.source_rows import FILE
from wjoin.measured.beside import exists
from wjoin.planner.windows.lengths import human


def read_files(spark: SparkSession, checkpoint: str) -> dict[str, int]:
    """Return the micro-batch in which a query first read each of its files, by the checkpoint of the query.

    Empty where no micro-batch has begun. Raises what Spark raises.
    """
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


def files_of(reader: Reader, stream: int, files: Mapping[str, int]) -> list[ReadFile]:
    """Return the files of a stream that have rows, where ``files`` have the micro-batches of a checkpoint."""
    needs = reader.needs
    newest = f"SELECT {FILE}, max({needs.times[stream]}) FROM {reader.alias(stream)} GROUP BY 1"
    found = reader.run(newest, {stream: reader.tables[stream]}).collect()
    found.sort(key=lambda row: files.get(row[0], math.inf))
    made: list[ReadFile] = []
    mark: int | None = None
    for batch, group in itertools.groupby(found, key=lambda row: files.get(row[0])):
        own = [*group]
        made += (ReadFile(path, batch, None if batch is None else mark) for path, _ in own)
        times = [last - needs.delays[stream] for _, last in own if last is not None]
        mark = max(times if mark is None else [mark, *times], default=None)
    return made


def arrivals(
    reader: Reader, files: Mapping[str, int], rows: Sequence[str | None], times: Sequence[int | None]
) -> Iterator[Fault]:
    """Yield which of some rows are not read yet, and which were late.

    ``rows`` are the files of a row of each stream, None where it is of none, and ``times`` its event times.
    """
    needs = reader.needs
    for number, (name, path, time) in enumerate(zip(needs.names, rows, times, strict=True)):
        if path is None or time is None:
            continue
        file = next(each for each in files_of(reader, number, files) if each.path == path)
        if file.batch is None:
            yield Fault(Kind.ARRIVAL, f"{name} has not been read yet: no micro-batch has its file {path}")
        elif file.mark is not None and time < file.mark:
            late, delay = human(file.mark - time, needs.kind), human(needs.delays[number], needs.kind)
            yield Fault(
                Kind.ARRIVAL,
                f"{name} came late, by {late}: micro-batch {file.batch} read it, and rows more than {delay} "
                f"newer, the delay of {name}, had been read before",
            )


def in_time(reader: Reader, stream: int, files: Mapping[str, int]) -> tuple[DataFrame, int, int]:
    """Return the rows of a stream that a query has read in time, and how many were late or are not read.

    Of a stream that is not of files, all.
    """
    rows = reader.tables[stream]
    if FILE not in rows.columns or not files:
        return rows, 0, 0
    found = files_of(reader, stream, files)
    known = [(each.path, each.batch is not None, each.mark) for each in found]
    told = reader.asked.engine.rows(known, f"{FILE} STRING, __wjoin_read BOOLEAN, __wjoin_mark BIGINT")
    marked = rows.join(told, FILE).alias(reader.needs.names[stream])
    late = F.expr(f"coalesce({reader.needs.times[stream]} < __wjoin_mark, false)")
    read = F.col("__wjoin_read")
    (counts,) = marked.select(F.count_if(read & late), F.count_if(~read)).collect()
    return marked.filter(read & ~late).drop("__wjoin_read", "__wjoin_mark"), counts[0], counts[1]
