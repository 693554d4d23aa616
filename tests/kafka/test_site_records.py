"""What an attacker writes into a topic that a site reads, by a real broker."""

from pathlib import Path

import pytest

from tests.security.test_site_records import BROKEN, GOOD, ROWS, check, write_all
from tests.sites.processes import SCHEMA, Process, Sites
from wjoin.testing.broker import Broker

kafka = pytest.importorskip("confluent_kafka", reason="needs wjoin[site-kafka]")
pytestmark = [pytest.mark.long, pytest.mark.slow]


def test_records_of_a_topic(broker: Broker, tmp_path: Path) -> None:
    settings = {"bootstrap.servers": broker.servers, "message.max.bytes": 100_000_000}
    # What is small on the way passes the broker, however large it is unpacked.
    producer = kafka.Producer({**settings, "compression.type": "zstd", "queue.buffering.max.kbytes": 1 << 20})

    def write(record: bytes | None) -> None:
        producer.produce("attacked", record, partition=0)
        producer.flush(60)

    write(GOOD)
    started: list[Process] = []
    source = f"kafka://{broker.servers}/attacked"
    config = f'[streams.a]\nsource = "{source}"\nstart = "earliest"\ntime = "ts"\nwindow_rows = 1000\n'
    site = Sites(tmp_path, started).start(f'{config}schema = "{SCHEMA}"\n', head='memory = "256 MB"')
    try:
        write(b"x" * 60_000_000)
        write(None)
        write(GOOD.replace(b", ", b",\n"))
        write_all(write)
        check(site, len(ROWS) + 23, len(BROKEN) + 1)
    finally:
        for each in started:
            each.end()
