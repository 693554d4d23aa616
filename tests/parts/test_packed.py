"""Rows of a task on their way to workers that share them: the same ones whatever order they come in."""

import random
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from tests.kit.planned import block_of, plan_over, stream_of
from wjoin.executor.blocks import decode_block
from wjoin.executor.routing import Router
from wjoin.executor.spark import messages, pack
from wjoin.executor.spark.pack import Pack, Packs
from wjoin.parts.routes.route import Role

SQL = "SELECT /*+ PLAN(PSP, 3) */ A.n AS a FROM a A, b B WINDOW = 10 SECONDS WHERE A.x + B.x > 195"
PLAN = plan_over(SQL, [stream_of({"n": "bigint", "x": "double"})] * 2).physical
WORKERS = (0, 1, 2)


def kept(rows: pa.RecordBatch, order: list[int], size: int) -> dict[int, int]:
    """Return which worker keeps each row, by its time; they come in that order, in batches of a size."""
    batches = [rows.take(order[first : first + size]) for first in range(0, len(order), size)]
    router = Router.to(PLAN, PLAN.stages[0], 0, WORKERS)
    packed = Packs((Pack(PLAN, PLAN.stages[0].inputs[0].columns, router),))(iter(batches))
    found = {}
    for message in (each for batch in packed for each in batch.to_pylist()):
        if messages.is_block(message) and Role(message["kind"]).stores:
            times = decode_block(message["block"]).column("t0").to_pylist()
            found.update(dict.fromkeys(times, message["worker"]))
    return found


def test_few_rows_are_dealt_out_one_by_one_in_any_order() -> None:
    chance = random.Random(1)
    times = np.array(sorted(chance.sample(range(10**9), 90)), np.int64)
    rows = block_of(PLAN, 0, {"ts": times, "n": times, "x": times.astype(float)})
    order = list(range(90))
    found = kept(rows, order, 90)
    assert [list(found.values()).count(worker) for worker in WORKERS] == [30, 30, 30]
    in_turn = [found[time] for time in times.tolist()]
    assert in_turn[3:] == in_turn[:-3]
    for size in (1, 7, 90):
        chance.shuffle(order)
        assert kept(rows, order, size) == found
    # Those of a task with more rows go by their slices, which need no other rows.
    with patch.object(pack, "GATHERED_BYTES", 200):
        by_slices = kept(rows, list(range(90)), 7)
        chance.shuffle(order)
        assert kept(rows, order, 5) == by_slices != found
