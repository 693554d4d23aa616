"""What an attacker writes into a topic that a site reads, by a real broker."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.security.attacks import MOST_MEMORY, peak
from tests.security.test_mutations import RECORDS, mutate, of_records, seconds_of
from tests.security.test_site_records import BROKEN, GOOD, ROWS
from tests.sites.processes import SCHEMA, Process, Sites, wait_for
from tests.tiers import tiers
from wjoin.testing.broker import Broker

kafka = pytest.importorskip("confluent_kafka", reason="needs wjoin[kafka]")
pytest.importorskip("confluent_kafka.admin")
pytestmark = [pytest.mark.thorough, pytest.mark.slow]


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[Sites]:
    started: list[Process] = []
    yield Sites(tmp_path, started)
    for each in started:
        each.end()


def reading(sites: Sites, broker: Broker, topic: str, schema: str, rows: int) -> Process:
    """Start a site that reads a topic."""
    source = f"kafka://{broker.servers}/{topic}"
    config = f'[streams.a]\nsource = "{source}"\nstart = "earliest"\ntime = "ts"\nwindow_rows = {rows}\n'
    return sites.start(f'{config}schema = "{schema}"\n', head='memory = "256 MB"')


def producer(broker: Broker) -> "kafka.Producer":
    settings = {"bootstrap.servers": broker.servers, "message.max.bytes": 100_000_000}
    # What is small on the way passes the broker, however large it is unpacked.
    return kafka.Producer({**settings, "compression.type": "zstd", "queue.buffering.max.kbytes": 1 << 20})


@pytest.mark.parametrize("span", tiers(["seconds", "minutes"], long=["seconds"]))
@pytest.mark.timeout(3600)
def test_mutated_records(request: pytest.FixtureRequest, broker: Broker, sites: Sites, span: str) -> None:
    writer = producer(broker)

    def write(record: bytes) -> None:
        writer.produce(f"mutated-{span}", record, partition=0)

    write(GOOD)
    assert writer.flush(60) == 0
    site = reading(sites, broker, f"mutated-{span}", RECORDS, 100_000)
    wait_for(lambda: site.client().next("a", None) == 1)
    door = of_records(site, write, lambda: None if writer.flush(60) == 0 else pytest.fail("not sent"), 1)
    mutate(door, seconds_of(span, request.config))


def test_large_records(broker: Broker, sites: Sites) -> None:
    writer = producer(broker)

    def write(record: bytes | None) -> None:
        writer.produce("large", record, partition=0)
        assert writer.flush(60) == 0

    write(GOOD)
    site = reading(sites, broker, "large", SCHEMA, 1000)
    write(b"x" * 40_000_000)
    write(None)
    for each in (*BROKEN.values(), *ROWS.values()):
        write(each)
    for _ in range(3):
        write(GOOD.replace(b"x", b"y" * 15_000_000))
    write(GOOD)
    rows, broken = len(ROWS) + 5, len(BROKEN) + 1
    client = site.client(patience=60.0)
    lineage = client.describe("a").lineage
    wait_for(lambda: client.next("a", lineage) >= rows, 120)
    told = client.status()["streams"][0]
    assert (told["next"], told["broken"]) == (rows, broken)
    last = client.full("a", lineage, np.array([0, rows - 1]), ["name"])
    assert last.column(0).to_pylist() == ["x", "x"]
    print(f"peak {peak(site.process.pid) / 1e6:.0f} MB")
    assert peak(site.process.pid) < MOST_MEMORY
    assert "Traceback" not in site.log() and "again in" not in site.log()
    assert "\x1b" not in site.log()


def bombs(broker: Broker, topic: str, codec: str, size: int) -> list[object]:
    """Write a good record, one that is small on the way only, and a good one; return what failed."""
    settings = {"bootstrap.servers": broker.servers, "message.max.bytes": 1_000_000_000, "linger.ms": 0}
    large = kafka.Producer({**settings, "compression.type": codec, "queue.buffering.max.kbytes": 2_000_000})
    failed: list[object] = []

    def told(error: "kafka.KafkaError | None", _: object) -> None:
        if error is not None:
            failed.append(error.code())

    for value in (GOOD, bytes(size), GOOD):
        large.produce(topic, value, partition=0, on_delivery=told)
        assert large.flush(60) == 0
    return failed


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
def test_what_unpacks_to_too_much_does_not_come_into_a_topic_without_compression(
    broker: Broker, sites: Sites, codec: str
) -> None:
    topic = kafka.admin.NewTopic(f"plain-{codec}", 1, 1, config={"compression.type": "uncompressed"})
    admin = kafka.admin.AdminClient({"bootstrap.servers": broker.servers})
    admin.create_topics([topic])[topic.topic].result(60)
    assert bombs(broker, topic.topic, codec, 50_000_000) == [kafka.KafkaError.MSG_SIZE_TOO_LARGE]
    site = reading(sites, broker, topic.topic, SCHEMA, 1000)
    wait_for(lambda: site.client().next("a", None) == 2)
    assert peak(site.process.pid) < MOST_MEMORY
    assert "again in" not in site.log()


def test_what_the_client_library_does_not_unpack_stops_the_stream_and_nothing_else(
    broker: Broker, sites: Sites
) -> None:
    assert bombs(broker, "packed", "zstd", 300_000_000) == []
    site = reading(sites, broker, "packed", SCHEMA, 1000)
    client = site.client()
    wait_for(lambda: client.next("a", None) == 1 and "again in" in site.log())
    assert client.status()["streams"][0]["state"] == "source fails"
    assert peak(site.process.pid) < MOST_MEMORY
    assert "message at 1 " in site.log() and "Traceback" not in site.log()
