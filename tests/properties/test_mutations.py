"""Routes that are wrong in one way each: what compares routes with DuckDB must notice."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import cycle, pairwise, product
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from tests.kit import local
from tests.kit.expressions import Call, Compare, Expression, Field, Literal, equal
from tests.kit.statement import Within
from tests.kit.tables import SECOND, events
from tests.properties.theta import VALUES, WORDS, assert_as_duckdb, cut, hopped, planned, streams
from tests.tiers import tiers
from wjoin.executor import numbering, routing
from wjoin.executor.routing import Router
from wjoin.executor.step import StageLogic
from wjoin.executor.stretches import STRETCH_BYTES
from wjoin.parts.kernels.runs import Int64Array, RunShape
from wjoin.parts.routes.registry import ROUTES
from wjoin.parts.routes.route import Role, Route, Share, Slices, Slicing
from wjoin.planner.plan import probes
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.slicing import slicing
from wjoin.planner.plan.stage_kinds import Gather, Hop, PassedOn, Scanned, Stage
from wjoin.planner.plan.steps import Precedence
from wjoin.planner.shape.at_once import at_once
from wjoin.planner.shape.hops import in_hops

pytestmark = pytest.mark.long

WORKERS = 4
Change = Callable[[Sequence[Share]], Iterator[Share]]
Hopping = Callable[[PhysicalPlan], PhysicalPlan]


def check(
    route: str,
    aliases: str = "AB",
    *,
    hops: Hopping | None = None,
    whole: bool = False,
    unit: int = 1,
) -> None:
    """Compare a join of forty rows a stream by a route, or in hops, with what DuckDB finds.

    ``whole``: nearly all in one micro-batch, which workers cut into many stretches. ``unit``: of the times.
    """
    by_values = ROUTES[route].values
    where: list[Expression] = [near(*pair) if by_values else ordered(*pair) for pair in pairwise(aliases)]
    if ROUTES[route].heaviest:
        # Keys of two columns in turn: no more than two streams meet on one.
        pairs = zip(pairwise(aliases), "km", strict=False)
        where += [equal(Field(one, key), Field(other, key)) for (one, other), key in pairs]
    statement = streams(aliases, Within(2 * SECOND), where, [5 * SECOND] * len(aliases))
    if hops:
        plan = hopped(statement, ["ALGORITHM(MW)"], hops)
    else:
        plan = planned(statement, [f"PLAN({WORDS[route]})", "ALGORITHM(MW)"])
    routes = {
        (stage.placement.route, isinstance(stage, Hop))
        for stage in plan.stages
        if not isinstance(stage, Gather)
    }
    assert routes == {(route, hops is not None)}
    # Slices as long as the window or the band: rows near their edges reach two or three.
    length = 1 if by_values else 2 * SECOND
    stages = tuple(
        each if isinstance(each, Gather) else replace(each, placement=replace(each.placement, length=length))
        for each in plan.stages
    )
    tables = {alias: rows(place, unit) for place, alias in enumerate(aliases)}
    # Many micro-batches: a row that comes late must find those of later times, too.
    batches = cut(tables, dict.fromkeys(aliases, (3,) if whole else range(3, 40, 3)))
    stretch = 100 if whole else STRETCH_BYTES
    assert assert_as_duckdb(statement, replace(plan, stages=stages), batches, WORKERS, stretch) > 100


def ordered(first: str, second: str) -> Compare:
    """Return a band that is open on one side."""
    return Compare(Field(first, "v"), "<=", Field(second, "v"))


def near(first: str, second: str) -> Compare:
    """Return a band that is closed on both sides."""
    return Compare(Call("abs", (Call("-", (Field(first, "v"), Field(second, "v"))),)), "<=", Literal(1))


def rows(number: int, unit: int) -> pa.Table:
    """Forty rows over twenty seconds, up to three seconds out of order."""
    chance = random.Random(number)
    times = [(n * SECOND // 2 + chance.randrange(3 * SECOND)) // unit * unit for n in range(40)]
    made = [(100 * number + n, time, 0, 0, chance.randrange(4)) for n, time in enumerate(times)]
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


@pytest.mark.parametrize(
    ("route", "mutation"),
    tiers(product(WORDS, MUTATIONS), long=zip(WORDS, cycle(MUTATIONS))),
)
@pytest.mark.thorough
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


@pytest.mark.parametrize("hops", [in_hops, at_once])
@pytest.mark.parametrize("mutation", MUTATIONS)
def test_in_hops_a_wrong_share_is_noticed(mutation: str, hops: Hopping) -> None:
    change, words = MUTATIONS[mutation]
    check("psp", "ABC", hops=hops)
    with patch.dict(ROUTES, psp=altered("psp", change)), pytest.raises(AssertionError, match=words):
        check("psp", "ABC", hops=hops)


def test_in_hops_an_order_by_all_rows_of_a_partial_result_is_noticed() -> None:
    """As joins of two have it, one after the other: there the earliest row tells."""

    known = probes._precedence

    def by_all(stage: Stage, joined: Sequence[int], target: int) -> Precedence:
        members = tuple(member for number in joined for member in stage.inputs[number].members)
        return replace(known(stage, joined, target), after=members)

    with (
        patch.object(probes, "_precedence", by_all),
        pytest.raises(AssertionError, match="missing"),
    ):
        check("psp", "ABC", hops=in_hops)


def test_in_hops_a_stretch_by_the_earliest_row_is_noticed() -> None:
    """A partial result has to wait for the stretch of its newest row, so that all it meets is there."""
    shape = StageLogic.shape

    def by_the_earliest(logic: StageLogic, number: int) -> RunShape:
        return replace(shape(logic, number), newest=None)

    check("psp", "ABC", hops=in_hops, whole=True)
    with patch.object(StageLogic, "shape", by_the_earliest), pytest.raises(AssertionError, match="missing"):
        check("psp", "ABC", hops=in_hops, whole=True)


class Twice(Router):
    """Sends twice what an earlier stage has made: its results, or in hops only the rows that it passes on."""

    carried = False

    @classmethod
    def to(cls, plan: PhysicalPlan, stage: Stage, number: int, workers: tuple[int, ...]) -> Router:
        made = Router.to(plan, stage, number, workers)
        source = stage.inputs[number].source
        if isinstance(source, Scanned) or isinstance(source, PassedOn) != cls.carried:
            return made
        return cls(**{each.name: getattr(made, each.name) for each in fields(made)})

    def parts(
        self, block: pa.RecordBatch, *, whole: bool = False
    ) -> Iterator[tuple[int, pa.RecordBatch, Role]]:
        for part in super().parts(block, whole=whole):
            yield part
            yield part


class CarriedTwice(Twice):
    carried = True


@pytest.mark.parametrize("route", [name for name in WORDS if ROUTES[name].pairs])
def test_a_partial_combination_that_is_sent_twice_is_noticed(route: str) -> None:
    check(route, "ABC")
    with patch.object(local, "Router", Twice), pytest.raises(AssertionError, match="not expected"):
        check(route, "ABC")


@pytest.mark.parametrize(("twice", "hops"), [(Twice, in_hops), (CarriedTwice, in_hops), (Twice, at_once)])
def test_in_hops_what_is_sent_on_twice_is_noticed(twice: type[Twice], hops: Hopping) -> None:
    with patch.object(local, "Router", twice), pytest.raises(AssertionError, match="not expected"):
        check("psp", "ABC", hops=hops)


def by_place(batch: pa.RecordBatch, times: Int64Array) -> Int64Array:
    """Number rows as they lie on a worker, which other workers do not know."""
    return np.arange(batch.num_rows) + batch.num_rows


def by_time(batch: pa.RecordBatch, times: Int64Array) -> Int64Array:
    """Number rows by their times only, which several may have."""
    return times


@pytest.mark.parametrize(("numbers", "words"), [(by_place, "missing"), (by_time, "not expected")])
def test_partial_results_of_different_rows_that_come_together_are_noticed(
    numbers: Callable[[pa.RecordBatch, Int64Array], Int64Array], words: str
) -> None:
    check("psp", "ABC", hops=at_once, unit=SECOND)
    with patch.object(numbering, "row_numbers", numbers), pytest.raises(AssertionError, match=words):
        check("psp", "ABC", hops=at_once, unit=SECOND)
