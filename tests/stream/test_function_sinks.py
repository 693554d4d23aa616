"""Sinks that are functions in Python, by themselves and in a statement set."""

from collections import Counter
from typing import Any

import pytest
from pyspark.sql import DataFrame

import wjoin
from tests.stream.joined import Streams, set_of
from tests.stream.test_statement_sets import ALIKE, EXPECTED, KEEP_OTHERS
from tests.tiers import tiers
from wjoin.grammar.errors import WJoinError

ALONE = ALIKE[1]
IN_A_SET = set_of(ALIKE, "both")


SEED = 3
DELAY = 1000


@pytest.fixture
def streams(streams: Streams) -> Streams:
    streams.sinks(["near"])
    streams.arrive(3)
    return streams


class Kept:
    """Keeps micro-batches by their numbers, as often as it gets them; fails where it is told to."""

    def __init__(self) -> None:
        self.rows: dict[int, Counter[tuple[Any, ...]]] = {}
        self.numbers: list[int] = []
        self.fails = False

    def __call__(self, rows: DataFrame, number: int) -> None:
        self.numbers.append(number)
        found = Counter(tuple(row) for row in rows.collect())
        # Reading twice joins once.
        assert rows.count() == found.total()
        if self.fails and number > 0:
            raise OSError("the alarm is out of order")
        self.rows[number] = found

    @property
    def total(self) -> Counter[tuple[Any, ...]]:
        return sum(self.rows.values(), Counter())


def run(streams: Streams, script: str) -> None:
    streams.session.run_script(script, checkpoint=str(streams.root / "checkpoints"))


@pytest.mark.parametrize("script", tiers([ALONE, IN_A_SET], long=[ALONE]), ids=["alone", "in a set"])
def test_a_function_gets_each_micro_batch_and_one_that_failed_again(streams: Streams, script: str) -> None:
    kept = Kept()
    streams.session.sink("far", kept)
    kept.fails = True
    with pytest.raises(WJoinError, match=r"far .*: OSError: the alarm is out of order") as failed:
        run(streams, script)
    assert failed.value.code == "WJ704"
    kept.fails = False
    run(streams, script)
    assert kept.numbers[:3] == [0, 1, 1]
    assert len(kept.rows) >= 3
    assert kept.total == streams.expected(EXPECTED["far"])
    assert kept.total.total() > 10


@pytest.mark.long
def test_what_a_function_could_not_take_waits_while_others_go_on(streams: Streams) -> None:
    kept = Kept()
    streams.session.sink("far", kept)
    kept.fails = True
    with pytest.warns(wjoin.WJoinWarning, match="WJ818.*wait 2 micro-batches .*the alarm is out of order"):
        run(streams, set_of(ALIKE, KEEP_OTHERS))
    assert streams.found("near") == streams.expected(EXPECTED["near"])
    kept.fails = False
    streams.arrive(1)
    run(streams, set_of(ALIKE, KEEP_OTHERS))
    assert kept.total == streams.expected(EXPECTED["far"])


@pytest.mark.long
@pytest.mark.parametrize("script", tiers([ALONE, IN_A_SET], long=[ALONE]), ids=["alone", "in a set"])
def test_the_join_sees_rows_that_a_function_does_not_read(streams: Streams, script: str) -> None:
    streams.session.sink("far", lambda rows, number: None)
    run(streams, script)
    assert streams.session.running[-1].totals.total.rows_of_state > 50


def test_it_is_shown_as_a_sink_and_takes_rows_of_tables_once(session: wjoin.Session) -> None:
    kept = Kept()
    session.sink("Alarms", kept)
    assert [tuple(row) for row in session.sql("SHOW SINKS").collect()] == [
        ("Alarms", "foreachBatch", None, None)
    ]
    session.sql("INSERT INTO alarms SELECT id FROM range(3)")
    assert kept.rows == {0: Counter([(0,), (1,), (2,)])}
    with pytest.raises(WJoinError, match="Alarms is a function, so there is no statement to show"):
        session.sql("SHOW CREATE SINK alarms")
    with pytest.raises(WJoinError, match="the name of a sink is that of a folder"):
        session.sink("a/b", kept)
