"""What W-join 2002 measures: its loads, and the joins that it compares."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from baselines import RIPPLE, XJOIN, AdaptedJoin
from loads import SECOND, STEP, Load, Stream, alternating, by_time, by_turns, steady, stream
from service import Join, KernelJoin
from window_plans import Choice, one_window, pair_windows, path, window_plan

from wjoin.parts.kernels.registry import KERNELS
from wjoin.planner.plan.physical import Passes
from wjoin.planner.plan.probes import arranged, chosen_orders
from wjoin.planner.plan.stage_kinds import Bounds
from wjoin.planner.windows.bounds import Windows

SEED = 2002
FAST, SLOW = 1000.0, 100.0
"""Rows a second of the fastest and the slowest stream where rates differ (section 4.3)."""

WINDOW = SECOND
PATH_WIDTHS = (SECOND // 2,) * 3

THE_PAPERS = ("hw", "mw", "nlw")
"""The kernels that the paper has; on the streams of its figures ADAPTIVE is one of them."""

Joins = Mapping[str, Callable[[], Join]]


@dataclass(frozen=True)
class Scale:
    """How much is measured: tuples of a run, and repetitions."""

    tuples: int
    repetitions: int


FULL = Scale(14_000, 3)
QUICK = Scale(6_000, 1)


# Loads


def timely(rates: Sequence[float], tuples: int, fill: int, seed: Sequence[int], step: int = STEP) -> Load:
    """Return streams of the given rates in order of time: so many tuples, after ``fill`` of event time."""
    end = fill + int(tuples / sum(rates) * SECOND)
    random = np.random.default_rng([SEED, *seed])
    counts = [int(1.5 * rate * end / SECOND) + 100 for rate in rates]
    rows = [stream(random, steady(rate), count) for rate, count in zip(rates, counts, strict=True)]
    return by_time([_covering(each, end) for each in rows], fill, step)


def in_turns(rates: Sequence[float], tuples: int, seed: Sequence[int]) -> Load:
    """Return streams of the given rates and one length, read in turns."""
    random = np.random.default_rng([SEED, *seed])
    return by_turns([stream(random, steady(rate), tuples // len(rates)) for rate in rates])


def one_changing(tuples: int, seed: Sequence[int]) -> Load:
    """Return four streams, the last of which goes from 1000 to 10 tuples/s and back every 100 tuples."""
    random = np.random.default_rng([SEED, *seed])
    end = WINDOW + int(tuples / (3 * FAST) * SECOND)
    others = [stream(random, steady(FAST), int(1.5 * FAST * end / SECOND)) for _ in range(3)]
    # Its two phases take 10 seconds on average.
    last = stream(random, alternating((FAST, 10.0), 100), 200 * (end // (5 * SECOND) + 2))
    return by_time([_covering(each, end) for each in (*others, last)], WINDOW)


def _covering(each: Stream, end: int) -> Stream:
    assert each.times[-1] >= end, "the stream is too short"
    return each.before(end)


# Joins


def five_joins(streams: int) -> Joins:
    """Return wjoin's kernels, and the two joins that the paper compares them with, on one window."""
    plans = {kernel: window_plan(streams, one_window(WINDOW), Choice(kernel)) for kernel in THE_PAPERS}
    return {
        "ripple": partial(AdaptedJoin, plans["nlw"], RIPPLE),
        "NLW": partial(KernelJoin, plans["nlw"]),
        "MW": partial(KernelJoin, plans["mw"]),
        "XJoin": partial(AdaptedJoin, plans["hw"], XJOIN),
        "HW": partial(KernelJoin, plans["hw"]),
    }


def bare_joins(streams: int) -> Joins:
    """Return wjoin's kernels over the baselines' buffers, cleaned after every micro-batch."""
    plans = {kernel: window_plan(streams, one_window(WINDOW), Choice(kernel)) for kernel in THE_PAPERS}
    return {
        f"{kernel.upper()} bare": partial(AdaptedJoin, plan, KERNELS[kernel], 1)
        for kernel, plan in plans.items()
    }


def bound_joins(kernels: Sequence[str], width: int, as_written: bool) -> Joins:
    """Return every bounds with some kernels: windows of ``width``, 1 second between A and B.

    ``as_written``: the plan keeps the windows of the statement, as the paper's do; else they
    are tightened by the paths over other streams.
    """
    joins: dict[str, Callable[[], Join]] = {}
    for kernel in kernels:
        for bounds in (Bounds.GCA, Bounds.LCA, Bounds.EXACT):
            plan = window_plan(4, pair_windows(4, width, SECOND), Choice(kernel, bounds))
            if as_written:
                orders = [chosen_orders(stage) for stage in plan.stages]
                plan = arranged(replace(plan, windows=_written(width)), orders)
            joins[f"{kernel.upper()} {bounds.name}"] = partial(KernelJoin, plan)
    return joins


def _written(width: int) -> Windows:
    def bound(first: int, second: int) -> int:
        if first == second:
            return 0
        return SECOND if {first, second} == {0, 1} else width

    return Windows.of([[bound(i, j) for j in range(4)] for i in range(4)])


PATH_CHOICES = {
    "NLW passes": Choice("nlw", Bounds.EXACT, Passes.UNION),
    "MW LCA": Choice("mw", Bounds.LCA, Passes.HULL),
    "NLW hull": Choice("nlw", Bounds.EXACT, Passes.HULL),
    "MW passes": Choice("mw", Bounds.EXACT, Passes.UNION),
    "MW hull": Choice("mw", Bounds.EXACT, Passes.HULL),
    "HW hull": Choice("hw", Bounds.EXACT, Passes.HULL),
}
"""The first two are the paper's."""


def path_joins() -> Joins:
    """Return the ways to find paths through four streams."""
    plans = {name: window_plan(4, path(PATH_WIDTHS), choice) for name, choice in PATH_CHOICES.items()}
    return {name: partial(KernelJoin, plan) for name, plan in plans.items()}
