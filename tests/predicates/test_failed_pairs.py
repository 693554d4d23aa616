"""A predicate that fails in the join: the rows are told by their times and the join's key."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.kit.local import LocalWorkers
from tests.plans.catalogue import plan
from wjoin.executor.counts import Counts
from wjoin.grammar.errors import WJoinError
from wjoin.udfs.predicate import Predicate

SECOND = 1_000_000
START = 1_767_225_600 * SECOND


def brittle(left: Any, right: Any) -> Any:
    if (left == 2).any():
        raise ArithmeticError("no two")
    return left < right


def told(where: str, codes: list[int], **values: list[Any]) -> str:
    """Return what a join says of rows one second apart, of which the third fails."""
    planned = plan(f"SELECT 1 FROM camera1 A, camera2 B WINDOW = 0 s WHERE {where} linked(A.speed, B.speed)")
    blocks = {}
    for stream in (0, 1):
        columns = {
            "t": range(START, START + 3 * SECOND, SECOND),
            "k": codes,
            "speed": [0.0, 1.0, 2.0],
            **values,
        }
        scan = planned.physical.streams[stream]
        named = {
            f"c{stream}_{n}": columns[each.expression.partition(".")[2]]
            for n, each in enumerate(scan.columns)
        }
        named |= {f"t{stream}": columns["t"], f"k{stream}_0": columns["k"]}
        wanted = planned.physical.stages[0].inputs[stream].columns
        blocks[stream] = pa.record_batch({name: pa.array(list(named[name])) for name in wanted})
    workers = LocalWorkers(planned.physical, predicates={"linked": Predicate("Linked", brittle)})
    with pytest.raises(WJoinError) as raised:
        workers.run(blocks, Counts())
    assert raised.value.code == "WJ706"
    return raised.value.message


TIME = "2026-01-01 00:00:02.000000 UTC"
ROWS = f"the predicate Linked failed for the rows of A at {TIME} and B at {TIME}"


def test_without_a_key_the_times_are_told() -> None:
    assert told("", [0, 0, 0]) == f"{ROWS}: ArithmeticError: no two"


def test_the_value_of_a_key_is_told() -> None:
    found = told("A.obj_id = B.obj_id AND", [5, 6, 7])
    assert found == f"{ROWS} with the key A.obj_id = 7: ArithmeticError: no two"


def test_a_key_of_days_is_told_as_days() -> None:
    days = [(np.datetime64("2024-02-28") + n).astype("datetime64[D]").astype(int) for n in range(3)]
    found = told("date(A.ts) = date(B.ts) AND", days)
    assert " with the key date(A.ts) = 2024-03-01: " in found


def test_all_parts_of_a_hashed_key_are_told_and_long_ones_cut() -> None:
    where = "A.obj_id = B.obj_id AND A.frame = B.frame AND"
    found = told(where, [91, 92, 93], obj_id=[5, 6, 7], frame=["a", "b", "it's " + 100 * "x"])
    assert f" with the key A.obj_id = 7 and A.frame = \"it's {54 * 'x'}…: Arith" in found
