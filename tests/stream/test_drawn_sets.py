"""Random sets of many kinds of statements, changed while they run and stopped between two sinks."""

import random
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import wjoin
from tests.stream.joined import Streams, set_of
from tests.stream.test_changed_statements import stricter
from tests.stream.test_statement_sets import Drawn, drawn
from tests.tiers import tiers
from wjoin.grammar.errors import WJoinError, WJoinWarning

FIVE = ("one", "two", "three", "four", "five")
HINTS = ("ALGORITHM(MW)", "ALGORITHM(NLW)", "ALGORITHM(ORDERED)", "BOUNDS(LCA)", "PLAN(PSP)", "PLAN(ATR)")
WHERE = ("A.k = B.k", "A.v < B.v", "abs(A.v - B.v) <= 2", "edit_distance(A.s, B.s) < 1")
"""What two streams may meet by in a drawn statement; the last one is a predicate."""

PART = "part=x"
"""The folder of a sink that a test can make fail: all rows have this part."""


@dataclass(frozen=True)
class Kind:
    """What the statements of a drawn set are made of."""

    names: tuple[str, ...]
    key: str
    count: int
    hint: str

    @classmethod
    def of(cls, chance: random.Random) -> "Kind":
        """Return a random one."""
        key = chance.choice(["k", "k", "k", "j", "%", ""])
        count = chance.choice([2, 2, 2, 3, 3] if not key else [2, 2, 3, 3, 4, 5])
        hint = chance.choice([*HINTS, *[""] * len(HINTS)])
        return cls(FIVE[: chance.randint(2, 5)], key, count, f"/*+ {hint} */ " if hint else "")

    def statement(self, session: wjoin.Session, chance: random.Random) -> Drawn:
        """Return a random statement, mostly one that can share with others of the kind."""
        apart = chance.random()
        if apart < 0.15:
            return _pair(chance, self.names)
        if apart < 0.3:
            return drawn(chance, 2, chance.choice(["k", "j"]), self.names)
        plain = drawn(chance, self.count, self.key, self.names)
        hinted = plain.own.replace("SELECT ", f"SELECT {self.hint}", 1)
        try:
            session.explain(hinted)
        except WJoinError as error:
            # Not every kernel and route is for every join.
            assert error.code == "WJ504", error
            return plain
        return replace(plain, own=hinted)


def _pair(chance: random.Random, names: tuple[str, ...]) -> Drawn:
    """Return a statement over two streams that meet by one condition or another."""
    first, second = chance.choice(names), chance.choice(names)
    low, high = sorted(chance.sample(range(-6, 7), 2))
    where = " AND ".join(chance.sample(WHERE, chance.randint(1, 2)))
    own = f"SELECT A.n AS a, B.n AS b FROM {first} A, {second} B WINDOW (A, B) BETWEEN {low} AND {high}"
    meant = f"SELECT A.n AS a, B.n AS b FROM {first} A, {second} B WHERE B.n - A.n BETWEEN {low} AND {high}"
    return Drawn(f"{own} WHERE {where}", f"{meant} AND {where.replace('edit_distance', 'levenshtein')}")


def in_part(statement: Drawn) -> Drawn:
    """Return a statement whose rows are all in the one part that its sink has."""
    return Drawn(
        *(each.replace(" FROM ", ", 'x' AS part FROM ", 1) for each in (statement.own, statement.oracle))
    )


def insert(name: str, statement: Drawn) -> str:
    return f"INSERT INTO {name} {statement.own}"


def declare(streams: Streams, name: str) -> None:
    streams.session.sql(
        f"""CREATE OR REPLACE SINK {name} USING parquet OPTIONS (path '{streams.root / name}_out')
            PARTITIONED BY (part)"""
    )


def run(streams: Streams, statements: dict[str, Drawn]) -> None:
    streams.run([insert(*each) for each in statements.items()], name="drawn")


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", tiers(range(7), long=range(3), thorough=range(3, 7)))
def test_a_drawn_set_that_is_stopped_and_changed_has_the_rows_of_duckdb(
    session: wjoin.Session, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    kind = Kind.of(chance)
    streams = Streams(session, tmp_path, chance, names=kind.names)
    session.context.settings.set("wjoin.state", chance.choice(["files", "spark"]))
    session.context.settings.set("wjoin.stretch", chance.choice(["32m", "256"]))
    many = 2 if seed == 0 else chance.randint(2, 12)
    statements = {f"out{place}": in_part(kind.statement(session, chance)) for place in range(many)}
    alone = chance.choice([*statements])
    for name in (*statements, "alone"):
        declare(streams, name)
    streams.arrive(2, rows=15)
    run(streams, statements)
    assert_rows(streams, statements)
    stopped_between_sinks(streams, statements, chance)
    assert_rows(streams, statements)
    streams.session.run_script(
        f"INSERT INTO alone {statements[alone].own}", checkpoint=str(streams.root / "checkpoints")
    )
    assert found(streams, "alone") == found(streams, alone)
    changed_while_it_runs(streams, statements, chance)


def found(streams: Streams, name: str) -> Counter[tuple[Any, ...]]:
    """Return what a sink has committed; Spark cannot read one that has had no rows."""
    return streams.found(name) if (streams.root / f"{name}_out" / PART).is_dir() else Counter()


def assert_rows(streams: Streams, statements: dict[str, Drawn]) -> None:
    for name, each in statements.items():
        assert found(streams, name) == streams.expected(each.oracle), (name, each.own)


def stopped_between_sinks(streams: Streams, statements: dict[str, Drawn], chance: random.Random) -> None:
    """Have the query end in the midst of a micro-batch, which some sinks have, and go on."""
    with_rows = [name for name in statements if (streams.root / f"{name}_out" / PART).is_dir()]
    streams.arrive(2, rows=15)
    if with_rows:
        name = chance.choice(with_rows)
        before = found(streams, name)
        streams.block(name, PART)
        if streams.expected(statements[name].oracle) != before:
            with pytest.raises(WJoinError, match=f"the sink {name} could not be written"):
                run(streams, statements)
        streams.unblock(name, PART)
    run(streams, statements)


def changed_while_it_runs(streams: Streams, statements: dict[str, Drawn], chance: random.Random) -> None:
    """Add statements to the running set, some with history, drop one, and compare all that was written."""
    session = streams.session
    text = set_of([insert(*each) for each in statements.items()], "drawn")
    session.run_script(text, once=False, checkpoint=str(streams.root / "checkpoints"))
    expected = {name: streams.expected(each.oracle) for name, each in statements.items()}
    settle(session)
    for number in range(3):
        added, history = f"more{number}", chance.random() < 0.5
        origin = stricter(chance, statements[chance.choice([*statements])])
        declare(streams, added)
        if add(session, f"ALTER STATEMENT SET drawn ADD {insert(added, origin)}", history=history):
            before = streams.expected(origin.oracle)
            expected[added] = before if history else Counter[tuple[Any, ...]]()
            statements[added] = origin
        if len(statements) > 2 and chance.random() < 0.5:
            # A history comes with the first micro-batch, which there may not have been yet.
            dropped = chance.choice([each for each in statements if each != added])
            session.sql(f"ALTER STATEMENT SET drawn DROP {dropped}")
            del statements[dropped]
        known = {name: streams.expected(each.oracle) for name, each in statements.items()}
        streams.arrive(1, rows=15)
        settle(session)
        for name, each in statements.items():
            expected[name] += streams.expected(each.oracle) - known[name]
    for name, rows in expected.items():
        if rows or name in statements:
            assert found(streams, name) == rows, (name, statements.get(name))
    for running in session.running:
        running.stop()


def add(session: wjoin.Session, change: str, *, history: bool) -> bool:
    """Add a statement to a set; return whether it could be: the state may lack what it needs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WJoinWarning)
        try:
            session.sql(f"{change} WITH HISTORY" if history else change)
        except WJoinError as error:
            assert error.code == "WJ702" or (history and "the state has no history" in error.message), error
            return False
    return True


def settle(session: wjoin.Session) -> None:
    (running,) = [each for each in session.running if each.query.isActive]
    running.query.processAllAvailable()
