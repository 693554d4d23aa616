"""What is known of the streams: numbers, each with its source.

A statistic has a name: ``rate`` (rows per second of event time, per unit where event time is
integral), ``width`` (bytes of a row), ``disorder`` (how far rows are usually out of order, in the
plan's unit), ``rows`` (of a table, in all), ``selectivity`` (the share of rows that the filters of
a statement keep), ``distinct.c`` (different values of column c) and ``heaviest.c`` (the share of
the rows with its most frequent value). A running query measures the values of a whole key, whose
name is then that of ``planner.measurement.measured_key`` in the place of the column's.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wjoin.planner.catalog import Estimate, Origin, Relation
from wjoin.planner.keys import KeyPart
from wjoin.planner.measurement import measured_key
from wjoin.planner.physical import StreamScan, TimeKind

DEFAULT_RATE = 1000.0
DEFAULT_UNIT_RATE = 1.0
DEFAULT_DISTINCT = 1000.0
UNIT_INTERVAL = 1000.0
"""Units of an integral event time that a micro-batch is expected to bring."""

DEFAULT_DURATION = 3600.0
"""Seconds (units where event time is integral) that a table spans whose rows were not counted."""

_WIDTHS = {
    "boolean": 1,
    "tinyint": 1,
    "smallint": 2,
    "int": 4,
    "float": 4,
    "date": 4,
    "string": 20,
    "binary": 100,
}
_OTHER_WIDTH = 8
_NESTED_WIDTH = 64
_EQUAL, _RANGE, _UNKNOWN = 0.1, 1 / 3, 0.5
"""Shares of the rows that a filter keeps, by its shape, where nothing else is known."""


@dataclass(frozen=True)
class KeyStatistics:
    """Values of a join key: how many different ones, and the share of the most frequent one."""

    distinct: Estimate
    heaviest: Estimate


KEYLESS = KeyStatistics(Estimate(1.0), Estimate(1.0))
"""All rows of a join without an equality have one key."""


@dataclass(frozen=True)
class StreamStatistics:
    """One FROM item. ``rate`` is per unit of the plan's time; ``keys`` are those of its key codes.

    ``duration`` is what a table spans, in the plan's unit.
    """

    rate: Estimate
    width: Estimate
    disorder: Estimate
    selectivity: Estimate
    duration: Estimate
    keys: tuple[KeyStatistics, ...]

    @property
    def kept_rate(self) -> float:
        """Rows per unit of time that the filters keep."""
        return self.rate.value * self.selectivity.value


def units_per_second(kind: TimeKind) -> int:
    """Return the plan's units of time in a second; an integral event time has units of its own."""
    return 1 if kind is TimeKind.INTEGRAL else 1_000_000


def stream_statistics(
    relation: Relation, scan: StreamScan, keys: Sequence[Sequence[KeyPart]], kind: TimeKind
) -> StreamStatistics:
    """Return what is known of one FROM item; ``keys`` are the parts of each of its key codes."""
    unit = units_per_second(kind)
    known = dict(relation.statistics)
    if relation.measured is not None:
        for name, value in relation.measured.statistics(unit).items():
            known.setdefault(name, Estimate(value, Origin.MEASURED))
    default = DEFAULT_UNIT_RATE if kind is TimeKind.INTEGRAL else DEFAULT_RATE
    rate = known.get("rate", Estimate(default))
    duration = Estimate(DEFAULT_DURATION * unit)
    if "rows" in known:
        duration = Estimate(known["rows"].value / rate.value * unit, known["rows"].origin)
    return StreamStatistics(
        rate=Estimate(rate.value / unit, rate.origin),
        width=known.get("width", Estimate(float(sum(type_width(each.type) for each in scan.columns)))),
        disorder=known.get("disorder", Estimate(float(scan.delay))),
        selectivity=known.get("selectivity", Estimate(_selectivity(scan.filters))),
        duration=duration,
        keys=tuple(_key(known, parts) for parts in keys),
    )


def type_width(spark_type: str) -> int:
    """Return about how many bytes a value of a Spark type takes."""
    if "<" in spark_type:
        return _NESTED_WIDTH
    return _WIDTHS.get(spark_type.partition("(")[0], _OTHER_WIDTH)


def _key(known: Mapping[str, Estimate], parts: Sequence[KeyPart]) -> KeyStatistics:
    """Return the statistics of a key: given or analyzed by column, else measured, else defaults.

    Columns are multiplied as if they were independent.
    """
    whole, columns = measured_key([part.text for part in parts]), [_column(part) for part in parts]
    usual = [_usual(known, column) for column in columns]
    distinct = (
        _product([known.get(f"distinct.{column}") for column in columns])
        or known.get(f"distinct.{whole}")
        or _product([values for values, _ in usual])
    )
    heaviest = (
        _product([known.get(f"heaviest.{column}") for column in columns])
        or known.get(f"heaviest.{whole}")
        or _product([share for _, share in usual])
    )
    if distinct is None or heaviest is None:
        raise AssertionError("every column of a key has defaults")
    if heaviest.origin is Origin.MEASURED and heaviest.value < 1 / distinct.value:
        # Fewer values were given than were measured.
        heaviest = Estimate(1 / distinct.value, distinct.origin)
    return KeyStatistics(distinct, heaviest)


def _column(part: KeyPart) -> str:
    return part.side.plain.column.name.lower() if part.side.plain is not None else ""


def _usual(known: Mapping[str, Estimate], column: str) -> tuple[Estimate, Estimate]:
    values = known.get(f"distinct.{column}", Estimate(DEFAULT_DISTINCT))
    return values, known.get(f"heaviest.{column}", Estimate(1 / values.value, values.origin))


def _product(factors: Sequence[Estimate | None]) -> Estimate | None:
    """Return the product of what is known of the parts of a key, None where it is not of all."""
    product = Estimate(1.0, Origin.GIVEN)
    for each in factors:
        if each is None:
            return None
        product = _times(product, each)
    return product


def _times(first: Estimate, second: Estimate) -> Estimate:
    order = list(Origin)
    worst = max(first.origin, second.origin, key=order.index)
    return Estimate(first.value * second.value, worst)


def _selectivity(filters: Sequence[str]) -> float:
    share = 1.0
    for each in filters:
        if re.search(r"[<>]|\bBETWEEN\b", each, re.IGNORECASE):
            share *= _RANGE
        elif re.search(r"=|\bIS NULL\b", each, re.IGNORECASE):
            share *= _EQUAL
        else:
            share *= _UNKNOWN
    return share
