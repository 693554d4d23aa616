"""Stretches of event time: what they cut, whatever the rows are and however they were packed."""

import itertools
import subprocess
import sys
import tracemalloc
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.drawn_plans import plans
from tests.properties.test_step import assert_defined_result
from tests.tiers import examples
from wjoin.executor import arrivals as arriving
from wjoin.executor import combinations, multiway
from wjoin.executor import spool as spools
from wjoin.executor.arrivals import Arrivals
from wjoin.executor.blocks import taken_bytes, value_bytes
from wjoin.executor.spool import Spool
from wjoin.executor.stretches import Arrived, Stretch, stretches
from wjoin.grammar.errors import WJoinError
from wjoin.parts.kernels.registry import KERNELS
from wjoin.parts.kernels.runs import GREATEST, LEAST, Order, RunShape
from wjoin.parts.routes.route import Role
from wjoin.planner.plan.physical import PhysicalPlan

ONE = RunShape("k0_0", ("t0",), Order.KEY)
TWO = RunShape("k1_0", ("t1", "t2"), Order.KEY)
KEYLESS = RunShape(None, ("t0",), Order.TIME)

Row = tuple[int, int, int, str]  # times of two members, key, text


def batch(rows: list[Row], shape: RunShape) -> pa.RecordBatch:
    columns = {name: pa.array([row[n] for row in rows], pa.int64()) for n, name in enumerate(shape.times)}
    if shape.code is not None:
        columns[shape.code] = pa.array([row[2] for row in rows], pa.int64())
    return pa.RecordBatch.from_pydict({**columns, "text": pa.array([row[3] for row in rows], pa.string())})


def rows_of(stretch: Stretch, number: int) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for _, block in stretch.blocks[number] for row in block.to_pylist())


def instants_of(rows: Counter[tuple[object, ...]], shape: RunShape) -> list[int]:
    return [min(int(str(time)) for time in row[: len(shape.times)]) for row in rows]


TIMES = st.one_of(
    st.integers(0, 30), st.sampled_from([LEAST, LEAST + 1, -1, GREATEST - 1, GREATEST]), st.just(7)
)
ROWS = st.lists(st.tuples(TIMES, TIMES, st.integers(0, 3), st.text("ab", max_size=4)), max_size=30)


def packed(data: st.DataObject, rows: list[Row], shape: RunShape) -> Arrived:
    """Return rows in an order and in batches as they may come."""
    order = data.draw(st.permutations(rows))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    edges = [0, *cuts, len(rows)]
    return [(Role.BOTH, batch(order[a:b], shape)) for a, b in itertools.pairwise(edges)]


@settings(max_examples=examples(60))
@given(ROWS, ROWS, st.sampled_from([TWO, KEYLESS]), st.sampled_from([None, 10**6, 300, 60, 1]), st.data())
def test_rows_are_cut_by_time_and_always_in_the_same_way(
    first: list[Row], second: list[Row], shape: RunShape, limit: int | None, data: st.DataObject
) -> None:
    shapes = (ONE, shape)
    attempts = []
    for _ in range(2):
        blocks = [packed(data, rows, each) for rows, each in zip((first, second), shapes, strict=True)]
        attempts.append(list(stretches(blocks, shapes, limit, Spool())))
        assert blocks == []
    again, found = attempts
    assert [[rows_of(each, n) for n in (0, 1)] for each in found] == [
        [rows_of(each, n) for n in (0, 1)] for each in again
    ]
    for number, (rows, each) in enumerate(zip((first, second), shapes, strict=True)):
        whole = sum((rows_of(stretch, number) for stretch in found), Counter())
        assert whole == rows_of(Stretch([[(Role.BOTH, batch(rows, each))]], None), 0)
    assert found[-1].later is None
    for position, stretch in enumerate(found[:-1]):
        assert stretch.later is not None
        for after, (number, each) in itertools.product(found[position + 1 :], enumerate(shapes)):
            assert all(time >= stretch.later for time in instants_of(rows_of(after, number), each))
    if limit is None or limit == 10**6:
        assert len(found) == 1


@settings(max_examples=examples(60))
@given(ROWS, ROWS, st.sampled_from([None, 10**6, 300, 60, 1]), st.data())
def test_rows_of_tables_are_cut_by_key(
    first: list[Row], second: list[Row], limit: int | None, data: st.DataObject
) -> None:
    """Rows of one key are in one stretch, or in several that follow each other in time."""
    shapes, attempts = (ONE, TWO), []
    for _ in range(2):
        blocks = [packed(data, rows, each) for rows, each in zip((first, second), shapes, strict=True)]
        attempts.append(list(stretches(blocks, shapes, limit, Spool(), by_key=True)))
    again, found = ([[rows_of(each, n) for n in (0, 1)] for each in attempt] for attempt in attempts)
    assert found == again
    for number, (rows, each) in enumerate(zip((first, second), shapes, strict=True)):
        whole = sum((stretch[number] for stretch in found), Counter())
        assert whole == rows_of(Stretch([[(Role.BOTH, batch(rows, each))]], None), 0)
    closed, open_keys = set[object](), set[object]()
    for stretch, (ones, twos) in zip(attempts[1], found, strict=True):
        keys = {row[1] for row in ones} | {row[2] for row in twos}
        assert not keys & closed
        open_keys |= keys
        if stretch.later is None:
            closed, open_keys = closed | open_keys, set()


def test_stretches_are_about_as_large_as_they_shall_be() -> None:
    random = np.random.default_rng(5)
    times = np.concatenate([random.integers(0, 10**6, 5000), np.full(5000, 10**9), [GREATEST]])
    keys = random.integers(0, 500, len(times))
    rows = [(int(time), 0, int(key), "x" * 20) for time, key in zip(times, keys, strict=True)]
    block = batch(rows, ONE)
    limit = value_bytes(block) // 20
    found = list(
        stretches(
            [[(Role.BOTH, block.slice(0, 3000)), (Role.BOTH, block.slice(3000))]], (ONE,), limit, Spool()
        )
    )
    sizes = [sum(value_bytes(each) for _, each in stretch.blocks[0]) for stretch in found]
    assert sum(sizes) == value_bytes(block)
    # Those of the one heavy instant are cut by keys, which do not fall evenly.
    assert max(sizes) < 1.5 * limit
    assert len(sizes) < 30


@pytest.mark.parametrize("shape", [ONE, TWO], ids=["one member", "two members"])
def test_rows_on_disk_take_no_memory_each(shape: RunShape) -> None:
    """A hundred million rows may wait: eight bytes of each would be a gigabyte."""
    spool, blocks, rows = Spool(), 50, 2000
    times = np.arange(blocks * rows)
    arrived: Arrived = []
    for own in np.split(times, blocks):
        columns = dict.fromkeys((shape.code or "", *shape.times), pa.array(own))
        arrived.append((Role.BOTH, spool.put(pa.RecordBatch.from_pydict(columns))))
    tracemalloc.start()
    found = stretches([arrived], (shape,), 100_000, spool)
    first = next(found)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert first.later is not None
    assert peak < times.nbytes / 4
    assert sum(block.num_rows for each in (first, *found) for _, block in each.blocks[0]) == len(times)
    spool.close()


def test_sizes_do_not_depend_on_how_rows_are_cut() -> None:
    columns = {
        "text": ["a", None, "ccc", ""],
        "list": [["x", "yy"], None, [], ["z"]],
        "map": pa.array([[("k", 1)], None, [], [("l", 2), ("m", 3)]], pa.map_(pa.string(), pa.int32())),
        "struct": [{"n": 1, "t": "abc"}, None, {"n": 2, "t": ""}, {"n": 3, "t": None}],
        "flag": [True, None, False, True],
        "nothing": pa.nulls(4),
        "large": pa.array(["a", None, "bb", "c"], pa.large_string()),
    }
    whole = pa.RecordBatch.from_pydict(columns)
    for cut in range(5):
        assert value_bytes(whole.slice(0, cut)) + value_bytes(whole.slice(cut)) == value_bytes(whole)
    places = pa.array([2, 2, 0])
    for column in whole.slice(0, 3).columns[:1]:
        assert taken_bytes(column, places) == value_bytes(
            pa.RecordBatch.from_arrays([column.take(places)], ["c"])
        )


def test_what_is_set_down_comes_back_and_leaves_no_file(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path))
    batches = [batch([(n, n, n, "x" * n)] * n, ONE) for n in range(1, 6)]
    mapped = [spool.put(each) for each in batches]
    assert list(tmp_path.iterdir()) == []
    spool.close()
    assert mapped == batches


def test_what_is_set_down_holds_few_files_open(tmp_path: Path) -> None:
    """A process may have no more than a thousand, as a rule."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    spool = Spool(str(tmp_path))
    with patch.object(spools, "_MAPPED_BYTES", 1 << 16):
        mapped = [spool.put(batch([(n, n, n, "x" * 100)] * 100, ONE)) for n in range(100)]
        wide = spool.put(batch([(1, 1, 1, "x" * 100_000)], ONE))
    assert [each.column("t0")[99].as_py() for each in mapped] == list(range(100))
    assert len(wide.column("text")[0].as_py()) == 100_000
    assert len(list(Path("/proc/self/fd").iterdir())) - before < 40
    spool.close()


@pytest.mark.parametrize(("piece", "expected"), [(0, [3, 5, 9]), (1 << 22, [5, 3, 9])])
def test_more_than_the_limit_is_set_down_in_the_order_of_time(
    tmp_path: Path, piece: int, expected: list[int]
) -> None:
    """Rows that come later wait until they are worth a piece of their own."""
    store = Arrivals([[], []], spool=Spool(str(tmp_path)))
    rows = [(time, time, 1, "abc") for time in (5, 3, 9)]
    with patch.object(arriving, "_PIECE_BYTES", piece):
        for role in (Role.STORE, Role.PROBE, Role.STORE, Role.PROBE):
            store.add(0, role, batch(rows, ONE), (ONE, KEYLESS), limit=200)
    found = [(role, block.column("t0").to_pylist()) for role, block in store.blocks[0]]
    assert found == [
        (Role.STORE, [3, 3, 5, 5, 9, 9]),
        (Role.PROBE, [3, 5, 9]),
        (Role.PROBE, expected),
    ]
    assert list(tmp_path.iterdir()) == []
    store.spool.close()


def test_a_disk_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(WJoinError, match=r"cannot be written to .*missing: No such file") as refused:
        Spool(str(tmp_path / "missing")).put(batch([(1, 1, 1, "a")], ONE))
    assert refused.value.code == "WJ705"


FULL = """
import resource, signal, sys
import pyarrow as pa
from wjoin.executor.spool import Spool
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    Spool(sys.argv[1]).put(pa.RecordBatch.from_pydict({"n": list(range(10_000))}))
except Exception as error:
    print(error.code, error.help)
"""


def test_a_full_disk_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("WJ705 point spark.local.dir at a disk with room")
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=examples(30))
@given(plans(), st.data())
def test_results_in_small_parts_are_the_same(plan: PhysicalPlan, data: st.DataObject) -> None:
    """A tuple with more partners than are worked off at once, and rows too wide for one block."""
    with patch.object(multiway, "PARTIAL_LIMIT", 2), patch.object(combinations, "RESULT_BYTES", 100):
        assert_defined_result(plan, data, tuple(KERNELS))
