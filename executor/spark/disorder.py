"""EXPLAIN DELAY: how far the rows of a stream lie behind those that came before them, in two passes."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from wjoin.executor.arrival_order import Place, ReadPart, ReadParts, disorder, seen_before
from wjoin.executor.spark.analyze import DDL, TIME, collected, event_times, note_places, sketches
from wjoin.executor.spark.arrival import order_of


@dataclass(frozen=True)
class Lateness:
    """How far rows of a stream lie behind the greatest event time before them.

    ``late`` counts rows by that, in microseconds (units of an integral event time), rounded up to two digits,
    but not past the delay that was asked for; ``first`` and ``last`` are the ends of their event times.
    """

    late: Counter[int]
    first: int
    last: int

    @property
    def rows(self) -> int:
        """How many rows have an event time."""
        return sum(self.late.values())

    def beyond(self, delay: int) -> int:
        """Return how many rows lie further behind than a delay."""
        return sum(count for behind, count in self.late.items() if behind > delay)


def lateness(frame: DataFrame, event_time: str, delay: int | None) -> Lateness | None:
    """Return how far rows of a stream lie behind, None where their order is not known.

    For ``delay`` it is exact how many lie further behind. Reads the stream twice. Raises what Spark raises.
    """
    order = order_of(frame)
    if order is None:
        return None
    rows = frame.select(event_times(frame, event_time).alias(TIME), *order.columns)
    read = collected(rows.mapInArrow(partial(_pieces, log=order.log), DDL))
    pieces = [ReadPart(*json.loads(bytes(sketch or b""))) for _, _, sketch in read]
    if not pieces or disorder(pieces) is None:
        return None
    counted = partial(_late, log=order.log, seen=seen_before(pieces), delay=delay)
    late: Counter[int] = Counter()
    for _, _, sketch in collected(rows.mapInArrow(counted, DDL)):
        late.update({int(behind): count for behind, count in json.loads(bytes(sketch or b"{}")).items()})
    return Lateness(late, min(each.least for each in pieces), max(each.greatest for each in pieces))


def _pieces(batches: Iterator[pa.RecordBatch], *, log: bool) -> Iterator[pa.RecordBatch]:
    """Yield the pieces of one partition."""
    yield from _told(json.dumps(astuple(each)) for each in _noted(batches, ReadParts(log=log)))


def _late(
    batches: Iterator[pa.RecordBatch], *, log: bool, seen: Sequence[tuple[Place, int]], delay: int | None
) -> Iterator[pa.RecordBatch]:
    """Yield how many rows of one partition lie how far behind."""
    yield from _told([json.dumps(_noted(batches, ReadParts(log=log, seen=seen, delay=delay)).late)])


def _noted(batches: Iterator[pa.RecordBatch], pieces: ReadParts) -> ReadParts:
    for batch in batches:
        dated = batch.filter(pc.is_valid(batch.column(TIME)))
        if dated.num_rows:
            note_places(pieces, dated)
    return pieces


def _told(texts: Iterator[str] | list[str]) -> Iterator[pa.RecordBatch]:
    yield sketches([{"name": "", "sketch": each.encode()} for each in texts])
