"""A query of NEXMark by Spark's own joins: by_spark.py FOLDER QUERY [--results FOLDER] [--live SECONDS]."""

import json
import time

from engines import Asked, asked, report, spark_settings
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from queries import COLUMNS, DELAY


def _read(spark: SparkSession, stream: str, given: Asked) -> DataFrame:
    files = spark.readStream.schema(COLUMNS[stream])
    rows = (files if given.live else files.option("maxFilesPerTrigger", given.together)).csv(
        str(given.folder / stream)
    )
    if stream == "auction":
        rows = rows.withColumn("expires", F.expr("timestamp_millis(ends)"))
    return rows.withColumn("ts", F.expr("timestamp_millis(millis)")).withWatermark("ts", f"{DELAY} seconds")


def main(given: Asked) -> None:
    """Run a query over the files that there are, or over those that come."""
    builder = SparkSession.builder
    for name, value in spark_settings(given.scratch).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for stream in COLUMNS:
        _read(spark, stream, given).createOrReplaceTempView(stream)
    writer = spark.sql(given.query.spark).writeStream.option(
        "checkpointLocation", str(given.scratch / "checkpoint")
    )
    if given.results is None:
        writer = writer.format("noop")
    else:
        writer = writer.format("parquet").option("path", str(given.results))
    began = time.monotonic()
    if given.live:
        query = writer.start()
        query.awaitTermination(given.live)
        query.stop()
        report(began)
        return
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    reports = [json.loads(each.json) for each in query.recentProgress]
    operators = reports[-1]["stateOperators"]
    results = sum(max(0, each["sink"]["numOutputRows"]) for each in reports)
    report(began, state=sum(each["memoryUsedBytes"] for each in operators), results=results)
    if given.results is not None and given.query.after:
        spark.read.parquet(str(given.results)).createOrReplaceTempView("joined")
        spark.sql(given.query.after).write.parquet(f"{given.results}-after")


if __name__ == "__main__":
    main(asked())
