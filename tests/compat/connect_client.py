"""Runs a W-join in batch and as a stream, by two plans, through Spark Connect; prints the counts.

Then as INSERT INTO, and prints of how many streams EXPLAIN knows what that measured, and the disorder that
ANALYZE STREAM finds.
"""

import re
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import wjoin
from wjoin.progress import read

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
    query = run(session, root / "multiway", "")
    run(session, root / "native", "/*+ PLAN(NATIVE) */")
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
    spark.stop()


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
