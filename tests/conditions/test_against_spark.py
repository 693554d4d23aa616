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
from wjoin.planner.conditions import ReadCondition

NAN, INF = math.nan, math.inf
EDGES = {
    "y": [None, -128, -1, 0, 1, 127],
    "h": [None, -(2**15), -1, 0, 7, 2**15 - 1],
    "i": [None, -(2**31), -1, 0, 5, 2**31 - 1],
    "l": [None, -(2**63), -1, 2**53 + 1, 2**62, 2**63 - 1],
    "f": [None, -INF, -0.0, 1.1, 16777217.0, NAN],
    "d": [None, -INF, -0.0, 0.1, 1e308, NAN],
    "m": [None, *map(Decimal, ("-99999999.99", "-0.01", "0.00", "0.10", "99999999.99"))],
    "s": [None, "", "a", "ab", "ä", "\U0001f600"],
    "b": [None, True, False, True, False, True],
    "t": [
        None,
        *(
            datetime.date(*day)
            for day in ((1, 1, 1), (1969, 12, 31), (1970, 1, 1), (2024, 2, 29), (9999, 12, 31))
        ),
    ],
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
)
MILD = {
    "y": [None, -3, 1, 7],
    "h": [None, -20, 2, 7],
    "i": [None, -100, 5, 1000],
    "l": [None, -(10**6), 3, 7],
    "f": [None, -1.5, 0.1, 2.25],
    "d": [None, -0.1, 0.3, 1e6],
    "m": [None, *map(Decimal, ("-1.25", "0.10", "12.50"))],
    "s": [None, "a", "ab", "ä"],
    "b": [None, True, False, True],
    "t": [None, *(datetime.date(*day) for day in ((1969, 12, 31), (1970, 1, 1), (2024, 2, 29)))],
}
"""Values with which nothing overflows, and none is divided by zero."""

INEXACT = ("float", "decimal(10,2)")
"""Types of which more may be kept than is true: they are not computed as Spark does."""

ALL = (*COMPARISONS, *ARITHMETIC, *OTHERS)


@pytest.mark.parametrize(("values", "ansi"), [(EDGES, False), (MILD, False), (MILD, True)])
def test_whatever_is_true_is_kept(spark: SparkSession, values: dict[str, list[Any]], ansi: bool) -> None:
    read_ones = {text: found for text in ALL if isinstance(found := read(text), ReadCondition)}
    # Only quotients of decimals and remainders of fractions are left to Spark.
    assert len(read_ones) > len(ALL) * 0.8
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
        if values is MILD and not any(each.column.type in INEXACT for each in found.columns):
            assert not (kept & ~true).any(), text


def _by_spark(
    spark: SparkSession, values: dict[str, list[Any]], texts: tuple[str, ...], ansi: bool
) -> tuple[tuple[Any, Any], dict[str, Any]]:
    """Return the numbers of the rows of all pairs, and for each condition where it is true to Spark."""
    fields = ", ".join(["n int", *(f"{name} {TYPES[name]}" for name in values)])
    rows = [(n, *row) for n, row in enumerate(zip(*values.values(), strict=True))]
    spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    try:
        for stream in "ab":
            spark.createDataFrame(rows, fields).createOrReplaceTempView(stream)
        shown = ", ".join(f"coalesce({text}, false) AS c{n}" for n, text in enumerate(texts))
        table = spark.sql(f"SELECT a.n AS a, b.n AS b, {shown} FROM a, b").toArrow()
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    found = {text: table.column(f"c{n}").to_numpy() for n, text in enumerate(texts)}
    return (table.column("a").to_numpy(), table.column("b").to_numpy()), found
