"""``wjoin calibrate``: what kernels, rows, micro-batches and joins of tables cost on this machine."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from wjoin.checkpoints.spark_log import PARTITIONS
from wjoin.commands.calibrate_tables import table_costs
from wjoin.executor.gathering import Pieces
from wjoin.executor.multiway import MultiwayJoin
from wjoin.executor.report import Report
from wjoin.executor.spark.beginning import begin
from wjoin.executor.step import StageLogic
from wjoin.homes.homes import FILES, SPARK
from wjoin.measured.reports import recent_reports
from wjoin.parts.kernels.kernel import Kernel
from wjoin.parts.kernels.merge_window import MergeWindow
from wjoin.parts.kernels.registry import KERNELS
from wjoin.parts.kernels.runs import Order
from wjoin.parts.routes.hash_route import HashRoute
from wjoin.parts.routes.route import Placement
from wjoin.planner.cost.constants import Constants
from wjoin.planner.plan.block_columns import code_name, column_name, time_name
from wjoin.planner.plan.checks import Band
from wjoin.planner.plan.edges import with_columns
from wjoin.planner.plan.physical import (
    KeyCode,
    Method,
    Output,
    PhysicalPlan,
    ScanColumn,
    StreamScan,
    TimeKind,
)
from wjoin.planner.plan.probes import arranged
from wjoin.planner.plan.stage_kinds import Bounds, Join, Scanned, StageEdge
from wjoin.planner.windows.bounds import Windows
from wjoin.spark.cluster import is_local, setting

if TYPE_CHECKING:
    from wjoin import Session

_HOMES = {SPARK: "Spark's store", FILES: "files"}
_TELLS_TUPLES = MergeWindow.name
_REPETITIONS = 5
_ROWS = 20_000
_WINDOW = 1_000_000
_SCHEMA = "k BIGINT, ts TIMESTAMP, payload STRING"
_SMALL, _LARGE = 10, 200_000
"""Rows of a micro-batch of each stream in the runs that tell the cost of a micro-batch and of a row."""

_BATCHES, _SKIPPED = 7, 3
_FEW, _MANY = 2, 16
"""Workers in the runs that tell what each further one costs a micro-batch."""

_STREAMS = 2
_WIDTH = 36
"""Bytes of a row in these runs."""


def calibrate(session: "Session", note: Callable[[str], None]) -> Constants:
    """Measure for some minutes; ``note`` is told what. The rest stays as in the package."""
    constants = Constants()
    # MW first: it tells the cost of a tuple, which is inside what a selective kernel takes for a pair.
    for kernel in sorted(KERNELS.values(), key=lambda each: each.name != _TELLS_TUPLES):
        note(f"kernel {kernel.name}")
        constants = constants.measured(kernel_costs(kernel, constants.tuple))
    for method, whose in ((Method.MULTIWAY, "wjoin's stages"), (Method.NATIVE, "Spark's own joins")):
        note(f"tables, by {whose}")
        constants = constants.measured(table_costs(session, method, constants))
    for home, prefix in ((SPARK, ""), (FILES, "files_")):
        if home == FILES and not is_local(session.spark):
            # Where executors do not share a folder, the costs of the package stay.
            continue
        session.sql(f"SET wjoin.state = {home}")
        note(f"micro-batches and rows of wjoin, its state in {_HOMES[home]}")
        found = _micro_batches(session, constants.in_files() if prefix else constants)
        note("workers of a join without a key")
        found |= _workers(session)
        constants = constants.measured({prefix + name: value for name, value in found.items()})
    return constants


def kernel_costs(kernel: Kernel, of_tuple: float) -> dict[str, float]:
    """Return the costs of a probe, a pair and (MW) a tuple, from runs with few and with many pairs.

    ``of_tuple`` is the cost of a tuple where that is known.
    """
    _, one = timed(kernel, probing=1, held=_ROWS, near=0, agree=False)
    # A kernel that compares all rows, near or not, is timed on fewer.
    many, held = (1, 1) if one else (50, _ROWS)
    idle = timed(kernel, probing=_ROWS, held=held, near=0, agree=False)
    found: dict[str, float] = {f"probe_{kernel.name}": idle[0] / _ROWS}
    busy = timed(kernel, probing=_ROWS // 20, held=_ROWS, near=many, agree=kernel.selective)
    probes = found[f"probe_{kernel.name}"] * _ROWS / 20
    pair = (busy[0] - probes) / max(1, busy[1])
    found[f"pair_{kernel.name}"] = max(1e-9, pair - (of_tuple if kernel.selective else 0))
    if kernel.name == _TELLS_TUPLES:
        agreeing = timed(kernel, probing=_ROWS // 20, held=_ROWS, near=many, agree=True)
        found["tuple"] = max(1e-9, (agreeing[0] - busy[0]) / max(1, agreeing[1]))
    return found


def timed(kernel: Kernel, *, probing: int, held: int, near: int, agree: bool) -> tuple[float, int]:
    """Return the median seconds of a probe, and its comparisons.

    ``near``: rows in the time range of every tuple; ``agree``: whether they have its key. For
    ORDERED: rows in its band, and whether they are in its time range.
    """
    plan = _plan(kernel)
    logic = StageLogic(plan, 0)
    probe = plan.stages[0].probes[0]
    shape, assembler = logic.shapes, logic.maker.assembler(probe)
    spacing = 2 * _WINDOW // near if near else 10
    stored = np.arange(held, dtype=np.int64) * spacing
    # Where none is near, the run ends before the tuples' time, as most runs do.
    apart = 0 if near else 10 * _WINDOW + int(stored[-1])
    probes = np.linspace(0, int(stored[-1]), probing).astype(np.int64) + apart
    key = np.zeros(probing, np.int64)
    if kernel.order is Order.VALUE:
        # Rows before and after the tuples' time, so that the range of times tells nothing.
        sides = np.where((np.arange(held) % 2 == 0) & (near > 0), 10, -10)
        far = sides * (0 if agree else _WINDOW)
        blocks = [_block(0, key, key, probes), _block(1, np.zeros(held, np.int64), far, stored)]
    else:
        keys = np.full(held, 0 if agree else 1, np.int64)
        blocks = [_block(0, key, probes, probes), _block(1, keys, stored, stored)]
    runs = [each.sort(block) for each, block in zip(shape, blocks, strict=True)]
    seconds, compared = [], 0
    for _ in range(_REPETITIONS):
        counted = Report()
        join = MultiwayJoin(plan, 0, counted, {kernel.name: kernel})
        start = time.process_time()
        for found in join.results(probe, [Pieces((runs[0],)), Pieces((runs[1],))]):
            assembler.block(found)
        seconds.append(time.process_time() - start)
        compared = counted["comparisons"]
    return statistics.median(seconds), compared


def _plan(kernel: Kernel) -> PhysicalPlan:
    code = KeyCode(("k",), ("bigint",), exact=True, verify=())
    value = ScanColumn("v", "bigint", None)
    scans = tuple(StreamScan(alias, "ts", 0, (), (value,), (code,), streaming=True) for alias in "ab")
    band = Band((0, 0), (1, 0), -_WINDOW, _WINDOW, 0.0, checked=True)
    bands = (band,) if kernel.order is Order.VALUE else ()
    inputs = tuple(
        StageEdge(Scanned(number), (number, 0), index=band if bands else None) for number in range(_STREAMS)
    )
    stage = Join(inputs, Bounds.EXACT, Placement(HashRoute.name), (kernel.name,), checks=bands)
    windows = Windows.of([[0, _WINDOW], [_WINDOW, 0]])
    columns = tuple((number, 0) for number in range(_STREAMS))
    plan = PhysicalPlan(scans, TimeKind.TIMESTAMP, windows, (), (stage,), (Output("", columns),))
    return arranged(with_columns(plan), [None])


def _block(stream: int, codes: np.ndarray, times: np.ndarray, values: np.ndarray) -> pa.RecordBatch:
    columns = {time_name(stream): times, code_name(stream, 0): codes, column_name(stream, 0): values}
    return pa.RecordBatch.from_pydict(columns)


def _micro_batches(session: "Session", known: Constants) -> dict[str, float]:
    """Return the costs of a micro-batch and a row, from runs of small and of large micro-batches.

    Those of Spark's own joins of streams stay as in the package: no search chooses these.
    """
    # The first run is practice: Java compiles what it runs often.
    _, small, large = (
        _median_batch(session, Method.MULTIWAY.name, rows) for rows in (_LARGE, _SMALL, _LARGE)
    )
    cores = session.spark.sparkContext.defaultParallelism
    row = max(1e-8, (large - small) * cores / (_LARGE * _STREAMS))
    # One run has one stage: how a micro-batch divides is that of the package, and the cost of a byte.
    share = known.batch / (known.batch + known.stage)
    rest = max(1e-8, row - _WIDTH * known.byte)
    return {"batch": small * share, "stage": small * (1 - share), "row": rest}


def _workers(session: "Session") -> dict[str, float]:
    """Return what each further worker adds to a micro-batch; nothing where that cannot be told."""
    with setting(session.spark, PARTITIONS, str(_MANY)):
        # The first run is practice, and later ones become faster: few stand between many and many.
        _, before, few, after = (
            _median_batch(session, f"PSP, {workers}", _SMALL, "a.k + b.k < 0")
            for workers in (_MANY, _MANY, _FEW, _MANY)
        )
    further = ((before + after) / 2 - few) / (_MANY - _FEW)
    return {"worker": further} if further > 0 else {}


def _median_batch(session: "Session", plan: str, rows: int, where: str = "a.k = b.k") -> float:
    """Return the seconds of the median micro-batch of a join that finds nothing, by a hint's plan."""
    with tempfile.TemporaryDirectory(prefix="wjoin-calibrate-") as folder:
        for number, name in enumerate(("wjoin_calibrate_a", "wjoin_calibrate_b")):
            source = Path(folder) / name
            source.mkdir()
            for batch, table in enumerate(_tables(rows, number)):
                pq.write_table(table, source / f"{batch:03}.parquet")
            files = session.spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1)
            session.stream(name, files.parquet(str(source)), "ts")
        joined = session.sql(
            f"SELECT /*+ PLAN({plan}) */ a.k FROM wjoin_calibrate_a a, wjoin_calibrate_b b "
            f"WINDOW = 1 SECOND WHERE {where}"
        )
        writer = joined.writeStream.format("noop").trigger(availableNow=True)
        query = begin(joined.sparkSession, writer.start, "the query that is measured")
        query.awaitTermination()
        found = [each for each in recent_reports(query) if each["numInputRows"]]
        seconds = [each["durationMs"]["triggerExecution"] / 1000 for each in found[_SKIPPED:]]
    return float(statistics.median(seconds))


def _tables(rows: int, stream: int) -> Iterator[pa.Table]:
    """Yield what each micro-batch reads: a second of event time, no key that the other stream has."""
    for batch in range(_BATCHES):
        times = batch * 1_000_000 + np.arange(rows) * 1_000_000 // rows
        yield pa.table(
            {
                "k": np.arange(rows, dtype=np.int64) * _STREAMS + stream,
                "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
                "payload": pa.array(["x" * 20] * rows),
            }
        )
