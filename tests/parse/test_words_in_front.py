"""The parser in front of Spark's (java/) knows a word of each statement of wjoin's, and so lets none pass."""

import re
from collections.abc import Iterator

import pytest

from tests.kit.kinds import kinds_of_statements
from tests.packages import ROOT
from wjoin.grammar import statement_kinds
from wjoin.grammar.clauses import grammar
from wjoin.grammar.parser import parse_statement
from wjoin.statements.about import subject
from wjoin.udfs.built_in import known_predicates

SOURCE = (ROOT / "java" / "wjoin" / "sql" / "ParserInFront.java").read_text()


def pattern(name: str) -> re.Pattern[str]:
    """Return a pattern of the Java source; what it holds means the same in Python."""
    (text,) = re.findall(rf'Pattern {name} =\s*Pattern\.compile\(\s*"([^"]*)"', SOURCE)
    return re.compile(text.replace("\\\\", "\\"), re.IGNORECASE)


ABOUT = (
    *("DROP TABLE s", "DROP VIEW IF EXISTS s", "ALTER TABLE s ADD COLUMN z INT", "ALTER VIEW s AS SELECT 1"),
    *("ANALYZE TABLE s COMPUTE STATISTICS", "TRUNCATE TABLE s", "REPAIR TABLE s", "MSCK REPAIR TABLE s"),
    *("CACHE TABLE s", "CACHE LAZY TABLE s", "COMMENT ON TABLE s IS 'x'", "SHOW PARTITIONS s"),
    *("SHOW CREATE TABLE s", "DESCRIBE s", "DESC TABLE EXTENDED s", "UPDATE s SET k = 1", "DELETE FROM s"),
    *("LOAD DATA INPATH 'x' INTO TABLE s", "LOAD DATA LOCAL INPATH 'x' OVERWRITE INTO TABLE s"),
    *("MERGE INTO s USING t ON true WHEN MATCHED THEN DELETE", "INSERT OVERWRITE s SELECT 1"),
    *("INSERT INTO s REPLACE WHERE k = 1 SELECT 1", "INSERT WITH SCHEMA EVOLUTION INTO TABLE s SELECT 1"),
    *("EXPLAIN DELETE FROM s", "EXPLAIN EXTENDED UPDATE s SET k = 1", "FROM t INSERT OVERWRITE s SELECT 1"),
    "EXPLAIN WITH c AS (SELECT 1) MERGE INTO s USING c ON true WHEN MATCHED THEN DELETE",
)
"""Statements of Spark's about the table s."""

WORDS, PREDICATES, DECLARED = pattern("WORDS"), pattern("PREDICATES"), pattern("DECLARED")

_MARKS = {"LPAR": "(", "RPAR": ")", "EQUAL": "=", "COMMA": ","}


def written(start: str) -> Iterator[str]:
    """Yield each way to write what the grammar calls so, with its own words, and x for all else."""
    rules = (rule for rule in grammar().rules if rule.origin.name == start)
    for parts in [[part.name for part in rule.expansion] for rule in rules]:
        if len(parts) == 1 and parts[0].islower():
            yield from written(parts[0])
        else:
            yield " ".join(_MARKS.get(each, each) if each.isupper() else "x" for each in parts)


def test_the_grammar_is_read() -> None:
    assert "SHOW PREDICATES" in set(written("declaration"))
    assert "WINDOW ( x , x ) = x" in set(written("term"))
    assert any(each.startswith("CREATE x SINK") for each in written("declaration"))


def test_an_asof_join_without_a_window_has_such_a_word() -> None:
    text = "SELECT * FROM a ASOF JOIN b MATCH_CONDITION (a.ts >= b.ts) USING (k)"
    assert isinstance(parse_statement(text), statement_kinds.Query)
    assert WORDS.search(text)


@pytest.mark.parametrize("text", sorted({*written("declaration"), *written("term")} - {"SET x = REST"}))
def test_every_declaration_and_every_window_has_such_a_word(text: str) -> None:
    assert WORDS.search(text)


_SET = "STATEMENT SET BEGIN INSERT INTO s SELECT 1 FROM a A, b B WINDOW = 5 SECONDS; END"

OTHERS: dict[type, str] = {
    statement_kinds.SetOption: "SET wjoin.workers = 2",
    statement_kinds.Query: "SELECT 1 FROM a A, b B PATH/**/(A, B) WITHIN (5 SECONDS)",
    statement_kinds.Explain: "EXPLAIN COST SELECT 1 FROM a A, b B WINDOW = 5 SECONDS",
    statement_kinds.CreateView: "CREATE VIEW v AS SELECT 1 FROM a A, b B DWINDOW (A, B) = 5 SECONDS",
    statement_kinds.InsertInto: "INSERT INTO s SELECT * FROM a",
    # Without a window join it is refused in any case.
    statement_kinds.StatementSet: f"EXECUTE {_SET}",
    statement_kinds.ExplainSet: f"EXPLAIN {_SET}",
    statement_kinds.ExplainDelay: "EXPLAIN DELAY s",
    statement_kinds.StateSelect: "SELECT * FROM a JOIN STATE OF QUERY q ON true",
    statement_kinds.AlterSet: "ALTER STATEMENT SET s ADD INSERT INTO t SELECT 1 FROM a, b WINDOW = 5 SECONDS",
}
"""Kinds of statements that no rule of the grammar declares."""


@pytest.mark.parametrize("kind", OTHERS)
def test_so_has_every_other_statement(kind: type) -> None:
    text = OTHERS[kind]
    assert isinstance(parse_statement(text), kind)
    # A sink has been declared before something can be inserted.
    assert (DECLARED if kind is statement_kinds.InsertInto else WORDS).search(text)


def test_these_are_all_kinds() -> None:
    declared = (
        statement_kinds.CreateStream,
        statement_kinds.CreateSink,
        statement_kinds.AlterStream,
        statement_kinds.AnalyzeStream,
        statement_kinds.StopQuery,
    )
    named = re.compile(r"Show|Describe|Drop")
    rest = (
        kinds_of_statements()
        - set(declared)
        - {statement_kinds.SparkStatement, statement_kinds.ExecuteImmediate}
    )
    assert {each for each in rest if not named.match(each.__name__)} == set(OTHERS)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.id, count(*) FROM a JOIN b ON a.id = b.id GROUP BY a.id ORDER BY 1 LIMIT 10",
        "SELECT max(upstream), sinking, paths, windowed FROM t",
        "SELECT path FROM files WHERE path LIKE '/data/%' AND path IN ('x')",
        "SELECT rank() OVER (PARTITION BY k ORDER BY ts) FROM a",
        "CREATE TABLE t (id BIGINT) USING parquet",
        "SET spark.sql.shuffle.partitions = 2",
        "SET wjoinx = 2",
        "WITH q AS (SELECT 1) SELECT * FROM q",
        "SHOW TABLES",
        "EXPLAIN EXTENDED SELECT 1",
    ],
)
def test_ordinary_statements_of_spark_are_not_looked_at(text: str) -> None:
    assert not WORDS.search(text)
    assert not PREDICATES.search(text)
    assert not DECLARED.search(text)


def test_every_predicate_of_wjoin_s_own_is_known_also_outside_of_a_join() -> None:
    own = [each for each in known_predicates().values() if each.built_in]
    assert len(own) == 8
    for each in own:
        assert PREDICATES.search(f"SELECT {each.name} (a, b) FROM t")


def test_a_set_has_sinks_before_it_loses_one() -> None:
    assert DECLARED.search("ALTER STATEMENT SET s DROP t")


@pytest.mark.parametrize("text", ABOUT)
def test_so_have_statements_about_a_table_that_may_be_a_stream(text: str) -> None:
    about = subject(text)
    assert about is not None and [each.name for each in about.parts] == ["s"]
    assert DECLARED.search(text)


def test_a_view_may_read_a_stream() -> None:
    assert DECLARED.search("CREATE OR REPLACE TEMPORARY VIEW v AS SELECT * FROM a")
