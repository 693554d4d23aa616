"""Filters of join values: whatever was put in passes, NULL does not, and little else."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from wjoin.sites.failures import SiteError
from wjoin.sites.filters import Filters
from wjoin.sites.value_filter import ValueFilter
from wjoin.sites.value_sets import Bloom, distinct, normal

_INTEGERS = {
    getattr(pa, f"{sign}int{width}")(): st.integers(
        0 if sign else -(1 << (width - 1)), (1 << (width if sign and width < 64 else width - 1)) - 1
    )
    for sign in ("", "u")
    for width in (8, 16, 32, 64)
}
_TYPES = {
    **_INTEGERS,
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(),
    pa.string(): st.text(max_size=8),
    pa.large_string(): st.text(max_size=8),
}


@st.composite
def two_arrays(draw):
    kind = draw(st.sampled_from([*_TYPES]))
    values = st.lists(st.none() | _TYPES[kind], max_size=60)
    return pa.array(draw(values), kind), pa.array(draw(values), kind)


@settings(max_examples=examples(300))
@given(two_arrays(), st.booleans())
def test_what_was_put_in_passes_also_after_it_has_travelled(arrays, coded):
    values, others = arrays
    filter = ValueFilter.of(values.dictionary_encode() if coded else values)
    again = ValueFilter.decode(filter.encode())
    assert (again.digest, again.count, again.exact) == (filter.digest, filter.count, filter.exact)
    there = {*values.to_pylist()} - {None}
    assert filter.count == len(there)
    both = pa.concat_arrays([values, others])
    for each in (filter, again):
        assert each.exact
        assert each.contains(both.slice(1)).tolist() == [value in there for value in both.to_pylist()[1:]]
        assert each.contains(both.dictionary_encode()).tolist() == [
            value in there for value in both.to_pylist()
        ]
    bloom = Bloom.of(distinct(normal(values)))
    assert (bloom.contains(normal(values)) == np.array(values.is_valid())).all()
    assert not bloom.contains(normal(both))[np.array(both.is_null())].any()


@settings(max_examples=examples(100))
@given(st.data())
def test_integers_are_compared_by_value_across_widths(data):
    one, other = (data.draw(st.sampled_from([*_INTEGERS])) for _ in range(2))
    small = data.draw(st.lists(st.integers(0, 120), max_size=20))
    values, asked = (data.draw(st.lists(_INTEGERS[each], max_size=20)) + small for each in (one, other))
    filter = ValueFilter.of(pa.array(values, one))
    assert filter.contains(pa.array(asked, other)).tolist() == [each in values for each in asked]


def test_unsigned_integers_that_no_filter_has():
    large = pa.array([1, (1 << 64) - 1, 1 << 63], pa.uint64())
    assert ValueFilter.of(pa.array([1, -1, -(1 << 63)])).contains(large).tolist() == [True, False, False]
    with pytest.raises(SiteError, match="2\\*\\*63"):
        ValueFilter.of(large)


@pytest.mark.parametrize("kind", ["number", "text"])
def test_the_smaller_one_is_made_and_few_others_pass(kind):
    chance = np.random.default_rng(1)

    def array(numbers: np.ndarray) -> pa.Array:
        return pa.array(numbers) if kind == "number" else pa.array([f"{each:x}" for each in numbers])

    many = chance.integers(0, 1 << 62, 20_000)
    bloom, others = ValueFilter.of(array(many)), array(chance.integers(0, 1 << 62, 50_000))
    assert not bloom.exact
    assert len(bloom.encode()) < 20_000 * 1.3
    assert bloom.contains(array(many)).all()
    assert 0.005 < bloom.contains(others).mean() < 0.015
    again = ValueFilter.decode(bloom.encode())
    assert (again.contains(others) == bloom.contains(others)).all()
    dense = ValueFilter.of(pa.array(np.arange(100_000)))
    assert dense.exact
    assert len(dense.encode()) < 1000
    assert ValueFilter.of(array(many[::-1])).digest == bloom.digest


def test_other_types_are_refused():
    for each in (pa.array([1.5]), pa.array([b"x"]), pa.array([1], pa.timestamp("ns")), pa.array([[1]])):
        with pytest.raises(SiteError, match="no filter of values of the type") as caught:
            ValueFilter.of(each)
        assert caught.value.kind == "schema"
    with pytest.raises(SiteError, match="of the kind number is asked for values of string"):
        ValueFilter.of(pa.array([1])).contains(pa.array(["x"]))


_GOOD = [
    ValueFilter.of(values).encode()
    for values in (
        pa.array([1, 5, 900]),
        pa.array([], pa.int64()),
        pa.array(["a", "bc", "ü"]),
        pa.array(np.random.default_rng(2).integers(0, 1 << 62, 1000)),
    )
]


@settings(max_examples=examples(400))
@given(st.sampled_from(_GOOD), st.integers(0, 80), st.binary(max_size=8), st.booleans())
def test_bytes_that_are_no_filter_are_refused(good, at, noise, cut):
    data = good[:at] + noise + (b"" if cut else good[at + len(noise) :])
    try:
        found = ValueFilter.decode(data, most_bytes=1 << 20)
    except SiteError as error:
        assert error.kind in ("broken", "limit")
    else:
        kind = pa.string() if found.kind == "text" else pa.int64()
        if found.kind in ("number", "text"):
            assert len(found.contains(pa.array([None], kind))) == 1


def test_a_filter_that_unpacks_to_too_much_is_refused_before():
    dense = ValueFilter.of(pa.array(np.arange(1_000_000))).encode()
    assert len(dense) < 1000
    with pytest.raises(SiteError) as caught:
        ValueFilter.decode(dense, most_bytes=1_000_000)
    assert caught.value.kind == "limit"


def test_filters_asked_for_longest_ago_go():
    encoded = [ValueFilter.of(pa.array([f"{each} {at}" for at in range(10)])).encode() for each in range(3)]
    made = [ValueFilter.decode(each) for each in encoded]
    filters = Filters(2 * max(each.size for each in made))
    for each in made[:2]:
        assert filters.push(each.encode()).digest == each.digest
    filters.find(made[0].digest)
    filters.push(made[2].encode())
    filters.push(made[2].encode())
    assert filters.size == made[0].size + made[2].size
    assert filters.find(made[0].digest).count == 10
    with pytest.raises(SiteError) as caught:
        filters.find(made[1].digest)
    assert caught.value.kind == "filter"
