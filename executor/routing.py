"""Routing: the one place that asks a route which workers get which rows of a block, and as what."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wjoin.executor.bands import band_values, moved
from wjoin.executor.nodes import Chooser, Nodes, home_column, homes_of
from wjoin.parts.kernels.runs import GREATEST, LEAST, Int64Array, Values, int64_view, shifted
from wjoin.parts.routes.registry import ROUTES
from wjoin.parts.routes.route import Role, Share, Slices, Slicing
from wjoin.planner.plan.block_columns import meeting_name, stored_column, time_name
from wjoin.planner.plan.checks import PredicateCheck, of_kind
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.slicing import cut_stream, kept_anywhere, slicing
from wjoin.planner.plan.stage_kinds import Stage

TOGETHER_BYTES = 1 << 26
"""About the most bytes of the rows that are taken at once for several workers."""

_FURTHEST = float(1 << 52)

_TASKS_OF_A_CORE = 3
"""Tasks for each core where they may be of different sizes."""

_MULTIPLIER = 0xC2B2AE3D27D4EB4F


@dataclass(frozen=True)
class Router:
    """Brings tuples to the workers of a stage: to its input ``number``.

    They are cut by the times of their member ``stream``, or by the column ``values`` where that is not None;
    ``code`` is the column on which they meet others, None where on none. ``absent`` is its value where there
    is no row of that stream, None where such tuples meet no other. ``anywhere``: whether rows are kept, and
    any worker may keep one (``kept_anywhere``).

    In an approximate join the workers are ``nodes``, the column ``home`` says at which of them a tuple lives,
    and ``chooser`` which others it visits. ``scanned``: whether that is the code of a column, not yet a mark.
    """

    number: int
    stream: int
    code: str | None
    route: str
    workers: tuple[int, ...]
    slicing: Slicing | None = None
    values: str | None = None
    anywhere: bool = False
    absent: int | None = None
    nodes: Nodes | None = None
    home: str | None = None
    scanned: bool = True
    chooser: Chooser | None = None

    @classmethod
    def to(
        cls,
        plan: PhysicalPlan,
        stage: Stage,
        number: int,
        workers: tuple[int, ...],
        absent: Mapping[str, pa.Scalar] | None = None,
    ) -> "Router":
        """Return the router to an input of a stage; ``absent``: what columns are of rows that lack."""
        slices = slicing(plan, stage, number)
        column = None if slices is None else slices.column
        values = None if column is None else stored_column(plan, *column).name
        stream, code = cut_stream(plan, stage, number), meeting_name(stage.inputs[number])
        kept = slices is not None and slices.sliced and slices.stored
        anywhere = kept and kept_anywhere(plan, stage, len(workers))
        known = None if code is None or absent is None else absent.get(code)
        missing = None if known is None or not known.is_valid else int64_view(pa.array([known]))[0].item()
        nodes, edge = Nodes.of(plan, stage, len(workers)), stage.inputs[number]
        home = None if nodes is None else home_column(plan, edge)
        of = (stage.placement.route, workers, slices, values, anywhere, missing, nodes, home)
        return cls(number, stream, code, *of, scanned=edge.stage is None)

    def parts(
        self, block: pa.RecordBatch, *, whole: bool = False
    ) -> Iterator[tuple[int, pa.RecordBatch, Role]]:
        """Yield (worker, its rows, as what it gets them).

        ``whole``: the block is all that a task has, whatever order its rows come in.
        """
        if self.values is not None and block.column(self.values).null_count:
            valid = block.column(self.values).is_valid()
            # Nothing is near NULL.
            yield self.workers[0], block.filter(pc.invert(valid)), Role.PASSED
            block = block.filter(valid)
        names, own = block.schema.names, time_name(self.stream)
        # What lacks a row of that stream meets none, and has the times of other rows.
        dated = block.column(own if own in names else 0)
        times, codes = int64_view(dated), None
        if self.code is not None and self.code not in names and self.absent is not None:
            codes = np.full(block.num_rows, self.absent, np.int64)
        elif self.code is not None:
            coded = block.column(self.code) if self.code in names else dated
            codes = int64_view(pc.coalesce(coded, dated) if coded.null_count else coded)
        if self.nodes is not None:
            yield from self._visiting(block, times, codes)
            return
        # Shares are small where workers are many, and a pass over all columns costs more than its rows.
        most = block.num_rows * TOGETHER_BYTES // max(TOGETHER_BYTES, block.nbytes)
        waiting: list[tuple[Share, Int64Array]] = []
        rows = 0
        slices = self._slices(block, times)
        if slices is not None and whole and self.anywhere:
            slices = replace(slices, own=turns(times))
        for share in ROUTES[self.route].shares(codes, times, len(self.workers), slices):
            if share.rows is None:
                yield self.workers[share.worker], block, share.role
                continue
            if rows + len(share.rows) > most:
                yield from self._taken(block, waiting)
                waiting, rows = [], 0
            waiting.append((share, share.rows))
            rows += len(share.rows)
        yield from self._taken(block, waiting)

    def _visiting(
        self, block: pa.RecordBatch, times: Int64Array, codes: Int64Array | None
    ) -> Iterator[tuple[int, pa.RecordBatch, Role]]:
        """Yield what lives at the nodes of an approximate join, and what visits them."""
        if self.chooser is None or self.home is None or codes is None or self.nodes is None:
            raise ValueError("nothing decides which nodes are visited")
        marks = int64_view(pc.fill_null(block.column(self.home), 0))
        homes = homes_of(marks, self.nodes.count, scanned=self.scanned)
        visited = self.chooser.visits(self.number, codes, homes, times)
        place = block.schema.get_field_index(self.home)
        for share in ROUTES[self.route].shares(codes, times, len(self.workers), visited.visits):
            rows = np.arange(block.num_rows) if share.rows is None else share.rows
            told = pa.array(visited.marks(rows, share.worker, share.role, None if self.scanned else marks))
            taken = block.take(pa.array(rows)).set_column(place, self.home, told)
            yield self.workers[share.worker], taken, share.role

    def _slices(self, block: pa.RecordBatch, times: Int64Array) -> Slices | None:
        if self.slicing is None:
            return None
        if self.values is None:
            return slices_of_times(self.slicing, times)
        return slices_of_values(self.slicing, band_values(block.column(self.values)))

    def _taken(
        self, block: pa.RecordBatch, shares: Sequence[tuple[Share, Int64Array]]
    ) -> Iterator[tuple[int, pa.RecordBatch, Role]]:
        """Yield what some shares get of a block, taken at once."""
        if not shares:
            return
        taken = block.take(pa.array(np.concatenate([rows for _, rows in shares])))
        start = 0
        for share, rows in shares:
            yield self.workers[share.worker], taken.slice(start, len(rows)), share.role
            start += len(rows)


def turns(times: Int64Array) -> Int64Array:
    """Return numbers by which rows are assigned one by one, in the order of their times (int64).

    Rows of one time have one number. Where it begins follows from the rows as well: of many tasks with few
    rows each, not all begin with the same worker.
    """
    instants, numbers = np.unique(times, return_inverse=True)
    if not len(instants):
        return numbers
    begin = (int(instants[0]) * _MULTIPLIER >> 33) & 0xFFFF
    dealt: Int64Array = numbers + begin
    return dealt


def slices_of_times(rule: Slicing, times: Int64Array) -> Slices:
    """Return the slices of rows by their event times (int64)."""
    length = int(rule.length)
    first = shifted(times, None if rule.back is None else -int(rule.back), LEAST)
    last = shifted(times, None if rule.ahead is None else int(rule.ahead), GREATEST)
    return Slices(rule, times // length, first // length, last // length)


def slices_of_values(rule: Slicing, values: Values) -> Slices:
    """Return the slices of rows by their values, int64 or float64; NaN has a slice like that of 0."""
    if rule.back is None or rule.ahead is None:
        raise ValueError("values have slices where the band is closed")

    def cut(found: Values | None) -> Int64Array:
        if found is None or not rule.slack:
            whole: Int64Array = np.asarray(found, np.int64) // int(rule.length)
            return whole
        with np.errstate(invalid="ignore", over="ignore"):
            numbers = np.nan_to_num(np.floor(found.astype(np.float64) / rule.length), nan=0.0)
        # Beyond that numbers of slices are no whole ones any more; what is infinite is in the last of them.
        return numbers.clip(-_FURTHEST, _FURTHEST).astype(np.int64)

    first, last = moved(values, -rule.back, -rule.slack), moved(values, rule.ahead, rule.slack)
    return Slices(rule, cut(values), cut(first), cut(last))


def worker_count(stage: Stage, partitions: int) -> int:
    """Return the number of workers of a stage, given the number of shuffle partitions."""
    where = stage.placement
    route = ROUTES[where.route]
    found = route.workers(partitions)
    return found if where.workers is None else min(found, where.workers)


def table_tasks(stage: Stage, partitions: int, cores: int | None) -> int | None:
    """Return how many tasks a stage over tables has, None where Spark may merge them.

    It merges those whose rows are few bytes. Where the work is in pairs, one core would have all of it.
    ``cores``: how many tasks run at once, None where that is not known.
    """
    sliced = ROUTES[stage.placement.route].slices
    if not sliced and not of_kind(stage.checks, PredicateCheck):
        return None
    found = worker_count(stage, partitions)
    if cores is None or (sliced and stage.placement.workers is not None):
        return found
    # Slices are spread evenly, keys are not.
    return min(found, cores if sliced and not stage.keyed else _TASKS_OF_A_CORE * cores)
