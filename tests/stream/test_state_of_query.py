"""SELECT … FROM STATE OF QUERY: the rows that a query keeps are those that the model keeps."""

import itertools
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

import wjoin
from tests.stream.joined import Streams, on_time
from wjoin.grammar.errors import WJoinError

SEED, DELAY = 1, 20
HOMES = pytest.mark.parametrize("home", ["files", pytest.param("spark", marks=pytest.mark.long)])

CHAIN = """
SELECT A.n AS a, B.n AS b, C.n AS c, A.s FROM one A, two B, three C
WINDOW (A, B) = 30 AND WINDOW (B, C) = 15 WHERE A.k = B.k AND B.k = C.k
"""
CHAIN_WINDOWS = {"AB": 30, "BA": 30, "BC": 15, "CB": 15, "AC": 45, "CA": 45}
LEFT = "SELECT A.n AS a, B.n AS b FROM one A LEFT JOIN two B ON A.k = B.k WINDOW (A, B) = 30"
NAMES = {"A": "one", "B": "two", "C": "three"}


def watermarks(streams: Streams) -> dict[str, int]:
    """The watermark of each stream once all rows have been read."""
    found = {}
    for alias, name in NAMES.items():
        rows = streams.oracle.execute(f"SELECT max(n) FROM {name}").fetchall()
        found[alias] = rows[0][0] - DELAY
    return found


def waits(windows: Mapping[str, int], marks: Mapping[str, int], alias: str, time: int) -> dict[str, int]:
    """For what a row waits: each other stream of which a row inside the window may still come."""
    ends = {pair[1]: time + most for pair, most in windows.items() if pair[0] == alias}
    return {other: end for other, end in ends.items() if marks[other] <= end}


def kept(streams: Streams, windows: Mapping[str, int]) -> Counter[Any]:
    """The rows that the model keeps, with what each waits for."""
    marks, found = watermarks(streams), Counter[Any]()
    for alias in dict.fromkeys(itertools.chain(*windows)):
        rows = streams.oracle.execute(f"SELECT n, k FROM {NAMES[alias]} WHERE k IS NOT NULL").fetchall()
        for time, key in rows:
            told = waits(windows, marks, alias, time)
            if told:
                found[alias, time, key, tuple(sorted(told.items())), max(told.values())] += 1
    return found


def shown(session: wjoin.Session, read: str, streams: str = "ABC") -> Counter[Any]:
    """The rows of a state that wait for something."""
    found: Counter[Any] = Counter()
    for row in session.sql(f"SELECT * FROM {read} WHERE size(waits_for) > 0").collect():
        own = row[row.stream]
        assert [row[each] is None for each in streams].count(False) == 1
        found[row.stream, own.n, own.k, tuple(sorted(row.waits_for.items())), row.kept_until] += 1
    return found


@HOMES
def test_the_rows_are_those_that_the_model_keeps(streams: Streams, home: str) -> None:
    session, root = streams.session, streams.root
    session.context.settings.set("wjoin.state", home)
    streams.sinks(["far"])
    on_time(streams, 5)
    streams.insert({"far": CHAIN})
    expected = kept(streams, CHAIN_WINDOWS)
    assert expected
    assert shown(session, "STATE OF QUERY far") == expected
    # Anybody who has the checkpoint can look at it.
    other = wjoin.connect(session.spark.newSession())
    assert shown(other, f"STATE OF QUERY '{root}/checkpoints/far'") == expected
    # Some rows are of nobody's use any more, and go with their slice; the bytes are those of all.
    (row,) = session.sql("SELECT sum(bytes) AS size, count(*) AS rows FROM STATE OF QUERY far").collect()
    done = session.running[-1].totals.total
    assert round(row.size) == done.bytes_of_state
    assert row.rows == done.rows_of_state


@pytest.mark.long
@HOMES
def test_rows_of_an_outer_join_tell_whether_they_have_had_a_partner(streams: Streams, home: str) -> None:
    session = streams.session
    session.context.settings.set("wjoin.state", home)
    streams.sinks(["far"])
    on_time(streams, 4)
    streams.insert({"far": LEFT})
    pairs = streams.oracle.execute(
        "SELECT DISTINCT A.n, A.k FROM one A JOIN two B ON A.k = B.k AND abs(A.n - B.n) <= 30"
    ).fetchall()
    rows = session.sql("SELECT A.n, A.k, matched FROM STATE OF QUERY far s WHERE s.stream = 'A'").collect()
    assert rows
    for row in rows:
        assert row.matched == ((row.n, row.k) in pairs), row
    (other,) = session.sql("SELECT count(matched) FROM STATE OF QUERY far WHERE stream = 'B'").collect()
    assert other[0] == 0


@pytest.mark.long
@HOMES
def test_a_running_query_shows_its_rows(streams: Streams, home: str) -> None:
    session = streams.session
    session.context.settings.set("wjoin.state", home)
    streams.sinks(["far"])
    on_time(streams, 4)
    session.run_script(f"INSERT INTO far {CHAIN}", once=False, checkpoint=f"{streams.root}/checkpoints")
    query = session.running[-1].query
    query.processAllAvailable()
    assert query.isActive
    assert shown(session, "STATE OF QUERY far") == kept(streams, CHAIN_WINDOWS)
    told = {row.property: row.value for row in session.sql("DESCRIBE QUERY far").collect()}
    assert "kept for 65, until C has passed, with its delay of 20: window (A, B)" in told["state of A"]
    assert told["with longer windows"].startswith("1 more of window (")


@pytest.mark.long
@HOMES
def test_several_joins_and_stages(streams: Streams, home: str) -> None:
    session = streams.session
    session.context.settings.set("wjoin.state", home)
    streams.sinks(["near"])
    on_time(streams, 3)
    stages = "SELECT A.n, C.s FROM one A, two B, three C WINDOW = 20 WHERE A.k = B.k AND B.j = C.j"
    streams.insert({"near": stages})
    rows = session.sql("SELECT * FROM STATE OF QUERY near").collect()
    assert len(rows) == session.running[-1].totals.total.rows_of_state
    by_stage = {stage: {row.stream for row in rows if row.stage == stage} for stage in (1, 2)}
    first, second = sorted(by_stage[1])
    third = next(each for each in "ABC" if each not in (first, second))
    assert by_stage[2] == {f"{first}, {second}", third}
    for row in (row for row in rows if row.stream == f"{first}, {second}"):
        assert row[third] is None and abs(row[first].n - row[second].n) <= 20
    other = "SELECT A.s, B.v FROM two A, three B WINDOW = 5 WHERE A.j = B.j"
    set_ = f"EXECUTE STATEMENT SET both BEGIN INSERT INTO third {stages}; INSERT INTO far {other}; END"
    if home == "files":
        streams.sinks(["third", "far"])
        session.run_script(set_, checkpoint=f"{streams.root}/set")
        found = session.sql("SELECT join, stream, count(*) AS n FROM STATE OF QUERY both GROUP BY ALL")
        assert {(row.join, row.stream) for row in found.collect() if row.n} >= {(1, "C"), (2, "A"), (2, "B")}


def test_what_has_no_state_is_told(streams: Streams) -> None:
    with pytest.raises(WJoinError, match=r"(?s)WJ602.*name the folder of its checkpoint"):
        streams.session.sql("SELECT * FROM STATE OF QUERY nobody")
    with pytest.raises(WJoinError, match="WJ710"):
        streams.session.sql(f"SELECT * FROM STATE OF QUERY '{streams.root}/none'")
    with pytest.raises(WJoinError, match="WJ106"):
        streams.session.sql("CREATE VIEW v AS SELECT * FROM STATE OF QUERY far")
