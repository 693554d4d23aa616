"""Ten statements over the same three streams: as one set, each by itself, as Spark's own joins, one alone.

    python benchmarks/statement_sets.py --rows 300000 --batches 8

``spark`` is a chain of Spark's stream-stream joins for each statement, all in one application. Every way
runs in a process of its own, which practises first. A run begins when its queries are started and ends when
all have worked off the same files; the micro-batches of a way are those that its progress tells. State and
shuffle are those of the last run.
"""

import argparse
import dataclasses
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from run_system import common, forget
from streams import DISORDER, Load, write_streams
from systems import plain_session, spark_chain
from tables import aligned
from ways import add_ways, in_a_process

import wjoin
from wjoin.grammar.parser import parse_script
from wjoin.queries.running import Running
from wjoin.statements.inserts import insert
from wjoin.statements.statement_sets import execute_set

KEYS = ("id", "other")

WAYS = ("one", "set of one", "set", "apart", "spark")


def statements(load: Load, count: int, least: int, keys: int) -> list[str]:
    """Return statements with windows, conditions and columns of their own: the first has the most.

    ``least``: the narrowest window in seconds. ``keys``: how many columns they join by, in turn.
    """
    found = []
    for number in range(count):
        window = 1000 * _window(load, number, count, least)
        condition = "" if number % 2 == 0 else f" AND a.payload < '{_label(number)}'"
        columns = (
            "a.id, a.ts, a.payload, b.payload AS b, c.payload AS c",
            "b.id, b.payload AS b, MATCH_TIME() AS at",
            "a.payload || c.payload AS both",
        )
        key = KEYS[number % keys]
        found.append(
            f"INSERT INTO out{number} SELECT {columns[number % 3]} FROM a, b, c "
            f"WINDOW = {window} MILLISECONDS WHERE a.{key} = b.{key} AND b.{key} = c.{key}{condition}"
        )
    return found


def chains(spark: SparkSession, data: Path, load: Load, count: int, least: int) -> Iterator[DataFrame]:
    """Yield the same as chains of Spark's joins."""
    for number in range(count):
        own = dataclasses.replace(load, window=_window(load, number, count, least))
        rows = spark_chain(spark, data, own)
        yield rows if number % 2 == 0 else rows.where(f"a_payload < '{_label(number)}'")


def _window(load: Load, number: int, count: int, least: int) -> int:
    """Return the window of a statement in seconds."""
    return load.window - (load.window - least) * number // max(1, count - 1)


def _label(number: int) -> str:
    return f"a-label-{1000 - 50 * number:03}"


def main() -> None:
    """Measure the ways that are asked for, or one of them in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=300_000, help="of a micro-batch, all streams together")
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--window", type=int, default=10, help="seconds of the widest one")
    parser.add_argument("--least", type=int, default=1, help="seconds of the narrowest one")
    parser.add_argument("--statements", type=int, default=10)
    parser.add_argument("--keys", type=int, choices=(1, 2), default=1, help="by which they join, in turn")
    parser.add_argument("--practice", type=int, default=3, help="runs before those that count")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--memory", default="2g", help="of Spark's heap")
    add_ways(parser, WAYS)
    options = parser.parse_args()
    if options.keys > 1 and "spark" in options.ways:
        parser.error("the chains of Spark's joins have one key")
    load = Load(options.window, options.rows, options.batches)
    if options.way is not None:
        print(json.dumps(_measured(options, load)))
        return
    with tempfile.TemporaryDirectory(prefix="wjoin-sets-") as folder:
        write_streams(load, Path(folder) / "data")
        found = {way: in_a_process(way, Path(folder)) for way in options.ways}
    rows = options.rows * options.batches
    base = found.get("one", next(iter(found.values())))
    lines = [
        ("way", "seconds", "rows/s", "of one", "a micro-batch", "state rows", "shuffled bytes", "memory MB")
    ]
    for way, each in found.items():
        lines.append(
            (
                way,
                f"{each['seconds']:.2f}",
                f"{rows / each['seconds']:,.0f}",
                f"{base['seconds'] / each['seconds']:.2f}",
                f"{each['batch_ms']:.0f} ms",
                f"{each['state']:,}",
                f"{each['shuffled']:,}",
                f"{each['memory'] / 1e6:,.0f}",
            )
        )
    print(aligned(lines))


def _measured(options: argparse.Namespace, load: Load) -> dict[str, Any]:
    scratch = options.folder / options.way.replace(" ", "_")
    scratch.mkdir()
    settings = common(scratch, options.memory)
    start = _spark if options.way == "spark" else _wjoin
    spark, work = start(options, load, settings)
    spark.sparkContext.setLogLevel("ERROR")
    runs = []
    for number in range(options.practice + options.runs):
        shuffled, began = _shuffled(spark), time.perf_counter()
        queries, state = work(scratch / str(number))
        seconds = time.perf_counter() - began
        reports = [each for query in queries for each in query.recentProgress if each["numInputRows"]]
        # The first micro-batch of a query starts what the later ones have.
        later = [each for each in reports if each["batchId"] > 0]
        runs.append(
            {
                "seconds": seconds,
                # The first micro-batch of a query starts what the later ones have.
                "batches": [each["durationMs"]["triggerExecution"] for each in later],
                "state": state,
                "shuffled": _shuffled(spark) - shuffled,
            }
        )
    measured = runs[options.practice :]
    return {
        "seconds": statistics.median(each["seconds"] for each in measured),
        "batch_ms": statistics.median(ms for each in measured for ms in each["batches"]),
        **{name: measured[-1][name] for name in ("state", "shuffled")},
    }


Work = Callable[[Path], tuple[list[StreamingQuery], int]]
"""Works off the streams in a folder of its own; gives the queries, and the rows of state at their end."""


def _wjoin(options: argparse.Namespace, load: Load, settings: dict[str, str]) -> tuple[SparkSession, Work]:
    session = wjoin.connect(**settings)
    for name in load.names:
        session.sql(
            f"""CREATE STREAM {name} (id BIGINT, other BIGINT, ts TIMESTAMP, payload STRING) USING parquet
                OPTIONS (path '{options.folder / "data" / name}', maxFilesPerTrigger '1')
                WATERMARK ts DELAY OF INTERVAL {DISORDER // 1_000_000} SECONDS"""
        )
    count = 1 if options.way in ("one", "set of one") else options.statements
    text = "; ".join(statements(load, count, options.least, options.keys))
    if options.way.startswith("set"):
        text = f"EXECUTE STATEMENT SET BEGIN {text}; END"

    def work(folder: Path) -> tuple[list[StreamingQuery], int]:
        for number in range(count):
            path = f"{folder}/out{number}"
            session.sql(f"CREATE OR REPLACE SINK out{number} USING parquet OPTIONS (path '{path}')")
        running = list(_started(session, text, folder / "checkpoints"))
        for each in running:
            each.wait()
        state = sum(query.totals.total.rows_of_state for query in running)
        return [each.query for each in running], state

    return session.spark, work


def _spark(options: argparse.Namespace, load: Load, settings: dict[str, str]) -> tuple[SparkSession, Work]:
    spark = plain_session(settings)

    def work(folder: Path) -> tuple[list[StreamingQuery], int]:
        queries = []
        data = options.folder / "data"
        for number, rows in enumerate(chains(spark, data, load, options.statements, options.least)):
            writer = rows.writeStream.format("parquet").trigger(availableNow=True)
            writer = writer.option("checkpointLocation", f"{folder}/checkpoints/{number}")
            queries.append(writer.start(f"{folder}/out{number}"))
        for each in queries:
            each.awaitTermination()
        last = [query.lastProgress for query in queries]
        state = sum(each["numRowsTotal"] for report in last if report for each in report["stateOperators"])
        forget(spark)
        return queries, state

    return spark, work


def _started(session: wjoin.Session, text: str, checkpoints: Path) -> Iterator[Running]:
    session.context.queries.begin_script()
    asked = session.context.asked(text, {})
    for statement in parse_script(text):
        start: Any = execute_set if text.startswith("EXECUTE") else insert
        started = start(asked, statement, once=True, checkpoint=str(checkpoints))
        if started is not None:
            yield started


def _shuffled(session: SparkSession) -> int:
    """Return the bytes that all stages of this Spark have written for a shuffle so far."""
    spark: Any = session
    store = spark._jsc.sc().statusStore()
    executors = store.executorList(False)
    return sum(executors.apply(place).totalShuffleWrite() for place in range(executors.size()))


if __name__ == "__main__":
    main()
