"""Joined rows as the rest of a statement reads them: one STRUCT for each stream, named by its alias."""

from collections.abc import Callable, Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from wjoin.planner.physical import Operand, PhysicalPlan


def structs(
    plan: PhysicalPlan, columns: Iterable[Operand], value: Callable[[int, int], Column]
) -> list[Column]:
    """Return the structs of scan columns; ``value`` is the one of a stream's column number."""
    members: dict[int, list[Column]] = {}
    for stream, number in columns:
        name = str(plan.streams[stream].columns[number].output)
        members.setdefault(stream, []).append(value(stream, number).alias(name))
    return [F.struct(*each).alias(plan.streams[stream].alias) for stream, each in members.items()]
