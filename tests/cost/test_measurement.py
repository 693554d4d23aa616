"""What micro-batches tell of a stream becomes its statistics."""

import random
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

from wjoin.executor.key_counts import SAMPLE, count_keys
from wjoin.executor.report import NOTHING_FIRST, NOTHING_SEEN, Report
from wjoin.grammar.plain import plain, typed
from wjoin.parts.kernels.runs import Order, RunShape
from wjoin.planner.cost.measurement import (
    REMEMBERED,
    Arrived,
    KeyCount,
    Measurement,
    distinct_values,
    heaviest_share,
)

SECOND = 1_000_000

BATCH = Arrived(1000, 500, 4000, 0, 0, 10 * SECOND, ("(A.k)", KeyCount(500, 100, 6)))
"""A thousand rows in ten seconds, of which the filters keep half."""


def counted(values: list[int]) -> KeyCount:
    """Count values as the join does."""
    return KeyCount(len(values), len(set(values)), max(Counter(values).values()))


def drawn(chance: random.Random, distinct: int, rows: int, heavy: float = 0.0) -> list[int]:
    """Rows with one value of share ``heavy``, the others all as frequent."""
    return [0 if chance.random() < heavy else chance.randrange(heavy > 0, distinct) for _ in range(rows)]


@pytest.mark.parametrize("distinct", [2, 50, 1000, 200_000])
@pytest.mark.parametrize("sizes", [[20_000], [2000] * 16, [20_000] + [200] * 15])
@pytest.mark.parametrize("heavy", [0.0, 0.4])
def test_distinct_values_are_estimated_from_micro_batches(
    distinct: int, sizes: list[int], heavy: float
) -> None:
    chance = random.Random(distinct)
    counts = [counted(drawn(chance, distinct, rows, heavy)) for rows in sizes]
    found = distinct_values(counts)
    assert distinct / 1.6 <= found <= distinct * 1.6
    share = heaviest_share(counts, found)
    if heavy:
        assert share >= heavy * 0.9
    elif distinct > 2:
        assert share <= 2 / found


def test_rows_without_a_repeated_key_tell_a_least_number_only() -> None:
    assert distinct_values([KeyCount(1000, 1000, 1)]) >= 100_000
    assert distinct_values([KeyCount(1, 1, 1)] * 3) == 1


def test_a_measurement_becomes_statistics() -> None:
    found = Measurement().add(BATCH).add(replace(BATCH, earliest=-3 * SECOND)).statistics(SECOND)
    assert found["rate"] == 100
    assert found["selectivity"] == 0.5
    assert found["width"] == 8
    assert found["disorder"] == 3 * SECOND
    assert found["distinct.(A.k)"] == pytest.approx(100, rel=0.05)
    assert found["heaviest.(A.k)"] == 1 / found["distinct.(A.k)"]


def test_the_first_micro_batch_tells_the_rate_until_there_is_another() -> None:
    first = Measurement().add(replace(BATCH, before=None, earliest=5 * SECOND))
    assert first.statistics(SECOND)["rate"] == 200
    assert first.add(BATCH).statistics(SECOND)["rate"] == 100
    instant = Measurement().add(replace(BATCH, before=None, earliest=BATCH.latest))
    assert "rate" not in instant.statistics(SECOND)


def test_a_row_behind_earlier_micro_batches_is_out_of_order() -> None:
    late = replace(BATCH, before=4 * SECOND, earliest=SECOND)
    assert Measurement().add(late).statistics(SECOND)["disorder"] == 3 * SECOND


def test_the_first_micro_batch_tells_no_disorder() -> None:
    """Its rows may be those of many files, in an order that is Spark's own."""
    first = Measurement().add(replace(BATCH, before=None))
    assert "disorder" not in first.statistics(SECOND)
    assert first.add(BATCH).statistics(SECOND)["disorder"] == 0


def test_what_was_measured_long_ago_fades() -> None:
    old = Measurement()
    for _ in range(100):
        old = old.add(BATCH)
    for _ in range(10):
        old = old.faded().add(replace(BATCH, latest=SECOND))
    assert old.statistics(SECOND)["rate"] > 600
    assert len(old.keys["(A.k)"]) == REMEMBERED


def test_a_measurement_outlives_its_encoding_and_nothing_else_is_read() -> None:
    kept = Measurement().add(BATCH)
    assert typed(Measurement, plain(kept)) == kept
    body = plain(kept)
    for broken in (
        None,
        [],
        {**body, "rows": "many"},
        {**body, "rows": -1},
        {**body, "size": float("nan")},
        {**body, "keys": {"k": [[1, 2, 3]]}},
        {**body, "keys": [1]},
        {name: value for name, value in body.items() if name != "advance"},
    ):
        with pytest.raises(ValueError):
            typed(Measurement, broken)


@pytest.mark.parametrize("order", Order)
def test_keys_are_counted_in_every_order_of_a_run(order: Order) -> None:
    chance = random.Random(1)
    keys = drawn(chance, 300, 3 * SAMPLE, 0.3)
    times = list(range(len(keys)))
    chance.shuffle(times)
    batch = pa.RecordBatch.from_pydict({"k": pa.array(keys, pa.int64()), "t": pa.array(times, pa.int64())})
    found = count_keys(RunShape("k", ("t",), order, "t").sort(batch), order)
    assert found is not None
    assert found.distinct == 300
    assert found.rows == (SAMPLE if order is Order.TIME else len(keys))
    assert found.heaviest / found.rows == pytest.approx(0.3, rel=0.05)
    if order is not Order.TIME:
        assert found == counted(keys)


def test_runs_without_a_key_or_rows_have_no_counts() -> None:
    batch = pa.RecordBatch.from_pydict({"t": pa.array([1, 2], pa.int64())})
    assert count_keys(RunShape(None, ("t",), Order.TIME).read(batch), Order.TIME) is None
    empty = pa.RecordBatch.from_pydict({name: pa.array([], pa.int64()) for name in "kt"})
    assert count_keys(RunShape("k", ("t",), Order.KEY).read(empty), Order.KEY) is None


def test_a_report_counts_times() -> None:
    counted = Report()
    counted.note(pa.array([None], pa.int64()))
    found = [counted[name] for name in ("rows", "undated", "seen", "earliest")]
    assert found == [1, 1, NOTHING_SEEN, NOTHING_FIRST]
    counted.note(pa.array([5, 9, None, 7], pa.int64()))
    counted.note(pa.array([6, 10], pa.int64()))
    assert [counted[name] for name in ("rows", "undated", "seen", "earliest")] == [7, 2, 10, 5]
    other = Report()
    other.merge(counted.values)
    other.merge(Report().values)
    assert other == counted
    other.merge(counted.values)
    assert [other[name] for name in ("rows", "undated", "seen", "earliest")] == [14, 4, 10, 5]
