"""Rows that are held at a site, asked for over a socket: extents, pushed filters, limits, restarts."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kit.slow_link import SlowLink, port_of
from tests.sites.processes import BEGIN, Process, Sites, put, stream_of, wait_for_rows
from tests.sites.stores import extent_by_hand, without_size
from tests.tiers import examples
from wjoin.grammar.plain import plain
from wjoin.sites.block_size import block_bytes
from wjoin.sites.failures import SiteError, unpacked
from wjoin.sites.held import ExtentAsked, HeldRange, Wanted, encode_wanted
from wjoin.sites.protocol import ROW, MeasuredLink, RowsRequest, encode_request
from wjoin.sites.value_filter import ValueFilter

pytestmark = pytest.mark.long

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
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_reduced_rows_are_those_of_looking_through(site, lineage, data):
    place = st.integers(0, COUNT)
    ranges = [
        HeldRange(min(one, other), max(one, other), None if low is None else BEGIN + low * 1000)
        for one, other, low in data.draw(st.lists(st.tuples(place, place, st.none() | place), max_size=4))
    ]
    high = data.draw(st.none() | place.map(lambda at: BEGIN + at * 1000))
    seed = data.draw(st.integers(0, 99))
    filtered, keyed = (data.draw(st.none() | st.sampled_from([0, 1, 50, 250])) for _ in range(2))
    chance = np.random.default_rng(seed)
    ids = [chance.integers(0, 6000, count or 0) for count in (filtered, keyed)]
    filter = None if filtered is None else ValueFilter.of(pa.array(ids[0]))
    keys = None if keyed is None else ValueFilter.of(pa.array(ids[1]))
    client = site.client()
    found = numbers(client.reduced("a", lineage, ranges, "id", COLUMNS, filter=filter, keys=keys, high=high))
    wanted = by_hand(ranges, high, np.concatenate(ids))
    assert len(found) == len(set(found))
    assert found == wanted
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
    keys = ValueFilter.of(pa.array(["name 7", "nobody"]))
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
    client, text, one = site.client(), ValueFilter.of(pa.array(["x"])), ValueFilter.of(pa.array([1]))

    def ask(column="id", columns=COLUMNS, ranges=RANGES, filter=None, keys=None):
        with pytest.raises(SiteError) as caught:
            list(client.reduced("a", lineage, ranges, column, columns, filter=filter, keys=keys, high=None))
        return caught.value.kind

    assert ask(keys=text) == "schema"
    assert ask(filter=text) == "schema"
    assert ask(column="nothing", keys=text) == "schema"
    assert ask(columns=["nothing"], keys=one) == "schema"
    assert ask(ranges=[HeldRange(0, COUNT + 1)], keys=one) == "broken"
    assert ask(ranges=[HeldRange(-1, 5)], keys=one) == "broken"
    nothing = client.reduced("a", lineage, RANGES, "id", COLUMNS, filter=None, keys=None, high=None)
    assert [*nothing] == []


def raw(site, ticket: bytes) -> SiteError:
    with flight.FlightClient(site.url) as client, pytest.raises(flight.FlightError) as caught:
        client.do_get(flight.Ticket(ticket)).read_all()
    found = unpacked(caught.value.extra_info, site.url)
    assert found is not None
    return found


KEYS = ValueFilter.of(pa.array([1])).encode()
WANTED = Wanted("id", (HeldRange(0, 9),))


def held(**entries) -> bytes:
    head = json.dumps({**plain(WANTED), **entries}).encode()
    return len(head).to_bytes(4, "little") + head + KEYS


def span(start, stop, low=None) -> dict:
    return {"start": start, "stop": stop, "low": low}


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xff\xff\xff{}",
        b"\2\0\0\0{}",
        b"\2\0\0\0[]",
        encode_wanted(WANTED, b""),
        encode_wanted(WANTED, b"no filter"),
        encode_wanted(WANTED, KEYS[:-1]),
        held(other=1),
        held(column=5),
        held(ranges=[{"start": 0, "stop": 9}]),
        held(ranges=[span(9, 0)]),
        held(ranges=[span(0, 9, 1.5)]),
        held(ranges=[span(0, 9, True)]),
        held(ranges=[span(0, 1 << 70)]),
        held(ranges=[span(0, 9), span(8, 10)]),
        held(ranges=5),
        held(high="x"),
        held(high=1 << 64),
        held(filter=7),
        held(besides=True),
    ],
    ids=range(20),
)
def test_malformed_requests_for_held_rows(site, lineage, body):
    assert raw(site, encode_request(RowsRequest("reduced", "a", lineage, ("id",)), body)).kind == "broken"


def asked(lineage: str, **entries) -> bytes:
    whole = plain(ExtentAsked("a", lineage, 0, 9, 1, None))
    return json.dumps({**whole, **entries}).encode()


@pytest.mark.slow
@pytest.mark.parametrize(
    "entries",
    [
        {"ceiling": 1.5},
        {"ceiling": True},
        {"ceiling": None},
        {"more": 2},
        {"mark": "x"},
        {"ceiling": 99999999999999999999},
        {"stop": -1},
        {"start": "0"},
    ],
)
def test_malformed_requests_for_an_extent(site, lineage, entries):
    assert acted(site, "extent", asked(lineage, **entries)).kind == "broken"


@pytest.mark.slow
@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"{}"])
def test_no_requests_for_an_extent(site, lineage, body):
    assert acted(site, "extent", body).kind == "broken"


def acted(site, kind: str, body: bytes) -> SiteError:
    with flight.FlightClient(site.url) as client, pytest.raises(flight.FlightError) as caught:
        list(client.do_action(flight.Action(kind, body)))
    return unpacked(caught.value.extra_info, site.url)


@pytest.mark.slow
def test_limits_of_held_requests(site, lineage):
    # Few bytes on the way, and more than a request may have once they are unpacked.
    many = ValueFilter.of(pa.array(range(9_000))).encode()
    request = RowsRequest("reduced", "a", lineage, ("id",))
    assert raw(site, encode_request(request, encode_wanted(WANTED, many))).kind == "limit"
    unknown = encode_wanted(replace(WANTED, filter="0" * 32), b"")
    assert raw(site, encode_request(request, unknown)).kind == "filter"
    small = encode_request(replace(request, block_bytes=0), encode_wanted(WANTED, KEYS))
    assert raw(site, small).kind == "broken"
    assert acted(site, "filter", b"nothing").kind == "broken"


@pytest.mark.slow
def test_more_ranges_than_a_request_may_have_come_in_order(site, lineage):
    ranges = [HeldRange(at, at + 30, BEGIN + at) for at in range(0, 40_000, 40)]
    client, keys = site.client(), ValueFilter.of(pa.array(np.arange(0, 5000, 20)))
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
    sizes = [
        block_bytes(MeasuredLink(latency, rate)) for latency, rate in ((0.005, 1e3), (0.1, 1e6), (0.001, 1e8))
    ]
    assert sizes == [64_000, 400_000, 8_000_000]
    assert block_bytes(MeasuredLink(0.001, 1e8), 500_000) == 500_000
    assert block_bytes(MeasuredLink(0.001, 1e8), 1000) == 64_000


@pytest.mark.slow
def test_on_a_slow_link_a_lost_connection_costs_one_block(site, lineage):
    from wjoin.sites.client import SiteClient
    from wjoin.sites.protocol import SiteAddress

    with SlowLink(port_of(site.url), bytes_per_second=400_000.0, latency=0.005) as link:
        host, port = link.address
        size = block_bytes(MeasuredLink(0.01, 400_000.0))
        with SiteClient(SiteAddress(f"grpc://{host}:{port}"), block_bytes=size) as client:
            found = []
            for block in client.rows("a", lineage, 0, 20_000, COLUMNS):
                assert block.nbytes < 1.5 * size
                found.append(block)
                if len(found) == 4:
                    link.cut()
            assert len(found) > 5
            assert numbers(found) == [*range(20_000)]
