"""What the state of a join holds, told so that it can be read without its plan: columns, and who waits.

It is kept beside a checkpoint. The manifests of the workers say which rows there are, and how long they stay.
"""

import re
from dataclasses import dataclass

from wjoin.executor.state.marks import preserved_inputs
from wjoin.planner.plan.block_columns import code_name, stored_column, time_name
from wjoin.planner.plan.physical import PhysicalPlan, StreamScan, TimeKind
from wjoin.planner.plan.stage_kinds import Stage, StageEdge
from wjoin.planner.plan.to_come import needed


@dataclass(frozen=True)
class KeptColumn:
    """A column of a stream in the state: its name for people, its name in slices, its type in Spark."""

    stream: int
    name: str
    block: str
    type: str


@dataclass(frozen=True)
class KeptInput:
    """An input of a stage: the streams whose rows each of its tuples has, and their columns.

    ``marked``: whether the state knows which of its rows have had a partner.
    """

    members: tuple[int, ...]
    columns: tuple[KeptColumn, ...]
    marked: bool


@dataclass(frozen=True)
class KeptStage:
    """A stage. ``passing`` has by stream the watermarks by which no row of it earlier than 0 may come."""

    inputs: tuple[KeptInput, ...]
    passing: dict[int, dict[int, int]]


@dataclass(frozen=True)
class KeptJoin:
    """A join whose stages keep state. ``time`` is the type of its event times in Spark, delays are in it."""

    time: str
    aliases: tuple[str, ...]
    delays: tuple[int, ...]
    stages: tuple[KeptStage, ...]


def kept_join(plan: PhysicalPlan) -> KeptJoin:
    """Return what the state of a plan holds."""
    kind = "bigint" if plan.time_kind is TimeKind.INTEGRAL else plan.time_kind.value
    return KeptJoin(
        kind,
        tuple(scan.alias for scan in plan.streams),
        tuple(scan.delay for scan in plan.streams),
        tuple(_stage(plan, number, stage, kind) for number, stage in enumerate(plan.stages)),
    )


def _stage(plan: PhysicalPlan, number: int, stage: Stage, kind: str) -> KeptStage:
    awaited = sorted({rule.stream for each in stage.inputs for rule in each.retention} | {*stage.members})
    preserved = preserved_inputs(stage)
    inputs = (
        KeptInput(each.members, tuple(_columns(plan, each, kind).values()), place in preserved)
        for place, each in enumerate(stage.inputs)
    )
    return KeptStage(tuple(inputs), {stream: needed(plan, number, stream, 0) for stream in awaited})


def _columns(plan: PhysicalPlan, each: StageEdge, kind: str) -> dict[tuple[int, str], KeptColumn]:
    """Return the columns of an input by their streams and names; those of the statement before keys."""
    found: dict[tuple[int, str], KeptColumn] = {}

    def add(stream: int, name: str, block: str, type_: str) -> None:
        found.setdefault((stream, name.lower()), KeptColumn(stream, name, block, type_))

    for stream in each.members:
        scan = plan.streams[stream]
        add(stream, scan.event_time, time_name(stream), kind)
        for number, column in enumerate(scan.columns):
            stored = stored_column(plan, stream, number)
            if stored.name in each.columns:
                add(stream, column.output or _name(scan, column.expression), stored.name, column.type)
        for number, code in enumerate(scan.codes):
            name = code_name(stream, number)
            if code.exact and number != scan.home and name in each.columns:
                add(stream, _name(scan, code.expressions[0]), name, code.types[0])
    return found


def _name(scan: StreamScan, expression: str) -> str:
    """Return the name of the column that an expression is, the expression where it is more."""
    alias = re.escape(scan.alias)
    found = re.fullmatch(rf"(?:`{alias}`|{alias})\.(?:`([^`]+)`|(\w+))", expression, re.IGNORECASE)
    return expression if found is None else found[1] or found[2]
