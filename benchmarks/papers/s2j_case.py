"""The case study of S2J (section 4.4) with wjoin's stages, routes and state, in simulated time.

The rate of two streams goes up and down; the state of the workers is what their logic keeps. wjoin has more
groups of keys than executors: where executors come or go, groups go with them, and no state moves.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import kit_path  # noqa: F401 (finds tests.kit)
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from report import Curve, Panel, Table, Verdict
from s2j_parts import Judged, Part, percent, table, told
from s2j_tasks import SECOND, alone

from tests.kit.local import LocalWorkers
from tests.kit.planned import block_of
from wjoin.executor.counts import Counts
from wjoin.parts.kernels.runs import Int64Array, int64_view
from wjoin.planner.cost.scaling import Scale, Scaling
from wjoin.planner.cost.shed_share import LINEAR, QUADRATIC, Thresholds, shedding_ratio
from wjoin.planner.plan.block_columns import code_name
from wjoin.planner.plan.physical import PhysicalPlan

WINDOW = 60
"""Seconds (section 4.4)."""

GROUPS = 8
"""Workers of the stage, which the executors share."""

Profile = tuple[tuple[int, float], ...]
"""Seconds, ascending, and the rate there as a multiple of that of the case; between them a straight line."""

STEADY: Profile = ((0, 1.0), (200, 1.0))

# A short rise, one that lasts, and a fall.
_RISING: Profile = ((0, 1.0), (400, 1.0), (420, 1.6), (480, 1.6), (500, 1.0), (700, 1.0), (900, 2.6))
PROFILE: Profile = (*_RISING, (1300, 2.6), (1500, 0.7), (2000, 0.7))

_MULTIPLIER, _OF_ROWS = np.uint64(0xA24BAED4963EE407), np.uint64(0x9FB21C651E98DF25)
_BITS = 53


@dataclass(frozen=True)
class Case:
    """A run of two streams of ``rate`` rows a second each, in micro-batches of ``step`` seconds.

    ``shedding``: LINEAR or QUADRATIC, None where always ``share`` of the rows is shed. ``by_key``: whether a
    row goes by the hash of its key, not by one of its own.
    """

    shedding: str | None = None
    share: float = 0.0
    by_key: bool = True
    profile: Profile = PROFILE
    rate: int = 40
    keys: int = 200
    step: int = 5
    thresholds: Thresholds = field(default_factory=Thresholds)

    @property
    def capacity(self) -> float:
        """W: the rows that an executor can keep, so that τ is τ* at the beginning with half the executors."""
        return 2 * self.rate * WINDOW / (GROUPS // 2 * self.thresholds.expected)


@dataclass(frozen=True)
class Moment:
    """What was after a micro-batch that ended at ``time``, in seconds.

    ``rate``: rows a second of each stream. ``utilization``: τ on average, ``fullest``: that of the fullest
    executor. ``shedding``: the share of the next rows to shed. ``offered``, ``shed``, ``results``: rows.
    """

    time: int
    rate: float
    utilization: float
    fullest: float
    shedding: float
    executors: int
    offered: int
    shed: int
    results: int


def run(case: Case) -> list[Moment]:
    """Return what was after each micro-batch."""
    plan = alone(
        f"SELECT /*+ ALGORITHM(HW) */ C.cell, C.pm25 FROM air C, history H WINDOW = {WINDOW} SECONDS "
        "WHERE C.cell = H.cell"
    )
    local = LocalWorkers(plan, GROUPS)
    executors, ratio = Scale(GROUPS // 2), case.share
    times, rates = zip(*case.profile, strict=True)
    found = []
    for begin in range(0, times[-1], case.step):
        end, rate = begin + case.step, float(np.interp(begin, times, rates)) * case.rate
        rows = _rows(plan, case, begin, round(rate * case.step))
        kept = {stream: _kept(block, stream, ratio, case) for stream, block in rows.items()}
        offered, left = (sum(each.num_rows for each in group.values()) for group in (rows, kept))
        results = sum(each.num_rows for each in local.run(kept, Counts()))
        state = np.array([each.kept for each in local.loads[0]])
        total = int(state.sum())
        load = total / (case.capacity * executors.number)
        executors = executors.after(end, load, Scaling(1, GROUPS), case.thresholds)
        utilization = total / (case.capacity * executors.number)
        fullest = float(_of_executors(state, executors.number).max()) / case.capacity
        if case.shedding is not None:
            ratio = shedding_ratio(case.shedding, utilization, case.thresholds)
        numbers = (executors.number, offered, offered - left, results)
        found.append(Moment(end, rate, utilization, fullest, ratio, *numbers))
    return found


def _of_executors(state: npt.NDArray[np.int64], number: int) -> npt.NDArray[np.int64]:
    """Return the rows at each executor, which take the groups by turns."""
    return np.array([state[first::number].sum() for first in range(number)])


def _rows(plan: PhysicalPlan, case: Case, begin: int, count: int) -> dict[int, pa.RecordBatch]:
    """Return the new rows of each stream: the same in every run."""
    random = np.random.default_rng(begin)
    found = {}
    for stream in range(2):
        rows = {
            "ts": pa.array(np.sort(random.integers(begin * SECOND, (begin + case.step) * SECOND, count))),
            "cell": pa.array(random.integers(0, case.keys, count)),
            "pm25": pa.array(random.integers(0, 1 << 40, count)),
        }
        found[stream] = block_of(plan, stream, rows)
    return found


def _kept(rows: pa.RecordBatch, stream: int, ratio: float, case: Case) -> pa.RecordBatch:
    """Return the rows that are not shed: those with a hash above the ratio, the same in every attempt."""
    if ratio == 0:
        return rows
    codes = int64_view(rows.column(code_name(stream, 0)))
    if not case.by_key:
        codes = codes + int64_view(rows.column(0)) * np.int64(31) + stream
    return rows.filter(pa.array(hashed(codes) >= ratio))


def hashed(codes: Int64Array) -> npt.NDArray[np.float64]:
    """Return a number from 0 to below 1 for each code, of other bits than its worker's."""
    mixed = codes.view(np.uint64) * _MULTIPLIER
    mixed = (mixed ^ (mixed >> np.uint64(31))) * _OF_ROWS
    mixed ^= mixed >> np.uint64(29)
    return (mixed >> np.uint64(64 - _BITS)) / float(1 << _BITS)


def lost(moments: Sequence[Moment], whole: Sequence[Moment]) -> tuple[float, float]:
    """Return the share of rows that were shed and that of results that are missing, while rows were shed."""
    # What is shed is missing for a window more.
    shed = [place for place, each in enumerate(moments) if each.shed]
    if not shed:
        return 0.0, 0.0
    step = moments[1].time - moments[0].time
    during = slice(shed[0], shed[-1] + WINDOW // step + 1)
    offered, gone = (sum(getattr(each, name) for each in moments[during]) for name in ("offered", "shed"))
    results, all_results = (sum(each.results for each in group[during]) for group in (moments, whole))
    return gone / offered, 1 - results / all_results


def case(*, quick: bool) -> Part:
    """The case study."""
    base = Case(rate=20, step=10) if quick else Case()
    whole = run(base)
    runs = {name: run(replace(base, shedding=name)) for name in (LINEAR, QUADRATIC)}
    events = {name: _events(found, whole) for name, found in runs.items()}
    lines = [[name, *(each[name] for each in events.values())] for name in events["linear"]]
    told("case study")
    panels = [
        _over_time("rate", {"rows/s": whole}, lambda each: each.rate),
        _over_time("τ", {"not shed": whole, **runs}, lambda each: each.utilization),
        _over_time("share shed", runs, lambda each: each.shedding),
        _over_time("executors", {"linear": runs["linear"]}, lambda each: each.executors),
    ]
    found = runs["linear"]
    numbers = [each.executors for each in found]
    short = max(each.shedding for each in found if each.time <= 600)
    grown = next((place for place, each in enumerate(found) if each.executors > found[0].executors), 0)
    before, after = found[grown - 1].utilization, found[grown].utilization
    return Part(
        [Table("case", "The case study", ["", *events], lines)],
        panels,
        [
            Judged("§4.4 (1)", "a short rise sheds nothing", Verdict(short == 0, f"{percent(short)} shed")),
            Judged(
                "§4.4 (2), (3)",
                "it sheds, then grows from 4 to 8, and τ falls at once",
                Verdict(max(numbers) == 8 and after < 0.6 * before, f"τ {before:.2f}, then {after:.2f}"),
            ),
            Judged(
                "§4.4 (4)",
                "it goes back to 4 after five minutes below τ0",
                Verdict(numbers[-1] == 4, f"{numbers[-1]} executors, τ {found[-1].utilization:.2f}"),
            ),
        ],
    )


def keys(*, quick: bool) -> Part:
    """Results lost by the share of rows that is shed, by key and by row."""
    shares = (0.2,) if quick else (0.05, 0.1, 0.2, 0.5)
    base = Case(profile=STEADY, keys=2000, step=10)
    whole = run(base)
    lines: dict[str, list[str]] = {}
    gone = {}
    for by_key in (True, False):
        name = "by key" if by_key else "by row"
        gone[name] = [lost(run(replace(base, share=share, by_key=by_key)), whole) for share in shares]
        lines[f"{name}: rows shed"] = [f"{100 * rows:.1f} %" for rows, _ in gone[name]]
        lines[f"{name}: results lost"] = [f"{100 * results:.1f} %" for _, results in gone[name]]
    told("keys")
    held = all(own[1] < other[1] for own, other in zip(*gone.values(), strict=True))
    claim = Judged(
        "(wjoin's)",
        "to shed all rows of some keys keeps more results than to shed some rows of all",
        Verdict(held, f"{lines['by key: results lost'][-1]} lost, not {lines['by row: results lost'][-1]}"),
    )
    return Part([table("keys", "Results lost", "share to shed", shares, lines)], [], [claim])


def _over_time(title: str, runs: Mapping[str, Sequence[Moment]], value: Callable[[Moment], float]) -> Panel:
    curves = [
        Curve(name, np.array([each.time for each in found], float), np.array([value(each) for each in found]))
        for name, found in runs.items()
    ]
    return Panel(title, "seconds", curves, values=title)


def _events(found: Sequence[Moment], whole: Sequence[Moment]) -> dict[str, str]:
    """Return what happened in the case study."""
    shed = [each.time for each in found if each.shed]
    changed = [
        f"{before.executors} to {each.executors} at {each.time} s, "
        f"τ {before.utilization:.2f} to {each.utilization:.2f}"
        for before, each in pairwise(found)
        if before.executors != each.executors
    ]
    rows, results = lost(found, whole)
    return {
        "rows are shed, seconds": f"{shed[0]} to {shed[-1]}" if shed else "never",
        "executors": "; ".join(changed),
        "greatest share shed": percent(max(each.shedding for each in found)),
        "greatest τ": f"{max(each.utilization for each in found):.2f}",
        "greatest τ where nothing is shed": f"{max(each.utilization for each in whole):.2f}",
        "fullest executor's τ, of the average": f"{max(e.fullest / e.utilization for e in found):.2f}",
        "rows shed meanwhile": f"{100 * rows:.1f} %",
        "results lost meanwhile": f"{100 * results:.1f} %",
    }
