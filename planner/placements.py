"""On which workers the rows of a stage may lie: by which route, on how many, in slices of which length."""

from collections.abc import Iterator
from dataclasses import dataclass

from wjoin.parts.routes.registry import ROUTES, applicable
from wjoin.planner.cost.psp import even
from wjoin.planner.physical import PhysicalPlan, Stage
from wjoin.planner.slices import slice_length

SLICES_OF_A_WORKER = 2
"""Slices that a worker gets of what a micro-batch brings, where short ones are to keep all workers busy."""


FEWEST_COPIES = 2
"""Copies of a row, where a route keeps several and nothing says how many."""


@dataclass(frozen=True)
class Placement:
    """A route by its name, and of one by slices how many workers share them (None for all) and their length.

    ``length`` is in the plan's unit of time, None for what the windows ask. ``copies``: on how many workers
    each slice lies.
    """

    route: str
    workers: int | None = None
    length: int | None = None
    copies: int = 1


@dataclass(frozen=True)
class Room:
    """What there is for workers: so many ``cores``, and ``span`` units of event time that come at once.

    ``workers`` and ``copies``: how many a hint asks for, None where it does not. ``heaviest``: by stage, the
    share of the rows or pairs that have the most frequent key, 1 where there is no key. ``chained``: whether
    the stages are joins of two in a row only for the routes that need them.
    """

    cores: int
    span: float
    heaviest: tuple[float, ...]
    workers: int | None = None
    copies: int | None = None
    chained: bool = False


def placements(plan: PhysicalPlan, number: int, room: Room, wished: str | None) -> tuple[Placement, ...]:
    """Return where a stage may have its rows, first what to prefer; ``wished``: the route of a hint."""
    stage = plan.stages[number]
    alone = even(room.heaviest[number], room.cores) < room.cores
    names = applicable(keyed=stage.keyed, inputs=len(stage.inputs))
    # A hint for slices is meant for the stages without a key, where there are some.
    granted = wished in names and (not stage.keyed or all(each.keyed for each in plan.stages))
    if granted and wished is not None:
        names = (wished,)
    elif room.chained and not stage.keyed:
        names = tuple(name for name in names if ROUTES[name].pairs)
    found: list[Placement] = []
    for name in names:
        if not ROUTES[name].slices:
            found.append(Placement(name))
        elif granted or (room.cores > 1 and alone):
            found += [
                Placement(name, workers, length, copies)
                for workers in worker_numbers(room, wished=granted)
                for copies in _copies(name, workers, room)
                for length in _lengths(plan, stage, name, workers or room.cores, room)
            ]
    return tuple(found)


def worker_numbers(room: Room, *, wished: bool) -> tuple[int | None, ...]:
    """Return on how many workers to weigh a route by slices: as many as a hint says, else powers of two.

    Beyond the number of cores there is nothing to gain (PSP 2009, equation 5).
    """
    if room.workers is not None:
        return (room.workers,)
    numbers: list[int | None] = [None] if wished else []
    number = 2
    while number < room.cores:
        numbers.append(number)
        number *= 2
    return (*numbers, room.cores) if room.cores > 1 else tuple(numbers)


def _copies(route: str, workers: int | None, room: Room) -> Iterator[int]:
    """Yield on how many workers to keep a slice: every group that has all of them is two workers or more."""
    if not ROUTES[route].copies:
        yield 1
    elif room.copies is not None:
        yield room.copies
    elif workers is None:
        yield FEWEST_COPIES
    else:
        copies = FEWEST_COPIES
        while 2 * copies <= workers:
            if workers % copies == 0:
                yield copies
            copies *= 2


def _lengths(plan: PhysicalPlan, stage: Stage, route: str, workers: int, room: Room) -> Iterator[int | None]:
    yield None
    if not ROUTES[route].visits:
        # Rows are copied to the slices that they reach: long ones cost few copies, short ones keep all busy.
        short = max(1, int(room.span / (SLICES_OF_A_WORKER * workers)))
        if short < slice_length(plan, stage, route):
            yield short
