"""CHAR(n) is filled up with blanks where Spark does so: in keys, conditions, the select list and after it."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from wjoin.testing.rows import rows_of

pytestmark = [pytest.mark.thorough, pytest.mark.sparks]

WINDOW = "WINDOW (A, B) = 1 SECOND"
CONDITIONS = (
    "A.c3 = B.c5",
    "A.c3 = 'ab' AND A.k = B.k",
    "A.c3 IN ('ab') OR B.k = 1",
    "A.c5 = 'ab' OR B.c3 = 'ab   '",
    "A.c3 < B.c5",
    "A.c3 <=> B.c5 AND A.k > 0",
    "A.k = B.k AND NOT (A.c3 <> B.c5)",
    "A.c3 = B.s OR A.c5 = B.v5",
    "A.c3 IN (B.c5, B.c3)",
    "A.c3 IN (B.c5, B.s)",
)
INSIDE = (
    "A.st3 = B.st5",
    "A.st3 <=> B.st5 AND A.k = B.k",
    "A.a3 = B.a5",
    "A.a3 = B.a5 AND A.st3 = B.st3",
    "A.a3 <= B.a5 AND A.k <= B.k",
    "A.last3 = B.last5",
    "A.first3 = B.first5",
    "A.st3.c = B.c5",
    "A.st3.c = B.st5.c OR A.st5.c IN ('ab')",
    "A.st3.c = 'ab' AND A.k = B.k",
    "A.a3[0] = B.c3 OR A.a5[0] = 'ab'",
    "array_contains(A.a5, B.c5) OR array_contains(B.a3, A.c5)",
    "A.m['x'] = B.c3 OR A.m['x'] = B.c5",
)
SELECTED = (
    "A.c3 = B.c5, A.c5 IN ('ab', 'x') AS among, A.c5, B.c5 AS other, length(A.c5),"
    " CASE A.c5 WHEN 'ab' THEN 1 ELSE 0 END AS n, A.st3 = B.st5, A.a3 = B.a5 AS lists, A.st3.c = 'ab',"
    " A.last3 = B.last5 AS lasts, A.st3.c IN ('ab', 'x') AS fields, A.st5.c, A.m['x'] = 'ab' AS value,"
    " A.a3[0] = 'ab', A.st3, A.m, B.a5",
    "A.*",
    "explode(A.a5) AS each",
    "inline(array(A.st5, B.st5))",
)


@pytest.fixture(scope="module")
def strings(spark: SparkSession) -> Iterator[str]:
    """A table with columns of every kind of text."""
    spark.sql("DROP TABLE IF EXISTS strings")
    spark.sql(
        "CREATE TABLE strings (c3 CHAR(3), c5 CHAR(5), v5 VARCHAR(5), s STRING, k INT, ts TIMESTAMP, "
        "st3 STRUCT<c: CHAR(3)>, st5 STRUCT<c: CHAR(5)>, a3 ARRAY<CHAR(3)>, a5 ARRAY<CHAR(5)>, "
        "last3 STRUCT<n: INT, c: CHAR(3)>, last5 STRUCT<n: INT, c: CHAR(5)>, "
        "first3 STRUCT<c: CHAR(3), n: INT>, first5 STRUCT<c: CHAR(5), n: INT>, m MAP<STRING, CHAR(3)>)"
        " USING parquet"
    )
    time = "TIMESTAMP '2024-01-01'"
    rows = [
        ("'ab'", "'ab'", "'ab'", "'ab'"),
        ("'abc'", "'abc '", "'abc'", "'abc  '"),
        ("NULL", "'x'", "NULL", "'x'"),
    ]
    spark.sql(
        "INSERT INTO strings VALUES "
        + ", ".join(
            f"({c3}, {c5}, {v5}, {s}, {k}, {time}, struct({c3}), struct({c5}), array({c3}), array({c5}), "
            f"struct(1, {c3}), struct(1, {c5}), struct({c3}, 1), struct({c5}, 1), map('x', {c3}))"
            for k, (c3, c5, v5, s) in enumerate(rows, 1)
        )
    )
    yield "strings"
    spark.sql("DROP TABLE strings")


def assert_as_without_a_window(session: Any, text: str) -> None:
    """Assert that a statement has the rows and columns that it has without its window."""
    joined, plain = (session.sql(each).toArrow() for each in (text, text.replace(WINDOW, "")))
    assert joined.column_names == plain.column_names
    assert Counter(rows_of(joined)) == Counter(rows_of(plain)), text


@pytest.mark.long
def test_conditions(session: Any, strings: str) -> None:
    found = [
        f"SELECT {n} AS condition, A.k, B.k AS b FROM {strings} A, {strings} B {WINDOW} WHERE {condition}"
        for n, condition in enumerate((*CONDITIONS, *INSIDE))
    ]
    assert_as_without_a_window(session, " UNION ALL ".join(found))


def test_what_is_selected_grouped_and_sorted(session: Any, strings: str) -> None:
    source = f"FROM {strings} A, {strings} B {WINDOW} WHERE A.k = B.k"
    texts = [f"SELECT {each} {source}" for each in SELECTED]
    texts += [
        f"SELECT A.c5, count(*) AS n {source} GROUP BY A.c5 HAVING A.c5 <> 'ab' ORDER BY A.c5",
        f"SELECT * FROM (SELECT A.c5, B.k {source}) AS found WHERE found.c5 = 'ab'",
        f"SELECT * FROM (SELECT A.st3, B.st5, A.a3, B.a5 AS lists {source}) AS found"
        " WHERE found.st3 = found.st5 AND found.a3 = found.lists",
        f"SELECT A.k, view.each FROM {strings} A, {strings} B"
        f" LATERAL VIEW explode(A.a5) view AS each {WINDOW} WHERE A.k = B.k AND view.each = 'ab'",
        f"SELECT A.st3, count(*) AS n {source} GROUP BY A.st3 HAVING max(A.c5) <> 'ab' ORDER BY A.st3",
        f"SELECT c3, A.k, B.k AS b FROM {strings} A JOIN {strings} B USING (c3) {WINDOW} WHERE c3 = 'ab'",
    ]
    for text in texts:
        assert_as_without_a_window(session, text)


def test_a_common_column_with_char_inside(session: Any, strings: str) -> None:
    """Of USING both columns have one name and may have other lengths: no key, since Spark fills them up."""
    two = f"(SELECT st3 AS st, k, ts FROM {strings}) A JOIN (SELECT st5 AS st, k, ts FROM {strings}) B"
    assert_as_without_a_window(session, f"SELECT A.k, B.k AS b FROM {two} USING (st) {WINDOW}")
    explained = session.explain(f"SELECT A.k FROM {strings} A, {strings} B {WINDOW} WHERE A.st3 = B.st5")
    assert "no key" in explained or "without a key" in explained


def test_on_a_stream(session: Any, strings: str, tmp_path: Path) -> None:
    rows = session.spark.readStream.table(strings)
    for name in ("left_strings", "right_strings"):
        session.stream(name, rows, event_time="ts", delay="1 second")
    found = session.sql(
        "SELECT A.k, A.c3 = 'ab' AS same, A.st3.c = 'ab' AS field"
        f" FROM left_strings A, right_strings B {WINDOW} WHERE A.c3 = B.c5 AND A.st3 = B.st5"
    )
    query = (
        found.writeStream.format("memory")
        .queryName("filled_up")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(180)
    assert Counter(map(tuple, session.spark.table("filled_up").collect())) == Counter(
        [(1, True, False), (2, False, False)]
    )
