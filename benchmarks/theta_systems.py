"""The same join without a key: by wjoin, by Spark's joins over buckets of time, by DuckDB and by Polars.

The joins on Spark are written once, and run over streams and over tables alike.
"""

import importlib.util
import multiprocessing
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DoubleType
from run_system import common, forget, work_off
from systems import DELAY, plain_session, wjoin_session
from theta_loads import ALIKE, ThetaLoad, called, predicates

import wjoin
from wjoin.executor.pair_calls import CALL_PAIRS

CORES = 2

Work = Callable[[Path, Path], dict[str, Any]]
"""Works off the files below a folder, with a folder for a checkpoint; returns what came of it."""


@dataclass(frozen=True)
class Started:
    """A system that is there: what works off the data, what ends it, and what frees memory in between."""

    work: Work
    stop: Callable[[], None]
    forget: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class System:
    """One way to join; ``needs`` is a package that is no part of the environment of the benchmarks."""

    title: str
    start: Callable[[ThetaLoad, Path, str], Started]
    needs: str | None = None

    @property
    def missing(self) -> bool:
        """Whether the package that it needs is not installed."""
        return self.needs is not None and importlib.util.find_spec(self.needs) is None


Query = Callable[[SparkSession, Mapping[str, DataFrame], ThetaLoad], DataFrame]


@dataclass(frozen=True)
class OnSpark:
    """A join on Spark: how its session starts, and its query over what is read."""

    session: Callable[[Mapping[str, str]], SparkSession]
    query: Query
    settings: Mapping[str, str] = field(default_factory=dict)

    def _start(self, load: ThetaLoad, scratch: Path, memory: str) -> SparkSession:
        spark = self.session({**common(scratch, memory), **self.settings})
        spark.sparkContext.setLogLevel("ERROR")
        return spark

    def on_streams(self, load: ThetaLoad, scratch: Path, memory: str) -> Started:
        """Join streams that read one file a micro-batch each, with a checkpoint."""
        spark = self._start(load, scratch, memory)

        def work(data: Path, folder: Path) -> dict[str, Any]:
            files = spark.readStream.schema(load.schema).option("maxFilesPerTrigger", 1)
            rows = {stream: files.parquet(str(data / stream)) for stream in load.names}
            return work_off(spark, self.query(spark, rows, load), "noop", folder)

        return Started(work, spark.stop, lambda: forget(spark))

    def on_tables(self, load: ThetaLoad, scratch: Path, memory: str) -> Started:
        """Join the files as tables."""
        spark = self._start(load, scratch, memory)

        def work(data: Path, folder: Path) -> dict[str, Any]:
            began = time.time()
            files = spark.read.schema(load.schema)
            rows = {stream: files.parquet(str(data / stream)) for stream in load.names}
            counted = Observation()
            joined = self.query(spark, rows, load).observe(counted, F.count(F.lit(1)).alias("rows"))
            joined.write.format("noop").mode("overwrite").save()
            return {"results": counted.get["rows"], "span": (began, time.time())}

        return Started(work, spark.stop)


def by_wjoin(
    spark: SparkSession, rows: Mapping[str, DataFrame], load: ThetaLoad, hint: str = ""
) -> DataFrame:
    """Return the join as one W-join statement."""
    name = called(load)
    if name is not None:
        _register(name)
    session = wjoin.connect(spark)
    for stream, each in rows.items():
        session.stream(stream, each, "ts", DELAY)
    columns = [f"{stream}.{name} AS {stream}_{name}" for stream in load.names for name in load.columns]
    return session.sql(
        f"SELECT {hint} {', '.join(columns)} FROM {', '.join(load.names)} "
        f"WINDOW = {load.window} SECONDS WHERE {load.joined.text}"
    )


def by_buckets(spark: SparkSession, rows: Mapping[str, DataFrame], load: ThetaLoad) -> DataFrame:
    """Return the join on buckets of time as long as the window.

    Rows of the first stream are in one bucket, those of the others also in the two beside theirs. A row of
    the first one meets every other row at most once, in its own bucket.
    """
    micros, seen = load.window * 1_000_000, load.names[0]
    first = _side(rows, load, "a").withColumn("a_bucket", _bucket("a", micros))
    joined = first
    for stream in load.names[1:]:
        copies = F.explode(F.array(*(_bucket(stream, micros) + step for step in (-1, 0, 1))))
        side = _side(rows, load, stream).withColumn(f"{stream}_bucket", copies)
        seen += stream
        span = f"INTERVAL {load.window} SECONDS"
        conditions = [
            f"a_bucket = {stream}_bucket",
            f"{stream}_ts BETWEEN a_ts - {span} AND a_ts + {span}",
            # An intermediate result may have one event time only; those of the others are numbers by then.
            *(f"abs(unix_micros({stream}_ts) - unix_micros({other}_ts)) <= {micros}" for other in seen[1:-1]),
        ]
        own = load.joined.within(seen)
        name = called(load)
        plain = own if name is None else []
        joined = joined.join(side, F.expr(" AND ".join([*conditions, *plain])))
        if name is not None:
            spark.udf.register(name, _pandas(name))
            joined = joined.where(" AND ".join(own))
        # As a plain time without a watermark.
        plainly = F.timestamp_micros(F.unix_micros(f"{stream}_ts")).alias(f"{stream}_ts")
        joined = joined.select(*(each for each in joined.columns if each != f"{stream}_ts"), plainly)
    return joined.select(*(f"{stream}_{name}" for stream in load.names for name in load.columns))


def by_duckdb(load: ThetaLoad, scratch: Path, memory: str) -> Started:
    """Join the files as tables in DuckDB, on as many threads as all others have cores."""
    database = duckdb.connect()
    database.execute(f"SET threads = {CORES}")
    name = called(load)
    if name is not None:
        result = "BOOLEAN" if name in _BOOLEAN else "DOUBLE"
        argument = "BIGINT" if name in _BOOLEAN else "DOUBLE[]"
        database.create_function(name, _of_arrow(name), [argument] * 2, result, type="arrow")
    micros = load.window * 1_000_000
    pairs = [(one, two) for two in load.names for one in load.names if one < two]
    near = [f"{one}_t BETWEEN {two}_t - {micros} AND {two}_t + {micros}" for one, two in pairs]
    conditions = near + [part for stop in range(2, load.streams + 1) for part in _parts(load, stop)]
    wanted = [f"{stream}_{name}" for stream in load.names for name in load.columns]

    def side(data: Path, stream: str) -> str:
        names = [*load.columns, *(["signal"] if load.joined.signals else [])]
        columns = [f"{each} AS {stream}_{each}" for each in names]
        files = data / stream / "*.parquet"
        return f"(SELECT epoch_us(ts) AS {stream}_t, {', '.join(columns)} FROM read_parquet('{files}'))"

    def work(data: Path, folder: Path) -> dict[str, Any]:
        began = time.time()
        sides = ", ".join(side(data, stream) for stream in load.names)
        found = database.sql(f"SELECT {', '.join(wanted)} FROM {sides} WHERE {' AND '.join(conditions)}")
        results = sum(batch.num_rows for batch in found.to_arrow_reader(100_000))
        return {"results": results, "span": (began, time.time())}

    return Started(work, database.close)


def by_polars(load: ThetaLoad, scratch: Path, memory: str, engine: str = "in-memory") -> Started:
    """Join the files as tables by ``join_where`` of Polars; a third one with the pairs of the first two."""
    import polars as pl

    micros = load.window * 1_000_000

    def side(data: Path, stream: str) -> "pl.LazyFrame":
        names = [*load.columns, *(["signal"] if load.joined.signals else [])]
        columns = (pl.col(name).alias(f"{stream}_{name}") for name in names)
        micros_of = pl.col("ts").dt.epoch("us").alias(f"{stream}_t")
        return pl.scan_parquet(str(data / stream / "*.parquet")).select(*columns, micros_of)

    def work(data: Path, folder: Path) -> dict[str, Any]:
        began = time.time()
        joined = side(data, "a")
        for stop in range(2, load.streams + 1):
            stream = load.names[stop - 1]
            near = [
                f"{other}_t {sign} {micros} {order} {stream}_t"
                for other in load.names[: stop - 1]
                for sign, order in (("-", "<="), ("+", ">="))
            ]
            conditions = [pl.sql_expr(part) for part in [*near, *_parts(load, stop)]]
            joined = joined.join_where(side(data, stream), *conditions)
        wanted = [f"{stream}_{name}" for stream in load.names for name in load.columns]
        results = joined.select(wanted).collect(engine=engine).height
        return {"results": results, "span": (began, time.time())}

    return Started(work, lambda: None)


def by_function(load: ThetaLoad, scratch: Path, memory: str, processes: int = 1) -> Started:
    """Call the predicate for all pairs of two tables inside the window, in some processes and without Spark.

    Each takes its share of the rows of the first one: what this machine's cores give where nothing is to be
    sent or kept. The C library keeps what is freed for what comes next, as in wjoin's workers.
    """
    os.environ |= {"MALLOC_TRIM_THRESHOLD_": str(1 << 26), "MALLOC_MMAP_THRESHOLD_": str(1 << 25)}
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"))

    def work(data: Path, folder: Path) -> dict[str, Any]:
        began = time.time()
        shares = [pool.submit(_called_bare, load, data, number, processes) for number in range(processes)]
        results = sum(share.result() for share in shares)
        return {"results": results, "span": (began, time.time())}

    return Started(work, pool.shutdown)


def _called_bare(load: ThetaLoad, data: Path, number: int, processes: int) -> int:
    """Return for how many pairs the predicate holds, of every so many-th row of the first table."""
    times, signals = zip(*(_times_and_signals(data / stream) for stream in load.names), strict=True)
    micros = load.window * 1_000_000
    first = np.searchsorted(times[1], times[0] - micros, side="left")
    last = np.searchsorted(times[1], times[0] + micros, side="right")
    mine = np.arange(number, len(first), processes)
    left = np.repeat(mine, (last - first)[mine])
    right = np.concatenate([np.arange(first[row], last[row]) for row in mine])
    function, found = predicates()[str(called(load))], 0
    for start in range(0, len(left), CALL_PAIRS):
        pairs = slice(start, start + CALL_PAIRS)
        found += int((function(signals[0][left[pairs]], signals[1][right[pairs]]) > ALIKE).sum())
    return found


def _times_and_signals(folder: Path) -> tuple[Any, Any]:
    """Return the event times (int64, microseconds) and the signals (a matrix) of a table, by time."""
    table = pa.concat_tables(map(pq.read_table, sorted(folder.glob("*.parquet")))).combine_chunks()
    times = table["ts"].cast(pa.int64()).to_numpy()
    signals = table["signal"].combine_chunks().flatten().to_numpy().reshape(len(times), -1)
    order = np.argsort(times, kind="stable")
    return times[order], signals[order]


def _parts(load: ThetaLoad, stop: int) -> list[str]:
    return load.joined.within("".join(load.names[:stop]))


def _side(rows: Mapping[str, DataFrame], load: ThetaLoad, stream: str) -> DataFrame:
    names = [*load.columns, *(["signal"] if load.joined.signals else [])]
    columns = (F.col(name).alias(f"{stream}_{name}") for name in names)
    return rows[stream].select(*columns).withWatermark(f"{stream}_ts", DELAY)


def _bucket(stream: str, micros: int) -> Column:
    return F.expr(f"unix_micros({stream}_ts) div {micros}")


_BOOLEAN = {"chosen": 0.02, "answered": 1000.0}
"""What predicates that answer yes or no take for a pair, in microseconds; all others give a number."""


def _register(name: str) -> None:
    function = predicates()[name]
    if name in _BOOLEAN:
        wjoin.predicate(name=name, cost_us=_BOOLEAN[name], selectivity=0.01)(function)
    else:
        cost = 1000 if name == "slow" else 25
        wjoin.predicate(name=name, returns="double", cost_us=cost, selectivity=0.001)(function)


def _pandas(name: str) -> Any:
    """Return a predicate as a function of Spark over pandas' series."""
    function = predicates()[name]

    def called_by_spark(left: pd.Series, right: pd.Series) -> pd.Series:
        if left.dtype == object:
            return pd.Series(function(np.stack(left), np.stack(right)))
        return pd.Series(function(left.to_numpy(), right.to_numpy()))

    # Without the names of types, which Spark would look for on its workers.
    called_by_spark.__annotations__ = {"left": pd.Series, "right": pd.Series, "return": pd.Series}
    return F.pandas_udf(called_by_spark, BooleanType() if name in _BOOLEAN else DoubleType())


def _of_arrow(name: str) -> Callable[[Any, Any], Any]:
    """Return a predicate as a function of DuckDB over Arrow's arrays."""
    function = predicates()[name]

    def plain(values: Any) -> Any:
        values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
            return values.flatten().to_numpy().reshape(len(values), -1)
        return values.to_numpy(zero_copy_only=False)

    return lambda left, right: pa.array(function(plain(left), plain(right)))


def _hinted(plan: str, **settings: str) -> OnSpark:
    return OnSpark(wjoin_session, partial(by_wjoin, hint=f"/*+ PLAN({plan}) */"), settings)


_ONE_CORE = {"spark.master": "local[1]"}
_WJOIN = OnSpark(wjoin_session, by_wjoin)
_BUCKETS = OnSpark(plain_session, by_buckets)
_JOINS = {
    "wjoin": ("wjoin", _WJOIN),
    "wjoin-psp": ("wjoin, PLAN(PSP)", _hinted("PSP")),
    "wjoin-atr": ("wjoin, PLAN(ATR)", _hinted("ATR")),
    "buckets": ("Spark, buckets of time", _BUCKETS),
    "wjoin-psp-1": ("wjoin, PLAN(PSP), one core", _hinted("PSP", **_ONE_CORE)),
    "wjoin-atr-1": ("wjoin, PLAN(ATR), one core", _hinted("ATR", **_ONE_CORE)),
}

ON_STREAMS = {name: System(title, join.on_streams) for name, (title, join) in _JOINS.items()}
ON_TABLES = {
    **{name: System(title, join.on_tables) for name, (title, join) in _JOINS.items()},
    "function": System("the function alone, two processes", partial(by_function, processes=CORES)),
    "function-1": System("the function alone, one process", by_function),
    "duckdb": System("DuckDB", by_duckdb),
    "polars": System("Polars, in memory", by_polars, "polars"),
    "polars-streaming": System("Polars, streaming", partial(by_polars, engine="streaming"), "polars"),
}
