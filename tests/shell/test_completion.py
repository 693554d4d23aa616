"""What is completed where: by place, from names that a session would know."""

import pytest

from wjoin.shell.completion import Candidate, Named, Names, candidates

COLUMNS = {
    "camera1": (Named("obj_id", "bigint"), Named("ts", "timestamp"), Named("odd name", "string")),
    "camera2": (Named("obj_id", "bigint"), Named("ts", "timestamp"), Named("lane", "int")),
}
NAMES = Names(
    relations=(Named("camera1", "stream"), Named("camera2", "stream"), Named("visits", "table")),
    sinks=("pairs",),
    queries=("pairs", "pairs_2"),
    functions=(Named("count(", "function"), Named("edit_distance(", "function")),
    settings=("wjoin.checkpoint", "wjoin.plan"),
    columns=lambda relation: COLUMNS.get(relation, ()),
)
FROM = "FROM camera1 AS A, camera2 AS B"
HERE = "|"


def completed(marked: str, *, asked: bool = True) -> list[str]:
    text, cursor = marked.replace(HERE, ""), marked.index(HERE) if HERE in marked else len(marked)
    return [each.text for each in candidates(text, cursor, NAMES, asked=asked)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM ", ["camera1", "camera2", "visits", "STREAM"]),
        ("SELECT * FROM camera1 JOIN ", ["camera1", "camera2", "visits"]),
        ("SELECT * FROM camera1 A, cam", ["camera1", "camera2"]),
        ("SELECT * FROM (SELECT * FROM vi", ["visits"]),
        ("WITH q AS (SELECT 1) SELECT * FROM q", ["q"]),
        (f"SELECT A.| {FROM}", ["obj_id", "ts", "`odd name`"]),
        (f"SELECT A.| {FROM} WINDOW (A, B) = 5 SECONDS", ["obj_id", "ts", "`odd name`"]),
        (f"SELECT * {FROM} WINDOW = 5 SECONDS WHERE B.l", ["lane"]),
        (f"SELECT A.`o| {FROM}", ["`obj_id`", "`odd name`"]),
        (f"SELECT X.| {FROM}", []),
        ("SELECT q.| FROM (SELECT ts AS y, obj_id FROM camera1) q", ["y", "obj_id"]),
        ("SELECT * FROM (SELECT f(*) AS n, A.ts, 1 + 2, k l FROM camera1 A) q ON q.", ["n", "ts", "l"]),
        ("SELECT q.l| FROM (SELECT DISTINCT * FROM (SELECT ts late FROM camera1), camera2) q", ["lane"]),
        ("SELECT q.| FROM (SELECT B.*, 1 AS one FROM camera2 B) q", ["obj_id", "ts", "lane", "one"]),
        ("SELECT q.| FROM (SELECT", []),
        ("SELECT 1; SELECT C.| FROM camera2 C; SELECT 2", ["obj_id", "ts", "lane"]),
        ("SELECT camera1.o| FROM camera1", ["obj_id", "`odd name`"]),
        (f"SELECT * {FROM} WINDOW (", ["A", "B"]),
        (f"SELECT * {FROM} WINDOW (A, ", ["A", "B"]),
        (f"SELECT * {FROM} PATH (", ["A", "B"]),
        (f"SELECT * {FROM} WINDOW = 5 S", ["SECONDS"]),
        (f"SELECT * {FROM} WINDOW = 1 s", ["second"]),
        (f"SELECT * {FROM} WINDOW (A, B) BETWEEN 1 SECOND AND 5 MIN", ["MINUTES"]),
        (f"SELECT * {FROM} WINDOW (A, B) = 1 HOUR 30 MIN", ["MINUTES"]),
        (f"SELECT * {FROM} PATH (A, B) WITHIN (5 H", ["HOURS"]),
        (f"SELECT * {FROM} PATH (A, B) ", ["WITHIN ("]),
        (f"SELECT * {FROM} WINDOW (A, B) = 5 SECONDS AND D", ["DWINDOW"]),
        ("SELECT * FROM camera1 WATERMARK ts DELAY OF INTERVAL 5 SEC", ["SECONDS"]),
        ("SELECT * FROM camera1 WATERMARK t", ["ts"]),
        ("SELECT F.o| FROM camera1 WATERMARK ts DELAY OF INTERVAL 5 SECONDS AS F", ["obj_id", "`odd name`"]),
        ("SELECT 5 ", None),
        ("SET wjoin.", ["wjoin.checkpoint", "wjoin.plan"]),
        ("set WJOIN.p", ["wjoin.plan"]),
        ("SET wjoin.plan = PS", ["PSP"]),
        ("SET wjoin.objective = ", ["latency", "throughput"]),
        ("SELECT /*+ ", ["ALGORITHM(", "BOUNDS(", "PLAN(", "PASSES(", "SHIP("]),
        ("SELECT /*+ PLAN(PSP), AL", ["ALGORITHM("]),
        ("SELECT /*+ BOUNDS(", ["EXACT", "GCA", "LCA"]),
        (f"SELECT /*+ PLAN(S| */ A.ts {FROM}", ["SEMIJOIN", "SIMPLE", "SKEW"]),
        ("INSERT INTO ", ["pairs", "visits"]),
        ("STOP QUERY ", ["pairs", "pairs_2"]),
        ("DESCRIBE QUERY p", ["pairs", "pairs_2"]),
        ("DESC STREAM ", ["camera1", "camera2"]),
        ("DROP STREAM IF EXISTS ", ["camera1", "camera2"]),
        ("DROP SINK ", ["pairs", "IF EXISTS"]),
        ("SHOW CREATE ", ["STREAM", "SINK", "TABLE"]),
        ("SHOW CREATE STREAM ", ["camera1", "camera2"]),
        ("ANALYZE STREAM camera1 ", ["SAMPLE"]),
        ("ALTER STREAM camera1 SET STATISTICS (r", ["rate"]),
        ("EXPLAIN C", ["COST"]),
        ("CREATE STREAM x (a INT) USING pa", ["parquet"]),
        ("CREATE STREAM x (a INT) USING parquet OPTIONS (pa", ["path", "pathGlobFilter"]),
        ("CREATE SINK x USING con", ["console"]),
        ("CREATE STREAM x (at INT) ", ["USING", "AT SITE"]),
        ("CREATE STREAM x (at INT) AT ", ["SITE", "SITES ("]),
        ("CREATE STREAM x AT SITE 'grpc://a:1' OPTIONS (tok", ["token", "tokenFile"]),
        ("CREATE STREAM x (a INT, ts TIMESTAMP) USING json OPTIONS (path 'x') WATERMARK ", ["a", "ts"]),
        ("CREATE STREAM x (ts TIMESTAMP) USING json WATERMARK ts DELAY OF INTERVAL 2 MIN", ["MINUTES"]),
        ("sel", ["select"]),
        ("Des", ["DESCRIBE"]),
        ("SELECT cou", ["count("]),
        ("SELECT 'SELECT * FROM ", []),
        ("SELECT 1 /* FROM ", []),
        ("SELECT * FROM camera1 AS ", []),
    ],
)  # fmt: skip
def test_what_can_stand_at_a_place(text, expected):
    found = completed(text)
    if expected is None:
        assert not {"SECONDS", "MINUTES"} & set(found)
    else:
        assert found == expected


def test_in_an_expression_stand_columns_then_aliases_then_keywords():
    found = completed(f"SELECT | {FROM}")
    assert found[:6] == ["obj_id", "ts", "`odd name`", "lane", "A", "B"]
    assert "MATCH_TIME()" in found
    assert not any(each.endswith("count(") for each in found), "hundreds of functions are for those who type"


def test_columns_of_a_subquery_have_the_types_that_are_known():
    text = "SELECT q. FROM (SELECT B.lane AS l, ts, abs(lane) AS a FROM camera2 B) q"
    assert [(each.text, each.what) for each in candidates(text, 9, NAMES)] == [
        ("l", "int"),
        ("ts", "timestamp"),
        ("a", "column"),
    ]


def test_what_has_been_typed_is_replaced_and_columns_tell_their_types():
    (found,) = candidates("SELECT B.la", 11, NAMES) or [None]
    assert found is None
    text = "SELECT B.la FROM camera2 B"
    assert candidates(text, 11, NAMES) == [Candidate("lane", "int", 2)]


@pytest.mark.parametrize(
    ("text", "some"),
    [
        ("", False),
        ("SELECT ", False),
        (f"SELECT * {FROM} ", False),
        ("SELECT * FROM ", True),
        (f"SELECT A.| {FROM}", True),
        (f"SELECT * {FROM} WINDOW = 5 ", True),
        ("SELECT /*+ ", True),
        ("s", True),
        ("SELECT * FROM\n", False),
    ],
)
def test_what_nobody_has_asked_for_is_offered_where_few_things_can_stand(text, some):
    assert bool(completed(text, asked=False)) is some


def test_nothing_breaks_at_any_place_of_any_prefix():
    texts = [
        f"SELECT /*+ PLAN(PSP, 4) */ A.`odd name`, 'it''s', f(*) {FROM} (WINDOW (A, B) = 5 s OR x) -- y",
        "CREATE STREAM IF NOT EXISTS c (a INT, WATERMARK FOR a AS a - 5) USING kafka OPTIONS (k 'v')",
        "BEGIN DECLARE x INT; SET wjoin.plan = PSP; END; ALTER STREAM camera1 RESET STATISTICS; )))(((.;;`'",
    ]
    for text in texts:
        for end in range(len(text) + 1):
            candidates(text[:end], end, NAMES)
            candidates(text, end, NAMES)
