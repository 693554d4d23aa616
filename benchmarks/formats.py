"""What Spark takes to read a row, by format and options, and what the way to Python takes."""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import wjoin
from wjoin.executor.spark.task import named

TIMES = "obj_id BIGINT, ts TIMESTAMP, row_id BIGINT, payload STRING"
INTEGERS = TIMES.replace("TIMESTAMP", "BIGINT")
TEXTS = TIMES.replace("TIMESTAMP", "STRING")
SPARKS_OWN = {"locale": "en-US"}
"""An option that changes no line, but with which Spark reads all of them."""

ROUNDS = 6
"""Of each way; the fastest counts. The first ones are of a Java that has compiled little."""


def write(root: Path, rows: int) -> None:
    """Write the same rows as Parquet, as CSV with ISO 8601 and with epoch milliseconds, and as JSON.

    The lines of JSON are also values in Parquet, as the records of Kafka are values.
    """
    chance = np.random.default_rng(1)
    micros = np.sort(chance.integers(0, 20_000_000, rows)) + 1_700_000_000_000_000
    times = pa.array(micros).cast(pa.timestamp("us"))
    texts = [f"payload-{number % 977:04}-{'x' * 12}" for number in range(rows)]
    table = pa.table(
        {"obj_id": chance.integers(0, rows, rows), "ts": times, "row_id": np.arange(rows), "payload": texts}
    )
    iso = table.set_column(1, "ts", times.cast(pa.string()))
    for name in ("parquet", "iso", "millis", "json", "records"):
        (root / name).mkdir()
    pyarrow.parquet.write_table(table, root / "parquet" / "a.parquet")
    pyarrow.csv.write_csv(iso, root / "iso" / "a.csv")
    pyarrow.csv.write_csv(table.set_column(1, "ts", pa.array(micros // 1_000)), root / "millis" / "a.csv")
    iso.to_pandas().to_json(root / "json" / "a.json", orient="records", lines=True)
    values = pa.array((root / "json" / "a.json").read_bytes().splitlines())
    pyarrow.parquet.write_table(pa.table({"value": values}), root / "records" / "a.parquet")


def ways(root: Path, spark: SparkSession, given: dict[str, str]) -> dict[str, DataFrame]:
    """Return what is measured; ``given`` are options of all."""
    iso, millis, written = (str(root / name) for name in ("iso", "millis", "json"))
    read = spark.read.options(**given)
    csv, plain = spark.read.options(header="true", **given), spark.read
    optional = "yyyy-MM-dd HH:mm:ss[.SSSSSS]"
    values = plain.parquet(str(root / "records"))
    record = F.from_json(values.value.cast("string"), TIMES, given or None)
    return {
        "Parquet": plain.parquet(str(root / "parquet")),
        "lines of text": plain.text(iso),
        "CSV, ISO 8601 as TIMESTAMP": csv.schema(TIMES).csv(iso),
        "CSV, ISO 8601 as STRING": csv.schema(TEXTS).csv(iso),
        "CSV, epoch milliseconds as BIGINT": csv.schema(INTEGERS).csv(millis),
        "CSV, two of the four columns": csv.schema(INTEGERS).csv(millis).select("obj_id", "ts"),
        "JSON, ISO 8601 as TIMESTAMP": read.schema(TIMES).json(written),
        "JSON, two of the four columns": read.schema(TIMES).json(written).select("obj_id", "ts"),
        "values in Parquet": values,
        "values in Parquet, from_json": values.select(record.alias("record")).select("record.*"),
        "CSV, epoch milliseconds, FAILFAST": csv.schema(INTEGERS).option("mode", "FAILFAST").csv(millis),
        "CSV with timestampFormat": csv.schema(TIMES).option("timestampFormat", optional).csv(iso),
    }


def drained(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Take what comes, and give nothing."""
    for _ in batches:
        pass
    yield from ()


def to_python(frame: DataFrame) -> DataFrame:
    """Return rows as a join gets them: as columns of Arrow, in Python."""
    return frame.mapInArrow(named(drained, "wjoin_formats_rows0"), frame.schema)


def arrow_ways(root: Path) -> dict[str, Callable[[], object]]:
    """Return what Arrow is measured at, on one thread."""
    csv = pyarrow.csv.ReadOptions(use_threads=False)
    return {
        "Arrow, CSV, ISO 8601": lambda: pyarrow.csv.read_csv(root / "iso" / "a.csv", read_options=csv),
        "Arrow, JSON": lambda: pyarrow.json.read_json(
            root / "json" / "a.json", read_options=pyarrow.json.ReadOptions(use_threads=False)
        ),
    }


def least(works: Sequence[Callable[[], object]], clock: Callable[[], float]) -> list[float]:
    """Return the least that the clock has gone on during each work, of several rounds of all."""
    took: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for each, work in zip(took, works, strict=True):
            before = clock()
            work()
            each.append(clock() - before)
    return list(map(min, took))


def main() -> None:
    """Print the processor time of a row, in nanoseconds, by way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", default="", help="what the names of the ways begin with")
    given = parser.parse_args()
    rows: int = given.rows
    with tempfile.TemporaryDirectory(prefix="wjoin-formats-") as folder:
        root = Path(folder)
        write(root, rows)
        settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
        spark = wjoin.connect(**{"spark.master": "local[1]", **settings}).spark
        java = next(each for each in psutil.Process().children() if "java" in each.name())

        def busy() -> float:
            times = java.cpu_times()
            return times.user + times.system

        print(f"{'ns a row':36} {'read':>6} {'and to Python':>14} {'by wjoin':>9}  load")
        slow = ways(root, spark, SPARKS_OWN)
        for name, frame in ways(root, spark, {}).items():
            if name.startswith(given.only):
                frames = (frame, to_python(slow[name]), to_python(frame))
                works = [each.write.format("noop").mode("overwrite").save for each in frames]
                read, by_spark, by_wjoin = (1e9 * each / rows for each in least(works, busy))
                load = os.getloadavg()[0]
                print(f"{name:36} {read:6.0f} {by_spark:14.0f} {by_wjoin:9.0f}  {load:.1f}", flush=True)
        spark.stop()
        for name, work in arrow_ways(root).items():
            if name.startswith(given.only):
                print(f"{name:36} {1e9 * least([work], time.process_time)[0] / rows:6.0f}", flush=True)


if __name__ == "__main__":
    main()
