"""What hints and settings ask of a plan, and what it gets where they ask nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.hints import HINTS
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import SelectBlock
from wjoin.planner.decompose import Decomposition
from wjoin.planner.physical import Bounds, Kernel, Passes
from wjoin.planner.reach import reach
from wjoin.planner.window_graph import WindowGraph

_AVAILABLE = {"PLAN": ("MULTIWAY",)}


@dataclass(frozen=True)
class Choice:
    """The parts of a plan that are chosen: ``kernels`` has one for each stage."""

    bounds: Bounds
    kernels: tuple[Kernel, ...]
    passes: Passes


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


def choose(
    block: SelectBlock,
    settings: Mapping[str, str],
    draft: Decomposition,
    graph: WindowGraph,
    streams: Sequence[int],
) -> Choice:
    """Return the bounds, kernels and passes of a plan over the stages of ``draft``.

    ``settings`` are session defaults by the name of the hint. Raises WJoinError WJ502 for what
    is not available yet, and WJ504 for a wish that cannot be granted.
    """
    wishes = {name: Wish(name, value.upper(), None) for name, value in settings.items()}
    wishes |= {hint.name: Wish(hint.name, hint.arguments[0], hint.span) for hint in block.hints}
    for wish in wishes.values():
        _require_available(wish)
    return Choice(
        _bounds(wishes.get("BOUNDS"), graph, streams),
        _kernels(wishes.get("ALGORITHM"), draft),
        _passes(wishes.get("PASSES"), graph),
    )


def _require_available(wish: Wish) -> None:
    if wish.value not in _AVAILABLE.get(wish.name, HINTS[wish.name]):
        subject = f"the setting wjoin.{wish.name.lower()}" if wish.span is None else f"the hint {wish.name}"
        message = f"{subject} is not available yet with {wish.value}"
        raise WJoinError("WJ502", message, span=wish.span, help="leave it out")


def _bounds(wish: Wish | None, graph: WindowGraph, streams: Sequence[int]) -> Bounds:
    if wish is None:
        return Bounds.EXACT
    bounds = Bounds(wish.value.lower())
    for branch in graph.branches if bounds is not Bounds.EXACT else ():
        ahead = reach(bounds, branch.upper, streams).ahead
        for stream in streams:
            if ahead[stream][stream] is None:
                raise wish.refused(
                    f"some window of {graph.names[stream]} is open on one side",
                    "bound the window on both sides, or take BOUNDS(EXACT)",
                )
    return bounds


def _kernels(wish: Wish | None, draft: Decomposition) -> tuple[Kernel, ...]:
    kernels = []
    for stage in draft.stages:
        if wish is None:
            # Without a key there is nothing to hash.
            kernels.append(Kernel.HW if stage.classes else Kernel.MW)
            continue
        kernel = Kernel(wish.value.lower())
        if kernel is Kernel.HW and not stage.classes:
            raise wish.refused("it needs an equality that links the streams", "take ALGORITHM(MW)")
        kernels.append(kernel)
    return tuple(kernels)


def _passes(wish: Wish | None, graph: WindowGraph) -> Passes:
    if wish is None:
        return Passes.HULL
    if len(graph.branches) < 2 and wish.span is not None:
        raise wish.refused(
            "the windows have no alternatives (OR, or a PATH in both directions)", "leave it out"
        )
    return Passes(wish.value.lower())
