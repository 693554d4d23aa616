"""Windows as masks: which tuples keep the bounds between their event times."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from wjoin.parts.kernels.runs import GREATEST, LEAST, BoolArray, Int64Array, shifted
from wjoin.planner.plan.physical import Output
from wjoin.planner.plan.probes import window_checks
from wjoin.planner.plan.steps import WindowCheck
from wjoin.planner.windows.bounds import Windows

Times = Mapping[int, Int64Array]
"""The event times of tuples by stream, int64 of one length."""


def inside(checks: Iterable[WindowCheck], times: Times) -> BoolArray:
    """Return which tuples pass all checks."""
    keep = np.ones(len(next(iter(times.values()))), bool)
    for each in checks:
        keep &= times[each.second] <= shifted(times[each.first], each.upper, GREATEST)
        if each.upper < 0:
            # No time is that much earlier.
            keep &= times[each.first] >= LEAST - each.upper
    return keep


def within(windows: Windows, times: Times) -> BoolArray:
    """Return which tuples keep every bound of windows between the streams in ``times``."""
    return inside(window_checks(windows, times, times), times)


def within_any(alternatives: Sequence[Windows], times: Times) -> BoolArray:
    """Return which tuples keep every bound of one of some windows."""
    mask: BoolArray = np.logical_or.reduce([within(each, times) for each in alternatives])
    return mask


def wanted(output: Output, times: Times) -> BoolArray | None:
    """Return which tuples are results of an output, None for all."""
    if not output.windows:
        return None
    return within_any(output.windows, times)


def wanted_by_any(outputs: Sequence[Output], times: Times) -> BoolArray | None:
    """Return which tuples are results of some output, None for all."""
    masks = []
    for output in outputs:
        mask = wanted(output, times)
        if mask is None:
            return None
        masks.append(mask)
    together: BoolArray = np.logical_or.reduce(masks)
    return together
