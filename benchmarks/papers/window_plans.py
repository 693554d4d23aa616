"""Physical plans of window joins over streams of integers, made by the planner from SQL."""

from collections.abc import Sequence
from dataclasses import dataclass

from wjoin.grammar.parser import parse_script
from wjoin.grammar.syntax import Query
from wjoin.planner.catalog import Column, Delay, Relation
from wjoin.planner.layout import code_name, time_name
from wjoin.planner.physical import Bounds, Passes, PhysicalPlan
from wjoin.planner.plan import plan_select

NAMES = "ABCDEF"

_RELATION = Relation((Column("v", "bigint"), Column("ts", "timestamp")), "ts", {"ts": Delay(0)}, True)


class _Bigint:
    """The typing rules of relations whose only values are bigint."""

    def of(self, stream: int, expression: str) -> str:
        return "bigint"

    def common(self, first: str, second: str) -> str | None:
        return "bigint"

    def fails_on_overflow(self) -> bool:
        return True


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
    statement = parse_script(sql).statements[0]
    assert isinstance(statement, Query)
    settings = {
        "ALGORITHM": choice.kernel.upper(),
        "BOUNDS": choice.bounds.name,
        "PASSES": choice.passes.name,
    }
    relations = [_RELATION] * streams
    plan = plan_select(sql, statement.blocks[0], relations, _Bigint(), {}, "joined", settings).physical
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
