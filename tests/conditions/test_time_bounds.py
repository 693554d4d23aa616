"""What conditions between event times say, by brute force: no pair that satisfies one is left out."""

from collections.abc import Callable
from typing import NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from sqlglot import exp

from tests.tiers import examples
from wjoin.grammar.spans import Span
from wjoin.planner.catalog import Column
from wjoin.planner.conditions.meaning import Meaning
from wjoin.planner.conditions.time_bounds import TimeBound, TimeBounds, time_bounds
from wjoin.planner.conditions.time_values import EventClock
from wjoin.planner.conditions.time_zones import ANY_ZONE, zone_slack
from wjoin.planner.plan.physical import TimeKind
from wjoin.planner.text.pieces import function_name, read_condition
from wjoin.planner.text.scope import StreamColumn

TIMES = [StreamColumn(stream, Column("ts", "timestamp")) for stream in range(3)]
UNITS = {"MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000}
OPERATORS: dict[str, Callable[[int, int], bool]] = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "=": lambda left, right: left == right,
}


def read(
    text: str, zone: str = "UTC", kind: TimeKind = TimeKind.TIMESTAMP, *, wraps: bool = False
) -> TimeBounds | None:
    """Return what a condition over the times ts of streams a, b and c says."""
    piece = read_condition(text, Span(0, len(text)))

    def column(node: exp.Column) -> StreamColumn | None:
        stream, name = (part.name for part in node.parts)
        return StreamColumn("abc".index(stream), Column(name, "timestamp"))

    meaning = Meaning(column, lambda call: function_name(text, piece, call), {"w": 7})
    return time_bounds(piece.tree, meaning, EventClock(TIMES, kind, zone, wraps))


class Drawn(NamedTuple):
    """A condition in words, and whether it is so of the microseconds of a and b."""

    text: str
    holds: Callable[[int, int], bool]


def _cut(value: int, unit: int) -> int:
    return value // unit if value >= 0 else -(-value // unit)


small = st.integers(-4, 4)


@st.composite
def atoms(draw: st.DrawFn) -> Drawn:
    unit = draw(st.sampled_from(sorted(UNITS)))
    size, n, operator = UNITS[unit], draw(small), draw(st.sampled_from(sorted(OPERATORS)))
    test = OPERATORS[operator]
    match draw(st.integers(0, 8)):
        case 0:
            return Drawn(f"a.ts {operator} b.ts + INTERVAL {n} {unit}", lambda a, b: test(a, b + n * size))
        case 1:
            return Drawn(
                f"timestampdiff({unit}, a.ts, b.ts) {operator} {n}", lambda a, b: test(_cut(b - a, size), n)
            )
        case 2:
            ends = (n, n + abs(draw(small)))
            words = f"timestampdiff({unit}, b.ts, a.ts) BETWEEN {ends[0]} AND {ends[1]}"
            return Drawn(words, lambda a, b: ends[0] <= _cut(a - b, size) <= ends[1])
        case 3:
            return Drawn(
                f"abs(timestampdiff({unit}, a.ts, b.ts)) < {abs(n)}",
                lambda a, b: _cut(abs(b - a), size) < abs(n),
            )
        case 4:
            return Drawn(
                f"unix_seconds(b.ts) {operator} unix_seconds(a.ts) + {n}",
                lambda a, b: test(b // 1_000_000, a // 1_000_000 + n),
            )
        case 5:
            return Drawn(
                f"unix_millis(b.ts - INTERVAL {n} {unit}) - unix_millis(a.ts) {operator} 2",
                lambda a, b: test((b - n * size) // 1_000 - a // 1_000, 2),
            )
        case 6:
            return Drawn(
                f"date_trunc('{unit}', a.ts) {operator} date_trunc('{unit}', b.ts) + INTERVAL {n} {unit}",
                lambda a, b: test(a // size, b // size + n),
            )
        case 7:
            words = f"b.ts {operator} date_trunc('{unit}', a.ts - INTERVAL {n} {unit})"
            return Drawn(words, lambda a, b: test(b, (a // size - n) * size))
    return Drawn(f"b.ts - a.ts {operator} INTERVAL {n} {unit}", lambda a, b: test(b - a, n * size))


def _joined(operator: str, parts: list[Drawn]) -> Drawn:
    text = f" {operator} ".join(f"({each.text})" for each in parts)
    every = all if operator == "AND" else any
    return Drawn(text, lambda a, b: every(each.holds(a, b) for each in parts))


conditions = st.recursive(
    atoms(),
    lambda inner: st.one_of(
        st.builds(_joined, st.sampled_from(["AND", "OR"]), st.lists(inner, min_size=2, max_size=3)),
        inner.map(lambda each: Drawn(f"NOT ({each.text})", lambda a, b: not each.holds(a, b))),
    ),
    max_leaves=4,
)


def within(bounds: TimeBounds, times: tuple[int, int]) -> bool:
    return any(
        all(times[each.target] - times[each.source] <= each.bound for each in own)
        for own in bounds.alternatives
    )


def near(bounds: TimeBounds, draw: Callable[[st.SearchStrategy[int]], int]) -> int:
    edges = [each.bound * (1 if each.source == 0 else -1) for own in bounds.alternatives for each in own]
    return draw(st.sampled_from(edges)) + draw(st.integers(-2, 2))


@given(conditions, st.integers(-5_000_000, 5_000_000), st.data())
@settings(max_examples=examples(200))
def test_no_pair_is_left_out(drawn: Drawn, first: int, data: st.DataObject) -> None:
    bounds = read(drawn.text)
    if bounds is None:
        return
    for _ in range(8):
        pair = (first, first + near(bounds, data.draw))
        if drawn.holds(*pair):
            assert within(bounds, pair)
        elif bounds.exact:
            assert not within(bounds, pair)


@given(atoms(), st.integers(-1_500_000, 1_500_000))
def test_bounds_are_as_tight_as_all_rests_allow(drawn: Drawn, first: int) -> None:
    bounds = read(drawn.text)
    if bounds is None:
        return
    for each in bounds.hull:
        # Some phase of both clocks reaches the bound, unless the other side forbids it.
        signed = each.bound if each.source == 0 else -each.bound
        phases = [first, 0, 1, 999, 999_999, 1_000, *(UNITS[unit] - 1 for unit in UNITS)]
        phases += [phase - signed for phase in phases]
        if len(bounds.hull) == 1:
            assert any(drawn.holds(phase, phase + signed) for phase in phases)


SAID = {
    "b.ts BETWEEN a.ts AND a.ts + INTERVAL 10 MINUTES": ([(0, 1, 600_000_000), (1, 0, 0)], True),
    "a.ts < b.ts": ([(1, 0, -1)], True),
    "a.ts BETWEEN b.ts AND c.ts": ([(0, 1, 0), (2, 0, 0)], True),
    "abs(unix_micros(a.ts) - unix_micros(b.ts)) <= :w": ([(1, 0, 7), (0, 1, 7)], True),
    "timestampdiff(SECOND, a.ts, b.ts) <= 0": ([(0, 1, 999_999)], True),
    "timestampdiff(SECOND, a.ts, b.ts) <= -1": ([(0, 1, -1_000_000)], True),
    "timestampdiff(SECOND, a.ts, b.ts) >= 1": ([(1, 0, -1_000_000)], True),
    "unix_seconds(b.ts) - unix_seconds(a.ts) < 5": ([(0, 1, 4_999_999)], False),
    "date_trunc('hour', a.ts) = date_trunc('HOUR', b.ts)": (
        [(0, 1, 3_599_999_999), (1, 0, 3_599_999_999)],
        False,
    ),
    "b.ts >= date_trunc('minute', a.ts)": ([(1, 0, 59_999_999)], False),
    "date_trunc('no such unit', a.ts) = date_trunc('hour', b.ts)": (None, False),
    "b.ts - a.ts < INTERVAL '1' DAY": ([(0, 1, 86_399_999_999)], True),
    "b.ts <= a.ts + INTERVAL '1 02:00:00' DAY TO SECOND": ([(0, 1, 93_600_000_000)], True),
    "b.ts <= a.ts + INTERVAL 5 SECONDS AND b.v = 3": ([(0, 1, 5_000_000)], False),
    "CAST(b.ts AS LONG) - bigint(a.ts) <= 1": (None, False),
    "b.ts <= a.ts + INTERVAL 1 MONTH": (None, False),
    "b.ts <= a.ts OR b.v = 3": (None, False),
    "a.ts > TIMESTAMP '2024-01-01 00:00:00'": (None, False),
    "b.ts - a.ts > a.ts - b.ts": (None, False),
    "b.v <= a.v": (None, False),
}


@pytest.mark.parametrize("text", SAID)
def test_what_conditions_say(text: str) -> None:
    bounds, exact = SAID[text]
    found = read(text)
    if bounds is None:
        assert found is None
        return
    assert found is not None
    assert (set(found.alternatives[0]), found.exact) == ({TimeBound(*each) for each in bounds}, exact)


def test_where_clocks_are_put_forward_bounds_are_wider_and_the_condition_stays() -> None:
    text, slack = "timestampdiff(SECOND, a.ts, b.ts) <= 0", zone_slack("Europe/Berlin")
    assert read(text, "Europe/Berlin") == TimeBounds(((TimeBound(0, 1, 999_999 + slack),),), exact=False)
    assert read("b.ts <= a.ts + INTERVAL 1 HOUR", "Europe/Berlin") == read("b.ts <= a.ts + INTERVAL 1 HOUR")
    day = read("b.ts <= a.ts + INTERVAL 24 HOURS", "Europe/Berlin")
    assert day == TimeBounds(((TimeBound(0, 1, 86_400_000_000 + slack),),), exact=False)
    far = read("b.ts - a.ts < INTERVAL 30 DAYS", "Europe/Berlin")
    assert far is not None
    assert far.hull[0].bound == 30 * 86_400_000_000 - 1 + slack + ANY_ZONE
    assert zone_slack("no such zone") > zone_slack("Pacific/Apia") > slack > 0


def test_of_many_alternatives_what_all_imply_is_taken() -> None:
    text = " OR ".join(f"(b.ts >= a.ts AND b.ts <= a.ts + INTERVAL {n} SECONDS)" for n in range(1, 20))
    found = read(text)
    assert found is not None and not found.exact
    assert set(*found.alternatives) == {TimeBound(0, 1, 19_000_000), TimeBound(1, 0, 0)}


def test_whole_numbers_and_sums_of_them_that_wrap_around() -> None:
    kind = TimeKind.INTEGRAL
    assert read("b.ts <= a.ts + 5", kind=kind) == TimeBounds(((TimeBound(0, 1, 5),),), exact=True)
    assert read("(b.ts - a.ts) DIV 10 <= 2", kind=kind) == TimeBounds(((TimeBound(0, 1, 29),),), exact=True)
    assert read("b.ts <= a.ts + 5", kind=kind, wraps=True) is None
    assert read("b.ts < a.ts", kind=kind, wraps=True) == TimeBounds(((TimeBound(0, 1, -1),),), exact=True)
    assert read("b.ts <= a.ts + INTERVAL 5 SECONDS", kind=kind) is None


@given(st.integers(-20, 20), st.integers(1, 7), st.integers(-30, 30), st.sampled_from(sorted(OPERATORS)))
def test_whole_numbers(bound: int, by: int, apart: int, operator: str) -> None:
    test = OPERATORS[operator]
    for text, value in (
        (f"b.ts - a.ts {operator} {bound}", apart),
        (f"(b.ts - a.ts) DIV {by} {operator} {bound}", _cut(apart, by)),
        (f"(b.ts - a.ts) * {by} {operator} {bound}", apart * by),
        (f"(b.ts - a.ts) / {by} {operator} {bound + 0.5}", apart / by - 0.5),
    ):
        found = read(text, kind=TimeKind.INTEGRAL)
        holds = test(value, bound)
        if found is not None and holds:
            assert within(found, (100, 100 + apart))
        elif found is not None and found.exact:
            assert not within(found, (100, 100 + apart))
