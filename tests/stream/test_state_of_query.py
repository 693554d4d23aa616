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
HOMES = pytest.mark.parametrize("home", ["files", "spark"])

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


def test_what_has_no_state_is_told(streams: Streams) -> None:
    with pytest.raises(WJoinError, match="WJ602"):
        streams.session.sql("SELECT * FROM STATE OF QUERY nobody")
    with pytest.raises(WJoinError, match="WJ710"):
        streams.session.sql(f"SELECT * FROM STATE OF QUERY '{streams.root}/none'")
    with pytest.raises(WJoinError, match="WJ106"):
        streams.session.sql("CREATE VIEW v AS SELECT * FROM STATE OF QUERY far")
