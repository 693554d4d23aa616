"""False shedding: rows that are shed because one worker is full while all together have room.

S2J's chain of workers, tuple by tuple, passes a block on once it has so many more than the next one (section
3.3.1). wjoin's routes assign each row once, and nothing moves. Both get a stream whose rate goes up and down.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
from s2j_shedding import block_rows
from s2j_tasks import SECOND

from tests.kit.planned import block_of, plan_over, stream_of
from wjoin.executor.routing import Router
from wjoin.parts.kernels.runs import Int64Array
from wjoin.parts.routes.route import Placement
from wjoin.planner.cost.shed_share import LINEAR, Thresholds, shedding_ratio

SPAN = SECOND
"""Utilisation is judged once a second."""


@dataclass(frozen=True)
class Wave:
    """A stream whose rate goes up and down around ``rate`` rows a second.

    ``amplitude``: by which share of it; ``period``: seconds from one peak to the next; ``window`` and
    ``length``: seconds. ``utilization``: τ at the rate on average, of ``workers`` workers.
    """

    rate: float = 100.0
    amplitude: float = 0.1
    period: int = 120
    window: int = 60
    length: int = 480
    utilization: float = 0.7
    workers: int = 4

    @property
    def capacity(self) -> float:
        """W: the rows that a worker can hold."""
        return self.rate * self.window / self.workers / self.utilization

    def times(self) -> Int64Array:
        """Return the event times of all rows, ascending: microseconds."""
        grid = np.arange(0, self.length, 0.01)
        turns = 2 * np.pi / self.period
        # The integral of the rate is how many have come.
        come = self.rate * (grid + self.amplitude / turns * (1 - np.cos(turns * grid)))
        numbers = np.arange(int(come[-1]))
        return np.rint(np.interp(numbers, come, grid) * SECOND).astype(np.int64)


@dataclass(frozen=True)
class Loads:
    """The rows that each worker holds (int64, a line for each second once the window is full)."""

    rows: Int64Array
    wave: Wave

    @property
    def busiest(self) -> Int64Array:
        """How many times an even share the fullest worker holds, at its worst."""
        return (self.rows.max(axis=1) / self.rows.mean(axis=1)).max()

    @property
    def apart(self) -> int:
        """The greatest difference between two workers, in rows."""
        return int(np.ptp(self.rows, axis=1).max())

    def shed(self, thresholds: Thresholds) -> tuple[float, float]:
        """Return the shares of the time's rows that are shed, all of them and those falsely.

        The fullest worker says how many. It is false while all together are below the threshold.
        """
        utilization = self.rows / self.wave.capacity
        ratios = np.array(
            [shedding_ratio(LINEAR, float(each), thresholds) for each in utilization.max(axis=1)]
        )
        false = utilization.mean(axis=1) <= thresholds.shedding
        return float(ratios.mean()), float((ratios * false).mean())


def chain(wave: Wave, rows: Callable[[float], int]) -> Loads:
    """Return what the workers of S2J's chain hold; ``rows``: the rows of a block, by τ on average."""
    times = (wave.times() // (SECOND // 100)).tolist()
    held: list[deque[int]] = [deque() for _ in range(wave.workers)]
    found, place = [], 0
    window = wave.window * 100
    for now in range(wave.length * 100):
        block = rows(sum(map(len, held)) / wave.workers / wave.capacity)
        # Rows go out at the end, from the oldest on.
        for each in reversed(held):
            while each and each[0] <= now - window:
                each.popleft()
        while place < len(times) and times[place] <= now:
            held[0].append(times[place])
            place += 1
            _pass_on(held, block)
        _pass_on(held, block)
        if now % 100 == 0 and now > window:
            found.append([len(each) for each in held])
    return Loads(np.array(found), wave)


def _pass_on(held: list[deque[int]], block: int) -> None:
    """Move blocks on while a worker has at least one block more than the next one."""
    moved = True
    while moved:
        moved = False
        for own, following in pairwise(held):
            # Of one row more, or one less, neither has more after it.
            if len(own) - len(following) >= max(2, block):
                following.extend(own.popleft() for _ in range(min(block, len(own))))
                moved = True


def by_utilization(most: int, thresholds: Thresholds) -> Callable[[float], int]:
    """Return the paper's choice of the rows of a block."""
    return lambda utilization: block_rows(utilization, thresholds, most)


def routed(wave: Wave, rows: int | None) -> Loads:
    """Return what wjoin's workers hold: in slices of so many rows on average, None for the hash of a key."""
    where = " WHERE C.cell = H.cell" if rows is None else ""
    text = f"SELECT C.cell FROM c C, h H WINDOW = {wave.window} SECONDS{where}"
    plan = plan_over(text, [stream_of({"cell": "bigint"})] * 2).physical
    (stage,) = plan.stages
    if rows is not None:
        length = max(1, round(rows / wave.rate * SECOND))
        stage = replace(stage, placement=Placement("psp", wave.workers, length))
    router = Router.to(plan.with_stage(0, stage), stage, 0, tuple(range(wave.workers)))
    times = wave.times()
    drawn = pa.array(np.random.default_rng(3).integers(0, 10_000, len(times)))
    block = block_of(plan, 0, {"ts": pa.array(times), "cell": drawn})
    come = np.zeros((wave.length, wave.workers), np.int64)
    for worker, share, role in router.parts(block.append_column("number", pa.array(np.arange(len(times))))):
        if role.stores:
            seconds = times[share.column("number").to_numpy()] // SPAN
            come[:, worker] += np.bincount(seconds, minlength=wave.length)[: wave.length]
    total = np.cumsum(np.vstack([np.zeros((1, wave.workers), np.int64), come]), axis=0)
    return Loads(total[wave.window + 1 :] - total[1 : -wave.window], wave)
