"""For spark-submit: run a script of W-join SQL until it is stopped, or with --once to its end."""

import argparse
from pathlib import Path

from pyspark.sql import SparkSession

import wjoin

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("script", type=Path)
parser.add_argument("shared", help="a folder that the driver and all workers reach under this path")
parser.add_argument("--once", action="store_true", help="process what the sources hold, then end")
given = parser.parse_args()

spark = wjoin.configure(SparkSession.builder.appName(given.script.stem)).getOrCreate()
session = wjoin.connect(spark)
queries = session.run_script(
    given.script.read_text("utf-8"),
    once=given.once,
    checkpoint=f"{given.shared}/checkpoints",
    shared=given.shared,
)
if not given.once:
    session.streams.awaitAnyTermination()
spark.stop()
