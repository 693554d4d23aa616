"""Joins two topics into a third through Spark Connect, and prints the streams.

Run by test_connect.py, with a folder, a broker, the topics, and the jars of the connector.
"""

import sys

from pyspark.sql import SparkSession

import wjoin

STREAM = """CREATE STREAM {name} (id BIGINT, ts TIMESTAMP, k AS CAST(key AS STRING)) USING kafka
OPTIONS (kafka.bootstrap.servers '{servers}', subscribe '{topic}') FORMAT JSON
WATERMARK ts DELAY OF '1 second';"""

SINK = """CREATE SINK pairs USING kafka OPTIONS (kafka.bootstrap.servers '{servers}', topic '{topic}')
FORMAT JSON KEY (id);
INSERT INTO pairs
SELECT A.id, B.ts FROM a A, b B WINDOW (A, B) = 2 SECONDS WHERE A.id = B.id AND A.k = B.k"""


def main(root: str, servers: str, one: str, two: str, out: str, jars: str) -> None:
    """Work off what is there."""
    builder = wjoin.configure(SparkSession.builder.remote("local[2]"))
    settings = {"spark.driver.extraClassPath": f"{jars}/*", "spark.sql.shuffle.partitions": "2"}
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = wjoin.connect(builder.getOrCreate())
    streams = (
        STREAM.format(name=name, servers=servers, topic=topic) for name, topic in (("a", one), ("b", two))
    )
    script = "".join(streams) + SINK.format(servers=servers, topic=out)
    session.run_script(script, once=True, checkpoint=f"{root}/checkpoints")
    print([tuple(row)[:2] for row in session.sql("SHOW STREAMS").collect()])
    session.spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
