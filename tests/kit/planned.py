"""Statements planned without Spark, and rows as blocks: for the executor's logic in one process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from wjoin.grammar.parser import parse_script
from wjoin.grammar.statement_kinds import Query
from wjoin.planner.catalog import Column, Delay, Estimate, Origin, Relation
from wjoin.planner.choose.layouts import UNKNOWN, LayoutRule
from wjoin.planner.cost.model import CostSettings
from wjoin.planner.plan.block_columns import code_name, counted_name, stored_column, time_name
from wjoin.planner.plan.counting import key_parts
from wjoin.planner.plan.physical import KeyCode, PhysicalPlan
from wjoin.planner.planning import PlannedSelect, plan_select
from wjoin.planner.request import Request
from wjoin.udfs.predicate import Predicate

EVENT_TIME = "ts"


@dataclass(frozen=True)
class ColumnTypes:
    """The typing rules of relations of which columns are compared with others of the same type.

    A column may have a value in the place of NULL.
    """

    relations: Sequence[Relation]

    def of(self, stream: int, expression: str) -> str:
        """Return the type of a column, or of the difference of two times. Raises KeyError for others."""
        if " - " in expression:
            return "interval day to second"
        known = {each.name: each.type for each in self.relations[stream].columns}
        if expression.startswith("date_trunc("):
            return "timestamp"
        return known[_name(expression).partition(",")[0]]

    def common(self, first: str, second: str) -> str | None:
        """Return the type that both have."""
        return first if first == second else None

    def fails_on_overflow(self) -> bool:
        """Return that it does, as Spark in its ANSI mode."""
        return True

    def time_zone(self) -> str:
        """Return the time zone in which no clock is put forward."""
        return "UTC"


def stream_of(
    columns: Mapping[str, str], statistics: Mapping[str, float] | None = None, home: str = ""
) -> Relation:
    """Return a stream, its rows in order of the time ``ts``; ``columns``: the others, with their types.

    ``home``: by which of them rows live at nodes.
    """
    every = (Column(EVENT_TIME, "timestamp"), *(Column(name, kind) for name, kind in columns.items()))
    known = {name: Estimate(float(value), Origin.GIVEN) for name, value in (statistics or {}).items()}
    return Relation(every, EVENT_TIME, {EVENT_TIME: Delay(0)}, True, known, home=home)


def plan_over(
    sql: str,
    relations: Sequence[Relation],
    settings: Mapping[str, str] | None = None,
    costs: CostSettings | None = None,
    layouts: LayoutRule = UNKNOWN,
    predicates: Mapping[str, Predicate] | None = None,
) -> PlannedSelect:
    """Plan a statement of one block as ``plan_select`` does, over relations in the order of FROM.

    Raises WJoinError where that does.
    """
    statement = parse_script(sql)[0]
    if not isinstance(statement, Query):
        raise TypeError(f"no query: {sql}")
    types, block = ColumnTypes(relations), statement.blocks[0]
    known = settings or {}, costs or CostSettings(), layouts, predicates or {}
    asked = Request(sql, block, relations, types, "joined", {}, *known)
    return plan_select(asked)


def block_of(plan: PhysicalPlan, number: int, rows: Mapping[str, Any]) -> pa.RecordBatch:
    """Return rows of stream ``number`` as the block that the executor joins.

    ``rows``: an array by the name of each column that the plan reads, all equally long; times int64, in the
    plan's unit. A key must be one column, whose values are its codes. Raises ValueError for another one.
    """
    scan = plan.streams[number]
    columns = {time_name(number): rows[scan.event_time]}
    for place, code in enumerate(scan.codes):
        columns[code_name(number, place)] = rows[_key(code)]
    for place, each in enumerate(scan.columns):
        stored = stored_column(plan, number, place)
        if not stored.restored:
            columns[stored.name] = rows[_name(each.expression)]
    for place, window in enumerate(plan.counted):
        if window.stream == number and window.condition:
            columns[counted_name(place)] = rows[_name(window.condition)]
        for part, (code, _) in enumerate(key_parts(plan, window) if window.stream == number else ()):
            columns[counted_name(place, part)] = rows[_key(code)]
    return pa.RecordBatch.from_pydict(columns)


def _key(code: KeyCode) -> str:
    if not code.exact or len(code.expressions) != 1:
        raise ValueError(f"the codes of {code.expressions} are not the values of a column")
    return _name(code.expressions[0])


def _name(expression: str) -> str:
    return expression.replace("`", "").rpartition(".")[2]
