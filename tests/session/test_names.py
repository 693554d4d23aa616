"""Columns have the names that Spark would give them over the streams themselves."""

import pytest

import wjoin
from tests.tiers import tiers

pytestmark = pytest.mark.spark

JOIN = "FROM a A, b B WINDOW = 5 SECONDS WHERE A.k = B.k"


@pytest.fixture
def tables(session: wjoin.Session) -> wjoin.Session:
    time = "TIMESTAMP '2024-05-01 12:00:00'"
    columns = f"1 AS k, 'x' AS name, {time} AS ts, named_struct('q', 3) AS st, map('a', 1) AS m"
    for name in "ab":
        session.sql(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT {columns}")
    return session


STATEMENTS = [
    f"SELECT string(A.ts), upper(A.name), A.st.q, A.k + 1, 1 + 1, A.m['a'], count(*) OVER () {JOIN}",
    f"SELECT A.k + 1, count(*), max(B.ts), sum(A.k) FILTER (WHERE A.k > 0) {JOIN} GROUP BY A.k + 1",
    f"SELECT *, concat(A.name, '{{', B.name), CASE WHEN A.k > 0 THEN B.k END {JOIN} ORDER BY A.k",
    "SELECT upper(a.name), k + 1 FROM a JOIN b USING (k) WINDOW = 5 SECONDS",
    f"SELECT x.* FROM (SELECT lower(A.name), date(B.ts) {JOIN}) x",
    f"SELECT upper(A.name) || :suffix {JOIN}",
    "SELECT upper(A.name) FROM a WATERMARK ts DELAY OF INTERVAL 1 SECOND AS A, b B "
    "WHERE A.k = B.k WINDOW = 1 SECOND",
]


@pytest.mark.parametrize("statement", tiers(STATEMENTS, long=[STATEMENTS[0], *STATEMENTS[2:]]))
def test_names_are_those_of_the_same_select_in_spark(tables: wjoin.Session, statement: str) -> None:
    plain = statement.replace("WATERMARK ts DELAY OF INTERVAL 1 SECOND ", "")
    for window in ("WINDOW = 5 SECONDS", "WINDOW = 1 SECOND"):
        plain = plain.replace(window, "")
    joined = tables.sql(statement, suffix="!")
    expected = tables.spark.sql(plain, args={"suffix": "!"})
    assert joined.columns == expected.columns
    assert [tuple(row) for row in joined.collect()] == [tuple(row) for row in expected.collect()]


def test_match_functions_are_named_as_functions(tables: wjoin.Session) -> None:
    joined = tables.sql(f"SELECT date_format(MATCH_TIME(), 'HH'), hour(MATCH_START()), MATCH_SPAN() {JOIN}")
    assert joined.columns == ["date_format(match_time(), HH)", "hour(match_start())", "match_span"]
    assert [tuple(row)[:2] for row in joined.collect()] == [("12", 12)]
