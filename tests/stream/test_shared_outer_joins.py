"""Statements of a set that share joins which are not inner ones: each has the rows that it has by itself."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import wjoin
from tests.stream.joined import Row, Streams, set_of
from tests.stream.test_statement_sets import Drawn
from tests.tiers import tiers
from wjoin.grammar.errors import WJoinError

JOINS = {
    "left": (
        "FROM one {0} LEFT JOIN two {1} ON {0}.k = {1}.k AND {1}.v > 2",
        "WINDOW ({0}, {1}) = 10",
        "FROM one {0} LEFT JOIN two {1} ON {0}.k = {1}.k AND {1}.v > 2 AND abs({0}.n - {1}.n) <= 10",
    ),
    "full": (
        "FROM one {0} FULL JOIN two {1} USING (k)",
        "WINDOW ({0}, {1}) BETWEEN -5 AND 9",
        "FROM one {0} FULL JOIN two {1} ON {0}.k = {1}.k AND {1}.n - {0}.n BETWEEN -5 AND 9",
    ),
    "anti": (
        "FROM one {0} JOIN two {1} ON {0}.j = {1}.j LEFT ANTI JOIN three C ON {1}.k = C.k",
        "WINDOW ({0}, {1}) = 3 AND WINDOW ({1}, C) = 12",
        """FROM one {0} JOIN two {1} ON {0}.j = {1}.j AND abs({0}.n - {1}.n) <= 3
           ANTI JOIN three C ON {1}.k = C.k AND abs({1}.n - C.n) <= 12""",
    ),
    "tree": (
        "FROM three C, one {0} LEFT JOIN two {1} ON {0}.k = {1}.k",
        "WINDOW (C, {0}) = 2 AND WINDOW ({0}, {1}) = 6",
        "FROM three C JOIN one {0} ON abs(C.n - {0}.n) <= 2 LEFT JOIN two {1} "
        "ON {0}.k = {1}.k AND abs({0}.n - {1}.n) <= 6",
    ),
    "asof": (
        "FROM one {0} LEFT ASOF JOIN two {1} MATCH_CONDITION ({0}.n >= {1}.n) ON {0}.k = {1}.k",
        "WINDOW ({0}, {1}) = 20",
        """FROM one {0} LEFT JOIN two {1} ON {0}.k = {1}.k AND {1}.n = (SELECT max(M.n) FROM two M
           WHERE M.k = {0}.k AND M.n BETWEEN {0}.n - 20 AND {0}.n)""",
    ),
}
"""FROM and the windows of each kind in wjoin's words, and FROM in DuckDB's; a time is there once a key."""

WHERE = {"": "", "both": "{0}.v > 3", "first": "{0}.s <> 'y'", "other": "{1}.v IS NULL OR {1}.v < 8"}


def drawn(chance: random.Random, kind: str) -> Drawn:
    """Return a random statement with joins of a kind."""
    aliases = chance.choice([("A", "B"), ("X", "Y")])
    condition = chance.choice([*WHERE]) if kind != "anti" else chance.choice(["", "both", "first"])
    where = WHERE[condition].format(*aliases)
    if kind == "tree":
        where = " AND ".join(filter(None, (f"C.j = {aliases[0]}.j", f"({where})" if where else "")))
    where = f" WHERE {where}" if where else ""
    columns = ["{0}.n AS a", "{1}.n AS b", "{0}.s AS c", "{1}.v + 1 AS d"]
    columns = chance.sample(columns, chance.randint(1, 4))
    select = ", ".join(columns).format(*aliases)
    own, windows, oracle = (each.format(*aliases) for each in JOINS[kind])
    return Drawn(f"SELECT {select} {own} {windows}{where}", f"SELECT {select} {oracle}{where}")


def complete(streams: Streams, statements: dict[str, Drawn], name: str = "shared") -> None:
    """Run a set to the end of its streams, which have ended."""
    text = set_of([f"INSERT INTO {sink} {each.own}" for sink, each in statements.items()], name)
    streams.session.run_script(text, complete=True, checkpoint=str(streams.root / "checkpoints"))


def explained(session: wjoin.Session, inserts: Sequence[str]) -> str:
    text = set_of(inserts).replace("EXECUTE", "EXPLAIN", 1)
    return str(session.sql(text).collect()[0][0])


@dataclass
class ApartStreams(Streams):
    """Streams of which no two rows have one time, so that the nearest row is one."""

    times: set[int] = field(default_factory=set)

    def _row(self) -> Row:
        number, *rest = super()._row()
        while number in self.times:
            number += 1
        self.times.add(number)
        return (number, *rest)


@pytest.mark.parametrize("kind", tiers([*JOINS], long=[*JOINS]))
@pytest.mark.parametrize("seed", tiers(range(4), long=range(1, 2), thorough=range(2, 4)))
def test_statements_that_share_joins_have_the_rows_of_duckdb(
    session: wjoin.Session, tmp_path: Path, kind: str, seed: int
) -> None:
    chance = random.Random(seed)
    streams = ApartStreams(session, tmp_path, chance)
    statements = {f"out{place}": drawn(chance, kind) for place in range(chance.randint(2, 4))}
    streams.sinks([*statements])
    inserts = [f"INSERT INTO {sink} {each.own}" for sink, each in statements.items()]
    told = explained(session, inserts)
    assert "1 window join, one query" in told, told
    for _ in range(2):
        streams.arrive(2)
        streams.run(inserts, name="shared")
    complete(streams, statements)
    for sink, each in statements.items():
        assert streams.found(sink) == streams.expected(each.oracle), each.own


def test_what_says_otherwise_which_rows_have_no_partner_shares_nothing(
    session: wjoin.Session, tmp_path: Path
) -> None:
    Streams(session, tmp_path, random.Random(1))
    plain = "SELECT A.n FROM one A LEFT JOIN two B ON A.k = B.k WINDOW (A, B) = 10"
    third = "LEFT JOIN three C ON A.k = C.k WINDOW (A, C) = 5 AND (WINDOW (A, B) = 10 OR WINDOW (A, B) = 9)"
    several = plain.replace("WINDOW (A, B) = 10", third)
    apart = "WINDOW (A, B) BETWEEN -10 AND -9 OR WINDOW (A, B) BETWEEN 5 AND 10"
    pairs = [(several, several.replace("WINDOW (A, B) = 10 OR WINDOW (A, B) = 9", apart))]
    pairs += [
        (plain, other)
        for other in (
            plain.replace("= 10", "= 9"),
            plain.replace("LEFT JOIN", "RIGHT JOIN"),
            plain.replace("LEFT JOIN", "JOIN"),
            plain.replace("A.k = B.k", "A.k = B.k AND B.v > 1"),
            plain.replace("LEFT JOIN", "LEFT ASOF JOIN").replace(
                "two B", "two B MATCH_CONDITION (A.n >= B.n)"
            ),
        )
    ]
    for first, other in pairs:
        for sink in ("first", "second"):
            session.sql(f"CREATE OR REPLACE SINK {sink} USING parquet OPTIONS (path '{tmp_path / sink}_out')")
        told = explained(session, [f"INSERT INTO first {first}", f"INSERT INTO second {other}"])
        assert "2 window joins, one query" in told, other


@pytest.mark.long
def test_a_statement_comes_to_a_shared_outer_join_and_goes(session: wjoin.Session, tmp_path: Path) -> None:
    chance = random.Random(3)
    streams = ApartStreams(session, tmp_path, chance)
    statements = {f"out{place}": drawn(chance, "left") for place in range(2)}
    streams.sinks([*statements, "more"])
    streams.arrive(2)
    streams.run([f"INSERT INTO {sink} {each.own}" for sink, each in statements.items()], name="shared")
    added = Drawn(*statements["out0"].own.split("\0"), "")
    statements["more"] = added
    streams.arrive(1)
    complete(streams, statements)
    for sink in ("out0", "out1"):
        assert streams.found(sink) == streams.expected(statements[sink].oracle)
    assert streams.found("more")
    assert not streams.found("more") - streams.found("out0")
    other = {**statements, "more": Drawn(added.own.replace("= 10", "= 9"), "")}
    with pytest.raises(WJoinError, match="other joins, windows or conditions of ON") as error:
        complete(streams, other)
    assert error.value.code == "WJ702"
