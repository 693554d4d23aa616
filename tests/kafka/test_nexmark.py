"""The generator of NEXMark writes to topics, and its queries over them give the rows that DuckDB has."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import wjoin
from benchmarks.nexmark.generator import Load, write
from benchmarks.nexmark.nexmark import check, oracle
from benchmarks.nexmark.queries import declared_topics, query
from tests.kafka.conftest import Topics

pytestmark = pytest.mark.long

pytest.importorskip("confluent_kafka", reason="needs wjoin[kafka]")

GENERATOR = Path(__file__).parents[2] / "benchmarks" / "nexmark" / "generator.py"
LOAD = Load(rate=2000, files=3, events=2000)


def generate(servers: str, prefix: str, *options: str) -> None:
    """Write the load to topics."""
    sizes = [f"--{name}={getattr(LOAD, name)}" for name in ("rate", "files", "events")]
    command: Sequence[str] = [sys.executable, str(GENERATOR), "--kafka", servers, "--prefix", prefix]
    subprocess.run([*command, *sizes, *options], check=True, timeout=300)


@pytest.mark.parametrize("name", ["q9", "three"])
def test_queries_over_topics(session: wjoin.Session, topics: Topics, tmp_path: Path, name: str) -> None:
    prefix = topics.name("nexmark") + "-"
    generate(topics.servers, prefix)
    for file in range(LOAD.files):
        write(LOAD, tmp_path / "data", file)
    asked, results = query(name), tmp_path / "results"
    # Much longer than Kafka's own, for a busy machine.
    patient = ", kafka.default.api.timeout.ms '600000'"
    session.run_script(declared_topics(topics.servers, prefix, patient))
    session.sql(f"CREATE SINK out USING parquet OPTIONS (path '{results}')")
    insert = f"INSERT INTO out {asked.wjoin}"
    session.run_script(insert, complete=True, checkpoint=str(tmp_path / "checkpoint"))
    assert check(asked, results, oracle(tmp_path / "data")) > 10


def test_paced_records_come_file_by_file(topics: Topics) -> None:
    prefix = topics.name("nexmark") + "-"
    generate(topics.servers, prefix, "--paced")
    bids = [json.loads(value or "") for _, value in topics.read(f"{prefix}bid")]
    assert len(bids) == LOAD.files * LOAD.events * 46 // 50
    pairs = sorted((each["millis"], each["came"]) for each in bids)
    came = [each for _, each in pairs]
    assert came == sorted(came)
    assert len({*came}) == LOAD.files
