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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import kit_path  # noqa: F401 (finds tests.kit)
import numpy as np
import pyarrow as pa
from report import Curve, Panel, Table, draw, fill_in, number

from tests.kit.local import Load, LocalWorkers
from tests.kit.planned import block_of, plan_over, stream_of
from wjoin.executor.counts import Counts
from wjoin.parts.routes.route import Placement
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.probes import arranged
from wjoin.planner.plan.slicing import SLICES_OF_A_WINDOW
from wjoin.planner.plan.stage_kinds import Gather
from wjoin.planner.shape.at_once import at_once
from wjoin.planner.shape.hops import in_hops
from wjoin.udfs.predicate import Predicate

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "papers" / "psp2009.md"

SECOND = 1_000_000
WINDOW = 10 * SECOND
STEP = SECOND // 2
RATE = 10
FILLING, MEASURED = 24, 8
"""Micro-batches that fill the windows, and those that are measured."""

PICTURES = 64
"""Different pictures, all of the same size: what is compared takes the same time for each."""

WORKERS = (1, 2, 4, 8, 12, 16, 19)

NODES = 8
"""The workers of figure 8 (g, h), of which the paper does not tell how many there are."""

COUNTED, AFTER = 4 * SECOND, 12 * SECOND
"""Where the rate changes: what is measured before it, and after it."""

BUCKET = 2 * SECOND
"""The time of which a cell tells the mean."""

_COLUMNS = {"id": "bigint", "image": "binary"}


FORMS: Mapping[str, Callable[[PhysicalPlan], PhysicalPlan] | None] = {
    "pairs": None,
    "hops": in_hops,
    "at once": at_once,
}
"""What becomes of partial results by PSP: they are kept, go on, or are put together."""


@dataclass(frozen=True)
class Setting:
    """A join, and how it runs: slices of so many microseconds where that is not the plan's own.

    ``copies``: on how many workers CTR keeps a row. ``form``: one of FORMS. ``whole``: whether a row is to be
    alike those of all other streams, not of the next one only.
    """

    streams: int = 3
    selectivity: float = 0.1
    pixels: int = 5_000
    route: str = "PSP"
    workers: int = 1
    slice: int | None = None
    copies: int | None = None
    form: str = "pairs"
    whole: bool = False

    @property
    def hint(self) -> str:
        """What asks for it; with copies all workers are meant. No hint tells hops from pairs."""
        if FORMS[self.form] is not None:
            return "PLAN(MULTIWAY)"
        return f"PLAN({self.route}, {self.workers if self.copies is None else self.copies})"


@dataclass(frozen=True)
class Step:
    """What the workers of each stage did for a micro-batch, and how many results there were."""

    loads: Sequence[Sequence[Load]]
    results: int

    @property
    def path(self) -> float:
        """Milliseconds of the critical path: the slowest worker of each stage, stage after stage."""
        return 1e3 * sum(max(each.seconds for each in stage) for stage in self.loads)

    @property
    def work(self) -> float:
        """Milliseconds of all workers together."""
        return 1e3 * sum(each.seconds for stage in self.loads for each in stage)

    @property
    def kept(self) -> int:
        """The rows that are kept."""
        return sum(each.kept for stage in self.loads for each in stage)

    @property
    def uneven(self) -> float:
        """How many times its even share of the pairs the busiest worker of a stage compares, over stages."""
        most = sum(max(each.compared for each in stage) for stage in self.loads)
        return most / sum(sum(each.compared for each in stage) / len(stage) for stage in self.loads)


@dataclass(frozen=True)
class Found:
    """What a run gave: milliseconds of the critical path and of all workers together, rows kept, results."""

    path: float
    work: float
    kept: int
    results: int


class Alike:
    """Compares two pictures where it is ``costly``, and then says what was drawn for the pair."""

    def __init__(self, selectivity: float) -> None:
        self._selectivity = selectivity
        self.costly = True

    def __call__(self, left: Any, right: Any, first: Any, second: Any) -> Any:
        for one, other in zip(left, right, strict=True) if self.costly else ():
            _difference(one, other)
        mixed = (first.astype(np.uint64) * np.uint64(2654435761)) ^ (
            second.astype(np.uint64) * np.uint64(40503)
        )
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(40)
        return mixed < self._selectivity * (1 << 24)


def _difference(left: Any, right: Any) -> int:
    return int((np.maximum(left, right) - np.minimum(left, right)).sum(dtype=np.int64))


def planned(setting: Setting, predicate: Predicate) -> PhysicalPlan:
    """Return the plan of streams whose rows are to be alike."""
    names = "ABCDEFGHI"[: setting.streams]
    pairs = itertools.combinations(names, 2) if setting.whole else itertools.pairwise(names)
    where = " AND ".join(f"alike({a}.image, {b}.image, {a}.id, {b}.id)" for a, b in pairs)
    columns = ", ".join(f"{name}.id AS {name.lower()}" for name in names)
    hint = f"/*+ {setting.hint}, ALGORITHM(MW), BOUNDS(EXACT) */"
    source = ", ".join(f"s {name}" for name in names)
    sql = f"SELECT {hint} {columns} FROM {source} WINDOW = {WINDOW} MICROSECONDS WHERE {where}"
    relations = [stream_of(_COLUMNS)] * setting.streams
    plan = plan_over(sql, relations, predicates={predicate.name: predicate}).physical
    hopping = FORMS[setting.form]
    if hopping is not None:
        hops = hopping(plan)
        psp = Placement("psp", setting.workers)
        lain = tuple(
            each if isinstance(each, Gather) else dataclasses.replace(each, placement=psp)
            for each in hops.stages
        )
        plan = arranged(dataclasses.replace(hops, stages=lain), [None] * len(lain))
    if setting.slice is None:
        return plan
    stages = tuple(
        dataclasses.replace(stage, placement=dataclasses.replace(stage.placement, length=setting.slice))
        for stage in plan.stages
    )
    return dataclasses.replace(plan, stages=stages)


def steps(setting: Setting, rates: Sequence[float], filling: int) -> Iterator[Step]:
    """Run micro-batches, each at a rate of its own; yield those after ``filling``.

    Before, pictures are not compared: what is drawn is the same.
    """
    alike = Alike(setting.selectivity)
    predicate = Predicate("alike", alike)
    plan = planned(setting, predicate)
    # By slices alone, as in the paper, where the length of these is what is measured.
    whole = setting.slice is None
    local = LocalWorkers(plan, setting.workers, predicates={"alike": predicate}, whole=whole)
    random = np.random.default_rng(7)
    drawn = np.random.default_rng(8).integers(0, 256, (PICTURES, 3 * setting.pixels), np.uint8)
    pictures = [each.tobytes() for each in drawn]
    begun = [0] * setting.streams
    for step, rate in enumerate(rates):
        alike.costly = step >= filling
        blocks = {}
        for stream in range(setting.streams):
            count = int(random.poisson(rate * STEP / SECOND))
            blocks[stream] = _rows(plan, stream, step, count, begun[stream], pictures, random)
            begun[stream] += count
        results = sum(each.num_rows for each in local.run(blocks, Counts()))
        if step >= filling:
            yield Step(local.loads, results)


def measured(setting: Setting) -> Found:
    """Run a setting at an even rate."""
    found = list(steps(setting, [RATE] * (FILLING + MEASURED), FILLING))
    path, work = sum(each.path for each in found), sum(each.work for each in found)
    results = sum(each.results for each in found)
    return Found(path / len(found), work / len(found), found[-1].kept, results)


def _rows(
    plan: PhysicalPlan, stream: int, step: int, count: int, first: int, pictures: Sequence[bytes], random: Any
) -> pa.RecordBatch:
    numbers = np.arange(first, first + count)
    rows = {
        "ts": pa.array(np.sort(random.integers(step * STEP, (step + 1) * STEP, count)), pa.int64()),
        "id": pa.array(numbers * 16 + stream, pa.int64()),
        "image": pa.array([pictures[each % len(pictures)] for each in numbers], pa.binary()),
    }
    return block_of(plan, stream, rows)


class DifferentResultsError(Exception):
    """Two runs of one join differ in their results."""


def by_workers(
    title: str, kinds: Mapping[str, Setting], name: str, workers: Sequence[int], *, quick: bool = False
) -> tuple[Table, Panel]:
    """Return a table and a plot of some kinds of runs for each number of workers, at least two a copy."""
    numbers = [n for n in workers if any(_enough(n, each) for each in kinds.values())]
    lines: list[list[str]] = []
    curves = []
    results: dict[tuple[int, float], int] = {}
    for kind, setting in kinds.items():
        runs = {n: measured(dataclasses.replace(setting, workers=n)) for n in numbers if _enough(n, setting)}
        if not runs:
            continue
        counts = [each.results for each in runs.values()]
        wanted = results.setdefault((setting.streams, setting.selectivity), counts[0])
        if any(each != wanted for each in counts):
            raise DifferentResultsError(f"{kind}: {counts}, not {wanted}")
        cells: dict[str, Callable[[Found], str]] = {
            "critical path, ms": lambda each: number(each.path),
            "all workers, ms": lambda each: number(each.work),
            "rows kept": lambda each: f"{each.kept:,}",
        }
        for what, cell in cells.items():
            lines.append([f"{kind}: {what}", *(cell(runs[n]) if n in runs else "" for n in numbers)])
        curves.append(
            Curve(kind, np.array(list(runs), float), np.array([each.path for each in runs.values()]))
        )
        print(f"  {kind}", file=sys.stderr, flush=True)
    head = ["", *(f"{n}" for n in numbers)]
    return Table(name, title, head, lines), Panel(title, "workers", curves, values="critical path, ms")


def _enough(workers: int, setting: Setting) -> bool:
    return setting.copies is None or workers >= 2 * setting.copies


def over_time(
    title: str, kinds: Mapping[str, Setting], name: str, workers: Sequence[int] = (), *, quick: bool = False
) -> tuple[Table, Panel]:
    """Return a table and a plot of runs whose rate doubles in the middle."""
    before, after = COUNTED // STEP, (COUNTED if quick else AFTER) // STEP
    rates = [RATE] * (FILLING + before) + [2 * RATE] * after
    times = (np.arange(before + after) - before) * (STEP / SECOND)
    each_bucket = BUCKET // STEP
    head = ["seconds from the change on", *(f"{time:g}" for time in times[::each_bucket])]
    lines: list[list[str]] = []
    curves = []
    results = set()
    for kind, setting in kinds.items():
        found = list(steps(setting, rates, FILLING))
        results.add(sum(each.results for each in found))
        path, uneven = np.array([(each.path, each.uneven) for each in found]).T
        lines.append([f"{kind}: critical path, ms", *map(number, _means(path, each_bucket))])
        shares = (f"{each:.2f}" for each in _means(uneven, each_bucket))
        lines.append([f"{kind}: busiest worker's pairs / an even share", *shares])
        curves.append(Curve(kind, times, path))
        print(f"  {kind}", file=sys.stderr, flush=True)
    if len(results) > 1:
        raise DifferentResultsError(f"{title}: {sorted(results)}")
    what = "seconds from the change on"
    return Table(name, title, head, lines), Panel(title, what, curves, values="critical path, ms")


def _means(values: Any, width: int) -> list[float]:
    return [float(values[start : start + width].mean()) for start in range(0, len(values), width)]


PARTS: Mapping[str, Callable[..., tuple[Table, Panel]]] = {
    "fig8a": partial(
        by_workers,
        "Figure 8(a), (b): PSP, by selectivity",
        {f"{share}": Setting(selectivity=share) for share in (0.05, 0.1, 0.5)},
    ),
    "fig8a-hops": partial(
        by_workers,
        "Figure 8(a), (b): PSP that keeps pairs, and PSP in hops, by selectivity",
        {
            f"{share}, {form}": Setting(selectivity=share, form=form)
            for share in (0.05, 0.1, 0.5)
            for form in ("pairs", "hops")
        },
    ),
    "fig8a-once": partial(
        by_workers,
        "PSP by selectivity, where a row is to be alike those of both other streams",
        {
            f"{share}, {form}": Setting(selectivity=share, form=form, whole=True)
            for share in (0.05, 0.1, 0.5)
            for form in FORMS
        },
    ),
    "fig8a-cost": partial(
        by_workers,
        "Figure 8(a): PSP, by the cost of the predicate",
        {f"{pixels // 1000}k pixels": Setting(pixels=pixels) for pixels in (5_000, 10_000, 20_000)},
    ),
    # A row finds one of the next stream: of 9 streams that find ten, there would be millions of results.
    "fig8a-streams": partial(
        by_workers,
        "Figure 8(a): PSP, by the number of streams, selectivity 0.005, 20k pixels",
        {
            f"{streams} streams": Setting(streams=streams, selectivity=0.005, pixels=20_000)
            for streams in (3, 5, 7, 9)
        },
    ),
    "fig8c": partial(
        by_workers,
        "Figure 8(c), (d): ATR, by the length of a segment",
        {
            **{f"{each} s": Setting(route="ATR", slice=each * SECOND) for each in (10, 30, 50)},
            "30 ms": Setting(route="ATR", slice=30_000),
            "PSP": Setting(),
        },
    ),
    "fig8e": partial(
        by_workers,
        "Figure 8(e), (f): CTR, by the number of copies",
        {
            **{f"{copies} copies": Setting(route="CTR", copies=copies) for copies in (2, 3, 5, 7, 9)},
            "PSP": Setting(),
        },
    ),
    "fig8g": partial(
        over_time,
        "Figure 8(g), (h): PSP on 8 workers where the rate doubles",
        {
            "a slice a worker": Setting(workers=NODES, slice=WINDOW // NODES),
            "short slices": Setting(workers=NODES, slice=WINDOW // SLICES_OF_A_WINDOW),
        },
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; 1 where results differ."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer workers, less time; printed only")
    parser.add_argument("--workers", nargs="+", type=int, help=f"how many; {WORKERS} by default")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    chosen = parser.parse_args(arguments)
    workers = chosen.workers or ((1, 2, 8) if chosen.quick else WORKERS)
    for part in chosen.parts:
        try:
            table, panel = PARTS[part](part, workers, quick=chosen.quick)
        except DifferentResultsError as error:
            print(f"DIFFERENT RESULTS: {error}", file=sys.stderr)
            return 1
        print(table.text() + "\n", flush=True)
        if not chosen.quick:
            draw([panel], DOCUMENT.parent / f"psp2009-{part}.svg")
            fill_in(DOCUMENT, [table])
    return 0


if __name__ == "__main__":
    sys.exit(main())
