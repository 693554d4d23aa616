"""Every row of the window table of the language, with rows on and next to every bound."""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from tests.kit.check import assert_batch, assert_stream, deal, patient
from tests.kit.expressions import Field, equal
from tests.kit.oracle import brute_force, combinations
from tests.kit.statement import (
    Between,
    Both,
    Condition,
    Either,
    Pair,
    Path,
    Statement,
    Style,
    Trailing,
    Within,
)
from tests.kit.tables import SECOND, events, statement
from tests.properties.theta import assert_as_duckdb, planned
from tests.tiers import tiers

FIVE = 5 * SECOND

BOUNDARY = {
    "A": events([(1, 100 * SECOND)]),
    "B": events(
        [
            (1, 95 * SECOND - 1),
            (2, 95 * SECOND),
            (3, 100 * SECOND),
            (4, 105 * SECOND),
            (5, 105 * SECOND + 1),
        ]
    ),
}
"""A at 100 s; B just outside, on and inside the bounds of 5 s before and after."""

TWO_STREAMS: dict[str, tuple[Condition, set[int]]] = {
    "form 1": (Within(FIVE), {2, 3, 4}),
    "form 1, width zero": (Within(0), {3}),
    "pair": (Pair("A", "B", FIVE), {2, 3, 4}),
    "pair, other order": (Pair("B", "A", FIVE), {2, 3, 4}),
    "pair, one microsecond wider": (Pair("A", "B", FIVE + 1), {1, 2, 3, 4, 5}),
    "directed": (Pair("A", "B", FIVE, directed=True), {3, 4}),
    "directed back": (Pair("B", "A", FIVE, directed=True), {2, 3}),
    "asymmetric": (Between("A", "B", -FIVE, 3 * SECOND), {2, 3}),
    "asymmetric, ahead": (Between("A", "B", 1, FIVE), {4}),
    "asymmetric, behind": (Between("A", "B", -FIVE - 1, -FIVE), {1, 2}),
    "asymmetric, other order": (Between("B", "A", 1, FIVE), {2}),
    "per stream": (Trailing("A", FIVE), {1, 2, 3, 4}),
    "per stream, both": (Both((Trailing("A", FIVE), Trailing("B", 0))), {3, 4}),
    "path": (Path(("A", "B"), (FIVE,)), {3, 4}),
    "path, both directions": (Path(("A", "B"), (FIVE,), bidirectional=True), {2, 3, 4}),
    "or of overlapping terms": (Either((Within(FIVE), Pair("A", "B", FIVE, directed=True))), {2, 3, 4}),
    "or of separate terms": (
        Either((Between("A", "B", -FIVE, -FIVE), Between("A", "B", FIVE, FIVE + 1))),
        {2, 4, 5},
    ),
    "and of terms": (Both((Pair("A", "B", FIVE), Between("A", "B", 0, FIVE + 1))), {3, 4}),
}


def assert_local(case: Statement, tables: Mapping[str, pa.Table]) -> None:
    """Assert that a join in this process has what brute force finds, at once and cut into micro-batches."""
    case, least = patient(case), min(table.num_rows for table in tables.values())
    for workers, batches in ((1, [tables]), (3, deal(tables, min(3, least)))):
        assert assert_as_duckdb(case, planned(case), batches, workers, oracle=brute_force)


@pytest.mark.parametrize("name", TWO_STREAMS)
def test_bounds_are_inclusive_in_this_process(name: str) -> None:
    window, wanted = TWO_STREAMS[name]
    case = statement("AB", window)
    assert {b + 1 for _, b in combinations(case, BOUNDARY)} == wanted
    assert_local(case, BOUNDARY)


@pytest.mark.parametrize(
    "name", tiers(TWO_STREAMS, quick=["per stream, both"], long=["path", "or of separate terms"])
)
@pytest.mark.thorough
def test_bounds_are_inclusive_to_the_microsecond(session: Any, name: str) -> None:
    window, wanted = TWO_STREAMS[name]
    case = statement("AB", window)
    assert assert_batch(session, case, BOUNDARY) == Counter((1, b) for b in wanted)


INTEGRAL = {
    "A": events([(1, 100)], time=pa.int64()),
    "B": events([(i, 92 + 2 * i) for i in range(9)], time=pa.int32()),
}


@pytest.mark.parametrize(
    ("window", "wanted"),
    [
        pytest.param(Within(4), {2, 3, 4, 5, 6}, marks=pytest.mark.long),
        pytest.param(Pair("A", "B", 4, directed=True), {4, 5, 6}, marks=pytest.mark.long),
        (Between("A", "B", -3, 1), {3, 4}),
        pytest.param(Trailing("A", 0), {0, 1, 2, 3, 4}, marks=pytest.mark.long),
    ],
    ids=["form 1", "directed", "asymmetric", "per stream"],
)
def test_integral_event_time_counts_in_its_own_unit(
    session: Any, window: Condition, wanted: set[int]
) -> None:
    case = statement("AB", window, match=("time", "start", "span"), integral=True)
    bag = assert_batch(session, case, INTEGRAL)
    assert {row[1] for row in bag} == wanted


def grid(aliases: str, count: int = 9, step: int = 2 * SECOND) -> dict[str, pa.Table]:
    """Rows of several streams on one grid of times, with two keys; some at the same instant."""
    return {
        alias: events(
            [(100 * place + i, (i * step + place * SECOND) // (1 + place % 2), i % 2) for i in range(count)],
            "k",
        )
        for place, alias in enumerate(aliases)
    }


def chain(aliases: str) -> tuple[Any, ...]:
    """``A.k = B.k AND B.k = C.k …``."""
    return tuple(equal(Field(a, "k"), Field(b, "k")) for a, b in itertools.pairwise(aliases))


MANY_STREAMS: dict[str, tuple[str, Condition]] = {
    "form 1 of three": ("ABC", Within(FIVE)),
    "form 2": (
        "ABC",
        Both((Pair("A", "B", 2 * SECOND), Pair("B", "C", 3 * SECOND), Pair("A", "C", 4 * SECOND))),
    ),
    "form 3": ("ABC", Both((Pair("A", "B", 2 * SECOND), Pair("B", "C", 3 * SECOND)))),
    "form 3 with a pair that a path tightens": (
        "ABC",
        Both((Pair("A", "B", SECOND), Pair("B", "C", 4 * SECOND), Pair("A", "C", 60 * SECOND))),
    ),
    "figure 11": (
        "ABCD",
        Both(
            (
                Pair("A", "B", 2 * SECOND),
                Pair("B", "C", 2 * SECOND),
                Pair("C", "D", 2 * SECOND),
                Pair("A", "D", 3 * SECOND),
            )
        ),
    ),
    "path": ("ABC", Path(("A", "B", "C"), (4 * SECOND, 2 * SECOND))),
    "path back": ("ABC", Path(("C", "A", "B"), (4 * SECOND, 2 * SECOND))),
    "path in both directions": ("ABC", Path(("A", "B", "C"), (4 * SECOND, 2 * SECOND), bidirectional=True)),
    "path and a pair": (
        "ABCD",
        Both((Path(("A", "B", "C"), (4 * SECOND, 4 * SECOND), True), Pair("C", "D", SECOND))),
    ),
    "per stream for all": (
        "ABC",
        Both((Trailing("A", 4 * SECOND), Trailing("B", 2 * SECOND), Trailing("C", 6 * SECOND))),
    ),
    "per stream and a pair": ("ABC", Both((Trailing("A", 4 * SECOND), Within(6 * SECOND)))),
    "or of conjunctions": (
        "ABC",
        Either(
            (
                Both((Pair("A", "B", SECOND, True), Pair("B", "C", 8 * SECOND, True))),
                Both((Pair("B", "A", 8 * SECOND, True), Pair("B", "C", SECOND))),
            )
        ),
    ),
    "or inside and": (
        "ABC",
        Both(
            (
                Pair("A", "B", 4 * SECOND),
                Either((Pair("B", "C", SECOND, True), Pair("C", "A", 2 * SECOND, True))),
            )
        ),
    ),
    "asymmetric of three": (
        "ABC",
        Both((Between("A", "B", -3 * SECOND, SECOND), Between("C", "B", SECOND, 4 * SECOND))),
    ),
}


@pytest.mark.parametrize("name", MANY_STREAMS)
def test_forms_over_many_streams_in_this_process(name: str) -> None:
    aliases, window = MANY_STREAMS[name]
    case = statement(aliases, window, *chain(aliases))
    tables = grid(aliases, 9 if len(aliases) == 3 else 7)
    assert combinations(case, tables) == brute_force(case, tables)
    assert_local(case, tables)


@pytest.mark.parametrize(
    "name", tiers(MANY_STREAMS, quick=["or of conjunctions"], long=["figure 11", "path and a pair"])
)
@pytest.mark.thorough
def test_forms_over_many_streams(session: Any, name: str) -> None:
    aliases, window = MANY_STREAMS[name]
    case = statement(aliases, window, *chain(aliases))
    tables = grid(aliases, 9 if len(aliases) == 3 else 7)
    assert assert_batch(session, case, tables)


@pytest.mark.parametrize(
    "name",
    tiers(
        ["figure 11", "form 3", "path in both directions", "or inside and"],
        long=["figure 11"],
        thorough=["form 3", "path in both directions", "or inside and"],
    ),
)
def test_forms_over_many_streams_on_a_stream(session: Any, name: str) -> None:
    aliases, window = MANY_STREAMS[name]
    case = patient(statement(aliases, window, *chain(aliases)))
    run = assert_stream(session, case, deal(grid(aliases, 7), 3))
    assert run.bag


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    tiers(
        ["per stream", "directed", "asymmetric, ahead", "or of separate terms"],
        thorough=["directed", "asymmetric, ahead", "or of separate terms"],
    ),
)
def test_bounds_on_a_stream(session: Any, name: str) -> None:
    window, wanted = TWO_STREAMS[name]
    run = assert_stream(session, patient(statement("AB", window)), deal(BOUNDARY, 2))
    assert run.bag == Counter((1, b) for b in wanted)


@pytest.mark.parametrize(
    "style",
    [
        Style(lower_case=True),
        Style(quoted=True),
        Style(window_last=True),
        Style(joins=True),
        Style(joins=True, window_last=True, duration="fraction"),
        Style(duration="interval"),
        Style(duration="quoted", lower_case=True),
    ],
    ids=str,
)
@pytest.mark.long
def test_spelling_does_not_change_the_result(session: Any, style: Style) -> None:
    window = Both((Between("A", "B", -3 * SECOND, 90 * SECOND), Path(("B", "C"), (6_001_500,))))
    case = statement("ABC", window, *chain("ABC"))
    assert assert_batch(session, case, grid("ABC"), style)


@pytest.mark.long
def test_equal_rows_are_different_rows(session: Any) -> None:
    tables = {
        "A": events([(1, 0), (1, 0)]),
        "B": events([(2, 0), (2, 0), (2, 0)]),
    }
    case = statement("AB", Within(0))
    assert assert_batch(session, case, tables) == Counter({(1, 2): 6})
    run = assert_stream(session, patient(case), deal(tables, 2))
    assert run.bag == Counter({(1, 2): 6})


@pytest.mark.long
def test_a_disjunction_emits_each_combination_once(session: Any) -> None:
    window = Either((Within(FIVE), Within(2 * FIVE), Trailing("A", 3 * FIVE)))
    tables = {"A": events([(1, 0), (1, 0)]), "B": events([(2, SECOND)])}
    assert assert_batch(session, statement("AB", window), tables) == Counter({(1, 2): 2})
    assert assert_stream(session, patient(statement("AB", window)), deal(tables, 2)).bag == Counter(
        {(1, 2): 2}
    )


def test_a_stream_may_appear_twice(session: Any) -> None:
    case = statement("AB", Pair("A", "B", 2 * SECOND, directed=True), *chain("AB"))
    case = dataclasses.replace(
        case, inputs=tuple(dataclasses.replace(item, relation="same") for item in case.inputs)
    )
    table = grid("A")["A"]
    assert assert_batch(session, case, {"A": table, "B": table})


@pytest.mark.long
def test_empty_inputs_give_an_empty_result_with_all_columns(session: Any) -> None:
    empty = events([], "k")
    case = statement("AB", Within(FIVE), *chain("AB"), match=("time", "start", "span"))
    assert assert_batch(session, case, {"A": empty, "B": empty}) == Counter()
