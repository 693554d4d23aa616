"""Rows that are held in a store until their values are asked for, against all rows looked through."""

import json
import tempfile
from functools import partial
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sites import stores
from tests.sites.stores import FOREVER, extent_by_hand, without_size
from tests.tiers import examples
from wjoin.sites.dropped import Dropped, load_dropped
from wjoin.sites.failures import SiteError
from wjoin.sites.held import HeldRange, behind, disjoint
from wjoin.sites.key_index import HashIndex
from wjoin.sites.protocol import ROW
from wjoin.sites.reduction import Passing
from wjoin.sites.retention import StoreRetention
from wjoin.sites.store import StreamStore
from wjoin.sites.value_filter import ValueFilter

pytestmark = pytest.mark.long

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.int32(), "s": pa.string()})

_TIMES = st.integers(-20, 20)
_ROWS = st.lists(
    st.tuples(
        _TIMES,
        st.none() | st.integers(-4, 4),
        st.none() | st.text("ab", max_size=2),
    ),
    max_size=40,
)
_KEYS = {
    "k": (st.none() | st.integers(-6, 6) | st.just(1 << 40), pa.int64()),
    "s": (st.none() | st.text("abc", max_size=2), pa.string()),
}


batch = partial(stores.batch, SCHEMA)


def opened(folder: Path, keys=("k",), retention=FOREVER, segment_bytes=1500) -> StreamStore:
    return stores.opened(folder, SCHEMA, keys, retention, segment_bytes)


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_ROWS, min_size=1, max_size=6), st.sampled_from([("k",), ("k", "s"), ()]), st.data())
def test_what_the_store_finds_is_what_looking_through_finds(batches, indexed, data):
    rows = [row for each in batches for row in each]
    with tempfile.TemporaryDirectory() as name:
        store = opened(Path(name), indexed)
        for at, each in enumerate(batches):
            store.append(batch(each), {"at": at})
        _check_extent(store, rows, data)
        for _ in range(3):
            _check_reduced(store, rows, data)
        store.close()


def _check_extent(store: StreamStore, rows: list[tuple], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(rows)))
    stop = data.draw(st.integers(start, len(rows)))
    ceiling, mark = data.draw(st.integers(-25, 25)), data.draw(st.none() | _TIMES)
    found = store.extent(start, stop, ceiling, mark)
    assert without_size(found) == extent_by_hand([row[0] for row in rows[start:stop]], ceiling, mark)
    assert (found.size > 0) == (stop > start)


def _check_reduced(store: StreamStore, rows: list[tuple], data: st.DataObject) -> None:
    number = st.integers(0, len(rows))
    pairs = data.draw(st.lists(st.tuples(number, number, st.none() | _TIMES), max_size=4))
    ranges = [HeldRange(min(one, other), max(one, other), low) for one, other, low in pairs]
    high = data.draw(st.none() | _TIMES)
    column = data.draw(st.sampled_from(["k", "s"]))
    values, kind = _KEYS[column]
    given = data.draw(st.lists(st.lists(values, max_size=4), min_size=1, max_size=2))
    passing = Passing(column, tuple(ValueFilter.of(pa.array(each, kind)) for each in given))
    block = data.draw(st.integers(1, 7))
    found = [*store.reduced(disjoint(ranges), passing, high, ["s", "ts"], block)]
    assert all(0 < each.num_rows <= block for each in found)

    def passes(value: object) -> bool:
        return value is not None and any(value in each for each in given)

    where = SCHEMA.names.index(column)
    wanted = [
        {ROW: at, "s": row[2], "ts": row[0]}
        for at, row in enumerate(rows)
        if any(each.start <= at < each.stop and (each.low is None or row[0] >= each.low) for each in ranges)
        and (high is None or row[0] <= high)
        and passes(row[where])
    ]
    assert [row for each in found for row in each.to_pylist()] == wanted


@given(
    st.lists(st.tuples(*[st.integers(0, 12)] * 2, st.none() | st.integers(0, 3)), max_size=6),
    st.integers(0, 12),
)
def test_disjoint_ranges_hold_the_same_rows(given, at):
    ranges = [HeldRange(*each) for each in given]
    found = disjoint(ranges)
    assert all(one.start < one.stop <= other.start for one, other in pairwise(found))

    def low(ranges, number):
        lows = [each.low for each in ranges if each.start <= number < each.stop]
        return "no row" if not lows else None if None in lows else min(lows)

    for number in range(13):
        assert low(found, number) == low(ranges, number)
        assert low(behind(found, at), number) == (low(ranges, number) if number >= at else "no row")


def test_a_sealed_piece_is_asked_by_its_index_where_that_pays(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        HashIndex, "holding", lambda *given, real=HashIndex.holding: asked.append(given) or real(*given)
    )
    store = opened(tmp_path)
    for at in range(100):
        store.append(batch([(at, at % 10, "x")] * 10), {"at": at})
    for column, indexed in (("k", True), ("s", False)):
        key = pa.array([3], pa.int32()) if column == "k" else pa.array(["x"])
        for ranges, times in (([HeldRange(0, 1000, 50)], True), ([HeldRange(30, 35)], False)):
            asked.clear()
            found = [*store.reduced(ranges, Passing(column, (ValueFilter.of(key),)), None, ["ts"], 100)]
            assert bool(asked) == (indexed and times)
            count = 5 if not times else 50 if column == "k" else 500
            assert sum(each.num_rows for each in found) == count
    store.close()


def keys_of(values: list, column: str = "k") -> Passing:
    return Passing(column, (ValueFilter.of(pa.array(values, SCHEMA.field(column).type)),))


def fill(store: StreamStore, stop: int) -> None:
    for start in range(store.next, stop, 10):
        # Row 5 of each batch is 40 later than its neighbours.
        store.append(
            batch([(at + 40 * (at % 10 == 5), at % 10, "x" * 20) for at in range(start, start + 10)]),
            {"at": start},
        )


def gone(store: StreamStore, start: int, low: int | None) -> bool:
    try:
        list(store.reduced([HeldRange(start, store.next, low)], keys_of([5]), None, ["ts"], 100))
    except SiteError as error:
        assert error.kind == "gone"
        assert "[streams.a]" in error.help
        return True
    return False


def test_rows_that_have_left_are_missed_only_where_their_time_is_asked_for(tmp_path):
    kept = StoreRetention(300, None, None, 3600.0)
    store = opened(tmp_path, retention=kept)
    assert not gone(store, 0, None)
    fill(store, 2000)
    first = store.first
    assert first > 1000
    latest = max(at + 40 * (at % 10 == 5) for at in range(first))
    for _ in range(2):
        assert gone(store, 0, None)
        assert gone(store, 0, latest)
        assert not gone(store, 0, latest + 1)
        assert not gone(store, first, None)
        assert gone(store, first - 1, latest)
        store.close()
        store = opened(tmp_path, retention=kept)
    found = [*store.reduced([HeldRange(0, 2000, latest + 1)], keys_of([5]), None, ["ts"], 9)]
    times = [at + 40 for at in range(first, 2000) if at % 10 == 5 and at + 40 > latest]
    assert [each for block in found for each in block["ts"].to_pylist()] == times
    store.close()


class Killed(BaseException):
    """Nothing that the store catches."""


def test_killed_between_telling_of_rows_and_removing_them(tmp_path, monkeypatch):
    from wjoin.sites import segments

    kept = StoreRetention(300, None, None, 3600.0)

    def kill(*_, **__):
        raise Killed

    for at, place in enumerate(
        ["wjoin.sites.store.segments.write_whole", "wjoin.sites.store.segments.remove_sealed"]
    ):
        folder = tmp_path / str(at)
        store = opened(folder, retention=kept)
        with monkeypatch.context() as patch:
            patch.setattr(place, kill)
            with pytest.raises(Killed):
                fill(store, 2000)
        store.close()
        store = opened(folder, retention=kept)
        assert store.first == 0
        assert not gone(store, 0, None)
        fill(store, 2000)
        latest = max(at + 40 * (at % 10 == 5) for at in range(store.first))
        assert gone(store, 0, latest)
        assert not gone(store, 0, latest + 1)
        store.close()
    assert segments.remove_sealed is not kill


def test_a_store_that_does_not_know_what_has_left_takes_it_for_later(tmp_path):
    kept = StoreRetention(300, None, None, 3600.0)
    store = opened(tmp_path, retention=kept)
    fill(store, 2000)
    store.close()
    file = tmp_path / "dropped.json"
    told = json.loads(file.read_text())
    for text in (None, "{", json.dumps({**told, "below": store.first - 1}), "[]", '{"a": 1}'):
        file.unlink() if text is None else file.write_text(text)
        store = opened(tmp_path, retention=kept)
        begin = store.first
        assert gone(store, begin - 1, 10_000)
        assert not gone(store, begin, None)
        store.close()
    store = opened(tmp_path, retention=kept)
    fill(store, 3000)
    assert store.first > begin
    assert gone(store, begin - 1, 10_000)
    assert gone(store, begin, 0)
    assert not gone(store, begin, 10_000)
    store.close()


def test_a_disk_that_is_full_gets_its_room_back(tmp_path):
    kept = StoreRetention(300, None, None, 3600.0)
    store = opened(tmp_path, retention=kept)
    # A folder in the place of the new file: it cannot be written.
    (tmp_path / "dropped.part").mkdir()
    fill(store, 2000)
    assert store.first > 1000
    assert gone(store, 0, 0)
    assert not gone(store, 0, 10_000)
    (tmp_path / "dropped.part").rmdir()
    store.close()
    store = opened(tmp_path, retention=kept)
    assert gone(store, 0, 10_000)
    store.close()


def test_what_has_left_is_known_from_a_row_on():
    found = Dropped(10, 10, None).and_also(20, 7).and_also(30, 5)
    assert found == Dropped(10, 30, 7)
    assert [found.only_before(10, low) for low in (None, 7, 8)] == [False, False, True]
    assert not found.only_before(9, 8)
    assert load_dropped(Path("/nowhere"), 0) == Dropped(0, 0, None)


# Over a socket
