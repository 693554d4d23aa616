"""Joined rows as the rest of a statement reads them: one STRUCT for each stream, named by its alias."""

import re
from collections.abc import Callable, Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from wjoin.planner.plan.block_columns import quoted
from wjoin.planner.plan.checks import Operand
from wjoin.planner.plan.physical import PhysicalPlan

_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
"""Where Spark keeps in the metadata of a column its type with the CHAR(n) and VARCHAR(n) in it."""

_CHAR = re.compile(r"\bchar\(")


def char_type(field: StructField) -> str | None:
    """Return the type of a column as it was declared where there is a CHAR in it, None of any other."""
    declared = str(field.metadata.get(_DECLARED, ""))
    return declared if _CHAR.search(declared) else None


def with_chars(
    plan: PhysicalPlan, columns: Iterable[Operand], inputs: Sequence[DataFrame], rows: DataFrame
) -> DataFrame:
    """Return joined rows with their columns with CHAR in them by themselves as well, named ``alias.column``.

    Spark fills up CHAR where it compares such columns with one another or with constants.
    """
    found = []
    for stream, number in columns:
        alias, name = plan.streams[stream].alias, str(plan.streams[stream].columns[number].output)
        declared = char_type(inputs[stream].schema[name])
        if declared is not None:
            field = F.col(f"{quoted(alias)}.{quoted(name)}")
            found.append(field.alias(f"{alias}.{name}", metadata={_DECLARED: declared}))
    return rows.select("*", *found) if found else rows


def structs(
    plan: PhysicalPlan, columns: Iterable[Operand], value: Callable[[int, int], Column]
) -> list[Column]:
    """Return the structs of scan columns; ``value`` is the one of a stream's column number."""
    members: dict[int, list[Column]] = {}
    for stream, number in columns:
        name = str(plan.streams[stream].columns[number].output)
        members.setdefault(stream, []).append(value(stream, number).alias(name))
    return [F.struct(*each).alias(plan.streams[stream].alias) for stream, each in members.items()]
