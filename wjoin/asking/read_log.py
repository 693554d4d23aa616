"""What a query has read, by its checkpoint: which files, and which records of Kafka, in which micro-batch."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from wjoin.measured.beside import exists

NEVER = -1
"""The micro-batch of a record that a query does not read, because it began behind it."""

EARLIER = -2
"""The micro-batch of a record that one has read whose offsets Spark no longer keeps."""

_GONE = -(1 << 30)
"""What is added to the numbers that a source gives files of such micro-batches; they tell the order."""

Offsets = Mapping[str, Mapping[str, int]]
"""Offsets by topic and partition."""


@dataclass(frozen=True)
class Stretch:
    """Records of a partition that a micro-batch read: those from the offset ``begin`` to before ``end``.

    ``begin`` is None for all before; ``batch`` may be NEVER or EARLIER.
    """

    topic: str
    partition: int
    begin: int | None
    end: int
    batch: int


@dataclass(frozen=True)
class Read:
    """What a query has read: by file the micro-batch, by source of topics the stretches of their partitions.

    ``clocks`` are those of the micro-batches, in microseconds since 1970. All is empty where none has begun.
    """

    files: Mapping[str, int] = field(default_factory=dict)
    topics: Sequence[Sequence[Stretch]] = ()
    clocks: Mapping[int, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.files or self.topics)


def read_by(spark: SparkSession, checkpoint: str) -> Read:
    """Return what the query of a checkpoint has read. Raises what Spark raises."""
    clocks: dict[int, int] = {}
    ends: dict[int, list[Offsets | None]] = {}
    logs: dict[int, dict[int, int]] = {}
    for path, text in _texts(spark, f"{checkpoint}/offsets/[0-9]*"):
        # A line for the version, one with the settings and the clock, and one for each source.
        _, told, *sources = text.split("\n")
        number = int(path.rsplit("/", 1)[-1])
        clocks[number] = 1000 * int(json.loads(told)["batchTimestampMs"])
        ends[number] = [_offsets(each) for each in sources]
        for source, each in enumerate(sources):
            if (end := re.fullmatch(r'\{"logOffset":(\d+)\}', each.strip())) is not None:
                logs.setdefault(source, {})[number] = int(end[1])
    begins: dict[int, Offsets] = {}
    files: dict[str, int] = {}
    oldest = min(clocks, default=0)
    for path, text in _texts(spark, f"{checkpoint}/sources/*/*"):
        source = int(path.rsplit("/", 2)[-2])
        entries = [line for line in text.split("\n") if line.startswith("{")]
        for entry in map(json.loads, entries):
            if "path" in entry and "batchId" in entry:
                batch = _batch_of(int(entry["batchId"]), logs.get(source, {}), oldest)
                if batch is not None:
                    files[entry["path"]] = min(batch, files.get(entry["path"], batch))
        if entries and (first := _offsets(entries[0])) is not None:
            begins[source] = first
    width = max(map(len, ends.values()), default=0)
    found = (tuple(_stretches(ends, source, begins.get(source, {}))) for source in range(width))
    return Read(files, [each for each in found if each], clocks)


def _texts(spark: SparkSession, log: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each file of a log."""
    if exists(spark, log):
        # Read by Spark, which may be another machine's.
        rows = spark.read.text(log, wholetext=True).select(F.input_file_name(), "value")
        yield from ((row[0], row[1]) for row in rows.collect())


def _batch_of(place: int, log: Mapping[int, int], oldest: int) -> int | None:
    """Return the micro-batch that read files, None where none has begun to.

    A source numbers only those micro-batches that brought it files: ``place`` is such a number, ``log`` the
    last one of each micro-batch. Before the ``oldest`` that is kept it is not known, but for the order.
    """
    batch = min((number for number, end in log.items() if end >= place), default=None)
    return _GONE + place if batch == oldest and oldest > 0 else batch


def _offsets(text: str) -> Offsets | None:
    """Return offsets by topic and partition, None where a source has others."""
    if not re.match(r'\{"', text):
        return None
    told = json.loads(text)
    if not all(isinstance(each, dict) for each in told.values()):
        return None
    by_number = all(
        name.isdecimal() and isinstance(each, int) for own in told.values() for name, each in own.items()
    )
    return told if by_number else None


def _stretches(
    ends: Mapping[int, Sequence[Offsets | None]], source: int, begins: Offsets
) -> Iterator[Stretch]:
    """Yield what each micro-batch has read of the topics of a source, and what none reads."""
    reached: dict[tuple[str, str], int] = {}
    for topic, own in begins.items():
        for partition, first in own.items():
            yield Stretch(topic, int(partition), None, first, NEVER)
            reached[topic, partition] = first
    oldest = min(ends, default=0)
    for batch in sorted(ends):
        offsets = ends[batch][source] if source < len(ends[batch]) else None
        for topic, own in (offsets or {}).items():
            for partition, end in own.items():
                begin = reached.get((topic, partition))
                if begin != end:
                    known = batch if batch > oldest or oldest == 0 else EARLIER
                    yield Stretch(topic, int(partition), begin, end, known)
                reached[topic, partition] = end
