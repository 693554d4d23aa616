"""What a site refuses: rows that are gone, unknown names, requests too large, and bytes that mean nothing."""

import json
import struct
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sites.processes import Process, Sites, put, rows_of, stream_of, wait_for_rows
from tests.tiers import examples
from wjoin.sites.failures import SiteError, unpacked
from wjoin.sites.held import HeldRange, Wanted, encode_wanted
from wjoin.sites.protocol import RowsRequest, decode_numbers, encode_numbers, encode_request
from wjoin.sites.value_filter import ValueFilter
from wjoin.testing.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.slow]

COLUMNS = ["id", "ts", "name", "price"]
_LIMITS = "[site.limits]\nmax_request_rows = 5000\nmax_request_bytes = '60 kB'\nmax_calls = 4\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    started: list[Process] = []
    site = Sites(folder, started).start(
        stream_of(folder / "in", window="window_rows = 100000"),
        head=f'segment_bytes = "500 kB"\nmetrics = "127.0.0.1:0"\n{_LIMITS}',
    )
    for at in range(0, 200_000, 20_000):
        put(rows_of(at, at + 20_000), folder / "in" / f"{at:06}.parquet")
    wait_for_rows(site.client(), "a", 200_000)
    yield site
    for each in started:
        each.end()
        print(each.log())


@pytest.fixture(scope="module")
def lineage(site) -> str:
    return site.client().describe("a").lineage


def refused(call) -> SiteError:
    with pytest.raises(SiteError) as caught:
        call()
    return caught.value


def test_rows_by_number_in_any_order_and_more_than_a_request_may_have(site, lineage):
    client = site.client()
    first = client.describe("a").first
    assert 0 < first <= 100_000
    numbers = np.random.default_rng(2).integers(first, 200_000, 30_000)
    found = client.full("a", lineage, numbers, ["name", "id"])
    assert pa.Table.from_batches([found]) == rows_of(0, 200_000).select(["name", "id"]).take(
        pa.array(numbers)
    )
    assert client.full("a", lineage, np.empty(0, np.int64), COLUMNS).num_rows == 0
    assert client.sent["full"] < 30_000 * 4 + 5_000
    assert 0 < client.received["full"] < found.nbytes


def test_rows_that_have_left_the_window(site, lineage):
    client = site.client()
    for call in (
        lambda: [*client.rows("a", lineage, 0, 10, ["id"])],
        lambda: client.full("a", lineage, np.array([199_999, 3]), ["id"]),
    ):
        error = refused(call)
        assert error.kind == "gone"
        assert "stream a" in error.message
        assert "[streams.a]" in error.help


def test_unknown_names_and_rows_that_are_not_there_yet(site, lineage):
    client = site.client()
    assert refused(lambda: client.describe("b")).kind == "schema"
    error = refused(lambda: [*client.rows("a", lineage, 199_999, 200_000, ["nam"])])
    assert (error.kind, error.help) == ("schema", "its columns are id, ts, name, price")
    assert refused(lambda: [*client.rows("a", lineage, 199_999, 200_001, ["id"])]).kind == "broken"


def raw(site, ticket: bytes) -> SiteError:
    with flight.FlightClient(site.url) as client, pytest.raises(flight.FlightError) as caught:
        client.do_get(flight.Ticket(ticket)).read_all()
    return unpacked(caught.value.extra_info, site.url)


def test_requests_too_large(site, lineage):
    numbers = np.arange(100_000, 106_000)
    full = encode_request(RowsRequest("full", "a", lineage, ("id",)), encode_numbers(numbers))
    assert "6000 rows are asked for at once, and the limit is 5000" in raw(site, full).message
    rows = encode_request(RowsRequest("rows", "a", lineage, ("id",), 110_000, 120_000))
    assert raw(site, rows).kind == "limit"
    bytes_ = encode_request(RowsRequest("full", "a", lineage, ("id",)), b"8" + bytes(80_000))
    assert "the limit is 60000" in raw(site, bytes_).message
    assert raw(site, encode_request(RowsRequest("probe", stop=1 << 40))).kind == "limit"


@pytest.mark.parametrize(
    "ticket",
    [
        b"",
        b"WJS",
        b"XXXX\0\0\0\0",
        b"WJS1" + struct.pack("<I", 1 << 31) + b"{}",
        b"WJS1" + struct.pack("<I", 2) + b"[]",
        b"WJS1" + struct.pack("<I", 2) + b"{]",
        encode_request(RowsRequest("nothing", "a")),
        encode_request(RowsRequest("rows", "a", "LINEAGE", ("id",), -5, 3)),
        encode_request(RowsRequest("rows", "a", "LINEAGE", ("id",), 5, 3)),
        encode_request(RowsRequest("rows", "a", "LINEAGE", ("id", "id"), 5, 3)),
        encode_request(RowsRequest("rows", "a", "LINEAGE", ("id",), 150_000, 150_001, block_bytes=0)),
        encode_request(RowsRequest("rows", "a", "LINEAGE", ("id",), 150_000, 150_001, compression="x")),
        encode_request(RowsRequest("full", "a", "LINEAGE", ("id",)), b"4123"),
        encode_request(RowsRequest("full", "a", "LINEAGE", ("id",)), b"8123"),
        encode_request(RowsRequest("full", "a", "LINEAGE", ()), encode_numbers(np.array([150_000]))),
        b"WJS1" + struct.pack("<I", 24) + b'{"kind":"rows","stop":1.5}'[:24],
        b"WJS1" + struct.pack("<I", 25) + b'{"kind":"rows","stop":[]}',
    ],
    ids=range(17),
)
def test_malformed_tickets(site, lineage, ticket):
    whole = ticket.replace(b"LINEAGE", lineage.encode())
    if len(whole) != len(ticket):
        # The length of the head has changed with it.
        whole = whole[:4] + struct.pack("<I", struct.unpack("<I", ticket[4:8])[0] + 29) + whole[8:]
    assert raw(site, whole).kind == "broken"


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200), st.integers(0, 200))
def test_no_bytes_bring_it_down(site, lineage, noise, at):
    wanted = Wanted("id", (HeldRange(150_000, 150_100),))
    body = encode_wanted(wanted, ValueFilter.of(pa.array([1, 2, 3])).encode())
    good = encode_request(RowsRequest("reduced", "a", lineage, ("id",)), body)
    with flight.FlightClient(site.url) as client:
        for ticket in (noise, good[:at] + noise + good[at + len(noise) :]):
            try:
                client.do_get(flight.Ticket(ticket)).read_all()
            except flight.FlightError as error:
                found = unpacked(error.extra_info, site.url)
                assert found.kind in ("broken", "schema", "lineage", "limit", "gone"), found
    assert "could not answer" not in site.log()


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"stream": 5}', b"\xff", b'{"stream": "a", "read": true}'])
@pytest.mark.parametrize("kind", ["describe", "next", "consumer", "release", "nothing"])
def test_malformed_actions(site, kind, body):
    with flight.FlightClient(site.url) as client, pytest.raises(flight.FlightError) as caught:
        # Without a stream "next" asks for nothing wrong.
        list(client.do_action(flight.Action(kind, body if b"true" not in body or kind != "next" else b"{")))
        if kind == "describe":
            list(client.do_action(flight.Action(kind, b"{}")))
    assert unpacked(caught.value.extra_info, site.url).kind == "broken"


def test_more_calls_than_are_answered_at_once_wait(site, lineage):
    """Four are answered, four wait, and others are told that the site is busy."""
    request = RowsRequest("rows", "a", lineage, tuple(COLUMNS), 150_000, 155_000, block_bytes=1)
    ticket = flight.Ticket(encode_request(request))

    def read(_: int) -> str | int:
        try:
            return plain.do_get(ticket).read_all().num_rows
        except flight.FlightError as error:
            return unpacked(error.extra_info, site.url).kind

    def keep_busy() -> None:
        while not ended.is_set():
            read(0)

    def impatient() -> str:
        try:
            site.client(patience=0.5).full("a", lineage, np.array([150_000]), ["id"])
        except SiteError as error:
            return error.kind
        return "answered"

    ended = threading.Event()
    with flight.FlightClient(site.url) as plain, ThreadPoolExecutor(12) as pool:
        assert {*pool.map(read, range(12))} == {5_000, "busy"}
        for _ in range(12):
            pool.submit(keep_busy)
        try:
            # It may come just when a place is free.
            until(lambda: impatient() == "unreachable")
        finally:
            ended.set()
    client = site.client()
    assert client.full("a", lineage, np.array([150_000]), ["name"]).to_pylist() == [{"name": "row 150000"}]


def test_the_link_is_measured_and_bytes_are_counted(site, lineage):
    client = site.client()
    link = client.link()
    assert 0 < link.latency < 1
    assert 1e6 < link.bytes_per_second < 1e11
    assert 64_000 < client.received["probe"] < 6_000_000
    taken = sum(each.nbytes for each in client.rows("a", lineage, 150_000, 160_000, ["id", "ts"]))
    assert 1_000 < client.received["rows"] < taken


def test_a_consumer_that_is_released_is_gone(site, lineage):
    client = site.client()
    for name in ("q1/A", "q1/A/2", "q10/A", "q1x"):
        client.consumer("a", lineage, name, 0, None)
    assert client.release("q1/B") == {}
    assert client.release("q1") == {"a": ["q1/A", "q1/A/2"]}
    assert client.release("q1") == {}
    assert client.release("q10/A") == {"a": ["q10/A"]}
    assert client.release("q1x") == {"a": ["q1x"]}
    assert client.status()["streams"][0]["consumers"] == {}


def test_a_consumer_is_seen(site, lineage):
    client = site.client()
    client.consumer("a", lineage, "query 1", 199_000, -5)
    client.consumer("a", lineage, "query 2", 0, None)
    told = client.status()["streams"][0]["consumers"]
    assert {(name, each["behind"], each["floor"]) for name, each in told.items()} == {
        ("query 1", 1000, -5),
        ("query 2", 200_000, None),
    }
    assert all(0 <= each["silent"] < 10 for each in told.values())
    for wrong in (("q", 300_000, 5), ("", 3, 5), ("q", 3, 0.5), ("q", 3, "5"), ("q", None, 5)):
        assert refused(lambda wrong=wrong: client.consumer("a", lineage, *wrong)).kind == "broken"


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=20))
def test_row_numbers_travel(numbers):
    found = decode_numbers(memoryview(encode_numbers(np.array(sorted(numbers), np.int64))))
    assert found.tolist() == sorted(numbers)


def test_requests_travel_as_json():
    head = encode_request(RowsRequest("rows", "a", "x", ("b",), 1, 2))[8:]
    assert json.loads(head)["columns"] == ["b"]
