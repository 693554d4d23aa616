"""Where a statement reads a sink, and the commit times that it asks for."""

import pytest

from wjoin.grammar import statement_kinds, syntax
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_statement
from wjoin.grammar.printer import print_declaration
from wjoin.grammar.result_reads import find_reads

T1, T2 = "TIMESTAMP '2026-01-01 00:00:00'", "TIMESTAMP '2026-01-02 00:00:00'"


def found(text: str) -> list[tuple[str, str | None, str | None, bool]]:
    """Return what is read of two sinks: the piece of the text, its times, whether aliased."""
    return [
        (each.span.of(text), each.first, each.last, each.aliased)
        for each in find_reads(text, {"out", "more"})
    ]


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("SELECT * FROM out", [("out", None, None, False)]),
        ("SELECT * FROM Out o WHERE x", [("Out", None, None, True)]),
        ("SELECT * FROM `OUT` AS o", [("`OUT`", None, None, True)]),
        ("TABLE out", [("out", None, None, False)]),
        ("FROM out SELECT x", [("out", None, None, False)]),
        (f"SELECT * FROM out AS OF {T1}", [(f"out AS OF {T1}", None, T1, False)]),
        ("SELECT * FROM out AS OF '2026-01-01' x", [("out AS OF '2026-01-01'", None, "'2026-01-01'", True)]),
        ("SELECT * FROM out AS OF :t AS x", [("out AS OF :t", None, ":t", True)]),
        (
            "SELECT * FROM out AS OF (now() - INTERVAL 1 HOUR) LIMIT 3",
            [("out AS OF (now() - INTERVAL 1 HOUR)", None, "(now() - INTERVAL 1 HOUR)", False)],
        ),
        (
            f"SELECT * FROM out for commit time between {T1} and {T2} x JOIN more USING (id)",
            [(f"out for commit time between {T1} and {T2}", T1, T2, True), ("more", None, None, False)],
        ),
        (
            f"SELECT * FROM t, out, (SELECT 1 FROM more AS OF {T1}) m",
            [("out", None, None, False), (f"more AS OF {T1}", None, T1, False)],
        ),
        (
            "SELECT out FROM t JOIN out ON t.id = out.id GROUP BY out, more",
            [("out", None, None, False)],
        ),
        # A name that is no sink is read as of a commit time only in words that Spark has not.
        (
            "SELECT * FROM t FOR COMMIT TIME BETWEEN :a AND :b",
            [("t FOR COMMIT TIME BETWEEN :a AND :b", ":a", ":b", False)],
        ),
        (f"SELECT * FROM t AS OF {T1}", []),
        ("SELECT * FROM t WHERE x IS DISTINCT FROM out", []),
        ("SELECT extract(DAY FROM out), trim('x' FROM more) FROM t", []),
        ("SELECT * FROM s.out, out.s, out(1)", []),
        ("SELECT 'out' FROM t -- FROM out", []),
        ("WITH out AS (SELECT 1) SELECT * FROM out, more", [("more", None, None, False)]),
        ("WITH out (x) AS (SELECT 1) SELECT * FROM out", []),
        ("DELETE FROM out", []),
        ("SELECT * FROM out WINDOW w AS (ORDER BY x)", [("out", None, None, False)]),
    ],
)
def test_reads_of_sinks(text: str, reads: list[tuple[str, str | None, str | None, bool]]) -> None:
    assert found(text) == reads


@pytest.mark.parametrize("clause", ["", "3 AND 4", ":a", ":a AND", ":a OR :b"])
def test_commit_times_that_cannot_be_read(clause: str) -> None:
    with pytest.raises(WJoinError, match="commit times cannot be read") as refused:
        found(f"SELECT * FROM out FOR COMMIT TIME BETWEEN {clause}")
    assert refused.value.code == "WJ106"


def test_a_relation_of_a_window_join_may_be_a_snapshot() -> None:
    text = f"SELECT * FROM s A, out AS OF {T1} AS B, out FOR COMMIT TIME BETWEEN :a AND :b C WINDOW = 1 DAY"
    query = parse_statement(text)
    assert isinstance(query, statement_kinds.Query)
    items = query.blocks[0].items
    assert [each.relation.of(text) for each in items] == [
        "s",
        f"out AS OF {T1}",
        "out FOR COMMIT TIME BETWEEN :a AND :b",
    ]
    assert [each.alias.name for each in items if each.alias] == ["A", "B", "C"]


def test_the_times_of_a_sink() -> None:
    sink = parse_statement(
        "CREATE SINK s USING parquet RETAIN 1 DAY GRACE '2 hours' COMMIT EVERY 10 SECONDS OPTIONS (path 'x')"
    )
    assert isinstance(sink, statement_kinds.CreateSink) and sink.retain is not None
    times = sink.retain.time, sink.retain.grace, sink.commit_every
    assert [each.microseconds for each in times if isinstance(each, syntax.TimeDuration)] == [
        86_400_000_000,
        7_200_000_000,
        10_000_000,
    ]


def test_what_commits_the_results_of_a_sink() -> None:
    condition = "day > 3 AND (shop = 'all, or (' OR last)"
    sink = parse_statement(
        f"CREATE SINK s USING parquet COMMIT WHEN `my orders` ( {condition} ) OPTIONS (path 'x')"
    )
    assert isinstance(sink, statement_kinds.CreateSink) and sink.commit_when is not None
    assert (sink.commit_when.stream.name, sink.commit_when.condition) == ("my orders", condition)
    assert parse_statement(print_declaration(sink)) == sink


@pytest.mark.parametrize(
    ("clause", "code"),
    [
        ("RETAIN 5", "WJ102"),
        ("RETAIN 0 SECONDS", "WJ110"),
        ("RETAIN 1 DAY GRACE 0 SECONDS", "WJ110"),
        ("COMMIT EVERY -1 SECOND", "WJ110"),
        ("RETAIN 1 MONTH", "WJ103"),
        ("RETAIN 1 DAY RETAIN 2 DAYS", "WJ106"),
        ("COMMIT 5 SECONDS", "WJ106"),
        ("COMMIT WHEN orders", "WJ106"),
        ("COMMIT WHEN orders ()", "WJ106"),
        ("COMMIT WHEN orders (a = (b)", "WJ111"),
    ],
)
def test_times_of_a_sink_that_are_none(clause: str, code: str) -> None:
    with pytest.raises(WJoinError) as refused:
        parse_statement(f"CREATE SINK s USING parquet {clause}")
    assert refused.value.code == code
