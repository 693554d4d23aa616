"""Trials of a predicate: called for some pairs of rows, to see what a pair takes and how many are kept."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import pyarrow as pa

from wjoin.executor.pair_calls import CALL_BYTES, holds
from wjoin.parts.kernels.runs import Int64Array
from wjoin.udfs.predicate import Predicate

SECONDS = 0.2
"""About how long a trial may take."""

PAIRS = 4096
"""The most pairs that are tried."""

_BLOCK_SECONDS = 0.005
"""Blocks grow until one takes so long: what a call costs beside its pairs is then little of it."""

_BLOCKS = 3
_LEAST_COST_US = 1e-3
_SEED = 2009


@dataclass(frozen=True)
class SampleColumn:
    """Values of an argument: a column of the sample of a stream's rows."""

    stream: int
    values: pa.Array


@dataclass(frozen=True)
class Found:
    """What a trial has shown: microseconds of one core for a pair, and the share of ``pairs`` that is kept.

    Where none was kept, the share is that of half a pair.
    """

    cost_us: float
    share: float
    pairs: int


def trial(
    predicate: Predicate,
    arguments: Sequence[SampleColumn | bool | int | float | str],
    asked: bool | Sequence[tuple[str, float]],
    same: Sequence[tuple[int, int]] = (),
    seconds: float = SECONDS,
) -> Found | None:
    """Return what calls for pairs of sampled rows show, None where there is no pair.

    ``same`` are streams whose samples are the same rows: none is paired with itself. The first call is not
    timed, as it may load what the function needs. Raises what ``holds`` raises.
    """
    columns = [each for each in arguments if isinstance(each, SampleColumn)]
    chosen = _combinations({each.stream: len(each.values) for each in columns}, same)
    count = len(next(iter(chosen.values())))
    if not count:
        return None

    def called(place: int, size: int) -> tuple[float, int]:
        """Return the seconds of a call for some pairs, and how many of those not seen before are kept."""
        numbers = np.arange(place, place + size) % count
        given = [
            each.values.take(pa.array(chosen[each.stream][numbers]))
            if isinstance(each, SampleColumn)
            else each
            for each in arguments
        ]
        start = time.perf_counter()
        held = holds(predicate, given, asked)
        return time.perf_counter() - start, int(held[: max(0, count - place)].sum())

    greatest = min(count, max(1, CALL_BYTES // max(1, sum(_value_bytes(each) for each in columns))))
    end = time.perf_counter() + seconds
    size, place = 1, 1
    _, kept = called(0, 1)
    timed: dict[int, list[float]] = {}
    while not timed or (time.perf_counter() < end and (len(timed[max(timed)]) < _BLOCKS or place < count)):
        took, held = called(place, size)
        timed.setdefault(size, []).append(took / size)
        kept, place = kept + held, place + size
        if took < _BLOCK_SECONDS:
            size = min(4 * size, greatest)
    cost = 1e6 * median(timed[max(timed)])
    seen = min(place, count)
    return Found(max(cost, _LEAST_COST_US), max(kept, 0.5) / seen, seen)


def _combinations(sizes: Mapping[int, int], same: Sequence[tuple[int, int]]) -> dict[int, Int64Array]:
    """Return numbers of rows of each stream: combinations drawn by chance, always the same ones."""
    chance = np.random.default_rng(_SEED)
    total = int(np.prod([*sizes.values()], dtype=np.float64))
    # Most of few are drawn without repetition, some of many with next to none.
    few = total <= 16 * PAIRS
    drawn = chance.permutation(total) if few else chance.integers(0, max(1, total), 2 * PAIRS)
    rows: dict[int, Int64Array] = {}
    for stream, size in sizes.items():
        drawn, rows[stream] = np.divmod(drawn, max(1, size))
    apart = np.ones(len(drawn), bool)
    for first, second in same:
        apart &= rows[first] != rows[second]
    return {stream: numbers[apart][:PAIRS] for stream, numbers in rows.items()}


def _value_bytes(column: SampleColumn) -> int:
    return int(column.values.nbytes) // max(1, len(column.values))
