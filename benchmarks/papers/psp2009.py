"""Figure 8 of PSP 2009 with wjoin's routes: response time and state by the number of workers.

Streams of pictures that are compared pixel by pixel, inside a window of ten seconds; which pairs match is
drawn, so that the share is as in the paper. In process, without Spark: the workers run one after the other,
each on one core. What is told is the critical path of a micro-batch: the slowest worker of each stage,
stage after stage. What travels is not timed. The run fails where routes differ in their results.
"""

import argparse
import dataclasses
import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from report import Curve, Panel, Table, draw, fill_in, number

from wjoin.executor.local import LocalWorkers
from wjoin.executor.step import Counts
from wjoin.grammar.parser import parse_script
from wjoin.grammar.syntax import Query
from wjoin.planner.catalog import Column, Delay, Relation
from wjoin.planner.layout import stored_column, time_name
from wjoin.planner.physical import PhysicalPlan
from wjoin.planner.plan import plan_select
from wjoin.udfs.predicate import Predicate

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "papers" / "psp2009.md"

SECOND = 1_000_000
WINDOW = 10 * SECOND
STEP = SECOND // 2
RATE = 10
FILLING, MEASURED = 24, 12
"""Micro-batches that fill the windows, and those that are measured."""

PICTURES = 64
"""Different pictures, all of the same size: what is compared takes the same time for each."""

WORKERS = (1, 2, 4, 8, 12, 16, 19)
_COLUMNS = {"id": "bigint", "image": "binary"}


@dataclass(frozen=True)
class Setting:
    """A join, and how it runs: slices of so many microseconds where that is not the plan's own."""

    streams: int = 3
    selectivity: float = 0.1
    pixels: int = 5_000
    route: str = "PSP"
    workers: int = 1
    slice: int | None = None


@dataclass(frozen=True)
class Found:
    """What a run gave: milliseconds of the critical path and of all workers together, rows kept, results."""

    path: float
    work: float
    kept: int
    results: int


class Alike:
    """Compares two pictures, and then says what was drawn for the pair."""

    def __init__(self, selectivity: float) -> None:
        self._selectivity = selectivity

    def __call__(self, left: Any, right: Any, first: Any, second: Any) -> Any:
        for one, other in zip(left, right, strict=True):
            _difference(one, other)
        mixed = (first.astype(np.uint64) * np.uint64(2654435761)) ^ (
            second.astype(np.uint64) * np.uint64(40503)
        )
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(40)
        return mixed < self._selectivity * (1 << 24)


def _difference(left: Any, right: Any) -> int:
    return int((np.maximum(left, right) - np.minimum(left, right)).sum(dtype=np.int64))


class _Types:
    """The typing rules of these relations."""

    def of(self, stream: int, expression: str) -> str:
        return _COLUMNS[expression]

    def common(self, first: str, second: str) -> str | None:
        return first if first == second else None

    def fails_on_overflow(self) -> bool:
        return True


def planned(setting: Setting, predicate: Predicate) -> PhysicalPlan:
    """Return the plan of a chain of streams, each alike the next."""
    names = "ABCDEFGHI"[: setting.streams]
    pairs = itertools.pairwise(names)
    where = " AND ".join(f"alike({a}.image, {b}.image, {a}.id, {b}.id)" for a, b in pairs)
    columns = ", ".join(f"{name}.id AS {name.lower()}" for name in names)
    hint = f"/*+ PLAN({setting.route}, {setting.workers}), ALGORITHM(MW), BOUNDS(EXACT) */"
    source = ", ".join(f"s {name}" for name in names)
    sql = f"SELECT {hint} {columns} FROM {source} WINDOW = {WINDOW} MICROSECONDS WHERE {where}"
    statement = parse_script(sql).statements[0]
    assert isinstance(statement, Query)
    every = (Column("ts", "timestamp"), *(Column(name, kind) for name, kind in _COLUMNS.items()))
    relations = [Relation(every, "ts", {"ts": Delay(0)}, True)] * setting.streams
    block = statement.blocks[0]
    known = {predicate.name: predicate}
    plan = plan_select(sql, block, relations, _Types(), {}, "joined", {}, predicates=known).physical
    if setting.slice is None:
        return plan
    stages = tuple(dataclasses.replace(stage, slice=setting.slice) for stage in plan.stages)
    return dataclasses.replace(plan, stages=stages)


def measured(setting: Setting) -> Found:
    """Run a setting."""
    predicate = Predicate("alike", Alike(setting.selectivity))
    plan = planned(setting, predicate)
    local = LocalWorkers(plan, setting.workers, predicates={"alike": predicate})
    random = np.random.default_rng(7)
    drawn = np.random.default_rng(8).integers(0, 256, (PICTURES, 3 * setting.pixels), np.uint8)
    pictures = [each.tobytes() for each in drawn]
    path = work = 0.0
    results = 0
    number_of = [0] * setting.streams
    for step in range(FILLING + MEASURED):
        blocks = {}
        for stream in range(setting.streams):
            count = int(random.poisson(RATE * STEP / SECOND))
            blocks[stream] = _rows(plan, stream, step, count, number_of[stream], pictures, random)
            number_of[stream] += count
        made = local.run(blocks, Counts())
        if step >= FILLING:
            path += sum(max(each) for each in local.seconds)
            work += sum(map(sum, local.seconds))
            results += sum(each.num_rows for each in made)
    return Found(path / MEASURED * 1e3, work / MEASURED * 1e3, local.state_rows, results)


def _rows(
    plan: PhysicalPlan, stream: int, step: int, count: int, first: int, pictures: Sequence[bytes], random: Any
) -> pa.RecordBatch:
    times = np.sort(random.integers(step * STEP, (step + 1) * STEP, count))
    ids = np.arange(first, first + count) * 16 + stream
    images = [pictures[each % len(pictures)] for each in range(first, first + count)]
    columns = {time_name(stream): pa.array(times, pa.int64())}
    given = {"id": pa.array(ids, pa.int64()), "image": pa.array(images, pa.binary())}
    for number_, each in enumerate(plan.streams[stream].columns):
        name = each.expression.rpartition(".")[2]
        columns[stored_column(plan, stream, number_).name] = given[name]
    return pa.RecordBatch.from_pydict(columns)


class DifferentResultsError(Exception):
    """Two runs of one join differ in their results."""


def by_workers(
    name: str, title: str, kinds: dict[str, Setting], workers: Sequence[int]
) -> tuple[Table, Panel]:
    """Return a table and a plot of some kinds of runs for each number of workers."""
    head = ["", *(f"{n}" for n in workers)]
    lines: list[list[str]] = []
    curves = []
    results: dict[tuple[int, float], int] = {}
    for kind, setting in kinds.items():
        runs = [measured(dataclasses.replace(setting, workers=n)) for n in workers]
        wanted = results.setdefault((setting.streams, setting.selectivity), runs[0].results)
        if any(each.results != wanted for each in runs):
            raise DifferentResultsError(f"{kind}: {[each.results for each in runs]}, not {wanted}")
        lines.append([f"{kind}: critical path, ms", *(number(each.path) for each in runs)])
        lines.append([f"{kind}: all workers, ms", *(number(each.work) for each in runs)])
        lines.append([f"{kind}: rows kept", *(f"{each.kept:,}" for each in runs)])
        curves.append(Curve(kind, np.array(workers, float), np.array([each.path for each in runs])))
        print(f"  {kind}", file=sys.stderr, flush=True)
    return Table(name, title, head, lines), Panel(title, "workers", curves, values="critical path, ms")


FIGURES = {
    "fig8a": (
        "Figure 8(a), (b): PSP, by selectivity",
        {f"{share}": Setting(selectivity=share) for share in (0.05, 0.1, 0.5)},
    ),
    "fig8a-cost": (
        "Figure 8(a): PSP, by the cost of the predicate",
        {f"{pixels // 1000}k pixels": Setting(pixels=pixels) for pixels in (5_000, 10_000, 20_000)},
    ),
    "fig8a-streams": (
        "Figure 8(a): PSP, by the number of streams, selectivity 0.05",
        {f"{streams} streams": Setting(streams=streams, selectivity=0.05) for streams in (3, 5)},
    ),
    "fig8c": (
        "Figure 8(c), (d): ATR, by the length of a segment",
        {
            **{f"{each} s": Setting(route="ATR", slice=each * SECOND) for each in (10, 30, 50)},
            "30 ms": Setting(route="ATR", slice=30_000),
            "PSP": Setting(),
        },
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; 1 where results differ."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="three numbers of workers; printed only")
    parser.add_argument("--parts", nargs="+", choices=FIGURES, default=list(FIGURES))
    chosen = parser.parse_args(arguments)
    tables = []
    for part in chosen.parts:
        title, kinds = FIGURES[part]
        try:
            table, panel = by_workers(part, title, kinds, (1, 2, 8) if chosen.quick else WORKERS)
        except DifferentResultsError as error:
            print(f"DIFFERENT RESULTS: {error}", file=sys.stderr)
            return 1
        print(table.text() + "\n", flush=True)
        tables.append(table)
        if not chosen.quick:
            draw([panel], DOCUMENT.parent / f"psp2009-{part}.svg")
    if not chosen.quick:
        fill_in(DOCUMENT, tables)
    return 0


if __name__ == "__main__":
    sys.exit(main())
