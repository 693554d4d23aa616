"""Joins without a key or with a hot one, planned from their text and run in this process, beside DuckDB."""

import copy
import datetime
import decimal
import itertools
import math
import random
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st
from pyspark.sql.pandas.types import from_arrow_type

from tests.kit.check import assert_same
from tests.kit.expressions import AnyOf, Call, Compare, Expression, Field, IsNull, Literal, equal, evaluate
from tests.kit.lateness import Batch, Oracle, expected_batches
from tests.kit.local import LocalWorkers
from tests.kit.oracle import combinations
from tests.kit.statement import Condition, Input, Statement, Style, columns, text
from tests.kit.strategies import KEY_KINDS, NAMES, SECOND, KeyKind, windows
from tests.kit.tables import events
from tests.plans.catalogue import PLACEHOLDER, FakeTypes, first_block
from wjoin.executor.counts import Counts
from wjoin.executor.stretches import STRETCH_BYTES
from wjoin.parts.kernels.registry import KERNELS, kernels_of, refusal_of
from wjoin.parts.kernels.runs import integers
from wjoin.parts.routes.hash_route import bucket_numbers
from wjoin.parts.routes.registry import ROUTES
from wjoin.planner.catalog import Column, Delay, Estimate, Origin, Relation
from wjoin.planner.choose.choice import PLANS
from wjoin.planner.conditions.expressions import common_type
from wjoin.planner.cost.model import CostSettings
from wjoin.planner.plan.block_columns import code_name, stored_column, time_name
from wjoin.planner.plan.physical import KeyCode, Passes, PhysicalPlan
from wjoin.planner.plan.probes import arranged, chosen_orders
from wjoin.planner.plan.stage_kinds import Bounds
from wjoin.planner.planning import plan_select
from wjoin.planner.request import Request
from wjoin.planner.shape.hops import in_hops
from wjoin.planner.windows.bounds import Clock

WORDS = {parts["ROUTE"]: word for word, parts in PLANS.items() if "ROUTE" in parts}
"""The routes that a hint asks for, and its word for each."""

VALUES = ("k", "m", "v")
FREQUENT = int(bucket_numbers(np.zeros(1, np.int64))[0])
WORKERS = (1, 2, 3, 5, 8, 11, 16)
ROWS = {2: 14, 3: 10, 4: 8, 5: 6}
"""The most rows of a stream, by the number of streams."""

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


def planned(
    statement: Statement,
    hints: Sequence[str] = (),
    schemas: Mapping[str, pa.Schema] | None = None,
    costs: CostSettings | None = None,
    *,
    streaming: bool = True,
) -> PhysicalPlan:
    """Return the plan of a statement over streams of which only their most frequent keys are known: 0.

    ``schemas``: of the streams by alias, where their values are not all BIGINT.
    """
    written = text(statement, Style(hints=tuple(hints)))
    time = pa.int64() if statement.integral else pa.timestamp("us", "UTC")
    plain = pa.schema([("id", pa.int64()), ("ts", time), *((name, pa.int64()) for name in VALUES)])
    known = {f"bucket.{key}": Estimate(float(FREQUENT), Origin.ANALYZED) for key in ("k", "m")}
    relations = tuple(
        Relation(
            tuple(
                Column(field.name, from_arrow_type(field.type, prefer_timestamp_ntz=True).simpleString())
                for field in (schemas or {}).get(each.alias, plain)
            ),
            "ts",
            {"ts": Delay(each.delay)},
            streaming,
            known,
        )
        for each in statement.inputs
    )
    types = _LocalTypes(relations)
    return plan_select(
        Request(written, first_block(written), relations, types, PLACEHOLDER, costs=costs or CostSettings())
    ).physical


class _LocalTypes(FakeTypes):
    """The types of expressions over columns of any type."""

    def of(self, stream: int, expression: str) -> str:
        """Return the type of a function of a column, which is that of the column."""
        name = _column(expression.rstrip(")"))
        return next(each.type for each in self.relations[stream].columns if each.name == name)

    def common(self, first: str, second: str) -> str | None:
        """Return the type in which Spark compares two numbers."""
        return common_type(first, second)


def hopped(
    statement: Statement, hints: Sequence[str] = (), hopping: Callable[[PhysicalPlan], PhysicalPlan] = in_hops
) -> PhysicalPlan:
    """Return the plan of a statement without a key in hops, which need not be the cheapest one."""
    hops = hopping(replace(planned(statement, hints), passes=Passes.HULL))
    return arranged(hops, [None] * len(hops.stages))


def with_slices(plan: PhysicalPlan, length: int, unit: int) -> PhysicalPlan:
    """Return the plan with slices so long, where its routes have slices: in units of time, or of values."""
    stages = []
    for each in plan.stages:
        where = each.placement
        if where.length:
            own = length if ROUTES[where.route].values else length * unit
            each = replace(each, placement=replace(where, length=own))
        stages.append(each)
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
    """Return the rows of a micro-batch as pack would send them.

    The code of a NULL is that of another value: these rows meet, and the conditions are to tell.
    """
    found = {}
    for stream, (scan, rows) in enumerate(zip(plan.streams, batch.values(), strict=True)):
        values = {time_name(stream): rows["ts"].combine_chunks().cast(pa.int64())}
        for number, code in enumerate(scan.codes):
            values[code_name(stream, number)] = _codes(code, rows)
        for number, column in enumerate(scan.columns):
            stored = stored_column(plan, stream, number)
            if not stored.restored:
                values[stored.name] = _evaluated(column.expression, rows)
        found[stream] = pa.RecordBatch.from_pydict(values)
    return found


def _column(expression: str) -> str:
    return expression.rpartition(".")[2]


_CAST = re.compile(r"CAST\((.*) AS ([^ ]*)\)")
_FUNCTIONS = {"abs": pc.abs, "upper": pc.utf8_upper, "-": pc.negate}
_ARROW = {"double": pa.float64(), "float": pa.float32(), "bigint": pa.int64(), "int": pa.int32()}
_ARROW |= {"smallint": pa.int16()}


def _evaluated(expression: str, rows: pa.Table) -> pa.Array:
    """Return the values of an expression of a scan: a column, a function of one, or a CAST of either."""
    if cast := _CAST.fullmatch(expression):
        inside, kind = cast[1], cast[2].lower()
        digits = re.findall(r"\d+", kind)
        wanted = pa.decimal128(*map(int, digits)) if digits else _ARROW[kind]
        return _evaluated(inside, rows).cast(wanted, safe=False)
    name, _, inside = expression.rstrip(")").partition("(")
    if inside:
        return _FUNCTIONS[name](_evaluated(inside, rows))
    return rows[_column(expression)].combine_chunks()


def _codes(code: KeyCode, rows: pa.Table) -> pa.Array:
    """Return key codes: exact ones, or hashes so short that other values have them, too."""
    parts = [_evaluated(each, rows) for each in code.expressions]
    if code.exact:
        return integers(parts[0]).fill_null(0)
    values = zip(*(each.to_pylist() for each in parts), strict=True)
    return pa.array([zlib.crc32(repr([*map(_alike, each)]).encode()) % 5 for each in values], pa.int64())


def _alike(value: object) -> object:
    """Return what is the same for values that are equal."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value.normalize() if isinstance(value, decimal.Decimal) else value


def results(
    statement: Statement,
    plan: PhysicalPlan,
    batches: Sequence[Batch],
    workers: int,
    stretch: int = STRETCH_BYTES,
    crashes: Sequence[int] = (),
    restarts: Mapping[int, PhysicalPlan] | None = None,
) -> list[Counter[Ids]]:
    """Return the results of each micro-batch; before ``crashes`` an attempt dies whose state is lost.

    ``restarts``: the plans with which the query goes on from a micro-batch on.
    """
    rows = _rows_by_id(statement, batches)
    local = LocalWorkers(plan, workers, stretch)
    found: list[Counter[Ids]] = []
    for number, batch in enumerate(batches):
        if restarts and number in restarts:
            local = _restarted(local, restarts[number], workers, stretch)
        if number in crashes:
            copy.deepcopy(local).run(blocks(plan, batch), Counts())
        made = local.run(blocks(plan, batch), Counts())
        ids = (each for result in made for each in _ids(plan, result))
        found.append(Counter(each for each in ids if _kept(statement, rows, each)))
    return found


def _restarted(local: LocalWorkers, plan: PhysicalPlan, workers: int, stretch: int) -> LocalWorkers:
    """Return workers with another plan and the state of others."""
    again = LocalWorkers(plan, workers, stretch)
    for taker, giver in zip(itertools.chain(*again._stages), itertools.chain(*local._stages), strict=True):
        taker.manifest, taker.store = giver.manifest, giver.store
    return again


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
    restarts: Mapping[int, PhysicalPlan] | None = None,
    oracle: Oracle = combinations,
) -> int:
    """Assert that each micro-batch has the results that DuckDB finds for it; return how many these are."""
    wanted = expected_batches(statement, batches, oracle)
    made = results(statement, plan, batches, workers, stretch, crashes, restarts)
    for number, (actual, bag) in enumerate(zip(made, wanted, strict=True)):
        routes = ", ".join(stage.placement.route for stage in plan.stages)
        about = f"micro-batch {number} of {len(batches)} by {routes} on {workers} workers"
        assert_same(actual, bag, f"{about} of\n{text(statement, Style())}")
    return sum(bag.total() for bag in wanted)


# Kinds of values -------------------------------------------------------------

_D = decimal.Decimal
_INF, _NAN = math.inf, math.nan
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICRO = datetime.timedelta(microseconds=1)


@dataclass(frozen=True)
class ValueKind:
    """A kind of values that conditions compare: the types of the streams in turn, and the values of each.

    ``sums``: whether they are numbers whose sums Spark does not round.
    """

    name: str
    types: tuple[pa.DataType, ...]
    values: tuple[tuple[object, ...], ...]
    sums: bool = True

    @property
    def has_nan(self) -> bool:
        """Whether a type has NaN: a difference that is NaN is greater than any bound, so it has no least."""
        return any(map(pa.types.is_floating, self.types))

    def of(self, number: int) -> tuple[object, ...]:
        """Return the values of a stream."""
        return (*self.values[number % len(self.values)], None)


FEW = ValueKind("few", (pa.int64(),), ((0, 1, 2, 3, 1, 2),))

_WHOLE = (-(2**63), -(2**63) + 1, -1, 0, 1, 2, 2**53 + 1, 2**63 - 2, 2**63 - 1)
_INTS = (-(2**31), -1, 0, 1, 2, 2**31 - 1)
_DOUBLES = (-_INF, -1.7e308, -1.0, -0.0, 0.0, 0.1, 0.5, 1.0, 1.5, 2.0**53 + 2, 1.7e308, _INF, _INF, _NAN)
_FLOATS = (-_INF, -(2.0**127), -1.0, -0.0, 0.0, 0.5, 1.0, 1.5, 2.0**127, _INF, _NAN)
_DECIMALS = tuple(map(_D, ("-99999999.99", "-1", "-0.01", "0", "0.5", "1", "1.01", "99999999.99")))
_LONG = tuple(_D(each) for each in (-(10**38) + 1, -1, 0, 1, 10**38 - 2, 10**38 - 1))
_FINE = tuple(map(_D, ("-1e-38", "0", "1e-38", "0.5", "0.99999999999999999999999999999999999999")))
_DAYS = tuple(datetime.date(*day) for day in ((1, 1, 1), (1969, 12, 31), (1970, 1, 1), (9999, 12, 31)))
_INSTANTS = (_EPOCH - _MICRO, _EPOCH, _EPOCH + _MICRO, datetime.datetime.max.replace(tzinfo=datetime.UTC))

VALUE_KINDS = (
    FEW,
    ValueKind("bigint", (pa.int64(),), (_WHOLE,)),
    ValueKind("int", (pa.int32(), pa.int64()), (_INTS, (*_INTS, *_WHOLE))),
    ValueKind("double", (pa.float64(),), (_DOUBLES,)),
    ValueKind("float", (pa.float32(),), (_FLOATS,)),
    ValueKind("floats", (pa.float64(), pa.float32()), (_DOUBLES, _FLOATS)),
    ValueKind("bigint and double", (pa.int64(), pa.float64()), (_WHOLE, (*_DOUBLES, 2.0**63, -(2.0**63)))),
    ValueKind("decimal", (pa.decimal128(10, 2), pa.decimal128(20, 4)), (_DECIMALS, _DECIMALS)),
    ValueKind("decimal and double", (pa.decimal128(10, 2), pa.float64()), (_DECIMALS, _DOUBLES)),
    ValueKind("decimal and bigint", (pa.decimal128(10, 2), pa.int64()), (_DECIMALS, _WHOLE)),
    ValueKind("long decimal", (pa.decimal128(38, 0),), (_LONG,), sums=False),
    ValueKind("fine decimal", (pa.decimal128(38, 38),), (_FINE,), sums=False),
    ValueKind("date", (pa.date32(),), (_DAYS,), sums=False),
    ValueKind("timestamp", (pa.timestamp("us", "UTC"),), (_INSTANTS,), sums=False),
    ValueKind("string", (pa.string(),), (("", "a", "ab", "ä", "\U0001f600"),), sums=False),
    ValueKind("boolean", (pa.bool_(),), ((True, False),), sums=False),
)
"""Kinds of values, at the ends of their types."""

_PLAIN_KEYS = (
    KeyKind("k", (pa.int64(),), (0, 0, 1, 2)),
    KeyKind("m", (pa.int64(),), (0, 0, 1)),
)
_LOCAL_KEYS = (
    *_PLAIN_KEYS,
    *KEY_KINDS,
    KeyKind("ends", (pa.int64(), pa.int32()), (0, -1, 2**31 - 1)),
    KeyKind("infinite", (pa.float64(), pa.float32()), (_INF, -_INF, _NAN, 0.0, -0.0)),
    KeyKind("bigint and double", (pa.int64(), pa.float64()), (0, 1, 2**53)),
    KeyKind("long decimal", (pa.decimal128(38, 0),), _LONG),
    KeyKind("absolute decimal", (pa.decimal128(10, 2),), (_D("1.5"), _D("-1.5"), _D("2")), "abs"),
    KeyKind("absolute double", (pa.float64(),), (0.0, -0.0, -1.0, 1.0, _INF, -_INF, _NAN), "abs"),
)


@dataclass(frozen=True)
class Kinds:
    """The kinds of the columns of streams: both keys, and the value."""

    key: KeyKind = _PLAIN_KEYS[0]
    second: KeyKind = _PLAIN_KEYS[1]
    value: ValueKind = FEW

    def equality(self, first: str, second: str, column: str) -> Expression:
        """Return the equality of a key of two streams."""
        function = (self.key if column == "k" else self.second).function
        sides: list[Expression] = [Field(each, column) for each in (first, second)]
        return equal(*(side if function is None else Call(function, (side,)) for side in sides))


def any_kinds(*, near: bool = False, plain: bool = False) -> st.SearchStrategy[Kinds]:
    """Return kinds of columns, often at the ends of their types.

    ``near``: with values that have a band; ``plain``: with keys that are columns, of no function.
    """
    keys = st.sampled_from([each for each in _LOCAL_KEYS if not plain or each.function is None])
    values = [each for each in VALUE_KINDS if not near or each.sums or each.name in ("date", "timestamp")]
    return st.builds(Kinds, keys, keys, st.sampled_from(values))


# Cases ----------------------------------------------------------------------


@st.composite
def thetas(draw: st.DrawFn, count: int, *, keyed: bool, route: str, kinds: "Kinds | None" = None) -> Theta:
    """Return joins of so many streams whose conditions link them all, and that a route can run.

    ``keyed``: by equalities, one value of which most rows have. Else by inequalities, bands and other
    conditions on two streams. For a route by values there is a closed band for each link. ``kinds``: of the
    columns, where they are not all BIGINT of a few values.
    """
    made = kinds or Kinds()
    sums = made.value.sums
    names = NAMES[:count]
    integral = draw(st.booleans())
    unit = 1 if integral else SECOND
    pairs = list(itertools.pairwise(draw(st.permutations(names))))
    where: list[Expression] = []
    if keyed:
        # Keys of two columns in turn: no more than two streams meet on one.
        turns = itertools.cycle("km" if ROUTES[route].pairs or draw(st.booleans()) else "k")
        where = [made.equality(a, b, key) for (a, b), key in zip(pairs, turns, strict=False)]
    if ROUTES[route].values:
        where += itertools.chain.from_iterable(draw(_bands(*pair, made.value)) for pair in pairs)
    elif not keyed or (kinds and draw(st.booleans())):
        where += [draw(_links(*pair, sums=sums)) for pair in pairs]
    delays = [draw(st.sampled_from([0, 4, 1000])) * unit for _ in names]
    statement = streams("".join(names), draw(windows(names, unit)), draw(st.permutations(where)), delays)
    statement = replace(statement, integral=integral)
    return Theta(statement, arriving(draw(seeds()), statement, made))


def _links(first: str, second: str, *, sums: bool = True) -> st.SearchStrategy[Expression]:
    """Return conditions on two streams, none of them an equality; ``sums``: of numbers."""
    left, right = Field(first, "v"), Field(second, "v")
    difference = Call("-", (left, right))
    choices: list[Expression] = [
        Compare(left, "<=", right),
        Compare(left, ">", right),
        Compare(left, "<>", right),
        AnyOf((Compare(left, "=", right), IsNull(right))),
    ]
    if not sums:
        return st.sampled_from(choices)
    choices += [
        Compare(left, ">=", right),
        Compare(left, ">=", Call("-", (right, Literal(decimal.Decimal("0.5"))))),
        Compare(Call("abs", (difference,)), "<=", Literal(1)),
        Compare(difference, "<", Literal(2)),
        Compare(Call("+", (left, Call("*", (right, Literal(2))))), "<", Literal(6)),
        AnyOf((Compare(left, "<", right), IsNull(right))),
        Compare(Field(first, "ts"), "<=", Field(second, "ts")),
    ]
    return st.sampled_from(choices)


def _bands(first: str, second: str, kind: ValueKind) -> st.SearchStrategy[tuple[Expression, ...]]:
    """Return conditions that are a band of values of a kind, closed on both sides."""
    left, right = Field(first, "v"), Field(second, "v")
    if not kind.sums:
        return st.just((Compare(left, "<=", right), Compare(left, ">=", right)))
    difference = Call("-", (left, right))
    near = Literal(1), Literal(decimal.Decimal("0.5"))
    choices: list[tuple[Expression, ...]] = [
        (Compare(Call("abs", (difference,)), "<=", Literal(1)),),
        (Compare(left, ">=", Call("-", (right, near[0]))), Compare(left, "<=", Call("+", (right, near[1])))),
        (Compare(left, "<=", right), Compare(Call("+", (left, Literal(2))), ">=", right)),
    ]
    if not kind.has_nan:
        choices.append((Compare(difference, ">=", Literal(0)), Compare(difference, "<", Literal(3))))
    return st.sampled_from(choices)


def arriving(
    chance: random.Random, statement: Statement, kinds: Kinds, most: Mapping[int, int] = ROWS
) -> dict[str, pa.Table]:
    """Return the rows of each stream of a statement, out of order; ``most`` by how many streams there are."""
    rows = most[len(statement.aliases)]
    return {
        alias: _arriving(chance, number, rows, statement.integral, kinds)
        for number, alias in enumerate(statement.aliases)
    }


def _arriving(chance: random.Random, number: int, most: int, integral: bool, kinds: Kinds) -> pa.Table:
    unit = 1 if integral else SECOND
    keys = [(*(each.values[0],) * 2, *each.values) for each in (kinds.key, kinds.second)]
    values = kinds.value.of(number)
    rows = [
        (
            100 * (number + 1) + place,
            (2 * place - chance.randint(0, 5)) * unit,
            *(chance.choice(each) for each in (*keys, values)),
        )
        for place in range(chance.randint(most // 2, most))
    ]
    every = (kinds.key.types, kinds.second.types, kinds.value.types)
    types = tuple(each[number % len(each)] for each in every)
    return events(rows, *VALUES, types=types, time=pa.int64() if integral else pa.timestamp("us", "UTC"))


def seeds() -> st.SearchStrategy[random.Random]:
    """Return generators of rows and cuts: to draw each of these by itself takes longer than all else."""
    return st.builds(random.Random, st.integers(0, 2**32 - 1))


def cuts(theta: Theta) -> st.SearchStrategy[list[Batch]]:
    """Return the rows of a case cut into micro-batches."""
    return seeds().map(lambda chance: any_cut(chance, theta.tables))


def any_cut(chance: random.Random, tables: Mapping[str, pa.Table], most: int = 5) -> list[Batch]:
    """Return rows cut into micro-batches, each stream at its own places."""
    count = chance.randint(1, most)
    places = {
        alias: sorted(chance.randint(0, table.num_rows) for _ in range(count - 1))
        for alias, table in tables.items()
    }
    return cut(tables, places)


def hinted(route: str, workers: Sequence[int] = (1, 2, 3, 7, 16)) -> st.SearchStrategy[tuple[str, ...]]:
    """Return hints for a route, on all workers or on a number of them, and for kernel and bounds.

    With these there are few plans to weigh.
    """
    parts = [
        st.sampled_from(["ALGORITHM(MW)", "ALGORITHM(NLW)"]),
        st.sampled_from(["BOUNDS(EXACT)", "BOUNDS(LCA)", "BOUNDS(GCA)"]),
    ]
    if route in WORDS:
        numbers = ("", *(f", {number}" for number in workers))
        parts.append(st.sampled_from([f"PLAN({WORDS[route]}{number})" for number in numbers]))
    return st.tuples(*parts)


@st.composite
def changed(draw: st.DrawFn, plan: PhysicalPlan) -> PhysicalPlan:
    """Return a plan with another kernel in each stage, and other bounds, as hints may ask at a restart."""
    closed = all(bound is not None for row in plan.windows.tables[Clock.TIME] for bound in row)
    bounds = draw(st.sampled_from(Bounds)) if closed else Bounds.EXACT
    stages = []
    for each in plan.stages:
        known = [
            name for name in KERNELS if refusal_of((name,), keyed=each.keyed, indexed=each.indexed) is None
        ]
        stages.append(replace(each, kernels=kernels_of(draw(st.sampled_from(known))), bounds=bounds))
    return arranged(replace(plan, stages=tuple(stages)), [chosen_orders(each) for each in plan.stages])
