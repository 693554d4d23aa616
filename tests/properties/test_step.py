"""The pure step of the join under random plans, data, cuts, lateness and crashes, against brute force."""

import copy
import dataclasses
import itertools
import operator
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wjoin.executor import multiway, sifting
from wjoin.executor.arrivals import Arrivals
from wjoin.executor.local import MemoryStore
from wjoin.executor.state.manifest import Manifest, decode_manifest
from wjoin.executor.state.slices import Stored
from wjoin.executor.state.writing import Cutting
from wjoin.executor.step import Counts, StageLogic
from wjoin.executor.stretches import STRETCH_BYTES
from wjoin.parts.kernels import adaptive
from wjoin.parts.kernels.registry import KERNELS, kernels_of
from wjoin.parts.routes.route import Role
from wjoin.planner.catalog import Estimate
from wjoin.planner.edges import with_columns
from wjoin.planner.expressions import Call, Constant, Expression, Input
from wjoin.planner.physical import (
    Band,
    Bounds,
    Comparison,
    Condition,
    KeyCode,
    Output,
    Passes,
    PhysicalPlan,
    PredicateCheck,
    ScanColumn,
    Shipping,
    Stage,
    StageInput,
    StreamScan,
    TimeKind,
    UpperBounds,
)
from wjoin.planner.probes import Orders, arranged, chosen_orders
from wjoin.udfs.predicate import Predicate

NAMES = (*KERNELS, adaptive.NAME)


PREDICATES = {
    "near": Predicate("near", lambda left, right: abs(left - right) <= 1),
    "total": Predicate("total", lambda *values: sum(values), returns="double"),
}
"""Predicates over values of two streams, and of two or three."""


@pytest.fixture(scope="module", autouse=True)
def small_blocks() -> Iterator[None]:
    """Conditions are tested in blocks, and predicates called for parts, however few pairs there are."""
    with (
        patch.multiple(sifting, TUPLES=2, ROWS=3, _LEAST_PAIRS=1, _LEAST_SHARE=0.01),
        patch.object(multiway, "CALL_BYTES", 40),
    ):
        yield


STRETCHES = st.sampled_from([STRETCH_BYTES, 300, 100, 1])

Row = tuple[int, int, int | None]  # key, time, value


class StrictStore(MemoryStore):
    """Slices in a dictionary, none written twice; a crash is a return to an earlier copy."""

    def save(self, name: str, batch: pa.RecordBatch, cutting: Cutting) -> Stored:
        assert name not in self.slices
        return super().save(name, batch, cutting)


@dataclass
class Worker:
    """One worker of every stage of a plan, run batch by batch."""

    plan: PhysicalPlan
    stores: list[StrictStore]
    manifests: list[bytes]
    stretch: int = STRETCH_BYTES

    @classmethod
    def fresh(cls, plan: PhysicalPlan) -> "Worker":
        empty = [Manifest.fresh("plan", 1, len(stage.inputs)).encode() for stage in plan.stages]
        return cls(plan, [StrictStore() for _ in plan.stages], empty)

    def run(self, batches: dict[int, list[Row]], counts: Counts) -> list[tuple[Row, ...]]:
        """Run one micro-batch; return the combinations of the last stage in stream order."""
        outputs: list[list[pa.RecordBatch]] = []
        for number, stage in enumerate(self.plan.stages):
            logic = StageLogic(self.plan, number, self.stretch, PREDICATES)
            arrivals = Arrivals([[] for _ in stage.inputs])
            for place, each in enumerate(stage.inputs):
                new = outputs[each.stage] if each.stage is not None else []
                if each.stage is None and batches[each.members[0]]:
                    new = [block(self.plan, each.members[0], batches[each.members[0]], each.columns)]
                for one in new:
                    arrivals.add(place, Role.BOTH, one, logic.shapes, self.stretch)
            for stream in stage.members:
                times = [time for _, time, _ in batches[stream]]
                if times:
                    arrivals.seen[stream] = max(times)
            manifest = decode_manifest(self.manifests[number], "plan", 1)
            results: list[pa.RecordBatch] = []
            stage_counts = Counts()
            for result in logic.stream(manifest, self.stores[number], arrivals, stage_counts):
                if isinstance(result, Manifest):
                    self.manifests[number] = result.encode()
                else:
                    results.append(result)
            for stream, report in stage_counts.streams.items():
                counts.of(stream).add("late", report["late"])
            outputs.append(results)
        return [combination for result in outputs[-1] for combination in combinations(self.plan, result)]

    def kept(self, number: int) -> list[list[int]]:
        """Return for each input of a stage the row counts of its slices."""
        manifest = decode_manifest(self.manifests[number], "plan", 1)
        return [[each.rows for each in group] for group in manifest.slices]


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


def closure(upper: list[list[int | None]]) -> UpperBounds | None:
    size = len(upper)
    for middle, first, second in itertools.product(range(size), repeat=3):
        left, right = upper[first][middle], upper[middle][second]
        if left is not None and right is not None:
            known = upper[first][second]
            upper[first][second] = left + right if known is None else min(known, left + right)
    if any((upper[n][n] or 0) < 0 for n in range(size)):
        return None
    return tuple(tuple(row) for row in upper)


@st.composite
def plans(draw: st.DrawFn) -> PhysicalPlan:
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
        branches = [tuple(tuple(0 if i == j else 5 for j in range(count)) for i in range(count))]
    hull = tuple(
        tuple(
            None
            if any(each[i][j] is None for each in branches)
            else max(each[i][j] or 0 for each in branches)
            for j in range(count)
        )
        for i in range(count)
    )
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
    comparisons = (Comparison((0, 0), draw(st.sampled_from(["<", "<=", "=", "<>"])), (count - 1, 0)),)
    comparisons = draw(st.sampled_from([(), comparisons]))
    bands = tuple(draw(st.lists(_bands(count), max_size=2)))
    conditions = tuple(draw(st.lists(_conditions(count), max_size=2)))
    checks = tuple(draw(st.lists(_predicate_checks(count), max_size=2)))
    route = "hash" if hashed else "single"
    bounds, kernel = draw(st.sampled_from(Bounds)), draw(st.sampled_from(NAMES))
    chosen: list[Orders | None] = []

    def stage(inputs: list[StageInput]) -> Stage:
        members = {member for one in inputs for member in one.members}
        here = tuple(each for each in comparisons if {0, count - 1} <= members)
        near = tuple(each for each in bands if each.streams <= members)
        tested = tuple(each for each in conditions if each.streams <= members)
        called = tuple(each for each in checks if each.streams <= members)
        inputs = [
            dataclasses.replace(each, index=draw(st.sampled_from(_touching(near, each)))) for each in inputs
        ]
        numbers = range(len(inputs))
        orders = {first: draw(st.permutations([n for n in numbers if n != first])) for first in numbers}
        chosen.append(draw(st.sampled_from([None, orders])))
        kernels = kernels_of(kernel)
        return Stage(tuple(inputs), bounds, route, kernels, Shipping.BLOCKS, here, near, tested, called)

    def source(n: int) -> StageInput:
        return StageInput((n,), None, (n, 0) if hashed else None)

    if count > 2 and draw(st.booleans()):
        stages = [stage([source(0), source(1)])]
        for n in range(2, count):
            members = tuple(range(n))
            inner = StageInput(members, n - 2, (draw(st.sampled_from(members)), 0) if hashed else None)
            stages.append(stage(draw(st.permutations([inner, source(n)]))))
    else:
        stages = [stage([source(n) for n in range(count)])]
    many = tuple(branches) if len(branches) > 1 else ()
    passes = draw(st.sampled_from(Passes))
    outputs = (Output("", _columns(count), many, frozenset({"time"})),)
    kind = TimeKind.INTEGRAL
    drawn = PhysicalPlan(scans, kind, hull, many, tuple(stages), outputs, passes=passes)
    return arranged(with_columns(drawn), chosen)


def _columns(count: int) -> tuple[tuple[int, int], ...]:
    return tuple((stream, number) for stream in range(count) for number in range(2))


@st.composite
def _bands(draw: st.DrawFn, count: int) -> Band:
    left, right = sorted(draw(st.permutations(range(count)))[:2])
    low = draw(st.none() | st.integers(-3, 2))
    highs = st.integers(0, 3).map(lambda width: (low or 0) + width)
    high = draw(highs if low is None else st.none() | highs)
    return Band((left, 0), (right, 0), low, high, 0.0, checked=False)


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
    streams = draw(st.permutations(range(count)))
    if draw(st.booleans()):
        limits, operands = ((("=", draw(st.sampled_from([0.0, 1.0]))),), streams[:2])
        return PredicateCheck(
            "near", tuple((each, 0) for each in operands), limits, Estimate(1), Estimate(0.5)
        )
    operators = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    limits = tuple(draw(st.lists(st.tuples(operators, st.integers(0, 6).map(float)), min_size=1, max_size=2)))
    arguments = (*((each, 0) for each in streams[:3]), draw(st.integers(0, 1)))
    return PredicateCheck("total", arguments, limits, Estimate(1), Estimate(0.5))


def _held(check: PredicateCheck, combination: tuple[Row, ...]) -> bool:
    given = [combination[each[0]][2] if isinstance(each, tuple) else each for each in check.arguments]
    values = [value for value in given if value is not None]
    if len(values) < len(given):
        return False
    found = PREDICATES[check.predicate](*values)
    return all(_SQL[sign](found, limit) for sign, limit in check.limits)


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
    return _value(condition.expression, [combination[stream][2] for stream, _ in condition.operands]) is True


def _touching(bands: Sequence[Band], each: StageInput) -> list[Band | None]:
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
    branches = plan.branches or (plan.upper,)
    hashed = bool(plan.streams[0].codes)
    operators = {"<": int.__lt__, "<=": int.__le__, "=": int.__eq__, "<>": int.__ne__}
    comparisons = plan.stages[-1].comparisons
    for combination in itertools.product(*rows):
        times = [time for _, time, _ in combination]
        keys = {key for key, _, _ in combination}
        if hashed and len(keys) > 1:
            continue
        if not all(_inside(band, combination) for stage in plan.stages for band in stage.bands):
            continue
        if not all(_true(condition, combination) for condition in plan.stages[-1].conditions):
            continue
        if not all(_held(check, combination) for check in plan.stages[-1].predicates):
            continue
        if not any(
            all(
                bound is None or times[j] - times[i] <= bound
                for i, line in enumerate(upper)
                for j, bound in enumerate(line)
            )
            for upper in branches
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


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(plans(), st.data())
def test_any_cut_any_disorder_and_any_crash_give_the_defined_result(
    plan: PhysicalPlan, data: st.DataObject
) -> None:
    assert_defined_result(plan, data, NAMES)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plans().filter(lambda plan: bool(plan.streams[0].codes)), st.data())
def test_a_worker_that_changes_its_kernel_all_the_time(plan: PhysicalPlan, data: st.DataObject) -> None:
    with patch.object(adaptive, "LEAST_ROWS", 1), patch.object(adaptive, "CHANGE", 0.01):
        assert_defined_result(with_choice(plan, kernel="adaptive"), data, ["adaptive"])


def with_choice(plan: PhysicalPlan, *, kernel: str, bounds: Bounds | None = None) -> PhysicalPlan:
    """Return a plan with a kernel, and with other bounds, in all its stages."""
    stages = tuple(
        dataclasses.replace(each, kernels=kernels_of(kernel), bounds=bounds or each.bounds)
        for each in plan.stages
    )
    orders = [chosen_orders(each) for each in plan.stages]
    return arranged(dataclasses.replace(plan, stages=stages), orders)


ENDS = tuple(end + step for end, step in itertools.product((-(1 << 63), (1 << 63) - 8), range(8)))
"""The times with the least and the greatest numbers that there are."""


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(plans(), st.data())
def test_no_sum_overflows_at_the_ends_of_64_bits(plan: PhysicalPlan, data: st.DataObject) -> None:
    assert_defined_result(plan, data, NAMES, ENDS)


def assert_defined_result(
    plan: PhysicalPlan, data: st.DataObject, kernels: Collection[str], ends: Sequence[int] = ()
) -> None:
    """Assert that a run over random micro-batches with crashes gives what brute force does.

    Where there are ``ends``, half of the rows have one of them as event time.
    """
    worker = Worker.fresh(plan)
    seen: dict[int, int] = {}
    on_time: list[list[Row]] = [[] for _ in plan.streams]
    late = 0
    counts = Counts()
    produced: Counter[tuple[Row, ...]] = Counter()
    clock = 0
    for _ in range(data.draw(st.integers(1, 6))):
        clock += data.draw(st.integers(0, 6))
        worker.stretch = data.draw(STRETCHES)
        times = st.integers(clock - 5, clock + 5)
        times = times | st.sampled_from(ends) if ends else times
        row = st.tuples(st.integers(0, 1), times, st.none() | st.integers(0, 3))
        batches = {n: data.draw(st.lists(row, max_size=4)) for n in range(len(plan.streams))}
        for n, rows in batches.items():
            mark = seen[n] - plan.streams[n].delay if n in seen else None
            for each in rows:
                if mark is not None and each[1] < mark:
                    late += 1
                else:
                    on_time[n].append(each)
        for n, rows in batches.items():
            if rows:
                seen[n] = (
                    max(time for _, time, _ in rows)
                    if n not in seen
                    else max(seen[n], *(t for _, t, _ in rows))
                )
        first = None
        if data.draw(st.integers(0, 4)) == 0:
            # An attempt that dies after its work and before its commit leaves no results.
            first = copy.deepcopy(worker)
            first.run({n: data.draw(st.permutations(rows)) for n, rows in batches.items()}, Counts())
        if data.draw(st.integers(0, 3)) == 0:
            # A hint may change between two runs on one checkpoint.
            bounds = data.draw(st.none() | st.sampled_from(Bounds))
            kernel = data.draw(st.sampled_from(list(kernels)))
            worker.plan = with_choice(worker.plan, kernel=kernel, bounds=bounds)
        produced.update(worker.run(batches, counts))
        if first is not None and data.draw(st.booleans()):
            # Spark may keep what it wrote of the state, and go on with the next attempt's manifest.
            for store, kept in zip(worker.stores, first.stores, strict=True):
                store.slices.update(
                    {name: each for name, each in kept.slices.items() if name in store.slices}
                )
    assert produced == expected(plan, on_time)
    assert sum(report["late"] for report in counts.streams.values()) == late


def comparisons(plan: PhysicalPlan, bounds: Bounds, kernel: str, rows: dict[int, list[Row]]) -> int:
    """How many comparisons a choice costs in the first stage, over complete inputs."""
    scans = tuple(dataclasses.replace(each, streaming=False) for each in plan.streams)
    chosen = with_choice(dataclasses.replace(plan, streams=scans), kernel=kernel, bounds=bounds)
    logic = StageLogic(chosen, 0, predicates=PREDICATES)
    inputs = logic.stage.inputs
    arrivals = Arrivals(
        [
            [(Role.BOTH, block(logic.plan, each.members[0], rows[each.members[0]], each.columns))]
            for each in inputs
        ]
    )
    counts = Counts()
    list(logic.batch(arrivals, counts))
    return counts.stage["comparisons"]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plans(), st.sampled_from(NAMES), st.data())
def test_tables_in_stretches(plan: PhysicalPlan, kernel: str, data: st.DataObject) -> None:
    """Complete inputs that are joined bit by bit have the results that brute force finds."""
    row = st.tuples(st.integers(0, 2), st.integers(0, 20), st.none() | st.integers(0, 3))
    rows = {n: data.draw(st.lists(row, max_size=8)) for n in range(len(plan.streams))}
    scans = tuple(dataclasses.replace(each, streaming=False) for each in plan.streams)
    plan = with_choice(dataclasses.replace(plan, streams=scans), kernel=kernel)
    outputs: list[list[pa.RecordBatch]] = []
    for number, stage in enumerate(plan.stages):
        logic = StageLogic(plan, number, data.draw(STRETCHES), PREDICATES)
        arrivals = Arrivals([[] for _ in stage.inputs])
        for place, each in enumerate(stage.inputs):
            stream = each.members[0]
            new = (
                [block(plan, stream, rows[stream], each.columns)]
                if each.stage is None
                else outputs[each.stage]
            )
            for one in new:
                arrivals.add(place, Role.BOTH, one, logic.shapes, logic.stretch)
        outputs.append(list(logic.batch(arrivals, Counts())))
    found = Counter(each for result in outputs[-1] for each in combinations(plan, result))
    assert found == expected(plan, [rows[n] for n in range(len(plan.streams))])


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plans(), st.data())
def test_wider_bounds_and_nested_loops_compare_more(plan: PhysicalPlan, data: st.DataObject) -> None:
    row = st.tuples(st.integers(0, 2), st.integers(0, 20), st.none() | st.integers(0, 3))
    rows = {n: data.draw(st.lists(row, min_size=1, max_size=8)) for n in range(len(plan.streams))}
    cost = {(b, k): comparisons(plan, b, k, rows) for b in Bounds for k in NAMES}
    for kernel in NAMES:
        assert cost[Bounds.EXACT, kernel] <= cost[Bounds.LCA, kernel] <= cost[Bounds.GCA, kernel]
    for bounds in Bounds:
        assert max(cost[bounds, each] for each in NAMES) == cost[bounds, "nlw"]
        assert cost[bounds, "adaptive"] in (cost[bounds, "hw"], cost[bounds, "mw"])


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.integers(0, 5), st.integers(1, 15))
def test_state_follows_the_window(window: int, delay: int, per_batch: int) -> None:
    upper = ((0, window), (window, 0))
    scans = tuple(
        StreamScan(
            name,
            "ts",
            delay,
            (),
            (ScanColumn("v", "int", "v"), ScanColumn("key", "int", "key")),
            (KeyCode(("k",), ("bigint",), True, ()),),
            True,
        )
        for name in "AB"
    )
    inputs = tuple(StageInput((n,), None, (n, 0)) for n in range(2))
    stage = Stage(inputs, Bounds.EXACT, "hash", ("hw",), Shipping.BLOCKS)
    outputs = (Output("", _columns(2), (), frozenset({"time"})),)
    drawn = PhysicalPlan(scans, TimeKind.INTEGRAL, upper, (), (stage,), outputs)
    plan = arranged(with_columns(drawn), [None])
    worker = Worker.fresh(plan)
    for start in range(0, 50 * window, per_batch):
        times = range(start, start + per_batch)
        batch: list[Row] = [(time % 3, time, 0) for time in times]
        worker.run({0: batch, 1: batch}, Counts())
        mark = times[-1] - delay
        inside = times[-1] - max(mark - window, 0) + 1
        for slices in worker.kept(0):
            assert inside <= sum(slices) <= 1.5 * inside
            assert len(slices) <= 24
