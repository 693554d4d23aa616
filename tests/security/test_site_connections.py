"""Attacks on a site's connections: half requests, compressed ones, too many, readers that do not read."""

import contextlib
import time

import pyarrow.flight as flight
import pytest

from tests.security.attacks import (
    DO_ACTION,
    DO_GET,
    begin,
    connected,
    elsewhere,
    ended,
    frame,
    half_request,
    looked_on,
    message,
    part,
    push,
    together,
)
from tests.security.conftest import Attacked
from tests.sites.processes import wait_for
from tests.tiers import tiers
from wjoin.sites.client import SiteClient
from wjoin.sites.protocol import RowsRequest, encode_request

pytestmark = [pytest.mark.thorough, pytest.mark.slow]

CALLERS = 58


def send_halves(url: str, certificate: str | None, token: str | None, seconds: float) -> None:
    """Send half requests over many connections, and come again where they are cut."""
    half = half_request(16_000_000, 15_900_000, token=token)
    until = time.monotonic() + seconds

    def attack() -> None:
        while time.monotonic() < until:
            with contextlib.suppress(OSError), connected(url, certificate) as where:
                push(where, half, until - time.monotonic())
            # The processors of this machine are the attackers', too.
            time.sleep(0.5)

    together(attack, CALLERS)


def come_and_go(url: str, certificate: str | None, seconds: float) -> None:
    """Make many connections that begin a request each, again and again."""
    until = time.monotonic() + seconds

    def attack() -> None:
        while time.monotonic() < until:
            with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
                for _ in range(50):
                    where = stack.enter_context(connected(url, certificate))
                    where.sendall(begin(path=DO_GET))
                    time.sleep(0.05)

    together(attack, 8)


def send_small(url: str, certificate: str | None, token: str | None, seconds: float) -> None:
    """Send the smallest pieces of HTTP/2, one after the other, over many connections."""
    # A frame of a kind that nobody knows, which is left out, and room for an answer.
    small = begin(token=token) + (frame(0x20, 0, 0, b"") * 9 + frame(8, 0, 1, b"\0\0\0\1")) * 5_000
    until = time.monotonic() + seconds

    def attack() -> None:
        while time.monotonic() < until:
            with contextlib.suppress(OSError), connected(url, certificate) as where:
                while time.monotonic() < until and not push(where, small, 0.5):
                    pass

    together(attack, CALLERS)


@pytest.mark.parametrize("attacked", tiers(["open", "stranger", "known"], long=["stranger"]), indirect=True)
def test_small_pieces_keep_nobody_out(attacked: Attacked, token: str | None) -> None:
    with (
        looked_on(attacked.site, attacked.address, attacked.lineage),
        elsewhere(send_small, attacked.url, attacked.address.certificate, token, 8.0),
    ):
        pass


@pytest.mark.parametrize("attacked", tiers(["open", "stranger", "known"], long=["known"]), indirect=True)
def test_half_sent_requests_take_no_memory_and_keep_nobody_out(attacked: Attacked, token: str | None) -> None:
    with (
        looked_on(attacked.site, attacked.address, attacked.lineage),
        elsewhere(send_halves, attacked.url, attacked.address.certificate, token, 8.0),
    ):
        pass


def test_a_large_request_is_answered_while_others_send_half_ones(open_site: Attacked) -> None:
    half = half_request(16_000_000, 15_900_000)
    with contextlib.ExitStack() as stack, SiteClient(open_site.address) as client:
        for _ in range(8):
            push(stack.enter_context(connected(open_site.url)), half, 0.3)
        body = b"8" + b"".join(each.to_bytes(8, "little") for each in range(100_000))
        ticket = encode_request(RowsRequest("full", "a", open_site.lineage, ("id",)), body)
        began = time.monotonic()
        blocks = client._caller.again(lambda: [*client._caller.get("full", ticket)])
        assert sum(each.num_rows for each in blocks) == 100_000
        assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    "sent",
    [
        begin() + part(1, message(1000, compressed=True)),
        begin() + part(1, message(1 << 30)),
        begin() + frame(0, 8, 1, b"\5hello" + bytes(5)),
        frame(1, 0, 1, b"") + frame(9, 0, 1, bytes(16_000)) * 3,
        frame(1, 4, 1, b"\xff\xff\xff\xff\xff\xff\xff\xff"),
        b"".join(begin(each) for each in range(1, 200, 2)),
        b"".join(begin(each) + frame(3, 0, each, bytes(4)) for each in range(1, 1001, 2)),
        frame(5, 4, 1, bytes(100)),
        frame(4, 0, 0, bytes(17_000)),
    ],
    ids=[
        *(
            "compressed",
            "huge",
            "padded",
            "headers without an end",
            "no headers",
            "many",
            "taken back",
        ),
        *("promise", "large settings"),
    ],
)
def test_what_only_an_attacker_sends_is_cut(open_site: Attacked, sent: bytes) -> None:
    with connected(open_site.url) as where:
        where.sendall(sent)
        wait_for(lambda: ended(where), 10)
    with SiteClient(open_site.address) as client:
        assert client.streams() == ("a",)
    assert "Traceback" not in open_site.site.log()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "sent",
    [
        frame(7, 0, 0, bytes(4) + b"\xb3\xff\xee\xff" + b"\xb3\x1b[2J\nforged"),
        frame(1, 4, 1, b"\x00\x07:status\x0c\xb3\x1b[2J\nforged"),
    ],
    ids=["goaway", "header"],
)
def test_no_text_of_a_caller_is_in_the_log_as_it_came(open_site: Attacked, sent: bytes) -> None:
    with connected(open_site.url) as where:
        where.sendall(sent)
        with SiteClient(open_site.address) as client:
            assert client.streams() == ("a",)
    log = open_site.site.log_file.read_bytes()
    assert b"forged" not in log and b"\x1b" not in log and b"\xb3" not in log


@pytest.mark.parametrize("sent", [b"", b"PRI * HTTP", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00"])
def test_who_does_not_go_on_is_cut(closed_site: Attacked, sent: bytes) -> None:
    import socket

    port = int(closed_site.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as where:
        where.sendall(sent)
        wait_for(lambda: ended(where), 15)


@pytest.mark.thorough
def test_readers_who_do_not_read_keep_nobody_out(open_site: Attacked) -> None:
    ticket = flight.Ticket(encode_request(RowsRequest("probe", stop=8_000_000)))
    own = [("grpc.use_local_subchannel_pool", 1)]
    with contextlib.ExitStack() as stack:
        readers = []
        with looked_on(open_site.site, open_site.address, open_site.lineage):
            until = time.monotonic() + 8
            while time.monotonic() < until:
                client = stack.enter_context(flight.FlightClient(open_site.url, generic_options=own))
                with contextlib.suppress(flight.FlightError):
                    readers.append(client.do_get(ticket))
        for each in readers:
            each.cancel()
    assert len(readers) > 32


def protobuf(*fields: bytes) -> bytes:
    """Return a message of texts, numbered from 1."""
    heads = (bytes([8 * n + 2, 0x80 | len(text) & 0x7F, len(text) >> 7]) for n, text in enumerate(fields, 1))
    return b"".join(head + text for head, text in zip(heads, fields, strict=True))


def call(stream: int, body: bytes, path: str = DO_GET) -> bytes:
    return begin(stream, path=path) + frame(0, 1, stream, message(len(body)) + body)


def widened(stream: int, count: int) -> bytes:
    return frame(8, 0, stream, count.to_bytes(4))


@pytest.mark.thorough
@pytest.mark.parametrize("taken", [0, 100], ids=["nothing", "a little"])
def test_answers_that_are_not_read_are_not_kept_by_others_that_are(open_site: Attacked, taken: int) -> None:
    """One connection takes nothing or little of its large answers, and reads small ones all the time."""
    probe, status = protobuf(encode_request(RowsRequest("probe", stop=8_000_000))), protobuf(b"status", b"{}")
    stuck, cut = range(1, 81, 2), 0
    with looked_on(open_site.site, open_site.address, open_site.lineage):
        until = time.monotonic() + 8
        while time.monotonic() < until:
            with connected(open_site.url) as where, contextlib.suppress(OSError):
                where.sendall(
                    frame(4, 0, 0, b"\0\4" + bytes(4)) + b"".join(call(each, probe) for each in stuck)
                )
                for number in range(81, 100_001, 2):
                    if time.monotonic() > until:
                        break
                    small = call(number, status, DO_ACTION) + widened(number, 10_000) + widened(0, 50_000)
                    where.sendall(small + b"".join(widened(each, taken) for each in stuck if taken))
                    time.sleep(0.05)
                    if ended(where):
                        cut += 1
                        break
    assert cut > 2


def test_a_flood_of_connections_keeps_nobody_out(closed_site: Attacked) -> None:
    with (
        looked_on(closed_site.site, closed_site.address, closed_site.lineage),
        elsewhere(come_and_go, closed_site.url, closed_site.address.certificate, 8.0),
    ):
        pass


def ask_at_once(url: str, seconds: float) -> None:
    """Send many small requests at a time over many connections."""
    until = time.monotonic() + seconds
    call = message(8) + b"\x0a\x06status"

    def attack() -> None:
        while time.monotonic() < until:
            with contextlib.suppress(OSError), connected(url) as where:
                path = "/arrow.flight.protocol.FlightService/DoAction"
                sent = (begin(at, path=path) + frame(0, 1, at, call) for at in range(1, 511, 2))
                push(where, b"".join(sent), min(2, until - time.monotonic()))

    together(attack, 40)


def test_many_small_requests_at_a_time_take_no_memory(open_site: Attacked) -> None:
    with (
        looked_on(open_site.site, open_site.address, open_site.lineage),
        elsewhere(ask_at_once, open_site.url, 8.0),
    ):
        pass
