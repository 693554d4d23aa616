"""What is completed where: by place, from names that a session would know."""

import pytest

from wjoin.shell.completion import Completion, Named, Names, candidates

COLUMNS = {
    "camera1": (Named("obj_id", "bigint"), Named("ts", "timestamp"), Named("odd name", "string")),
    "camera2": (Named("obj_id", "bigint"), Named("ts", "timestamp"), Named("lane", "int")),
}
NAMES = Names(
    relations=(Named("camera1", "stream"), Named("camera2", "stream"), Named("visits", "table")),
    targets=(Named("pairs", "sink"), Named("pairs", "query"), Named("pairs_2", "query")),
    others=(
        *(Named("count(", "function"), Named("edit_distance(", "function")),
        *(Named("wjoin.checkpoint", "setting"), Named("wjoin.plan", "setting")),
    ),
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
        ("SELECT * FROM ", ["camera1", "camera2", "visits", "pairs", "pairs_2"]),
        ("SELECT * FROM camera1 JOIN c", ["camera1", "camera2"]),
        ("SELECT * FROM (SELECT * FROM vi", ["visits"]),
        (f"SELECT A.| {FROM}", ["obj_id", "ts", "`odd name`"]),
        (f"SELECT a.| {FROM} WINDOW (A, B) = 5 SECONDS", ["obj_id", "ts", "`odd name`"]),
        (f"SELECT * {FROM} WINDOW = 5 SECONDS WHERE B.l", ["lane"]),
        (f"SELECT A.od| {FROM}", ["`odd name`"]),
        (f"SELECT X.| {FROM}", []),
        ("SELECT 1; SELECT C.| FROM camera2 C; SELECT 2", ["obj_id", "ts", "lane"]),
        ("SELECT camera1.o| FROM camera1", ["obj_id", "`odd name`"]),
        (f"SELECT * {FROM} WINDOW = 5 SEC", ["SECONDS"]),
        (f"SELECT * {FROM} WINDOW = 5 sec", ["seconds"]),
        (f"SELECT * {FROM} PATH (A, B) WITH", ["WITHIN"]),
        (f"SELECT * {FROM} WINDOW = 5 SECONDS AND DW", ["DWINDOW"]),
        ("SET wjoin.", ["wjoin.checkpoint", "wjoin.plan"]),
        ("set WJOIN.p", ["wjoin.plan"]),
        ("SET wjoin.plan = PS", ["PSP"]),
        ("SELECT /*+ PLAN(PSP), AL", ["ALL", "ALTER", "ALGORITHM"]),
        ("INSERT INTO pa", ["pairs", "pairs_2"]),
        ("INSERT INTO v", ["visits"]),
        ("STOP QUERY p", ["pairs", "pairs_2"]),
        ("DESC STREAM cam", ["camera1", "camera2"]),
        ("EXPLAIN CO", ["COLLATE", "COLUMNS", "COMMENT", "COST", "COMMIT", "COUNTSKETCH", "count("]),
        ("sel", ["select"]),
        ("Des", ["DESC", "DESCRIBE"]),
        ("SELECT edit", ["edit_distance("]),
        ("SELECT 'SELECT * FROM ", []),
        ("SELECT 1 /* FROM ", []),
    ],
)
def test_what_can_stand_at_a_place(text, expected):
    assert completed(text) == expected


def test_in_an_expression_stand_columns_then_aliases_then_keywords():
    found = completed(f"SELECT | {FROM}")
    assert found[:6] == ["obj_id", "ts", "`odd name`", "lane", "A", "B"]
    assert "MATCH_TIME" in found


def test_what_has_been_typed_is_replaced_and_columns_tell_their_types():
    assert candidates("SELECT B.la", 11, NAMES) == []
    text = "SELECT B.la FROM camera2 B"
    assert candidates(text, 11, NAMES) == [Completion("lane", "int", 2)]


@pytest.mark.parametrize(
    ("text", "some"),
    [
        ("", False),
        ("SELECT ", False),
        (f"SELECT * {FROM} ", False),
        ("SELECT * FROM ", True),
        (f"SELECT A.| {FROM}", True),
        ("s", True),
    ],
)
def test_what_nobody_has_asked_for_is_offered_once_something_is_typed_and_where_names_stand(text, some):
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
