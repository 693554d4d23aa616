"""Delays of a query's columns: only event times that are provably untouched have one."""

import pytest

from wjoin.planner.bind.lineage import joined_streams, query_delays, reads
from wjoin.planner.catalog import UNDECLARED, Delay

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
    assert [each.names for each in joined_streams(query, STREAMS)] == expected


@pytest.mark.parametrize(
    ("conditions", "window"),
    [
        ("I.id = C.id", None),
        ("C.ts BETWEEN I.ts AND I.ts + INTERVAL 1 HOUR", "WINDOW (I, C) BETWEEN 0 SECONDS AND 1 HOUR"),
        ("C.ts > I.ts AND I.ts + INTERVAL '9' DAY >= C.ts", "WINDOW (I, C) BETWEEN 0 SECONDS AND 9 DAYS"),
        ("abs(timestampdiff(SECOND, I.ts, C.ts)) <= 5", "WINDOW (I, C) = 5 SECONDS"),
        ("abs(unix_millis(I.ts) - unix_millis(C.ts)) < 1500", "WINDOW (I, C) = 1500 MILLISECONDS"),
        (
            "unix_seconds(C.ts) - unix_seconds(I.ts) BETWEEN 0 AND 7",
            "WINDOW (I, C) BETWEEN 0 SECONDS AND 7 SECONDS",
        ),
        ("C.ts - I.ts <= INTERVAL 1 DAY AND I.ts <= C.ts", "WINDOW (I, C) BETWEEN 0 SECONDS AND 1 DAY"),
        ("C.ts >= I.ts - INTERVAL 10 MINUTES", "WINDOW (I, C) BETWEEN -10 MINUTES AND 10 SECONDS"),
        ("C.ts <= I.ts", "WINDOW (I, C) BETWEEN -10 SECONDS AND 0 SECONDS"),
        ("(I.ts = C.ts)", "WINDOW (I, C) = 0 SECONDS"),
        (
            "C.ts < I.ts + INTERVAL 1 HOUR AND C.ts < I.ts + INTERVAL 2 HOURS AND C.ts >= I.ts",
            "WINDOW (I, C) BETWEEN 0 SECONDS AND 1 HOUR",
        ),
        ("C.ts < I.ts OR C.id = I.id", None),
        ("C.id < I.id + 5 AND C.ts > current_timestamp()", None),
        ("C.ts >= I.ts + INTERVAL 1 HOUR AND C.ts <= I.ts", None),
    ],
)
def test_the_window_that_the_conditions_say_is_proposed(conditions: str, window: str | None) -> None:
    streams = {"impressions": {"ts": SECOND}, "clicks": {"ts": SECOND}}
    for query in (
        f"SELECT * FROM impressions I, clicks C WHERE {conditions}",
        f"SELECT * FROM impressions I JOIN clicks C ON {conditions}",
    ):
        (joined,) = joined_streams(query, streams)
        assert joined.window == window


def test_windows_of_integral_times_and_of_more_streams_are_proposed() -> None:
    (joined,) = joined_streams("SELECT * FROM ma a, ma b WHERE b.t BETWEEN a.t AND a.t + 5", STREAMS)
    assert joined.window == "WINDOW (a, b) BETWEEN 0 AND 5"
    (joined,) = joined_streams(
        "SELECT * FROM mb a JOIN mb b ON abs(timestampdiff(MINUTE, a.ts, b.ts)) <= 2 "
        "JOIN mb c ON c.ts BETWEEN b.ts AND b.ts + INTERVAL 1 HOUR",
        STREAMS,
    )
    assert joined.window == "WINDOW (a, b) = 2 MINUTES AND WINDOW (b, c) BETWEEN 0 SECONDS AND 1 HOUR"
