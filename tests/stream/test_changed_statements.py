"""Another statement on the checkpoint of an INSERT INTO: what it had before stays, what comes is the new one's."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

import wjoin
from tests.stream.test_statement_sets import Streams
from wjoin.grammar.errors import WJoinError, WJoinWarning

BEGUN = """SELECT A.n AS first, B.n AS then, A.v FROM one A, two B WINDOW (A, B) BETWEEN -5 AND 9
           WHERE A.k = B.k AND A.v > 2 AND B.s <> 'y' AND A.v <= B.v"""
MEANT = """SELECT A.n, B.n, A.v FROM one A, two B
           WHERE A.k = B.k AND A.v > 2 AND B.s <> 'y' AND A.v <= B.v AND B.n - A.n BETWEEN -5 AND 9"""


@pytest.fixture(params=["files", "spark"])
def streams(session: wjoin.Session, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Streams]:
    session.context.settings.set("wjoin.state", request.param)
    found = Streams(session, tmp_path, Random(11))
    found.sinks(["out"])
    yield found
    found.oracle.close()


def run(streams: Streams, query: str) -> None:
    streams.session.run_script(f"INSERT INTO out {query}", checkpoint=str(streams.root / "checkpoints"))


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        (
            BEGUN.replace("BETWEEN -5 AND 9", "BETWEEN -3 AND 4"),
            MEANT.replace("BETWEEN -5 AND 9", "BETWEEN -3 AND 4"),
        ),
        (
            BEGUN.replace("A.v > 2", "A.v > 4 AND A.n % 2 = 0"),
            MEANT.replace("A.v > 2", "A.v > 4 AND A.n % 2 = 0"),
        ),
        (BEGUN.replace("A.v <= B.v", "A.v + B.v > 9"), MEANT.replace("A.v <= B.v", "A.v + B.v > 9")),
        (BEGUN.replace(" AND A.v <= B.v", ""), MEANT.replace(" AND A.v <= B.v", "")),
        (
            BEGUN.replace(
                "WINDOW (A, B) BETWEEN -5 AND 9", "WINDOW (B, A) = 2 OR WINDOW (A, B) BETWEEN 5 AND 7"
            )
            .replace("A.v FROM", "B.v FROM")
            .replace("A.v <= B.v", "B.v <> 3 AND A.k = 1"),
            MEANT.replace("BETWEEN -5 AND 9", "BETWEEN -2 AND 2 OR B.n - A.n BETWEEN 5 AND 7)")
            .replace("AND B.n - A.n BETWEEN -2", "AND (B.n - A.n BETWEEN -2")
            .replace("A.v FROM", "B.v FROM")
            .replace("A.v <= B.v", "B.v <> 3 AND A.k = 1"),
        ),
    ],
    ids=["narrower", "stricter", "other condition", "without condition", "all of it"],
)
def test_a_statement_that_the_state_can_answer_goes_on(streams: Streams, query: str, meant: str) -> None:
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
