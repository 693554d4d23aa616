"""Rows of a topic of Kafka, each record a JSON object; needs wjoin[kafka]."""

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from threading import Event
from typing import Any

from wjoin.grammar.errors import WJoinError
from wjoin.sites.log import Position
from wjoin.sites.record_lines import MOST_RECORD, MOST_TAKEN
from wjoin.sites.records import json_lines
from wjoin.sites.sources import StreamConfig, Taken

_RECORDS = 10_000
_AT_ONCE = 500
_QUEUED_KILOBYTES = 16_384
"""Of records that the client's library has read ahead; it takes 64 MB by itself."""

_WAIT = 0.2
_ASK_SECONDS = 10.0


@dataclass(frozen=True)
class KafkaSource:
    """All partitions of a topic. The position holds the next offset of each; no group is committed."""

    servers: str
    topic: str
    stream: StreamConfig

    def fold(self, position: Position, step: Position) -> Position:
        """Return the position after a step: the greatest next offset of each partition."""
        return {"offsets": {**position.get("offsets", {}), **step.get("offsets", {})}}

    def batches(self, position: Position, stop: Event) -> Iterator[Taken | None]:
        """Yield records as they come. Raises OSError where the brokers cannot be asked."""
        kafka = client_library()
        settings = {
            "queued.max.messages.kbytes": _QUEUED_KILOBYTES,
            "fetch.max.bytes": 1024 * _QUEUED_KILOBYTES,
            **self.stream.options,
            "bootstrap.servers": self.servers,
            "group.id": "wjoin-site",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
        consumer = kafka.Consumer(settings)
        try:
            self._assign(kafka, consumer, position)
            while not stop.is_set():
                records = _some(consumer)
                # What has come before a failure is taken, or it would come with it again and again.
                good = [*takewhile(lambda each: each.error() is None, records)]
                yield self._taken(good) if good else None
                if len(good) < len(records):
                    raise kafka.KafkaException(records[len(good)].error())
        except kafka.KafkaException as error:
            raise OSError(f"topic {self.topic} at {self.servers}: {error}") from error
        finally:
            consumer.close()

    def _assign(self, kafka: Any, consumer: Any, position: Position) -> None:
        found = consumer.list_topics(self.topic, timeout=_ASK_SECONDS).topics[self.topic]
        if found.error is not None:
            raise kafka.KafkaException(found.error)
        known = position.get("offsets", {})
        begin = kafka.OFFSET_BEGINNING if self.stream.start == "earliest" else kafka.OFFSET_END
        consumer.assign(
            [kafka.TopicPartition(self.topic, each, known.get(str(each), begin)) for each in found.partitions]
        )

    def _taken(self, records: list[Any]) -> Taken:
        lines, offsets = [], {}
        for each in records:
            # A line is a record; one of Kafka may have line breaks.
            value = each.value() or b""
            lines.append(value.replace(b"\n", b" ") if len(value) <= MOST_RECORD else b"a record is too long")
            offsets[str(each.partition())] = each.offset() + 1
        return Taken(json_lines(lines, self.stream.schema, self.stream.epoch), {"offsets": offsets})


def _some(consumer: Any) -> list[Any]:
    """Return records that are there, as many as have some bytes; waits a little for the first one."""
    found: list[Any] = []
    size, most = 0, 1
    while len(found) < _RECORDS and size < MOST_TAKEN:
        more = consumer.consume(most, timeout=0 if found else _WAIT)
        if not more:
            break
        found += more
        size += sum(len(each.value() or b"") for each in more)
        # As many as those before let expect to fit: what is small on the way may be large.
        most = max(1, min(2 * most, _AT_ONCE, (MOST_TAKEN - size) * len(found) // max(size, 1)))
    return found


def client_library() -> Any:
    """Return the module of Kafka's client. Raises WJoinError WJ905 where it is not installed."""
    try:
        return importlib.import_module("confluent_kafka")
    except ImportError as error:
        raise WJoinError(
            "WJ905", "a stream's source is Kafka, but the Kafka client is not installed"
        ) from error
