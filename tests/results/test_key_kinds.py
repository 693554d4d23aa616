"""Equality on every kind of key, and every shape of the equality graph."""

import dataclasses
import itertools
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from tests.kit.check import assert_batch, assert_stream, deal, patient
from tests.kit.expressions import Call, Compare, Expression, Field, Literal, equal
from tests.kit.oracle import brute_force, combinations
from tests.kit.statement import Statement, Within, columns
from tests.kit.strategies import KEY_KINDS, KeyKind
from tests.kit.tables import SECOND, events, statement
from tests.tiers import tiers

pytestmark = pytest.mark.thorough


def keyed(kind: KeyKind, aliases: str) -> dict[str, pa.Table]:
    """Every value of a kind and NULL, on every stream in the type that is its turn."""
    values = [*kind.values, None, kind.values[0]]
    return {
        alias: events(
            [(10 * place + i, i * SECOND, value) for i, value in enumerate(values)],
            "k",
            types=(kind.types[place % len(kind.types)],),
        )
        for place, alias in enumerate(aliases)
    }


def on_key(kind: KeyKind, aliases: str) -> Statement:
    """A join on one key of every stream that also returns the key."""
    sides: list[Expression] = [Field(alias, "k") for alias in aliases]
    if kind.function:
        sides = [Call(kind.function, (side,)) for side in sides]
    where = [equal(a, b) for a, b in itertools.pairwise(sides)]
    case = statement(aliases, Within(10 * SECOND), *where)
    keys = tuple(output for alias in aliases for output in columns(alias, "k"))
    # Other columns of a timestamp type would make the event time ambiguous; the harness names it.
    return dataclasses.replace(case, select=case.select + keys)


@pytest.mark.parametrize(
    "kind",
    tiers(
        KEY_KINDS, long=[kind for kind in KEY_KINDS if kind.name in ("array", "decimal", "double", "string")]
    ),
    ids=lambda kind: kind.name,
)
def test_key_kinds(session: Any, kind: KeyKind) -> None:
    tables = keyed(kind, "AB")
    case = on_key(kind, "AB")
    assert combinations(case, tables) == brute_force(case, tables)
    assert assert_batch(session, case, tables)


@pytest.mark.parametrize(
    "name",
    tiers(["integers", "floats", "decimals", "negative decimals", "upper", "array"], long=["integers"]),
)
def test_key_kinds_on_a_stream(session: Any, name: str) -> None:
    kind = next(kind for kind in KEY_KINDS if kind.name == name)
    assert assert_stream(session, patient(on_key(kind, "ABC")), deal(keyed(kind, "ABC"), 2)).bag


@pytest.mark.long
def test_nan_equals_nan_and_zero_has_no_sign(session: Any) -> None:
    nan = float("nan")
    tables = {
        "A": events([(1, 0, nan), (2, 0, 0.0), (3, 0, None)], "k", types=(pa.float64(),)),
        "B": events([(1, 0, nan), (2, 0, -0.0), (3, 0, None)], "k", types=(pa.float64(),)),
    }
    case = statement("AB", Within(0), equal(Field("A", "k"), Field("B", "k")))
    assert assert_batch(session, case, tables) == Counter([(1, 1), (2, 2)])


@pytest.mark.long
def test_null_keys_match_nothing_in_any_part(session: Any) -> None:
    rows = [(1, 0, 1, 1), (2, 0, 1, None), (3, 0, None, 1), (4, 0, None, None)]
    tables = {"A": events(rows, "x", "y"), "B": events(rows, "x", "y")}
    both = [equal(Field("A", name), Field("B", name)) for name in "xy"]
    assert assert_batch(session, statement("AB", Within(0), *both), tables) == Counter([(1, 1)])


def three_keys(aliases: str, count: int = 8) -> dict[str, pa.Table]:
    """Rows with three small keys x, y and z, of different cycles on each stream."""
    return {
        alias: events(
            [
                (100 * place + i, i * SECOND, (i + place) % 2, i % 3, f"key {(i * 5 + place) % 3}")
                for i in range(count)
            ],
            "x",
            "y",
            "z",
            types=(pa.int64(), pa.int32(), pa.string()),
        )
        for place, alias in enumerate(aliases)
    }


def keys(*pairs: str) -> tuple[Compare, ...]:
    """``keys("AxBy")`` is ``A.x = B.y``."""
    return tuple(equal(Field(a, x), Field(b, y)) for a, x, b, y in pairs)


SHAPES: dict[str, tuple[str, tuple[Compare, ...]]] = {
    "composite": ("AB", keys("AxBx", "AzBz")),
    "one class written as a star": ("ABC", keys("AxBx", "AxCx")),
    "two classes, chain": ("ABC", keys("AxBx", "BzCz")),
    "two classes, star": ("ABC", keys("AxBx", "AzCz")),
    "three classes, triangle": ("ABC", keys("AxBx", "ByCy", "CzAz")),
    "columns of different names": ("ABC", keys("AxBy", "ByCx")),
    "a class that a stream has twice": ("AB", keys("AxBx", "AxBy")),
    "chain of four": ("ABCD", keys("AxBx", "ByCy", "CzDz")),
    "two pairs, no link": ("ABCD", keys("AxBx", "CzDz")),
    "some streams without a key": ("ABC", keys("AzBz")),
    "composite and a chain": ("ABC", keys("AxBx", "AyBy", "BzCz")),
    "no key": ("ABC", ()),
}


@pytest.mark.parametrize("name", tiers(SHAPES, long=["chain of four"]))
def test_shapes_of_the_equality_graph(session: Any, name: str) -> None:
    aliases, where = SHAPES[name]
    window = Within(4 * SECOND)
    assert assert_batch(session, statement(aliases, window, *where), three_keys(aliases, 12))


@pytest.mark.parametrize(
    "name",
    tiers(
        ["two classes, chain", "three classes, triangle", "two pairs, no link", "no key"],
        long=["three classes, triangle"],
    ),
)
def test_shapes_on_a_stream(session: Any, name: str) -> None:
    aliases, where = SHAPES[name]
    case = patient(statement(aliases, Within(4 * SECOND), *where, match=("time",)))
    assert assert_stream(session, case, deal(three_keys(aliases, 6), 3)).bag


@pytest.mark.long
def test_keys_may_be_expressions_of_one_stream(session: Any) -> None:
    tables = {
        "A": events([(i, 0, i, f"n{i}") for i in range(4)], "x", "name", types=(pa.int32(), pa.string())),
        "B": events([(i, 0, i, f"N{i}") for i in range(4)], "x", "name", types=(pa.int64(), pa.string())),
    }
    plus = equal(Call("+", (Field("A", "x"), Literal(1))), Field("B", "x"))
    assert assert_batch(session, statement("AB", Within(0), plus), tables) == Counter(
        [(0, 1), (1, 2), (2, 3)]
    )
    names = equal(Call("upper", (Field("A", "name"),)), Field("B", "name"))
    assert assert_batch(session, statement("AB", Within(0), plus, names), tables) == Counter()


def test_residual_and_filters_keep_sparks_meaning(session: Any) -> None:
    rows = [(i, i * SECOND, i % 2, None if i == 3 else i) for i in range(6)]
    tables = {alias: events(rows, "k", "v", types=(pa.int64(), pa.int32())) for alias in "ABC"}
    where = (
        *(equal(Field(a, "k"), Field(b, "k")) for a, b in ("AB", "BC")),
        Compare(Field("A", "v"), "<", Field("B", "v")),
        Compare(Call("+", (Field("A", "v"), Field("B", "v"))), "<>", Field("C", "v")),
        Compare(Field("C", "v"), ">=", Literal(1)),
    )
    window = Within(4 * SECOND)
    assert assert_batch(session, statement("ABC", window, *where), tables)
    assert assert_stream(session, patient(statement("ABC", window, *where)), deal(tables, 2)).bag
