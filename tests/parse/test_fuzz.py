"""Whatever is typed ends in statements or a coded error with its place."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parse.fuzzing import failures
from tests.tiers import examples, tiers
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_script

TOKENS = """
    SELECT FROM WHERE WINDOW DWINDOW PATH WITHIN BIDIRECTIONAL AND OR NOT BETWEEN ( ) , = <= 5 1.5 250ms
    SECONDS ROWS INTERVAL '5' '1:02' :w - . ; A B C * :: { } [ ] JOIN ON USING LEFT LATERAL WITH
    RECURSIVE AS UNION EXCEPT GROUP BY ORDER LIMIT CREATE STREAM STREAMS SINK VIEW OR REPLACE INSERT
    INTO TABLE OVERWRITE EXPLAIN FORMATTED SET wjoin.k WATERMARK DELAY OF FOR VALUES OPTIONS PARTITIONED
    path ' " ` /* */ -- \\ /*+ ALGORITHM HW CASE WHEN END IN EXISTS IF TO MINUTE SHOW DROP DESCRIBE
    BEGIN DISTINCT TEMP |> $$ é ALTER ANALYZE STATISTICS RESET SAMPLE rate disorder heaviest 1e999 -1 %
""".split()
STATEMENTS = (
    """SELECT /*+ ALGORITHM(HW), BROADCAST(t) */ A.x, (SELECT 1 FROM p, q WINDOW = 5 SECONDS) FROM s1 A,
    (SELECT * FROM c, d WINDOW (c, d) = INTERVAL '1' MINUTE) AS B JOIN t ON A.x = t.y AND (A.z
    BETWEEN 1 AND 2) WINDOW (A, B) = 5 SECONDS AND (DWINDOW (B, t) = :w OR PATH (A, B, t) WITHIN
    (1 hour 30 minutes, 250 ms) BIDIRECTIONAL) WHERE CASE WHEN a AND b THEN 1 END = 1 AND x IN (1,
    2) GROUP BY window(MATCH_TIME(), '1 day') UNION ALL SELECT 1""",
    """CREATE OR REPLACE STREAM camera2 (obj_id BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL 5
    SECONDS) USING parquet OPTIONS (path 'data/camera2', n '1'); INSERT INTO tracked SELECT * FROM
    STREAM t WATERMARK ts DELAY OF INTERVAL 5 SECONDS AS a, u WINDOW A = 5 ROWS""",
    """WITH x AS (SELECT 1), y (a, b) AS (SELECT * FROM a, b WINDOW (a, b) BETWEEN -5 SECONDS AND
    INTERVAL '1 02:03:04' DAY TO SECOND) SELECT * FROM y, x PATH (y, x) WITHIN (:w) WHERE y.a =
    x.b; EXPLAIN FORMATTED SELECT * FROM a, b WINDOW = 5 WHERE `a b`.x = r'x'; DROP STREAM IF
    EXISTS x; CREATE VIEW v AS SELECT * FROM a, b WINDOW = 5; SET wjoin.k = v; CREATE SINK s USING
    f PARTITIONED BY (a, b)""",
    """ALTER STREAM camera1 SET STATISTICS (rate = 1000, width = 120, disorder = 2 SECONDS, selectivity =
    0.1, distinct.obj_id = 5e3, heaviest.`a b`.c = .2); ANALYZE STREAM camera1 SAMPLE 10000 ROWS; ALTER
    STREAM camera1 RESET STATISTICS; ANALYZE STREAM `camera 2`; EXPLAIN ANALYZE SELECT * FROM a, b WINDOW
    = 5 SECONDS; ANALYZE TABLE t COMPUTE STATISTICS""",
)
PIECE = re.compile(r"\w+|\s+|.", re.DOTALL)


def check(text: str) -> None:
    try:
        parse_script(text)
    except WJoinError as error:
        assert error.text == text
        assert error.span is not None
        assert 0 <= error.span.start <= error.span.end <= len(text)
        assert str(error).startswith(f"error[{error.code}]")


@settings(max_examples=examples(500))
@given(st.lists(st.sampled_from(TOKENS), max_size=30).map(" ".join))
def test_random_tokens(text: str) -> None:
    check(text)


@settings(max_examples=examples(200))
@given(st.text(max_size=40))
def test_random_characters(text: str) -> None:
    check(text)


@settings(max_examples=examples(100))
@given(st.sampled_from(STATEMENTS), st.integers(0, 1000), st.booleans())
def test_truncated_statements(statement: str, place: int, from_end: bool) -> None:
    check(statement[place:] if from_end else statement[:place])


@settings(max_examples=examples(500))
@given(st.sampled_from(STATEMENTS), st.data())
def test_mutated_statements(statement: str, data: st.DataObject) -> None:
    pieces = PIECE.findall(statement)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(pieces) - 1))
        match data.draw(st.sampled_from(["delete", "insert", "replace", "swap", "double"])):
            case "delete" if len(pieces) > 1:
                del pieces[place]
            case "insert":
                pieces.insert(place, f" {data.draw(st.sampled_from(TOKENS))} ")
            case "replace":
                pieces[place] = data.draw(st.sampled_from(TOKENS))
            case "swap":
                other = data.draw(st.integers(0, len(pieces) - 1))
                pieces[place], pieces[other] = pieces[other], pieces[place]
            case _:
                pieces.insert(place, pieces[place])
    check("".join(pieces))


@pytest.mark.parametrize("count", tiers([10_000, 100_000], thorough=[10_000, 100_000]))
def test_statements_of_the_corpus_changed_at_random(count: int) -> None:
    """Whatever they say, they are planned or refused: see tests/parse/fuzzing.py."""
    first = 0 if count == 10_000 else random.SystemRandom().randrange(10**9)
    wrong, told = failures(range(first, first + count))
    assert not wrong, "\n\n".join(wrong[:5])
    assert told["planned"] > count // 20
    assert len(told) > 30, "few kinds of errors"
