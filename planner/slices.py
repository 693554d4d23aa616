"""Slices of event time: how long they are, and what rows can reach (PSP 2009, sections 4 and 7)."""

from wjoin.parts.routes.registry import ROUTES
from wjoin.parts.routes.route import Slicing
from wjoin.planner.physical import PhysicalPlan, Stage

SLICES_OF_A_WINDOW = 64
"""Slices of the longest window, of a route whose rows visit several: so many workers share it at the most."""

WINDOWS_OF_A_SLICE = 4
"""Windows in a slice of a route that copies rows to all slices that they reach."""

_ENDLESS = 1 << 32
"""The length of a slice where a window is open on one side, in the plan's unit."""


def slice_length(plan: PhysicalPlan, stage: Stage, route: str) -> int:
    """Return the length of the slices that the windows of a stage ask for by a route, in the plan's unit."""
    firsts = [each.members[0] for each in stage.inputs]
    bounds = [plan.upper[one][other] for one in firsts for other in firsts if one != other]
    known = [abs(bound) for bound in bounds if bound is not None]
    if len(known) < len(bounds):
        return _ENDLESS
    longest = max(1, *known)
    return max(1, longest // SLICES_OF_A_WINDOW) if ROUTES[route].visits else WINDOWS_OF_A_SLICE * longest


def sliced(plan: PhysicalPlan, stage: Stage) -> int | None:
    """Return the length of the slices of a stage: its own, or what its windows ask for."""
    if not ROUTES[stage.route].slices:
        return None
    return slice_length(plan, stage, stage.route) if stage.slice is None else stage.slice


def slicing(plan: PhysicalPlan, stage: Stage, number: int) -> Slicing | None:
    """Return the slices as the rows of input ``number`` see them: what the first of its streams can reach."""
    if stage.slice is None:
        return None
    own = stage.inputs[number].members[0]
    # Rows of two inputs reach each other; of more than two, only the first input is sliced.
    other = stage.inputs[1 if number == 0 else 0].members[0]
    # Over tables what is kept is kept for a stretch only, and copies cost no state.
    visits = ROUTES[stage.route].visits and plan.streaming
    back, ahead = plan.upper[other][own], plan.upper[own][other]
    return Slicing(stage.slice, back, ahead, visits or number == 0, visits, stage.copies)
