"""Routes that are wrong in one way each: what compares routes with DuckDB must notice."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import pairwise
from unittest.mock import patch

import pyarrow as pa
import pytest

from tests.properties.theta import VALUES, WORDS, assert_as_duckdb, cut, planned, streams
from wjoin.executor import local, routing
from wjoin.executor.routing import Router
from wjoin.parts.kernels.runs import Int64Array
from wjoin.parts.routes.registry import ROUTES
from wjoin.parts.routes.route import Role, Route, Share, Slices, Slicing
from wjoin.planner.physical import PhysicalPlan, Stage
from wjoin.planner.slices import slicing
from wjoin.testing.expressions import Call, Compare, Expression, Field, Literal, equal
from wjoin.testing.statement import Within
from wjoin.testing.tables import SECOND, events

WORKERS = 4
Change = Callable[[Sequence[Share]], Iterator[Share]]


def check(route: str, aliases: str = "AB") -> None:
    """Compare a join of forty rows a stream by a route with what DuckDB finds."""
    by_values = ROUTES[route].values
    where: list[Expression] = [near(*pair) if by_values else ordered(*pair) for pair in pairwise(aliases)]
    if ROUTES[route].heaviest:
        # Keys of two columns in turn: no more than two streams meet on one.
        pairs = zip(pairwise(aliases), "km", strict=False)
        where += [equal(Field(one, key), Field(other, key)) for (one, other), key in pairs]
    statement = streams(aliases, Within(2 * SECOND), where, [5 * SECOND] * len(aliases))
    plan = planned(statement, [f"PLAN({WORDS[route]})", "ALGORITHM(MW)"])
    assert {stage.route for stage in plan.stages} == {route}
    # Slices as long as the window or the band: rows near their edges reach two or three.
    stages = tuple(replace(each, slice=1 if by_values else 2 * SECOND) for each in plan.stages)
    tables = {alias: rows(place) for place, alias in enumerate(aliases)}
    # Many micro-batches: a row that comes late must find those of later times, too.
    batches = cut(tables, dict.fromkeys(aliases, range(3, 40, 3)))
    assert assert_as_duckdb(statement, replace(plan, stages=stages), batches, WORKERS) > 100


def ordered(first: str, second: str) -> Compare:
    """Return a band that is open on one side."""
    return Compare(Field(first, "v"), "<=", Field(second, "v"))


def near(first: str, second: str) -> Compare:
    """Return a band that is closed on both sides."""
    return Compare(Call("abs", (Call("-", (Field(first, "v"), Field(second, "v"))),)), "<=", Literal(1))


def rows(number: int) -> pa.Table:
    """Forty rows over twenty seconds, up to three seconds out of order."""
    chance = random.Random(number)
    made = [
        (100 * number + n, n * SECOND // 2 + chance.randrange(3 * SECOND), 0, 0, chance.randrange(4))
        for n in range(40)
    ]
    return events(made, *VALUES)


def altered(route: str, change: Change) -> Route:
    """Return a route that changes who gets which rows."""

    class Altered(type(ROUTES[route])):  # type: ignore[misc]  # the class of a value
        def shares(
            self, codes: Int64Array | None, times: Int64Array, workers: int, slices: Slices | None
        ) -> Iterator[Share]:
            yield from change(list(super().shares(codes, times, workers, slices)))

    return Altered()


def unprobed(shares: Sequence[Share]) -> Iterator[Share]:
    """Leave out the slices of the last worker, except for what it keeps of its own."""
    for share in shares:
        if share.worker != WORKERS - 1 or share.role not in (Role.VISIT, Role.COPY):
            yield share


def stored_twice(shares: Sequence[Share]) -> Iterator[Share]:
    """Have the next worker keep all that a worker keeps."""
    yield from shares
    for share in shares:
        if share.role.stores:
            yield Share((share.worker + 1) % WORKERS, share.rows, Role.STORE)


def begun_twice(shares: Sequence[Share]) -> Iterator[Share]:
    """Have the next worker begin results with all that a worker begins them with."""
    yield from shares
    for share in shares:
        if share.role.probes:
            yield Share((share.worker + 1) % WORKERS, share.rows, Role.VISIT)


MUTATIONS: dict[str, tuple[Change, str]] = {
    "a slice is not probed": (unprobed, "missing"),
    "a row is stored twice": (stored_twice, "not expected"),
    "a row begins results twice": (begun_twice, "not expected"),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
@pytest.mark.parametrize("route", WORDS)
def test_a_wrong_share_is_noticed(route: str, mutation: str) -> None:
    change, words = MUTATIONS[mutation]
    check(route)
    with patch.dict(ROUTES, {route: altered(route, change)}), pytest.raises(AssertionError, match=words):
        check(route)


@pytest.mark.parametrize("route", WORDS)
def test_a_reach_that_is_too_short_is_noticed(route: str) -> None:
    def short(plan: PhysicalPlan, stage: Stage, number: int) -> Slicing | None:
        view = slicing(plan, stage, number)
        assert view is not None
        return replace(view, back=0, ahead=0)

    with patch.object(routing, "slicing", short), pytest.raises(AssertionError, match="missing"):
        check(route)


class Twice(Router):
    """Sends the results of an earlier stage twice."""

    @classmethod
    def to(cls, plan: PhysicalPlan, stage: Stage, number: int, workers: tuple[int, ...]) -> Router:
        made = Router.to(plan, stage, number, workers)
        if stage.inputs[number].stage is None:
            return made
        return cls(**{each.name: getattr(made, each.name) for each in fields(made)})

    def parts(self, block: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch, Role]]:
        for part in super().parts(block):
            yield part
            yield part


@pytest.mark.parametrize("route", [name for name in WORDS if ROUTES[name].pairs])
def test_a_partial_combination_that_is_sent_twice_is_noticed(route: str) -> None:
    check(route, "ABC")
    with patch.object(local, "Router", Twice), pytest.raises(AssertionError, match="not expected"):
        check(route, "ABC")
