"""Statement sets: each statement has the rows that it has by itself, whatever it shares with others."""

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

import wjoin
from tests.stream.joined import STREAMS, Streams, set_of
from tests.tiers import tiers
from wjoin.grammar.errors import WJoinError, WJoinWarning
from wjoin.testing.waiting import until

SEED = 7
DELAY = 1000


@dataclass(frozen=True)
class Drawn:
    """A statement in wjoin's words and in DuckDB's."""

    own: str
    oracle: str


def drawn(chance: random.Random, count: int, key: str, names: Sequence[str] = STREAMS) -> Drawn:
    """Return a random statement over ``count`` of some streams that meet on ``key``."""
    relations = [chance.choice(names) for _ in range(count)]
    aliases = chance.sample("ABCDEXYZ", count)
    items = ", ".join(f"{relation} {alias}" for relation, alias in zip(relations, aliases, strict=True))
    window, meant = _windows(chance, aliases)
    pairs = list(itertools.pairwise(aliases))
    equal = {"k": "{0}.k = {1}.k", "j": "{1}.j = {0}.j", "%": "{0}.k % 3 = {1}.k % 3", "": ""}[key]
    conditions = [equal.format(*pair) for pair in pairs if equal]
    for alias in aliases:
        if chance.random() < 0.4:
            one = [f"{alias}.v > {chance.randint(0, 5)}", f"{alias}.s <> 'y'", f"{alias}.v IS NOT NULL"]
            conditions.append(chance.choice([*one, f"{alias}.k <> 0", f"12 / {alias}.k > 3.5"]))
            if conditions[-1].startswith("12"):
                conditions.insert(-1, f"{alias}.k <> 0")
    for first, second in pairs:
        if chance.random() < 0.3:
            more = [
                f"{first}.v < {second}.v",
                f"{first}.v + {second}.v > 6",
                f"{first}.s || {second}.s <> 'xz'",
            ]
            conditions.append(chance.choice(more))
    listed = [
        f"{chance.choice(aliases)}.{chance.choice('nkjvs')} AS c{place}"
        for place in range(chance.randint(1, 3))
    ]
    shown, matched = ", ".join(listed), ", ".join(listed)
    if chance.random() < 0.3:
        shown += ", MATCH_TIME() AS at"
        matched += f", greatest({', '.join(f'{alias}.n' for alias in aliases)}) AS at"
    where = " AND ".join(conditions)
    return Drawn(
        f"SELECT {shown} FROM {items} {window}" + (f" WHERE {where}" if where else ""),
        f"SELECT {matched} FROM {items} WHERE {' AND '.join([meant, *conditions])}",
    )


def _windows(chance: random.Random, aliases: Sequence[str]) -> tuple[str, str]:
    """Return a window clause and what it means."""
    if chance.random() < 0.3:
        width = chance.randint(1, 12)
        numbers = ", ".join(f"{alias}.n" for alias in aliases)
        return f"WINDOW = {width}", f"greatest({numbers}) - least({numbers}) <= {width}"
    if chance.random() < 0.2:
        width = chance.randint(3, 12)
        steps = " AND ".join(f"{b}.n - {a}.n BETWEEN 0 AND {width}" for a, b in itertools.pairwise(aliases))
        within = ", ".join([str(width)] * (len(aliases) - 1))
        return f"PATH ({', '.join(aliases)}) WITHIN ({within})", steps
    terms = [_term(chance, *pair) for pair in itertools.pairwise(aliases)]
    if len(terms) == 1 and chance.random() < 0.4:
        terms.append(_term(chance, *aliases))
        return " OR ".join(one for one, _ in terms), f"({' OR '.join(one for _, one in terms)})"
    return " AND ".join(one for one, _ in terms), " AND ".join(one for _, one in terms)


def _term(chance: random.Random, first: str, second: str) -> tuple[str, str]:
    low, high = sorted(chance.sample(range(-10, 15), 2))
    written = f"WINDOW ({first}, {second}) BETWEEN {low} AND {high}"
    return written, f"{second}.n - {first}.n BETWEEN {low} AND {high}"


@pytest.mark.parametrize("seed", tiers(range(12), long=range(4), thorough=range(4, 12)))
def test_random_sets_have_the_rows_of_duckdb(session: wjoin.Session, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    streams = Streams(session, tmp_path, chance)
    session.context.settings.set("wjoin.state", chance.choice(["files", "spark"]))
    keys = ["k", "k", "k", "j", "%", ""]
    count = chance.choice([2, 2, 3])
    statements = [
        drawn(chance, count if chance.random() < 0.8 else 5 - count, chance.choice(keys))
        for _ in range(chance.randint(2, 8))
    ]
    names = [f"out{place}" for place in range(len(statements))]
    streams.sinks(names)
    inserts = [f"INSERT INTO {name} {each.own}" for name, each in zip(names, statements, strict=True)]
    for files in (2, 2):
        streams.arrive(files)
        streams.run(inserts, name="drawn")
    for name, each in zip(names, statements, strict=True):
        assert streams.found(name) == streams.expected(each.oracle), each.own
    assert sum(streams.found(name).total() for name in names) > 0


ALIKE = (
    """INSERT INTO near SELECT A.n AS first, B.n AS then FROM one A, two B WINDOW (A, B) BETWEEN 0 AND 4
       WHERE A.k = B.k""",
    """INSERT INTO far SELECT X.s, Y.v FROM two X, one Y WINDOW (Y, X) BETWEEN -2 AND 9
       WHERE Y.k = X.k AND Y.v > 3 AND X.v < Y.v""",
)
"""Two statements over the same streams and key, in another order and with other aliases."""

KEEP_OTHERS = "ON FAILURE KEEP OTHERS"

EXPECTED = {
    "near": "SELECT A.n, B.n FROM one A, two B WHERE A.k = B.k AND B.n - A.n BETWEEN 0 AND 4",
    "far": """SELECT X.s, Y.v FROM two X, one Y
              WHERE Y.k = X.k AND Y.v > 3 AND X.v < Y.v AND X.n - Y.n BETWEEN -2 AND 9""",
}


def assert_alike(streams: Streams) -> None:
    for name, query in EXPECTED.items():
        assert streams.found(name) == streams.expected(query)
        assert streams.found(name).total() > 10


@pytest.mark.long
def test_statements_over_the_same_streams_share_one_join(streams: Streams) -> None:
    streams.sinks(EXPECTED)
    streams.arrive(3)
    explained = str(streams.session.explain(set_of(ALIKE)))
    assert "2 statements, 1 window join, one query" in explained
    assert "near, far share one window join" in explained
    streams.run(ALIKE)
    (running,) = streams.session.running
    assert running.sink == "near, far"
    assert [len(each.physical.outputs) for each in running.planned] == [2]
    assert_alike(streams)


@pytest.fixture
def failing(streams: Streams) -> Streams:
    """Return streams whose set has begun, with rows for it to come, and a sink that fails."""
    streams.sinks(EXPECTED)
    streams.session.sql(
        f"CREATE OR REPLACE SINK far USING parquet OPTIONS (path '{streams.root}/far_out') PARTITIONED BY (s)"
    )
    streams.arrive(1)
    streams.run(ALIKE)
    streams.block()
    streams.arrive(2)
    return streams


def assert_nothing_is_lost(streams: Streams) -> None:
    assert streams.found("near") == streams.expected(EXPECTED["near"])
    # The column that makes folders comes last.
    far = streams.session.spark.read.parquet(str(streams.root / "far_out")).select("s", "v").collect()
    assert Counter(map(tuple, far)) == streams.expected(EXPECTED["far"])


def last_written(streams: Streams, sink: str) -> int:
    log = (streams.root / f"{sink}_out" / "_spark_metadata").glob("[0-9]*")
    return max(int(each.name) for each in log)


@pytest.mark.long
def test_a_failure_between_two_sinks_loses_and_doubles_nothing(failing: Streams) -> None:
    with pytest.raises(WJoinError, match=r"the sink far could not be written: .*s=x") as failed:
        failing.run(ALIKE)
    assert failed.value.code == "WJ704"
    assert last_written(failing, "near") == last_written(failing, "far") + 1
    failing.unblock()
    failing.arrive(1)
    failing.run(ALIKE)
    assert_nothing_is_lost(failing)


@pytest.mark.long
def test_a_row_that_cannot_be_made_names_its_sink_and_leaves_no_file(streams: Streams) -> None:
    """The files of both are written in one job; none of the micro-batch counts, and none is left.

    Every task fails: of one that ends after the job has failed Spark leaves the file, as in its own sink.
    """
    streams.sinks(EXPECTED)
    streams.arrive(2)
    wrong = (
        "INSERT INTO far SELECT 12 DIV (A.v - A.v) AS w FROM one A, two B WINDOW (A, B) = 9 WHERE A.k = B.k"
    )
    with pytest.raises(WJoinError, match=r"the sink far could not be written: .*DIVIDE_BY_ZERO") as failed:
        streams.run([ALIKE[0], wrong])
    assert failed.value.code == "WJ704"
    until(lambda: not list(streams.root.glob("*_out/part-*")), "no file of either sink")
    with pytest.raises(WJoinError, match="the sink far could not be written"):
        streams.run([ALIKE[0], wrong], name=KEEP_OTHERS)
    assert streams.found("near").total() > 0


@pytest.mark.long
def test_rows_for_a_sink_that_fails_wait_while_others_go_on(failing: Streams) -> None:
    with pytest.warns(WJoinWarning, match=r"WJ818.*in the set set_near wait \d micro-batches .*s=x"):
        failing.run(ALIKE, name=KEEP_OTHERS)
    assert failing.found("near") == failing.expected(EXPECTED["near"])
    assert last_written(failing, "near") > last_written(failing, "far") + 1
    with pytest.raises(WJoinError, match="rows wait for the sink far, which the set no longer has"):
        failing.run(ALIKE[:1], name="set_near")
    failing.unblock()
    failing.arrive(1)
    # What waits is written whatever comes of the next failure.
    failing.run(ALIKE)
    assert last_written(failing, "near") == last_written(failing, "far")
    assert not list((failing.root / "checkpoints" / "set_near" / "wjoin" / "waiting" / "far").iterdir())
    assert_nothing_is_lost(failing)


@pytest.mark.long
def test_a_sink_that_has_never_been_written_gets_what_waits(streams: Streams) -> None:
    streams.sinks(EXPECTED)
    folder = streams.root / "far_out"
    streams.session.sql(
        f"CREATE OR REPLACE SINK far USING parquet OPTIONS (path '{folder}') PARTITIONED BY (s)"
    )
    folder.mkdir()
    (folder / "s=x").touch()
    streams.arrive(1)
    with pytest.warns(WJoinWarning, match=r"WJ818.*in the set set_near wait 1 micro-batch .*s=x"):
        streams.run(ALIKE, name=KEEP_OTHERS)
    (folder / "s=x").unlink()
    streams.arrive(1)
    streams.run(ALIKE, name=KEEP_OTHERS)
    assert_nothing_is_lost(streams)


@pytest.mark.long
def test_no_more_rows_wait_for_a_sink_than_may(failing: Streams) -> None:
    failing.session.sql("SET wjoin.waiting = 1")
    with pytest.raises(WJoinError, match=r"the sink far could not be written: .*s=x"):
        failing.run(ALIKE, name=KEEP_OTHERS)
    failing.unblock()
    failing.run(ALIKE, name=KEEP_OTHERS)
    assert_nothing_is_lost(failing)


@pytest.mark.long
@pytest.mark.parametrize("inserts", [ALIKE, ALIKE[:1]], ids=["two", "one"])
def test_a_sink_that_shows_a_few_rows_has_the_join_see_all(streams: Streams, inserts: Sequence[str]) -> None:
    """Spark's console reads no more rows than it shows, and what is not read is not joined."""
    streams.arrive(2)
    state = {}
    for provider, options in (("noop", ""), ("console", "OPTIONS (numRows '1')")):
        for name in EXPECTED:
            streams.session.sql(f"CREATE OR REPLACE SINK {name} USING {provider} {options}")
        streams.run(inserts, name=provider)
        state[provider] = streams.session.running[-1].totals.total.rows_of_state
    assert state["noop"] > 50
    assert state["console"] == state["noop"]


def test_explain_refuses_what_a_set_cannot_run(streams: Streams) -> None:
    streams.sinks(EXPECTED)
    grouped = ALIKE[0].replace("A.n AS first, B.n AS then", "max(A.n)")
    with pytest.raises(WJoinError, match=r"more than one result at a time \(Aggregate\)"):
        streams.session.explain(set_of([grouped, ALIKE[1]]))


def test_formats_and_partitions_are_those_of_the_sinks(streams: Streams) -> None:
    session, root = streams.session, streams.root
    session.sql(f"CREATE OR REPLACE SINK near USING json OPTIONS (path '{root / 'json'}')")
    session.sql(f"CREATE OR REPLACE SINK far USING csv OPTIONS (path '{root / 'csv'}') PARTITIONED BY (s)")
    streams.arrive(2)
    streams.run(ALIKE)
    found = session.spark.read.schema("first BIGINT, then BIGINT").json(str(root / "json")).collect()
    assert Counter(map(tuple, found)) == streams.expected(EXPECTED["near"])
    rows = session.spark.read.schema("v INT, s STRING").csv(str(root / "csv")).select("s", "v").collect()
    assert Counter(map(tuple, rows)) == streams.expected(EXPECTED["far"])
    assert {each.name for each in (root / "csv").glob("s=*")} == {"s=x", "s=y", "s=z"}


@pytest.mark.long
def test_a_set_goes_on_from_its_checkpoint_and_no_other_does(streams: Streams) -> None:
    streams.sinks(EXPECTED)
    streams.arrive(2)
    streams.run(ALIKE)
    other = [each.replace("BETWEEN 0 AND 4", "BETWEEN 0 AND 10") for each in ALIKE]
    with pytest.raises(WJoinError) as refused:
        streams.run(other)
    assert refused.value.code == "WJ702"
    streams.arrive(2)
    streams.run([each.replace("SELECT", "select  ") for each in ALIKE])
    assert_alike(streams)


@pytest.mark.parametrize(
    ("inserts", "told"),
    [
        (["INSERT INTO near SELECT n FROM one"], "has no window join"),
        (["SELECT 1"], "holds only INSERT INTO"),
        ([], "is empty"),
        ([ALIKE[0], ALIKE[0]], "two statements of the set write to near"),
        ([ALIKE[0], ALIKE[1].replace("far", "same")], "have one folder"),
        ([ALIKE[0], ALIKE[1].replace("far", "memorable")], "cannot be one of a statement set"),
        ([ALIKE[0], ALIKE[1].replace("far", "unknown")], "no sink is named unknown"),
        (
            [ALIKE[0], ALIKE[1].replace("X.s, Y.v", "DISTINCT X.s, Y.v")],
            "more than one result at a time (Distinct)",
        ),
        (
            ["INSERT INTO near SELECT count(*) FROM one A, two B WINDOW = 3 WHERE A.k = B.k"],
            "more than one result at a time (Aggregate)",
        ),
        (
            ["INSERT INTO near SELECT A.n FROM one A, two B WINDOW = 3 WHERE A.k = B.k ORDER BY 1"],
            "more than one result at a time (Sort)",
        ),
    ],
)
def test_what_a_set_cannot_run_is_refused_and_nothing_is_started(
    streams: Streams, inserts: list[str], told: str
) -> None:
    streams.sinks(["near", "far"])
    streams.session.sql(
        f"CREATE OR REPLACE SINK same USING json OPTIONS (path '{streams.root / 'near_out'}')"
    )
    streams.session.sql("CREATE OR REPLACE SINK memorable USING memory")
    with pytest.raises(WJoinError) as refused:
        streams.run(inserts)
    assert told in refused.value.message
    assert refused.value.span is not None
    assert not streams.session.running


@pytest.mark.long
def test_inserts_of_a_script_are_a_set_where_sharing_is_auto(streams: Streams) -> None:
    streams.arrive(2)
    session, root = streams.session, streams.root
    session.sql("SET wjoin.sharing = auto")
    sinks = {name: f"CREATE SINK {name} USING parquet OPTIONS (path '{root / name}_out')" for name in "abc"}
    script = "; ".join(
        [
            *sinks.values(),
            ALIKE[0].replace("near", "a"),
            f"CREATE SINK d USING parquet OPTIONS (path '{root / 'd_out'}')",
            ALIKE[1].replace("far", "d"),
            ALIKE[0].replace("near", "b"),
            "INSERT INTO c SELECT k, count(*) AS n FROM parquet.`" + str(root / "one") + "` GROUP BY k",
            f"SELECT * FROM parquet.`{root / 'a_out'}`",
            ALIKE[0].replace("near", "late"),
        ]
    )
    session.sql(f"CREATE OR REPLACE SINK late USING parquet OPTIONS (path '{root / 'late_out'}')")
    *_, found, _ = session.run_script(script, checkpoint=str(root / "checkpoints"))
    assert [each.sink for each in session.running] == ["a, d, b", "late"]
    assert isinstance(found, DataFrame)
    assert Counter(map(tuple, found.collect())) == streams.expected(EXPECTED["near"])
    assert streams.found("d") == streams.expected(EXPECTED["far"])
    assert streams.found("late") == streams.found("b") == streams.expected(EXPECTED["near"])
    assert streams.found("c").total() > 3
