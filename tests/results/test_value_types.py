"""Values of every type pass through a join unharmed, in any session time zone."""

import datetime
import decimal
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from tests.kit.check import deal
from tests.kit.tables import SECOND, TIMESTAMP, events
from tests.tiers import tiers
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.testing.harness import Source, run_batches, run_static
from wjoin.testing.rows import rows_of

pytestmark = pytest.mark.long

D = decimal.Decimal
UTC = datetime.UTC

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "a_boolean": (pa.bool_(), [True, False, None]),
    "a_tinyint": (pa.int8(), [-128, 127, None]),
    "a_smallint": (pa.int16(), [-(2**15), 2**15 - 1, None]),
    "an_int": (pa.int32(), [-(2**31), 2**31 - 1, None]),
    "a_bigint": (pa.int64(), [-(2**63), 2**63 - 1, None]),
    "a_float": (pa.float32(), [-0.0, float("nan"), None]),
    "a_double": (pa.float64(), [5e-324, float("-inf"), None]),
    "a_decimal": (pa.decimal128(38, 10), [D("-9999999999999999999999999999.9999999999"), D("0E-10"), None]),
    "a_small_decimal": (pa.decimal128(5, 2), [D("1.50"), D("-999.99"), None]),
    "a_string": (pa.string(), ["", "żółw 🐢 \x00 'quoted'", None]),
    "a_binary": (pa.binary(), [b"", b"\x00\xff\xfe", None]),
    "a_date": (pa.date32(), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None]),
    "an_instant": (
        TIMESTAMP,
        [
            datetime.datetime(2026, 10, 25, 0, 30, 0, 1, tzinfo=UTC),
            datetime.datetime(1899, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
            None,
        ],
    ),
    "a_wall_clock": (
        pa.timestamp("us"),
        [datetime.datetime(2026, 3, 29, 2, 30, 0, 1), datetime.datetime(1900, 1, 1), None],
    ),
    "an_array": (pa.list_(pa.string()), [[], ["x", None, ""], None]),
    "an_array_of_arrays": (pa.list_(pa.list_(pa.int32())), [[[1], [], None], [[2, None]], None]),
    "a_map": (pa.map_(pa.string(), pa.decimal128(10, 2)), [[], [("k", D("1.00")), ("l", None)], None]),
    "a_struct": (
        pa.struct(
            [("x", pa.int64()), ("y", pa.struct([("when", TIMESTAMP), ("tags", pa.list_(pa.date32()))]))]
        ),
        [
            {"x": None, "y": None},
            {"x": 1, "y": {"when": datetime.datetime(2026, 1, 1, tzinfo=UTC), "tags": [None]}},
            None,
        ],
    ),
}


def valued() -> pa.Table:
    """Three rows with a value of every type, the last one all NULL."""
    rows = zip(
        range(3), [i * SECOND for i in range(3)], *(values for _, values in VALUES.values()), strict=True
    )
    return events(rows, *VALUES, types=tuple(type_ for type_, _ in VALUES.values()))


TEXT = "SELECT A.*, B.id AS other FROM valued AS A, plain AS B WINDOW = 0 SECONDS WHERE A.id = B.id"


def check(actual: pa.Table) -> None:
    rows = [(*row, row[0]) for row in rows_of(valued())]
    assert actual.column_names == ["id", "ts", *VALUES, "other"]
    for name, (type_, _) in VALUES.items():
        if not pa.types.is_nested(type_) and type_ != TIMESTAMP:
            assert actual.schema.field(name).type == type_, name
    assert Counter(rows_of(actual)) == Counter(rows)


@pytest.mark.parametrize(
    "zone", tiers(["UTC", "America/New_York", "Asia/Kathmandu"], quick=["Asia/Kathmandu"])
)
def test_values_pass_unharmed(session: Any, zone: str) -> None:
    session.spark.conf.set("spark.sql.session.timeZone", zone)
    sources = [Source("valued", [valued()]), Source("plain", [events([(i, i * SECOND) for i in range(3)])])]
    check(run_static(session, TEXT, sources))


@pytest.mark.parametrize("zone", ["America/New_York"])
def test_values_pass_unharmed_through_state(session: Any, zone: str) -> None:
    session.spark.conf.set("spark.sql.session.timeZone", zone)
    first = {"A": valued(), "B": events([])}
    second = {"A": valued().slice(0, 0), "B": events([(i, i * SECOND) for i in range(3)])}
    batches = [first, *deal(second, 2)]
    sources = [
        Source("valued", [batch["A"] for batch in batches]),
        Source("plain", [batch["B"] for batch in batches], delay="1 hour"),
    ]
    run = run_batches(session, TEXT, sources, restarts=[2])
    check(pa.concat_tables(run.batches))


def test_event_time_does_not_depend_on_the_session_time_zone(session: Any) -> None:
    """An hour that a change of summer time skips or repeats counts as it does in UTC."""
    for zone in ("UTC", "Europe/Berlin", "America/St_Johns"):
        session.spark.conf.set("spark.sql.session.timeZone", zone)
        start = datetime.datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
        times = [start + datetime.timedelta(hours=hour) for hour in range(4)]
        table = pa.table({"id": list(range(4)), "ts": pa.array(times, TIMESTAMP)})
        text = """SELECT A.id AS a, B.id AS b, MATCH_TIME() AS last FROM a AS A, b AS B
                  DWINDOW (A, B) = 1 HOUR WHERE A.id <> B.id"""
        result = run_static(session, text, [Source("a", [table]), Source("b", [table])])
        assert Counter(rows_of(result)) == Counter((i, i + 1, times[i + 1]) for i in range(3))


WALL_CLOCK = """SELECT A.id AS a, B.id AS b, MATCH_TIME() AS last, MATCH_START() AS first,
                       MATCH_SPAN() AS span
                FROM a AS A, b AS B DWINDOW (A, B) = 1 HOUR WHERE A.id < B.id"""


def test_wall_clock_event_time(session: Any) -> None:
    session.spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    # 02:30 does not exist in Berlin on this day, as a wall-clock time it does.
    times = [datetime.datetime(2026, 3, 29, hour, 30) for hour in (1, 2, 3)]
    table = pa.table({"id": [1, 2, 3], "ts": pa.array(times, pa.timestamp("us"))})
    hour = datetime.timedelta(hours=1)
    wanted = Counter((i + 1, i + 2, times[i + 1], times[i], hour) for i in range(2))
    result = run_static(session, WALL_CLOCK, [Source("a", [table]), Source("b", [table])])
    assert Counter(rows_of(result)) == wanted
    assert result.schema.field("last").type == pa.timestamp("us")
    batches = [table.slice(i, 1) for i in range(3)]
    assert run_batches(session, WALL_CLOCK, [Source("a", batches), Source("b", batches)]).bag == wanted


WINDOW = "WINDOW (A, B) = 1 SECOND"


def dated(session: Any, name: str, columns: str) -> None:
    session.spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT {columns}, TIMESTAMP '2024-01-01' AS ts"
    )


def test_intervals_of_years_and_months(session: Any) -> None:
    """Spark gives them to Python as no type of Arrow: they travel as their months."""
    intervals = "INTERVAL '1-2' YEAR TO MONTH AS x, INTERVAL '-3' YEAR AS y, INTERVAL '5' MONTH AS z"
    dated(session, "spans", f"{intervals}, CAST(NULL AS INTERVAL MONTH) AS n")
    columns = "A.x, B.y, A.z, B.n, A.x + B.z AS both"
    joined, plain = (
        session.sql(f"SELECT {columns} FROM spans A, spans B {window} WHERE A.x = B.x AND A.y < B.z")
        for window in (WINDOW, "")
    )
    assert joined.schema.simpleString() == plain.schema.simpleString()
    shown = [each.selectExpr("CAST(struct(*) AS STRING)").collect() for each in (joined, plain)]
    assert shown[0] == shown[1] != []


@pytest.mark.parametrize("value", ["make_interval(1)", "array(INTERVAL '1' MONTH)"])
def test_what_does_not_travel_is_refused_at_its_place(session: Any, value: str) -> None:
    dated(session, "spans", f"{value} AS x, 1 AS k")
    with pytest.raises(WJoinError) as told:
        session.sql(f"SELECT A.x FROM spans A, spans B {WINDOW} WHERE A.k = B.k")
    assert (told.value.code, told.value.span) == ("WJ218", Span(16, 23))
    assert session.sql(f"SELECT A.k FROM spans A, spans B {WINDOW} WHERE A.k = B.k").count() == 1


def test_constants_are_conditions(session: Any) -> None:
    dated(session, "ones", "1 AS k")
    for condition, count in {"true": 1, "(true)": 1, "A.k = B.k AND NULL": 0, "NULL": 0, "false": 0}.items():
        for text in (
            f"FROM ones A, ones B {WINDOW} WHERE {condition}",
            f"FROM ones A JOIN ones B ON {condition} {WINDOW}",
        ):
            assert session.sql(f"SELECT A.k {text}").count() == count, text
