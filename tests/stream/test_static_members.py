"""Streams and static relations in one window clause, against the oracle in several micro-batches."""

import dataclasses
import datetime
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from tests.kit.check import assert_same, deal, patient, sources_of
from tests.kit.expressions import Call, Compare, Field, Literal, equal
from tests.kit.lateness import Batch, expected_batches
from tests.kit.oracle import combinations
from tests.kit.statement import Between, Both, Either, Pair, Statement, Style, Trailing, Within, text
from tests.kit.tables import EPOCH, SECOND, TIMESTAMP, events, statement
from wjoin.progress import read
from wjoin.testing.harness import Run, Source, run_batches, spark_schema

pytestmark = pytest.mark.thorough


def rows(place: int, count: int = 9, step: int = 2 * SECOND, time: pa.DataType = TIMESTAMP) -> pa.Table:
    """Rows on a grid of times with two keys, and one without a time."""
    grid = [(100 * place + i, i * step + place * step // 2, i % 2) for i in range(count)]
    return events([*grid, (100 * place + count, None, 0)], "k", time=time)


def frame_of(session: Any, table: pa.Table) -> DataFrame:
    """Return a static DataFrame of the rows."""
    frame: DataFrame = session.spark.createDataFrame(table, spark_schema(table.schema))
    return frame


def check(
    session: Any,
    case: Statement,
    batches: list[dict[str, pa.Table]],
    static: Mapping[str, pa.Table],
    restarts: tuple[int, ...] = (),
) -> Run:
    """Assert that each micro-batch emits the oracle's bag, the static rows being there from the first on."""
    for item in case.inputs:
        if item.alias in static:
            frame = frame_of(session, static[item.alias])
            session.stream(item.relation, frame, event_time=item.event_time)
    streams = tuple(item for item in case.inputs if item.alias not in static)
    sources = sources_of(dataclasses.replace(case, inputs=streams), batches)
    written = text(case, Style())
    run = run_batches(session, written, sources, restarts=restarts)
    complete: list[Batch] = [
        {
            **batch,
            **{alias: table.slice(0, 0 if number else table.num_rows) for alias, table in static.items()},
        }
        for number, batch in enumerate(batches)
    ]
    for number, (actual, wanted) in enumerate(zip(run.bags, expected_batches(case, complete), strict=True)):
        assert_same(actual, wanted, f"micro-batch {number} of\n{written}")
    assert run.bag
    return run


@pytest.mark.long
def test_two_streams_and_a_static_relation(session: Any) -> None:
    """The static relation has conditions of every kind, and nothing of it is kept."""
    case = patient(
        statement(
            "ABC",
            Both((Pair("A", "B", 5 * SECOND), Between("B", "C", -7 * SECOND, 3 * SECOND))),
            equal(Field("A", "k"), Field("C", "k")),
            equal(Field("C", "k"), Field("B", "k")),
            Compare(Field("C", "id"), "<>", Literal(203)),
            Compare(Field("A", "ts"), "<=", Field("C", "ts")),
            Compare(Call("+", (Field("A", "id"), Field("C", "id"))), "<>", Literal(206)),
            match=("time", "start", "span"),
        )
    )
    run = check(session, case, deal({"A": rows(0), "B": rows(1)}, 3), {"C": rows(2)}, restarts=(1,))
    assert {name for report in run.progress for name in read(report).state_rows} == {"A", "B"}


def test_an_empty_static_relation_does_not_cut_the_streams_off(session: Any) -> None:
    """Without generated code, Spark's hash join does not even read what stands beside an empty table."""
    session.spark.conf.set("spark.sql.codegen.wholeStage", "false")
    session.stream("s_c", frame_of(session, rows(2).slice(0, 0)), event_time="ts")
    streams = patient(statement("AB", Within(5 * SECOND), equal(Field("A", "k"), Field("B", "k"))))
    written = """SELECT A.id FROM s_a AS A, s_b AS B, s_c AS C WINDOW = 5 SECONDS
                 WHERE A.k = B.k AND B.k = C.k"""
    run = run_batches(session, written, sources_of(streams, deal({"A": rows(0), "B": rows(1)}, 2)))
    assert not run.bag
    assert [read(report).state_rows for report in run.progress][:2] == [{"A": 5, "B": 5}, {"A": 9, "B": 9}]


def test_one_stream_after_a_static_relation(session: Any) -> None:
    time = pa.int32()
    case = patient(
        statement("CA", Pair("C", "A", 3, directed=True), match=("time", "span"), integral=True), 99
    )
    batches = deal({"A": rows(1, step=2, time=time)}, 2)
    check(session, case, batches, {"C": rows(0, step=2, time=time)})


def test_two_static_relations_and_a_disjunction(session: Any) -> None:
    """One alternative must hold for all streams; either connects the streams through a static relation."""
    time = pa.timestamp("us")
    window = Either(
        (
            Both((Pair("A", "T", 2 * SECOND, True), Pair("T", "B", 3 * SECOND), Within(6 * SECOND))),
            Both((Pair("B", "T", 4 * SECOND, True), Trailing("A", SECOND), Pair("T", "U", 2 * SECOND))),
        )
    )
    where = equal(Field("U", "k"), Field("T", "k"))
    case = patient(statement("TAUB", window, where, match=("time", "start", "span")))
    tables = {alias: rows(place, 6, time=time) for place, alias in enumerate("TAUB")}
    batches = deal({alias: tables[alias] for alias in "AB"}, 2)
    check(session, case, batches, {alias: tables[alias] for alias in "TU"})


@pytest.mark.parametrize("broad", [False, True], ids=["equality", "theta"])
def test_match_time_is_an_event_time(session: Any, broad: bool) -> None:
    """A static row may be the latest: no window of time is closed before its last result."""
    where = [equal(Field("A", "k"), Field("B", "k"))]
    where += [] if broad else [equal(Field("B", "k"), Field("C", "k"))]
    window = Both((Pair("A", "B", 6 * SECOND), Between("A", "C", -4 * SECOND, 30 * SECOND)))
    case = statement("ABC", window, *where, match=("time",))
    tables = {"A": rows(0, 12, 10 * SECOND), "B": rows(1, 12, 10 * SECOND), "C": rows(2, 40, 4 * SECOND)}
    far = 10_000
    closing = {alias: events([(990, far * SECOND, 0)], "k") for alias in "AB"}
    static = pa.concat_tables([tables["C"], events([(299, far * SECOND, 0)], "k")])
    # In order: every micro-batch closes windows that the one before has filled.
    batches = [{alias: tables[alias].slice(first, 4) for alias in "AB"} for first in (0, 4, 8)]
    batches += [closing, {alias: table.slice(0, 0) for alias, table in closing.items()}]
    sources = [Source(f"s_{alias.lower()}", [each[alias] for each in batches]) for alias in "AB"]
    session.stream("s_c", frame_of(session, static), event_time="ts")
    start = "window(MATCH_TIME(), '10 seconds')"
    tail = text(case, Style()).split("FROM", 1)[1]
    grouped = f"SELECT {start}.start AS start, count(*) AS n FROM {tail} GROUP BY {start}"
    run = run_batches(session, grouped, sources)
    times = {alias: table["ts"].cast(pa.int64()).to_pylist() for alias, table in tables.items()}
    latest = [
        max(times[alias][row] for alias, row in zip("ABC", found, strict=True)) - EPOCH
        for found in combinations(case, tables)
    ]
    wanted = Counter(time // (10 * SECOND) * 10 for time in latest)
    epoch = datetime.datetime.fromtimestamp(EPOCH / SECOND, datetime.UTC)
    assert sum(bool(bag) for bag in run.bags) > 1
    assert run.bag == Counter((epoch + datetime.timedelta(seconds=s), n) for s, n in wanted.items())


def test_alternatives_without_a_common_bound(session: Any) -> None:
    """Nothing limits the first static relation before the second is there."""
    time = pa.int64()
    window = Either((Trailing("A", 1), Both((Trailing("T", 1), Trailing("U", 1)))))
    case = patient(statement("ATU", window, integral=True), 99)
    static = {alias: rows(place, 4, 2, time) for place, alias in enumerate("TU", 1)}
    check(session, case, deal({"A": rows(0, 5, 2, time)}, 2), static)
