"""What is known of the streams: numbers, each with its source.

A statistic has a name: ``rate`` (rows per second of event time, per unit where event time is
integral), ``width`` (bytes of a row), ``disorder`` (how far rows are usually out of order, in the
plan's unit), ``rows`` (of a table, in all), ``selectivity`` (the share of rows that the filters of
a statement keep), ``matched`` (the share of those rows that are in a result), ``distinct.c`` (different
values of column c), ``heaviest.c`` (the share of the rows with its most frequent value), ``minimum.c`` and
``maximum.c`` (its least and greatest value),
``bucket.c`` (that of the code of its most frequent value, which only ANALYZE STREAM finds), ``local.c`` (of
the pairs of rows with the same value of it, the share that live at one node).
A running query measures the values of a whole key, whose name is then that of
``planner.cost.measurement.measured_key`` in the place of the column's.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from wjoin.parts.routes.hash_route import BUCKETS
from wjoin.planner.catalog import WHOLE, Estimate, Origin, Relation
from wjoin.planner.conditions.column_bands import ColumnBand
from wjoin.planner.cost.measurement import measured_key
from wjoin.planner.plan.physical import StreamScan, TimeKind
from wjoin.planner.shape.join_keys import KeyPart
from wjoin.planner.text.scope import StreamColumn

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
    # Pictures more often than digests.
    "binary": 1000,
}
_OTHER_WIDTH = 8
_NESTED_WIDTH = 64
_EQUAL, _RANGE, _UNKNOWN = 0.1, 1 / 3, 0.5
"""Shares of the rows that a filter keeps, by its shape, where nothing else is known."""

_BAND_SHARE = 0.01
"""The share of pairs that a band of two bounds keeps, where the values of its columns are not known."""

_QUANTILES = (np.arange(64) + 0.5) / 64


@dataclass(frozen=True)
class KeyStatistics:
    """Values of a join key: how many different ones, and the share of the most frequent one.

    ``bucket``: that of its code, None where it is not known. ``local``: of the pairs of rows with the same
    key, the share that live at one node, None where it is not known.
    """

    distinct: Estimate
    heaviest: Estimate
    bucket: int | None = None
    local: Estimate | None = None


KEYLESS = KeyStatistics(Estimate(1.0), Estimate(1.0))
"""All rows of a join without an equality have one key."""

UNIQUE = KeyStatistics(Estimate(math.inf), Estimate(0.0))
"""No two rows have the same key."""


@dataclass(frozen=True)
class StreamStatistics:
    """One FROM item. ``rate`` is per unit of the plan's time; ``keys`` are those of its key codes.

    ``duration`` is what a table spans, in the plan's unit. ``met``: the measured results of a stage for
    each row of this stream, by the stage's name. ``matched``: the share of its rows that are in a result,
    None where nobody has told or measured it.
    """

    rate: Estimate
    width: Estimate
    disorder: Estimate
    selectivity: Estimate
    duration: Estimate
    keys: tuple[KeyStatistics, ...]
    met: Mapping[str, float] = field(default_factory=dict)
    matched: Estimate | None = None

    @property
    def kept_rate(self) -> float:
        """Rows per unit of time that the filters keep."""
        return self.rate.value * self.selectivity.value


def units_per_second(kind: TimeKind) -> int:
    """Return the plan's units of time in a second; an integral event time has units of its own."""
    return 1 if kind is TimeKind.INTEGRAL else 1_000_000


_UNITS = {
    "width": "bytes",
    "rows": "rows",
    "selectivity": "share",
    "matched": "share",
    "distinct": "values",
    "heaviest": "share",
    "minimum": "value",
    "maximum": "value",
    "bucket": f"of {BUCKETS}",
    "local": "share",
}


def statistic_unit(name: str, kind: TimeKind) -> str:
    """Return the unit in which a statistic is shown; an integral event time has units of its own.

    >>> statistic_unit("rate", TimeKind.TIMESTAMP), statistic_unit("distinct.k", TimeKind.INTEGRAL)
    ('rows/s', 'values')
    """
    time = "units" if kind is TimeKind.INTEGRAL else "seconds"
    if name == "rate":
        return "rows/unit" if kind is TimeKind.INTEGRAL else "rows/s"
    return _UNITS.get(name.partition(".")[0], time)


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
        met={} if relation.measured is None else relation.measured.results_of_row(),
        matched=known.get("matched"),
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
    # Rows with the same key have the same value of each of its columns.
    local = known.get(f"local.{columns[0]}") if len(columns) == 1 else None
    return KeyStatistics(distinct, heaviest, _bucket(known, parts), local)


def _bucket(known: Mapping[str, Estimate], parts: Sequence[KeyPart]) -> int | None:
    """Return the bucket of the most frequent value of a key that is one column, as ANALYZE has found it."""
    if len(parts) != 1:
        return None
    found = known.get(f"bucket.{_column(parts[0])}")
    # In another type the value has another code.
    alike = parts[0].own_type == parts[0].type or {parts[0].own_type, parts[0].type} <= WHOLE
    return int(found.value) if found is not None and alike else None


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


def band_share(band: ColumnBand, relations: Sequence[Relation]) -> Estimate:
    """Return the share of pairs of rows that a band keeps, the values of its columns spread evenly."""
    left, right = (_span(column, relations[column.stream]) for column in (band.left, band.right))
    if left is None or right is None:
        return Estimate(_RANGE if band.low is None or band.high is None else _BAND_SHARE)
    (first, last, origin), (least, greatest, other) = left, right
    values = first + _QUANTILES * (last - first)
    # Of the values of the right column, those from value - high to value - low are inside.
    low = np.full(len(values), least) if band.high is None else np.clip(values - band.high, least, greatest)
    high = np.full(len(values), greatest) if band.low is None else np.clip(values - band.low, least, greatest)
    share = float(np.maximum(0.0, high - low).mean()) / max(1.0, greatest - least)
    # A single whole number is inside where no length is.
    least_share = 1 / max(1.0, greatest - least) if band.slack == 0 else 1e-6
    return Estimate(min(1.0, max(share, least_share)), _worst(origin, other))


def _span(column: StreamColumn, relation: Relation) -> tuple[float, float, Origin] | None:
    """Return the least and the greatest value of a column, and where they are from; None if not known."""
    name = column.column.name.lower()
    ends = [relation.statistics.get(f"{end}.{name}") for end in ("minimum", "maximum")]
    if ends[0] is None or ends[1] is None or ends[1].value < ends[0].value:
        return None
    return ends[0].value, ends[1].value, _worst(ends[0].origin, ends[1].origin)


def _worst(first: Origin, second: Origin) -> Origin:
    return max(first, second, key=list(Origin).index)


def _times(first: Estimate, second: Estimate) -> Estimate:
    return Estimate(first.value * second.value, _worst(first.origin, second.origin))


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
