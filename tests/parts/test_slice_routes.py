"""Routes by slices of time or values: pairs in reach meet on one worker, no row goes where it need not."""

from collections import Counter
from itertools import combinations, product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wjoin.executor.bands import inside
from wjoin.executor.routing import Router, slices_of_times, slices_of_values
from wjoin.parts.routes.registry import ROUTES
from wjoin.parts.routes.route import Placement, Role, Slicing
from wjoin.planner.plan.checks import Band

Held = dict[int, set[int]]
"""By worker, the numbers of the rows that it stores or probes with."""


def shared_out(times: list[int], workers: int, view: Slicing) -> tuple[Held, Held, int]:
    """Return which rows each worker stores, with which it probes, and how many rows are counted."""
    stored: Held = {worker: set() for worker in range(workers)}
    probing: Held = {worker: set() for worker in range(workers)}
    of = np.array(times, np.int64)
    counted = 0
    for share in ROUTES["ctr"].shares(None, of, workers, slices_of_times(view, of)):
        assert share.rows is not None
        rows = set(share.rows.tolist())
        counted += len(rows) * share.role.counts
        for kept, held in ((share.role.stores, stored), (share.role.probes, probing)):
            if kept:
                assert not rows & held[share.worker]
                held[share.worker] |= rows
    return stored, probing, counted


REACH = st.none() | st.integers(0, 40)
TIMES = st.lists(st.integers(-100, 100), min_size=1, max_size=20)


@given(TIMES, st.integers(1, 12), st.integers(1, 12), st.integers(1, 30), REACH, REACH)
def test_rows_in_reach_meet_on_one_worker(
    times: list[int], workers: int, copies: int, length: int, back: int | None, ahead: int | None
) -> None:
    view = Slicing(Placement("ctr", length=length, copies=copies), back, ahead, sliced=True, visits=True)
    stored, probing, counted = shared_out(times, workers, view)
    assert counted == len(times)
    for row, time in enumerate(times):
        assert sum(row in held for held in stored.values()) == min(copies, workers)
        for other, when in enumerate(times):
            met = sum(other in stored[worker] and row in probing[worker] for worker in stored)
            near = (back is None or when >= time - back) and (ahead is None or when <= time + ahead)
            assert met == 1 if near else met <= 1


@given(
    TIMES, st.integers(1, 4), st.integers(2, 5), st.integers(1, 30), st.integers(0, 40), st.integers(0, 40)
)
def test_a_row_visits_the_fewest_workers_that_have_its_reach(
    times: list[int], copies: int, size: int, length: int, back: int, ahead: int
) -> None:
    """A least set cover, found by trying: the workers' own slices come by the row's reach at the most."""
    workers = copies * size
    view = Slicing(Placement("ctr", length=length, copies=copies), back, ahead, sliced=True, visits=True)
    _, probing, _ = shared_out(times, workers, view)
    for row, time in enumerate(times):
        first, last = (time - back) // length, (time + ahead) // length
        wanted = {each % workers for each in range(first, min(last, first + workers) + 1)}
        has = [{(worker - further) % workers for further in range(copies)} for worker in range(workers)]
        least = next(
            number
            for number in range(1, workers + 1)
            if any(wanted <= set().union(*few) for few in combinations(has, number))
        )
        assert sum(row in held for held in probing.values()) == least


@pytest.mark.parametrize(("workers", "copies", "idle"), [(6, 2, 0), (7, 2, 1), (5, 3, 2), (2, 9, 0)])
def test_workers_beyond_whole_groups_get_nothing(workers: int, copies: int, idle: int) -> None:
    view = Slicing(Placement("ctr", length=5, copies=copies), 10, 10, sliced=True, visits=True)
    stored, probing, _ = shared_out(list(range(200)), workers, view)
    assert [bool(stored[worker] | probing[worker]) for worker in range(workers)] == [True] * (
        workers - idle
    ) + [False] * idle


FRACTIONS = st.floats(width=64) | st.sampled_from(
    [0.0, -0.0, 1e300, -1e300, np.inf, -np.inf, np.nan, 2.0**60]
)
WHOLE = st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 20)


@given(
    st.lists(FRACTIONS, min_size=1, max_size=12) | st.lists(WHOLE, min_size=1, max_size=12),
    st.integers(1, 9),
    st.floats(-50, 50),
    st.floats(0.001, 50),
    st.floats(1, 9),
)
def test_values_that_a_band_allows_meet_on_one_worker(
    values: list[float], workers: int, low: float, width: float, widths: float
) -> None:
    """Of fractions and of whole numbers, also where a sum of them is rounded, infinite or NaN."""
    whole = isinstance(values[0], int)
    low, high = (int(low), int(low) + int(width)) if whole else (low, low + width)
    slack = 0.0 if whole else 2.0**-48
    length = max(1, int(widths * width)) if whole else widths * width
    array = np.array(values, np.int64 if whole else np.float64)
    # The right side of the band is stored, the left one probes.
    held: dict[int, set[int]] = {}
    placement = Placement("range", length=length)
    stored = Slicing(placement, -low, high, sliced=True, visits=True, column=(1, 0), slack=slack)
    for share in ROUTES["range"].shares(None, array.view(np.int64), workers, slices_of_values(stored, array)):
        assert share.rows is not None
        if share.role.stores:
            held.setdefault(share.worker, set()).update(share.rows.tolist())
    met: Counter[tuple[int, int]] = Counter()
    probing = Slicing(placement, high, -low, sliced=True, visits=True, column=(0, 0), slack=slack)
    for share in ROUTES["range"].shares(
        None, array.view(np.int64), workers, slices_of_values(probing, array)
    ):
        assert share.rows is not None
        met.update((row, other) for row in share.rows.tolist() for other in held.get(share.worker, ()))
    assert set(met.values()) <= {1}
    band = Band((0, 0), (1, 0), low, high, slack, checked=False)
    for row, other in product(range(len(array)), repeat=2):
        left, right = array[[row]], array[[other]]
        if inside(band, left, right)[0] and (np.isnan(left) == np.isnan(right)).all():
            assert met[row, other] == 1


def test_what_is_null_meets_nothing_and_is_counted() -> None:
    block = pa.RecordBatch.from_pydict({"t0": pa.array([1, 2, 3], pa.int64()), "c0_0": [5, None, 7]})
    view = Slicing(Placement("range", length=2), 1, 1, sliced=True, visits=True, column=(0, 0))
    parts = list(Router(0, 0, None, "range", (10, 11, 12), view, "c0_0").parts(block))
    passed = [(worker, part.column("t0").to_pylist()) for worker, part, role in parts if role is Role.PASSED]
    assert passed == [(10, [2])]
    counted = [time for _, part, role in parts if role.counts for time in part.column("t0").to_pylist()]
    assert sorted(counted) == [1, 2, 3]
