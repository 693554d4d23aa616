"""Physical plans of window joins over streams of integers, made by the planner from SQL."""

from collections.abc import Sequence
from dataclasses import dataclass

import kit_path  # noqa: F401 (finds tests.kit)

from tests.kit.planned import plan_over, stream_of
from wjoin.planner.plan.block_columns import code_name, time_name
from wjoin.planner.plan.physical import Passes, PhysicalPlan
from wjoin.planner.plan.stage_kinds import Bounds

NAMES = "ABCDEF"


@dataclass(frozen=True)
class Choice:
    """How a window join shall run."""

    kernel: str
    bounds: Bounds = Bounds.EXACT
    passes: Passes = Passes.HULL


def window_plan(streams: int, windows: str, choice: Choice) -> PhysicalPlan:
    """Return the plan of an equi-join of so many streams, named A, B, ..., under a window clause."""
    names = NAMES[:streams]
    sources = ", ".join(f"s {name}" for name in names)
    equal = " AND ".join(f"A.v = {name}.v" for name in names[1:])
    columns = ", ".join(["A.v", *(f"{name}.ts" for name in names)])
    sql = f"SELECT {columns} FROM {sources} {windows} WHERE {equal}"
    settings = {
        "ALGORITHM": choice.kernel.upper(),
        "BOUNDS": choice.bounds.name,
        "PASSES": choice.passes.name,
    }
    plan = plan_over(sql, [stream_of({"v": "bigint"})] * streams, settings).physical
    for number, each in enumerate(plan.stages[0].inputs):
        assert each.columns == (time_name(number), code_name(number, 0))
    return plan


def one_window(width: int) -> str:
    """Return the clause of form 1: one window, in microseconds, between all streams."""
    return f"WINDOW = {width} MICROSECONDS"


def pair_windows(streams: int, width: int, first_pair: int) -> str:
    """Return the clause of form 2: a window between every two streams, ``first_pair`` for A and B."""
    names = NAMES[:streams]
    pairs = [(left, right) for left in names for right in names if left < right]
    terms = [
        f"WINDOW ({left}, {right}) = {first_pair if left + right == 'AB' else width} MICROSECONDS"
        for left, right in pairs
    ]
    return " AND ".join(terms)


def path(widths: Sequence[int]) -> str:
    """Return the clause of a path through all streams, in either direction."""
    names = ", ".join(NAMES[: len(widths) + 1])
    return f"PATH ({names}) WITHIN ({', '.join(f'{width} MICROSECONDS' for width in widths)}) BIDIRECTIONAL"
