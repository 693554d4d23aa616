"""What the planner found out about a W-join, as EXPLAIN shows it."""

from dataclasses import dataclass

from wjoin.planner.conditions.conjuncts import Filter
from wjoin.planner.shape.join_keys import EqualityClass
from wjoin.planner.windows.window_graph import WindowGraph


@dataclass(frozen=True)
class LaterCondition:
    """A condition that Spark evaluates on the joined rows.

    ``unread``: what keeps the join from testing it before, empty where the join does.
    """

    text: str
    unread: str


@dataclass(frozen=True)
class LogicalPlan:
    """Names, constraints and conditions of a block.

    ``stage_classes`` are, for each stage, the equality classes of its key; ``residual`` the
    conditions that Spark evaluates on the joined rows, ``laterals`` the LATERAL VIEWs of these.
    """

    names: tuple[str, ...]
    relations: tuple[str, ...]
    event_times: tuple[str, ...]
    graph: WindowGraph
    classes: tuple[EqualityClass, ...]
    filters: tuple[Filter, ...]
    residual: tuple[LaterCondition, ...]
    stage_classes: tuple[tuple[int, ...], ...]
    laterals: tuple[str, ...] = ()
