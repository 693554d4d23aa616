"""Streams as in W-join 2002, section 4.2: integers of a small set that arrive at random, in micro-batches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from wjoin.executor.arrivals import Arrivals
from wjoin.parts.kernels.runs import Int64Array
from wjoin.parts.routes.route import Role
from wjoin.planner.plan.block_columns import code_name, time_name

SECOND = 1_000_000
"""Event times are microseconds."""

STEP = SECOND // 10
"""Event time of a micro-batch."""

TURN = 100
"""Rows of each stream in a micro-batch where the streams are read in turns."""

VALUES = 1000
"""How many distinct values the streams have: at 1000 tuples/s, one match a second and stream."""


@dataclass(frozen=True)
class Stream:
    """The rows of one stream: event times, ascending, and values; int64 of one length."""

    times: Int64Array
    values: Int64Array

    def before(self, end: int) -> "Stream":
        """Return the rows before time ``end``."""
        count = int(np.searchsorted(self.times, end))
        return Stream(self.times[:count], self.values[:count])


@dataclass(frozen=True)
class Load:
    """Micro-batches of several streams; the first ``fill`` of them only fill the windows."""

    batches: tuple[Arrivals, ...]
    fill: int

    @property
    def rows(self) -> Int64Array:
        """The rows of each micro-batch, int64."""
        sizes = (sum(block.num_rows for group in each.blocks for _, block in group) for each in self.batches)
        return np.fromiter(sizes, np.int64, len(self.batches))


Gaps = Callable[[np.random.Generator, int], Int64Array]
"""Makes the times between the first rows of a stream, so many as are asked for."""


def steady(rate: float) -> Gaps:
    """Return gaps with an exponential distribution, ``rate`` rows a second on average."""

    def gaps(random: np.random.Generator, count: int) -> Int64Array:
        return np.rint(random.exponential(SECOND / rate, count)).astype(np.int64)

    return gaps


def alternating(rates: Sequence[float], every: int) -> Gaps:
    """Return exponential gaps whose rate changes to the next one every so many rows, round and round."""

    def gaps(random: np.random.Generator, count: int) -> Int64Array:
        turns = np.arange(count) // every % len(rates)
        return np.rint(random.exponential(SECOND / np.asarray(rates)[turns])).astype(np.int64)

    return gaps


def rates_between(fastest: float, slowest: float, count: int) -> list[float]:
    """Return the rates of ``count`` streams, from the fastest to the slowest in equal ratios."""
    return [float(rate) for rate in np.geomspace(fastest, slowest, count)]


def stream(random: np.random.Generator, gaps: Gaps, count: int) -> Stream:
    """Return the first ``count`` rows of a stream."""
    return Stream(np.cumsum(gaps(random, count)), random.integers(0, VALUES, count))


def by_time(streams: Sequence[Stream], fill: int, step: int = STEP) -> Load:
    """Cut the streams every ``step`` of event time, as when every row arrives at its time.

    The micro-batches before time ``fill`` only fill the windows.
    """
    end = max(int(each.times[-1]) for each in streams if len(each.times)) + 1
    edges = np.arange(0, end + step, step)
    places = [np.searchsorted(each.times, edges) for each in streams]
    return Load(_batches(streams, places), -(-fill // step))


def by_turns(streams: Sequence[Stream]) -> Load:
    """Cut the streams after TURN rows of each: whichever its rate, no stream is read further than another."""
    longest = max(len(each.times) for each in streams)
    edges = np.arange(0, longest + TURN, TURN)
    return Load(_batches(streams, [np.minimum(edges, len(each.times)) for each in streams]), 0)


def _batches(streams: Sequence[Stream], places: Sequence[Int64Array]) -> tuple[Arrivals, ...]:
    """Return the micro-batches between places; ``places[i]`` are row numbers of stream i."""
    found = []
    for cuts in zip(*(pairwise(each.tolist()) for each in places), strict=True):
        arrivals = Arrivals([[] for _ in streams])
        for number, (each, (start, end)) in enumerate(zip(streams, cuts, strict=True)):
            if end > start:
                arrivals.blocks[number].append((Role.BOTH, _block(number, each, start, end)))
                arrivals.seen[number] = int(each.times[end - 1])
        if arrivals.seen:
            found.append(arrivals)
    return tuple(found)


def _block(number: int, each: Stream, start: int, end: int) -> pa.RecordBatch:
    """Return the rows from ``start`` to ``end`` of a stream as they reach a worker."""
    return pa.RecordBatch.from_pydict(
        {
            time_name(number): pa.array(each.times[start:end]),
            code_name(number, 0): pa.array(each.values[start:end]),
        }
    )
