"""Join tasks on one pair of streams, as in S2J: as one statement set, and each with streams of its own.

The tasks are statements over air quality now and a month ago, as in the paper's figure 1, with an equality
beside their windows. wjoin plans them (planner/sets/shared_join.py), its routes and blocks bring the rows to
workers, which join them in this process. What that counts becomes seconds by the constants of wjoin's cost
model: so nothing here depends on the machine, or on what else it does.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import kit_path  # noqa: F401 (finds tests.kit)
import numpy as np
import pyarrow as pa
from s2j_blocks import Sent, sent

from tests.kit.local import Load as Worked
from tests.kit.local import LocalWorkers
from tests.kit.planned import block_of, plan_over, stream_of
from wjoin.executor.counts import Counts
from wjoin.executor.windows import wanted
from wjoin.grammar.parser import parse_statement
from wjoin.grammar.statement_kinds import Query
from wjoin.parts.kernels.runs import int64_view
from wjoin.planner.cost.constants import Constants
from wjoin.planner.cost.model import RUNS
from wjoin.planner.cost.sizing import sized
from wjoin.planner.plan.block_columns import time_name
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.sets.shared_join import Member, apart, shared_text, with_outputs

SECOND = 1_000_000
"""Event times are microseconds."""

WINDOW = 4
"""Seconds of the widest window."""

MOST_TASKS = 20
"""The most tasks of the paper's figures."""

INTERVAL = 10.0
"""Seconds within which a micro-batch must end."""

COLUMNS = {
    "cell": "bigint",
    "pm25": "bigint",
    "pm10": "bigint",
    "ozone": "bigint",
    "wind": "bigint",
    "rain": "bigint",
}
MEASURES = tuple(COLUMNS)[1:]
RELATIONS = [stream_of(COLUMNS)] * 2

PASSING = 0.1
"""The share of the pairs of a task with a condition of its own that passes it."""

_GREATEST = 1000
"""What is measured is a whole number from 0 to below that."""


@dataclass(frozen=True)
class Load:
    """A pair of streams: rows a second of each, different keys, and seconds once the windows are full."""

    rate: int = 10_000
    keys: int = 4_000_000
    measured: int = 4

    def blocks(self, plan: PhysicalPlan, second: int) -> dict[int, pa.RecordBatch]:
        """Return the rows of one second as the executor joins them, by stream; the same for every plan."""
        return {
            stream: block_of(plan, stream, _Drawn(self, second, stream))
            for stream in range(len(plan.streams))
        }


class _Drawn(dict[str, pa.Array]):
    """The columns of the rows of one second of a stream, drawn when they are read."""

    def __init__(self, load: Load, second: int, stream: int) -> None:
        super().__init__()
        self._load, self._second, self._stream = load, second, stream

    def __missing__(self, name: str) -> pa.Array:
        random = np.random.default_rng([self._second, self._stream, *name.encode()])
        below = {"ts": SECOND, "cell": self._load.keys}.get(name, _GREATEST)
        values = random.integers(0, below, self._load.rate)
        if name == "ts":
            values = np.sort(values) + self._second * SECOND
        self[name] = pa.array(values)
        return self[name]


@dataclass(frozen=True)
class Work:
    """What some seconds of event time ask of joins that run beside each other.

    ``terms``: seconds of the core of the busiest worker by the names of ``planner.cost.model``, of all
    ``seconds`` together. Of all workers: what was ``sent`` to them, pairs that they compared, and the rows
    that all tasks have ``found``.
    """

    terms: Mapping[str, float] = field(default_factory=dict)
    sent: Sent = field(default_factory=Sent)
    compared: int = 0
    found: int = 0
    seconds: int = 0

    def __add__(self, other: "Work") -> "Work":
        """Return the work of some more seconds."""
        return replace(self.beside(other), seconds=self.seconds + other.seconds)

    def beside(self, other: "Work") -> "Work":
        """Return the work of the same seconds, that of another join with it."""
        terms = {
            name: self.terms.get(name, 0.0) + other.terms.get(name, 0.0)
            for name in {**self.terms, **other.terms}
        }
        compared, found = self.compared + other.compared, self.found + other.found
        return Work(terms, self.sent + other.sent, compared, found, self.seconds)


def own_windows(count: int) -> list[str]:
    """Return tasks with windows and columns of their own, the widest first: the first ones of MOST_TASKS."""
    return [_task(_window(place), place) for place in range(count)]


def own_conditions(count: int) -> list[str]:
    """Return tasks that have one window, each with a condition that a tenth of its pairs pass."""
    # The difference of two that are evenly spread has the shape of a roof.
    gap = round(_GREATEST * (1 - (2 * PASSING) ** 0.5))
    found = []
    for place in range(count):
        name = MEASURES[place % len(MEASURES)]
        condition = f" AND C.{name} - H.{name} > {gap + place}"
        found.append(_task(WINDOW * SECOND, place) + condition)
    return found


def own_bands(count: int) -> list[str]:
    """Return tasks without a key, as in the paper's figure 1: each has a band of a column of its own."""
    names = [MEASURES[place % len(MEASURES)] for place in range(count)]
    bands = [f"abs(C.{name} - H.{name}) <= {1 + place // len(MEASURES)}" for place, name in enumerate(names)]
    return [_select(WINDOW * SECOND, place, "", band) for place, band in enumerate(bands)]


def one_column(count: int) -> list[str]:
    """Return tasks that differ in their windows only."""
    return [_task(_window(place), 0) for place in range(count)]


def _window(place: int) -> int:
    return WINDOW * SECOND * (MOST_TASKS - place) // MOST_TASKS


def _task(window: int, place: int) -> str:
    return _select(window, place, "/*+ ALGORITHM(HW) */ ", "C.cell = H.cell")


def _select(window: int, place: int, hint: str, where: str) -> str:
    name = MEASURES[place % len(MEASURES)]
    return (
        f"SELECT {hint}C.cell, C.{name} AS now, H.{name} AS before FROM air C, history H "
        f"WINDOW (C, H) = {window} MICROSECONDS WHERE {where}"
    )


@cache
def alone(task: str) -> PhysicalPlan:
    """Return the plan of one task by itself."""
    return plan_over(task, RELATIONS).physical


def together(tasks: Sequence[str]) -> tuple[PhysicalPlan, ...]:
    """Return the plans of a statement set: joins with an output for each task that shares them."""
    groups: dict[Hashable, list[Member]] = {}
    for place, text in enumerate(tasks):
        statement = parse_statement(text)
        if not isinstance(statement, Query):
            raise TypeError(f"no query: {text}")
        member = Member(f"task{place}", text, statement.blocks[0], plan_over(text, RELATIONS))
        groups.setdefault(place if apart(member) else member.key, []).append(member)
    return tuple(_shared(group) for group in groups.values())


def _shared(members: Sequence[Member]) -> PhysicalPlan:
    if len(members) == 1:
        return members[0].planned.physical
    planned, _ = with_outputs(plan_over(shared_text(members), RELATIONS), members)
    return planned.physical


@cache
def worked(plan: PhysicalPlan, load: Load, workers: int) -> Work:
    """Return what a plan asks of so many workers, a second once the windows are full."""
    local = LocalWorkers(plan, workers)
    total = Work()
    for second in range(WINDOW + 1 + load.measured):
        blocks, counts = load.blocks(plan, second), Counts()
        made = local.run(blocks, counts)
        if second > WINDOW:
            total += _second(plan, blocks, local.loads[0], made)
    return total


def _second(
    plan: PhysicalPlan,
    blocks: Mapping[int, pa.RecordBatch],
    loads: Sequence[Worked],
    made: Sequence[pa.RecordBatch],
) -> Work:
    compared, rows = sum(each.compared for each in loads), sum(each.rows for each in loads)
    results = sum(each.num_rows for each in made)
    # All rows of a key are at one worker: who compares most makes most.
    busiest = max(each.compared for each in loads) / max(1, compared)
    fullest = max(each.rows for each in loads) / rows
    traffic = sent(plan, blocks, len(loads), len(loads))
    taken = sum(_taken(plan, each) for each in made)
    masks = sum(bool(each.windows) for each in plan.outputs) if len(plan.outputs) > 1 else 0
    constants, (kernel, *_) = Constants().in_files(), plan.stages[0].kernels
    return Work(
        {
            "rows": fullest * (rows * constants.row + traffic.size * constants.byte),
            "state": fullest * rows * constants.state,
            "searches": fullest * rows * RUNS * constants.search_seconds(kernel),
            "comparisons": busiest * compared * constants.pair_seconds(kernel),
            # A window that is asked of a result costs about what a condition does.
            "tuples": busiest * results * (constants.tuple + masks * constants.condition),
            "results": busiest * taken * constants.result,
        },
        traffic,
        compared,
        taken,
        1,
    )


def _taken(plan: PhysicalPlan, made: pa.RecordBatch) -> int:
    """Return how many results all outputs take of rows that the join has made."""
    if not any(each.windows for each in plan.outputs):
        return made.num_rows * len(plan.outputs)
    times = {stream: int64_view(made.column(time_name(stream))) for stream in plan.staged}
    masks = (wanted(each, times) for each in plan.outputs)
    return sum(made.num_rows if mask is None else int(mask.sum()) for mask in masks)


def as_set(tasks: Sequence[str], load: Load, workers: int) -> Work:
    """Return what tasks ask as one statement set."""
    return _all_of([worked(plan, load, workers) for plan in together(tasks)])


def duplicated(tasks: Sequence[str], load: Load, workers: int) -> Work:
    """Return what tasks ask that each read, send and keep the streams for themselves."""
    return _all_of([worked(alone(each), load, workers) for each in tasks])


def _all_of(works: Sequence[Work]) -> Work:
    first, *others = works
    for each in others:
        first = first.beside(each)
    return first


def sustained(work: Work, load: Load, workers: int, queries: int) -> float:
    """Return the greatest rate, in rows a second of both streams, that the busiest worker keeps up with.

    Rows cost in proportion to the rate, pairs to its square (``planner.cost.sizing``). So many ``queries``
    each pay what a micro-batch of INTERVAL seconds costs whatever its rows, shared by the workers.
    """
    constants = Constants().in_files()
    left = 1 - queries * (constants.batch + constants.stage) / (workers * INTERVAL)
    if left <= 0:
        return 0.0
    terms = {name: value / work.seconds / left for name, value in work.terms.items()}
    return 2 * load.rate * sized(terms, 1).limit
