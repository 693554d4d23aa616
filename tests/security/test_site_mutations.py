"""Mutated requests at a site: bytes of HTTP/2, of tickets, of actions, of filters and of keys."""

import contextlib
import json
import random
import time

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from tests.security.attacks import (
    begin,
    connected,
    frame,
    half_request,
    looked_on,
    message,
    part,
)
from tests.security.conftest import Attacked
from tests.tiers import tiers
from wjoin.sites.client import SiteClient
from wjoin.sites.failures import unpacked
from wjoin.sites.held import HeldRange, Wanted, encode_extent_request, encode_wanted
from wjoin.sites.keys import encode_keys
from wjoin.sites.protocol import Request, encode_request
from wjoin.sites.value_filter import ValueFilter

pytestmark = [pytest.mark.thorough, pytest.mark.slow]

KNOWN = ("broken", "schema", "lineage", "limit", "gone", "filter", "busy")


def tickets(lineage: str) -> list[bytes]:
    """Return a good request of each kind."""
    columns = ("id", "name")
    keys = encode_keys(pa.record_batch({"id": [1, 2, 3], "name": ["row 1", "row 2", None]}))
    one = encode_keys(pa.record_batch({"id": [1, 2, 3]}))
    nested = encode_keys(pa.record_batch({"id": [[1], [2, 3]]}))
    held = encode_wanted(Wanted("id", (HeldRange(0, 500), HeldRange(600, 700, 5))), one)
    return [
        encode_request(Request("rows", "a", lineage, columns, 0, 1000)),
        encode_request(Request("full", "a", lineage, columns), b"4" + bytes(8) + bytes(400)),
        *(encode_request(Request("values", "a", lineage, columns, 0, 1000), k) for k in (keys, one, nested)),
        encode_request(Request("reduced", "a", lineage, columns), held),
        encode_request(Request("extent", "a", lineage, (), 0, 1000), encode_extent_request(5, 7)),
        encode_request(Request("probe", stop=100_000)),
    ]


def actions(lineage: str) -> list[tuple[str, bytes]]:
    """Return a good action of each kind."""
    told = {"stream": "a", "lineage": lineage, "name": "q", "read": 5, "floor": None}
    filters = [ValueFilter.of(pa.array(values)) for values in ([1, 2, 9], ["a", "bc"], range(5000))]
    plain = [("describe", {"stream": "a"}), ("next", {"stream": "a"}), ("consumer", told), ("status", {})]
    texts = [(kind, json.dumps(given).encode()) for kind, given in [*plain, ("release", {"name": "q"})]]
    return [*texts, *(("filter", each.encode()) for each in filters)]


def raw(lineage: str) -> list[bytes]:
    """Return good requests as bytes of HTTP/2."""
    body = tickets(lineage)[0]
    ticket = b"\x0a" + bytes([0x80 | len(body) & 0x7F, len(body) >> 7]) + body
    whole = begin() + frame(0, 1, 1, message(len(ticket)) + ticket)
    two = whole + begin(3) + part(3, message(5)) + frame(0, 1, 3, b"\x0a\x03abc")
    return [
        whole,
        two,
        half_request(50_000, 20_000),
        two + frame(8, 0, 0, bytes(4)) + frame(6, 0, 0, bytes(8)),
    ]


def mutated(chance: random.Random, good: bytes) -> bytes:
    """Return bytes of which some are others, missing, or there twice."""
    data = bytearray(good)
    for _ in range(chance.choice((1, 1, 2, 5, 20))):
        at = chance.randrange(len(data) + 1)
        what = chance.randrange(6)
        if what == 0 and at < len(data):
            data[at] = chance.randrange(256)
        elif what == 1 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif what == 2:
            del data[at : at + chance.randrange(1, 30)]
        elif what == 3:
            data[at:at] = data[at : at + chance.randrange(1, 200)]
        elif what == 4:
            data[at:at] = chance.randbytes(chance.randrange(1, 30))
        else:
            extreme = chance.choice((0, 1, 0x7F, 0x80, 0xFF)).to_bytes(1) * chance.choice((1, 2, 4, 8))
            data[at : at + len(extreme)] = extreme
    return bytes(data)


def one(chance: random.Random, site: Attacked, client: flight.FlightClient) -> None:
    """Send one mutated request; what is answered is known."""
    what = chance.randrange(3)
    try:
        if what == 0:
            ticket = mutated(chance, chance.choice(tickets(site.lineage)))
            client.do_get(flight.Ticket(ticket), flight.FlightCallOptions(timeout=20)).read_all()
        elif what == 1:
            kind, body = chance.choice(actions(site.lineage))
            list(client.do_action(flight.Action(kind, mutated(chance, body))))
        else:
            with connected(site.url) as where:
                where.sendall(mutated(chance, chance.choice(raw(site.lineage))))
                where.settimeout(0.005)
                with contextlib.suppress(OSError):
                    where.recv(1000)
    except flight.FlightError as error:
        found = unpacked(error.extra_info, site.url)
        assert found is not None and found.kind in KNOWN, error
    except pa.ArrowException as error:
        # A mutated compression or column is answered with rows that are none.
        assert "could not answer" not in str(error)
    except OSError:
        # It was cut.
        assert what == 2


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seconds", tiers([5, 600], long=[5]))
def test_mutated_requests(open_site: Attacked, seconds: int) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    count = 0
    with (
        looked_on(open_site.site, open_site.address, open_site.lineage),
        flight.FlightClient(open_site.url) as client,
    ):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            one(chance, open_site, client)
            count += 1
    print(f"{count} requests")
    with SiteClient(open_site.address) as client:
        assert client.streams() == ("a",)
    assert "could not answer" not in open_site.site.log()
    assert "Traceback" not in open_site.site.log()
