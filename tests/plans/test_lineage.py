"""Delays of a query's columns: only event times that are provably untouched have one."""

import pytest

from wjoin.planner.catalog import UNDECLARED, Delay
from wjoin.planner.lineage import joined_streams, query_delays, reads

MS, SECOND, JOIN = Delay(2000), Delay(5_000_000), Delay(None)
STREAMS = {
    "ma": {"t": MS},
    "mb": {"ts": SECOND},
    "plain": {"ts": UNDECLARED},
    "joined": {"a.ts": JOIN, "match_time": SECOND},
}


def delays(query: str) -> object:
    return query_delays(query, STREAMS, lambda name: name.lower().startswith("raw"))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM ma", {"t": MS}),
        ("SELECT id, T FROM MA", {"t": MS}),
        ("SELECT m.t AS x, id FROM ma AS m WHERE id > 3", {"x": MS}),
        ("SELECT ma.t FROM ma LIMIT 5", {"t": MS}),
        ("SELECT *, t + 1 AS later FROM ma", {"t": MS}),
        ("FROM ma SELECT `t` AS at", {"at": MS}),
        ("SELECT x.* FROM (SELECT t AS at FROM ma) AS x", {"at": MS}),
        ("WITH c AS (SELECT * FROM mb), d AS (SELECT ts AS at FROM c) SELECT * FROM d", {"at": SECOND}),
        ("SELECT m.* FROM ma m JOIN names n ON m.id = n.id", {"t": MS}),
        ("SELECT t FROM ma WHERE id IN (SELECT id FROM names)", {"t": MS}),
        ("SELECT A.ts AS first, match_time FROM joined", {"first": JOIN, "match_time": SECOND}),
        ("SELECT ts FROM plain", {"ts": UNDECLARED}),
        ("TABLE ma", {"t": MS}),
        ("SELECT * FROM (TABLE ma)", {"t": MS}),
        ("WITH c AS (TABLE mb) TABLE c", {"ts": SECOND}),
        ("TABLE mb |> WHERE id > 1 |> SELECT ts AS at", {"at": SECOND}),
        ("FROM mb |> EXTEND id + 1 AS more", {"ts": SECOND}),
        ("SELECT * FROM IDENTIFIER('mb')", {"ts": SECOND}),
        ("SELECT * FROM STREAM mb", {"ts": SECOND}),
        ("SELECT * FROM session.mb", {"ts": SECOND}),
        ("SELECT m.ts AS at FROM SYSTEM.`session`.MB AS m", {"at": SECOND}),
        ("SELECT * FROM mb TABLESAMPLE (10 PERCENT)", {"ts": SECOND}),
        ("WITH c AS (WITH d AS (SELECT * FROM mb) SELECT * FROM d) SELECT ts AS at FROM c", {"at": SECOND}),
        ("SELECT table.ts AS at FROM mb AS table", {"at": SECOND}),
    ],
)
def test_an_untouched_event_time_keeps_its_delay(query: str, expected: object) -> None:
    assert delays(query) == expected


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, timestamp_millis(t) AS ts FROM ma",
        "SELECT ts + INTERVAL 1 HOUR AS ts FROM mb",
        "SELECT CAST(ts AS TIMESTAMP_NTZ) AS ts FROM mb",
        "SELECT *, t + 1 AS t FROM ma",
        "SELECT * EXCEPT (t) FROM ma",
        "SELECT id FROM ma",
        "SELECT t FROM ma UNION ALL SELECT ts FROM mb",
        "SELECT a.t FROM ma a JOIN mb b ON a.id = b.id",
        "SELECT t FROM ma JOIN raw USING (id)",
        "SELECT t FROM ma WHERE id IN (SELECT id FROM mb)",
        "SELECT max(t) AS t FROM ma GROUP BY id",
        "SELECT DISTINCT t FROM ma",
        "SELECT t FROM ma LATERAL VIEW explode(array(1)) e AS t",
        "SELECT x AS t FROM ma AS m(x, id)",
        "SELECT t FROM ma WATERMARK t DELAY OF 5 AS m",
        "SELECT count(*) AS t FROM names WHERE id IN (SELECT id FROM ma)",
        "WITH c(t) AS (SELECT id FROM ma) SELECT t FROM c",
        "TABLE ma UNION ALL TABLE ma",
        "SELECT t FROM ma INTERSECT TABLE ma",
        "SELECT * FROM ma PIVOT (max(t) AS t FOR id IN (1, 2))",
        "SELECT a.t FROM ma a JOIN IDENTIFIER('mb') b ON a.id = b.id",
        "SELECT a.t FROM ma a JOIN raw(1) USING (id)",
        "FROM ma |> SELECT id, t + 1 AS t",
        "FROM ma |> AGGREGATE max(t) AS t GROUP BY id",
    ],
)
def test_what_cannot_be_proven_has_no_delay(query: str) -> None:
    assert delays(query) == {}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 'ma' AS ma, t AS mb FROM names",
        "SELECT ma.t FROM names AS ma",
        "WITH ma AS (SELECT 1 AS t) SELECT * FROM ma",
        "SELECT t FROM other.ma",
        "TABLE names",
        "SELECT (ma.table) FROM names AS ma",
        "SELECT 1 -- ma",
    ],
)
def test_a_name_that_merely_occurs_reads_no_stream(query: str) -> None:
    assert delays(query) is None
    assert not reads(query, STREAMS)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM ma, mb WHERE ma.id = mb.id", [("ma", "mb")]),
        ("SELECT * FROM ma AS A JOIN mb AS B ON A.id = B.id JOIN names USING (id)", [("A", "B")]),
        ("SELECT * FROM (SELECT a.id FROM ma a JOIN ma b USING (id)) x", [("a", "b")]),
        ("SELECT * FROM ma JOIN names USING (id)", []),
        ("SELECT * FROM ma WHERE id IN (SELECT id FROM mb)", []),
        ("WITH ma AS (SELECT 1 AS id) SELECT * FROM ma, mb", []),
        ("SELECT 'ma', 'mb'", []),
        ("CREATE TABLE ma (id INT", []),
    ],
)
def test_joins_of_streams_without_a_window_are_found(query: str, expected: object) -> None:
    assert joined_streams(query, STREAMS) == expected
