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

kafka = pytest.importorskip("confluent_kafka", reason="needs wjoin[site-kafka]")
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
