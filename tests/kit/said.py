"""Plans of joins whose windows are in their conditions, without Spark."""

from collections.abc import Mapping

from tests.kit.planned import ColumnTypes
from wjoin.grammar.parser import parse_statement
from wjoin.grammar.statement_kinds import CreateStream, Query
from wjoin.planner.catalog import Column, Delay, Relation
from wjoin.planner.planning import PlannedSelect, plan_select
from wjoin.planner.request import Request


def plan_said(sql: str, streams: Mapping[str, Relation]) -> PlannedSelect:
    """Return the plan of a SELECT over ``streams``, which are known by their names in lower case."""
    statement = parse_statement(sql, frozenset(streams))
    assert isinstance(statement, Query), "the statement joins no streams"
    (block,) = statement.blocks
    relations = [streams[item.parts[-1].name.lower()] for item in block.items]
    dated = frozenset(range(len(relations))) if block.implicit else None
    return plan_select(Request(sql, block, relations, ColumnTypes(relations), "joined", dated=dated))


def declared(stream: CreateStream) -> Relation:
    """Return a declared stream whose columns are plain ones."""
    written = (each.split() for each in (stream.columns or "").split(","))
    columns = tuple(Column(name, kind.lower()) for name, kind in written)
    assert stream.watermark is not None
    time = stream.watermark.column.name
    return Relation(columns, time, {time.lower(): Delay(0)}, True)
