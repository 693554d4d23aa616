"""The state of a join in words: what each input keeps, until when, and what a longer window would add."""

from collections.abc import Iterator, Mapping, Sequence

from wjoin.grammar.plurals import listed
from wjoin.planner.cost.kept_state import InputState, KeptFor, Pair, input_states, slopes
from wjoin.planner.figures import size
from wjoin.planner.plan.physical import TimeKind
from wjoin.planner.planning import PlannedSelect
from wjoin.planner.windows.lengths import human

_UNIT = {TimeKind.INTEGRAL: "1"}


def state_text(planned: PlannedSelect) -> str:
    """Return what EXPLAIN COST tells of the state of a join, with its title."""
    return "\n  ".join(["State, once the watermarks have passed the windows", *state_lines(planned)])


def state_lines(planned: PlannedSelect) -> Iterator[str]:
    """Yield what each input of a join is expected to keep, and what longer windows would add."""
    inputs = input_states(planned)
    for each in inputs:
        yield f"{names(planned, each.members)}: {size(each.size)}, {kept_words(planned, each.kept)}"
    yield from slope_lines(planned, sizes_of(inputs))


def sizes_of(inputs: Sequence[InputState]) -> dict[tuple[int, ...], float]:
    """Return the bytes of inputs by their streams."""
    return {each.members: each.size for each in inputs}


def names(planned: PlannedSelect, streams: Sequence[int]) -> str:
    """Return the names of streams."""
    return ", ".join(planned.graph.names[each] for each in streams)


def kept_words(planned: PlannedSelect, kept: KeptFor) -> str:
    """Return until when rows stay, and which windows decide that."""
    if kept.span is None or kept.awaited is None:
        return "kept forever"
    plan = planned.physical
    delay = plan.streams[kept.awaited].delay
    behind = f", with its delay of {human(delay, plan.time_kind)}" if delay else ""
    ends = (
        f"kept for {human(kept.span, plan.time_kind)}, until {planned.graph.names[kept.awaited]} has passed"
    )
    windows = listed([window_name(planned, each) for each in kept.windows])
    return f"{ends}{behind}" + (f": {windows}" if windows else "")


def window_name(planned: PlannedSelect, pair: Pair) -> str:
    """Return the name of a window as written."""
    first, second = sorted(pair)
    return f"window ({planned.graph.names[first]}, {planned.graph.names[second]})"


def slope_lines(planned: PlannedSelect, sizes: Mapping[tuple[int, ...], float]) -> Iterator[str]:
    """Yield what a second more of each window would add."""
    unit = _UNIT.get(planned.physical.time_kind, "1 s")
    for pair, added in slopes(planned, sizes):
        yield f"{unit} more of {window_name(planned, pair)}: {size(added)}"
