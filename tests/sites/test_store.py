"""The store against a plain table: rows come in, are sealed, expire, and the store is opened anew."""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sites import stores
from tests.sites.stores import FOREVER
from tests.tiers import examples
from wjoin.sites.failures import SiteError
from wjoin.sites.far import greatest_time
from wjoin.sites.held import HeldRange
from wjoin.sites.key_index import estimate, sketch
from wjoin.sites.protocol import ROW
from wjoin.sites.reduction import Passing
from wjoin.sites.retention import StoreRetention, load_consumers
from wjoin.sites.sources import StreamConfig
from wjoin.sites.store import StreamStore
from wjoin.sites.value_filter import ValueFilter

SCHEMA = pa.schema(
    {"ts": pa.int64(), "k": pa.int64(), "f": pa.float64(), "s": pa.string(), "l": pa.list_(pa.int64())}
)

_ROWS = st.lists(
    st.tuples(
        st.integers(-50, 50),
        st.one_of(st.none(), st.integers(-3, 3)),
        st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.5, float("nan")])),
        st.one_of(st.none(), st.text(max_size=5)),
        st.one_of(st.none(), st.lists(st.integers(0, 9), max_size=3)),
    ),
    max_size=40,
)
_ACTIONS = st.lists(st.one_of(_ROWS, st.just("open")), min_size=1, max_size=12)


batch = partial(stores.batch, SCHEMA)


def store_in(folder: Path, retention: StoreRetention = FOREVER, segment_bytes: int = 3000) -> StreamStore:
    return stores.opened(folder, SCHEMA, ("k", "f"), retention, segment_bytes)


@settings(max_examples=examples(60))
@given(_ACTIONS, st.data())
def test_any_rows_come_back_by_number(actions, data):
    with tempfile.TemporaryDirectory() as name:
        store, kept, lineages = store_in(Path(name)), [], set()
        for at, action in enumerate(actions):
            if action == "open":
                store.close()
                store = store_in(Path(name))
            else:
                store.append(batch(action), {"at": at})
                kept += action
            lineages.add(store.lineage)
        assert (store.next, len(lineages)) == (len(kept), 1)
        written = [at for at, action in enumerate(actions) if action != "open"]
        assert store.position.get("at") == (written[-1] if written else None)
        _check(store, batch(kept), data)
        store.close()


def _check(store: StreamStore, expected: pa.RecordBatch, data: st.DataObject) -> None:
    count = expected.num_rows
    start = data.draw(st.integers(0, count))
    stop = data.draw(st.integers(start, count))
    block = data.draw(st.integers(1, 10))
    found = [*store.rows(start, stop, ["s", "ts"], block)]
    assert all(each.num_rows == block for each in found[:-1])
    assert pylist(found) == pylist(
        [with_numbers(expected).slice(start, stop - start).select([ROW, "s", "ts"])]
    )
    if count:
        numbers = np.array(data.draw(st.lists(st.integers(0, count - 1), max_size=20)), np.int64)
        assert same(store.full(numbers, SCHEMA.names), expected.take(pa.array(numbers)))


def with_numbers(rows: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array(np.arange(rows.num_rows)), *rows.columns], names=[ROW, *rows.schema.names]
    )


def pylist(batches: list[pa.RecordBatch]) -> list[dict]:
    return [row for each in batches for row in each.to_pylist()]


def same(one: pa.RecordBatch, other: pa.RecordBatch) -> bool:
    # NaN equals nothing in Arrow's comparison.
    return repr(one.to_pylist()) == repr(other.to_pylist())


@settings(max_examples=examples(40))
@given(st.lists(_ROWS.filter(bool), min_size=1, max_size=8), st.integers(0, 5000), st.integers(0, 255))
def test_whatever_a_kill_has_left_of_the_log_whole_batches_come_back(batches, cut, noise):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = store_in(folder, segment_bytes=1 << 30)
        for at, rows in enumerate(batches):
            store.append(batch(rows), {"at": at})
        store.close()
        (log,) = folder.glob("*.log")
        data = log.read_bytes()
        log.write_bytes(data[: max(0, len(data) - cut)] + bytes([noise]) * (cut % 7))
        again = store_in(folder, segment_bytes=1 << 30)
        whole = again.position.get("at", -1) + 1
        assert again.next == sum(map(len, batches[:whole]))
        for at in range(whole, len(batches)):
            again.append(batch(batches[at]), {"at": at})
        everything = [row for rows in batches for row in rows]
        assert same(again.full(np.arange(len(everything)), SCHEMA.names), batch(everything))
        again.close()


def fill(store: StreamStore, count: int) -> None:
    for start in range(store.next, store.next + count, 10):
        store.append(batch([(start + i, i, 1.0, "x" * 20, None) for i in range(10)]), {"at": start})


def fill_from(store: StreamStore, count: int, time: int = 0) -> None:
    """Append rows with event times from ``time`` on, whatever their numbers are."""
    for start in range(time, time + count, 10):
        store.append(batch([(start + i, i, 1.0, "x" * 20, None) for i in range(10)]), {"at": start})


def row_time(store: StreamStore) -> int:
    """Return the event time of the oldest row."""
    return store.full(np.array([store.first]), ["ts"]).column(0)[0].as_py()


def test_a_window_of_time_keeps_what_is_in_it(tmp_path):
    store = store_in(tmp_path, StoreRetention(300, None, None, 3600.0))
    fill(store, 2000)
    assert 2000 - 300 - 100 < store.first <= 2000 - 300
    assert len([*tmp_path.glob("*.arrow")]) < 12
    with pytest.raises(SiteError) as caught:
        store.full(np.array([store.first - 1]), ["ts"])
    assert caught.value.kind == "gone"
    assert "[streams.a]" in caught.value.help


def test_a_window_of_rows_and_a_bound_of_bytes(tmp_path):
    store = store_in(tmp_path / "rows", StoreRetention(None, 500, None, 3600.0))
    fill(store, 2000)
    assert 1400 < store.first <= 1500
    bounded = store_in(tmp_path / "bytes", StoreRetention(None, 1 << 40, 20_000, 3600.0))
    fill(bounded, 2000)
    assert bounded.first > 1000
    assert bounded.forced == bounded.first


def test_rows_that_a_consumer_needs_are_kept_also_over_a_restart(tmp_path):
    kept = StoreRetention(100, None, None, 3600.0)
    store = store_in(tmp_path, kept)
    store.keep_for("q", 0, None)
    fill(store, 1000)
    assert store.first == 0
    store.keep_for("q", 600, 550)
    store.close()
    store = store_in(tmp_path, kept)
    fill(store, 100)
    assert 400 < store.first <= 550
    store.keep_for("q", 1000, 800)
    store.expire()
    assert 650 < store.first <= 800
    store.keep_for("q", 1100, None)
    fill(store, 100)
    assert 650 < store.first <= 800
    store.keep_for("q", 1200, 1200)
    store.expire()
    assert 900 < store.first <= 1100
    store.keep_for("q", 1150, 5000)
    fill(store, 1000)
    assert 1000 < store.first <= 1150


@pytest.mark.parametrize("time", [greatest_time(pa.int64()) + 1, (1 << 63) - 1])
def test_rows_of_the_far_future_move_no_window_and_stay_no_longer_than_it(tmp_path, time):
    store = store_in(tmp_path, StoreRetention(300, None, None, 3600.0))
    store.append(batch([(time, 1, 1.0, "x" * 20, None)]), {})
    assert store.latest is None
    store.keep_for("q", 1, 100)
    fill_from(store, 100)
    assert (store.first, store.latest) == (0, 99)
    store.append(batch([(time, 1, 1.0, "x" * 20, None)] * 200), {})
    assert store.latest == 99
    store.close()
    store = store_in(tmp_path, StoreRetention(300, None, None, 3600.0))
    assert (store.latest, store.facts().latest, store.facts().span) == (99, 99, 99)
    assert store.facts().rate > 0.1
    for start in range(100, 2000, 100):
        store.keep_for("q", store.next, start)
        fill_from(store, 100, start)
    assert 1500 < row_time(store) <= 1700
    ranges = [HeldRange(0, store.next, 1700)]
    keys = Passing("k", (ValueFilter.of(pa.array([5])),))
    found = pa.Table.from_batches(store.reduced(ranges, keys, None, ["ts"], 1000))
    assert found["ts"].to_pylist() == [*range(1705, 2000, 10)]


def test_a_row_ahead_does_not_take_from_a_consumer_what_it_needs(tmp_path):
    """The site counts it, and the query drops it: it is no measure of what the query still asks for."""
    store = store_in(tmp_path, StoreRetention(100, None, None, 3600.0))
    fill(store, 500)
    store.keep_for("q", store.next, 400)
    store.append(batch([(1_000_000, 1, 1.0, "x" * 20, None)] * 200), {})
    store.keep_for("q", store.next, 400)
    store.expire()
    assert 300 < store.first <= 400


@pytest.mark.parametrize(
    "text",
    [
        '[{"name": "q", "read": 5, "floor": 90, "seen": 1e12}]',
        '[{"name": "q", "read": 5, "floor": "now", "seen": 1e12, "keep": 7}]',
        '[{"name": "q"}]',
        "[5]",
        "{}",
        "[",
    ],
)
def test_consumers_of_an_earlier_start_are_read_or_tell_again(tmp_path, text):
    (tmp_path / "consumers.json").write_text(text, "utf-8")
    store = store_in(tmp_path)
    known = [(each.read, each.floor) for each in store.consumers()]
    assert known == ([(5, 90)] if "90" in text else [])
    store.keep_for("q", 0, 5)
    assert [each.floor for each in load_consumers(tmp_path / "consumers.json")] == [5]


def test_a_consumer_that_is_released_keeps_nothing_also_over_a_restart(tmp_path):
    kept = StoreRetention(100, None, None, 3600.0)
    store = store_in(tmp_path, kept)
    for name in ("q/A", "r/A"):
        store.keep_for(name, 0, None)
    fill(store, 1000)
    assert (store.release("r/A"), store.first) == (("r/A",), 0)
    store.expire()
    assert store.first == 0
    assert (store.release("q"), store.release("q")) == (("q/A",), ())
    store.close()
    store = store_in(tmp_path, kept)
    store.expire()
    assert 800 < store.first <= 900


def test_a_consumer_is_forgotten_after_its_lease(tmp_path):
    store = store_in(tmp_path, StoreRetention(100, None, None, 0.0))
    store.keep_for("q", 0, None)
    fill(store, 1000)
    assert store.consumers() == ()
    assert store.first > 0


def test_a_disk_that_is_full_at_sealing_costs_no_row(tmp_path):
    store = store_in(tmp_path, segment_bytes=4000)
    # A folder in the place of the new log: nothing can be written there.
    (tmp_path / "log.part").mkdir()
    failed = 0
    for at in range(40):
        try:
            store.append(batch([(at, at, 1.0, "x" * 20, None)] * 10), {"at": at})
        except OSError:
            failed += 1
        assert store.position == {"at": at}
    assert failed
    assert [*tmp_path.glob("*.arrow")] == []
    (tmp_path / "log.part").rmdir()
    store.close()
    store = store_in(tmp_path, segment_bytes=4000)
    assert store.next == 400
    fill(store, 100)
    assert store.full(np.arange(400), ["ts"]).column(0).to_pylist() == [
        at for at in range(40) for _ in range(10)
    ]
    assert [*tmp_path.glob("*.arrow")]


def test_another_schema_is_refused(tmp_path):
    store_in(tmp_path).close()
    stream = StreamConfig("a", "", pa.schema({"ts": pa.int64()}), "ts", (), FOREVER)
    with pytest.raises(SiteError, match="the columns of stream a differ"):
        StreamStore(tmp_path, stream, lambda before, step: step)


def test_distinct_values_are_estimated_to_a_few_percent():
    found = estimate(sketch(pa.array(np.arange(200_000) % 50_000)))
    assert abs(found - 50_000) < 0.1 * 50_000
    assert estimate(sketch(pa.array(["a", None, "b", "a"]))) == 2


def test_facts_tell_widths_rate_and_span(tmp_path):
    store = store_in(tmp_path)
    fill(store, 500)
    facts = store.facts()
    assert (facts.first, facts.next, facts.latest, facts.span) == (0, 500, 499, 499)
    assert facts.widths["ts"] == 8
    assert 20 <= facts.widths["s"] <= 24.5
    assert 0.9 < facts.rate < 1.2
    assert facts.distinct == {"k": 10, "f": 1}
    assert pc.min(pa.array([*facts.distinct.values()])).as_py() == 1
