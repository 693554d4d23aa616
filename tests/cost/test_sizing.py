"""Workers for a join, and the rate at which it falls behind, from the terms of its cost."""

import math

import pytest

from tests.plans.catalogue import plan
from wjoin.planner.cost.shed_share import Thresholds
from wjoin.planner.cost.sizing import sized
from wjoin.planner.explain.describe import describe
from wjoin.statements.advice import Machine, advice_text

TERMS = {"micro-batches": 0.1, "rows": 0.4, "comparisons": 0.2, "idle": 5.0}


def test_workers_share_what_rows_cost_and_not_what_micro_batches_do() -> None:
    assert sized(TERMS, 1).utilization == pytest.approx(0.6)
    assert sized(TERMS, 3).utilization == pytest.approx(0.2)


def test_so_many_workers_as_are_needed_bring_it_to_the_expected_share() -> None:
    needed = sized(TERMS, 1).needed
    assert needed == 2
    assert sized(TERMS, needed).utilization <= Thresholds().expected < sized(TERMS, needed - 1).utilization
    assert sized({"micro-batches": 0.1}, 1).needed == 1
    assert sized(TERMS, 1, expected=0.25).needed == 3


@pytest.mark.parametrize("workers", [1, 4])
def test_at_its_limit_workers_are_busy_all_of_the_time(workers: int) -> None:
    times = sized(TERMS, workers).limit
    grown = {"rows": 0.4 * times, "comparisons": 0.2 * times * times}
    assert sized(grown, workers).utilization == pytest.approx(1.0)


def test_without_pairs_the_limit_is_in_proportion_and_without_rows_there_is_none() -> None:
    assert sized({"rows": 0.25}, 2).limit == 8
    assert math.isinf(sized({"micro-batches": 0.5}, 1).limit)


def test_a_micro_batch_takes_what_is_fixed_and_what_has_come_meanwhile() -> None:
    found = sized(TERMS, 1, interval=3.0)
    assert found.batch == pytest.approx(0.3 + found.utilization * found.batch)
    assert math.isinf(sized({**TERMS, "rows": 2.0}, 1).batch)


def test_advice_says_how_busy_workers_are_and_what_helps() -> None:
    statement = "SELECT A.obj_id FROM camera1 A, camera2 B WINDOW = 1 HOUR WHERE A.obj_id = B.obj_id"
    document = describe(plan(statement))
    told = advice_text(document, Machine(2, 1))
    assert told.startswith("A = camera1, B = camera2\n  2,000 rows/s keep 2 tasks busy 2")
    assert "no statistics for camera1, camera2: run ANALYZE STREAM first" in told
    assert "falls behind from " in told
    needed = sized(document.chosen.terms, 2).needed
    assert needed > 1
    assert f"spark.sql.shuffle.partitions is 1: set it to {needed} or more" in told
    assert f"wjoin checkpoint repartition OLD NEW --partitions {needed}" in told


def test_advice_goes_by_the_settings_and_tells_of_executors() -> None:
    statement = "SELECT A.obj_id FROM camera1 A, camera2 B WINDOW = 1 HOUR WHERE A.obj_id = B.obj_id"
    document = describe(plan(statement))
    limits = Thresholds(0.05, 0.1, 0.8, 0.9)
    needed = sized(document.chosen.terms, 2, expected=0.1).needed
    memory = round(document.chosen.state_bytes * 2)
    told = advice_text(document, Machine(2, 100, cores=4, memory=memory, thresholds=limits))
    assert f"{needed} tasks, {-(-needed // 4)} executors, would be busy 10% of the time or less" in told
    assert ", 50% of wjoin.memory; " in told and " would make that 10%" in told
    assert "repartition" not in told


def test_tables_need_no_advice() -> None:
    document = describe(plan("SELECT A.ts FROM table1 A, table2 B WINDOW = 1 HOUR WHERE A.obj_id = B.obj_id"))
    told = advice_text(document, Machine(2, 2))
    assert told == "A = table1, B = table2: no join of streams by wjoin's own stages"
