"""Rows that are held at a site until their values are asked for, against all rows looked through."""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sites.processes import BEGIN, Process, Sites, put, stream_of, wait_for_rows
from wjoin.sites.block_size import block_bytes
from wjoin.sites.dropped import Dropped, load_dropped
from wjoin.sites.failures import SiteError, unpacked
from wjoin.sites.held import Extent, HeldRange, Wanted, behind, disjoint, encode_wanted
from wjoin.sites.protocol import ROW, Link, Request, encode_keys, encode_request
from wjoin.sites.reduction import Passing, as_column
from wjoin.sites.retention import Retention
from wjoin.sites.store import StoreOptions, StreamStore
from wjoin.sites.value_filter import ValueFilter
from wjoin.testing.slow_link import SlowLink, port_of

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.int32(), "s": pa.string(), "f": pa.float64()})
FOREVER = Retention(None, 1 << 40, None, 3600.0)

_TIMES = st.integers(-20, 20)
_ROWS = st.lists(
    st.tuples(
        _TIMES,
        st.none() | st.integers(-4, 4),
        st.none() | st.text("ab", max_size=2),
        st.none() | st.sampled_from([0.0, 1.5, float("nan")]),
    ),
    max_size=40,
)
_KEYS = {
    "k": (st.none() | st.integers(-6, 6) | st.just(1 << 40), pa.int64()),
    "s": (st.none() | st.text("abc", max_size=2), pa.string()),
    "f": (st.none() | st.sampled_from([0.0, -0.0, 1.5, float("nan")]), pa.float64()),
}


def batch(rows: list[tuple]) -> pa.RecordBatch:
    columns = [*zip(*rows, strict=True)] or [()] * len(SCHEMA)
    arrays = [pa.array(column, each.type) for column, each in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def opened(folder: Path, keys=("k",), retention=FOREVER, segment_bytes=1500) -> StreamStore:
    options = StoreOptions("a", SCHEMA, "ts", keys, retention, segment_bytes)
    _OPEN.append(StreamStore(folder, options, lambda before, step: {**before, **step}))
    return _OPEN[-1]


_OPEN: list[StreamStore] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Close what a test has opened, also where it has failed."""
    yield
    while _OPEN:
        _OPEN.pop().close()


def extent_by_hand(times: list[int], ceiling: int, mark: int | None) -> dict:
    ahead, others = [t for t in times if t > ceiling], [t for t in times if t <= ceiling]
    return {
        "rows": len(times),
        "ahead": len(ahead),
        "furthest": max(ahead, default=None),
        "earliest": min(others, default=None),
        "latest": max(others, default=None),
        "late": sum(mark is not None and t < mark for t in times),
    }


def without_size(extent: Extent) -> dict:
    return {name: value for name, value in asdict(extent).items() if name != "size"}


def equal(one: object, other: object) -> bool:
    if one is None or other is None:
        return False
    return one == other or (one != one and other != other)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    column = data.draw(st.sampled_from(["k", "s", "f"]))
    values, kind = _KEYS[column]
    keys = data.draw(st.lists(values, max_size=3))
    filtered = data.draw(st.none() | st.lists(values, max_size=4)) if column != "f" else None
    filter = None if filtered is None else ValueFilter.of(pa.array(filtered, kind))
    besides = filter is not None and data.draw(st.booleans())
    type = SCHEMA.field(column).type
    passing = Passing(column, filter, as_column(pa.array(keys, kind), type), besides)
    block = data.draw(st.integers(1, 7))
    found = [*store.reduced(disjoint(ranges), passing, high, ["s", "ts"], block)]
    assert all(0 < each.num_rows <= block for each in found)

    def passes(value: object) -> bool:
        key = any(equal(value, each) for each in keys)
        held = any(equal(value, each) for each in filtered or [])
        return (key and not held) if besides else (key or held)

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
    from wjoin.sites import reduction

    asked = []
    monkeypatch.setattr(
        reduction, "matches", lambda *given, real=reduction.matches: asked.append(given) or real(*given)
    )
    store = opened(tmp_path)
    for at in range(100):
        store.append(batch([(at, at % 10, "x", None)] * 10), {"at": at})
    for column, indexed in (("k", True), ("s", False)):
        key = pa.array([3], pa.int32()) if column == "k" else pa.array(["x"])
        for ranges, times in (([HeldRange(0, 1000, 50)], True), ([HeldRange(30, 35)], False)):
            asked.clear()
            found = [*store.reduced(ranges, Passing(column, None, key), None, ["ts"], 100)]
            assert bool(asked) == (indexed and times)
            count = 5 if not times else 50 if column == "k" else 500
            assert sum(each.num_rows for each in found) == count
    store.close()


def keys_of(values: list, column: str = "k") -> Passing:
    return Passing(column, None, pa.array(values, SCHEMA.field(column).type))


def fill(store: StreamStore, stop: int) -> None:
    for start in range(store.next, stop, 10):
        # Row 5 of each batch is 40 later than its neighbours.
        store.append(
            batch([(at + 40 * (at % 10 == 5), at % 10, "x" * 20, None) for at in range(start, start + 10)]),
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
    kept = Retention(300, None, None, 3600.0)
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

    kept = Retention(300, None, None, 3600.0)

    def kill(*_):
        raise Killed

    for at, place in enumerate(
        ["wjoin.sites.store.save_dropped", "wjoin.sites.store.segments.remove_sealed"]
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
    kept = Retention(300, None, None, 3600.0)
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
    kept = Retention(300, None, None, 3600.0)
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

COLUMNS = ["id", "name"]
_HEAD = (
    'segment_bytes = "200 kB"\nmetrics = "127.0.0.1:0"\n'
    "[site.limits]\nmax_request_rows = 300\nmax_request_bytes = '60 kB'\nmax_filter_bytes = '40 kB'\n"
)
COUNT = 60_000


def rows_of(start: int, stop: int) -> pa.Table:
    """Return rows out of order of time, some without an id, each id several times."""
    chance = np.random.default_rng(start)
    numbers = np.arange(start, stop)
    ids = chance.integers(0, 5000, len(numbers))
    times = BEGIN + numbers * 1000 + chance.integers(-500_000, 500_000, len(numbers))
    return pa.table(
        {
            "id": pa.array(ids, mask=ids % 50 == 0),
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "name": pa.array([f"name {each}" for each in ids % 100]),
            "n": pa.array(numbers),
        }
    )


ALL = pa.concat_tables([rows_of(at, at + 10_000) for at in range(0, COUNT, 10_000)])
TIMES = np.asarray(ALL["ts"].cast(pa.int64()))


def started(folder: Path, running: list[Process], *, port: int = 0) -> Process:
    table = stream_of(folder / "in", window="window_rows = 1000000")
    return Sites(folder, running).start(table, head=_HEAD, port=port)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder, running = tmp_path_factory.mktemp("held"), []
    site = started(folder, running)
    for at in range(0, COUNT, 10_000):
        put(rows_of(at, at + 10_000), folder / "in" / f"{at:06}.parquet")
    wait_for_rows(site.client(), "a", COUNT)
    yield site
    for each in running:
        each.end()
        print(each.log())


@pytest.fixture(scope="module")
def lineage(site) -> str:
    return site.client().describe("a").lineage


def by_hand(ranges, high, ids) -> list[int]:
    wanted = np.zeros(COUNT, np.bool_)
    for each in ranges:
        low = -(1 << 63) if each.low is None else each.low
        wanted[each.start : each.stop] |= TIMES[each.start : each.stop] >= low
    wanted &= np.asarray(pa.compute.is_in(ALL["id"], pa.array(ids, pa.int64())))
    if high is not None:
        wanted &= high >= TIMES
    return np.flatnonzero(wanted).tolist()


def numbers(blocks) -> list[int]:
    blocks = [*blocks]
    table = pa.Table.from_batches(blocks) if blocks else pa.table({ROW: pa.array([], pa.int64())})
    found = table[ROW].to_pylist()
    if blocks:
        assert table.drop([ROW]).cast(ALL.select(COLUMNS).schema) == ALL.select(COLUMNS).take(found)
    return found


RANGES = [
    HeldRange(0, 30_000, BEGIN + 5_000_000),
    HeldRange(20_000, 40_000, BEGIN + 25_000_000),
    HeldRange(50_000, 50_001),
]


@pytest.mark.slow
def test_the_extent_of_a_range(site, lineage):
    client = site.client()
    whole = client.extent("a", lineage, 0, COUNT, ceiling=1 << 62)
    assert (whole.rows, whole.ahead, whole.furthest, whole.late) == (COUNT, 0, None, 0)
    assert (whole.earliest, whole.latest) == (TIMES.min(), TIMES.max())
    assert 0.8 * ALL.nbytes < whole.size < 1.2 * ALL.nbytes
    ceiling, mark = BEGIN + 30_000_000, BEGIN + 2_000_000
    found = client.extent("a", lineage, 123, 45_678, ceiling=ceiling, mark=mark)
    assert without_size(found) == extent_by_hand(TIMES[123:45_678].tolist(), ceiling, mark)
    assert client.extent("a", lineage, 7, 7, ceiling=0).rows == 0
    assert client.received["extent"] > 0
    for call, kind in (
        (lambda: client.extent("a", lineage, 0, COUNT + 1, ceiling=0), "broken"),
        (lambda: client.extent("a", "x", 0, 1, ceiling=0), "lineage"),
        (lambda: client.extent("b", lineage, 0, 1, ceiling=0), "schema"),
    ):
        with pytest.raises(SiteError) as caught:
            call()
        assert caught.value.kind == kind
        assert caught.value.site == site.url


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_reduced_rows_are_those_of_looking_through(site, lineage, data):
    place = st.integers(0, COUNT)
    ranges = [
        HeldRange(min(one, other), max(one, other), None if low is None else BEGIN + low * 1000)
        for one, other, low in data.draw(st.lists(st.tuples(place, place, st.none() | place), max_size=4))
    ]
    high = data.draw(st.none() | place.map(lambda at: BEGIN + at * 1000))
    seed = data.draw(st.integers(0, 99))
    filtered = data.draw(st.none() | st.sampled_from([0, 1, 50, 600]))
    keyed = data.draw(st.none() | st.sampled_from([0, 1, 50, 700]))
    chance = np.random.default_rng(seed)
    ids = [chance.integers(0, 6000, count or 0) for count in (filtered, keyed)]
    filter = None if filtered is None else ValueFilter.of(pa.array(ids[0]))
    keys = None if keyed is None else pa.array(ids[1])
    client = site.client()
    found = numbers(client.reduced("a", lineage, ranges, "id", COLUMNS, filter=filter, keys=keys, high=high))
    wanted = by_hand(ranges, high, np.concatenate(ids))
    assert len(found) == len(set(found))
    if keyed is None or keyed < 300:
        assert found == sorted(found)
    assert filter is None or filter.exact
    assert sorted(found) == wanted
    client.close()


@pytest.mark.slow
def test_a_bloom_filter_lets_few_others_pass_and_keys_by_text(site, lineage):
    client = site.client()
    ids = np.random.default_rng(3).integers(-(1 << 62), 1 << 62, 3000)
    filter = ValueFilter.of(pa.array([*ids, *range(100)]))
    assert not filter.exact
    found = numbers(client.reduced("a", lineage, RANGES, "id", COLUMNS, filter=filter, keys=None, high=None))
    wanted = set(by_hand(RANGES, None, range(100)))
    assert wanted <= set(found)
    assert len(found) - len(wanted) < 0.03 * 40_000
    keys = pa.array(["name 7", "nobody"])
    found = numbers(client.reduced("a", lineage, RANGES, "name", COLUMNS, filter=None, keys=keys, high=None))
    assert found == by_hand(RANGES, None, range(7, 5000, 100))


@pytest.mark.slow
def test_filters_are_pushed_once_and_again_when_they_have_gone(site, lineage):
    client, chance = site.client(), np.random.default_rng(4)
    filters = [
        ValueFilter.of(pa.array([*range(at, at + 10), *chance.integers(1 << 40, 1 << 62, 12_000)]))
        for at in (0, 20, 40)
    ]

    def ask(filter: ValueFilter, at: int) -> int:
        before = client.sent.get("action", 0)
        found = numbers(
            client.reduced("a", lineage, RANGES, "id", COLUMNS, filter=filter, keys=None, high=None)
        )
        assert {*by_hand(RANGES, None, range(at, at + 10))} <= {*found}
        return client.sent.get("action", 0) - before

    assert ask(filters[0], 0) >= len(filters[0].encode())
    assert ask(filters[0], 0) == 0
    # Two of them are more than max_filter_bytes.
    assert ask(filters[1], 20) > 0
    assert ask(filters[2], 40) > 0
    assert ask(filters[0], 0) > 0
    large = ValueFilter.of(pa.array(chance.integers(1 << 40, 1 << 62, 40_000)))
    with pytest.raises(SiteError) as caught:
        ask(large, 0)
    assert caught.value.kind == "limit"
    assert "max_filter_bytes" in caught.value.help


@pytest.mark.slow
def test_another_type_and_unknown_names(site, lineage):
    client, text = site.client(), pa.array(["x"])

    def ask(column="id", columns=COLUMNS, ranges=RANGES, filter=None, keys=None):
        with pytest.raises(SiteError) as caught:
            list(client.reduced("a", lineage, ranges, column, columns, filter=filter, keys=keys, high=None))
        return caught.value.kind

    assert ask(keys=text) == "schema"
    assert ask(filter=ValueFilter.of(text)) == "schema"
    assert ask(column="nothing", keys=text) == "schema"
    assert ask(columns=["nothing"], keys=pa.array([1])) == "schema"
    assert ask(ranges=[HeldRange(0, COUNT + 1)], keys=pa.array([1])) == "broken"
    assert ask(ranges=[HeldRange(-1, 5)], keys=pa.array([1])) == "broken"
    nothing = client.reduced("a", lineage, RANGES, "id", COLUMNS, filter=None, keys=None, high=None)
    assert [*nothing] == []


def raw(site, ticket: bytes) -> SiteError:
    with flight.FlightClient(site.url) as client, pytest.raises(flight.FlightError) as caught:
        client.do_get(flight.Ticket(ticket)).read_all()
    found = unpacked(caught.value.extra_info, site.url)
    assert found is not None
    return found


KEYS = encode_keys(pa.record_batch({"id": [1]}))
WANTED = Wanted("id", (HeldRange(0, 9),))


def held(**entries) -> bytes:
    head = json.dumps({**asdict(WANTED), "ranges": [[0, 9, None]], **entries}).encode()
    return len(head).to_bytes(4, "little") + head + KEYS


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xff\xff\xff{}",
        b"\2\0\0\0{}",
        b"\2\0\0\0[]",
        encode_wanted(WANTED, b""),
        encode_wanted(WANTED, b"no arrow"),
        encode_wanted(replace(WANTED, besides=True), b""),
        encode_wanted(WANTED, encode_keys(pa.record_batch({"name": ["x"]}))),
        held(other=1),
        held(column=5),
        held(ranges=[[0, 9]]),
        held(ranges=[[9, 0, None]]),
        held(ranges=[[0, 9, 1.5]]),
        held(ranges=[[0, 9, True]]),
        held(ranges=[[0, 1 << 70, None]]),
        held(ranges=[[0, 9, None], [8, 10, None]]),
        held(ranges=5),
        held(high="x"),
        held(high=1 << 64),
        held(filter=7),
        held(besides=None),
    ],
    ids=range(21),
)
def test_malformed_requests_for_held_rows(site, lineage, body):
    assert raw(site, encode_request(Request("reduced", "a", lineage, ("id",)), body)).kind == "broken"


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b'{"mark": 5}',
        b'{"ceiling": 1.5}',
        b'{"ceiling": true}',
        b'{"ceiling": 1, "more": 2}',
        b'{"ceiling": 1, "mark": "x"}',
        b'{"ceiling": 99999999999999999999}',
    ],
)
def test_malformed_requests_for_an_extent(site, lineage, body):
    assert raw(site, encode_request(Request("extent", "a", lineage, (), 0, 9), body)).kind == "broken"


@pytest.mark.slow
def test_limits_of_held_requests(site, lineage):
    many = encode_keys(pa.record_batch({"id": range(301)}))
    request = Request("reduced", "a", lineage, ("id",))
    assert raw(site, encode_request(request, encode_wanted(WANTED, many))).kind == "limit"
    unknown = encode_wanted(replace(WANTED, filter="0" * 32), b"")
    assert raw(site, encode_request(request, unknown)).kind == "filter"
    small = encode_request(replace(request, block_bytes=0), encode_wanted(WANTED, KEYS))
    assert raw(site, small).kind == "broken"
    with flight.FlightClient(site.url) as client, pytest.raises(flight.FlightError) as caught:
        list(client.do_action(flight.Action("filter", b"nothing")))
    assert unpacked(caught.value.extra_info, site.url).kind == "broken"


@pytest.mark.slow
def test_more_ranges_than_a_request_may_have_come_in_order(site, lineage):
    ranges = [HeldRange(at, at + 30, BEGIN + at) for at in range(0, 40_000, 40)]
    client, keys = site.client(), pa.array(np.arange(0, 5000, 20))
    found = numbers(client.reduced("a", lineage, ranges, "id", COLUMNS, filter=None, keys=keys, high=None))
    assert found == by_hand(ranges, None, np.arange(0, 5000, 20))


@pytest.mark.slow
def test_restarted_in_the_middle_and_between_requests(tmp_path):
    running: list[Process] = []
    site = started(tmp_path, running)
    for at in range(0, COUNT, 10_000):
        put(rows_of(at, at + 10_000), tmp_path / "in" / f"{at:06}.parquet")
    client = site.client(patience=60.0)
    client._block_bytes = 2000
    lineage = wait_for_rows(client, "a", COUNT)
    filter = ValueFilter.of(pa.array(np.arange(2500)))
    ranges = [HeldRange(0, COUNT, BEGIN)]
    blocks = []
    for block in client.reduced("a", lineage, ranges, "id", COLUMNS, filter=filter, keys=None, high=None):
        blocks.append(block)
        if len(blocks) in (5, 200):
            site.kill()
            site = started(tmp_path, running, port=int(site.url.rpartition(":")[2]))
    wanted = by_hand(ranges, None, range(2500))
    assert numbers(blocks) == wanted
    assert len(blocks) > 300
    again = client.reduced("a", lineage, ranges, "id", COLUMNS, filter=filter, keys=None, high=None)
    assert numbers(again) == wanted
    client.close()
    for each in running:
        each.end()


# Blocks


def test_blocks_fit_the_link():
    sizes = [block_bytes(Link(latency, rate)) for latency, rate in ((0.005, 1e3), (0.1, 1e6), (0.001, 1e8))]
    assert sizes == [64_000, 400_000, 8_000_000]
    assert block_bytes(Link(0.001, 1e8), 500_000) == 500_000
    assert block_bytes(Link(0.001, 1e8), 1000) == 64_000


@pytest.mark.slow
def test_on_a_slow_link_a_lost_connection_costs_one_block(site, lineage):
    from wjoin.sites.client import SiteClient
    from wjoin.sites.protocol import SiteAddress

    with SlowLink(port_of(site.url), bytes_per_second=400_000.0, latency=0.005) as link:
        host, port = link.address
        size = block_bytes(Link(0.01, 400_000.0))
        with SiteClient(SiteAddress(f"grpc://{host}:{port}"), block_bytes=size) as client:
            found = []
            for block in client.rows("a", lineage, 0, 20_000, COLUMNS):
                assert block.nbytes < 1.5 * size
                found.append(block)
                if len(found) == 4:
                    link.cut()
            assert len(found) > 5
            assert numbers(found) == [*range(20_000)]
