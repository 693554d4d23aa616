"""COMMIT WHEN: a sink gets the results of several micro-batches as one commit, once some row has come."""

from collections import Counter

import pytest

from tests.stream.joined import Streams
from tests.stream.test_statement_sets import ALIKE, EXPECTED, last_written
from wjoin.grammar.errors import WJoinError, WJoinWarning

WHEN = "PARTITIONED BY (s) RETAIN 1 DAY COMMIT WHEN Closings (what = 'day' AND n > 0)"


SEED = 6
DELAY = 1000


@pytest.fixture
def streams(streams: Streams) -> Streams:
    (streams.root / "closings").mkdir()
    streams.session.sql(
        f"""CREATE OR REPLACE STREAM closings (n BIGINT, what STRING, WATERMARK FOR n AS n - 1000)
            USING parquet OPTIONS (path '{streams.root}/closings')"""
    )
    streams.sinks(EXPECTED)
    declare(streams, WHEN)
    return streams


def declare(streams: Streams, more: str) -> None:
    path = streams.root / "far_out"
    streams.session.sql(f"CREATE OR REPLACE SINK far USING parquet OPTIONS (path '{path}') {more}")


def close(streams: Streams, what: str) -> None:
    rows = streams.session.spark.createDataFrame([(5, what)], "n BIGINT, what STRING")
    rows.coalesce(1).write.mode("append").parquet(str(streams.root / "closings"))


def committed(streams: Streams) -> Counter[tuple[object, ...]]:
    return Counter(map(tuple, streams.session.sql("SELECT s, v FROM far").collect()))


@pytest.mark.long
def test_results_are_committed_with_a_row_of_a_stream(streams: Streams) -> None:
    streams.arrive(2)
    close(streams, "hour")
    streams.run(ALIKE)
    assert streams.found("near") == streams.expected(EXPECTED["near"])
    assert committed(streams).total() == 0
    streams.arrive(1)
    close(streams, "day")
    streams.run(ALIKE)
    day = streams.expected(EXPECTED["far"])
    assert day.total() > 10
    assert committed(streams) == day
    assert last_written(streams, "far") == 0
    streams.arrive(2)
    streams.run(ALIKE)
    assert committed(streams) == day
    close(streams, "day")
    streams.arrive(1)
    streams.run(ALIKE)
    assert committed(streams) == streams.expected(EXPECTED["far"])
    assert last_written(streams, "far") == 1
    assert streams.found("near") == streams.expected(EXPECTED["near"])
    declare(streams, "PARTITIONED BY (s)")
    with pytest.raises(WJoinError, match="was committed by rows of a stream, and now has no COMMIT WHEN"):
        streams.run(ALIKE)


@pytest.mark.long
@pytest.mark.parametrize("words", ["", "ON FAILURE KEEP OTHERS"])
def test_a_commit_that_fails_comes_later_and_once(streams: Streams, words: str) -> None:
    streams.arrive(1)
    close(streams, "day")
    streams.run(ALIKE, name=words)
    day = committed(streams)
    streams.block()
    streams.arrive(2)
    close(streams, "day")
    if words:
        with pytest.warns(WJoinWarning, match=r"WJ818.*in the set set_near wait 2 micro-batches"):
            streams.run(ALIKE, name=words)
    else:
        with pytest.raises(WJoinError, match="the sink far could not be written"):
            streams.run(ALIKE)
    streams.unblock()
    assert committed(streams) == day
    streams.arrive(1)
    streams.run(ALIKE, name=words)
    found, expected = committed(streams), streams.expected(EXPECTED["far"])
    assert day < found < expected
    assert last_written(streams, "far") == 1
    close(streams, "day")
    streams.arrive(1)
    streams.run(ALIKE, name=words)
    assert committed(streams) == streams.expected(EXPECTED["far"])
    assert last_written(streams, "far") == 2


@pytest.mark.long
def test_a_first_commit_that_fails_can_come_later(streams: Streams) -> None:
    streams.arrive(2)
    close(streams, "day")
    folder = streams.root / "far_out"
    folder.mkdir()
    (folder / "_spark_metadata").touch()
    with pytest.raises(WJoinError, match="the sink far could not be written"):
        streams.run(ALIKE)
    (folder / "_spark_metadata").unlink()
    streams.run(ALIKE)
    assert committed(streams).total() > 5
    close(streams, "day")
    streams.arrive(1)
    streams.run(ALIKE)
    assert committed(streams) == streams.expected(EXPECTED["far"])


@pytest.mark.long
def test_what_waits_for_a_commit_is_told(streams: Streams) -> None:
    streams.arrive(2)
    streams.run(ALIKE)
    assert "2 micro-batches (" in streams.session.running[-1].line()
    assert "for the sink far since" in streams.session.running[-1].line()
    streams.session.context.settings.set("wjoin.waiting", "1k")
    streams.arrive(1)
    with pytest.warns(WJoinWarning, match=r"WJ818.*wait 3 micro-batches .*: no row has committed them yet"):
        streams.run(ALIKE)


@pytest.mark.long
def test_an_insert_by_itself_is_a_set_of_one(streams: Streams) -> None:
    declare(streams, "COMMIT WHEN one (n >= 0)")
    streams.arrive(2)
    checkpoint = str(streams.root / "checkpoints")
    streams.session.run_script(ALIKE[1], checkpoint=checkpoint)
    (running,) = streams.session.running
    assert running.checkpoint == f"{checkpoint}/far"
    assert streams.found("far") == streams.expected(EXPECTED["far"])
    # Spark reads the rows that commit from the source of the join.
    assert len(running.query.recentProgress[0]["sources"]) == 2


REFUSED = {
    "COMMIT WHEN nowhere (n > 0)": ("WJ602", "nowhere"),
    "COMMIT WHEN one (unknown > 0)": ("WJ606", "the condition of COMMIT WHEN of far cannot be tested"),
}


@pytest.mark.parametrize("clause", REFUSED)
def test_what_cannot_commit_is_refused(streams: Streams, clause: str) -> None:
    declare(streams, clause)
    with pytest.raises(WJoinError, match=REFUSED[clause][1]) as refused:
        streams.run(ALIKE)
    assert refused.value.code == REFUSED[clause][0]
    assert not streams.session.running
