"""What the planner knows of relations and types, told by whoever holds the Spark session."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from wjoin.planner.measurement import Measurement

INTEGRAL = ("tinyint", "smallint", "int", "bigint")
WHOLE = frozenset({*INTEGRAL, "date", "timestamp", "timestamp_ntz"})
"""Types whose values are whole numbers: of days and microseconds, too."""


class Origin(Enum):
    """Where a statistic comes from; the first one that has it counts."""

    GIVEN = "given"
    ANALYZED = "analyzed"
    MEASURED = "measured"
    DEFAULT = "default"


@dataclass(frozen=True)
class Estimate:
    """A statistic: a number and where it comes from."""

    value: float
    origin: Origin = Origin.DEFAULT


@dataclass(frozen=True)
class Column:
    """A column of a relation: its name and its Spark SQL type as DDL (``decimal(10,2)``)."""

    name: str
    type: str


@dataclass(frozen=True)
class Relation:
    """A relation of a FROM list.

    ``event_time`` is the declared event-time column, None when none was declared;
    ``delay`` its allowed disorder in microseconds (in the column's own unit when integral);
    ``statistics`` are those known by name (see ``planner.statistics``); ``watermark`` says whether a
    watermark of Spark's own is at work in it; ``measured`` is what earlier runs of the query measured.
    """

    columns: tuple[Column, ...]
    event_time: str | None
    delay: int
    streaming: bool
    statistics: Mapping[str, Estimate] = field(default_factory=dict)
    watermark: bool = False
    measured: Measurement | None = None


class Types(Protocol):
    """Spark's own typing rules."""

    def of(self, stream: int, expression: str) -> str:
        """Return the type of an expression over FROM item ``stream`` (its alias is in scope)."""
        ...

    def common(self, first: str, second: str) -> str | None:
        """Return the type to which Spark widens both for ``=``, None when it has none."""
        ...

    def fails_on_overflow(self) -> bool:
        """Return whether a sum of whole numbers that is too large is an error, and not another number."""
        ...
