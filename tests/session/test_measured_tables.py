"""EXPLAIN ANALYZE over tables: what it counts, beside counts of Spark's own over the same rows."""

import re

import pytest

import wjoin

pytestmark = pytest.mark.long

KEYED = "SELECT {hint} a.k, a.k FROM a, b WINDOW = 1 SECOND WHERE a.k = b.k"
THETA = "SELECT {hint} a.k FROM a, b WINDOW = 1 SECOND"
APART = "abs(unix_millis(a.ts) - unix_millis(b.ts)) <= 1000"


@pytest.fixture
def tables(session: wjoin.Session) -> wjoin.Session:
    """Three tables of 600, 500 and 400 rows over 12 s, with 20 keys k and 5 keys m; two rows of a undated."""
    for name, rows, step in (("a", 600, 20), ("b", 500, 24), ("c", 400, 30)):
        undated = "IF(id < 2, NULL, " if name == "a" else "("
        session.sql(
            f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT id % 20 AS k, id % 5 AS m, "
            f"{undated}timestamp_millis(id * {step})) AS ts FROM range({rows})"
        )
    return session


def measured(session: wjoin.Session, sql: str) -> tuple[str, dict[str, tuple[str, str]]]:
    """Return what EXPLAIN ANALYZE says was measured, and the numbers of its table by label."""
    text = session.explain(f"EXPLAIN ANALYZE {sql}")
    text = text[text.index("Measured over tables") :]
    rows = [re.fullmatch(r"  (\S.*?)  +(\S.*?)  +(\S.*)", line) for line in text.splitlines()]
    return text, {row[1]: (row[2], row[3]) for row in rows if row}


def count(session: wjoin.Session, condition: str) -> str:
    rows = session.spark.sql(f"SELECT count(*) FROM a, b WHERE {condition}").head()
    assert rows is not None
    return f"{rows[0]:,}"


@pytest.mark.quick
def test_rows_comparisons_and_results(tables: wjoin.Session) -> None:
    text, found = measured(tables, KEYED.format(hint=""))
    results = count(tables, f"a.k = b.k AND {APART}")
    assert int(results.replace(",", "")) > 1000
    assert text.startswith(f"Measured over tables: {results} rows in ")
    assert found["rows of a"] == ("3.6 million", "598")
    assert found["rows of b"][1] == "500"
    assert found["comparisons"][1] == found["results"][1] == results
    assert re.fullmatch(r"[\d.]+ m?s", found["time (estimated: of one core)"][1])


@pytest.mark.parametrize(("kernel", "condition"), [("MW", APART), ("NLW", "a.ts IS NOT NULL")])
def test_each_kernel_compares_what_it_should(tables: wjoin.Session, kernel: str, condition: str) -> None:
    _, found = measured(tables, THETA.format(hint=f"/*+ ALGORITHM({kernel}) */"))
    assert found["comparisons"][1] == count(tables, condition)
    assert found["results"][1] == count(tables, APART)


@pytest.mark.long
def test_each_stage_has_its_counts(tables: wjoin.Session) -> None:
    sql = "SELECT a.k FROM a, b, c WINDOW = 1 SECOND WHERE a.k = b.k AND b.m = c.m AND a.k < 10"
    text, found = measured(tables, sql)
    assert text.startswith(f"Measured over tables: {found['stage 2: results'][1]} rows in ")
    assert found["stage 1: results"][1] == count(tables, f"a.k = b.k AND a.k < 10 AND {APART}")
    assert found["results"] == found["stage 2: results"]
    assert found["rows of a"][1] == "298"
    each = [int(found[f"stage {stage}: comparisons"][1].replace(",", "")) for stage in (1, 2)]
    assert found["comparisons"][1] == f"{sum(each):,}"


def test_each_join_of_a_statement_has_its_counts(tables: wjoin.Session) -> None:
    inner = "(SELECT a.k, a.ts FROM a, b WINDOW = 1 SECOND WHERE a.k = b.k)"
    text, found = measured(tables, f"SELECT x.k FROM {inner} x, c WINDOW = 1 SECOND WHERE x.k = c.k")
    assert text.startswith(f"Measured over tables: {found['join 2: results'][1]} rows in ")
    assert found["join 1: results"][1] == count(tables, f"a.k = b.k AND {APART}")
    assert found["join 2: rows of x"][1] == found["join 1: results"][1]


def test_of_sparks_own_joins_comparisons_are_not_counted(tables: wjoin.Session) -> None:
    text, found = measured(tables, KEYED.format(hint="/*+ PLAN(NATIVE) */"))
    assert found["comparisons"][1] == "not counted"
    assert text.endswith("Spark's own joins count no comparisons")
    assert found["rows of a"][1] == "598"
    assert found["results"][1] == count(tables, f"a.k = b.k AND {APART}")


@pytest.mark.parametrize("hint", ["", "/*+ PLAN(NATIVE) */"])
def test_a_join_that_spark_leaves_out_is_said_to_be(tables: wjoin.Session, hint: str) -> None:
    text, found = measured(tables, f"{KEYED.format(hint=hint)} LIMIT 0")
    assert text.startswith("Measured over tables: 0 rows in ")
    assert text.endswith("Spark left the join out, because the statement does not need it")
    assert found["rows of a"][1] == "-"


def test_a_join_that_finds_nothing_is_counted(tables: wjoin.Session) -> None:
    _, found = measured(tables, f"{KEYED.format(hint='')} AND a.k = -1")
    assert (found["rows of a"][1], found["comparisons"][1], found["results"][1]) == ("0", "0", "0")


@pytest.mark.long
def test_small_tables_that_were_analyzed_are_joined_by_spark(tables: wjoin.Session) -> None:
    """And give what wjoin's own stages give, which join them while their sizes are unknown."""
    for name in "ab":
        tables.stream(name, tables.spark.table(name), "ts")
    assert "plan native" not in tables.explain(KEYED.format(hint=""))
    for name in "ab":
        tables.sql(f"ANALYZE STREAM {name}")
    text, found = measured(tables, KEYED.format(hint=""))
    assert text.endswith("Spark's own joins count no comparisons")
    assert found["results"][1] == count(tables, f"a.k = b.k AND {APART}")
    _, own = measured(tables, KEYED.format(hint="/*+ PLAN(MULTIWAY) */"))
    assert own["results"][1] == found["results"][1]
    assert own["comparisons"][1] != "not counted"


def test_spark_joins_tables_of_known_size_in_the_order_of_the_fewest_rows(tables: wjoin.Session) -> None:
    tables.sql("CREATE OR REPLACE TEMPORARY VIEW d AS SELECT * FROM c WHERE k = 3")
    for name in "dab":
        tables.stream(name, tables.spark.table(name), "ts")
        tables.sql(f"ANALYZE STREAM {name}")
    sql = "SELECT {hint} a.m FROM d, a, b WINDOW = 1 SECOND WHERE d.k = a.k AND a.k = b.k"
    text, found = measured(tables, sql.format(hint=""))
    assert "1: b x d on " in tables.explain(sql.format(hint=""))
    _, own = measured(tables, sql.format(hint="/*+ PLAN(MULTIWAY) */"))
    assert found["results"][1] == own["results"][1] != "0"
    assert text.endswith("Spark's own joins count no comparisons")
