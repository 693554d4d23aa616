"""What Spark takes to read a row, by format and options; what wjoin takes, and Arrow, for the same file."""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
from pyspark.sql import DataFrame, DataFrameReader

import wjoin
from wjoin.executor.spark.task import named

TIMES = "obj_id BIGINT, ts TIMESTAMP, row_id BIGINT, payload STRING"
INTEGERS = TIMES.replace("TIMESTAMP", "BIGINT")
TEXTS = TIMES.replace("TIMESTAMP", "STRING")
ROUNDS = 6
"""Of each way; the fastest counts. The first ones are of a Java that has compiled little."""


def write(root: Path, rows: int) -> None:
    """Write the same rows as Parquet, as CSV with ISO 8601 and with epoch milliseconds, and as JSON."""
    chance = np.random.default_rng(1)
    micros = np.sort(chance.integers(0, 20_000_000, rows)) + 1_700_000_000_000_000
    times = pa.array(micros).cast(pa.timestamp("us"))
    texts = [f"payload-{number % 977:04}-{'x' * 12}" for number in range(rows)]
    table = pa.table(
        {"obj_id": chance.integers(0, rows, rows), "ts": times, "row_id": np.arange(rows), "payload": texts}
    )
    iso = table.set_column(1, "ts", times.cast(pa.string()))
    for name in ("parquet", "iso", "millis", "json"):
        (root / name).mkdir()
    pyarrow.parquet.write_table(table, root / "parquet" / "a.parquet")
    pyarrow.csv.write_csv(iso, root / "iso" / "a.csv")
    pyarrow.csv.write_csv(table.set_column(1, "ts", pa.array(micros // 1_000)), root / "millis" / "a.csv")
    iso.to_pandas().to_json(root / "json" / "a.json", orient="records", lines=True)


def ways(root: Path, read: Callable[[], DataFrameReader]) -> dict[str, DataFrame]:
    """Return what is measured; ``read`` gives a reader with no options."""
    iso, millis, written = (str(root / name) for name in ("iso", "millis", "json"))
    csv = read().option("header", "true")
    optional = "yyyy-MM-dd HH:mm:ss[.SSSSSS]"
    return {
        "Parquet": read().parquet(str(root / "parquet")),
        "lines of text": read().text(iso),
        "CSV, ISO 8601 as TIMESTAMP": csv.schema(TIMES).csv(iso),
        "CSV, ISO 8601 as STRING": csv.schema(TEXTS).csv(iso),
        "CSV, epoch milliseconds as BIGINT": csv.schema(INTEGERS).csv(millis),
        "CSV, two of the four columns": csv.schema(INTEGERS).csv(millis).select("obj_id", "ts"),
        "JSON, ISO 8601 as TIMESTAMP": read().schema(TIMES).json(written),
        "JSON, two of the four columns": read().schema(TIMES).json(written).select("obj_id", "ts"),
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


def least(work: Callable[[], object], clock: Callable[[], float]) -> float:
    """Return the least that the clock has gone on during some work, of several rounds."""
    took = []
    for _ in range(ROUNDS):
        before = clock()
        work()
        took.append(clock() - before)
    return min(took)


def main() -> None:
    """Print the processor time of a row, in nanoseconds, by way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows: int = parser.parse_args().rows
    with tempfile.TemporaryDirectory(prefix="wjoin-formats-") as folder:
        root = Path(folder)
        write(root, rows)
        settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
        spark = wjoin.connect(**{"spark.master": "local[1]", **settings}).spark
        java = next(each for each in psutil.Process().children() if "java" in each.name())

        def busy() -> float:
            times = java.cpu_times()
            return times.user + times.system

        def show(name: str, seconds: float) -> None:
            print(f"{name:40} {1e9 * seconds / rows:6.0f} ns a row", flush=True)

        for name, frame in ways(root, lambda: spark.read).items():
            for way, rows in ((name, frame), ("… and to wjoin's Python", to_python(frame))):
                show(way, least(rows.write.format("noop").mode("overwrite").save, busy))
        spark.stop()
        for name, work in arrow_ways(root).items():
            show(name, least(work, time.process_time))


if __name__ == "__main__":
    main()
