"""Groups by MATCH_TIME() close when the streams have passed them, whether a result comes or not."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path as File
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.kit.check import PLAIN, sources_of
from tests.kit.expressions import Call, Compare, Field, Literal, equal
from tests.kit.lateness import Batch
from tests.kit.oracle import event_times, expected
from tests.kit.statement import Between, Both, Either, Pair, Path, Statement, text
from tests.kit.tables import SECOND, events, statement
from tests.tiers import tiers
from wjoin.testing.harness import Run, Source, run_batches, run_query
from wjoin.testing.site import Site

DELAY = 2 * SECOND
WIDTH = 10 * SECOND
FAR = 36_000 * SECOND

PACES = {"A": 25, "B": 18, "C": 12}
"""Rows of a micro-batch, one a second: the streams go at different paces."""


def batches(aliases: str, count: int = 3, *, ends: bool = True) -> list[dict[str, pa.Table]]:
    """Rows for some micro-batches; with ``ends`` one far later row of each stream, which joins nothing."""
    made = [{alias: _rows(alias, number) for alias in aliases} for number in range(count)]
    if ends:
        made.append({alias: _far(place) for place, alias in enumerate(aliases)})
    return made


def _rows(alias: str, number: int) -> pa.Table:
    pace = PACES[alias]
    times = range(number * pace, (number + 1) * pace)
    return events([(i, i * SECOND, i % 2, i % 3) for i in times], "k", "m")


def _far(place: int) -> pa.Table:
    return events([(900 + place, (place + 1) * FAR, 7 + place, 0)], "k", "m")


def silent_c() -> list[dict[str, pa.Table]]:
    """Micro-batches in which C sends nothing from the third on, until the others are far ahead."""
    made = batches("ABC")
    nothing = _far(2).slice(0, 0)
    return [
        *made[:2],
        {**made[2], "C": nothing},
        {**made[3], "C": nothing},
        {**made[2], "A": nothing, "B": nothing},
        {"A": nothing, "B": nothing, "C": _far(2)},
    ]


def keys(*pairs: str) -> tuple[Any, ...]:
    return tuple(equal(Field(a, column), Field(b, column)) for a, column, b in pairs)


def near(column: str, most: int, *pairs: str) -> tuple[Any, ...]:
    """Conditions that the columns of two streams differ by no more than so much."""
    differences = (Call("-", (Field(a, column), Field(b, column))) for a, b in pairs)
    return tuple(Compare(Call("abs", (each,)), "<=", Literal(most)) for each in differences)


AB, BC = ("AkB", "BkC")
THREE = Both((Pair("A", "B", 3 * SECOND), Pair("B", "C", 3 * SECOND)))
CASES = {
    "one stage": statement("ABC", THREE, *keys(AB, BC), match=("time",), delay=DELAY),
    "two stages": statement("ABC", THREE, *keys(AB, "BmC"), match=("time",), delay=DELAY),
    "no key": statement("ABC", THREE, match=("time",), delay=DELAY),
    "or": statement(
        "ABC",
        Either((THREE, Both((Between("A", "B", 4 * SECOND, 6 * SECOND), Pair("B", "C", SECOND))))),
        *keys(AB, BC),
        match=("time",),
        delay=DELAY,
    ),
    "path": statement(
        "ABC", Path(("A", "B", "C"), (4 * SECOND, 4 * SECOND)), *keys(AB, BC), match=("time",), delay=DELAY
    ),
    "later": statement(
        "AB", Between("A", "B", 5 * SECOND, 8 * SECOND), *keys(AB), match=("time",), delay=DELAY
    ),
}
LATER = {"later": {"A": 5 * SECOND}}
"""By how much a result's latest row is later than one of a stream, at the least."""


def grouped(case: Statement, where: str = "true", hint: str = "") -> str:
    window = "window(match_time, '10 seconds')"
    written = text(case, PLAIN).replace("SELECT", f"SELECT {hint}", 1)
    return f"SELECT {window}.start AS start, count(*) AS n FROM ({written}) WHERE {where} GROUP BY {window}"


def run(
    session: Any, case: Statement, made: Sequence[Batch], restarts: Sequence[int] = (), **how: str
) -> Run:
    """Run groups of a case over some micro-batches; ``how`` as ``grouped`` takes it."""
    return run_batches(session, grouped(case, **how), sources_of(case, made), restarts=restarts)


def results(case: Statement, made: Sequence[Batch], static: Batch | None = None) -> Counter[tuple[Any, ...]]:
    """All results, by the oracle."""
    tables = {alias: pa.concat_tables(each[alias] for each in made) for alias in made[0]}
    return expected(case, {**tables, **(static or {})})


def groups(case: Statement, made: Sequence[Batch], static: Batch | None = None) -> Counter[tuple[Any, int]]:
    """All groups, by the oracle, by their start in microseconds: how many results each has."""
    found = results(case, made, static)
    counted: Counter[Any] = Counter()
    for row, count in found.items():
        counted[micros(row[-1]) // WIDTH * WIDTH] += count
    return counted


def micros(time: Any) -> int:
    return round(time.timestamp()) * SECOND


def passed(case: Statement, made: Sequence[Batch], later: dict[str, int] | None = None) -> int:
    """The time before which no result comes after some micro-batches: the least watermark."""
    return min(
        max(max(event_times(each[item.alias], "ts"), default=0) for each in made)
        - DELAY
        + (later or {}).get(item.alias, 0)
        for item in case.inputs
        if item.alias in made[0]
    )


def assert_groups(
    case: Statement,
    made: Sequence[Batch],
    done: Run,
    later: dict[str, int] | None = None,
    ends: Sequence[int] = (),
    static: Batch | None = None,
) -> None:
    """Assert which groups each micro-batch has closed: those that the streams had passed before it.

    What the last one has passed is closed at once, and of a run that ends before a micro-batch of ``ends``.
    """
    wanted = groups(case, made, static)
    emitted: Counter[Any] = Counter()
    for number, bag in enumerate(done.bags):
        for (start, n), count in bag.items():
            assert count == 1, "a group comes once"
            emitted[micros(start)] += n
        last = number + 1 in (*ends, len(made))
        known = made[: number + 1 if last else number]
        mark = passed(case, known, later) if known else 0
        closed = {start: n for start, n in wanted.items() if start + WIDTH < mark}
        assert emitted == closed, f"after micro-batch {number}"


@pytest.mark.parametrize(
    "name", tiers(CASES, long=["two stages"], thorough=CASES.keys() - {"one stage", "two stages"})
)
def test_groups_close_as_the_streams_pass_them(session: Any, name: str) -> None:
    """The last row of each stream joins nothing: it closes all groups that are left."""
    case = CASES[name]
    made = batches("".join(case.aliases))
    later = LATER.get(name)
    assert_groups(case, made, run(session, case, made), later)
    assert len(groups(case, made)) > 3


@pytest.mark.long
def test_conditions_behind_the_join_remove_no_mark(session: Any) -> None:
    """Spark pulls conditions as far down as it can: also such as leave no result at all."""
    case = CASES["one stage"]
    made = batches("ABC")
    whole = run(session, case, made, where="a_id > 10 AND b_id IS NOT NULL")
    assert whole.progress[-1]["eventTime"]["watermark"] == "2026-01-01T09:59:57.999Z"
    wanted = sum(count for row, count in results(case, made).items() if row[0] > 10)
    assert sum(n for _, n in whole.bag) == wanted
    none = run(session, case, made, where="a_id < 0")
    assert not none.bag
    assert none.progress[-1]["eventTime"]["watermark"] == "2026-01-01T09:59:57.999Z"


@pytest.mark.long
def test_a_silent_stream_holds_groups_open_over_restarts(session: Any) -> None:
    """And no longer than it is silent; the query knows over a restart how far it has come."""
    case = CASES["one stage"]
    made = silent_c()
    assert_groups(case, made, run(session, case, made, restarts=(2, 4)), ends=(2, 4))


@pytest.mark.parametrize("streams", ["AB", "A"])
@pytest.mark.long
def test_groups_of_streams_among_tables_close(session: Any, streams: str) -> None:
    case = CASES["one stage"]
    table = pa.concat_tables(each["C"] for each in batches("C", ends=False))
    static = {"C": table} if "B" in streams else {"B": table, "C": table}
    for alias, rows in static.items():
        session.stream(f"s_{alias.lower()}", session.spark.createDataFrame(rows), event_time="ts")
    made = batches(streams)
    own = tuple(each for each in case.inputs if each.alias in streams)
    sources = sources_of(dataclasses.replace(case, inputs=own), made)
    done = run_batches(session, grouped(case), sources)
    assert_groups(case, made, done, static=static)


NEAR = statement("ABC", THREE, *near("m", 1, "AB", "BC"), match=("time",), delay=DELAY)
ALL_NEAR = statement("ABC", THREE, *near("id", 1000, "AB", "BC", "AC"), match=("time",), delay=DELAY)
BY_HINT = {
    "PSP": (CASES["no key"], "PLAN(PSP, 3)"),
    "ATR": (CASES["no key"], "PLAN(ATR, 2)"),
    "CTR": (CASES["no key"], "PLAN(CTR, 2)"),
    "RANGE": (NEAR, "PLAN(RANGE, 3)"),
    "LCA": (CASES["path"], "BOUNDS(LCA)"),
}


@pytest.mark.parametrize("route", tiers(BY_HINT, long=["PSP"], thorough=[*BY_HINT][1:]))
def test_groups_close_by_every_route(session: Any, route: str) -> None:
    """Each worker tells how far the streams have come, also one that has no rows."""
    session.spark.conf.set("spark.sql.shuffle.partitions", "5")
    case, hint = BY_HINT[route]
    made = batches("ABC")
    assert_groups(case, made, run(session, case, made, hint=f"/*+ {hint} */"))


@pytest.mark.long
def test_groups_of_joins_in_hops_close(session: Any, form: str) -> None:
    """Also where one stream is silent for a while, and over a restart."""
    case = CASES["no key"] if form.startswith("hops") else ALL_NEAR
    made = silent_c()
    done = run(session, case, made, restarts=(2, 4), hint="/*+ PLAN(PSP, 2) */")
    assert_groups(case, made, done, ends=(2, 4))


STREAM_AT_SITE = """
[streams.{name}]
source = "{folder}"
format = "parquet"
time = "ts"
window = "3 days"
key = ["k"]
poll = "100 ms"
"""


WAYS = ["PLAN(SEMIJOIN)", "PLAN(SIMPLE)", "SHIP(A = HELD, B = PARTIAL, C = FULL)"]


@pytest.mark.parametrize("hint", tiers(WAYS, long=WAYS[:1], thorough=WAYS[1:]))
def test_groups_of_streams_at_a_site_close(session: Any, tmp_path: File, hint: str) -> None:
    """Each run to the end of what is there is one of `--once`: what the streams have passed is closed."""
    case = CASES["one stage"]
    made = batches("ABC")
    names = {item.alias: item.relation for item in case.inputs}
    folders = {alias: tmp_path / name for alias, name in names.items()}
    for folder in folders.values():
        folder.mkdir()
    streams = "".join(
        STREAM_AT_SITE.format(name=name, folder=folders[alias]) for alias, name in names.items()
    )
    wanted = groups(case, made)
    with Site(tmp_path / "site", streams) as site:
        for number in range(1, len(made) + 1):
            for alias, name in names.items():
                hidden = folders[alias] / f".{number}"
                pq.write_table(made[number - 1][alias], hidden)
                hidden.rename(folders[alias] / f"{number}.parquet")
                site.wait_for(name, sum(each[alias].num_rows for each in made[:number]))
            declared = "; ".join(
                f"CREATE OR REPLACE STREAM {name} AT SITE '{site.url}' OPTIONS (maxRowsPerTrigger '20')"
                f" WATERMARK ts DELAY OF {DELAY} MICROSECONDS"
                for name in names.values()
            )
            sink = f"CREATE OR REPLACE SINK found USING parquet OPTIONS (path '{tmp_path}/found')"
            insert = f"INSERT INTO found {grouped(case, hint=f'/*+ {hint} */')}"
            session.run_script(
                f"{declared}; {sink}; {insert}", once=True, checkpoint=str(tmp_path / "checkpoints")
            )
            rows = session.spark.read.parquet(f"{tmp_path}/found").toArrow().to_pylist()
            mark = passed(case, made[:number])
            closed = {start: n for start, n in wanted.items() if start + WIDTH < mark}
            assert {micros(row["start"]): row["n"] for row in rows} == closed, f"after run {number}"
            assert len(rows) == len(closed)


@pytest.mark.long
def test_groups_of_sparks_own_joins_close(session: Any) -> None:
    case = CASES["one stage"]
    made = batches("ABC")
    done = run(session, case, made, hint="/*+ PLAN(NATIVE) */")
    assert sum(n for _, n in done.bag) == sum(groups(case, made).values())


@pytest.mark.parametrize("use", ["drop duplicates", "left join"])
@pytest.mark.long
def test_what_spark_keeps_behind_the_join_is_let_go(session: Any, use: str) -> None:
    """Far rows that join nothing end what Spark's own operators wait for."""
    case = CASES["later"]
    made = batches("AB")
    sources = sources_of(case, made)

    def register(source: Source, frame: DataFrame) -> None:
        session.stream(source.relation, frame, event_time=source.event_time, delay=source.delay)

    def build() -> DataFrame:
        rows: DataFrame = session.sql(text(case, PLAIN))
        if use == "drop duplicates":
            return rows.dropDuplicatesWithinWatermark(["a_id"]).select("a_id")
        other = session.spark.table("s_a").withWatermark("ts", "2 seconds").selectExpr("id AS other", "ts")
        near = "a_id = other + 1000 AND ts BETWEEN match_time - INTERVAL 10 SECONDS AND match_time"
        return rows.join(other, F.expr(near), "left").select("a_id", "other")

    done = run_query(session.spark, build, register, sources)
    found = results(case, made)
    if use == "drop duplicates":
        assert done.bag == Counter({(row[0],): 1 for row in found})
    else:
        assert done.bag == Counter((row[0], None) for row in found.elements())
    kept = [
        each["numRowsTotal"]
        for each in done.progress[-1]["stateOperators"]
        if not each["operatorName"].startswith("transformWithState")
    ]
    # Of the left join, the last row of A itself.
    assert kept == [0 if use == "drop duplicates" else 1]
