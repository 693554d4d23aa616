"""Standard SQL with the words of the window clause stays Spark's, and goes there as it stands."""

import pytest

from wjoin.grammar import statement_kinds
from wjoin.grammar.parser import parse_script

SPARK = [
    "SELECT 1",
    "SELECT sum(x) OVER w FROM a, b WINDOW w AS (PARTITION BY x ORDER BY y)",
    "SELECT sum(x) OVER w FROM a, b WHERE a.x = b.x WINDOW w AS (ORDER BY y), v AS w",
    "SELECT sum(x) OVER window FROM a WINDOW window AS (ORDER BY y)",
    "SELECT window(ts, '5 minutes'), count(*) FROM a GROUP BY window(ts, '5 minutes')",
    "SELECT window(ts, '5 minutes').start FROM a, b WHERE window(a.ts, '1 day') = window(b.ts, '1 day')",
    "SELECT * FROM a WHERE window(ts, '5 minutes').start = x AND path(x) = 5",
    "SELECT window, path, dwindow FROM window, path AS dwindow WHERE window = 5 AND NOT path = 3",
    "SELECT a window, b path FROM t dwindow WHERE path BETWEEN 1 AND 2",
    "SELECT window = 5, x OR window y, path = 3 FROM t",
    "SELECT * FROM a, b WINDOW",
    "SELECT * FROM a, b window WHERE window.x = a.x",
    "SELECT * FROM a window JOIN b path ON window.x = path.x AND window.y < 5",
    "SELECT * FROM a, b WINDOW (a, b) WHERE a = 1",
    "SELECT * FROM a PATH (a, b), b AS window (x, y)",
    "SELECT * FROM window(5), path(a, b) p",
    "SELECT * FROM a LEFT JOIN b window USING (path) WHERE window.x IS DISTINCT FROM path",
    "SELECT 'WINDOW = 5 SECONDS' FROM a, b -- WINDOW = 5 SECONDS",
    'SELECT "FROM a, b WINDOW (a, b) = 5 SECONDS" /* FROM a, b WINDOW = 5 /* nested */ WINDOW = 5 */',
    "SELECT r'\\', 'FROM a, b WINDOW = 5 SECONDS' FROM a",
    "SELECT 'it''s WINDOW = 5', 'x\\' WINDOW = 5' FROM a `b WINDOW = 5`",
    "SELECT path(x) WITHIN GROUP (ORDER BY y) FROM a, b",
    "SELECT f(window = 5), g(window => 5), (window) FROM a, b WHERE f(path = 3)",
    "SELECT a.window = 5, b.path (3) FROM a, b WHERE a.window = 5",
    "SELECT CASE window WHEN 5 THEN path ELSE dwindow END FROM a, b",
    "UPDATE t SET window = 5, path = 3 WHERE dwindow = 2",
    "DECLARE VARIABLE window = INTERVAL 5 SECONDS",
    "SET VAR window = INTERVAL 5 SECONDS",
    "CREATE TABLE t (window INT, path STRING) USING parquet OPTIONS (path 'x', window = 5)",
    "CREATE TABLE stream (stream INT)",
    "CREATE STREAMING TABLE t AS SELECT * FROM STREAM s",
    "SELECT * FROM STREAM t WATERMARK ts DELAY OF INTERVAL 5 SECONDS AS a",
    "ALTER TABLE t RENAME COLUMN window TO path",
    "ALTER TABLE stream SET TBLPROPERTIES ('statistics' = '1')",
    "ALTER VIEW stream AS SELECT 1",
    "ANALYZE TABLE stream COMPUTE STATISTICS FOR COLUMNS sample, rate",
    "ANALYZE TABLES COMPUTE STATISTICS NOSCAN",
    "RESET spark.x",
    "EXPLAIN ANALYZE SELECT * FROM a, b",
    "DESCRIBE stream",
    "DESCRIBE window",
    "DROP TABLE stream",
    "SHOW TABLES",
    "SET spark.sql.shuffle.partitions = 2",
    "SET wjoinx.algorithm = 2",
    "EXPLAIN SELECT * FROM a, b",
    "EXPLAIN FORMATTED SELECT window FROM a, b",
    "CREATE OR REPLACE VIEW v AS SELECT window(ts, '1 day') FROM a, b",
    "INSERT OVERWRITE t SELECT 1",
    "INSERT INTO t PARTITION (x = 1) SELECT 1",
    "INSERT INTO t BY NAME SELECT 1 AS a",
    "WITH a AS (SELECT 1) INSERT OVERWRITE t SELECT * FROM a",
    "FROM a INSERT INTO t SELECT x INSERT INTO u SELECT y",
    "SELECT * FROM a |> WHERE window = 5 |> SELECT path",
    "SELECT /*+ BROADCAST(window), ALGORITHM(HW) */ window FROM a window",
    "BEGIN DECLARE window INT DEFAULT 5; IF window = 5 THEN SELECT CASE path WHEN 5 THEN 1 END; END IF; END",
    "this is no SQL at ) all WINDOW",
    # Unclosed things: Spark's own error tells best.
    "SELECT 'unclosed",
    "SELECT * FROM a, b WHERE x = 'unclosed WINDOW = 5 SECONDS",
    "SELECT `unclosed FROM a, b",
    "SELECT 1 /* unclosed",
    "SELECT (window FROM a",
    "SELECT window) FROM a",
]


@pytest.mark.parametrize("text", SPARK)
def test_goes_to_spark_untouched(text: str) -> None:
    (statement,) = parse_script(text)
    assert isinstance(statement, statement_kinds.SparkStatement)
    assert text.startswith(statement.span.of(text))


@pytest.mark.parametrize(
    "body", ["SELECT * FROM a WHERE window = 5", "VALUES (1)", "TABLE a", "(SELECT 1)", "FROM a SELECT x"]
)
def test_insert_without_window_clause(body: str) -> None:
    text = f"INSERT INTO TABLE cat.`d b`.t {body}"
    (statement,) = parse_script(text)
    assert isinstance(statement, statement_kinds.InsertInto)
    assert [part.name for part in statement.target] == ["cat", "d b", "t"]
    assert isinstance(statement.body, statement_kinds.SparkStatement)
    assert statement.body.span.of(text) == body
    assert statement.span.of(text) == text


@pytest.mark.parametrize("head", ["WITH a AS (SELECT 1) ", "FROM a\n", "FROM (SELECT 1) a "])
def test_a_query_may_begin_before_its_insert(head: str) -> None:
    text = f"{head}INSERT INTO t (x)\nSELECT *"
    (statement,) = parse_script(text)
    assert isinstance(statement, statement_kinds.InsertInto)
    assert [part.name for part in statement.target + statement.columns] == ["t", "x"]
    assert isinstance(statement.body, statement_kinds.SparkStatement)
    assert statement.body.written(text) == f"{head}{' ' * len('INSERT INTO t (x)')}\nSELECT *"


@pytest.mark.parametrize("text", ["", " \n", "-- nothing", ";;", "/* ; */ ; -- x"])
def test_no_statement(text: str) -> None:
    assert parse_script(text) == ()
