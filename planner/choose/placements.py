"""On which workers the rows of a stage may lie: by which route, on how many, in slices of which length."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wjoin.grammar.join_kinds import JoinKind
from wjoin.parts.routes.registry import ROUTES, applicable, routes_of
from wjoin.parts.routes.route import Placement
from wjoin.planner.cost.approximate import BASE
from wjoin.planner.cost.psp import even
from wjoin.planner.plan.checks import Band
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.slicing import band_width, closed_bands, slice_length
from wjoin.planner.plan.stage_kinds import Join, Stage

Placements = Sequence[Placement | None]
"""Where the rows of each stage lie, None where in no slices."""

SLICES_OF_A_WORKER = 2
"""Slices that a worker gets of what a micro-batch brings, where short ones are to keep all workers busy."""


WIDTHS_OF_A_SLICE = 8
"""How many times a band's width a slice of its values is at the most: one row in eight visits two workers."""

FEWEST_COPIES = 2
"""Copies of a row, where a route keeps several and nothing says how many."""


@dataclass(frozen=True)
class Capacity:
    """What there is for workers: so many ``cores``, and ``span`` units of event time that come at once.

    ``workers`` and ``copies``: how many a hint asks for, None where it does not. ``heaviest``: by stage, the
    share of the rows or pairs that have the most frequent key, 1 where there is no key; ``buckets``: by
    stage, that of its code, None where it is not known. ``chained``: whether
    the stages are joins of two in a row only for the routes that need them.
    """

    cores: int
    span: float
    heaviest: tuple[float, ...]
    buckets: tuple[int | None, ...]
    workers: int | None = None
    copies: int | None = None
    chained: bool = False


def placements(plan: PhysicalPlan, number: int, room: Capacity, wished: str | None) -> tuple[Placement, ...]:
    """Return where a stage may have its rows, first what to prefer; ``wished``: the route of a hint."""
    stage = plan.stages[number]
    if plan.approximate is not None and wished is not None:
        names = routes_of(wished)
        if plan.approximate.messages is not None:
            # What visits all nodes is not what was asked for, unless by its name.
            names = tuple(name for name in names if name != BASE or name == wished)
        return tuple(Placement(name, room.workers) for name in names)
    alone = even(room.heaviest[number], room.cores) < room.cores
    names = tuple(
        name for name in _applicable(stage) if not ROUTES[name].heaviest or room.buckets[number] is not None
    )
    granted = wished in names
    if granted and stage.keyed and not ROUTES[str(wished)].heaviest:
        # A hint for slices is meant for the stages without a key, where there are some.
        granted = all(each.keyed for each in plan.stages)
    if granted and wished is not None:
        names = (wished,)
    elif room.chained and not stage.keyed and isinstance(stage, Join) and stage.kind is JoinKind.INNER:
        names = tuple(name for name in names if ROUTES[name].pairs)
    found: list[Placement] = []
    for name in names:
        if not ROUTES[name].slices:
            found.append(Placement(name))
        elif granted or (room.cores > 1 and alone):
            found += [
                each
                for workers in worker_numbers(room, wished=granted)
                for each in _slices(plan, number, name, workers, room)
            ]
    # On one core there is nothing to share out.
    return tuple(found) or (plain(stage),)


def plain(stage: Stage) -> Placement:
    """Return where the rows of a stage lie where nothing says more: by the route to prefer."""
    return Placement(_applicable(stage)[0])


def _applicable(stage: Stage) -> tuple[str, ...]:
    near, hop = bool(closed_bands(stage)), not isinstance(stage, Join)
    found = applicable(keyed=stage.keyed, inputs=len(stage.inputs), near=near, hop=hop)
    if isinstance(stage, Join) and stage.kind is not JoinKind.INNER:
        # One worker has all partners of a row whose partners are to be known.
        homes = len(masters(stage)) > 0
        return tuple(name for name in found if not ROUTES[name].slices or (homes and ROUTES[name].homes))
    return found


def masters(stage: Stage) -> Sequence[int]:
    """Return the inputs whose rows may be the ones in slices, where a route copies those of the others.

    Those that wait until all their partners are known; none where that are the rows of both inputs.
    """
    if not isinstance(stage, Join) or stage.kind is JoinKind.INNER:
        return range(len(stage.inputs))
    waiting = (0,) if stage.nearest is not None else tuple(stage.kind.preserved)
    return waiting if len(waiting) == 1 else ()


def worker_numbers(room: Capacity, *, wished: bool) -> tuple[int | None, ...]:
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


def _slices(
    plan: PhysicalPlan, number: int, route: str, workers: int | None, room: Capacity
) -> Iterator[Placement]:
    """Yield where the rows of a stage may lie on so many workers by a route."""
    stage = plan.stages[number]
    if ROUTES[route].values:
        band = min(closed_bands(stage), key=lambda each: stage.bands[each].share.value)
        cut = _range(stage.bands[band], workers or room.cores)
        yield Placement(route, workers, cut, band=band)
        return
    if ROUTES[route].heaviest:
        yield Placement(route, workers, bucket=room.buckets[number])
        return
    for master in (0,) if ROUTES[route].visits else masters(stage):
        for copies in _copies(route, workers, room):
            for length in _lengths(plan, stage, route, workers or room.cores, room):
                yield Placement(route, workers, length, copies, master=master)


def _range(band: Band, workers: int) -> int | float:
    """Return how long a slice of a band's values is to be: several times the band, so that rows visit few
    workers, but short enough for each worker to have some of all values."""
    width = band_width(band)
    length = WIDTHS_OF_A_SLICE * width
    if band.share.value:
        length = min(length, max(width, width / band.share.value / (SLICES_OF_A_WORKER * workers)))
    return length if band.slack else int(length)


def _copies(route: str, workers: int | None, room: Capacity) -> Iterator[int]:
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


def _lengths(
    plan: PhysicalPlan, stage: Stage, route: str, workers: int, room: Capacity
) -> Iterator[int | None]:
    yield None
    if not ROUTES[route].visits:
        # Rows are copied to the slices that they reach: long ones cost few copies, short ones keep all busy.
        short = max(1, int(room.span / (SLICES_OF_A_WORKER * workers)))
        if short < slice_length(plan, stage, route):
            yield short
