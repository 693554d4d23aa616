"""Slices of event time or of values: how long they are, what rows can reach (PSP 2009, sections 4 and 7)."""

from dataclasses import replace

import numpy as np

from wjoin.parts.routes.registry import ROUTES
from wjoin.parts.routes.route import Placement, Role, Slices, Slicing
from wjoin.planner.plan.checks import Band
from wjoin.planner.plan.physical import PhysicalPlan, windows_of
from wjoin.planner.plan.stage_kinds import Hop, Stage, meeting

SLICES_OF_A_WINDOW = 1669
"""Slices of the longest window, of a route whose rows visit several: so many workers share it at the most.

Many, so that a burst of rows has several of them. A prime number: where a whole number of slices goes into a
second, rows with times in whole seconds lie on a few workers.
"""

WINDOWS_OF_A_SLICE = 4
"""Windows in a slice of a route that copies rows to all slices that they reach."""

_LATE = 7 / 8
"""Where in its slice a row is that is drawn."""

_FURTHEST = 1 << 40

_ENDLESS = 1 << 32
"""The length of a slice where a window is open on one side, in the plan's unit."""


def slice_length(plan: PhysicalPlan, stage: Stage, route: str) -> int | float:
    """Return the length of the slices that the windows of a stage ask for by a route, in the plan's unit.

    Of a route by values, the width of the band by which they are cut.
    """
    if ROUTES[route].values:
        return band_width(cut_by(stage))
    firsts = stage.members if isinstance(stage, Hop) else tuple(each.members[0] for each in stage.inputs)
    windows = windows_of(plan, stage)
    bounds = [windows.between(one, other) for one in firsts for other in firsts if one != other]
    known = [abs(bound) for bound in bounds if bound is not None]
    if len(known) < len(bounds):
        return _ENDLESS
    longest = max(1, *known)
    return max(1, longest // SLICES_OF_A_WINDOW) if ROUTES[route].visits else WINDOWS_OF_A_SLICE * longest


def cut(plan: PhysicalPlan, stage: Stage) -> Placement:
    """Return where the rows of a stage lie, in slices as long as its windows ask where that is open."""
    where = stage.placement
    if not ROUTES[where.route].slices:
        return replace(where, length=None)
    return (
        where if where.length is not None else replace(where, length=slice_length(plan, stage, where.route))
    )


def kept_anywhere(plan: PhysicalPlan, stage: Stage, workers: int) -> bool:
    """Return whether any of so many workers may keep a row, as all that may meet it visit every worker."""
    if not ROUTES[stage.placement.route].anywhere:
        return False
    views = (slicing(plan, stage, number) for number in range(len(stage.inputs)))
    return all(each is not None and (not each.probes or _met_by_all(each, workers)) for each in views)


def _met_by_all(view: Slicing, workers: int) -> bool:
    """Return whether rows come to every worker, or stay where rows of all others come."""
    if view.sliced and not view.visits:
        return True
    return view.back is None or view.ahead is None or (view.back + view.ahead) // view.length >= workers


def closed_bands(stage: Stage) -> tuple[int, ...]:
    """Return the numbers of the bands by whose values the rows of a stage of two inputs can be cut."""
    if len(stage.inputs) != 2:
        return ()
    members = stage.inputs[0].members
    return tuple(
        number
        for number, band in enumerate(stage.bands)
        # NaN and what is infinite meet only their like where both sides are closed.
        if band.low is not None
        and band.high is not None
        # A slice is at least as long as the band is wide.
        and (not band.slack or band.high > band.low)
        and (band.left[0] in members) != (band.right[0] in members)
    )


def cut_by(stage: Stage) -> Band:
    """Return the band by whose values the rows of a stage are cut."""
    return stage.bands[closed_bands(stage)[0] if stage.placement.band is None else stage.placement.band]


def band_width(band: Band) -> int | float:
    """Return how far apart the bounds of a closed band are; of whole numbers at least 1."""
    low, high = _closed(band)
    return high - low if band.slack else max(1, int(high - low))


def _closed(band: Band) -> tuple[int | float, int | float]:
    """Return both bounds of a band. Raises ValueError for one that is open."""
    if band.low is None or band.high is None:
        raise ValueError("values are cut by a band that is closed on both sides")
    return band.low, band.high


def slicing(plan: PhysicalPlan, stage: Stage, number: int) -> Slicing | None:
    """Return the slices as the rows of input ``number`` see them: what the first of its streams can reach."""
    where = stage.placement
    if where.length is None:
        return None
    # Over tables what is kept is kept for a stretch only, and copies cost no state.
    visits = ROUTES[where.route].visits and plan.streaming
    kept = visits or number == where.master
    if ROUTES[where.route].values:
        band = cut_by(stage)
        low, high = _closed(band)
        if band.left[0] in stage.inputs[number].members:
            own, back, ahead = band.left, high, -low
        else:
            own, back, ahead = band.right, -low, high
        return Slicing(where, back, ahead, kept, visits, own, band.slack)
    if isinstance(stage, Hop):
        return _hop_slicing(plan, stage, number)
    first = stage.inputs[number].members[0]
    # Rows of two inputs reach each other; of more than two, only the master is sliced.
    master = where.master if number != where.master else int(where.master == 0)
    other = stage.inputs[master].members[0]
    windows = windows_of(plan, stage)
    back_in_time, ahead_in_time = windows.between(other, first), windows.between(first, other)
    return Slicing(where, back_in_time, ahead_in_time, kept, visits)


def cut_stream(plan: PhysicalPlan, stage: Stage, number: int) -> int:
    """Return the stream whose event times say in which slices rows of input ``number`` are, and reach.

    Of a partial result that which can reach least of what it is to meet.
    """
    each = stage.inputs[number]
    if not isinstance(stage, Hop) or len(each.members) == 1:
        return each.members[0]

    def width(member: int) -> float:
        back, ahead = _reach(plan, stage, number, member)
        return _FURTHEST if back is None or ahead is None else back + ahead

    return min(each.members, key=width)


def _hop_slicing(plan: PhysicalPlan, stage: Hop, number: int) -> Slicing:
    """Return the slices as the rows of an input of a hop see them."""
    meets = stage.meets[number]
    back, ahead = _reach(plan, stage, number, cut_stream(plan, stage, number)) if meets else (0, 0)
    kept = bool(meeting(stage, number))
    return Slicing(stage.placement, back, ahead, sliced=True, visits=True, stored=kept, probes=bool(meets))


def _reach(plan: PhysicalPlan, stage: Hop, number: int, stream: int) -> tuple[int | None, int | None]:
    """Return how far before and after the rows of a stream those may be that input ``number`` meets."""
    met = [member for other in stage.meets[number] for member in stage.inputs[other].members]
    windows = plan.windows
    return windows.widest((other, stream) for other in met), windows.widest((stream, other) for other in met)


def roles(plan: PhysicalPlan, stage: Stage, number: int, place: int, workers: int) -> dict[int, Role]:
    """Return as what workers, by their numbers below ``workers``, get a row of input ``number``.

    Its time is late in the slice ``place``, where it can reach the next one. Raises ValueError for a stage
    without slices.
    """
    view = slicing(plan, stage, number)
    if view is None:
        raise ValueError("the rows of a stage without slices lie by their keys")
    own = (place + _LATE) * view.length
    first = -_FURTHEST if view.back is None else int((own - view.back) // view.length)
    last = _FURTHEST if view.ahead is None else int((own + view.ahead) // view.length)
    slices = Slices(view, *(np.array([each], np.int64) for each in (place, first, last)))
    time = np.zeros(1, np.int64)
    return {
        share.worker: share.role
        for share in ROUTES[stage.placement.route].shares(None, time, workers, slices)
    }
