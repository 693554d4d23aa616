"""Requests to a site that are small on the way and large in memory, or that are kept."""

import json
import threading
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
import pytest

from tests.security.attacks import looked_on
from tests.security.conftest import Attacked
from tests.tiers import tiers
from wjoin.sites.client import SiteClient
from wjoin.sites.failures import SiteError, unpacked
from wjoin.sites.held import HeldRange, Wanted, encode_wanted
from wjoin.sites.protocol import RowsRequest, encode_request
from wjoin.sites.store import MOST_CONSUMERS
from wjoin.sites.value_filter import ValueFilter, _head

pytestmark = [pytest.mark.thorough, pytest.mark.slow]


def refused(site: Attacked, call: Callable[[flight.FlightClient], object]) -> SiteError:
    """Return why a site does not answer a call."""
    with flight.FlightClient(site.url) as client, pytest.raises(flight.FlightError) as caught:
        call(client)
    found = unpacked(caught.value.extra_info, site.url)
    assert found is not None, caught.value
    return found


def got(site: Attacked, ticket: bytes) -> SiteError:
    return refused(site, lambda client: client.do_get(flight.Ticket(ticket)).read_all())


def acted(site: Attacked, kind: str, body: bytes) -> SiteError:
    return refused(site, lambda client: list(client.do_action(flight.Action(kind, body))))


@pytest.mark.parametrize("kind", tiers(["ticket", "action", "wanted"], long=["ticket"]))
def test_json_that_is_large_or_nested(open_site: Attacked, kind: str) -> None:
    nested = b'{"name":[' + b"[]," * 5_000_000 + b"1]}"
    with looked_on(open_site.site, open_site.address, open_site.lineage):
        for text in (nested, nested[: 3 * 10_000] + b"1]}", b"[" * 60_000, b'{"a":' * 10_000):
            size = len(text).to_bytes(4, "little")
            if kind == "action":
                error = acted(open_site, "release", text)
            elif kind == "ticket":
                error = got(open_site, b"WJS1" + size + text)
            else:
                error = got(
                    open_site,
                    encode_request(RowsRequest("reduced", "a", open_site.lineage, ("id",)), size + text),
                )
            assert error.kind in ("limit", "broken")
        time.sleep(1)


def test_names_of_probes_are_not_kept(open_site: Attacked) -> None:
    for at in range(30):
        name = f"{at}" + "x" * 15_000_000
        assert got(open_site, encode_request(RowsRequest("probe", name, stop=1000))).kind == "limit"
        short = encode_request(RowsRequest("probe", f"{at}" + "x" * 10_000, stop=1000))
        assert got(open_site, short).kind == "broken"
    with looked_on(open_site.site, open_site.address, open_site.lineage):
        time.sleep(1)


def test_consumers_without_end(open_site: Attacked) -> None:
    began = time.monotonic()
    with (
        looked_on(open_site.site, open_site.address, open_site.lineage),
        SiteClient(open_site.address) as client,
    ):
        for at in range(MOST_CONSUMERS):
            client.consumer("a", open_site.lineage, f"{at:0200}", 0, None)
        with pytest.raises(SiteError, match="1000 consumers already"):
            client.consumer("a", open_site.lineage, "one more", 0, None)
        client.consumer("a", open_site.lineage, f"{5:0200}", 3, None)
        assert len(client.status()["streams"][0]["consumers"]) == MOST_CONSUMERS
        client.release(f"{5:0200}")
        client.consumer("a", open_site.lineage, "one more", 0, None)
    assert time.monotonic() - began < 60


def test_filters_that_unpack_to_more_than_they_may(open_site: Attacked) -> None:
    zeros = pa.compress(bytes(60_000_000), codec="zstd", asbytes=True)
    bombs = [
        _head("number", b"e", 60_000_000 - 7, 60_000_000) + zeros,
        _head("text", b"e", 15_000_000, 60_000_000) + zeros,
        _head("number", b"b", 10, 60_000_000) + zeros,
        _head("text", b"e", 1 << 60, 16) + zeros,
        _head("number", b"e", 3, 1 << 62) + zeros,
    ]
    with looked_on(open_site.site, open_site.address, open_site.lineage):
        for each in bombs:
            beside = encode_wanted(Wanted("id", (HeldRange(0, 1000),)), each)
            ticket = encode_request(RowsRequest("reduced", "a", open_site.lineage, ("id",)), beside)
            assert acted(open_site, "filter", each).kind in ("limit", "broken")
            assert got(open_site, ticket).kind in ("limit", "broken")

        good = ValueFilter.of(pa.array(np.random.default_rng(1).integers(0, 1 << 60, 1_000_000))).encode()

        def push() -> None:
            with SiteClient(open_site.address) as client:
                for _ in range(3):
                    client._caller.again(lambda: client._caller.act("filter", good))

        threads = [threading.Thread(target=push) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        time.sleep(1)


def test_methods_that_are_not_there(open_site: Attacked) -> None:
    descriptor = flight.FlightDescriptor.for_path("a")
    schema = pa.schema([("a", pa.int64())])
    for call in (
        lambda client: client.get_flight_info(descriptor),
        lambda client: list(client.list_flights()),
        lambda client: client.do_put(descriptor, schema)[0].close(),
        lambda client: client.do_exchange(descriptor)[1].read_all(),
        lambda client: list(client.list_actions()),
    ):
        error = refused(open_site, call)
        assert "no other method" in error.message
    with flight.FlightClient(open_site.url) as client, pytest.raises(OSError, match="no other method"):
        client.get_schema(descriptor)
    assert "Traceback" not in open_site.site.log()


def test_names_that_do_not_print(open_site: Attacked) -> None:
    for name in ("\ud800", "a\x1b[2J", "a\nb", "a\u202eb", "", "x" * 201):
        told = {"stream": "a", "lineage": open_site.lineage, "name": name, "read": 0, "floor": None}
        assert acted(open_site, "consumer", json.dumps(told).encode()).kind == "broken"
        acted_on = json.dumps({"stream": name}).encode()
        assert acted(open_site, "describe", acted_on).kind in ("broken", "schema")
    with flight.FlightClient(open_site.url) as client:
        for name in ("a\x1b[2J\n2026-01-01 00:00:00 INFO forged", "b\r"):
            list(client.do_action(flight.Action("release", json.dumps({"name": name}).encode())))
    assert "\x1b" not in open_site.site.log()
    assert "INFO forged" not in open_site.site.log()
