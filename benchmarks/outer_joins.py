"""Outer, anti and ASOF joins of two streams, of which one row in ten has no partner, against inner ones.

    python benchmarks/outer_joins.py --rows 300000 --batches 8 [--tables 2000000] [--flink PYTHON]

By wjoin and by Spark's own joins of streams, whose state is in memory (HDFS-backed). Every way runs in a
process of its own, which practises first, reads the same files, and drops its results. Fails where the inner
joins differ in the number of results: by when others are decided, Spark and wjoin differ at the end.

``--tables``: also an ASOF join of two tables of so many rows each, by wjoin and by DuckDB, with the processor
time of all their processes. ``--flink``: also the LEFT join by Flink's interval join, with the Python of an
environment that has apache-flink. Both read the rows as CSV, once the first files and once all: the rate is
that of the rows between (peers.py). Both fail where the results differ.
"""

import argparse
import contextlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from peers import compare
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from run_system import common, forget
from streams import DISORDER, ROWS_PER_SECOND, SCHEMA, START
from systems import DELAY, plain_session
from tables import aligned
from ways import add_ways, in_a_process

import wjoin

KINDS = {"inner": "JOIN", "left": "LEFT JOIN", "anti": "LEFT ANTI JOIN", "asof": "LEFT ASOF JOIN"}
WAYS = ("wjoin inner", "spark inner", "wjoin left", "spark left", "wjoin anti", "wjoin asof")
"""Spark has no anti join of two streams in all its versions, and no ASOF join."""

TABLES = ("wjoin tables", "duckdb tables")
"""The ways of an ASOF join of tables."""

KEYS = 1000
"""Those of the tables."""

WINDOW = 10
"""Seconds within which a partner comes."""


def write(folder: Path, rows: int, batches: int) -> None:
    """Write the files of both streams: each row of b has the id of one of a, but for one in ten."""
    random = np.random.default_rng(48)
    payload = np.array([f"label-{number:03}" for number in range(1000)])
    for stream in "ab":
        (folder / stream).mkdir(parents=True)
        for batch in range(batches):
            numbers = batch * rows + np.arange(rows)
            times = START + numbers * (1_000_000 // ROWS_PER_SECOND) - random.integers(0, DISORDER, rows)
            ids = numbers if stream == "a" else np.where(numbers % 10 > 0, numbers, -numbers - 1)
            found = {
                "id": ids,
                "other": numbers % 7,
                "ts": pa.array(times).cast(pa.timestamp("us", tz="UTC")),
                "payload": payload[random.integers(0, 1000, rows)],
            }
            pq.write_table(pa.table(found), folder / stream / f"{batch:04}.parquet")


def write_csv(folder: Path) -> None:
    """Write the rows of the streams as CSV without a first line of names, their times in milliseconds.

    What is without a partner in b has the id of the next row here: a result that is lost changes the count.
    """
    for stream in "ab":
        (folder / "csv" / stream).mkdir(parents=True)
        for file in sorted((folder / "data" / stream).iterdir()):
            table = pq.read_table(file)
            times = table["ts"].cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
            rows = table.set_column(table.schema.get_field_index("ts"), "millis", times)
            rows = rows.set_column(0, "id", pc.abs(rows["id"]))
            target = folder / "csv" / stream / file.with_suffix(".csv").name
            pyarrow.csv.write_csv(rows, target, pyarrow.csv.WriteOptions(include_header=False))


def write_tables(folder: Path, rows: int) -> None:
    """Write the tables of an ASOF join, their rows in no order, all times of a table different."""
    random = np.random.default_rng(7)
    apart = 3_600_000_000 // rows
    for name in ("trades", "quotes"):
        (folder / name).mkdir(parents=True)
        every = START + random.permutation(rows) * apart + random.integers(0, apart, rows)
        for file, times in enumerate(np.array_split(every, 4)):
            found = {
                "sym": random.integers(0, KEYS, len(times)),
                "price": random.random(len(times)),
                "ts": pa.array(times).cast(pa.timestamp("us", tz="UTC")),
            }
            pq.write_table(pa.table(found), folder / name / f"{file}.parquet")


def main() -> None:
    """Measure all ways, or one of them in this process."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=300_000, help="of a micro-batch, both streams together")
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--practice", type=int, default=1, help="runs before those that count")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--memory", default="4g", help="of Spark's heap")
    parser.add_argument("--tables", type=int, default=0, help="rows of each table of an ASOF join; 0: none")
    parser.add_argument("--flink", metavar="PYTHON", help="the Python of an environment with apache-flink")
    parser.add_argument("--first", type=int, default=3, help="files of a stream in Flink's first run")
    add_ways(parser, (*WAYS, *TABLES))
    options = parser.parse_args()
    if options.way is not None:
        print(json.dumps((of_tables if options.way in TABLES else measured)(options)))
        return
    ways = [each for each in options.ways if each in WAYS]
    with tempfile.TemporaryDirectory(prefix="wjoin-outer-") as folder:
        write(Path(folder) / "data", options.rows // 2, options.batches)
        if ways:
            report(options, {way: in_a_process(way, Path(folder)) for way in ways})
        if options.flink:
            write_csv(Path(folder))
            pythons = {"wjoin": sys.executable, "flink": options.flink}
            more = options.rows * (options.batches - options.first)
            compare(pythons, Path(folder) / "csv", "left", options.first, more)
        if options.tables:
            write_tables(Path(folder) / "tables", options.tables)
            report_tables({way: in_a_process(way, Path(folder)) for way in TABLES if way in options.ways})


def report(options: argparse.Namespace, found: Mapping[str, Mapping[str, Any]]) -> None:
    """Print what the joins of streams have taken. Raises SystemExit where inner joins differ."""
    rows = options.rows * options.batches
    lines = [("way", "seconds", "rows/s", "of the inner join", "a micro-batch", "results", "state rows")]
    for way, each in found.items():
        inner = found.get(f"{way.split()[0]} inner", each)
        lines.append(
            (
                way,
                f"{each['seconds']:.2f}",
                f"{rows / each['seconds']:,.0f}",
                f"{inner['seconds'] / each['seconds']:.2f}",
                f"{each['batch_ms']:.0f} ms",
                f"{each['results']:,}",
                f"{each['state']:,}",
            )
        )
    print(aligned(lines))
    both = {each["results"] for way, each in found.items() if way.endswith("inner")}
    if len(both) > 1:
        raise SystemExit(f"the results of inner joins differ: {both}")


def report_tables(found: Mapping[str, Mapping[str, Any]]) -> None:
    """Print what the ASOF joins of tables have taken. Raises SystemExit where they differ."""
    lines = [("way", "seconds", "of the processor", "results", "sum of prices")]
    for way, each in found.items():
        lines.append(
            (
                way,
                f"{each['seconds']:.2f}",
                f"{each['processor']:.2f}",
                f"{each['results']:,}",
                f"{each['sum']:.3f}",
            )
        )
    print(aligned(lines))
    if len({(each["results"], round(each["sum"], 3)) for each in found.values()}) > 1:
        raise SystemExit("the results of ASOF joins of tables differ")


def of_tables(options: argparse.Namespace) -> dict[str, Any]:
    """Return what an ASOF join of two tables takes: medians after the practice, and what it gives."""
    scratch = options.folder / options.way.replace(" ", "_")
    scratch.mkdir()
    ways = {"wjoin": _tables_by_wjoin, "duckdb": _tables_by_duckdb}
    work, told = ways[options.way.split()[0]](options.folder / "tables", common(scratch, options.memory))
    runs = []
    for _ in range(options.practice + options.runs):
        before, began = processor_seconds(), time.perf_counter()
        work()
        runs.append((time.perf_counter() - began, processor_seconds() - before))
    seconds, processor = (statistics.median(each) for each in zip(*runs[options.practice :], strict=True))
    results, total = told()
    return {"seconds": seconds, "processor": processor, "results": results, "sum": total}


def processor_seconds() -> float:
    """Return the processor time of this process and of all below it so far, in seconds."""
    here = psutil.Process()
    spent = 0.0
    for each in (here, *here.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = each.cpu_times()
            spent += times.user + times.system
    return spent


def _tables_by_wjoin(
    folder: Path, settings: dict[str, str]
) -> tuple[Callable[[], object], Callable[[], tuple[int, float]]]:
    session = wjoin.connect(**settings)
    session.spark.sparkContext.setLogLevel("ERROR")
    for name in ("trades", "quotes"):
        session.spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    relations = [f"{name} WATERMARK ts DELAY OF INTERVAL 0 SECONDS" for name in ("trades", "quotes")]
    text = f"""SELECT T.sym, T.ts, T.price, Q.price AS bid FROM {relations[0]} AS T LEFT ASOF JOIN
               {relations[1]} AS Q MATCH_CONDITION (T.ts >= Q.ts) ON T.sym = Q.sym"""

    def told() -> tuple[int, float]:
        row = session.sql(text).agg(F.count("*"), F.sum("bid")).collect()[0]
        return row[0], row[1]

    return lambda: session.sql(text).write.format("noop").mode("overwrite").save(), told


def _tables_by_duckdb(
    folder: Path, settings: dict[str, str]
) -> tuple[Callable[[], object], Callable[[], tuple[int, float]]]:
    connection = duckdb.connect()
    relations = [f"'{folder / name}/*.parquet'" for name in ("trades", "quotes")]
    text = f"""SELECT T.sym, T.ts, T.price, Q.price AS bid FROM {relations[0]} T
               ASOF LEFT JOIN {relations[1]} Q ON T.sym = Q.sym AND T.ts >= Q.ts"""

    def work() -> object:
        return connection.sql(text).to_arrow_table()

    def told() -> tuple[int, float]:
        found = connection.execute(f"SELECT count(*), sum(bid) FROM ({text})").fetchone()
        return found if found is not None else (0, 0.0)

    return work, told


Work = Callable[[Path], tuple[Any, int]]
"""Works off the streams with a folder of its own; gives the query's reports, and the rows of its state."""


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Return what one way takes."""
    system, kind = options.way.split()
    scratch = options.folder / options.way.replace(" ", "_")
    scratch.mkdir()
    spark, work = (_wjoin if system == "wjoin" else _spark)(options, kind, common(scratch, options.memory))
    spark.sparkContext.setLogLevel("ERROR")
    runs = []
    for number in range(options.practice + options.runs):
        began = time.perf_counter()
        reports, state = work(scratch / str(number))
        seconds = time.perf_counter() - began
        later = [each for each in reports if each["batchId"] > 0 and each["numInputRows"]]
        runs.append(
            {
                "seconds": seconds,
                "batches": [each["durationMs"]["triggerExecution"] for each in later],
                "results": sum(max(0, each["sink"]["numOutputRows"]) for each in reports),
                "state": state,
            }
        )
    kept = runs[options.practice :]
    return {
        "seconds": statistics.median(each["seconds"] for each in kept),
        "batch_ms": statistics.median(ms for each in kept for ms in each["batches"]),
        **{name: kept[-1][name] for name in ("results", "state")},
    }


def _wjoin(options: argparse.Namespace, kind: str, settings: dict[str, str]) -> tuple[SparkSession, Work]:
    session = wjoin.connect(**settings)
    for name in "ab":
        session.sql(
            f"""CREATE STREAM {name} ({SCHEMA}) USING parquet
                OPTIONS (path '{options.folder / "data" / name}', maxFilesPerTrigger '1')
                WATERMARK ts DELAY OF INTERVAL {DISORDER // 1_000_000} SECONDS"""
        )
    session.sql("CREATE SINK out USING noop")
    columns = (
        "a.id, a.ts, a.payload" if kind == "anti" else "a.id, a.ts, a.payload, b.ts AS b_ts, b.payload AS b"
    )
    match = "MATCH_CONDITION (NEAREST)" if kind == "asof" else ""
    text = f"""INSERT INTO out SELECT {columns} FROM a {KINDS[kind]} b {match} ON a.id = b.id
               WINDOW (a, b) = {WINDOW} SECONDS"""

    def work(folder: Path) -> tuple[Any, int]:
        session.run_script(text, once=True, checkpoint=str(folder))
        running = session.running[-1]
        return list(running.query.recentProgress), running.totals.total.rows_of_state

    return session.spark, work


def _spark(options: argparse.Namespace, kind: str, settings: dict[str, str]) -> tuple[SparkSession, Work]:
    spark = plain_session(settings)

    def read(stream: str) -> DataFrame:
        files = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        rows = files.parquet(str(options.folder / "data" / stream))
        named = (F.col(name).alias(f"{stream}_{name}") for name in ("id", "ts", "payload"))
        return rows.select(*named).withWatermark(f"{stream}_ts", DELAY)

    def work(folder: Path) -> tuple[Any, int]:
        span = f"INTERVAL {WINDOW} SECONDS"
        condition = F.expr(f"a_id = b_id AND b_ts BETWEEN a_ts - {span} AND a_ts + {span}")
        rows = read("a").join(read("b"), condition, kind)
        writer = rows.writeStream.format("noop").option("checkpointLocation", str(folder))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        reports = [json.loads(each.json) for each in query.recentProgress]
        state = sum(each["numRowsTotal"] for each in reports[-1]["stateOperators"])
        forget(spark)
        return reports, state

    return spark, work


if __name__ == "__main__":
    main()
