"""Rows of a topic, from the broker that Kafka's client brings along for tests."""

import json
import threading
from functools import partial

import pyarrow as pa
import pytest

from tests.sites.stores import FOREVER
from wjoin.sites.source_kafka import KafkaSource
from wjoin.sites.sources import StreamConfig

kafka = pytest.importorskip("confluent_kafka", reason="needs wjoin[kafka]")
pytestmark = pytest.mark.slow

SCHEMA = pa.schema({"id": pa.int64(), "ts": pa.int64()})
STREAM = partial(StreamConfig, "a", "", SCHEMA, "ts", (), FOREVER)


@pytest.fixture
def producer():
    return kafka.Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "replaced", "log_level": 0})


def source(producer, start: str = "earliest") -> KafkaSource:
    brokers = producer.list_topics(timeout=10).brokers.values()
    servers = ",".join(f"{each.host}:{each.port}" for each in brokers)
    return KafkaSource(servers, "topic", STREAM(start=start))


def send(producer, start: int, stop: int) -> None:
    for number in range(start, stop):
        producer.produce("topic", json.dumps({"id": number, "ts": number}).encode())
    assert producer.flush(10) == 0


def take(found: KafkaSource, position: dict, count: int) -> tuple[list[int], dict, int]:
    ids: list[int] = []
    broken, waited = 0, 0
    for taken in found.batches(position, threading.Event()):
        if taken is None:
            waited += 1
            assert waited < 100, "no record comes"
        else:
            ids += taken.read.rows["id"].to_pylist()
            broken += taken.read.broken
            position = found.fold(position, taken.step)
        if len(ids) >= count:
            return ids, position, broken
    raise AssertionError("a topic has no end")


def test_a_topic_from_its_beginning_and_on_from_a_position(producer):
    send(producer, 0, 1000)
    producer.produce("topic", b"{broken")
    send(producer, 1000, 1001)
    found = source(producer)
    ids, position, broken = take(found, {}, 1001)
    assert sorted(ids) == list(range(1001))
    assert (broken, sum(position["offsets"].values())) == (1, 1002)
    send(producer, 2000, 2500)
    ids, position, _ = take(found, position, 500)
    assert sorted(ids) == list(range(2000, 2500))
    assert sum(position["offsets"].values()) == 1502


def test_brokers_that_cannot_be_asked(producer, monkeypatch):
    monkeypatch.setattr("wjoin.sites.source_kafka._ASK_SECONDS", 0.5)
    found = KafkaSource("127.0.0.1:1", "topic", STREAM(options={"log_level": "0"}))
    with pytest.raises(OSError, match="topic at 127"):
        next(found.batches({}, threading.Event()))
