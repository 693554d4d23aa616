"""Another statement on the checkpoint of one: what the sink has stays, what comes is the new one's."""

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

import wjoin
from tests.stream.joined import Streams, set_of
from tests.stream.test_statement_sets import Drawn, drawn
from tests.tiers import tiers
from wjoin.grammar.errors import WJoinError, WJoinWarning
from wjoin.grammar.parser import parse_statement
from wjoin.grammar.statement_kinds import StatementSet
from wjoin.statements import statement_sets

BEGUN = """SELECT A.n AS first, B.n AS then, A.v FROM one A, two B WINDOW (A, B) BETWEEN -5 AND 9
           WHERE A.k = B.k AND A.v > 2 AND B.s <> 'y' AND A.v <= B.v"""
MEANT = """SELECT A.n, B.n, A.v FROM one A, two B
           WHERE A.k = B.k AND A.v > 2 AND B.s <> 'y' AND A.v <= B.v AND B.n - A.n BETWEEN -5 AND 9"""


SEED = 11
DELAY = 1000


@pytest.fixture(params=["files", pytest.param("spark", marks=pytest.mark.long)])
def streams(streams: Streams, request: pytest.FixtureRequest) -> Streams:
    streams.session.context.settings.set("wjoin.state", request.param)
    streams.sinks(["out"])
    return streams


def run(streams: Streams, query: str) -> None:
    streams.session.run_script(f"INSERT INTO out {query}", checkpoint=str(streams.root / "checkpoints"))


GOES_ON = {
    "narrower": (
        BEGUN.replace("BETWEEN -5 AND 9", "BETWEEN -3 AND 4"),
        MEANT.replace("BETWEEN -5 AND 9", "BETWEEN -3 AND 4"),
    ),
    "stricter": (
        BEGUN.replace("A.v > 2", "A.v > 4 AND A.n % 2 = 0"),
        MEANT.replace("A.v > 2", "A.v > 4 AND A.n % 2 = 0"),
    ),
    "other condition": (
        BEGUN.replace("A.v <= B.v", "A.v + B.v > 9"),
        MEANT.replace("A.v <= B.v", "A.v + B.v > 9"),
    ),
    "without condition": (BEGUN.replace(" AND A.v <= B.v", ""), MEANT.replace(" AND A.v <= B.v", "")),
    "all of it": (
        BEGUN.replace("WINDOW (A, B) BETWEEN -5 AND 9", "WINDOW (B, A) = 2 OR WINDOW (A, B) BETWEEN 5 AND 7")
        .replace("A.v FROM", "B.v FROM")
        .replace("A.v <= B.v", "B.v <> 3 AND A.n % 3 <> 1"),
        MEANT.replace("BETWEEN -5 AND 9", "BETWEEN -2 AND 2 OR B.n - A.n BETWEEN 5 AND 7)")
        .replace("AND B.n - A.n BETWEEN -2", "AND (B.n - A.n BETWEEN -2")
        .replace("A.v FROM", "B.v FROM")
        .replace("A.v <= B.v", "B.v <> 3 AND A.n % 3 <> 1"),
    ),
}
"""Changed statements that the state can answer, and what they mean."""


@pytest.mark.parametrize("change", tiers(GOES_ON, long=GOES_ON.keys() - {"narrower"}))
def test_a_statement_that_the_state_can_answer_goes_on(streams: Streams, change: str) -> None:
    query, meant = GOES_ON[change]
    streams.arrive(3)
    run(streams, BEGUN)
    expected = streams.expected(MEANT)
    assert streams.found("out") == expected
    before = streams.expected(meant)
    streams.arrive(2)
    run(streams, query)
    expected += streams.expected(meant) - before
    assert streams.found("out") == expected
    assert (streams.expected(meant) - before).total() > 3
    # Back to the first one, whose rows the state has kept.
    old = streams.expected(MEANT)
    streams.arrive(1)
    run(streams, BEGUN)
    expected += streams.expected(MEANT) - old
    assert streams.found("out") == expected


def run_set(streams: Streams, running: Mapping[str, Drawn]) -> None:
    inserts = [f"INSERT INTO {name} {each.own}" for name, each in running.items()]
    streams.session.run_script(set_of(inserts, "changing"), checkpoint=str(streams.root / "checkpoints"))


def stricter(chance: Random, statement: Drawn) -> Drawn:
    """Return a statement with one condition more, on a column that the state has in any case."""
    alias = chance.choice("".join(re.findall(r"(?:one|two|three|four|five) (\w)", statement.own)))
    more = f"{alias}.n % 3 <> {chance.randint(0, 2)}"
    link = "AND" if " WHERE " in statement.own else "WHERE"
    return Drawn(f"{statement.own} {link} {more}", f"{statement.oracle} AND {more}")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", tiers(range(8), long=range(3), thorough=range(3, 8)))
def test_random_sets_change_and_each_sink_has_the_rows_of_its_statements(
    session: wjoin.Session, tmp_path: Path, seed: int
) -> None:
    chance = Random(seed)
    streams = Streams(session, tmp_path, chance)
    session.context.settings.set("wjoin.state", chance.choice(["files", "spark"]))
    key, count = chance.choice(["k", "k", "j", "%", ""]), chance.choice([2, 2, 3])
    first = [drawn(chance, count, key) for _ in range(chance.randint(1, 3))]
    running = {f"out{place}": each for place, each in enumerate(first)}
    expected: dict[str, Counter[tuple[Any, ...]]] = {}
    for step in range(3):
        streams.sinks(running)
        before = {name: streams.expected(each.oracle) for name, each in running.items()}
        streams.arrive(3 if step == 0 else 2)
        run_set(streams, running)
        for name, each in running.items():
            expected[name] = expected.get(name, Counter()) + streams.expected(each.oracle) - before[name]
        for name, rows in expected.items():
            assert streams.found(name) == rows, (step, name, running)
        name, origin = chance.choice([*running.items()])
        running[name] = stricter(chance, origin)
        if len(running) > 1 and chance.random() < 0.6:
            del running[chance.choice([*running])]
        running[f"again{step}"] = stricter(chance, chance.choice(first))
        # What the state cannot answer is refused, and starts nothing; what is not refused has all its rows.
        other = {**running, f"new{step}": drawn(chance, count, key)}
        streams.sinks(other)
        with suppress(WJoinError):
            plan_set(streams, other)
            running = other
    assert all(rows.total() for name, rows in expected.items() if name.startswith("out"))


def plan_set(streams: Streams, running: Mapping[str, Drawn]) -> None:
    """Compare a set with its checkpoint. Raises WJoinError WJ702."""
    inserts = [f"INSERT INTO {name} {each.own}" for name, each in running.items()]
    text = set_of(inserts, "changing")
    asked = streams.session.context.asked(text, {})
    statement = parse_statement(text)
    assert isinstance(statement, StatementSet)
    statement_sets.plan_set(asked, statement, str(streams.root / "checkpoints"))


LACKING = {
    "B be 10 later than A, and rows of A are gone when B can be more than 9": ("-5 AND 9", "-5 AND 10"),
    "A be 6 later than B": ("-5 AND 9", "-6 AND 2"),
    "the column s of A": ("A.v FROM", "A.s FROM"),
    "the column k of B": ("A.v <= B.v", "B.k > 1"),
    "only the rows of A for which A.v > 2": ("A.v > 2", "A.v > 1"),
    "only the rows of B for which B.s <> 'y'": (" AND B.s <> 'y'", ""),
    "other streams, event times or delays": ("two B", "three B"),
    "other equalities": ("A.k = B.k", "A.j = B.j"),
    "other hints": ("SELECT", "SELECT /*+ ALGORITHM(MW) */ A.n + 1 AS one_more,"),
    "more than one result at a time (Distinct)": ("SELECT", "SELECT DISTINCT"),
}
"""What errors tell of changes of the first statement, each a piece of it and what takes its place."""


@pytest.mark.long
def test_what_the_state_lacks_is_told_and_nothing_starts(session: wjoin.Session, tmp_path: Path) -> None:
    streams = Streams(session, tmp_path, Random(3))
    streams.sinks(["out"])
    streams.arrive(1)
    run(streams, BEGUN)
    for told, change in LACKING.items():
        with pytest.raises(WJoinError, match=re.escape(told)) as refused:
            run(streams, BEGUN.replace(*change))
        assert refused.value.code == "WJ702"
        assert refused.value.span is not None
    assert len(session.running) == 1
    # Files that no reader could tell apart, and files of which readers must be told.
    with pytest.raises(WJoinError, match="the files of out have v as int, this statement has string"):
        run(streams, BEGUN.replace("A.v FROM", "CAST(A.v AS STRING) AS v FROM"))
    streams.arrive(1)
    with pytest.warns(WJoinWarning, match="those from now on first, then, total") as warned:
        run(streams, BEGUN.replace("A.v FROM", "A.v + B.v AS total FROM"))
    assert [each.message.code for each in warned if isinstance(each.message, WJoinWarning)] == ["WJ820"]
    found = session.spark.read.option("mergeSchema", "true").parquet(str(tmp_path / "out_out"))
    assert {*found.columns} == {"first", "then", "v", "total"}


@pytest.mark.long
def test_a_parameter_may_change_where_the_state_does_not_depend_on_it(
    session: wjoin.Session, tmp_path: Path
) -> None:
    streams = Streams(session, tmp_path, Random(4))
    streams.sinks(["out"])
    query = """INSERT INTO out SELECT A.n, B.v FROM one A, two B WINDOW (A, B) = :width
               WHERE A.k = B.k AND A.v >= :least AND A.v + B.v > :more"""
    meant = """SELECT A.n, B.v FROM one A, two B
               WHERE A.k = B.k AND abs(A.n - B.n) <= {width} AND A.v >= {least} AND A.v + B.v > {more}"""
    checkpoint = str(tmp_path / "checkpoints")
    first, second = {"width": 8, "least": 2, "more": 5}, {"width": 3, "least": 4, "more": 5}
    streams.arrive(2)
    session.run_script(query, checkpoint=checkpoint, **first)
    expected, before = (streams.expected(meant.format(**each)) for each in (first, second))
    streams.arrive(2)
    session.run_script(query, checkpoint=checkpoint, **second)
    assert streams.found("out") == expected + streams.expected(meant.format(**second)) - before
    with pytest.raises(WJoinError, match="tests a condition with 5 for the parameter :more"):
        session.run_script(query, checkpoint=checkpoint, **{**second, "more": 7})


STAGES = {
    "in stages": ("", "A.k = B.k AND B.j = C.j"),
    "slices of time": ("/*+ PLAN(PSP) */", "A.v + B.v > 3 AND B.v < C.v"),
}
"""A hint and conditions under which the state has more than the rows of three streams by their key."""


@pytest.mark.long
@pytest.mark.parametrize("kind", STAGES)
def test_a_join_of_three_streams_goes_on_with_less(session: wjoin.Session, tmp_path: Path, kind: str) -> None:
    streams = Streams(session, tmp_path, Random(8))
    streams.sinks(["out"])
    hint, condition = STAGES[kind]
    query = f"""SELECT {hint} A.n AS first, C.n AS then, B.v FROM one A, two B, three C
                WINDOW (A, B) = 6 AND WINDOW (B, C) BETWEEN -2 AND 8 WHERE {condition} AND A.v <= C.v"""
    meant = f"""SELECT A.n, C.n, B.v FROM one A, two B, three C
                WHERE {condition} AND A.v <= C.v AND abs(A.n - B.n) <= 6 AND C.n - B.n BETWEEN -2 AND 8"""
    streams.arrive(2)
    run(streams, query)
    changes = {"A.v <= C.v": "A.v <= C.v AND A.n <> B.n", "BETWEEN -2 AND 8": "BETWEEN 0 AND 5"}
    expected = streams.expected(meant)
    for was, now in changes.items():
        query, meant = query.replace(was, now), meant.replace(was, now)
    before = streams.expected(meant)
    streams.arrive(2)
    run(streams, query)
    completed = streams.expected(meant) - before
    assert completed.total() > 3
    assert streams.found("out") == expected + completed
    if kind == "in stages":
        with pytest.raises(WJoinError, match=re.escape("leaves out A.v <= C.v, by which the state")):
            run(streams, query.replace("AND A.v <= C.v", ""))
