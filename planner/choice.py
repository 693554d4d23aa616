"""Which values the parts of a plan may take: what hints and settings ask, else all that can apply."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.hints import HINTS
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import SelectBlock
from wjoin.planner.catalog import Relation
from wjoin.planner.decompose import Decomposition
from wjoin.planner.native import native_refusal
from wjoin.planner.physical import Bounds, Kernel, Method, Passes, PhysicalPlan, Route, Stage
from wjoin.planner.reach import reach
from wjoin.planner.window_graph import WindowGraph

_AVAILABLE = {"PLAN": ("MULTIWAY", "NATIVE")}


@dataclass(frozen=True)
class Options:
    """The values that each part of a plan may take, the one to prefer first; ``kernels`` by stage.

    ``by_hint`` are methods that could run the join, but are taken where a hint asks only.
    """

    bounds: tuple[Bounds, ...]
    kernels: tuple[tuple[Kernel, ...], ...]
    passes: tuple[Passes, ...]
    methods: tuple[Method, ...]
    by_hint: tuple[Method, ...] = ()


@dataclass(frozen=True)
class Wish:
    """A value that a hint asks for, or a setting where ``span`` is None."""

    name: str
    value: str
    span: Span | None

    def refused(self, reason: str, remedy: str) -> WJoinError:
        """Return the error that says why the wish cannot be granted."""
        subject = f"SET wjoin.{self.name.lower()}" if self.span is None else f"{self.name}({self.value})"
        return WJoinError("WJ504", f"{subject} cannot apply: {reason}", span=self.span, help=remedy)


def check_setting(name: str, value: str) -> None:
    """Check a session default for hint ``name``; raises WJoinError WJ502 or WJ603."""
    if value.upper() not in HINTS[name]:
        known = ", ".join(each.lower() for each in HINTS[name])
        message = f"wjoin.{name.lower()} has no value {value}"
        raise WJoinError("WJ603", message, help=f"known: {known}")
    _require_available(Wish(name, value.upper(), None))


def options(
    block: SelectBlock,
    settings: Mapping[str, str],
    draft: Decomposition,
    graph: WindowGraph,
    plan: PhysicalPlan,
    *,
    relations: Sequence[Relation],
) -> Options:
    """Return what a plan over the stages of ``draft`` may choose from; ``plan`` is one of them.

    ``settings`` are session defaults by the name of the hint. Raises WJoinError WJ502 for what
    is not available yet, and WJ504 for a wish that cannot be granted.
    """
    wishes = {name: Wish(name, value.upper(), None) for name, value in settings.items() if name in HINTS}
    wishes |= {hint.name: Wish(hint.name, hint.arguments[0], hint.span) for hint in block.hints}
    for wish in wishes.values():
        _require_available(wish)
    if (method := wishes.get("PLAN")) is not None and method.value == "NATIVE":
        _require_native(method, wishes, draft, graph, relations)
        # Session defaults of what wjoin's own stages choose do not matter to Spark's joins.
        wishes = {"PLAN": method}
    return Options(
        _bounds(wishes.get("BOUNDS"), graph, plan.staged),
        _kernels(wishes.get("ALGORITHM"), plan.stages),
        _passes(wishes.get("PASSES"), graph),
        *_methods(wishes, draft, graph, relations),
    )


def _require_available(wish: Wish) -> None:
    if wish.value not in _AVAILABLE.get(wish.name, HINTS[wish.name]):
        subject = f"the setting wjoin.{wish.name.lower()}" if wish.span is None else f"the hint {wish.name}"
        message = f"{subject} is not available yet with {wish.value}"
        raise WJoinError("WJ502", message, span=wish.span, help="leave it out")


def _bounds(wish: Wish | None, graph: WindowGraph, streams: Sequence[int]) -> tuple[Bounds, ...]:
    name = _one_sided(graph, streams)
    if wish is None:
        return (Bounds.EXACT,) if name is not None else tuple(Bounds)
    bounds = Bounds(wish.value.lower())
    if bounds is not Bounds.EXACT and name is not None:
        raise wish.refused(
            f"some window of {name} is open on one side",
            "bound the window on both sides, or take BOUNDS(EXACT)",
        )
    return (bounds,)


def _one_sided(graph: WindowGraph, streams: Sequence[int]) -> str | None:
    """Return a stream with a window that is open on one side, None when all are closed."""
    for branch in graph.branches:
        # Where every stream has a widest window, all of them together have one.
        ahead = reach(Bounds.LCA, branch.upper, streams).ahead
        for stream in streams:
            if ahead[stream][stream] is None:
                return graph.names[stream]
    return None


def _kernels(wish: Wish | None, stages: Sequence[Stage]) -> tuple[tuple[Kernel, ...], ...]:
    # What is expected of ADAPTIVE is the better one of HW and MW, which are weighed.
    weighed = [kernel for kernel in Kernel if kernel is not Kernel.ADAPTIVE]
    possible = tuple(tuple(kernel for kernel in weighed if _works(kernel, stage)) for stage in stages)
    if wish is None or not stages:
        return possible
    kernel = Kernel(wish.value.lower())
    working = [_works(kernel, stage) for stage in stages]
    if kernel is not Kernel.ORDERED and not all(working):
        raise wish.refused("it needs an equality that links the streams", "take ALGORITHM(MW)")
    if not any(working):
        raise wish.refused(
            "no condition bounds the difference of two streams' columns",
            "add one such as abs(a.x - b.x) <= 5, or take another",
        )
    # A stage without such a condition has nothing to order its rows by.
    return tuple((kernel,) if works else each for works, each in zip(working, possible, strict=True))


def _works(kernel: Kernel, stage: Stage) -> bool:
    if kernel is Kernel.ORDERED:
        return any(each is not None for each in stage.indexed)
    # Without a key there is nothing to hash.
    return kernel not in (Kernel.HW, Kernel.ADAPTIVE) or stage.route is Route.HASH


def _passes(wish: Wish | None, graph: WindowGraph) -> tuple[Passes, ...]:
    if wish is None:
        return tuple(Passes) if len(graph.branches) > 1 else (Passes.HULL,)
    if len(graph.branches) < 2 and wish.span is not None:
        raise wish.refused(
            "the windows have no alternatives (OR, or a PATH in both directions)", "leave it out"
        )
    return (Passes(wish.value.lower()),)


def _require_native(
    plan: Wish,
    wishes: Mapping[str, Wish],
    draft: Decomposition,
    graph: WindowGraph,
    relations: Sequence[Relation],
) -> None:
    other = next((each for each in wishes.values() if each is not plan and each.span is not None), None)
    if other is not None:
        remedy = "leave it out, or take PLAN(MULTIWAY)"
        raise other.refused("the joins of the plan NATIVE are Spark's own, which have no such choice", remedy)
    refusal = native_refusal(draft, graph, relations)
    if refusal is not None:
        raise plan.refused(*refusal)


def _methods(
    wishes: Mapping[str, Wish], draft: Decomposition, graph: WindowGraph, relations: Sequence[Relation]
) -> tuple[tuple[Method, ...], tuple[Method, ...]]:
    """Return the methods to choose from, and those that are taken where a hint asks only."""
    if (plan := wishes.get("PLAN")) is not None:
        return (Method(plan.value.lower()),), ()
    # A hint for wjoin's own stages rules Spark's joins out.
    if wishes or not draft.stages or native_refusal(draft, graph, relations) is not None:
        return (Method.MULTIWAY,), ()
    # On streams rows are late by Spark's rule there. Over tables it compares all rows of a key, which is
    # worth it only where their number is known to be small.
    tables = not any(each.streaming for each in relations)
    if tables and all(each.statistics.keys() & {"rate", "rows"} for each in relations):
        return (Method.MULTIWAY, Method.NATIVE), ()
    return (Method.MULTIWAY,), (Method.NATIVE,)
