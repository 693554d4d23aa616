"""ADAPTIVE: not a kernel, but a choice between HW and MW that each worker makes anew in each micro-batch,
as what has arrived at it asks (W-join 2002, 3.1.2 and 3.2).

MW compares a tuple with all rows in its time range, HW with those of its key; finding these takes
about as long as comparing one more row. So MW is taken where the windows are so narrow, or the
keys so few, that there is little to save.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from wjoin.parts.kernels.hash_window import HashWindow
from wjoin.parts.kernels.merge_window import MergeWindow
from wjoin.parts.kernels.runs import Int64Array, SortedRun

NAME = "adaptive"
AMONG = (HashWindow.name, MergeWindow.name)
"""The kernels to choose from; a worker begins with the first."""

WORDS = "looks up by key or by time first, chosen per worker"
MEANING = "hw or mw, chosen per worker"

CHANGE = 2.0
"""How many times fewer comparisons the other kernel must promise: a change sorts the state anew."""

LEAST_ROWS = 64
"""Rows of an input below which a micro-batch tells nothing."""

_SAMPLE = 1024


@dataclass(frozen=True)
class Meeting:
    """New rows of two inputs, of which the first look for the second from ``back`` before to ``ahead``
    after their time; None where that is open."""

    probing: SortedRun
    target: SortedRun
    back: int | None
    ahead: int | None


def preferred(meetings: Iterable[Meeting], current: str) -> str:
    """Return the kernel for rows like these.

    It is ``current`` where little has arrived, or where the other is not much better.
    """
    hash_window, merge_window = AMONG
    period = matching = 0.0
    for each in meetings:
        if min(each.probing.rows, each.target.rows) < LEAST_ROWS:
            continue
        rows = _rows_in_range(each)
        period += each.probing.rows * rows
        matching += each.probing.rows * (1 + rows * _same_key(each.probing, each.target))
    if current == merge_window:
        return hash_window if period > CHANGE * matching else merge_window
    return merge_window if 0 < CHANGE * period < matching else hash_window


def _rows_in_range(meeting: Meeting) -> float:
    """Return the rows in the time range of one tuple, at the rate of those that have arrived."""
    earliest, latest = meeting.target.span
    back, ahead = meeting.back, meeting.ahead
    length = latest - earliest if back is None or ahead is None else back + ahead
    return meeting.target.rows / max(1, latest - earliest) * max(0, length)


def _same_key(first: SortedRun, second: SortedRun) -> float:
    """Return the share of pairs of rows with one key."""
    values, counts = _sampled_codes(first)
    others, other_counts = _sampled_codes(second)
    _, left, right = np.intersect1d(values, others, assume_unique=True, return_indices=True)
    return float((counts[left] * other_counts[right]).sum()) / _SAMPLE**2


def _sampled_codes(run: SortedRun) -> tuple[Int64Array, Int64Array]:
    """Return codes of a run and how often each stands in a sample."""
    places = np.linspace(0, run.rows - 1, _SAMPLE).astype(np.int64)
    return np.unique(run.codes[places], return_counts=True)
