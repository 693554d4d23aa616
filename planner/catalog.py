"""What the planner knows of relations and types, told by whoever holds the Spark session."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from wjoin.planner.cost.measurement import Measurement

_CHAR = re.compile(r"char\((\d+)\)")

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
    """A column of a relation: its name and its Spark SQL type as DDL (``decimal(10,2)``).

    ``declared``: the type as it was declared where there is a CHAR in it, which is a string to Spark:
    ``char(3)``, ``array<char(3)>``; None of any other.
    """

    name: str
    type: str
    declared: str | None = None

    @property
    def length(self) -> int | None:
        """The n of a column that is a CHAR(n) itself; None of any other."""
        found = _CHAR.fullmatch(self.declared or "")
        return int(found[1]) if found else None


@dataclass(frozen=True)
class Delay:
    """How far rows may be out of order by a column: microseconds, or the column's own unit when integral.

    ``value`` is None where nothing bounds it. ``declared`` says whether somebody has told it: where nobody
    has, it is 0. ``ahead``: how many microseconds later than its micro-batch a row may be, None where that
    is not declared (see ``planner.plan.ahead``). ``shedding``: by which model rows are shed, None where the
    session says it. ``idle_after``: without a row for so many microseconds the stream is silent, None where
    it never is (see ``executor.silence``).
    """

    value: int | None
    declared: bool = True
    ahead: int | None = None
    shedding: str | None = None
    idle_after: int | None = None


UNDECLARED = Delay(0, declared=False)
"""The delay of a stream of which nobody has told one."""

Delays = Mapping[str, Delay]
"""Delays by column, its name in lower case; a field's name is dotted."""


@dataclass(frozen=True)
class SiteFacts:
    """What is known of a stream at one site or several.

    ``widths``: bytes a row of each column that can travel by itself, packed as it travels, by its name in
    lower case. ``latency`` of a request in seconds, ``bandwidth`` in bytes a second, the worst of all sites.
    ``time``: the event-time column of the sites, empty where they have several; ``plain``: the columns that
    are read with the type that they have there; all in lower case.
    """

    widths: Mapping[str, float]
    latency: Estimate
    bandwidth: Estimate
    time: str = ""
    plain: frozenset[str] = frozenset()

    def dated_by(self, event_time: str) -> bool:
        """Return whether an event-time column is the one by which the sites keep rows, as it is there."""
        return event_time.lower() == self.time and self.time in self.plain


SOURCE_HOME = "__wjoin_home"
"""The column with the part of its source that a row comes from, where rows live by that."""

PART_TYPES = {"file": "string", "partition": "int"}
"""The types of that column, by what parts a source has."""


@dataclass(frozen=True)
class Relation:
    """A relation of a FROM list.

    ``event_time`` is the declared event-time column, None when none was declared;
    ``delays`` what is known of the disorder by its columns; ``derived`` whether it is made from
    streams, so that a column without a delay there has none that could be assumed;
    ``statistics`` are those known by name (``planner.cost.stream_statistics``); ``watermarks`` are the delays
    of Spark's own watermarks by column, ``watermark`` says whether one is at work in it;
    ``measured`` is what earlier runs of the query measured; ``site`` what is known of the sites that it is
    read from, None where it is read by Spark itself; ``late_into`` the sink that its late rows go to, empty
    for none; ``home`` the column that says at which node a row lives, empty where none does; ``part`` is of
    what part of its source a row is known to come, a key of `PART_TYPES`, by which it lives then.
    """

    columns: tuple[Column, ...]
    event_time: str | None
    delays: Delays
    streaming: bool
    statistics: Mapping[str, Estimate] = field(default_factory=dict)
    watermark: bool = False
    measured: Measurement | None = None
    derived: bool = False
    watermarks: Mapping[str, int] = field(default_factory=dict)
    site: SiteFacts | None = None
    late_into: str = ""
    home: str = ""
    part: str = ""

    @property
    def home_column(self) -> Column | None:
        """The column that says at which node a row lives, None where nothing does."""
        if self.home:
            return next(each for each in self.columns if each.name.lower() == self.home.lower())
        return Column(SOURCE_HOME, PART_TYPES[self.part]) if self.part else None

    def delay(self, column: str) -> Delay | None:
        """Return the delay of a column; None where the relation is derived and nothing tells it."""
        return self.delays.get(column.lower(), None if self.derived else UNDECLARED)


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

    def time_zone(self) -> str:
        """Return the session's time zone."""
        ...
