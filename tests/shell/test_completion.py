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
        ("SELECT * FROM ", ["camera1", "camera2", "visits"]),
        ("SELECT * FROM camera1 JOIN ", ["camera1", "camera2", "visits"]),
        ("SELECT * FROM camera1 A, cam", ["camera1", "camera2"]),
        ("SELECT * FROM (SELECT * FROM vi", ["visits"]),
        (f"SELECT A.| {FROM}", ["obj_id", "ts", "`odd name`"]),
        (f"SELECT A.| {FROM} WINDOW (A, B) = 5 SECONDS", ["obj_id", "ts", "`odd name`"]),
        (f"SELECT * {FROM} WINDOW = 5 SECONDS WHERE B.l", ["lane"]),
        (f"SELECT A.`o| {FROM}", ["`obj_id`", "`odd name`"]),
        (f"SELECT X.| {FROM}", []),
        ("SELECT 1; SELECT C.| FROM camera2 C; SELECT 2", ["obj_id", "ts", "lane"]),
        ("SELECT camera1.o| FROM camera1", ["obj_id", "`odd name`"]),
        (f"SELECT * {FROM} WINDOW (", ["A", "B"]),
        (f"SELECT * {FROM} WINDOW (A, ", ["A", "B"]),
        (f"SELECT * {FROM} PATH (", ["A", "B"]),
        (f"SELECT * {FROM} WINDOW = 5 S", ["SECONDS"]),
        (f"SELECT * {FROM} WINDOW = 5 s", ["seconds"]),
        (f"SELECT * {FROM} WINDOW (A, B) BETWEEN 1 SECOND AND 5 MIN", ["MINUTES"]),
        (f"SELECT * {FROM} PATH (A, B) WITHIN (5 H", ["HOURS"]),
        (f"SELECT * {FROM} PATH (A, B) WITH", ["WITHIN"]),
        (f"SELECT * {FROM} WINDOW (A, B) = 5 SECONDS AND DW", ["DWINDOW"]),
        ("SELECT * FROM camera1 WATERMARK ts DELAY OF INTERVAL 5 SEC", ["SECONDS"]),
        ("SELECT * FROM camera1 WATERMARK ts", ["ts"]),
        ("SELECT 5 ", None),
        ("SET wjoin.", ["wjoin.checkpoint", "wjoin.plan"]),
        ("set WJOIN.p", ["wjoin.plan"]),
        ("SET wjoin.plan = PS", ["PSP"]),
        ("SET wjoin.objective = ", ["latency", "throughput"]),
        ("SELECT /*+ ", ["ALGORITHM(", "BOUNDS(", "PLAN(", "PASSES(", "SHIP("]),
        ("SELECT /*+ PLAN(PSP), AL", ["ALGORITHM("]),
        ("SELECT /*+ BOUNDS(", ["EXACT", "GCA", "LCA"]),
        (f"SELECT /*+ PLAN(S| */ A.ts {FROM}", ["SEMIJOIN", "SIMPLE", "SKEW"]),
        ("INSERT INTO pa", ["pairs"]),
        ("INSERT INTO v", ["visits"]),
        ("STOP QUERY ", ["pairs", "pairs_2"]),
        ("DESCRIBE QUERY p", ["pairs", "pairs_2"]),
        ("DESC STREAM cam", ["camera1", "camera2"]),
        ("DROP SINK p", ["pairs"]),
        ("EXPLAIN C", ["CACHE", "CASE", "CAST", "CLUSTER", "COLLATE", "COLUMNS", "COMMENT", "COST", "CREATE",
                       "CROSS", "CUBE", "CURRENT", "camera1", "camera2", "count("]),
        ("sel", ["select"]),
        ("Des", ["DESCRIBE"]),
        ("SELECT cou", ["count("]),
        (f"SELECT edit {FROM}", None),
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
    assert "MATCH_TIME" in found
    assert not any(each.endswith("count(") for each in found), "hundreds of functions are for those who type"


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
