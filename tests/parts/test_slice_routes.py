"""Routes by slices of time: every pair in reach meets on one worker, and no row goes where it need not."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wjoin.parts.routes.registry import ROUTES
from wjoin.parts.routes.route import Slicing

Held = dict[int, set[int]]
"""By worker, the numbers of the rows that it stores or probes with."""


def shared_out(times: list[int], workers: int, view: Slicing) -> tuple[Held, Held, int]:
    """Return which rows each worker stores, with which it probes, and how many rows are counted."""
    stored: Held = {worker: set() for worker in range(workers)}
    probing: Held = {worker: set() for worker in range(workers)}
    counted = 0
    for share in ROUTES["ctr"].shares(None, np.array(times, np.int64), workers, view):
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
    view = Slicing(length, back, ahead, sliced=True, visits=True, copies=copies)
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
    view = Slicing(length, back, ahead, sliced=True, visits=True, copies=copies)
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
    view = Slicing(5, 10, 10, sliced=True, visits=True, copies=copies)
    stored, probing, _ = shared_out(list(range(200)), workers, view)
    assert [bool(stored[worker] | probing[worker]) for worker in range(workers)] == [True] * (
        workers - idle
    ) + [False] * idle
