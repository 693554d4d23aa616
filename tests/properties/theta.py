"""Joins without a key or with a hot one, planned from their text and run in this process, beside DuckDB."""

import copy
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from tests.plans.catalogue import PLACEHOLDER, FakeTypes, first_block
from wjoin.executor.counts import Counts
from wjoin.executor.local import LocalWorkers
from wjoin.executor.stretches import STRETCH_BYTES
from wjoin.parts.routes.hash_route import bucket_numbers
from wjoin.parts.routes.registry import ROUTES
from wjoin.planner.catalog import Column, Delay, Estimate, Origin, Relation
from wjoin.planner.choice import PLANS
from wjoin.planner.hops import in_hops
from wjoin.planner.layout import code_name, stored_column, time_name
from wjoin.planner.physical import Passes, PhysicalPlan
from wjoin.planner.plan import plan_select
from wjoin.planner.probes import arranged
from wjoin.testing.check import assert_same
from wjoin.testing.expressions import (
    AnyOf,
    Call,
    Compare,
    Expression,
    Field,
    IsNull,
    Literal,
    equal,
    evaluate,
)
from wjoin.testing.lateness import Batch, expected_batches
from wjoin.testing.statement import Condition, Input, Statement, Style, columns, text
from wjoin.testing.strategies import NAMES, SECOND, windows
from wjoin.testing.tables import events

WORDS = {parts["ROUTE"]: word for word, parts in PLANS.items() if "ROUTE" in parts}
"""The routes that a hint asks for, and its word for each."""

VALUES = ("k", "m", "v")
FREQUENT = int(bucket_numbers(np.zeros(1, np.int64))[0])
WORKERS = (1, 2, 3, 5, 8, 11, 16)

Ids = tuple[int, ...]


@dataclass(frozen=True)
class Theta:
    """A statement, and the rows of its streams in their order of arrival."""

    statement: Statement
    tables: Mapping[str, pa.Table]


def streams(aliases: str, window: Condition, where: Sequence[Expression], delays: Sequence[int]) -> Statement:
    """Return a statement that selects the ``id`` of every stream, with so much allowed disorder each."""
    inputs = tuple(
        Input(alias, f"s_{alias.lower()}", delay=delay) for alias, delay in zip(aliases, delays, strict=True)
    )
    select = tuple(output for alias in aliases for output in columns(alias, "id"))
    return Statement(inputs, window, tuple(where), select)


# Planning -------------------------------------------------------------------


def planned(statement: Statement, hints: Sequence[str] = ()) -> PhysicalPlan:
    """Return the plan of a statement over streams of which only their most frequent keys are known: 0."""
    written = text(statement, Style(hints=tuple(hints)))
    time = "bigint" if statement.integral else "timestamp"
    kinds = {"id": "bigint", "ts": time} | dict.fromkeys(VALUES, "bigint")
    own = tuple(Column(name, kind) for name, kind in kinds.items())
    known = {f"bucket.{key}": Estimate(float(FREQUENT), Origin.ANALYZED) for key in ("k", "m")}
    relations = tuple(
        Relation(own, "ts", {"ts": Delay(each.delay)}, True, known) for each in statement.inputs
    )
    types = FakeTypes(relations)
    return plan_select(written, first_block(written), relations, types, {}, PLACEHOLDER).physical


def hopped(
    statement: Statement, hints: Sequence[str] = (), hopping: Callable[[PhysicalPlan], PhysicalPlan] = in_hops
) -> PhysicalPlan:
    """Return the plan of a statement without a key in hops, which need not be the cheapest one."""
    hops = hopping(replace(planned(statement, hints), passes=Passes.HULL))
    return arranged(hops, [None] * len(hops.stages))


def with_slices(plan: PhysicalPlan, length: int, unit: int) -> PhysicalPlan:
    """Return the plan with slices so long, where its routes have slices: in units of time, or of values."""
    stages = (
        replace(each, slice=length if ROUTES[each.route].values else length * unit) if each.slice else each
        for each in plan.stages
    )
    return replace(plan, stages=tuple(stages))


# Running --------------------------------------------------------------------


def cut(tables: Mapping[str, pa.Table], places: Mapping[str, Sequence[int]]) -> list[Batch]:
    """Cut the rows of every stream into micro-batches, each stream at its own places."""
    pieces = {
        alias: [
            table.slice(first, last - first)
            for first, last in itertools.pairwise((0, *places[alias], table.num_rows))
        ]
        for alias, table in tables.items()
    }
    return [dict(zip(pieces, batch, strict=True)) for batch in zip(*pieces.values(), strict=True)]


def blocks(plan: PhysicalPlan, batch: Batch) -> dict[int, pa.RecordBatch]:
    """Return the rows of a micro-batch as pack would send them; keys are whole numbers, and never NULL."""
    found = {}
    for stream, (scan, rows) in enumerate(zip(plan.streams, batch.values(), strict=True)):
        values = {time_name(stream): rows["ts"].cast(pa.int64())}
        for number, code in enumerate(scan.codes):
            values[code_name(stream, number)] = rows[_column(code.expressions[0])]
        for number, column in enumerate(scan.columns):
            stored = stored_column(plan, stream, number)
            if not stored.restored:
                values[stored.name] = rows[_column(column.expression)]
        chunks = {name: column.combine_chunks() for name, column in values.items()}
        found[stream] = pa.RecordBatch.from_pydict(chunks)
    return found


def _column(expression: str) -> str:
    return expression.rpartition(".")[2]


def results(
    statement: Statement,
    plan: PhysicalPlan,
    batches: Sequence[Batch],
    workers: int,
    stretch: int = STRETCH_BYTES,
    crashes: Sequence[int] = (),
) -> list[Counter[Ids]]:
    """Return the results of each micro-batch; before ``crashes`` an attempt dies whose state is lost."""
    rows = _rows_by_id(statement, batches)
    local = LocalWorkers(plan, workers, stretch)
    found: list[Counter[Ids]] = []
    for number, batch in enumerate(batches):
        if number in crashes:
            copy.deepcopy(local).run(blocks(plan, batch), Counts())
        made = local.run(blocks(plan, batch), Counts())
        ids = (each for result in made for each in _ids(plan, result))
        found.append(Counter(each for each in ids if _kept(statement, rows, each)))
    return found


def _rows_by_id(statement: Statement, batches: Sequence[Batch]) -> list[dict[int, dict[str, object]]]:
    tables = (pa.concat_tables(batch[alias] for batch in batches) for alias in statement.aliases)
    return [{row["id"]: row for row in table.to_pylist()} for table in tables]


def _ids(plan: PhysicalPlan, result: pa.RecordBatch) -> Iterator[Ids]:
    places = (
        stored_column(plan, stream, number).name
        for stream, scan in enumerate(plan.streams)
        for number, column in enumerate(scan.columns)
        if column.output == "id"
    )
    return zip(*(result.column(name).to_pylist() for name in places), strict=True)


def _kept(statement: Statement, rows: Sequence[Mapping[int, Mapping[str, object]]], ids: Ids) -> bool:
    """Return whether a combination passes the conditions, which Spark evaluates after the join."""
    row = {alias: rows[place][ids[place]] for place, alias in enumerate(statement.aliases)}
    return all(evaluate(each, row) is True for each in statement.where)


def assert_as_duckdb(
    statement: Statement,
    plan: PhysicalPlan,
    batches: Sequence[Batch],
    workers: int,
    stretch: int = STRETCH_BYTES,
    crashes: Sequence[int] = (),
) -> int:
    """Assert that each micro-batch has the results that DuckDB finds for it; return how many these are."""
    wanted = expected_batches(statement, batches)
    made = results(statement, plan, batches, workers, stretch, crashes)
    for number, (actual, bag) in enumerate(zip(made, wanted, strict=True)):
        routes = ", ".join(stage.route for stage in plan.stages)
        about = f"micro-batch {number} of {len(batches)} by {routes} on {workers} workers"
        assert_same(actual, bag, f"{about} of\n{text(statement, Style())}")
    return sum(bag.total() for bag in wanted)


# Cases ----------------------------------------------------------------------


@st.composite
def thetas(draw: st.DrawFn, count: int, *, keyed: bool, route: str) -> Theta:
    """Return joins of so many streams whose conditions link them all, and that a route can run.

    ``keyed``: by equalities, one value of which most rows have. Else by inequalities, bands and other
    conditions on two streams. For a route by values there is a closed band for each link.
    """
    names = NAMES[:count]
    integral = draw(st.booleans())
    unit = 1 if integral else SECOND
    pairs = list(itertools.pairwise(draw(st.permutations(names))))
    where: list[Expression] = []
    if keyed:
        # Keys of two columns in turn: no more than two streams meet on one.
        turns = itertools.cycle("km" if ROUTES[route].pairs or draw(st.booleans()) else "k")
        where = [equal(Field(a, key), Field(b, key)) for (a, b), key in zip(pairs, turns, strict=False)]
    if ROUTES[route].values:
        where += itertools.chain.from_iterable(draw(_bands(*pair)) for pair in pairs)
    elif not keyed:
        where += [draw(_links(*pair)) for pair in pairs]
    delays = [draw(st.sampled_from([0, 4, 1000])) * unit for _ in names]
    statement = streams("".join(names), draw(windows(names, unit)), draw(st.permutations(where)), delays)
    most = {2: 14, 3: 10, 4: 8, 5: 6}[count]
    tables = {name: draw(_arriving(place, most, integral)) for place, name in enumerate(names)}
    return Theta(replace(statement, integral=integral), tables)


def _links(first: str, second: str) -> st.SearchStrategy[Expression]:
    """Return conditions on two streams, none of them an equality."""
    left, right = Field(first, "v"), Field(second, "v")
    difference = Call("-", (left, right))
    choices: list[Expression] = [
        Compare(left, "<=", right),
        Compare(left, "<>", right),
        Compare(Call("abs", (difference,)), "<=", Literal(1)),
        Compare(difference, "<", Literal(2)),
        Compare(Call("+", (left, Call("*", (right, Literal(2))))), "<", Literal(6)),
        AnyOf((Compare(left, "<", right), IsNull(right))),
        Compare(Field(first, "ts"), "<=", Field(second, "ts")),
    ]
    return st.sampled_from(choices)


def _bands(first: str, second: str) -> st.SearchStrategy[tuple[Expression, ...]]:
    """Return conditions that are a band of values, closed on both sides."""
    left, right = Field(first, "v"), Field(second, "v")
    difference = Call("-", (left, right))
    choices: list[tuple[Expression, ...]] = [
        (Compare(Call("abs", (difference,)), "<=", Literal(1)),),
        (Compare(difference, ">=", Literal(0)), Compare(difference, "<", Literal(3))),
        (Compare(left, "<=", right), Compare(Call("+", (left, Literal(2))), ">=", right)),
    ]
    return st.sampled_from(choices)


@st.composite
def _arriving(draw: st.DrawFn, number: int, most: int, integral: bool) -> pa.Table:
    """The rows of a stream, out of order."""
    unit = 1 if integral else SECOND
    rows = [
        (
            100 * (number + 1) + place,
            (2 * place - draw(st.integers(0, 5))) * unit,
            draw(st.sampled_from([0, 0, 0, 1, 2])),
            draw(st.sampled_from([0, 0, 0, 1])),
            draw(st.sampled_from([0, 1, 2, 3, 1, 2, None])),
        )
        for place in range(draw(st.integers(most // 2, most)))
    ]
    return events(rows, *VALUES, time=pa.int64() if integral else pa.timestamp("us", "UTC"))


@st.composite
def cuts(draw: st.DrawFn, theta: Theta) -> list[Batch]:
    """Return the rows of a case cut into micro-batches."""
    count = draw(st.integers(1, 5))
    places = {
        alias: sorted(draw(st.lists(st.integers(0, table.num_rows), min_size=count - 1, max_size=count - 1)))
        for alias, table in theta.tables.items()
    }
    return cut(theta.tables, places)


def hinted(route: str) -> st.SearchStrategy[tuple[str, ...]]:
    """Return hints for a route, on all workers or on a number of them, and for kernel and bounds.

    With these there are few plans to weigh.
    """
    parts = [
        st.sampled_from(["ALGORITHM(MW)", "ALGORITHM(NLW)"]),
        st.sampled_from(["BOUNDS(EXACT)", "BOUNDS(LCA)", "BOUNDS(GCA)"]),
    ]
    if route in WORDS:
        numbers = ("", *(f", {number}" for number in (1, 2, 3, 7, 16)))
        parts.append(st.sampled_from([f"PLAN({WORDS[route]}{number})" for number in numbers]))
    return st.tuples(*parts)
