"""Every kernel against brute force, and the sorted runs under them."""

import bisect
import itertools
import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wjoin.executor.gathering import GatheredLater, Gathering, Pieces
from wjoin.parts.kernels.candidates import Search
from wjoin.parts.kernels.halving import first_above, first_at_least
from wjoin.parts.kernels.registry import KERNELS
from wjoin.parts.kernels.run_filter import RunFilter
from wjoin.parts.kernels.run_index import KeyIndex
from wjoin.parts.kernels.runs import Order, RunShape, SortedRun, sort_order, stable_order

rows = st.lists(st.tuples(st.integers(-3, 3), st.integers(-20, 20)), max_size=30)
probes = st.lists(st.tuples(st.integers(-4, 4), st.integers(-25, 25), st.integers(0, 12)), max_size=20)


@pytest.mark.parametrize("name", KERNELS)
@given(rows, probes, st.booleans())
def test_every_kernel_finds_the_rows_of_one_key_inside_the_range(
    name: str, rows: list[tuple[int, int]], probes: list[tuple[int, int, int]], keyed: bool
) -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "k": pa.array([code for code, _ in rows], pa.int64()),
            "t": pa.array([time for _, time in rows], pa.int64()),
        }
    )
    kernel = KERNELS[name]
    run = RunShape("k" if keyed else None, ("t",), kernel.order).sort(batch)
    probes = sorted((code if keyed else 0, low, width) for code, low, width in probes)
    columns = np.array(probes, np.int64).reshape(-1, 3)
    search = Search(columns[:, 0], columns[:, 1], columns[:, 1] + columns[:, 2])
    candidates = kernel.candidates(run, search)
    numbers, places = candidates.expand()
    assert candidates.pairs == len(numbers)
    agree = kernel.agree(run, search, numbers, places)
    if agree is not None:
        numbers, places = numbers[agree], places[agree]
    found = sorted(
        zip(numbers.tolist(), run.codes[places].tolist(), run.times[0][places].tolist(), strict=True)
    )
    expected = sorted(
        (number, code if keyed else 0, time)
        for number, (wanted, low, width) in enumerate(probes)
        for code, time in rows
        if (code == wanted or not keyed) and low <= time <= low + width
    )
    assert found == expected


values = st.sampled_from([-1.5, -0.0, 0.0, 1.0, 2.5, math.inf, -math.inf, math.nan])


@pytest.mark.parametrize("type_", [pa.int32(), pa.float32(), pa.float64()])
@given(st.data())
def test_the_ordered_kernel_finds_the_values_of_a_band(type_: pa.DataType, data: st.DataObject) -> None:
    """NaN is above all numbers; what a NULL is, is for the conditions to tell; NaN as a bound finds more."""
    own = values if pa.types.is_floating(type_) else st.integers(-(2**31), 2**31 - 1)
    rows = data.draw(st.lists(st.tuples(st.integers(0, 1), st.integers(-9, 9), st.none() | own), max_size=20))
    batch = pa.RecordBatch.from_pydict(
        {
            "k": pa.array([code for code, _, _ in rows], pa.int64()),
            "t": pa.array([time for _, time, _ in rows], pa.int64()),
            "v": pa.array([value for _, _, value in rows], type_),
        }
    )
    run = RunShape("k", ("t",), Order.VALUE, "v").sort(batch)
    code, low, high = data.draw(st.tuples(st.integers(0, 1), st.none() | own, st.none() | own))
    bounds = [None if each is None else np.array([each]) for each in (low, high)]
    search = Search(np.array([code]), np.array([-5]), np.array([5]), *bounds)
    kernel = KERNELS["ordered"]
    numbers, places = kernel.candidates(run, search).expand()
    places = places[kernel.agree(run, search, numbers, places)]
    values_found = run.batch.column("v").take(pa.array(places)).to_pylist()
    found = Counter(zip(run.times[0][places].tolist(), map(repr, values_found), strict=True))
    # Whether a NULL is found does not matter: no condition on it is true.
    found = Counter({each: count for each, count in found.items() if each[1] != "None"})
    assert found == Counter(
        (time, repr(value))
        for each, time, value in rows
        if each == code and -5 <= time <= 5 and value is not None
        if (low is None or math.isnan(low) or above(value, low)) and (high is None or above(high, value))
    )


def above(first: float, second: float) -> bool:
    """Return whether the first is at least the second, NaN above all."""
    return math.isnan(first) or (not math.isnan(second) and first >= second)


SPANS = (1, 5, 2**20, 2**40, 2**56, 2**63 - 1)
"""Codes and times as far from 0: narrow ones fit one number with the place of a row, wide ones do not."""


@pytest.mark.parametrize("codes", SPANS)
@pytest.mark.parametrize("times", SPANS)
@given(data=st.data())
def test_sort_order_is_by_code_then_time_for_any_span(codes: int, times: int, data: st.DataObject) -> None:
    pair = st.tuples(st.integers(-codes - 1, codes), st.integers(-times - 1, times))
    pairs = data.draw(st.lists(pair, max_size=30))
    columns = np.array(pairs, np.int64).reshape(-1, 2)
    order = sort_order(columns[:, 0], columns[:, 1])
    assert order.dtype == np.int64
    assert sorted(order.tolist()) == list(range(len(pairs)))
    assert [tuple(pair) for pair in columns[order].tolist()] == sorted(pairs)


@pytest.mark.parametrize("times", SPANS)
@given(data=st.data())
def test_rows_of_one_code_and_time_keep_their_order(times: int, data: st.DataObject) -> None:
    few = st.sampled_from([-times - 1, 0, times])
    found = np.array(data.draw(st.lists(few, max_size=30)), np.int64)
    order = sort_order(np.full(len(found), 7, np.int64), found)
    assert order.tolist() == sorted(range(len(found)), key=found.__getitem__)


@pytest.mark.parametrize("bound", [1, 3, 1 << 16, (1 << 16) + 1, 1 << 40])
@given(data=st.data())
def test_small_numbers_are_sorted_where_equal_ones_stand(bound: int, data: st.DataObject) -> None:
    some = st.integers(0, min(bound - 1, 3)) | st.integers(0, bound - 1) | st.just(bound - 1)
    numbers = data.draw(st.lists(some, max_size=20))
    order = stable_order(np.array(numbers, np.int64), bound)
    assert order.tolist() == sorted(range(len(numbers)), key=numbers.__getitem__)


@pytest.mark.parametrize("small", [0, 1000], ids=["prepared", "searched"])
@pytest.mark.parametrize("far", [6, 40, 2**40, 2**63 - 1])
@given(data=st.data())
def test_an_index_finds_the_rows_of_a_code_however_often_it_is_asked(
    small: int, far: int, data: st.DataObject
) -> None:
    """Codes lie near each other, or far apart, or most of them near each other and some far away."""
    some = st.integers(-far - 1, far) | st.integers(-3, 3)
    codes = np.sort(np.array(data.draw(st.lists(some, min_size=1, max_size=30)), np.int64))
    index = KeyIndex(codes, small)
    beside = [code + step for code in codes.tolist() for step in (-1, 0, 1) if -far - 1 <= code + step <= far]
    for _ in range(3):
        wanted = np.array(data.draw(st.lists(some | st.sampled_from(beside), max_size=8)), np.int64)
        places, start, end = index.find(wanted)
        assert places.tolist() == [n for n, code in enumerate(wanted) if code in codes]
        for place, first, last in zip(places, start, end, strict=True):
            assert np.flatnonzero(codes == wanted[place]).tolist() == list(range(first, last))


@pytest.mark.parametrize("far", [[], [2**62], [-(2**63), 2**63 - 1]], ids=len)
def test_an_index_finds_codes_that_lie_together_far_from_others(far: list[int]) -> None:
    near = [code for code in range(0, 300, 3) for _ in range(code % 4)]
    codes = np.sort(np.array([*near, *far], np.int64))
    wanted = np.array([-5, *range(302), 2**62 - 1, *far], np.int64)
    places, start, end = KeyIndex(codes, small=0).find(wanted)
    assert wanted[places].tolist() == [code for code in wanted.tolist() if code in codes]
    counted = Counter(codes.tolist())
    assert (end - start).tolist() == [counted[code] for code in wanted[places].tolist()]
    assert (codes[start] == wanted[places]).all()
    assert (codes[end - 1] == wanted[places]).all()


def _runs(codes: list[list[int]]) -> list[SortedRun]:
    shape = RunShape("k", ("t",), Order.KEY)
    columns = [pa.array(each, pa.int64()) for each in codes]
    return [shape.sort(pa.RecordBatch.from_pydict({"k": each, "t": each})) for each in columns]


@pytest.mark.parametrize("far", [6, 40, 2**40, 2**63 - 1])
@given(data=st.data())
def test_a_filter_loses_no_code_of_any_run(far: int, data: st.DataObject) -> None:
    some = st.integers(-far - 1, far) | st.integers(-3, 3)
    codes = data.draw(st.lists(st.lists(some, max_size=8), min_size=3, max_size=20))
    known = [code for each in codes for code in each]
    run_filter = RunFilter(_runs(codes))
    for _ in range(2):
        wanted = data.draw(st.lists(st.sampled_from(known) | some if known else some, max_size=8))
        told = run_filter.tuples(np.array(sorted(wanted), np.int64))
        for number, places in told.items():
            assert places.tolist() == sorted(set(places.tolist()))
            held = [place for place, code in enumerate(sorted(wanted)) if code in codes[number]]
            assert set(held) <= set(places.tolist())


@pytest.mark.parametrize("far", [1, 2**40 + 7], ids=["near", "far"])
def test_a_filter_lets_few_codes_pass_that_a_run_has_not(far: int) -> None:
    random = np.random.default_rng(5)
    codes = random.choice(100_000, (16, 500), replace=False) * far - 2**62
    told = RunFilter(_runs(codes.tolist())).tuples(np.sort(codes.ravel()))
    assert sorted(told) == list(range(16))
    assert all(500 <= len(places) < 500 * 2 for places in told.values())


def test_a_filter_tells_nothing_where_it_would_not_pay() -> None:
    some = list(range(0, 3000, 3))
    wanted = np.array(some[:500], np.int64)
    assert RunFilter(_runs([some, some])).tuples(wanted) == {}
    assert RunFilter(_runs([some, some, some, []])).tuples(wanted[:2]) == {}
    assert sorted(RunFilter(_runs([some, [], some, some])).tuples(wanted)) == [0, 2, 3]
    one_code = _runs([[7] * 100, [7], [7]])
    assert RunFilter(one_code).tuples(wanted) == {}


@pytest.mark.parametrize("often", [1, 100])
@pytest.mark.parametrize("rows", [1, 2, 3, 20])
@given(data=st.data())
def test_places_are_found_in_ranges_that_are_asked_once_or_often(
    rows: int, often: int, data: st.DataObject
) -> None:
    drawn = data.draw(st.lists(st.integers(0, rows), min_size=1, max_size=6))
    lines = [sorted(data.draw(st.lists(st.integers(-9, 9), min_size=n, max_size=n))) for n in drawn]
    seed = data.draw(st.integers(0, 9))
    sizes, values = np.repeat(drawn, often), [each for each in lines for _ in range(often)]
    end = np.repeat(np.cumsum(drawn), often)
    wanted = np.random.default_rng(seed).integers(-10, 11, len(sizes))
    flat = np.array([*itertools.chain(*lines), 0][: max(1, sum(drawn))], np.int64)
    first = first_at_least(flat, end - sizes, end, wanted) - (end - sizes)
    last = first_above(flat, end - sizes, end, wanted) - (end - sizes)
    assert first.tolist() == [bisect.bisect_left(*each) for each in zip(values, wanted, strict=True)]
    assert last.tolist() == [bisect.bisect_right(*each) for each in zip(values, wanted, strict=True)]


@given(st.lists(st.lists(st.text(max_size=3), max_size=5), min_size=1, max_size=4), st.data())
def test_gathering_addresses_rows_through_runs(pieces: list[list[str]], data: st.DataObject) -> None:
    flat = [value for piece in pieces for value in piece]
    wanted = data.draw(st.lists(st.integers(0, len(flat) - 1), max_size=10)) if flat else []
    runs = []
    for piece in pieces:
        zeros = np.zeros(len(piece), np.int64)
        columns = {"text": pa.array(piece, pa.string()), "place": pa.array(range(len(piece)), pa.int64())}
        runs.append(SortedRun(pa.RecordBatch.from_pydict(columns), zeros, (zeros,), True))
    gathering = Gathering(Pieces(tuple(runs)), np.array(wanted, np.int64))
    assert gathering.column("text").to_pylist() == [flat[number] for number in wanted]
    places = [place for piece in pieces for place in range(len(piece))]
    assert gathering.column("place").to_pylist() == [places[number] for number in wanted]
    start = data.draw(st.integers(0, len(wanted)))
    stop = data.draw(st.integers(start, len(wanted)))
    later = GatheredLater(gathering, "text", None, len(wanted))
    assert later.slice(start, stop - start).to_pylist() == [flat[number] for number in wanted[start:stop]]
