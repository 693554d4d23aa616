"""PLAN(NATIVE), the chain of Spark's own joins of two, against the oracle in batch and on streams."""

import dataclasses
import datetime
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, note, settings

from tests.kit.check import assert_batch, assert_same, assert_stream, deal, patient, sources_of
from tests.kit.expressions import Call, Compare, Expression, Field, Literal, equal, streams_of
from tests.kit.lateness import expected_batches
from tests.kit.statement import Both, Pair, Style, Trailing, Within, text
from tests.kit.strategies import KEY_KINDS, Case, fruitful_cases
from tests.kit.tables import SECOND, TIMESTAMP, events, statement
from tests.tiers import EXAMPLES, PHASES, tiers
from wjoin.grammar.errors import WJoinError
from wjoin.testing.harness import Run, Source, run_batches, run_static, spark_schema
from wjoin.testing.rows import rows_of

pytestmark = pytest.mark.thorough

NATIVE = Style(hints=("PLAN(NATIVE)",))
AB = equal(Field("A", "k"), Field("B", "k"))
BC = equal(Field("B", "k"), Field("C", "k"))


def native(case: Case) -> Style:
    """The style of a case, but for its hints."""
    return dataclasses.replace(case.style, hints=NATIVE.hints)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("streams", [2, 3, 4, 5])
def test_any_statement_in_batch_gives_the_defined_result(session: Any, streams: int) -> None:
    sizes: list[int] = []

    @settings(max_examples=7 * EXAMPLES, suppress_health_check=list(HealthCheck), phases=PHASES)
    @given(fruitful_cases(min_streams=streams, max_streams=streams))
    def check(case: Case) -> None:
        note(text(case.statement, native(case)))
        sizes.append(assert_batch(session, case.statement, case.tables, native(case)).total())

    check()
    assert sum(size > 0 for size in sizes) >= 0.5 * len(sizes)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("streams", tiers([2, 3, 4], long=[2], core=[2]))
def test_a_stream_in_micro_batches_gives_the_defined_result_or_is_refused(session: Any, streams: int) -> None:
    """No row is late here: NATIVE has fewer late rows than the model."""
    sizes: list[int] = []

    @settings(max_examples=6 * EXAMPLES, suppress_health_check=list(HealthCheck), phases=PHASES)
    @given(
        fruitful_cases(min_streams=streams, max_streams=streams, min_batches=3, max_batches=4, disorder=False)
    )
    def check(case: Case) -> None:
        note(text(case.statement, native(case)))
        if not joinable(case):
            with pytest.raises(WJoinError, match=r"PLAN\(NATIVE\) cannot apply: "):
                assert_stream(session, case.statement, case.batches, native(case))
            return
        run = assert_stream(session, case.statement, case.batches, native(case), restarts=[2])
        sizes.append(run.bag.total())

    check()
    assert not sizes or any(sizes)


def joinable(case: Case) -> bool:
    """Whether Spark can join the streams of a case: TIMESTAMP event time, and equalities that link all."""
    part = {alias: alias for alias in case.statement.aliases}
    for each in case.statement.where:
        if isinstance(each, Compare) and each.operator == "=" and len(streams := streams_of(each)) == 2:
            first, second = (part[alias] for alias in streams)
            part = {alias: first if own == second else own for alias, own in part.items()}
    table = next(iter(case.tables.values()))
    return len(set(part.values())) == 1 and table.schema.field("ts").type == TIMESTAMP


def every_kind(number: int, count: int) -> pa.Table:
    """Rows with a key of every kind; those of two streams meet, one's 0.0 with the other's -0.0."""
    base = events([(100 * number + i, i * SECOND) for i in range(count)])
    for place, kind in enumerate(KEY_KINDS):
        shift = number if kind.name == "double" else 0
        values = [kind.values[(i + shift) % len(kind.values)] for i in range(count)]
        base = base.append_column(f"k{place}", pa.array(values, kind.types[number % len(kind.types)]))
    return base


def test_keys_of_every_kind_at_once(session: Any) -> None:
    where = []
    for place, kind in enumerate(KEY_KINDS):
        sides: list[Expression] = [Field(alias, f"k{place}") for alias in "AB"]
        if kind.function is not None:
            sides = [Call(kind.function, (side,)) for side in sides]
        where.append(equal(*sides))
    case = patient(statement("AB", Within(30 * SECOND), *where))
    tables = {"A": every_kind(0, 30), "B": every_kind(1, 30)}
    assert assert_stream(session, case, deal(tables, 2), NATIVE, restarts=(1,)).bag


@pytest.mark.parametrize("place", range(len(KEY_KINDS)), ids=[kind.name for kind in KEY_KINDS])
def test_a_key_of_each_kind_in_batch(session: Any, place: int) -> None:
    sides: list[Expression] = [Field(alias, f"k{place}") for alias in "AB"]
    if (function := KEY_KINDS[place].function) is not None:
        sides = [Call(function, (side,)) for side in sides]
    tables = {"A": every_kind(0, 9), "B": every_kind(1, 9)}
    assert assert_batch(session, statement("AB", Within(30 * SECOND), equal(*sides)), tables, NATIVE)


# Windows open on one side ---------------------------------------------------


def steps(*batches: dict[str, list[tuple[int, int, int]]]) -> list[dict[str, pa.Table]]:
    """Micro-batches of rows (id, seconds, key) by alias; an alias left out has no rows."""
    aliases = sorted({alias for batch in batches for alias in batch})
    return [
        {
            alias: events([(i, at * SECOND, key) for i, at, key in batch.get(alias, [])], "k")
            for alias in aliases
        }
        for batch in batches
    ]


CLOCK = {"A": [(90, 60, 9)], "B": [(91, 60, 9)], "C": [(92, 60, 9)]}


@pytest.mark.parametrize("old", ["A", "B"])
def test_a_combination_with_an_old_row_is_not_late_for_the_next_join(session: Any, old: str) -> None:
    """One of A and B is older than every watermark when the other comes, as its window allows."""
    new = "B" if old == "A" else "A"
    case = statement("ABC", Both((Trailing(new, 5 * SECOND), Pair(new, "C", 5 * SECOND))), AB, BC)
    batches = steps(
        {old: [(1, 0, 1)]},
        CLOCK,
        {alias: [(i, 100, 9)] for alias, _, i in zip("ABC", range(3), (93, 94, 95), strict=True)},
        {new: [(2, 200, 1)]},
        {"C": [(3, 202, 1)]},
    )
    run = assert_stream(session, case, batches, NATIVE, restarts=(3,))
    assert run.bags[-1] == Counter([(1, 2, 3) if old == "A" else (2, 1, 3)])


def test_streams_without_a_bound_between_them_meet_first(session: Any) -> None:
    """A and B are joined first, but only C has windows, one to each of them."""
    case = statement("ABC", Trailing("C", 300 * SECOND), AB, BC)
    batches = steps({"B": [(1, 0, 1)]}, CLOCK, {"A": [(2, 190, 1)]}, {"C": [(3, 200, 1)]})
    assert assert_stream(session, case, batches, NATIVE).bags[-1] == Counter([(2, 1, 3)])


# Lateness -------------------------------------------------------------------


@pytest.mark.quick
def test_a_row_is_late_by_the_smallest_watermark(session: Any) -> None:
    case = statement("AB", Within(100 * SECOND), AB)
    batches = steps(
        {"A": [(1, 50, 1)], "B": [(2, 10, 1)]},
        # Spark takes a watermark to rows of the micro-batch after the next.
        {"A": [(7, 50, 9)]},
        # It is 10 s here: a row of just that time is not late, nor is one of A before its own 50 s.
        {"A": [(3, 10, 1), (4, 9, 1)], "B": [(5, 10, 1), (6, 9, 1)]},
    )
    run = run_batches(session, text(case, NATIVE), sources_of(case, batches))
    assert run.bag == Counter([(1, 2), (1, 5), (3, 2), (3, 5)])


# State ----------------------------------------------------------------------


def kept(run: Run) -> list[list[int]]:
    """The rows in the state of each join after each micro-batch."""
    return [[each["numRowsTotal"] for each in report["stateOperators"]] for report in run.progress]


def marching(aliases: str, batches: int, step: int = 100) -> list[dict[str, pa.Table]]:
    """Ten rows of each stream every so many seconds, a second apart."""
    return [
        {
            alias: events([(i, (step * batch + i) * SECOND, i % 2) for i in range(10)], "k")
            for alias in aliases
        }
        for batch in range(batches)
    ]


@pytest.mark.parametrize(
    "window",
    [Within(5 * SECOND), Both((Pair("A", "B", 5 * SECOND), Pair("B", "C", 5 * SECOND)))],
    ids=["every pair", "chain"],
)
def test_state_is_dropped(session: Any, window: Any) -> None:
    run = assert_stream(session, statement("ABC", window, AB, BC), marching("ABC", 6), NATIVE)
    pairs = sum(run.bags[0].values())
    assert run.bag.total() == 6 * pairs > 0
    last = kept(run)[-1]
    # What Spark keeps is of the last micro-batch, whose rows nothing has passed yet.
    assert len(last) == 2 and all(0 < rows <= 10 + 10 * 10 for rows in last), kept(run)
    assert max(sum(each) for each in kept(run)) <= 3 * sum(last), kept(run)


def test_a_selective_filter_does_not_hold_back_the_watermark(session: Any) -> None:
    case = statement("AB", Within(5 * SECOND), AB, Compare(Field("A", "id"), "<", Literal(0)))
    run = assert_stream(session, case, marching("AB", 6), NATIVE)
    assert not run.bag
    # Of B alone: the rows of the last micro-batch, and those before it that its watermark does not reach.
    assert kept(run)[-1][0] <= 20, kept(run)


# Statements -----------------------------------------------------------------


def test_static_relations_are_joined_to_the_chain(session: Any) -> None:
    case = patient(
        statement(
            "ATBC",
            Both((Pair("A", "B", 20 * SECOND), Pair("B", "C", 20 * SECOND), Pair("A", "T", 3 * SECOND))),
            AB,
            BC,
            equal(Field("A", "k"), Field("T", "k")),
            match=("time", "start", "span"),
        )
    )
    tables = {
        alias: events([(10 * n + i, 2 * i * SECOND, i % 2) for i in range(8)], "k")
        for n, alias in enumerate("ABCT")
    }
    static = tables.pop("T")
    frame = session.spark.createDataFrame(static, spark_schema(static.schema))
    session.stream("s_t", frame, event_time="ts")
    batches = deal(tables, 3)
    streams = dataclasses.replace(case, inputs=tuple(each for each in case.inputs if each.alias != "T"))
    run = run_batches(session, text(case, NATIVE), sources_of(streams, batches), restarts=(2,))
    complete = [{**batch, "T": static.slice(0, 0 if n else 8)} for n, batch in enumerate(batches)]
    for actual, wanted in zip(run.bags, expected_batches(case, complete), strict=True):
        assert_same(actual, wanted, text(case, NATIVE))
    assert run.bag


def test_results_can_be_aggregated_by_their_match_time(session: Any) -> None:
    case = statement("ABC", Within(5 * SECOND), AB, BC)
    batches = marching("ABC", 4)
    sources = sources_of(case, batches)
    rest = text(case, NATIVE).split("FROM", 1)[1]
    select = "SELECT /*+ PLAN(NATIVE) */ window(MATCH_TIME(), '50 seconds').start AS at, count(*) AS n FROM"
    written = f"{select}{rest} GROUP BY window(MATCH_TIME(), '50 seconds')"
    counts = {row[0]: row[1] for row in rows_of(run_static(session, written, sources))}
    run = run_batches(session, written, sources)
    # The last window is still open.
    assert run.bag == Counter((at, n) for at, n in counts.items() if at < max(counts))
    assert len(counts) == 4


def test_nothing_but_the_number_of_rows_is_wanted(session: Any) -> None:
    tables = marching("AB", 1)[0]
    sources = [Source(f"s_{alias.lower()}", [tables[alias]]) for alias in "AB"]
    rest = "FROM s_a A, s_b B WINDOW = 0 SECONDS WHERE A.k = B.k"
    result = run_static(session, f"SELECT /*+ PLAN(NATIVE) */ count(*) AS n {rest}", sources)
    assert rows_of(result) == [(10,)]
    assert run_batches(session, f"SELECT /*+ PLAN(NATIVE) */ 1 AS one {rest}", sources).bag == Counter(
        {(1,): 10}
    )


def test_event_times_in_keys_comparisons_and_the_select_list(session: Any) -> None:
    """Further columns with the event time in them must not count as event time for Spark."""
    case = patient(
        statement(
            "ABC",
            Within(9 * SECOND),
            equal(Field("A", "ts"), Field("B", "ts")),
            BC,
            Compare(Field("A", "ts"), "<=", Field("C", "ts")),
        )
    )
    outputs = tuple(
        dataclasses.replace(each, expression=Field(each.expression.stream, "ts")) for each in case.select
    )
    case = dataclasses.replace(case, select=outputs)
    assert assert_stream(session, case, deal(marching("ABC", 1)[0], 2), NATIVE, restarts=(1,)).bag


def test_a_day_is_24_hours_where_the_clock_changes(session: Any) -> None:
    session.spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    day = 86_400
    # 2026-03-28 18:00 UTC and later, in seconds after 2026-01-01: the clock changes the night after.
    start = int((datetime.datetime(2026, 3, 28, 18) - datetime.datetime(2026, 1, 1)).total_seconds())
    case = statement("AB", Pair("A", "B", day * SECOND, directed=True), AB)
    batches = steps(
        {"A": [(1, start, 1), (2, start - 1, 1)]},
        {"A": [(3, start + day - 1, 9)], "B": [(4, start + day - 1, 9)]},
        {"B": [(5, start + day, 1)]},
    )
    assert assert_stream(session, case, batches, NATIVE).bags[-1] == Counter([(1, 5)])


def test_the_setting_is_the_default_of_the_hint(session: Any) -> None:
    session.sql("SET wjoin.plan = native")
    session.sql("SET wjoin.algorithm = nlw")
    case = statement("AB", Within(SECOND), AB)
    assert assert_batch(session, case, marching("AB", 1)[0])
    assert "plan native" in session.explain(text(case, Style()))
    assert "plan native" not in session.explain(text(case, Style(hints=("PLAN(MULTIWAY)",))))


@pytest.mark.parametrize(
    "inner",
    [
        "SELECT /*+ PLAN(NATIVE) */ A.k, A.ts FROM s_a A, s_b B WINDOW = 5 s WHERE A.k = B.k",
        "SELECT A.k, A.ts, MATCH_TIME() AS at FROM s_a A, s_b B WINDOW = 5 s WHERE A.k = B.k",
        "SELECT * FROM s_d",
    ],
    ids=["of a native join", "of a match time", "of its own"],
)
def test_an_input_with_a_watermark_is_refused(session: Any, tmp_path: Path, inner: str) -> None:
    """Spark would fail on a second watermark only once the first has moved."""
    for alias in "abcd":
        frame = session.spark.readStream.schema("id BIGINT, ts TIMESTAMP, k BIGINT").parquet(str(tmp_path))
        session.stream(f"s_{alias}", frame.withWatermark("ts", "1 second") if alias == "d" else frame)
    source = f"({inner}) WATERMARK ts DELAY OF INTERVAL 1 SECOND AS X, s_c AS C"
    rest = f"X.k FROM {source} WINDOW = 5 s WHERE X.k = C.k"
    with pytest.raises(WJoinError, match="X already has a Spark watermark"):
        session.sql(f"SELECT /*+ PLAN(NATIVE) */ {rest}")
