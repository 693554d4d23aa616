"""The rules by which state is written: in the manifest, followed by another plan and another version."""

import copy
import json
from collections import Counter
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from tests.kit.local import MemoryStore
from tests.plans.catalogue import plan
from wjoin.executor.arrivals import Arrivals
from wjoin.executor.counts import Counts
from wjoin.executor.state import writing
from wjoin.executor.state.identity import fingerprint, stage_identity
from wjoin.executor.state.manifest import Manifest, decode_manifest
from wjoin.executor.state.writing import CUTTING, Cutting, Writing
from wjoin.executor.step import StageLogic
from wjoin.grammar.errors import WJoinError
from wjoin.parts.routes.route import Role
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.stage_kinds import Retention

SQL = "SELECT {hint} A.v FROM ticks A, ticks B WINDOW (A, B) BETWEEN 2 AND 5 WHERE A.w = B.w"
HW, MW = (plan(SQL.format(hint=f"/*+ ALGORITHM({each}) */")).physical for each in ("HW", "MW"))


def run(plan: PhysicalPlan, manifest: Manifest, store: MemoryStore, start: int) -> Manifest:
    """Run a micro-batch of 40 rows of each stream."""
    logic = StageLogic(plan, 0)
    times = np.arange(start, start + 40)
    blocks = []
    for each in logic.stage.inputs:
        values = {name: times if name.startswith("t") else times % 7 for name in each.columns}
        blocks.append([(Role.BOTH, pa.RecordBatch.from_pydict(values))])
    arrivals = Arrivals(blocks, dict.fromkeys(logic.stage.members, int(times[-1])))
    *_, after = logic.stream(manifest, store, arrivals, Counts())
    assert isinstance(after, Manifest)
    return after


def test_a_repeated_micro_batch_writes_the_same_whatever_plan_and_version_repeat_it() -> None:
    manifest, store = Manifest.fresh("plan", 1, 2), MemoryStore()
    for start in (0, 10, 20, 30):
        manifest = run(HW, manifest, store, start)
    stores = [copy.deepcopy(store) for _ in range(3)]
    first = run(HW, manifest, stores[0], 40)
    other_plan = run(MW, manifest, stores[1], 40)
    newer = replace(CUTTING, merged_at_once=2, large_slice=100, dead_share=0.0)
    with patch.object(writing, "CUTTING", newer):
        newer_version = run(HW, manifest, stores[2], 40)
    assert first.slices == other_plan.slices == newer_version.slices
    assert stores[0] == stores[1] == stores[2]
    # What comes after is written by the rules of whoever has written last.
    assert other_plan.writing is not None
    assert other_plan.writing.orders == ("time", "time")
    assert newer_version.writing is not None
    assert newer_version.writing.cutting == newer
    assert run(HW, newer_version, stores[2], 50).slices != run(HW, first, stores[0], 50).slices


@pytest.mark.parametrize(("at_once", "costly"), [((2, 6), 1), ((6, 2), 1 << 20)], ids=["costly", "small"])
def test_as_many_slices_of_one_size_gather_as_their_bytes_say(at_once: tuple[int, int], costly: int) -> None:
    small, large = at_once
    rules = replace(CUTTING, merged_at_once=small, costly_slice=costly, costly_at_once=large)
    manifest, store = Manifest.fresh("plan", 1, 2), MemoryStore()
    counted: list[int] = []
    with patch.object(writing, "CUTTING", rules):
        for start in range(12):
            manifest = run(HW, manifest, store, start)
            for group in manifest.slices:
                counted += Counter(each.rows.bit_length() // 2 for each in group).values()
    assert max(counted) == max(at_once) - 1


def test_the_first_micro_batch_is_written_the_same_by_every_plan() -> None:
    stores = [MemoryStore(), MemoryStore()]
    first, second = (
        run(each, Manifest.fresh("plan", 1, 2), store, 0)
        for each, store in zip((HW, MW), stores, strict=True)
    )
    assert first.slices == second.slices
    assert stores[0] == stores[1]


def test_rules_come_back_as_they_were_and_unknown_ones_are_refused() -> None:
    kept = (Retention(1, ((0, 5), (2, None))),)
    rules = Writing(("key", "value c0_1"), (kept, ()), Cutting(3, 1000, 0.5, 4000, 2000, 500, 50, 7, "lz4"))
    manifest = Manifest("plan", 2, 4, {0: 7}, ((), ()), rules)
    assert decode_manifest(manifest.encode(), "plan", 2) == manifest
    body = json.loads(manifest.encode())
    body["writing"]["version"] += 1
    with pytest.raises(WJoinError, match="rules number 2, this version of wjoin knows number 1") as refused:
        decode_manifest(json.dumps(body).encode(), "plan", 2)
    assert refused.value.code == "WJ701"


def test_the_identity_of_a_stage_is_what_stands_here() -> None:
    """A checkpoint holds it: to change it takes a new number of the state format."""
    assert stage_identity(HW, HW.stages[0]) == stage_identity(MW, MW.stages[0]) == IDENTITY
    assert fingerprint(HW, HW.stages[0]) == FINGERPRINT


IDENTITY = {
    "time": "integral",
    "streams": [
        {
            "streaming": True,
            "event_time": "n",
            "delay": 3,
            "filters": [],
            "columns": [["$0 . v", "int", "v"]],
            "codes": [[["$0 . w"], ["int"], True, []]],
        },
        {
            "streaming": True,
            "event_time": "n",
            "delay": 3,
            "filters": [],
            "columns": [],
            "codes": [[["$1 . w"], ["int"], True, []]],
        },
    ],
    "windows": [[0, 5], [-2, 0]],
    "inputs": [
        {
            "members": [0],
            "stage": None,
            "key": [0, 0],
            "columns": ["t0", "k0_0", "c0_0"],
            "origin": None,
            "meets": None,
            "gathered": False,
            "held": False,
        },
        {
            "members": [1],
            "stage": None,
            "key": [1, 0],
            "columns": ["t1", "k1_0"],
            "origin": None,
            "meets": None,
            "gathered": False,
            "held": False,
        },
    ],
    "route": "hash",
    "slice": None,
    "ranged": None,
    "bucket": None,
    "copies": 1,
    "master": 0,
    "comparisons": [],
    "bands": [],
}
FINGERPRINT = "a345afe631da9613"
