"""SELECT blocks: where they are found, and the places of their parts."""

import pytest

from wjoin.grammar import statement_kinds, syntax
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.join_kinds import JoinKind
from wjoin.grammar.parser import parse_script, parse_statement
from wjoin.grammar.spans import Span


def blocks(text: str) -> tuple[syntax.SelectBlock, ...]:
    statement = parse_statement(text)
    assert isinstance(statement, statement_kinds.Query), statement
    return statement.blocks


def block(text: str) -> syntax.SelectBlock:
    (only,) = blocks(text)
    return only


def conjuncts(text: str, from_: str = "A, B WINDOW = 1") -> list[str]:
    source = f"SELECT * FROM {from_} {text}"
    return [each.span.of(source) for each in block(source).conjuncts]


CLAUSE = "WINDOW (A, B) = 5 SECONDS"


@pytest.mark.parametrize(
    ("text", "source", "tail"),
    [
        (f"SELECT x FROM A, B {CLAUSE}", f"FROM A, B {CLAUSE}", ""),
        (f"SELECT x FROM A, B {CLAUSE} WHERE p ORDER BY x", f"FROM A, B {CLAUSE} WHERE p", " ORDER BY x"),
        (f"SELECT x FROM A, B WHERE p {CLAUSE} LIMIT 5", f"FROM A, B WHERE p {CLAUSE}", " LIMIT 5"),
        (f"SELECT x FROM A, B\n{CLAUSE}\nGROUP BY x -- e\n", f"FROM A, B\n{CLAUSE}", "\nGROUP BY x"),
        (
            f"SELECT x FROM A, B {CLAUSE} WINDOW w AS (ORDER BY x)",
            f"FROM A, B {CLAUSE}",
            " WINDOW w AS (ORDER BY x)",
        ),
        (f"SELECT x FROM A, B {CLAUSE} HAVING count(*) > 1", f"FROM A, B {CLAUSE}", " HAVING count(*) > 1"),
    ],
)
def test_source_and_tail(text: str, source: str, tail: str) -> None:
    found = block(text)
    assert found.source.of(text) == source
    assert found.tail.of(text) == tail
    assert found.select_list.of(text) == "x"
    assert found.window_span.of(text) == CLAUSE
    assert found.span.start == 0
    assert found.span.end == found.tail.end


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTINCT a, b FROM A, B WINDOW = 1",
        "SELECT ALL a, b FROM A, B WINDOW = 1",
        "SELECT /*+ BROADCAST(A) */ a, b FROM A, B WINDOW = 1",
    ],
)
def test_select_list(text: str) -> None:
    assert block(text).select_list.of(text) == "a, b"


@pytest.mark.parametrize(
    "word", ["x IS DISTINCT FROM y", "extract(YEAR FROM ts)", "t.from", "trim(BOTH FROM x)"]
)
def test_from_of_an_expression(word: str) -> None:
    text = f"SELECT {word} FROM A, B WINDOW = 1"
    assert block(text).select_list.of(text) == word


# FROM ------------------------------------------------------------------------


def test_items() -> None:
    text = (
        "SELECT * FROM cat.`d b`.t AS A, s2 b, (SELECT * FROM x) AS `c c`, d"
        " JOIN STREAM e ON A.x = e.x AND (b.y = e.y) INNER JOIN STREAM(f) g USING (x, `y`)"
        " CROSS JOIN range(5) r, t AS h(x, y), {frame} i, u VERSION AS OF 3 AS v WINDOW = 5"
    )
    found = block(text)
    items = found.items
    assert [item.relation.of(text) for item in items] == [
        "cat.`d b`.t", "s2", "(SELECT * FROM x)", "d", "e", "f", "range(5)", "t AS h(x, y)", "{frame}",
        "u VERSION AS OF 3",
    ]  # fmt: skip
    aliases = [item.alias.name if item.alias else None for item in items]
    assert aliases == ["A", "b", "c c", None, None, "g", "r", "h", "i", "v"]
    assert [part.name for part in items[0].parts] == ["cat", "d b", "t"]
    assert [len(item.parts) for item in items] == [3, 1, 0, 1, 1, 1, 0, 0, 0, 0]
    assert [item.streaming for item in items] == [index in (4, 5) for index in range(10)]
    assert items[5].span.of(text) == "STREAM(f) g"
    assert [each.span.of(text) for each in found.conjuncts] == ["A.x = e.x", "b.y = e.y"]
    (using,) = found.using
    assert (using.right, [column.name for column in using.columns]) == (5, ["x", "y"])
    assert using.span.of(text) == "USING (x, `y`)"


@pytest.mark.parametrize(
    ("item", "column", "delay", "alias"),
    [
        ("t WATERMARK ts DELAY OF INTERVAL 5 SECONDS AS a", "ts", 5_000_000, "a"),
        ("t WATERMARK ts DELAY OF INTERVAL 5 SECONDS a", "ts", 5_000_000, "a"),
        ("t WATERMARK ts DELAY OF INTERVAL '5' SECOND a", "ts", 5_000_000, "a"),
        ("t WATERMARK ts DELAY OF INTERVAL '5 seconds' a", "ts", 5_000_000, "a"),
        ("STREAM t WATERMARK `t s` DELAY OF INTERVAL 1 HOUR 30 MINUTES a", "t s", 5_400_000_000, "a"),
        ("(SELECT 1) WATERMARK ts DELAY OF 5 SECONDS AS a", "ts", 5_000_000, "a"),
        ("t WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS AS a", "ts", 5_000_000, "a"),
        ("t WATERMARK FOR ts AS ts a", "ts", None, "a"),
        ("t AS a WATERMARK ts DELAY OF INTERVAL 5 SECONDS", "ts", 5_000_000, "a"),
        ("t WATERMARK ts DELAY OF INTERVAL 5 SECONDS", "ts", 5_000_000, None),
        ("t WATERMARK ts DELAY OF 250ms", "ts", 250_000, None),
    ],
)
def test_watermark(item: str, column: str, delay: int | None, alias: str | None) -> None:
    text = f"SELECT * FROM {item}, u WINDOW = 1 SECOND"
    found = block(text).items[0]
    assert found.watermark is not None
    assert found.watermark.column.name == column
    if delay is None:
        assert found.watermark.delay is None
    else:
        assert isinstance(found.watermark.delay, syntax.TimeDuration)
        assert found.watermark.delay.microseconds == delay
    assert (found.alias.name if found.alias else None) == alias
    assert found.span.of(text) == item


@pytest.mark.parametrize("alias", ["AS R", "R", "AS `R`", ""])
@pytest.mark.parametrize("rest", [", w", "JOIN w", "INNER JOIN w ON x = y"])
@pytest.mark.parametrize(
    "delay", ["0", ":d", "-0", "+5L", "2 weeks", "250ms", "INTERVAL '1:30' HOUR TO MINUTE"]
)
def test_delay_before_alias(delay: str, alias: str, rest: str) -> None:
    first, second = block(f"SELECT * FROM r WATERMARK ts DELAY OF {delay} {alias} {rest} WINDOW = 1").items
    assert first.watermark is not None
    assert (first.alias.name if first.alias else "") == ("R" if alias else "")
    assert second.parts[0].name == "w"


@pytest.mark.parametrize("delay", ["5 secodns", "5 secodns AS a", "INTERVAL 5 x", "INTERVAL 5 x AS a"])
def test_delay_with_misspelt_unit(delay: str) -> None:
    with pytest.raises(WJoinError, match="WJ103"):
        block(f"SELECT * FROM r WATERMARK ts DELAY OF {delay}, w WINDOW = 1")


def test_delay_as_parameter() -> None:
    found = block("SELECT * FROM t WATERMARK ts DELAY OF :d AS a, u WINDOW = 1").items[0]
    assert found.watermark is not None
    assert isinstance(found.watermark.delay, syntax.Parameter)
    assert found.alias is not None


@pytest.mark.parametrize("word", ["stream", "watermark", "window", "path", "dwindow", "delay"])
def test_our_words_as_names_of_relations(word: str) -> None:
    first, second, third = block(f"SELECT * FROM {word}, t {word}, u AS {word} WINDOW = 1").items
    assert [part.name for part in first.parts] == [word]
    assert first.alias is None
    assert second.alias is not None and second.alias.name == word
    assert third.alias is not None and third.alias.name == word


# Conditions ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "pieces"),
    [
        ("a = b", ["a = b"]),
        ("a = b AND c", ["a = b", "c"]),
        ("a BETWEEN 1 AND 2 AND c", ["a BETWEEN 1 AND 2", "c"]),
        ("a NOT BETWEEN x AND y AND b BETWEEN 1 AND 2", ["a NOT BETWEEN x AND y", "b BETWEEN 1 AND 2"]),
        ("a = b AND c OR d", ["a = b AND c OR d"]),
        ("(a = b AND c)", ["a = b", "c"]),
        ("(a) AND ((b AND c) AND (d OR e))", ["a", "b", "c", "d OR e"]),
        ("NOT (a AND b) AND c", ["NOT (a AND b)", "c"]),
        ("CASE WHEN a AND b THEN c OR d END AND e", ["CASE WHEN a AND b THEN c OR d END", "e"]),
        ("f(a AND b) AND x IN (1, 2)", ["f(a AND b)", "x IN (1, 2)"]),
        ("(a, b) IN (SELECT 1, 2) AND t.and", ["(a, b) IN (SELECT 1, 2)", "t.and"]),
        ("EXISTS (SELECT 1 FROM x WHERE y AND z)", ["EXISTS (SELECT 1 FROM x WHERE y AND z)"]),
        ("(SELECT a AND b)", ["(SELECT a AND b)"]),
        ("'a AND b' = `x AND y` AND 1 -- AND\n /* AND */", ["'a AND b' = `x AND y`", "1"]),
    ],
)
def test_conjuncts(where: str, pieces: list[str]) -> None:
    assert conjuncts(f"WHERE {where}") == pieces
    assert conjuncts(f"WHERE {where} WINDOW = 1 GROUP BY x", "A, B") == pieces
    assert conjuncts("", f"A JOIN B ON {where} WINDOW = 1") == pieces


def test_on_and_where_in_text_order() -> None:
    assert conjuncts("WHERE r", "A JOIN B ON p AND q JOIN C ON left(a, 1) = 'x', D WINDOW = 1") == [
        "p",
        "q",
        "left(a, 1) = 'x'",
        "r",
    ]


# Depth -----------------------------------------------------------------------

JOIN = "SELECT * FROM A, B WINDOW = 1"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM ({}) x",
        "SELECT * FROM (SELECT * FROM ({}) x WHERE window = 5) y",
        "SELECT (SELECT max(x) FROM ({}))",
        "SELECT * FROM t WHERE x IN ({})",
        "SELECT * FROM t WHERE EXISTS ({})",
        "WITH c AS ({}) SELECT * FROM c",
        "SELECT 1 UNION ALL {}",
        "{} UNION SELECT 1",
        "{} EXCEPT VALUES (1)",
        "({}) INTERSECT (SELECT 1)",
        "CREATE TABLE t USING parquet AS {}",
        "CREATE TABLE t AS WITH c AS (SELECT 1) {}",
        "CREATE MATERIALIZED VIEW v AS {}",
        "MERGE INTO t USING ({}) s ON t.x = s.x WHEN MATCHED THEN DELETE",
        "FROM ({}) SELECT *",
        "SELECT window(ts, '5 minutes'), path FROM window, ({}) AS path GROUP BY window(ts, '5 minutes')",
    ],
)
def test_found_at_every_place(text: str) -> None:
    source = text.format(JOIN)
    assert block(source).span.of(source) == JOIN


def test_blocks_side_by_side_and_inside() -> None:
    inner = "SELECT * FROM C, D WINDOW = 2"
    scalar = "SELECT 1 FROM E, F PATH (E, F) WITHIN (1)"
    outer = f"SELECT ({scalar}) FROM ({inner}) c, B WINDOW (c, B) = 1 WHERE x IN ({JOIN})"
    text = f"{outer} UNION ALL {JOIN} ORDER BY x"
    first, second = blocks(text)
    assert first.span.of(text) == outer
    assert second.span.of(text) == f"{JOIN} ORDER BY x"
    assert [found.span.of(text) for found in first.nested] == [scalar, inner, JOIN]


def test_withs_in_scope() -> None:
    text = (
        f"WITH a AS (SELECT 1), b (x, y) AS ({JOIN}), c AS (WITH d AS (SELECT 2) {JOIN})"
        f" SELECT * FROM ({JOIN}) e, a WINDOW = 3"
    )
    in_b, in_c, main = blocks(text)
    whole = text[: text.index(" SELECT * FROM (")]
    assert [span.of(text) for span in in_b.withs] == ["WITH a AS (SELECT 1)"]
    assert [span.of(text) for span in in_c.withs] == [
        f"WITH a AS (SELECT 1), b (x, y) AS ({JOIN})",
        "WITH d AS (SELECT 2)",
    ]
    assert [span.of(text) for span in main.withs] == [whole]
    assert main.nested[0].withs == main.withs


def test_with_ends_at_its_parenthesis() -> None:
    text = f"SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a) x, ({JOIN}) y"
    assert block(text).withs == ()


def test_clause_in_parentheses_after_a_relation() -> None:
    clause = "(WINDOW (A, B) = 1 OR DWINDOW (B, A) = 2) AND WINDOW A = 3"
    text = f"SELECT * FROM (SELECT 1 AS ts) A, B {clause} WHERE p"
    found = block(text)
    assert [item.alias.name if item.alias else item.parts[0].name for item in found.items] == ["A", "B"]
    assert found.window_span.of(text) == clause


def test_conditions_of_an_on_and_of_where_are_kept_apart() -> None:
    text = "SELECT * FROM A JOIN B ON p AND q JOIN C ON r, D WINDOW = 1 WHERE s AND t"
    found = [(each.span.of(text), each.on) for each in block(text).conjuncts]
    assert found == [("p", 1), ("q", 1), ("r", 2), ("s", None), ("t", None)]


@pytest.mark.parametrize(
    ("sources", "items"),
    [
        ("(A JOIN B ON p) LEFT JOIN (C) ON q", "A, INNER B ON p, LEFT OUTER C ON q"),
        ("((A))", "A"),
        ("A LEFT JOIN (B JOIN C ON p) ON q", "A, LEFT OUTER B ON q with 2, INNER C ON p"),
        (
            "A RIGHT JOIN (B JOIN (C FULL JOIN D ON p) ON q) ON r, ((SELECT 1) UNION SELECT 2) E",
            "A, RIGHT OUTER B ON r with 3, INNER C ON q with 2, FULL OUTER D ON p, INNER E",
        ),
        (
            "(A JOIN B ON p) JOIN (C JOIN (SELECT 3) D ON q) ON r",
            "A, INNER B ON p, INNER C ON r with 2, INNER D ON q",
        ),
        ("((SELECT 1) A JOIN B ON p) SEMI JOIN C ON q", "A, INNER B ON p, LEFT SEMI C ON q"),
    ],
)
def test_joins_in_parentheses(sources: str, items: str) -> None:
    """One after the other, each with how many items its right side has."""
    text = f"SELECT * FROM {sources} WINDOW = 1"
    found = block(text)
    shown = []
    for number, each in enumerate(found.items):
        name = each.alias.name if each.alias else each.parts[0].name
        on = "".join(f" ON {one.span.of(text)}" for one in found.conjuncts if one.on == number)
        kind = f"{each.kind.value} " if number else ""
        shown.append(f"{kind}{name}{on}{f' with {each.joined}' if each.joined > 1 else ''}")
    assert ", ".join(shown) == items


def test_an_asof_join_in_parentheses_needs_no_window() -> None:
    found = block("SELECT * FROM (A ASOF JOIN B MATCH_CONDITION (A.t >= B.t) ON p) LEFT JOIN C ON q")
    assert [each.kind for each in found.items] == [JoinKind.INNER, JoinKind.ASOF, JoinKind.LEFT]


def test_natural_joins() -> None:
    text = "SELECT * FROM A NATURAL JOIN B natural left outer join C NATURAL ANTI JOIN D WINDOW = 1"
    found = block(text)
    assert [each.kind for each in found.items] == [
        JoinKind.INNER,
        JoinKind.INNER,
        JoinKind.LEFT,
        JoinKind.ANTI,
    ]
    assert [(each.right, each.columns) for each in found.using] == [(1, None), (2, None), (3, None)]
    assert found.using[1].span.of(text) == "natural left outer join"


# EXISTS ----------------------------------------------------------------------

INSIDE = "SELECT * FROM b B WINDOW (A, B) = 5 WHERE A.k = B.k AND B.v > 3"


@pytest.mark.parametrize(
    ("where", "kinds"),
    [
        (f"EXISTS ({INSIDE})", [JoinKind.SEMI]),
        (f"p AND not exists({INSIDE})", [JoinKind.ANTI]),
        (f"(NOT (EXISTS ({INSIDE})) AND p)", [JoinKind.ANTI]),
        (f"NOT (NOT EXISTS ({INSIDE}))", [JoinKind.SEMI]),
        (f"! EXISTS ({INSIDE}) AND x BETWEEN 1 AND 2", [JoinKind.ANTI]),
        (f"EXISTS ({INSIDE}) AND NOT EXISTS ({INSIDE})", [JoinKind.SEMI, JoinKind.ANTI]),
    ],
)
def test_exists_is_a_join(where: str, kinds: list[JoinKind]) -> None:
    text = f"SELECT A.* FROM a A WHERE {where} GROUP BY q"
    found = block(text)
    assert [each.kind for each in found.items] == [JoinKind.INNER, *kinds]
    assert [each.item for each in found.exists] == [*range(1, 1 + len(kinds))]
    for each in found.exists:
        conditions = [one.span.of(text) for one in found.conjuncts if one.on == each.item]
        assert conditions == ["A.k = B.k", "B.v > 3"]
        assert found.items[each.item].span.of(text) == "b B"
        assert each.select_list.of(text) == "*"
        assert each.window_span.of(text) == "WINDOW (A, B) = 5"
    assert found.source.of(text) == f"FROM a A WHERE {where}"
    assert not [one for one in found.conjuncts if one.on is None and "EXISTS" in one.span.of(text).upper()]


def test_windows_of_all_streams_are_those_of_one_select() -> None:
    text = (
        "SELECT * FROM a A, c C SEMI JOIN e E ON A.k = E.k WINDOW = 9 "
        "WHERE EXISTS (SELECT * FROM b B WINDOW = 5) AND EXISTS (SELECT * FROM d WINDOW (C, d) = 4)"
    )
    window = block(text).window
    assert isinstance(window, syntax.WindowAnd)
    outside, first, second = window.terms
    assert pairs(outside) == [("A", "C"), ("A", "E"), ("C", "E")]
    assert pairs(first) == [("A", "B"), ("C", "B")]
    assert pairs(second) == [("C", "d")]


def pairs(window: syntax.WindowCondition) -> list[tuple[str, str]]:
    match window:
        case syntax.WindowAnd(terms):
            return [found for each in terms for found in pairs(each)]
        case syntax.WindowPair(first, second):
            return [(first.name, second.name)]
    raise AssertionError(window)


def test_blocks_inside_an_exists() -> None:
    inner = "SELECT X.k, X.n FROM X, Y WINDOW (X, Y) = 2"
    text = f"SELECT * FROM a A WHERE EXISTS (SELECT 1 FROM ({inner}) B (WINDOW (A, B) = 5) WHERE A.k = B.k)"
    found = block(text)
    assert [each.span.of(text) for each in found.nested] == [inner]
    assert found.items[1].relation.of(text) == f"({inner})"


@pytest.mark.parametrize(
    "where",
    [
        "EXISTS (SELECT * FROM b B WHERE A.k = B.k)",
        "EXISTS (SELECT * FROM b B WHERE A.k = B.k WINDOW w AS (ORDER BY x))",
        "exists(A.tags, x -> x > 1) AND NOT EXISTS (SELECT 1)",
    ],
)
def test_exists_of_spark(where: str) -> None:
    assert isinstance(parse_statement(f"SELECT * FROM a A WHERE {where}"), statement_kinds.SparkStatement)


def test_exists_with_a_join_of_its_own() -> None:
    inner = "SELECT * FROM b B, c C WINDOW (B, C) = 5 WHERE B.k = C.k"
    text = f"SELECT * FROM a A WHERE EXISTS ({inner})"
    found = block(text)
    assert found.span.of(text) == inner
    assert not found.exists


def test_clause_in_parentheses_after_where() -> None:
    text = "SELECT * FROM A, B WHERE A.x = f(B.x) (WINDOW (A, B) = 1 OR DWINDOW (B, A) = 2) LIMIT 1"
    found = block(text)
    assert [each.span.of(text) for each in found.conjuncts] == ["A.x = f(B.x)"]
    assert found.window_span.of(text) == "(WINDOW (A, B) = 1 OR DWINDOW (B, A) = 2)"


def test_stream_names_that_are_clause_words() -> None:
    found = block("SELECT * FROM t `limit`, u window WINDOW `limit` = 5 SECONDS WHERE a")
    assert isinstance(found.window, syntax.WindowStream)
    assert found.window.stream.name == "limit"
    found = block("SELECT * FROM t, u window WINDOW = 5 SECONDS")
    assert isinstance(found.window, syntax.WindowAll)


def test_deep_nesting() -> None:
    text = "SELECT * FROM A, B " + "(" * 90 + "WINDOW = 1" + ")" * 90
    assert isinstance(block(text).window, syntax.WindowAll)
    deep = "(" * 60 + JOIN + ")" * 60
    assert block(f"SELECT * FROM {deep} x").span.of(f"SELECT * FROM {deep} x") == JOIN
    beyond = "SELECT * FROM A, B " + "(" * 5000 + "WINDOW = 1" + ")" * 5000
    with pytest.raises(WJoinError) as refused:
        parse_script(beyond)
    assert refused.value.code == "WJ114"
    assert refused.value.span == Span(beyond.index("(") + 100, beyond.index("(") + 101)
