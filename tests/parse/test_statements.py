"""Scripts, declarations, and the statements around a query with a window clause."""

import subprocess
import sys
from pathlib import Path

import pytest

from wjoin.grammar import statement_kinds, syntax
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_script, parse_statement
from wjoin.grammar.printer import print_declaration

JOIN = "SELECT * FROM A, B WINDOW = 5 SECONDS"


def test_script() -> None:
    text = f"""
    -- first; a comment
    CREATE STREAM a USING parquet;
    SET spark.x = ';'; ;
    {JOIN};
    /* last; */ SELECT 1
    """
    statements = parse_script(text)
    kinds = [type(statement) for statement in statements]
    assert kinds == [
        statement_kinds.CreateStream,
        statement_kinds.SparkStatement,
        statement_kinds.Query,
        statement_kinds.SparkStatement,
    ]
    assert [statement.span.of(text) for statement in statements] == [
        "CREATE STREAM a USING parquet",
        "SET spark.x = ';'",
        JOIN,
        "SELECT 1",
    ]


def test_sql_script_is_one_statement() -> None:
    body = (
        "BEGIN IF a THEN SELECT CASE WHEN b THEN 1 END; END IF; BEGIN SELECT 2; END;"
        " WHILE c DO SELECT 3; END WHILE; END"
    )
    assert [statement.span.of(f"{body}; SELECT 4") for statement in parse_script(f"{body}; SELECT 4")] == [
        body,
        "SELECT 4",
    ]
    assert len(parse_script(f"name: {body}; SELECT 4")) == 2


def test_create_stream() -> None:
    text = """CREATE OR REPLACE STREAM camera1 (obj_id BIGINT, ts TIMESTAMP NOT NULL, -- when
      m MAP<STRING, DECIMAL(10, 2)> COMMENT 'a, b')
    USING parquet OPTIONS (path 'data/camera1', maxFilesPerTrigger = 1, `a b` -2, a.b true, 'c d' "x" 'y')
    WATERMARK ts DELAY OF INTERVAL 5 SECONDS"""
    statement = parse_statement(text)
    assert isinstance(statement, statement_kinds.CreateStream)
    assert (statement.name.name, statement.provider.name) == ("camera1", "parquet")
    assert (statement.or_replace, statement.if_not_exists) == (True, False)
    assert statement.columns == (
        "obj_id BIGINT, ts TIMESTAMP NOT NULL, m MAP<STRING, DECIMAL(10, 2)> COMMENT 'a, b'"
    )
    assert statement.options == (
        ("path", "data/camera1"),
        ("maxFilesPerTrigger", "1"),
        ("a b", "-2"),
        ("a.b", "true"),
        ("c d", "xy"),
    )
    assert statement.watermark is not None
    assert statement.watermark.column.name == "ts"
    assert statement.watermark.span.of(text) == "WATERMARK ts DELAY OF INTERVAL 5 SECONDS"
    assert statement.span.of(text) == text


def test_create_stream_in_flinks_words() -> None:
    text = """CREATE STREAM IF NOT EXISTS camera2 (obj_id BIGINT, ts TIMESTAMP,
      WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS)
    USING parquet OPTIONS (path 'data/camera2')"""
    statement = parse_statement(text)
    assert isinstance(statement, statement_kinds.CreateStream)
    assert (statement.or_replace, statement.if_not_exists) == (False, True)
    assert statement.columns == "obj_id BIGINT, ts TIMESTAMP"
    assert statement.watermark is not None
    assert isinstance(statement.watermark.delay, syntax.TimeDuration)
    assert statement.watermark.delay.microseconds == 5_000_000


@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAM s USING a.b.C",
        "create stream s using a.b.C",
        "CREATE STREAM `s` USING `a.b.C`",
    ],
)
def test_create_stream_alone(text: str) -> None:
    statement = parse_statement(text)
    assert isinstance(statement, statement_kinds.CreateStream)
    assert (statement.columns, statement.options, statement.watermark) == (None, (), None)
    assert statement.provider.name == "a.b.C"


@pytest.mark.parametrize(
    ("watermark", "delay"),
    [("WATERMARK ts", None), ("WATERMARK FOR ts AS ts", None), ("WATERMARK ts DELAY OF 10", 10)],
)
def test_watermark_without_duration(watermark: str, delay: int | None) -> None:
    statement = parse_statement(f"CREATE STREAM s (ts BIGINT) USING f {watermark}")
    assert isinstance(statement, statement_kinds.CreateStream)
    assert statement.watermark is not None
    found = statement.watermark.delay
    assert found is None if delay is None else isinstance(found, syntax.BareNumber) and found.value == delay


def test_computed_columns() -> None:
    text = """CREATE STREAM s (
      as BIGINT, ts AS /* of, all */ timestamp_millis(`as`), -- a, b)
      m MAP<STRING, DECIMAL(10,2)>, `a, b` AS CAST(m AS MAP<STRING, INT>), low AS `as` < 3, high AS 2 > `as`,
      both AS `as` BETWEEN 1 AND 2 AND x < array(1, 2)[0], cast AS x::STRUCT<a: INT, b: ARRAY<INT>>,
      WATERMARK FOR ts AS ts - '5 seconds', watermark AS concat(x, ', )'), as AS 1, x STRUCT<a: INT, b: INT>
    ) USING f"""
    statement = parse_statement(text)
    assert isinstance(statement, statement_kinds.CreateStream)
    assert statement.columns == "as BIGINT, m MAP<STRING, DECIMAL(10,2)>, x STRUCT<a: INT, b: INT>"
    assert [(each.name.name, each.place, each.expression) for each in statement.computed] == [
        ("ts", 1, "timestamp_millis(`as`)"),
        ("a, b", 3, "CAST(m AS MAP<STRING, INT>)"),
        ("low", 4, "`as` < 3"),
        ("high", 5, "2 > `as`"),
        ("both", 6, "`as` BETWEEN 1 AND 2 AND x < array(1, 2)[0]"),
        ("cast", 7, "x::STRUCT<a: INT, b: ARRAY<INT>>"),
        ("watermark", 8, "concat(x, ', )')"),
        ("as", 9, "1"),
    ]
    for column in statement.computed:
        assert column.expression_span.of(text) == column.expression
        assert column.span.of(text).endswith(column.expression)
    assert statement.watermark is not None and statement.watermark.column.name == "ts"


def test_computed_columns_alone() -> None:
    statement = parse_statement("CREATE STREAM s (ts AS timestamp, n AS value) USING rate WATERMARK ts")
    assert isinstance(statement, statement_kinds.CreateStream)
    assert statement.columns is None
    assert [column.place for column in statement.computed] == [0, 1]


def test_columns_named_by_keywords() -> None:
    columns = "watermark INT, for TIMESTAMP, window STRUCT<a: INT, b: ARRAY<INT>>, `a,b` INT"
    statement = parse_statement(f"CREATE STREAM stream ({columns}) USING f OPTIONS (window 'x', set 'y')")
    assert isinstance(statement, statement_kinds.CreateStream)
    assert statement.columns == columns
    assert statement.options == (("window", "x"), ("set", "y"))


def test_string_escapes_in_options() -> None:
    text = r"""CREATE SINK s USING f OPTIONS (a 'it\'s', b 'x''y', c r'\d', d "\u00e9\t\\", e '\%\x')"""
    statement = parse_statement(text)
    assert isinstance(statement, statement_kinds.CreateSink)
    assert [value for _, value in statement.options] == ["it's", "x'y", "\\d", "é\t\\", "\\%x"]


def test_create_sink() -> None:
    statement = parse_statement(
        "CREATE SINK tracked USING parquet OPTIONS (path 'o') PARTITIONED BY (a, `b c`)"
    )
    assert isinstance(statement, statement_kinds.CreateSink)
    assert (statement.name.name, statement.provider.name) == ("tracked", "parquet")
    assert statement.options == (("path", "o"),)
    assert [column.name for column in statement.partitioned_by] == ["a", "b c"]


def test_records() -> None:
    """FORMAT and KEY, in any order among the other parts; the words are names everywhere else."""
    stream = parse_statement(
        "CREATE STREAM format (key INT, format INT, t AS timestamp) USING kafka WATERMARK t FORMAT Json"
        " OPTIONS (key 'x', format 'y')"
    )
    assert isinstance(stream, statement_kinds.CreateStream) and stream.record_format is not None
    assert (stream.name.name, stream.columns, stream.record_format.name) == (
        "format",
        "key INT, format INT",
        "json",
    )
    assert stream.options == (("key", "x"), ("format", "y"))
    sink = parse_statement("CREATE SINK key USING kafka OPTIONS (topic 'x') KEY (`format`) FORMAT AVRO")
    assert isinstance(sink, statement_kinds.CreateSink) and sink.record_format and sink.key
    assert (sink.name.name, sink.record_format.name, sink.key.name) == ("key", "avro", "format")


def test_late_rows() -> None:
    """The clause stands among the other parts; its words are names everywhere else."""
    stream = parse_statement(
        "CREATE STREAM late (late INT, rows INT, ts TIMESTAMP) USING csv LATE ROWS INTO rows"
        " OPTIONS (into 'x') WATERMARK ts DELAY OF 5 SECONDS"
    )
    assert isinstance(stream, statement_kinds.CreateStream) and stream.late_rows is not None
    assert (stream.name.name, stream.late_rows.name, stream.options) == ("late", "rows", (("into", "x"),))
    assert print_declaration(stream).endswith("DELAY OF 5 SECONDS LATE ROWS INTO `rows`")


def test_small_declarations() -> None:
    text = """SHOW PREDICATES; SHOW STREAMS; DESCRIBE STREAM a; DESC STREAM `b c`;
    DROP STREAM a; DROP STREAM IF EXISTS b;
    SET wjoin.algorithm = mw; SET wjoin.a.b = 'x y'; set WJOIN.c = 1 2 -- end"""
    statements = parse_script(text)
    predicates, shown, first, second, drop, guarded, *settings = statements
    assert isinstance(predicates, statement_kinds.ShowPredicates)
    assert isinstance(shown, statement_kinds.ShowStreams)
    assert isinstance(first, statement_kinds.DescribeStream) and first.name.name == "a"
    assert isinstance(second, statement_kinds.DescribeStream) and second.name.name == "b c"
    assert isinstance(drop, statement_kinds.DropStream) and (drop.name.name, drop.if_exists) == ("a", False)
    assert isinstance(guarded, statement_kinds.DropStream) and (guarded.name.name, guarded.if_exists) == (
        "b",
        True,
    )
    pairs = [(each.key, each.value) for each in settings if isinstance(each, statement_kinds.SetOption)]
    assert pairs == [("wjoin.algorithm", "mw"), ("wjoin.a.b", "x y"), ("WJOIN.c", "1 2")]


def test_statements_about_queries() -> None:
    text = "SHOW QUERIES; DESC QUERY `a b`; DESCRIBE QUERY stop; stop query query"
    shown, first, second, stopped = parse_script(text)
    assert isinstance(shown, statement_kinds.ShowQueries)
    assert isinstance(first, statement_kinds.DescribeQuery) and first.name.name == "a b"
    assert isinstance(second, statement_kinds.DescribeQuery) and second.name.name == "stop"
    assert isinstance(stopped, statement_kinds.StopQuery) and stopped.name.name == "query"
    for text in ("DESCRIBE QUERY SELECT 1", "DESC QUERY TABLE t", "DESCRIBE query"):
        assert isinstance(parse_statement(text), statement_kinds.SparkStatement)


def test_declarations_of_sinks() -> None:
    text = """SHOW SINKS; DESCRIBE SINK a; DESC SINK `b c`; DROP SINK a; DROP SINK IF EXISTS b;
    SHOW CREATE STREAM sink; SHOW CREATE SINK stream"""
    shown, first, second, drop, guarded, stream, sink = parse_script(text)
    assert isinstance(shown, statement_kinds.ShowSinks)
    assert isinstance(first, statement_kinds.DescribeSink) and first.name.name == "a"
    assert isinstance(second, statement_kinds.DescribeSink) and second.name.name == "b c"
    assert isinstance(drop, statement_kinds.DropSink) and (drop.name.name, drop.if_exists) == ("a", False)
    assert isinstance(guarded, statement_kinds.DropSink) and (guarded.name.name, guarded.if_exists) == (
        "b",
        True,
    )
    assert isinstance(stream, statement_kinds.ShowCreateStream) and stream.name.name == "sink"
    assert isinstance(sink, statement_kinds.ShowCreateSink) and sink.name.name == "stream"


@pytest.mark.parametrize(
    ("rest", "by", "sample"),
    [
        ("", None, None),
        (" BY region", "region", None),
        (" by `a b` sample 10 rows", "a b", 10),
        (" SAMPLE 5 ROWS", None, 5),
    ],
)
def test_analyze_stream(rest: str, by: str | None, sample: int | None) -> None:
    statement = parse_statement(f"ANALYZE STREAM s{rest}")
    assert isinstance(statement, statement_kinds.AnalyzeStream)
    found = None if statement.by is None else statement.by.name
    assert (statement.name.name, found, statement.sample) == ("s", by, sample)


def test_set_statistics() -> None:
    text = """ALTER STREAM `camera 1` SET STATISTICS (rate = 1000, WIDTH = 1.2e2, disorder = 2 SECONDS,
      selectivity = .1, Distinct.k = + 5000L, heaviest.`a b`.c = 0.2, distinct.disorder = 3)"""
    statement = parse_statement(text)
    assert isinstance(statement, statement_kinds.AlterStream)
    assert (statement.name.name, statement.span.of(text)) == ("camera 1", text)
    entries = statement.statistics or ()
    found = [(each.name, [part.name for part in each.column], each.value) for each in entries]
    assert found == [
        ("rate", [], 1000),
        ("width", [], 120),
        ("disorder", [], syntax.TimeDuration(2_000_000, span=entries[2].span)),
        ("selectivity", [], 0.1),
        ("distinct", ["k"], 5000),
        ("heaviest", ["a b", "c"], 0.2),
        ("distinct", ["disorder"], 3),
    ]
    assert entries[4].span.of(text) == "Distinct.k = + 5000L"
    assert [part.span.of(text) for part in entries[5].column] == ["`a b`", "c"]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("disorder = 20", 20),
        ("disorder = 1 MINUTE 30 SECONDS", 90_000_000),
        ("Disorder = INTERVAL '1:30' MINUTE TO SECOND", 90_000_000),
        ("disorder = :slack", "slack"),
        ("disorder = 0", 0),
        ("disorder = '2 seconds'", 2_000_000),
    ],
)
def test_disorder(written: str, value: int | str) -> None:
    statement = parse_statement(f"ALTER STREAM s SET STATISTICS ({written}, rate = 1)")
    assert isinstance(statement, statement_kinds.AlterStream)
    assert statement.statistics is not None
    match statement.statistics[0].value:
        case syntax.TimeDuration(found) | syntax.BareNumber(found):
            assert found == value
        case other:
            assert isinstance(other, syntax.Parameter) and other.name == value


def test_shares_may_be_none_and_all() -> None:
    statement = parse_statement("ALTER STREAM s SET STATISTICS (selectivity = 0, heaviest.k = 1)")
    assert isinstance(statement, statement_kinds.AlterStream)
    assert [entry.value for entry in statement.statistics or ()] == [0, 1]


def test_statements_of_streams_named_by_keywords() -> None:
    text = "alter stream reset reset statistics; ANALYZE STREAM sample; ANALYZE STREAM `a b` SAMPLE 1e3 ROWS"
    reset, whole, sampled = parse_script(text)
    assert isinstance(reset, statement_kinds.AlterStream)
    assert (reset.name.name, reset.statistics) == ("reset", None)
    assert isinstance(whole, statement_kinds.AnalyzeStream) and (whole.name.name, whole.sample) == (
        "sample",
        None,
    )
    assert isinstance(sampled, statement_kinds.AnalyzeStream)
    assert (sampled.name.name, sampled.sample) == ("a b", 1000)
    assert sampled.span.of(text) == "ANALYZE STREAM `a b` SAMPLE 1e3 ROWS"


@pytest.mark.parametrize("mode", ["", "FORMATTED", "COST", "ANALYZE"])
def test_explain(mode: str) -> None:
    text = f"EXPLAIN {mode.lower()} WITH c AS (SELECT 1) {JOIN}"
    statement = parse_statement(text)
    assert isinstance(statement, statement_kinds.Explain)
    assert statement.mode == mode
    assert statement.body.span.of(text) == f"WITH c AS (SELECT 1) {JOIN}"
    assert statement.body.blocks[0].span.of(text) == JOIN


@pytest.mark.parametrize("head", ["INSERT INTO t", "CREATE OR REPLACE VIEW v AS"])
def test_explain_of_what_holds_a_query(head: str) -> None:
    statement = parse_statement(f"EXPLAIN {head} {JOIN}")
    assert isinstance(statement, statement_kinds.Explain)
    assert statement.body.span.of(f"EXPLAIN {head} {JOIN}") == JOIN


@pytest.mark.parametrize(
    "body", [JOIN, f"({JOIN})", f"WITH c AS (SELECT 1) {JOIN}", f"SELECT * FROM ({JOIN})"]
)
def test_insert(body: str) -> None:
    text = f"INSERT INTO tracked {body}"
    statement = parse_statement(text)
    assert isinstance(statement, statement_kinds.InsertInto)
    assert isinstance(statement.body, statement_kinds.Query)
    assert statement.body.span.of(text) == body
    assert statement.body.blocks[0].span.of(text) == JOIN


@pytest.mark.parametrize("body", [JOIN, f"({JOIN})", "SELECT 1, 2", "VALUES (1, 2)", "TABLE t"])
def test_insert_with_columns(body: str) -> None:
    text = f"INSERT INTO tracked (`x y`, table) {body}"
    statement = parse_statement(text)
    assert isinstance(statement, statement_kinds.InsertInto)
    assert [column.name for column in statement.columns] == ["x y", "table"]
    assert statement.body.span.of(text) == body


@pytest.mark.parametrize("body", ["(SELECT 1)", "(TABLE t)", "VALUES (1)", "(VALUES (1))"])
def test_insert_of_a_query_in_parentheses(body: str) -> None:
    statement = parse_statement(f"INSERT INTO t {body}")
    assert isinstance(statement, statement_kinds.InsertInto)
    assert statement.columns == ()


@pytest.mark.parametrize(
    ("head", "or_replace"),
    [
        ("CREATE VIEW `v`", False),
        ("CREATE OR REPLACE VIEW v", True),
        ("CREATE TEMP VIEW v", False),
        ("CREATE OR REPLACE TEMPORARY VIEW v", True),
    ],
)
def test_create_view(head: str, or_replace: bool) -> None:
    text = f"{head} AS {JOIN}"
    statement = parse_statement(text)
    assert isinstance(statement, statement_kinds.CreateView)
    assert (statement.name.name, statement.or_replace) == ("v", or_replace)
    assert statement.body.span.of(text) == JOIN
    assert statement.span.of(text) == text


SET = (
    f"EXECUTE STATEMENT SET {{}}BEGIN INSERT INTO one {JOIN}; "
    "INSERT INTO two SELECT CASE WHEN x THEN 1 END AS e, t.end FROM t; END"
)


@pytest.mark.parametrize(
    ("named", "name"), [("", None), ("cameras ", "cameras"), ("`my set` ", "my set"), ("set ", "set")]
)
def test_statement_set(named: str, name: str | None) -> None:
    text = SET.format(named)
    before, statement, after = parse_script(f"SELECT 1; {text}; SELECT 2")
    assert isinstance(statement, statement_kinds.StatementSet)
    assert (statement.name and statement.name.name) == name
    assert [each.target[0].name for each in statement.inserts] == ["one", "two"]
    assert [type(each.body) for each in statement.inserts] == [
        statement_kinds.Query,
        statement_kinds.SparkStatement,
    ]
    assert statement.inserts[0].span.of(f"SELECT 1; {text}") == f"INSERT INTO one {JOIN}"
    assert {type(before), type(after)} == {statement_kinds.SparkStatement}


@pytest.mark.parametrize(
    ("words", "name", "keep_others"),
    [
        ("", None, False),
        ("cameras", "cameras", False),
        ("on failure keep others", None, True),
        ("cameras ON FAILURE KEEP OTHERS", "cameras", True),
        ("cameras ON FAILURE STOP ALL", "cameras", False),
        ("failure", "failure", False),
    ],
)
def test_what_comes_of_a_failure_stands_before_begin(words: str, name: str | None, keep_others: bool) -> None:
    statement = parse_statement(f"EXECUTE STATEMENT SET {words} BEGIN INSERT INTO a SELECT 1; END")
    assert isinstance(statement, statement_kinds.StatementSet)
    assert (statement.name.name if statement.name else None, statement.keep_others) == (name, keep_others)
    assert len(statement.inserts) == 1


@pytest.mark.parametrize("mode", ["", "COST", "FORMATTED"])
def test_explain_statement_set(mode: str) -> None:
    text = f"EXPLAIN {mode} {SET.format('cameras ').removeprefix('EXECUTE ')}"
    statement = parse_statement(text)
    assert isinstance(statement, statement_kinds.ExplainSet)
    assert statement.mode == mode
    assert statement.body.span.of(text) == SET.format("cameras ").removeprefix("EXECUTE ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("EXECUTE STATEMENT SET", "the statement set has no BEGIN"),
        ("EXECUTE STATEMENT SET a INSERT INTO b SELECT 1", "the statement set has no BEGIN"),
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1;", "the statement set has no END"),
        ("EXECUTE STATEMENT SET BEGIN ; END", "the statement set is empty"),
        ("EXECUTE STATEMENT SET BEGIN SELECT 1; END", "a statement set holds only INSERT INTO statements"),
        ("EXPLAIN STATEMENT SET BEGIN INSERT INTO a SELECT 1; END END", "holds only INSERT INTO statements"),
    ],
)
def test_statement_sets_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(WJoinError, match="WJ106") as caught:
        parse_statement(text)
    assert message in caught.value.message
    assert caught.value.span is not None


@pytest.mark.parametrize("history", ["", " with history"])
def test_a_statement_is_added_to_a_set(history: str) -> None:
    text = f"ALTER STATEMENT SET `my set` ADD INSERT INTO one {JOIN}{history}"
    statement = parse_statement(text)
    assert isinstance(statement, statement_kinds.AlterSet)
    assert statement.added is not None
    assert (statement.name.name, statement.history) == ("my set", bool(history))
    assert statement.added.span.of(text) == f"INSERT INTO one {JOIN}"
    assert statement.dropped is None


def test_a_statement_is_dropped_from_a_set() -> None:
    statement = parse_statement("alter statement set cameras drop `one`")
    assert isinstance(statement, statement_kinds.AlterSet)
    assert statement.added is None
    assert statement.dropped is not None
    assert (statement.name.name, statement.dropped.name) == ("cameras", "one")


@pytest.mark.parametrize(
    "change", ["", " s", " s ADD", " s DROP", " s DROP a, b", " s ADD SELECT 1", " s DROP a WITH HISTORY"]
)
def test_changes_of_sets_that_cannot_be_read(change: str) -> None:
    with pytest.raises(WJoinError, match="this change of a statement set cannot be read") as caught:
        parse_statement(f"ALTER STATEMENT SET{change}")
    assert caught.value.code == "WJ106"


def test_one_statement() -> None:
    for text in ("", "SELECT 1; SELECT 2"):
        with pytest.raises(WJoinError, match="WJ606"):
            parse_statement(text)


def test_errors_name_their_source() -> None:
    with pytest.raises(WJoinError) as caught:
        parse_script("SELECT 1;\nSHOW STREAMS now", source_name="a.sql")
    assert "--> a.sql:2:14" in str(caught.value)


def test_import_needs_no_spark() -> None:
    code = (
        "import sys; from wjoin.grammar.parser import parse_script;"
        "parse_script('SELECT * FROM a, b WINDOW = 5');"
        "sys.exit(any(name.split('.')[0] in ('pyspark', 'py4j', 'pandas', 'numpy') for name in sys.modules))"
    )
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=root).returncode == 0
