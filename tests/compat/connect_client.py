"""Runs a W-join in batch and as a stream through Spark Connect; prints both counts."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

import wjoin
from wjoin.progress import read

JOIN = "SELECT A.k FROM {left} A, {right} B WINDOW (A, B) = 5 SECONDS WHERE A.k = B.k"


def main(root: Path) -> None:
    """Join 100 rows with themselves."""
    builder = wjoin.configure(SparkSession.builder.remote("local[2]"))
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    session = wjoin.connect(spark)
    rows = spark.sql("SELECT id AS k, timestamp_seconds(id) AS ts FROM range(100)")
    rows.coalesce(1).write.parquet(str(root / "rows"))
    rows.createOrReplaceTempView("rows")
    batch = session.sql(JOIN.format(left="rows", right="rows")).count()
    for name in ("one", "two"):
        session.stream(
            name, spark.readStream.schema(rows.schema).parquet(str(root / "rows")), delay="1 second"
        )
    streamed = session.sql(JOIN.format(left="one", right="two"))
    writer = streamed.writeStream.format("parquet").option("path", str(root / "out"))
    query = writer.option("checkpointLocation", str(root / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    print(batch, spark.read.parquet(str(root / "out")).count(), read(query.recentProgress[0]).rows_in)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
