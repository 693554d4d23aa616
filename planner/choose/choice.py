"""Which values the parts of a plan may take: what hints and settings ask, else all that can apply."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.hints import APPROXIMATE, HINTS, OFF, SHIP
from wjoin.grammar.join_kinds import JoinKind
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import SelectBlock
from wjoin.parts.kernels.kernel import Refusal
from wjoin.parts.kernels.registry import KERNELS, kernels_of, refusal_of
from wjoin.parts.routes.registry import APPROXIMATE as ANY_APPROXIMATE
from wjoin.parts.routes.registry import ROUTES, routes_of
from wjoin.parts.routes.route import Placement
from wjoin.planner.catalog import Relation
from wjoin.planner.choose.held_streams import entered
from wjoin.planner.choose.native_method import native_refusal
from wjoin.planner.choose.placements import Capacity, Placements, masters, placements, plain
from wjoin.planner.plan.physical import Method, Passes, PhysicalPlan, Shipping
from wjoin.planner.plan.reach import reach
from wjoin.planner.plan.stage_kinds import Bounds, Hop, Join, Stage
from wjoin.planner.shape.decompose import Decomposition
from wjoin.planner.windows.window_graph import WindowGraph

PLANS: Mapping[str, Mapping[str, str]] = {
    "MULTIWAY": {"METHOD": Method.MULTIWAY.value},
    "NATIVE": {"METHOD": Method.NATIVE.value},
    **{
        name.upper(): {"METHOD": Method.MULTIWAY.value, "ROUTE": name}
        for name, route in ROUTES.items()
        if route.slices or route.approximate
    },
    "SEMIJOIN": {"METHOD": Method.MULTIWAY.value, SHIP: Shipping.PARTIAL.value},
    "SIMPLE": {"METHOD": Method.MULTIWAY.value, SHIP: Shipping.FULL.value},
}
"""What the values of the hint PLAN ask of the parts of a plan: METHOD, ROUTE by its name, and SHIP."""

Kernels = tuple[str, ...]
"""What a stage may use: one kernel, or those among which its workers choose."""


@dataclass(frozen=True)
class Alternatives:
    """The values that each part of a plan may take, the one to prefer first.

    ``kernels`` and ``placements`` are by stage. ``by_hint`` are methods that could run the join, but are
    taken where a hint asks only.
    """

    bounds: tuple[Bounds, ...]
    kernels: tuple[tuple[Kernels, ...], ...]
    placements: tuple[tuple[Placement, ...], ...]
    passes: tuple[Passes, ...]
    methods: tuple[Method, ...]
    by_hint: tuple[Method, ...] = ()


@dataclass(frozen=True)
class Wish:
    """A value that a hint asks for, or a setting where ``span`` is None; ``part``: for a part of the plan.

    ``part`` is the value's own name, but for the hint PLAN, which stands for several parts.
    """

    name: str
    value: str
    span: Span | None
    part: str

    @classmethod
    def of(cls, name: str, value: str, span: Span | None = None) -> "Wish":
        """Return the wish for a value of hint ``name``, as it is written."""
        return cls(name, value.upper(), span, value.lower())

    def refused(self, reason: str, remedy: str) -> WJoinError:
        """Return the error that says why the wish cannot be granted."""
        subject = f"SET wjoin.{self.name.lower()}" if self.span is None else f"{self.name}({self.value})"
        return WJoinError("WJ504", f"{subject} cannot apply: {reason}", span=self.span, help=remedy)


def check_setting(name: str, value: str) -> None:
    """Check a session default for hint ``name``; raises WJoinError WJ603."""
    if value.upper() not in HINTS[name]:
        known = ", ".join(each.lower() for each in HINTS[name])
        message = f"wjoin.{name.lower()} has no value {value}"
        raise WJoinError("WJ603", message, help=f"known: {known}")


def options(
    block: SelectBlock,
    settings: Mapping[str, str],
    draft: Decomposition,
    graph: WindowGraph,
    plan: PhysicalPlan,
    *,
    relations: Sequence[Relation],
    room: Capacity,
    kept: Placements | None = None,
) -> Alternatives:
    """Return what a plan over the stages of ``draft`` may choose from; ``plan`` is one of them.

    ``settings`` are session defaults by the name of the hint, ``room`` what there is for workers,
    ``kept`` where the rows of stages lie already, None where nothing is kept. Raises
    WJoinError WJ504 for a wish that cannot be granted.
    """
    wishes = _wishes(block, settings, approximate=plan.approximate is not None)
    method, refusal = wishes.get("METHOD"), native_refusal(plan, draft, graph, relations)
    if method is not None and method.part == Method.NATIVE.value:
        _require_native(method, wishes, refusal)
        # Session defaults of what wjoin's own stages choose do not matter to Spark's joins.
        wishes = {"METHOD": method}
    if plan.optional:
        streaming = any(each.streaming for each in relations)
        route = wishes.get("ROUTE")
        # What a session prefers is for joins that can have it.
        route = route if route is not None and route.span is not None and _can_share(route, plan) else None
        places = _placements(route, plan, _wished_room(block, route, room), kept)
        return _of_outer(wishes, plan, graph, refusal, places, streaming=streaming)
    return Alternatives(
        _bounds(wishes.get("BOUNDS"), graph, plan.staged),
        _kernels(wishes.get("ALGORITHM"), plan.stages),
        _placements(wishes.get("ROUTE"), plan, _wished_room(block, wishes.get("ROUTE"), room), kept),
        _passes_of(wishes.get("PASSES"), graph, plan),
        *_methods(wishes, relations, native=bool(draft.stages) and refusal is None),
    )


def _of_outer(
    wishes: Mapping[str, Wish],
    plan: PhysicalPlan,
    graph: WindowGraph,
    refusal: tuple[str, str] | None,
    places: tuple[tuple[Placement, ...], ...],
    *,
    streaming: bool,
) -> Alternatives:
    """Return the values for joins that are not all inner ones; ``places``: where the rows of each may lie."""
    method, bounds, route = wishes.get("METHOD"), wishes.get("BOUNDS"), wishes.get("ROUTE")
    kind, asof = plan.kind.words, plan.asof
    ours = streaming or asof or bool(plan.counted)
    only = Method.MULTIWAY if ours else Method.NATIVE
    if not ours and refusal is not None:
        raise WJoinError("WJ107", f"{kind} of tables is Spark's own: {refusal[0]}")
    if method is not None and method.part != only.value and method.span is not None:
        raise method.refused(f"Spark's own joins run {kind} of tables", "leave it out")
    if bounds is not None and bounds.part != Bounds.EXACT.value and bounds.span is not None:
        # What has no partner is told when it need not be kept: wider bounds would tell it later.
        raise bounds.refused(f"{kind} needs exact bounds to decide", "leave it out")
    if route is not None and route.span is not None and not _can_share(route, plan):
        remedy = "use PLAN(ATR), or leave it out" if _shares_waiting(plan) else "leave it out"
        raise route.refused(f"{kind} needs all partners of a row on one worker", remedy)
    algorithm, union = wishes.get("ALGORITHM"), wishes.get("PASSES")
    if not ours and algorithm is not None:
        if algorithm.span is not None:
            raise algorithm.refused(f"Spark's own joins run {kind} of tables", "leave it out")
        algorithm = None
    passes = _passes(union, graph)
    if asof and union is not None and union.span is not None and passes == (Passes.UNION,):
        raise union.refused(f"{kind} looks for the nearest row of all alternatives", "leave it out")
    return Alternatives(
        (Bounds.EXACT,),
        _kernels(algorithm, plan.stages),
        tuple(
            # What waits for counts comes to one worker.
            own if ours and not plan.counted and masters(stage) else (plain(stage),)
            for stage, own in zip(plan.stages, places, strict=True)
        ),
        (Passes.HULL,) if asof else passes,
        (only,),
    )


def _can_share(route: Wish, plan: PhysicalPlan) -> bool:
    """Return whether some join that is no inner one can have the route of a hint."""
    return _shares_waiting(plan) and ROUTES[route.part].homes and not plan.counted


def _shares_waiting(plan: PhysicalPlan) -> bool:
    """Return whether several workers may share the rows of a key, or all without one, of such a join."""
    return any(masters(stage) and not _is_inner(stage) for stage in plan.stages)


def _is_inner(stage: Stage) -> bool:
    return not isinstance(stage, Join) or stage.kind is JoinKind.INNER


def wished_route(block: SelectBlock, settings: Mapping[str, str], *, approximate: bool) -> str | None:
    """Return the route that a hint or setting asks for, None where none does.

    ``approximate``: whether the join may lose results; otherwise no wish for that counts.
    """
    wish = _wishes(block, settings, approximate=approximate).get("ROUTE")
    return None if wish is None else routes_of(wish.part)[0]


def route_wish(block: SelectBlock, settings: Mapping[str, str]) -> Wish | None:
    """Return the hint or setting PLAN that asks for a route, None where there is none."""
    wish = Wish.of("PLAN", settings["PLAN"]) if "PLAN" in settings else None
    for hint in block.hints:
        if hint.name == "PLAN":
            wish = Wish.of("PLAN", hint.arguments[0], hint.span)
    route = None if wish is None else PLANS[wish.value].get("ROUTE")
    return None if wish is None or route is None else replace(wish, part=route)


def goal_wish(block: SelectBlock, settings: Mapping[str, str]) -> Wish | None:
    """Return the hint or setting APPROXIMATE, None where there is none."""
    for hint in block.hints:
        if hint.name == APPROXIMATE:
            return Wish(APPROXIMATE, " = ".join(hint.arguments).lower(), hint.span, ANY_APPROXIMATE)
    value = settings.get(APPROXIMATE)
    return None if value is None or value == OFF else Wish(APPROXIMATE, value, None, ANY_APPROXIMATE)


def wished_shipping(
    block: SelectBlock,
    settings: Mapping[str, str],
    plan: PhysicalPlan,
    refused: Mapping[int, Mapping[Shipping, str]],
) -> dict[int, Shipping | None]:
    """Return how hints and settings want each stream at a site to travel; None where they do not say.

    ``refused``: in which ways those streams cannot travel, and why. Raises WJoinError WJ504 for a stream that
    cannot travel as a hint says.
    """
    wish = _wishes(block, settings).get(SHIP)
    hinted = wish is not None and wish.span is not None
    wished: dict[int, Shipping | None] = dict.fromkeys(refused)
    if wish is not None:
        if hinted and not refused:
            raise wish.refused("no stream is at a site", "CREATE STREAM … AT SITE declares one")
        whole = Shipping(wish.part)
        wished = {stream: None if whole in ways else whole for stream, ways in refused.items()}
        if hinted and whole not in wished.values():
            raise wish.refused(next(iter(refused.values()))[whole], "leave it out")
    for hint in block.hints:
        if hint.name != SHIP:
            continue
        names = [scan.alias.upper() for scan in plan.streams]
        for name, way in zip(hint.arguments[::2], hint.arguments[1::2], strict=True):
            asked = Wish(SHIP, f"{name} = {way}", hint.span, way.lower())
            if name not in names:
                raise asked.refused(f"there is no stream {name}", f"the streams are {', '.join(names)}")
            number = names.index(name)
            if number not in refused:
                raise asked.refused(f"{name} is not at a site", "leave it out")
            shipping = Shipping(way.lower())
            if shipping in refused[number]:
                raise asked.refused(refused[number][shipping], "leave it out")
            wished[number] = shipping
            held = [entered(plan, each)[0] for each, way in wished.items() if way is Shipping.HELD]
            if len(set(held)) < len(held):
                raise asked.refused(
                    "only one stream of a stage can be held at its site, because the others ask for its rows",
                    "hold only one of them",
                )
    return wished


def _wishes(block: SelectBlock, settings: Mapping[str, str], *, approximate: bool = False) -> dict[str, Wish]:
    """Return what settings and hints ask, by part of the plan: the hint PLAN stands for several.

    ``approximate`` as in ``wished_route``.
    """
    given = {name: Wish.of(name, value) for name, value in settings.items()}
    given |= {hint.name: Wish.of(hint.name, hint.arguments[0], hint.span) for hint in block.hints}
    wishes: dict[str, Wish] = {}
    for name, wish in given.items():
        if name not in HINTS:
            continue
        if name == "PLAN":
            wishes |= {part: replace(wish, part=value) for part, value in PLANS[wish.value].items()}
        else:
            wishes[name] = wish
    goal = goal_wish(block, settings) if approximate else None
    if goal is not None:
        wishes = {"METHOD": replace(goal, part=Method.MULTIWAY.value), "ROUTE": goal, **wishes}
    if not approximate and "ROUTE" in wishes and ROUTES[wishes["ROUTE"].part].approximate:
        del wishes["ROUTE"], wishes["METHOD"]
    return wishes


def _wished_room(block: SelectBlock, route: Wish | None, room: Capacity) -> Capacity:
    """Return the room with the number that the hint PLAN gives: of copies, or of workers."""
    numbers = (int(hint.arguments[1]) for hint in block.hints if hint.name == "PLAN" and hint.arguments[1:])
    number = next(numbers, None)
    if route is not None and ROUTES[routes_of(route.part)[0]].copies:
        return replace(room, copies=number)
    return replace(room, workers=number)


def _bounds(wish: Wish | None, graph: WindowGraph, streams: Sequence[int]) -> tuple[Bounds, ...]:
    name = _one_sided(graph, streams)
    if wish is None:
        return (Bounds.EXACT,) if name is not None else tuple(Bounds)
    bounds = Bounds(wish.part)
    if bounds is not Bounds.EXACT and name is not None:
        raise wish.refused(
            f"a window of {name} is open on one side",
            "bound the window on both sides, or use BOUNDS(EXACT)",
        )
    return (bounds,)


def _one_sided(graph: WindowGraph, streams: Sequence[int]) -> str | None:
    """Return a stream with a window that is open on one side, None when all are closed."""
    for branch in graph.branches:
        # Where every stream has a widest window, all of them together have one.
        widest = reach(Bounds.LCA, branch.windows, streams)
        for stream in streams:
            if widest.ahead(stream, stream) is None:
                return graph.names[stream]
    return None


def _kernels(wish: Wish | None, stages: Sequence[Stage]) -> tuple[tuple[Kernels, ...], ...]:
    # What is expected of workers that choose is the better one of what they choose from, which is weighed.
    possible = tuple(
        tuple((name,) for name in KERNELS if _refusal((name,), stage) is None) for stage in stages
    )
    if wish is None or not stages:
        return possible
    kernels = kernels_of(wish.part)
    refusals = [_refusal(kernels, stage) for stage in stages]
    refused = [each for each in refusals if each is not None]
    everywhere = any(KERNELS[each].everywhere for each in kernels)
    if refused and (everywhere or len(refused) == len(stages)):
        if wish.span is None:
            # What a session prefers is for joins that can have it.
            return possible
        raise wish.refused(refused[0].reason, refused[0].remedy)
    return tuple(
        (kernels,) if refusal is None else others for refusal, others in zip(refusals, possible, strict=True)
    )


def _refusal(kernels: Kernels, stage: Stage) -> Refusal | None:
    return refusal_of(kernels, keyed=stage.keyed, indexed=stage.indexed)


def _placements(
    wish: Wish | None, plan: PhysicalPlan, room: Capacity, kept: Placements | None
) -> tuple[tuple[Placement, ...], ...]:
    wished = None if wish is None else wish.part
    found = tuple(placements(plan, number, room, wished) for number in range(len(plan.stages)))
    if kept is not None:
        found = tuple(
            (each,) if _grants(each := kept[number] or own[0], wished, room) else own
            for number, own in enumerate(found)
        )
    if wish is not None and not any(each.route in routes_of(wish.part) for stage in found for each in stage):
        raise wish.refused(f"it is for {ROUTES[routes_of(wish.part)[0]].meant_for}", "leave it out")
    return found


def _grants(each: Placement, wished: str | None, room: Capacity) -> bool:
    """Return whether a placement is what a hint asks for, where one does."""
    asked = room.workers in (None, each.workers) and room.copies in (None, each.copies)
    return asked and (wished is None or each.route in routes_of(wished))


def _passes(wish: Wish | None, graph: WindowGraph) -> tuple[Passes, ...]:
    if wish is None:
        return tuple(Passes) if graph.alternatives else (Passes.HULL,)
    if not graph.alternatives and wish.span is not None:
        raise wish.refused(
            "the windows have no alternatives (OR, or a PATH in both directions)", "leave it out"
        )
    return (Passes(wish.part),)


def _passes_of(wish: Wish | None, graph: WindowGraph, plan: PhysicalPlan) -> tuple[Passes, ...]:
    found = _passes(wish, graph)
    if plan.approximate is None or not any(isinstance(each, Hop) for each in plan.stages):
        return found
    if wish is not None and wish.span is not None and Passes.HULL not in found:
        raise wish.refused("an approximate join of three streams or more has one pass", "leave it out")
    return (Passes.HULL,)


def _require_native(wish: Wish, wishes: Mapping[str, Wish], refusal: tuple[str, str] | None) -> None:
    other = next((each for each in wishes.values() if each is not wish and each.span is not None), None)
    if other is not None:
        remedy = "leave it out, or use PLAN(MULTIWAY)"
        raise other.refused("PLAN(NATIVE) uses Spark's own joins, which have no such choice", remedy)
    if refusal is not None:
        raise wish.refused(*refusal)


def _methods(
    wishes: Mapping[str, Wish], relations: Sequence[Relation], *, native: bool
) -> tuple[tuple[Method, ...], tuple[Method, ...]]:
    """Return the methods to choose from, and those that are taken where a hint asks only.

    ``native``: whether Spark's own joins can do what the stages do.
    """
    if (method := wishes.get("METHOD")) is not None:
        return (Method(method.part),), ()
    # A hint for wjoin's own stages rules Spark's joins out.
    if wishes or not native:
        return (Method.MULTIWAY,), ()
    # On streams rows are late by Spark's rule there. Over tables it compares all rows of a key, which is
    # worth it only where their number is known to be small.
    tables = not any(each.streaming for each in relations)
    if tables and all(each.statistics.keys() & {"rate", "rows"} for each in relations):
        return (Method.MULTIWAY, Method.NATIVE), ()
    return (Method.MULTIWAY,), (Method.NATIVE,)
