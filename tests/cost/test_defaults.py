"""What is done where nothing is known: the order of streams, widths, and how much of a table a row meets."""

import random
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from tests.kit.expressions import Call, Compare, Expression, Field, Literal
from tests.kit.lateness import Batch
from tests.kit.local import LocalWorkers
from tests.kit.statement import Within
from tests.kit.tables import SECOND, events
from tests.plans.catalogue import PLACEHOLDER, FakeTypes, first_block, plan
from tests.properties.theta import VALUES, blocks, cut, planned, streams
from wjoin.executor import multiway
from wjoin.executor.arrivals import Arrivals
from wjoin.executor.counts import Counts
from wjoin.executor.step import StageLogic
from wjoin.executor.stretches import STRETCH_BYTES
from wjoin.parts.routes.route import Role
from wjoin.planner.catalog import Column, Delay, Estimate, Origin, Relation
from wjoin.planner.cost.model import CostSettings
from wjoin.planner.plan.block_columns import stored_column, time_name
from wjoin.planner.plan.probes import linked_first
from wjoin.planner.planning import PlannedSelect, plan_select
from wjoin.planner.request import Request

# The order of streams -------------------------------------------------------


def test_streams_that_a_condition_links_come_next():
    stage = plan(
        "SELECT A.frame FROM camera1 A, camera2 B, camera3 C, camera1 D WINDOW = 5 s "
        "WHERE similar(A.box, D.box) > 0.5 AND B.speed < D.speed AND abs(C.speed - B.speed) <= 1"
    ).physical.stages[0]
    assert linked_first(stage, [0], [1, 2, 3]) == (3, 1, 2)
    assert linked_first(stage, [2], [0, 1, 3]) == (1, 3, 0)
    assert linked_first(stage, [1], [3, 0, 2]) == (3, 0, 2)


def test_on_a_key_all_streams_are_linked():
    stage = plan(
        "SELECT A.frame FROM camera1 A, camera2 B, camera3 C WINDOW = 5 s "
        "WHERE A.obj_id = B.obj_id AND B.obj_id = C.obj_id AND A.speed < C.speed"
    ).physical.stages[0]
    assert linked_first(stage, [0], [1, 2]) == (1, 2)


def near(first: str, second: str) -> Expression:
    difference = Call("-", (Field(first, "v"), Field(second, "v")))
    return Compare(Call("abs", (difference,)), "<=", Literal(1))


def rows(number: int) -> pa.Table:
    chance = random.Random(number)
    made = [(1000 * number + n, n * SECOND // 10, 0, 0, chance.randrange(100)) for n in range(200)]
    return events(made, *VALUES)


def compared(hints: tuple[str, ...], batches: list[Batch]) -> int:
    statement = streams("ABC", Within(2 * SECOND), [near("A", "B"), near("B", "C")], [SECOND] * 3)
    made = planned(statement, (*hints, "ALGORITHM(MW)"))
    local, counts = LocalWorkers(made, 2), Counts()
    for batch in batches:
        local.run(blocks(made, batch), counts)
    return counts.stage["comparisons"]


@pytest.mark.parametrize("hints", [(), ("PLAN(ATR)",)])
def test_without_rates_two_streams_without_a_condition_meet_last(hints: tuple[str, ...]):
    batches = cut({alias: rows(place) for place, alias in enumerate("ABC")}, dict.fromkeys("ABC", (60, 130)))
    linked = compared(hints, batches)
    with patch.object(multiway, "linked_first", lambda stage, joined, others: others):
        assert compared(hints, batches) > 2 * linked


# Widths, and tables ---------------------------------------------------------


def weighed(
    kind: str, where: str, known: dict[str, float], stretch: float, window: str = "5 s"
) -> PlannedSelect:
    """Plan a join of two tables with a column x, of which this is known."""
    columns = (Column("id", "bigint"), Column("ts", "timestamp"), Column("x", kind))
    given = {name: Estimate(value, Origin.GIVEN) for name, value in known.items()}
    relations = (Relation(columns, "ts", {"ts": Delay(0)}, False, given),) * 2
    sql = (
        f"SELECT A.id, A.x, B.id AS other, B.x AS y FROM camera1 A, camera2 B WINDOW = {window} WHERE {where}"
    )
    costs = CostSettings(stretch=stretch)
    types = FakeTypes(relations)
    return plan_select(Request(sql, first_block(sql), relations, types, PLACEHOLDER, costs=costs))


def test_binary_columns_are_taken_to_be_wide():
    (known, _) = weighed("binary", "A.id < B.id", {}, STRETCH_BYTES).statistics
    assert known.width.value > 1000


@pytest.mark.parametrize(
    ("window", "kernel"), [("5 s", "ordered"), ("1 minute", "ordered"), ("100 ms", "mw")]
)
def test_a_band_of_tables_of_which_nothing_is_known(window: str, kernel: str):
    """A stretch of a table is a few windows long: a search for values meets few rows there."""
    found = weighed("double", "abs(A.x - B.x) <= 0.5", {}, STRETCH_BYTES, window)
    assert found.physical.stages[0].kernels == (kernel,)


@pytest.mark.parametrize("stretch", [8_000, 40_000, 10_000_000])
def test_rows_that_a_search_for_values_meets_in_stretches(stretch: int):
    count, rate, wide = 3000, 10.0, 1000.0
    known = {"rate": rate, "rows": count, "minimum.x": 0.0, "maximum.x": wide}
    found = weighed("double", "abs(A.x - B.x) <= 50", known, stretch)
    ordered = next(each for each in found.candidates if each.plan.stages[0].kernels == ("ordered",))
    made = ordered.plan
    logic = StageLogic(made, 0, stretch)
    chance, arrivals, counts = np.random.default_rng(5), Arrivals([[], []]), Counts()
    for stream in range(2):
        columns = {time_name(stream): np.sort(chance.integers(0, int(count / rate * SECOND), count))}
        for number, each in enumerate(made.streams[stream].columns):
            values = chance.random(count) * wide if each.type == "double" else np.arange(count)
            columns[stored_column(made, stream, number).name] = values
        arrivals.blocks[stream].append((Role.BOTH, pa.RecordBatch.from_pydict(columns)))
    assert sum(made.rows.num_rows for made in logic.batch(arrivals, counts)) > 100
    expected = ordered.estimated.cost.comparisons * count / rate
    assert counts.stage["comparisons"] == pytest.approx(expected, rel=0.5)
