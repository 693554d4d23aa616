"""CHAR(n) is filled up with blanks where Spark does so: in keys, conditions, the select list and after it."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from wjoin.testing.oracle import rows_of

pytestmark = pytest.mark.thorough

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
)
SELECTED = (
    "A.c3 = B.c5",
    "A.c5 IN ('ab', 'x') AS among, A.c5, B.c5 AS other",
    "CASE A.c5 WHEN 'ab' THEN 1 ELSE 0 END AS chosen, length(A.c5)",
    "A.*",
)


@pytest.fixture(scope="module")
def strings(spark: SparkSession) -> Iterator[str]:
    """A table with columns of every kind of text."""
    spark.sql("DROP TABLE IF EXISTS strings")
    spark.sql(
        "CREATE TABLE strings (c3 CHAR(3), c5 CHAR(5), v5 VARCHAR(5), s STRING, k INT, ts TIMESTAMP)"
        " USING parquet"
    )
    time = "TIMESTAMP '2024-01-01'"
    spark.sql(
        f"INSERT INTO strings VALUES ('ab', 'ab', 'ab', 'ab', 1, {time}), "
        f"('abc', 'abc ', 'abc', 'abc  ', 2, {time}), (NULL, 'x', NULL, 'x', 3, {time})"
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
    for condition in CONDITIONS:
        assert_as_without_a_window(
            session, f"SELECT A.k, B.k AS b FROM {strings} A, {strings} B {WINDOW} WHERE {condition}"
        )


def test_what_is_selected_grouped_and_sorted(session: Any, strings: str) -> None:
    source = f"FROM {strings} A, {strings} B {WINDOW} WHERE A.k = B.k"
    texts = [f"SELECT {each} {source}" for each in SELECTED]
    texts += [
        f"SELECT A.c5, count(*) AS n {source} GROUP BY A.c5 HAVING A.c5 <> 'ab' ORDER BY A.c5",
        f"SELECT * FROM (SELECT A.c5, B.k {source}) AS found WHERE found.c5 = 'ab'",
        f"SELECT c3, A.k, B.k AS b FROM {strings} A JOIN {strings} B USING (c3) {WINDOW} WHERE c3 = 'ab'",
    ]
    for text in texts:
        assert_as_without_a_window(session, text)


def test_on_a_stream(session: Any, strings: str, tmp_path: Path) -> None:
    rows = session.spark.readStream.table(strings)
    for name in ("left_strings", "right_strings"):
        session.stream(name, rows, event_time="ts", delay="1 second")
    found = session.sql(
        f"SELECT A.k, A.c3 = 'ab' AS same FROM left_strings A, right_strings B {WINDOW} WHERE A.c3 = B.c5"
    )
    query = (
        found.writeStream.format("memory")
        .queryName("filled_up")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(180)
    assert Counter(map(tuple, session.spark.table("filled_up").collect())) == Counter([(1, True), (2, False)])
