"""Runs a W-join in batch and as a stream, by two plans, through Spark Connect; prints the counts.

Then as INSERT INTO, and prints of how many streams EXPLAIN knows what that measured, and the disorder that
ANALYZE STREAM finds. A client of Spark 4.0 has no operator for that: it is told so, and joins by Spark's own.
"""

import json
import re
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.connect.group import GroupedData
from pyspark.sql.streaming.query import StreamingQuery

import wjoin
from wjoin.grammar.parser import parse_statement
from wjoin.grammar.statement_kinds import CreateStream
from wjoin.progress import read
from wjoin.sources.record_formats import read_records

JOIN = "SELECT {hint} A.k FROM {left} A, {right} B WINDOW (A, B) = 5 SECONDS WHERE A.k = B.k"


def main(root: Path) -> None:
    """Join 100 rows with themselves."""
    builder = wjoin.configure(SparkSession.builder.remote("local[2]"))
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    session = wjoin.connect(spark)
    times = "timestamp_seconds(id + 1 - IF(id = 50, 2, 0))"
    rows = spark.sql(f"SELECT id AS k, {times} AS ts FROM range(100)")
    rows.coalesce(1).write.parquet(str(root / "rows"))
    rows.createOrReplaceTempView("rows")
    batch = session.sql(JOIN.format(hint="", left="rows", right="rows")).count()
    analyzed = session.explain("EXPLAIN ANALYZE " + JOIN.format(hint="", left="rows", right="rows"))
    found = [re.search(rf"{name} .* (\d+)$", analyzed, re.MULTILINE) for name in ("rows of A", "results")]
    for name in ("one", "two"):
        session.stream(
            name, spark.readStream.schema(rows.schema).parquet(str(root / "rows")), delay="1 second"
        )
    run(session, root / "native", "/*+ PLAN(NATIVE) */")
    if not hasattr(GroupedData, "transformWithStateInPandas"):
        refused(session, JOIN.format(hint="", left="one", right="two"))
        print(
            batch,
            *(each[1] for each in found if each),
            session.read.parquet(str(root / "native" / "out")).count(),
        )
        spark.stop()
        return
    query = run(session, root / "multiway", "")
    counts = [spark.read.parquet(str(root / each / "out")).count() for each in ("multiway", "native")]
    print(batch, *(each[1] for each in found if each), *counts, read(query.recentProgress[0]).rows_in)
    session.sql(f"CREATE SINK kept USING parquet OPTIONS (path '{root / 'written'}')")
    session.sql(f"SET wjoin.checkpoint = {root / 'checkpoints'}")
    insert = f"INSERT INTO kept {JOIN.format(hint='', left='one', right='two')}"
    session.run_script(insert)
    explained = session.explain(f"EXPLAIN {insert}")
    print(len(re.findall(r"^  [AB]: .*\(measured\)$", explained, re.MULTILINE)), "streams measured")
    analyzed_rows = {row.statistic: row for row in session.sql("ANALYZE STREAM one").collect()}
    print("disorder", analyzed_rows["disorder"].value, analyzed_rows["disorder"].unit)
    computed(session, root)
    called(session, root)
    records(session)
    shown(session)
    spark.stop()


def computed(session: wjoin.Session, root: Path) -> None:
    """Print how many rows a computed event time joins, and which statements are refused with which code."""
    create = "CREATE STREAM {} (k BIGINT, ts TIMESTAMP, at AS {}) USING parquet OPTIONS (path '{}')"
    for name, expression in (("three", "ts + INTERVAL 1 SECOND"), ("four", "ts - INTERVAL 1 SECOND")):
        watermark = "WATERMARK at DELAY OF '1 second'"
        session.sql(f"{create.format(name, expression, root / 'rows')} {watermark}")
    session.sql(f"CREATE SINK named USING parquet OPTIONS (path '{root / 'named'}')")
    join = "FROM STREAM three A, four B WINDOW (A, B) = '2 seconds' WHERE A.k = B.k"
    session.run_script(f"INSERT INTO named (`a key`) SELECT A.k {join}")
    print(session.read.parquet(str(root / "named")).select("a key").count(), "named")
    session.sql("CREATE SINK nowhere USING noop")
    grouped = f"INSERT INTO nowhere SELECT count(*) AS n {join} GROUP BY window(A.at, '1 second')"
    for text in (
        create.format("five", "nope(ts)", root / "rows"),
        create.format("five", "1 +", root / "rows"),
        grouped,
    ):
        refused(session, text)


def refused(session: wjoin.Session, text: str) -> None:
    """Print with which code a statement is refused, and where."""
    try:
        session.sql(text)
    except wjoin.WJoinError as error:
        print(error.code, error.span.of(text) if error.span else "nowhere")


@wjoin.predicate(cost_us=20_000, selectivity=0.1)
def same_half(left: Any, right: Any) -> Any:
    """Return which numbers are of one pair, and claim to take long for it."""
    return left // 2 == right // 2


def called(session: wjoin.Session, root: Path) -> None:
    """Print how many pairs a predicate finds in batch, on a stream, and by INSERT INTO on two workers."""
    both = "FROM {} A, {} B WINDOW = 5 SECONDS WHERE same_half(A.k, B.k)"
    join = f"SELECT A.k, same_half(B.k, A.k) AS again {both}"
    found = session.sql(join.format("rows", "rows")).where("again").count()
    rows = session.sql(join.format("one", "two"))
    writer = rows.writeStream.format("parquet").option("path", str(root / "called"))
    writer = writer.option("checkpointLocation", str(root / "called-checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    session.sql(f"CREATE SINK halves USING parquet OPTIONS (path '{root / 'halves'}')")
    insert = f"INSERT INTO halves {join.format('one', 'two')}"
    shared = "on 2 workers" in session.explain(f"EXPLAIN {insert}")
    session.run_script(insert)
    counts = [session.read.parquet(str(root / each)).where("again").count() for each in ("called", "halves")]
    print(found, *counts, "shared" if shared else "on one worker")


def records(session: wjoin.Session) -> None:
    """Print what is read of records, as those of Kafka are, in formats without options."""
    for name, value in (("JSON", '{"k": 7}'), ("CSV", "7")):
        create = f"CREATE STREAM records (k BIGINT) USING kafka FORMAT {name}"
        statement = parse_statement(create)
        assert isinstance(statement, CreateStream)
        raw = session.spark.sql(f"SELECT CAST('{value}' AS BINARY) AS value, 'topic' AS topic")
        print(name, read_records(raw, statement, {}, create).frame.select("k").collect()[0].k)


def shown(session: wjoin.Session) -> None:
    """Print what the live page tells of a query that a DataFrame was started as."""
    rows = session.sql(JOIN.format(hint="", left="one", right="two"))
    query = rows.writeStream.format("noop").queryName("shown").start()
    query.processAllAvailable()
    with session.serve_web(port=0) as web:
        for _ in range(100):
            told = {each["name"]: each["run"] for each in get(f"{web.url}api/queries")["queries"]}
            detail = get(f"{web.url}api/queries/{told['shown']}")
            if detail["numbers"]["micro_batches"]:
                break
            time.sleep(0.5)
    query.stop()
    print("shown", *detail["numbers"]["rows"].values(), len(detail["plans"]), "plan")


def get(url: str) -> Any:
    """Return what a page of the live page says."""
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


def run(session: wjoin.Session, folder: Path, hint: str) -> StreamingQuery:
    """Join the streams, write the result, and return the query that has ended."""
    rows = session.sql(JOIN.format(hint=hint, left="one", right="two"))
    writer = rows.writeStream.format("parquet").option("path", str(folder / "out"))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return query


if __name__ == "__main__":
    main(Path(sys.argv[1]))
