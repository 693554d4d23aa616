"""Conditions over all pairs of values, and Spark's own answer: whatever is true is kept, and little else."""

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.conditions.reading import TYPES, read
from tests.conditions.test_pairs import ARROW
from wjoin.executor.conditions import prepared
from wjoin.planner.conditions.expressions import is_exact
from wjoin.planner.conditions.readable import ReadCondition

NAN, INF = math.nan, math.inf
INSTANTS = [
    datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC)
    for text in (
        "0001-01-01 00:00:00",
        "1969-12-31 23:59:59.999999",
        "2024-03-31 00:59:59.5",
        "2024-03-31 01:00:00",
        "9999-12-31 23:59:59.999999",
    )
]
"""At the ends, before 1970, and around an hour that clocks in Europe do not have."""

EDGES = {
    "y": [None, -128, -1, 0, 1, 127],
    "h": [None, -(2**15), -1, 0, 7, 2**15 - 1],
    "i": [None, -(2**31), -1, 0, 5, 2**31 - 1],
    "l": [None, -(2**63), -1, 2**53 + 1, 2**62, 2**63 - 1],
    "f": [None, -INF, -0.0, 1.1, 16777217.0, NAN],
    "d": [None, -INF, -0.0, 0.1, 1e308, NAN],
    "m": [None, *map(Decimal, ("-99999999.99", "-0.01", "0.00", "0.10", "99999999.99"))],
    "w": [None, *map(Decimal, ("-0.010000", "0.000000", "0.100000", "99999999999999.999999", "1.000001"))],
    "u": [
        None,
        *map(Decimal, ("-1e37", "0", "9007199254740993", "9223372036854775808", "12345678901234567890")),
    ],
    "s": [None, "", "a", "ab", "ä", "\U0001f600"],
    "b": [None, True, False, True, False, True],
    "t": [
        None,
        *(
            datetime.date(*day)
            for day in ((1, 1, 1), (1969, 12, 31), (1970, 1, 1), (2024, 2, 29), (9999, 12, 31))
        ),
    ],
    "ts": [None, *INSTANTS],
    "n": [None, *(each.replace(tzinfo=None) for each in INSTANTS)],
}
NUMBERS = ("y", "h", "i", "l", "f", "d", "m")
COMPARISONS = tuple(
    f"a.{first} {operator} b.{second}"
    for first in NUMBERS
    for second in NUMBERS
    for operator in ("=", "<", ">=", "<>")
)
ARITHMETIC = tuple(
    f"a.{first} {operator} b.{second} > 1" for first in NUMBERS for second in NUMBERS for operator in "+-*/%"
)
OTHERS = (
    "a.s < b.s",
    "a.s >= b.s",
    "a.s <> b.s AND a.s > 'a'",
    "a.s <=> b.s",
    "a.t < b.t",
    "a.t <> b.t OR a.b",
    "NOT (a.b AND b.b)",
    "a.b = b.b",
    "a.b <=> b.b",
    "a.i BETWEEN b.y AND b.h",
    "NOT (a.i BETWEEN b.y AND b.h)",
    "a.i IN (b.i, 5, 7L)",
    "NOT (a.i IN (b.i, 5))",
    "abs(a.i - b.l) <= 10",
    "greatest(a.d, b.d) > 0",
    "least(a.d, b.d) < 0.05",
    "greatest(a.i, b.i) = a.i",
    "coalesce(a.d, b.d) <= 0.1",
    "sqrt(abs(a.d)) < abs(b.d)",
    "sqrt(abs(a.d)) > 1",
    "a.s IS NOT NULL AND a.t = DATE '2024-02-29' AND b.i > -5",
    "a.i NOT IN (1, b.i)",
    "startswith(a.s, 'a') OR b.i IS NULL",
    "endswith(a.s, 'b') AND contains(b.s, 'a')",
    "a.i * 0.5 > b.m + 1.25",
    "a.d - b.d < 0.3 AND a.f * 2 > b.y",
    "-a.i < b.i",
    "a.m * b.m > 100",
    "a.m + b.i < 0.5",
    "a.m * b.m - 0.25 <= a.i * b.y",
    "a.w < b.w",
    "a.w - b.w >= b.m",
    "a.w * 1.5 <> b.w",
    "a.w > b.d",
    "a.w <=> b.m",
    "a.u = b.u",
    "a.u < b.l",
    "a.u >= b.m",
    "-a.u <= b.u",
    "abs(a.u) > b.f",
    "a.m IN (b.w, 0.1)",
    "NOT (a.m BETWEEN b.w AND b.i)",
    "a.f + b.f > 0.1",
    "a.f * b.f < a.f - b.f",
    "a.f / b.f <= a.d",
    "a.f <=> b.d",
    "a.f IN (b.f, 0)",
    "greatest(a.f, b.f) <= least(a.d, b.d)",
    "abs(-a.f) >= b.f",
)
TIMES = (
    "a.ts < b.ts",
    "a.ts >= b.ts - INTERVAL 1 HOUR",
    "a.ts + INTERVAL 500 MILLISECONDS = b.ts",
    "a.ts - INTERVAL '86399' SECOND < b.ts",
    "a.ts BETWEEN b.ts - INTERVAL 2 HOURS AND b.ts + INTERVAL 1 HOUR 30 MINUTES",
    "a.n + INTERVAL 3 DAYS > b.n",
    "a.n - b.n > INTERVAL 1 SECOND",
    "NOT (a.n - b.n <= INTERVAL -1 DAY)",
    "a.ts > TIMESTAMP '2024-03-31 00:59:59.5Z' OR b.i > 5",
    "a.n > TIMESTAMP_NTZ '2024-03-31 00:59:59.5' OR b.i > 5",
    "a.t < b.n",
    "CAST(a.t AS TIMESTAMP_NTZ) = b.n OR a.b",
    "a.t + 1 = b.t",
    "a.t - b.h > DATE '1970-01-01'",
    "date_add(a.t, b.i) > b.t",
    "date_sub(a.t, 366) < b.t",
    "a.t + INTERVAL 31 DAYS >= b.t",
    "a.t - b.t < INTERVAL 1 DAY",
    "datediff(a.t, b.t) BETWEEN -1 AND 1",
    "abs(datediff(a.t, b.t)) > b.i",
    "unix_seconds(a.ts) < unix_seconds(b.ts)",
    "abs(unix_millis(a.ts) - unix_millis(b.ts)) <= 500",
    "unix_micros(a.ts) - unix_micros(b.ts) = 500000",
    "CAST(a.ts AS BIGINT) = CAST(b.ts AS BIGINT)",
    "CAST(a.ts AS DOUBLE) - CAST(b.ts AS DOUBLE) < 0.5",
    "greatest(a.ts, b.ts) = a.ts",
    "least(a.t, b.t) < DATE '1970-01-01'",
    "a.ts IN (b.ts, TIMESTAMP '1969-12-31 23:59:59.999999Z')",
)
TEXTS = (
    "a.s LIKE 'a%' AND b.i > 0",
    "a.s NOT LIKE '%b' OR b.s LIKE '%'",
    "a.s LIKE '%a%' AND b.s LIKE 'ab'",
    "NOT (a.s LIKE 'a%b') OR b.s LIKE '%ä%'",
    "a.s LIKE '' OR b.s LIKE '%a%b%'",
    "greatest(a.s, b.s) = 'ab'",
    "coalesce(a.s, b.s) > 'a'",
    "nullif(a.s, b.s) = 'a'",
    "CASE WHEN a.i > b.i THEN a.s WHEN a.b THEN 'x' ELSE b.s END > 'a'",
)
CHOICES = (
    "CASE WHEN a.i > b.i THEN a.i ELSE b.i END > 5",
    "CASE WHEN a.i > b.i THEN a.i END > 5",
    "CASE WHEN a.b THEN a.d WHEN b.b THEN b.d ELSE 0.5 END > 0.05",
    "CASE a.i WHEN 5 THEN b.i WHEN b.i THEN 1 ELSE NULL END IS NULL",
    "CASE WHEN a.b THEN b.b WHEN a.i > b.i THEN a.i > 0 ELSE a.s = b.s END",
    "NOT CASE WHEN a.b THEN b.b WHEN a.i > b.i THEN a.i > 0 END",
    "CASE WHEN b.l <> 0 THEN a.l / b.l ELSE 1D END > 0.5",
    "CASE WHEN a.d > b.d THEN a.y ELSE b.l END > 1",
    "if(a.b, a.t, b.t) < DATE '2024-02-29'",
    "if(a.d < b.d, a.i, NULL) IS NULL AND if(b.b, a.y, b.h) > 0",
    "coalesce(a.i, b.l, 7) > 5",
    "coalesce(a.t, b.t) > DATE '1970-01-01'",
    "ifnull(a.f, b.d) > 1",
    "nvl(a.m, b.m) > 0",
    "nullif(a.d, b.d) > 0",
    "nullif(a.i, b.l) IS NULL",
    "greatest(a.i, b.l, 3) <= 5",
    "least(a.i, b.d) < 0.3",
    "greatest(a.m, b.d) > 1",
    "coalesce(a.m, b.w, 0) >= 0.1",
    "coalesce(a.w, b.i) < b.m",
    "CASE WHEN a.m > b.m THEN a.m ELSE b.w END > 0",
    "nullif(a.m, b.w) IS NULL",
)
CASTS = (
    "CAST(a.m AS DOUBLE) < b.d",
    "CAST(a.l AS DOUBLE) = CAST(b.l AS DOUBLE)",
    "a.l::int = b.y",
    "TRY_CAST(a.l AS INT) > b.y",
    *(
        f"CAST(a.{name} AS {kind}) > b.i"
        for name in ("y", "h", "i", "l", "f", "d")
        for kind in ("int", "bigint", "double")
    ),
)
NARROW = tuple(
    f"CAST(a.{name} AS {kind}) > b.i"
    for name in ("y", "h", "i", "l", "f", "d")
    for kind in ("tinyint", "smallint")
)
"""Of which also mild values may be too large."""

MILD = {
    "y": [None, -3, 1, 7],
    "h": [None, -20, 2, 7],
    "i": [None, -100, 5, 1000],
    "l": [None, -(10**6), 3, 7],
    "f": [None, -1.5, 0.1, 2.25],
    "d": [None, -0.1, 0.3, 1e6],
    "m": [None, *map(Decimal, ("-1.25", "0.10", "12.50"))],
    "w": [None, *map(Decimal, ("-1.250001", "0.100000", "7.000000"))],
    "u": [None, *map(Decimal, ("-1", "7", "12345678901234567890"))],
    "s": [None, "a", "ab", "ä"],
    "b": [None, True, False, True],
    "t": [None, *(datetime.date(*day) for day in ((1969, 12, 31), (1970, 1, 1), (2024, 2, 29)))],
    "ts": [None, *INSTANTS[1:4]],
    "n": [None, *(each.replace(tzinfo=None) for each in INSTANTS[1:4])],
}
"""Values with which nothing overflows, and none is divided by zero."""

ALL = (*COMPARISONS, *ARITHMETIC, *OTHERS, *TIMES, *TEXTS, *CHOICES, *CASTS, *NARROW)


@pytest.mark.parametrize(
    ("values", "ansi"),
    [
        (EDGES, False),
        pytest.param(MILD, False, marks=pytest.mark.long),
        pytest.param(MILD, True, marks=pytest.mark.long),
    ],
)
def test_whatever_is_true_is_kept(spark: SparkSession, values: dict[str, list[Any]], ansi: bool) -> None:
    texts = [text for text in ALL if values is EDGES or text not in NARROW]
    read_ones = {text: found for text in texts if isinstance(found := read(text), ReadCondition)}
    # Only quotients of decimals and remainders of fractions are left to Spark.
    assert len(read_ones) > len(ALL) * 0.8
    assert read_ones.keys() >= {*TIMES, *TEXTS, *CHOICES, *CASTS}
    pairs, truths = _by_spark(spark, values, tuple(read_ones), ansi)
    for text, true in truths.items():
        found = read_ones[text]
        columns = [
            pa.array(values[each.column.name], ARROW[each.column.type]).take(pa.array(pairs[each.stream]))
            for each in found.columns
        ]
        test = prepared(found.expression, columns)
        kept = np.broadcast_to(test.at(test.inputs), len(true))
        assert not (true & ~kept).any(), text
        if is_exact(found.expression):
            unsure = np.broadcast_to(test.undecided(), len(true))
            assert not (kept & ~true & ~unsure).any(), text
            assert values is not MILD or not unsure.any(), text


def _by_spark(
    spark: SparkSession, values: dict[str, list[Any]], texts: tuple[str, ...], ansi: bool
) -> tuple[tuple[Any, Any], dict[str, Any]]:
    """Return the numbers of the rows of all pairs, and for each condition where it is true to Spark."""
    fields = ", ".join(["number int", *(f"{name} {TYPES[name]}" for name in values)])
    rows = [(n, *row) for n, row in enumerate(zip(*values.values(), strict=True))]
    spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    zone = spark.conf.get("spark.sql.session.timeZone")
    # Its clocks skip an hour: what is tested may not depend on a zone.
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        for stream in "ab":
            spark.createDataFrame(rows, fields).createOrReplaceTempView(stream)
        shown = ", ".join(f"coalesce({text}, false) AS c{n}" for n, text in enumerate(texts))
        table = spark.sql(f"SELECT a.number AS a, b.number AS b, {shown} FROM a, b").toArrow()
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
        spark.conf.set("spark.sql.session.timeZone", str(zone))
    found = {text: table.column(f"c{n}").to_numpy() for n, text in enumerate(texts)}
    return (table.column("a").to_numpy(), table.column("b").to_numpy()), found
