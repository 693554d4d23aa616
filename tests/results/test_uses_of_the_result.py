"""What may be done with a W-join: match functions, aggregates, subqueries, CTEs, views, static tables."""

import datetime
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from tests.kit.check import assert_batch, assert_stream, deal, patient
from tests.kit.expressions import Field, equal
from tests.kit.oracle import combinations
from tests.kit.statement import Within
from tests.kit.tables import EPOCH, SECOND, events, statement
from wjoin.testing.harness import Source, run_batches, run_static
from wjoin.testing.rows import rows_of

pytestmark = pytest.mark.long

TABLES = {
    "A": events([(i, 3 * i * SECOND, i % 2) for i in range(10)], "k"),
    "B": events([(10 + i, 3 * i * SECOND + SECOND, i % 2) for i in range(10)], "k"),
}
CASE = statement(
    "AB", Within(4 * SECOND), equal(Field("A", "k"), Field("B", "k")), match=("time", "start", "span")
)
JOIN = "FROM s_a AS A, s_b AS B WINDOW = 4 SECONDS WHERE A.k = B.k"


def batch_sources() -> list[Source]:
    return [Source("s_a", [TABLES["A"]]), Source("s_b", [TABLES["B"]])]


def stream_sources(delay: str = "1 hour") -> list[Source]:
    batches = deal(TABLES, 2)
    return [Source(f"s_{alias.lower()}", [each[alias] for each in batches], delay=delay) for alias in "AB"]


def pairs() -> list[tuple[int, int]]:
    """The ids of A and B of every result, by the oracle."""
    ids = {alias: table["id"].to_pylist() for alias, table in TABLES.items()}
    return [(ids["A"][a], ids["B"][b]) for a, b in combinations(CASE, TABLES)]


def at(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(EPOCH / SECOND + seconds, datetime.UTC)


def match_second(a: int, b: int) -> int:
    return max(3 * a, 3 * (b - 10) + 1)


def test_match_functions(session: Any) -> None:
    tables = {"A": events([(1, 0)]), "B": events([(2, -1)]), "C": events([(3, 90 * SECOND)])}
    case = statement("ABC", Within(100 * SECOND), match=("time", "start", "span"))
    wanted = (1, 2, 3, at(90), at(-0.000001), datetime.timedelta(seconds=90, microseconds=1))
    assert assert_batch(session, case, tables) == Counter([wanted])
    assert assert_stream(session, patient(case), deal(tables, 2)).bag == Counter([wanted])


def test_match_functions_have_the_types_of_event_time(session: Any) -> None:
    text = f"SELECT MATCH_TIME() AS t, MATCH_START() AS s, MATCH_SPAN() AS d {JOIN}"
    assert pa.types.is_timestamp(run_static(session, text, batch_sources()).schema.field("t").type)
    types = dict(session.sql(text).dtypes)
    assert types == {"t": "timestamp", "s": "timestamp", "d": "interval day to second"}


@pytest.mark.parametrize("type_", [pa.int64(), pa.int32()], ids=str)
def test_match_functions_of_integral_time_are_numbers(session: Any, type_: pa.DataType) -> None:
    rows = events([(1, 7), (2, 9)], time=type_)
    text = (
        "SELECT MATCH_TIME() AS t, MATCH_SPAN() AS d FROM a AS A, b AS B DWINDOW (A, B) = 2 WHERE A.id < B.id"
    )
    result = run_static(session, text, [Source("a", [rows]), Source("b", [rows])])
    assert rows_of(result) == [(9, 2)]


def test_match_functions_in_where_and_order(session: Any) -> None:
    text = (
        f"SELECT A.id AS a, B.id AS b {JOIN} AND MATCH_SPAN() <= INTERVAL 1 SECOND ORDER BY MATCH_TIME() DESC"
    )
    wanted = [(i, 10 + i) for i in reversed(range(10))]
    assert rows_of(run_static(session, text, batch_sources())) == wanted


@pytest.mark.quick
def test_names_are_found_as_spark_finds_them(session: Any) -> None:
    other = TABLES["B"].rename_columns(["number", "ts", "kind"])
    text = "SELECT id, number, a.K FROM s_a A JOIN s_b b ON K = Kind WINDOW = 4 SECONDS"
    result = run_static(session, text, [Source("s_a", [TABLES["A"]]), Source("s_b", [other])])
    assert Counter(row[:2] for row in rows_of(result)) == Counter(pairs())


def test_star_lists_the_columns_in_the_order_of_from(session: Any) -> None:
    result = run_static(session, f"SELECT * {JOIN}", batch_sources())
    assert result.column_names == ["id", "ts", "k", "id", "ts", "k"]
    assert Counter((row[0], row[3]) for row in rows_of(result)) == Counter(pairs())


def test_aggregates(session: Any) -> None:
    text = f"""SELECT A.k AS k, count(*) AS n, max(B.id) AS latest {JOIN}
               GROUP BY A.k HAVING count(*) > 1 ORDER BY k"""
    wanted = [
        (k, sum(a % 2 == k for a, _ in pairs()), max(b for a, b in pairs() if a % 2 == k)) for k in (0, 1)
    ]
    assert rows_of(run_static(session, text, batch_sources())) == wanted


GROUPED = f"""SELECT window(MATCH_TIME(), '10 seconds').start AS start, count(*) AS n {JOIN}
              GROUP BY window(MATCH_TIME(), '10 seconds')"""


def test_group_by_window_of_match_time(session: Any) -> None:
    wanted = Counter(match_second(a, b) // 10 * 10 for a, b in pairs())
    result = run_static(session, GROUPED, batch_sources())
    assert Counter(rows_of(result)) == Counter((at(start), n) for start, n in wanted.items())


def test_group_by_window_of_match_time_on_a_stream(session: Any) -> None:
    """Every window that is over is emitted once and whole; a far match closes them all."""
    far = 10_000
    closing = {"A": events([(99, far * SECOND, 0)], "k"), "B": events([(199, far * SECOND, 0)], "k")}
    empty = {alias: table.slice(0, 0) for alias, table in TABLES.items()}
    batches = [*deal(TABLES, 3), closing, empty]
    sources = [
        Source(f"s_{alias.lower()}", [each[alias] for each in batches], delay="1 hour") for alias in "AB"
    ]
    run = run_batches(session, GROUPED, sources)
    wanted = Counter(match_second(a, b) // 10 * 10 for a, b in pairs())
    assert run.bag == Counter((at(start), n) for start, n in wanted.items())


def test_subquery(session: Any) -> None:
    text = f"SELECT a, count(*) AS n FROM (SELECT A.id AS a, B.id AS b {JOIN}) WHERE b > 11 GROUP BY a"
    wanted = Counter(a for a, b in pairs() if b > 11)
    result = Counter(rows_of(run_static(session, text, batch_sources())))
    assert result == Counter(wanted.items())


def test_common_table_expression_and_input_subqueries(session: Any) -> None:
    text = """WITH even AS (SELECT * FROM s_a WHERE k = 0),
                   joined AS (SELECT A.id AS a, B.id AS b
                              FROM even AS A, (SELECT id, ts, k FROM s_b WHERE id < 15) AS B
                              WINDOW = 4 SECONDS WHERE A.k = B.k)
              SELECT b, a FROM joined ORDER BY a, b"""
    wanted = sorted((b, a) for a, b in pairs() if a % 2 == 0 and b < 15)
    assert sorted(rows_of(run_static(session, text, batch_sources()))) == wanted


def test_union_of_two_joins(session: Any) -> None:
    text = f"SELECT A.id AS a {JOIN} UNION ALL SELECT B.id {JOIN}"
    result = Counter(row[0] for row in rows_of(run_static(session, text, batch_sources())))
    assert result == Counter(a for a, _ in pairs()) + Counter(b for _, b in pairs())


def test_view_is_usable_from_plain_spark(session: Any) -> None:
    for name, table in TABLES.items():
        session.stream(f"kept_{name.lower()}", session.spark.createDataFrame(table))
    session.sql(
        f"CREATE OR REPLACE TEMP VIEW joined AS SELECT A.id AS a, B.id AS b {JOIN}".replace("s_", "kept_")
    )
    rows = session.spark.sql("SELECT a, b FROM joined").collect()
    assert Counter((row.a, row.b) for row in rows) == Counter(pairs())
    rows = session.sql("SELECT a, b FROM joined WHERE a > 3").collect()
    assert Counter((row.a, row.b) for row in rows) == Counter(pair for pair in pairs() if pair[0] > 3)


def test_plain_tables_need_no_registration(session: Any) -> None:
    for name, table in TABLES.items():
        session.spark.createDataFrame(table).createOrReplaceTempView(f"s_{name.lower()}")
    rows = session.sql(f"SELECT A.id AS a, B.id AS b {JOIN}").collect()
    assert Counter((row.a, row.b) for row in rows) == Counter(pairs())


def test_event_time_named_in_place(session: Any) -> None:
    twice = TABLES["A"].append_column("seen", TABLES["A"]["ts"])
    session.spark.createDataFrame(twice).createOrReplaceTempView("twice")
    text = """SELECT A.id AS a, B.id AS b
              FROM twice WATERMARK ts DELAY OF INTERVAL 5 SECONDS AS A, s_b AS B
              WINDOW = 4 SECONDS WHERE A.k = B.k"""
    result = run_static(session, text, [Source("s_b", [TABLES["B"]])])
    assert Counter(rows_of(result)) == Counter(pairs())


def test_a_join_of_a_join(session: Any) -> None:
    text = """SELECT J.a, J.b, C.id AS c
              FROM (SELECT A.id AS a, B.id AS b, A.k AS k, MATCH_TIME() AS at
                    FROM s_a AS A, s_b AS B WINDOW = 4 SECONDS WHERE A.k = B.k) AS J, s_c AS C
              DWINDOW (J, C) = 0 SECONDS WHERE J.k = C.k"""
    sources = [*batch_sources(), Source("s_c", [TABLES["A"]])]
    wanted = Counter((a, b, a) for a, b in pairs() if match_second(a, b) == 3 * a)
    assert Counter(rows_of(run_static(session, text, sources))) == wanted


@pytest.mark.parametrize("width", [datetime.timedelta(seconds=4), "4 seconds"], ids=str)
def test_parameters(session: Any, width: Any) -> None:
    text = "SELECT A.id AS a, B.id AS b FROM s_a AS A, s_b AS B WINDOW = :w WHERE A.k = B.k AND A.id > :least"
    result = run_static(session, text, batch_sources(), w=width, least=4)
    assert Counter(rows_of(result)) == Counter(pair for pair in pairs() if pair[0] > 4)


def test_integral_parameter(session: Any) -> None:
    rows = events([(i, i) for i in range(6)], time=pa.int64())
    text = "SELECT A.id AS a, B.id AS b FROM a AS A, b AS B WINDOW (A, B) BETWEEN 1 AND :w"
    sources = [Source("a", [rows], "ts"), Source("b", [rows], "ts")]
    wanted = Counter((a, b) for a in range(6) for b in range(6) if 1 <= b - a <= 2)
    assert Counter(rows_of(run_static(session, text, sources, w=2))) == wanted


def test_static_table_joins_the_result_of_a_stream(session: Any) -> None:
    session.spark.createDataFrame([(0, "even"), (1, "odd")], "k BIGINT, word STRING").createOrReplaceTempView(
        "words"
    )
    text = f"""SELECT J.a, J.b, words.word FROM (SELECT A.id AS a, B.id AS b, A.k AS k {JOIN}) AS J
               JOIN words ON words.k = J.k"""
    run = run_batches(session, text, stream_sources())
    assert run.bag == Counter((a, b, "odd" if a % 2 else "even") for a, b in pairs())


def test_subquery_of_a_stream_is_a_stream(session: Any) -> None:
    text = """SELECT A.id AS a, B.twice AS twice
              FROM s_a AS A, (SELECT ts, k, id * 2 AS twice FROM s_b WHERE id <> 12) AS B
              WINDOW = 4 SECONDS WHERE A.k = B.k"""
    run = run_batches(session, text, stream_sources())
    assert run.bag == Counter((a, 2 * b) for a, b in pairs() if b != 12)


def test_words_of_the_language_stay_sparks_own_elsewhere(session: Any) -> None:
    text = f"""SELECT A.id AS a, 'WINDOW = 5' AS `window`, -- WINDOW (A, B) = 3
                      row_number() OVER w AS place
               {JOIN} AND A.id < 2 WINDOW w AS (PARTITION BY A.k ORDER BY B.id)"""
    rows = rows_of(run_static(session, text, batch_sources()))
    left = [pair for pair in pairs() if pair[0] < 2]
    assert Counter(row[0] for row in rows) == Counter(a for a, _ in left)
    assert {row[1] for row in rows} == {"WINDOW = 5"}
