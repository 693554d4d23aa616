"""The rows of a state as people see them are those that workers keep, each with all its columns."""

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from tests.kit.local import LocalWorkers
from tests.kit.planned import block_of, plan_over, stream_of
from wjoin.executor.counts import Counts
from wjoin.executor.spark.state_rows import Showing
from wjoin.executor.state.kept_columns import kept_join
from wjoin.planner.plan.physical import PhysicalPlan

SECOND = 1_000_000
STREAMS = [stream_of({"k": "bigint", "v": "bigint"}) for _ in range(3)]
OWN = {
    "stage": pa.int32(),
    "worker": pa.int32(),
    "stream": pa.string(),
    "kept_until": pa.timestamp("us", "UTC"),
    "waits_for": pa.map_(pa.string(), pa.timestamp("us", "UTC")),
    "matched": pa.bool_(),
    "bytes": pa.float64(),
    **{f"there{n}": pa.bool_() for n in range(3)},
}
STATEMENTS = {
    "one stage": "SELECT A.v, B.v AS w, C.k FROM a A, b B, c C WINDOW (A, B) = 5 SECONDS AND "
    "WINDOW (B, C) = 3 SECONDS WHERE A.k = B.k AND B.k = C.k",
    "two stages": "SELECT A.v, B.v AS w, C.k FROM a A, b B, c C WINDOW (A, B) = 5 SECONDS AND "
    "WINDOW (B, C) = 3 SECONDS WHERE A.k = B.k AND B.v = C.v",
    "tree": "SELECT A.v, B.v AS w, C.k FROM a A LEFT JOIN b B ON A.k = B.k LEFT JOIN c C ON A.v = C.v "
    "WINDOW (A, B) = 5 SECONDS AND WINDOW (A, C) = 3 SECONDS",
}


def showing(plan: PhysicalPlan) -> Showing:
    join = kept_join(plan)
    columns = {
        f"s{each.stream}_{each.name}": pa.timestamp("us", "UTC") if each.name == "ts" else pa.int64()
        for stage in join.stages
        for own in stage.inputs
        for each in own.columns
    }
    return Showing(join, 0, None, pa.schema({**OWN, **columns}))  # type: ignore[arg-type]  # Spark's schema


@pytest.mark.parametrize("name", STATEMENTS)
@pytest.mark.parametrize("partitions", [1, 3])
def test_rows_are_those_that_workers_keep(name: str, partitions: int) -> None:
    plan, chance = plan_over(STATEMENTS[name], STREAMS).physical, random.Random(5)
    workers, sent = LocalWorkers(plan, partitions), [list[tuple[int, int, int]]() for _ in range(3)]
    for step in range(8):
        blocks = {}
        for stream in range(3):
            rows = [
                (step * 2 * SECOND + n * 100_000, chance.randrange(3), chance.randrange(3)) for n in range(10)
            ]
            sent[stream] += rows
            times, keys, values = (np.array(each) for each in zip(*rows, strict=True))
            blocks[stream] = block_of(plan, stream, {"ts": times, "k": keys, "v": values})
        workers.run(blocks, Counts())
    told = showing(plan)
    shown = [
        row
        for number, place, manifest, store in workers.states()
        for batch in told.rows(number, place, manifest, store.load)
        for row in batch.to_pylist()
    ]
    assert len(shown) == workers.state_rows
    sizes = [each.size for _, _, manifest, _ in workers.states() for each in manifest.all_slices]
    assert sum(row["bytes"] for row in shown) == pytest.approx(sum(sizes))
    for row in shown:
        streams = [stream for stream in range(3) if row[f"there{stream}"]]
        assert row["stream"] == ", ".join("ABC"[stream] for stream in streams)
        for stream in streams:
            kept = [each for each in sent[stream] if told_of(row, stream, each)]
            assert kept, row
    # A row of one stream is in the state of its stage once.
    alone = Counter(
        (row["stage"], row["stream"], row[f"s{'ABC'.index(row['stream'])}_ts"])
        for row in shown
        if len(row["stream"]) == 1
    )
    assert alone and set(alone.values()) == {1}


def told_of(row: dict[str, object], stream: int, sent: tuple[int, int, int]) -> bool:
    """Whether the columns that are shown of a stream are those of a row."""
    names = dict(zip(("ts", "k", "v"), sent, strict=True))
    time = row[f"s{stream}_ts"]
    same = [
        row[f"s{stream}_{name}"] == value
        for name, value in names.items()
        if name != "ts" and row.get(f"s{stream}_{name}") is not None
    ]
    return all(same) and round(time.timestamp() * SECOND) == names["ts"]  # type: ignore[attr-defined]  # a time
