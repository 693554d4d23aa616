"""Random plans, rows for them, and their result by definition."""

import dataclasses
import itertools
import operator
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from wjoin.parts.kernels import adaptive
from wjoin.parts.kernels.registry import KERNELS, kernels_of
from wjoin.parts.routes.route import Placement
from wjoin.planner.catalog import Estimate
from wjoin.planner.conditions.expressions import Call, Constant, Expression, Input
from wjoin.planner.plan.checks import Band, Comparison, Condition, PredicateCheck, of_kind
from wjoin.planner.plan.edges import with_columns
from wjoin.planner.plan.physical import (
    KeyCode,
    Output,
    Passes,
    PhysicalPlan,
    ScanColumn,
    StreamScan,
    TimeKind,
)
from wjoin.planner.plan.probes import Orders, arranged, chosen_orders
from wjoin.planner.plan.stage_kinds import Bounds, Join, Joined, Scanned, Stage, StageEdge
from wjoin.planner.windows.bounds import Windows, hull
from wjoin.udfs.predicate import Predicate

NAMES = (*KERNELS, adaptive.NAME)
"""What a stage may find partners by."""

PREDICATES = {
    "near": Predicate("near", lambda left, right: abs(left - right) <= 1),
    "total": Predicate("total", lambda *values: sum(values), returns="double"),
}
"""Predicates over values of two streams, and of two or three."""


Row = tuple[int, int, int | None]  # key, time, value


def block(plan: PhysicalPlan, stream: int, rows: list[Row], names: Collection[str]) -> pa.RecordBatch:
    """Return rows of a stream as a block with the columns ``names``."""
    columns = {
        f"t{stream}": pa.array([time for _, time, _ in rows], pa.int64()),
        f"c{stream}_0": pa.array([value for _, _, value in rows], pa.int64()),
        f"c{stream}_1": pa.array([key for key, _, _ in rows], pa.int64()),
    }
    for code in range(len(plan.streams[stream].codes)):
        columns[f"k{stream}_{code}"] = pa.array([key for key, _, _ in rows], pa.int64())
    return pa.RecordBatch.from_pydict({name: columns[name] for name in names})


def combinations(plan: PhysicalPlan, result: pa.RecordBatch) -> list[tuple[Row, ...]]:
    columns = result.to_pydict()
    streams = []
    for stream, scan in enumerate(plan.streams):
        keys = columns[f"c{stream}_1"] if scan.codes else [0] * result.num_rows
        streams.append(list(zip(keys, columns[f"t{stream}"], columns[f"c{stream}_0"], strict=True)))
    return list(zip(*streams, strict=True))


def closure(upper: list[list[int | None]]) -> Windows | None:
    size = len(upper)
    for middle, first, second in itertools.product(range(size), repeat=3):
        left, right = upper[first][middle], upper[middle][second]
        if left is not None and right is not None:
            known = upper[first][second]
            upper[first][second] = left + right if known is None else min(known, left + right)
    if any((upper[n][n] or 0) < 0 for n in range(size)):
        return None
    return Windows.of(upper)


@st.composite
def plans(draw: st.DrawFn, *, near: bool = False) -> PhysicalPlan:
    """Draw a plan; ``near``: of joins of two whose inputs have a band that is closed on both sides."""
    count = draw(st.integers(2, 4))
    branches = []
    for _ in range(draw(st.sampled_from([1, 1, 2]))):
        upper: list[list[int | None]] = [[0 if i == j else None for j in range(count)] for i in range(count)]
        for i, j in [(n, n + 1) for n in range(count - 1)] + draw(st.sampled_from([[], [(0, count - 1)]])):
            low = draw(st.integers(-6, 4))
            high = low + draw(st.integers(0, 8))
            upper[i][j], upper[j][i] = high, -low
            if draw(st.integers(0, 7)) == 0:
                upper[j][i] = None
        closed = closure(upper)
        if closed is not None:
            branches.append(closed)
    if not branches:
        branches = [Windows.of([[0 if i == j else 5 for j in range(count)] for i in range(count)])]
    hashed = draw(st.booleans())
    code = KeyCode(("k",), ("bigint",), True, ())
    scans = tuple(
        StreamScan(
            alias="ABCD"[n],
            event_time="ts",
            delay=draw(st.integers(0, 4)),
            filters=(),
            columns=(ScanColumn("v", "int", "v"), ScanColumn("key", "int", "key")),
            codes=(code,) if hashed else (),
            streaming=True,
        )
        for n in range(count)
    )
    comparisons = (Comparison((0, 0), draw(st.sampled_from(["<", "<=", "=", "<>"])), (count - 1, 0), "int"),)
    comparisons = draw(st.sampled_from([(), comparisons]))
    bands = tuple(draw(st.lists(_bands(count), max_size=2)))
    conditions = tuple(draw(st.lists(_conditions(count), max_size=2)))
    checks = tuple(draw(st.lists(_predicate_checks(count), max_size=2)))
    route = "hash" if hashed else "single"
    bounds, kernel = draw(st.sampled_from(Bounds)), draw(st.sampled_from(NAMES))
    chosen: list[Orders | None] = []

    def stage(inputs: list[StageEdge]) -> Stage:
        members = {member for one in inputs for member in one.members}
        here = tuple(each for each in comparisons if {0, count - 1} <= members)
        touching = tuple(each for each in bands if each.streams <= members)
        if near:
            touching = (*touching, draw(_closed_bands(*(each.members for each in inputs))))
        tested = tuple(each for each in conditions if each.streams <= members)
        called = tuple(each for each in checks if each.streams <= members)
        inputs = [
            dataclasses.replace(each, index=draw(st.sampled_from(_touching(touching, each))))
            for each in inputs
        ]
        numbers = range(len(inputs))
        orders = {first: draw(st.permutations([n for n in numbers if n != first])) for first in numbers}
        chosen.append(draw(st.sampled_from([None, orders])))
        kernels = kernels_of(kernel)
        return Join(tuple(inputs), bounds, Placement(route), kernels, (*here, *touching, *tested, *called))

    def source(n: int) -> StageEdge:
        return StageEdge(Scanned(n), (n, 0) if hashed else None)

    if count > 2 and (near or draw(st.booleans())):
        stages = [stage([source(0), source(1)])]
        for n in range(2, count):
            members = tuple(range(n))
            inner = StageEdge(Joined(n - 2, members), (draw(st.sampled_from(members)), 0) if hashed else None)
            stages.append(stage(draw(st.permutations([inner, source(n)]))))
    else:
        stages = [stage([source(n) for n in range(count)])]
    many = tuple(branches) if len(branches) > 1 else ()
    passes = draw(st.sampled_from(Passes))
    outputs = (Output("", columns(count), many, frozenset({"time"})),)
    kind = TimeKind.INTEGRAL
    drawn = PhysicalPlan(scans, kind, hull(branches), many, tuple(stages), outputs, passes=passes)
    return arranged(with_columns(drawn), chosen)


def columns(count: int) -> tuple[tuple[int, int], ...]:
    return tuple((stream, number) for stream in range(count) for number in range(2))


@st.composite
def _bands(draw: st.DrawFn, count: int) -> Band:
    left, right = sorted(draw(st.permutations(range(count)))[:2])
    low = draw(st.none() | st.integers(-3, 2))
    highs = st.integers(0, 3).map(lambda width: (low or 0) + width)
    high = draw(highs if low is None else st.none() | highs)
    return Band((left, 0), (right, 0), low, high, 0.0, checked=False)


@st.composite
def _closed_bands(draw: st.DrawFn, first: tuple[int, ...], second: tuple[int, ...]) -> Band:
    left, right = sorted((draw(st.sampled_from(first)), draw(st.sampled_from(second))))
    low = draw(st.integers(-3, 2))
    slack, width = draw(st.sampled_from([(0.0, 0), (0.0, 2), (2.0**-48, 1)]))
    return Band((left, 0), (right, 0), low, low + width, slack, checked=False)


@st.composite
def _conditions(draw: st.DrawFn, count: int) -> Condition:
    operands = tuple((stream, 0) for stream in draw(st.permutations(range(count)))[:3])
    first, *_, last = inputs = [Input(place, "bigint") for place in range(len(operands))]
    doubled = Call("*", (last, Constant(2, "int")), "bigint")
    total: Expression = first
    for each in inputs[1:]:
        total = Call(draw(st.sampled_from("+-")), (total, each), "bigint")
    compared = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"]))
    expressions: list[Call] = [
        Call(compared, (total, Constant(3, "int")), "boolean"),
        Call(compared, (first, doubled), "boolean"),
    ]
    expressions.append(Call("or", (expressions[0], Call("is null", (last,), "boolean")), "boolean"))
    expressions.append(Call("not", (Call("and", tuple(expressions[:2]), "boolean"),), "boolean"))
    return Condition(draw(st.sampled_from(expressions)), operands)


@st.composite
def _predicate_checks(draw: st.DrawFn, count: int) -> PredicateCheck:
    columns = [(stream, 0) for stream in draw(st.permutations(range(count)))]
    known = Estimate(1), Estimate(0.5)
    if draw(st.booleans()):
        return PredicateCheck("near", tuple(columns[:2]), draw(st.booleans()), *known)
    operators = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    limits = draw(st.lists(st.tuples(operators, st.integers(0, 6).map(float)), min_size=1, max_size=2))
    return PredicateCheck("total", (*columns[:3], draw(st.integers(0, 1))), tuple(limits), *known)


def _held(check: PredicateCheck, combination: tuple[Row, ...]) -> bool:
    given = [combination[each[0]][2] if isinstance(each, tuple) else each for each in check.arguments]
    values = [value for value in given if value is not None]
    if len(values) < len(given):
        return False
    found = PREDICATES[check.predicate](*values)
    if isinstance(check.asked, bool):
        return bool(found) is check.asked
    return all(_SQL[sign](found, limit) for sign, limit in check.asked)


def _value(expression: Expression, values: Sequence[int | None]) -> int | bool | None:
    """Return what SQL says of an expression."""
    match expression:
        case Input(place, _):
            return values[place]
        case Constant(int() as value, _):
            return value
        case Call("not", (inside,)):
            found = _value(inside, values)
            return None if found is None else not found
        case Call("is null", (inside,)):
            return _value(inside, values) is None
        case Call(function, (left, right)):
            sides = _value(left, values), _value(right, values)
            if function == "<=>":
                return sides[0] == sides[1]
            if function in ("and", "or"):
                decisive = function == "or"
                return decisive if decisive in sides else None if None in sides else not decisive
            if None in sides:
                return None
            return bool(_SQL[function](*sides)) if expression.type == "boolean" else _SQL[function](*sides)
    raise AssertionError(expression)


_SQL: dict[str, Any] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _true(condition: Condition, combination: tuple[Row, ...]) -> bool:
    return _value(condition.expression, [combination[stream][2] for stream, _ in condition.columns]) is True


def _touching(bands: Sequence[Band], each: StageEdge) -> list[Band | None]:
    """Return the bands with one side in an input, and None."""
    return [None, *(band for band in bands if len({band.left[0], band.right[0]} & set(each.members)) == 1)]


def _inside(band: Band, combination: tuple[Row, ...]) -> bool:
    left, right = combination[band.left[0]][2], combination[band.right[0]][2]
    if left is None or right is None:
        return False
    above = band.low is None or left - right >= band.low
    return above and (band.high is None or left - right <= band.high)


def expected(plan: PhysicalPlan, rows: list[list[Row]]) -> Counter[tuple[Row, ...]]:
    """Every combination by the definition, over rows that count."""
    found: Counter[tuple[Row, ...]] = Counter()
    branches = plan.branches or (plan.windows,)
    hashed = bool(plan.streams[0].codes)
    operators = {"<": int.__lt__, "<=": int.__le__, "=": int.__eq__, "<>": int.__ne__}
    comparisons = of_kind(plan.stages[-1].checks, Comparison)
    for combination in itertools.product(*rows):
        times = [time for _, time, _ in combination]
        keys = {key for key, _, _ in combination}
        if hashed and len(keys) > 1:
            continue
        if not all(_inside(band, combination) for stage in plan.stages for band in stage.bands):
            continue
        if not all(_true(condition, combination) for condition in of_kind(plan.stages[-1].checks, Condition)):
            continue
        if not all(_held(check, combination) for check in of_kind(plan.stages[-1].checks, PredicateCheck)):
            continue
        if not any(
            all(
                (bound := windows.between(i, j)) is None or times[j] - times[i] <= bound
                for i, j in itertools.product(range(windows.size), repeat=2)
            )
            for windows in branches
        ):
            continue
        if all(
            (left := combination[each.left[0]][2]) is not None
            and (right := combination[each.right[0]][2]) is not None
            and operators[each.operator](left, right)
            for each in comparisons
        ):
            found[combination if hashed else tuple((0, t, v) for _, t, v in combination)] += 1
    return found


def with_choice(plan: PhysicalPlan, *, kernel: str, bounds: Bounds | None = None) -> PhysicalPlan:
    """Return a plan with a kernel, and with other bounds, in all its stages."""
    stages = tuple(
        dataclasses.replace(each, kernels=kernels_of(kernel), bounds=bounds or each.bounds)
        for each in plan.stages
    )
    orders = [chosen_orders(each) for each in plan.stages]
    return arranged(dataclasses.replace(plan, stages=stages), orders)
