"""Event times that cannot be true: a row of the far future is dropped and told of, and makes no other late.

Rows of the far past are harmless: they are late, or join with their like.
"""

import datetime
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wjoin
from tests.kit.check import assert_batch, assert_stream, sources_of
from tests.kit.expressions import Field, equal
from tests.kit.lateness import surviving
from tests.kit.statement import Between, Condition, Pair, Statement, Style, Trailing, Within, text
from tests.kit.tables import EPOCH, SECOND, TIMESTAMP, events, statement
from tests.tiers import EXAMPLES, PHASES, tiers
from wjoin import progress
from wjoin.planner.plan.ahead import GREATEST_NUMBER, GREATEST_TIMESTAMP
from wjoin.testing.harness import Run, run_batches

pytestmark = pytest.mark.thorough

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
YEAR_1, YEAR_9999 = -62_135_596_800 * SECOND, 253_402_300_800 * SECOND - 1

KINDS = {"timestamp": TIMESTAMP, "timestamp_ntz": pa.timestamp("us"), "integral": pa.int64()}

SENTINELS = {
    "timestamp": (LEAST, YEAR_1, GREATEST_TIMESTAMP, GREATEST_TIMESTAMP + 1, YEAR_9999, GREATEST),
    "timestamp_ntz": (YEAR_1, GREATEST_TIMESTAMP, GREATEST_TIMESTAMP + 1, YEAR_9999),
    "integral": (LEAST, LEAST + 2, -1, GREATEST_NUMBER, GREATEST_NUMBER + 1, GREATEST - 2, GREATEST),
}

METHODS = {"blocks": Style(), "native": Style(hints=("PLAN(NATIVE)",))}

ON_STREAMS = [(kind, "blocks") for kind in KINDS] + [("timestamp", "native")]
"""Spark's own joins of streams take timestamps with a time zone only."""

ON_K = equal(Field("A", "k"), Field("B", "k"))

Times = tuple[list[int], ...]


def rows(kind: str, times: list[int | None], first: int = 0) -> pa.Table:
    """Return rows of one key with event times as numbers."""
    start = 0 if kind == "integral" else EPOCH
    found = [(first + n, None if each is None else each - start, 0) for n, each in enumerate(times)]
    return events(found, "k", time=KINDS[kind])


def told(run: Run) -> dict[str, list[dict[str, int]]]:
    reports = [progress.read(each) for each in run.progress]
    reports = [each for each in reports if each.ahead or each.null_times]
    return {name: [getattr(each, name) for each in reports] for name in ("ahead", "furthest", "null_times")}


@pytest.mark.parametrize(("kind", "method"), tiers(ON_STREAMS, quick=[("timestamp", "blocks")]))
def test_a_row_of_the_far_future_is_dropped_and_makes_no_other_late(
    session: Any, kind: str, method: str
) -> None:
    start, last = (0, GREATEST) if kind == "integral" else (EPOCH, YEAR_9999)
    greatest = GREATEST_NUMBER if kind == "integral" else GREATEST_TIMESTAMP
    case = statement("AB", Within(10 * SECOND), ON_K, integral=kind == "integral", delay=5 * SECOND)
    batches = [
        {"A": rows(kind, [start, last, greatest + 1, None]), "B": rows(kind, [start])},
        {"A": rows(kind, [start + SECOND], 10), "B": rows(kind, [last - 1, start + 2 * SECOND], 10)},
        {"A": rows(kind, [start + 3 * SECOND], 20), "B": rows(kind, [start + 3 * SECOND], 20)},
    ]
    run = assert_stream(session, case, batches, METHODS[method])
    assert [bag.total() for bag in run.bags] == [1, 3, 5]
    found = told(run)
    assert [each["A"] for each in found["ahead"][:2]] == [2, 0]
    assert [each["B"] for each in found["ahead"][:2]] == [0, 1]
    assert [each["A"] for each in found["null_times"][:2]] == [1, 0]
    assert found["furthest"][:2] == [{"A": last}, {"B": last - 1}]


WINDOWS = (
    Within(10),
    Pair("A", "B", 5, directed=True),
    Between("A", "B", -3, 7),
    Trailing("A", 4),
    Within(GREATEST_TIMESTAMP),
)


def scaled(window: Condition, unit: int) -> Condition:
    """Return a window of so many units."""
    match window:
        case Within(width):
            return Within(min(width * unit, 10**17))
        case Pair(first, second, width, directed):
            return Pair(first, second, width * unit, directed)
        case Between(first, second, low, high):
            return Between(first, second, low * unit, high * unit)
        case Trailing(stream, width):
            return Trailing(stream, width * unit)
    raise ValueError(window)


@st.composite
def cases(
    draw: st.DrawFn, batches: int, kinds: Sequence[str] = tuple(KINDS), earliest: int = LEAST
) -> tuple[Statement, list[dict[str, pa.Table]]]:
    """Return a statement over two streams with rows near the present, and others near sentinels."""
    kind = draw(st.sampled_from(kinds))
    unit, start = (1, 0) if kind == "integral" else (SECOND, EPOCH)
    window = scaled(draw(st.sampled_from(WINDOWS)), unit)
    integral = kind == "integral"
    match = ("time", "start") if integral else ()
    case = statement("AB", window, ON_K, match=match, integral=integral, delay=draw(st.integers(0, 9)) * unit)
    near = st.integers(0, 20).map(lambda place: start + place * unit)
    ends = st.sampled_from([each for each in SENTINELS[kind] if each >= earliest])
    times = st.lists(near | near | ends, min_size=1, max_size=6)
    cut = [{alias: rows(kind, draw(times), 10 * number) for alias in "AB"} for number in range(batches)]
    return case, cut


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("method", METHODS)
def test_any_times_on_a_stream(session: Any, method: str) -> None:
    """NATIVE is over rows that come at once: it has fewer late rows than the model.

    Before its first watermark Spark takes those before 1970 for late, and says so (WJ805).
    """

    @settings(max_examples=6 * EXAMPLES, suppress_health_check=list(HealthCheck), phases=PHASES)
    @given(cases(3) if method == "blocks" else cases(1, ("timestamp",), earliest=0))
    def check(drawn: tuple[Statement, list[dict[str, pa.Table]]]) -> None:
        case, batches = drawn
        run = assert_stream(session, case, batches, METHODS[method])
        reports = [progress.read(each) for each in run.progress]
        for alias, left in surviving(case, batches).items():
            assert sum(each.ahead.get(alias, 0) for each in reports) == sum(left.ahead)
            if method == "blocks":
                assert sum(each.late.get(alias, 0) for each in reports) == sum(left.late)

    check()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("method", METHODS)
def test_any_times_in_tables(session: Any, method: str) -> None:
    """There is no watermark: nothing is dropped, and rows of the far future join with their like."""

    @settings(max_examples=10 * EXAMPLES, suppress_health_check=list(HealthCheck), phases=PHASES)
    @given(cases(1))
    def check(drawn: tuple[Statement, list[dict[str, pa.Table]]]) -> None:
        case, (tables,) = drawn
        assert_batch(session, case, tables, METHODS[method])

    check()


# A declared limit -----------------------------------------------------------


def near_now(*minutes: float, first: int = 0) -> pa.Table:
    """Return rows so many minutes from now."""
    now = datetime.datetime.now(datetime.UTC).timestamp()
    return rows("timestamp", [int((now + 60 * each) * SECOND) for each in minutes], first)


SCRIPT = """
CREATE STREAM ma (id BIGINT, ts TIMESTAMP, k BIGINT) USING parquet
OPTIONS (path '{root}/ma', maxFilesPerTrigger '1', wjoin.ahead '10 minutes') WATERMARK ts DELAY OF '1 hour';
CREATE STREAM mb (id BIGINT, ts TIMESTAMP, k BIGINT) USING parquet
OPTIONS (path '{root}/mb', maxFilesPerTrigger '1') WATERMARK ts DELAY OF '1 hour';
CREATE SINK out USING parquet OPTIONS (path '{root}/out');
INSERT INTO out SELECT A.id AS a, B.id AS b FROM ma A, mb B WINDOW = 2 hours WHERE A.k = B.k AND A.id >= 0;
"""


def write(table: pa.Table, path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    pq.write_table(table, path)


def results(session: wjoin.Session, root: Path) -> set[tuple[int, int]]:
    return {(row.a, row.b) for row in session.read.parquet(str(root / "out")).collect()}


def test_a_declared_limit_in_sql(session: wjoin.Session, tmp_path: Path) -> None:
    write(near_now(-1, 5, 15, 90), tmp_path / "ma" / "0.parquet")
    write(near_now(0, 90), tmp_path / "mb" / "0.parquet")
    message = r"dropped 2 rows too far ahead \(2 of A\), the furthest at 20\d\d-\d\d-\d\d"
    with pytest.warns(wjoin.WJoinWarning, match=message) as warned:
        session.run_script(SCRIPT.format(root=tmp_path), checkpoint=str(tmp_path / "checkpoints"))
    assert {each.message.code for each in warned} == {"WJ807"}
    assert results(session, tmp_path) == {(a, b) for a in (0, 1) for b in (0, 1)}
    (shown,) = (row.comment for row in session.sql("DESCRIBE STREAM ma").collect() if row.col_name == "ts")
    assert shown == "event time, out of order by up to 1 h; at most 10 min ahead of the clock"


def test_a_repeated_micro_batch_drops_the_same_rows(session: wjoin.Session, tmp_path: Path) -> None:
    """What is ahead of its first attempt is no more ahead of the clock when it is repeated."""
    passed = time.monotonic() + 15
    write(near_now(0, 10 + 15 / 60), tmp_path / "ma" / "0.parquet")
    write(near_now(0), tmp_path / "mb" / "0.parquet")
    script, folder = SCRIPT.format(root=tmp_path), tmp_path / "checkpoints"
    with pytest.warns(wjoin.WJoinWarning, match="1 row too far ahead"):
        session.run_script(script, checkpoint=str(folder))
    for log in (folder / "out" / "commits", tmp_path / "out" / "_spark_metadata"):
        (log / "0").unlink()
        (log / ".0.crc").unlink(missing_ok=True)
    for name in ("STREAM ma", "STREAM mb", "SINK out"):
        session.sql(f"DROP {name}")
    time.sleep(max(0.0, passed - time.monotonic()))
    with pytest.warns(wjoin.WJoinWarning, match="1 row too far ahead"):
        session.run_script(script, checkpoint=str(folder))
    assert results(session, tmp_path) == {(0, 0)}


@pytest.mark.parametrize(("kind", "method"), [each for each in ON_STREAMS if each[0] != "integral"])
def test_a_declared_limit_from_python(session: Any, tmp_path: Path, kind: str, method: str) -> None:
    now = int(datetime.datetime.now(datetime.UTC).timestamp()) * SECOND
    case = statement("AB", Within(7200 * SECOND), ON_K, delay=SECOND)
    batches = [{"A": rows(kind, [now, now + 3_000 * SECOND]), "B": rows(kind, [now, now + 3_000 * SECOND])}]

    class Limited:
        """The session, but that every stream is declared with a limit."""

        spark, sql = session.spark, session.sql

        def stream(self, name: str, frame: Any, **declared: Any) -> None:
            session.stream(name, frame, ahead=datetime.timedelta(minutes=10), **declared)

    run = run_batches(Limited(), text(case, METHODS[method]), sources_of(case, batches))
    assert run.bag.total() == 1
    assert told(run)["ahead"][0] == {"A": 1, "B": 1}
    assert told(run)["furthest"][0] == {"A": now + 3_000 * SECOND, "B": now + 3_000 * SECOND}


@pytest.mark.parametrize(
    ("event_time", "ahead", "code"),
    [("ts", "-1 second", "WJ110"), ("k", "1 second", "WJ305"), ("ts", "1", "WJ102"), ("ts", "soon", "WJ103")],
)
def test_limits_that_cannot_be(session: wjoin.Session, event_time: str, ahead: str, code: str) -> None:
    frame = session.createDataFrame([], "k BIGINT, ts TIMESTAMP")
    with pytest.raises(wjoin.WJoinError, match=code):
        session.stream("limited", frame, event_time=event_time, ahead=ahead)
    watermark = {"k": "value DELAY OF 0", "ts": "timestamp DELAY OF '0 seconds'"}[event_time]
    created = f"CREATE STREAM limited USING rate OPTIONS (wjoin.ahead '{ahead}') WATERMARK {watermark}"
    with pytest.raises(wjoin.WJoinError, match=code) as raised:
        session.sql(created)
    assert raised.value.span is not None
    assert raised.value.span.of(created) == "wjoin.ahead"
