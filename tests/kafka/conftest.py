"""A real broker of Kafka for these tests, one process on loopback, and topics on it."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.programs import find_jars
from wjoin.testing.broker import Broker

_numbers = itertools.count()


@dataclass(frozen=True)
class Topics:
    """What tests write to a broker and read from it, past wjoin."""

    spark: SparkSession
    servers: str

    @property
    def options(self) -> str:
        """The option of every stream and sink."""
        return f"kafka.bootstrap.servers '{self.servers}'"

    def name(self, word: str) -> str:
        """Return the name of a topic that no other test has."""
        return f"{word}-{next(_numbers)}"

    def write(
        self,
        topic: str,
        values: Sequence[str | bytes | None],
        key: str | None = None,
        partition: int | None = None,
    ) -> None:
        """Write records in their order, where a partition is named."""
        rows = [
            (
                None if key is None else key.encode(),
                each.encode() if isinstance(each, str) else each,
                partition,
            )
            for each in values
        ]
        frame = self.spark.createDataFrame(rows, "key BINARY, value BINARY, partition INT").coalesce(1)
        frame = frame if partition is not None else frame.drop("partition")
        options = {"kafka.bootstrap.servers": self.servers, "topic": topic}
        # Much longer than Kafka's own, for a busy machine.
        options["kafka.delivery.timeout.ms"] = "600000"
        frame.write.format("kafka").options(**options).save()

    def read(self, topic: str) -> list[tuple[str | None, str | None]]:
        """Return the keys and values of all records of a topic."""
        source = self.spark.read.format("kafka").option("kafka.bootstrap.servers", self.servers)
        rows = source.option("subscribe", topic).load().selectExpr("string(key)", "string(value)").collect()
        return [(row[0], row[1]) for row in rows]


@pytest.fixture(scope="session", autouse=True)
def jars() -> Path:
    """The jars of a broker and of the connector."""
    found = find_jars("--cached")
    if found is None:
        pytest.skip("the jars of Kafka are not there: scripts/find_kafka.sh fetches them")
    return found


@pytest.fixture(scope="session")
def broker(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker whose topics have three partitions."""
    with Broker(jars / "broker", tmp_path_factory.mktemp("broker"), partitions=3) as started:
        yield started


@pytest.fixture
def topics(spark: SparkSession, broker: Broker) -> Topics:
    return Topics(spark, broker.servers)
