"""ALTER STATEMENT SET: statements come and go while a set runs, and the others do not notice."""

import re
import threading
from pathlib import Path
from random import Random

import pytest

import wjoin
from tests.stream.joined import Streams, set_of
from tests.stream.test_statement_sets import ALIKE, EXPECTED
from wjoin.grammar.errors import WJoinError, WJoinWarning

NARROW = """INSERT INTO narrow SELECT A.n AS first, B.n AS then FROM one A, two B
            WINDOW (A, B) BETWEEN -1 AND 2 WHERE B.k = A.k"""
NARROW_MEANT = "SELECT A.n, B.n FROM one A, two B WHERE A.k = B.k AND B.n - A.n BETWEEN -1 AND 2"


SEED = 5
DELAY = 1000


@pytest.fixture(params=["files", pytest.param("spark", marks=pytest.mark.long)])
def streams(streams: Streams, request: pytest.FixtureRequest) -> Streams:
    streams.session.context.settings.set("wjoin.state", request.param)
    streams.sinks([*EXPECTED, "narrow"])
    streams.arrive(2)
    checkpoint = str(streams.root / "checkpoints")
    streams.session.run_script(set_of(ALIKE, "changing"), once=False, checkpoint=checkpoint)
    return streams


def settled(streams: Streams) -> None:
    """Wait until the set has read all that is there."""
    (running,) = [each for each in streams.session.running if each.query.isActive]
    running.query.processAllAvailable()


@pytest.mark.long
def test_a_running_set_gets_and_loses_statements(streams: Streams) -> None:
    settled(streams)
    before = streams.expected(NARROW_MEANT)
    asked = streams.session.sql(f"ALTER STATEMENT SET changing ADD {NARROW}").collect()
    assert [row.sink for row in asked] == ["near, far, narrow"]
    streams.arrive(2)
    settled(streams)
    added = streams.expected(NARROW_MEANT) - before
    assert added.total() > 3
    assert streams.found("narrow") == added
    far = streams.expected(EXPECTED["far"])
    streams.session.sql("ALTER STATEMENT SET Changing DROP far")
    streams.arrive(1)
    settled(streams)
    assert streams.found("far") == far
    assert streams.found("near") == streams.expected(EXPECTED["near"])
    assert streams.found("narrow") == streams.expected(NARROW_MEANT) - before
    # Gone, and back: it lacks what has come meanwhile, and no more.
    gone = streams.expected(EXPECTED["far"]) - far
    streams.session.sql(f"ALTER STATEMENT SET changing ADD {ALIKE[1]}")
    streams.arrive(2)
    settled(streams)
    assert gone.total() > 0
    assert streams.found("far") == streams.expected(EXPECTED["far"]) - gone
    ended = [each.state for each in streams.session.running]
    assert ended[:-1] == ["stopped"] * 3
    assert all(each.failed is None for each in streams.session.running)


@pytest.mark.long
def test_a_statement_with_history_has_the_results_of_the_state(streams: Streams) -> None:
    settled(streams)
    with pytest.warns(WJoinWarning, match="WJ821"):
        streams.session.sql(f"ALTER STATEMENT SET changing ADD {NARROW} WITH HISTORY")
    streams.arrive(1)
    settled(streams)
    assert streams.found("narrow") == streams.expected(NARROW_MEANT)
    streams.session.sql("ALTER STATEMENT SET changing DROP far")
    streams.arrive(1)
    settled(streams)
    assert streams.found("narrow") == streams.expected(NARROW_MEANT)
    assert streams.found("near") == streams.expected(EXPECTED["near"])
    with pytest.raises(WJoinError, match="has written into far before, and results would come twice"):
        streams.session.sql(f"ALTER STATEMENT SET changing ADD {ALIKE[1]} WITH HISTORY")


@pytest.mark.long
@pytest.mark.parametrize("home", ["files", "spark"])
def test_a_history_is_complete_from_the_time_that_is_told(
    session: wjoin.Session, tmp_path: Path, home: str
) -> None:
    session.context.settings.set("wjoin.state", home)
    streams = Streams(session, tmp_path, Random(8), delay=80)
    streams.sinks([*EXPECTED, "narrow"])
    streams.arrive(8)
    session.run_script(set_of(ALIKE, "changing"), once=False, checkpoint=str(tmp_path / "checkpoints"))
    settled(streams)
    before = streams.expected(NARROW_MEANT)
    with pytest.warns(WJoinWarning, match="WJ821") as warned:
        session.sql(f"ALTER STATEMENT SET changing ADD {NARROW} WITH HISTORY")
    (told,) = [int(found[1]) for each in warned if (found := re.search(r"from (\d+) on", str(each.message)))]
    streams.arrive(1)
    settled(streams)
    found, expected = streams.found("narrow"), streams.expected(NARROW_MEANT)
    assert found < expected
    assert all(max(row) < told for row in expected - found)
    assert sum(count for row, count in (found & before).items() if max(row) >= told) > 3
    for each in session.running:
        each.stop()


BAND = """INSERT INTO {name} SELECT /*+ PLAN({plan}) */ A.n AS first, B.n AS then FROM one A, two B
          WINDOW (A, B) BETWEEN {low} AND 9 WHERE abs(A.v - B.v) <= 2"""
BAND_MEANT = "SELECT A.n, B.n FROM one A, two B WHERE abs(A.v - B.v) <= 2 AND B.n - A.n BETWEEN 0 AND 9"


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*WJ821")
@pytest.mark.parametrize("plan", ["PSP", "ATR", "CTR", "RANGE", "PSP in Spark's store"])
def test_a_history_of_rows_on_several_workers(session: wjoin.Session, tmp_path: Path, plan: str) -> None:
    session.context.settings.set("wjoin.state", "spark" if "Spark" in plan else "files")
    streams = Streams(session, tmp_path, Random(9))
    streams.sinks(["near", "narrow"])
    streams.arrive(3)
    near, narrow = (
        BAND.format(name=name, plan=plan.split()[0], low=low) for name, low in (("near", -3), ("narrow", 0))
    )
    session.run_script(set_of([near], "changing"), once=False, checkpoint=str(tmp_path / "checkpoints"))
    settled(streams)
    change = f"ALTER STATEMENT SET changing ADD {narrow} WITH HISTORY"
    if "Spark" in plan:
        with pytest.raises(WJoinError, match="by the route psp the rows of a result lie on several workers"):
            session.sql(change)
    else:
        session.sql(change)
        streams.arrive(1)
        settled(streams)
        assert streams.found("narrow") == streams.expected(BAND_MEANT)
        assert streams.found("narrow").total() > 10
    for each in session.running:
        each.stop()


@pytest.mark.long
def test_nothing_is_lost_or_doubled_while_rows_come(streams: Streams) -> None:
    def arrive() -> None:
        for _ in range(6):
            streams.arrive(1)

    arriving = threading.Thread(target=arrive)
    arriving.start()
    for change in (f"ADD {NARROW}", "DROP far", "DROP narrow", f"ADD {ALIKE[1]}"):
        streams.session.sql(f"ALTER STATEMENT SET changing {change}")
    arriving.join()
    settled(streams)
    assert streams.found("near") == streams.expected(EXPECTED["near"])
    assert streams.found("far") <= streams.expected(EXPECTED["far"])
    assert all(each.failed is None for each in streams.session.running)


REFUSED = [
    ("other ADD " + NARROW, "WJ602", "no statement set named other runs"),
    ("changing DROP narrow", "WJ602", "has no statement into narrow"),
    (f"changing ADD {ALIKE[0]}", "WJ606", "two statements of the set write to near"),
    ("changing ADD " + NARROW.replace("-1 AND 2", "-1 AND 20"), "WJ702", "be 20 later than A"),
    ("changing ADD " + NARROW.replace("A.n AS first", "A.s AS first"), "WJ702", "the column s of A"),
    ("changing ADD " + NARROW.replace("two B", "three B"), "WJ702", "other streams"),
]
"""Changes that cannot be, and what is said of them."""


@pytest.mark.long
def test_a_change_that_cannot_be_leaves_the_set_as_it_was(streams: Streams) -> None:
    for change, code, told in REFUSED:
        with pytest.raises(WJoinError, match=told) as refused:
            streams.session.sql(f"ALTER STATEMENT SET {change}")
        assert refused.value.code == code
    settled(streams)
    (running,) = streams.session.running
    assert running.sink == "near, far"
