"""A slow link has the rate and the latency that it was given, shares them, and counts what passes.

Times are the best of some tries: whatever else a machine does makes them longer.
"""

import contextlib
import socket
import socketserver
import threading
import time
from collections.abc import Iterator

import pytest

from tests.kit.slow_link import Address, SlowLink
from wjoin.testing.waiting import free_ports, until

pytestmark = pytest.mark.long

RATE = 200_000.0
PING = b"0123456789abcdef"


class Answering(socketserver.StreamRequestHandler):
    """Answers a line with as many bytes as it says, and anything else with itself."""

    def handle(self) -> None:
        while line := self.rfile.readline():
            self.wfile.write(b"x" * int(line) if line.strip().isdigit() else line)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    disable_nagle_algorithm = True


@pytest.fixture
def server() -> Iterator[Address]:
    with Server(("127.0.0.1", 0), Answering) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield found.server_address[0], found.server_address[1]
        found.shutdown()


def connected(link: SlowLink) -> socket.socket:
    found = socket.create_connection(link.address, timeout=20)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


def received(connection: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size and (data := connection.recv(size - len(found))):
        found += data
    return bytes(found)


def round_trip(connection: socket.socket) -> float:
    start = time.perf_counter()
    connection.sendall(PING + b"\n")
    assert received(connection, len(PING) + 1) == PING + b"\n"
    return time.perf_counter() - start


def fetched(connection: socket.socket, size: int) -> float:
    start = time.perf_counter()
    connection.sendall(b"%d\n" % size)
    assert received(connection, size) == b"x" * size
    return time.perf_counter() - start


@pytest.mark.parametrize("latency", [0.005, 0.05])
def test_a_message_and_its_answer_take_the_latency_of_both_directions(
    server: Address, latency: float
) -> None:
    with SlowLink(server, latency=latency) as link, connected(link) as connection:
        found = min(round_trip(connection) for _ in range(15))
    # The least of many: a busy machine adds to each.
    assert 2 * latency <= found <= 2 * latency * 1.05 + 0.005


@pytest.mark.parametrize("rate", [50_000.0, RATE, 2e6])
def test_bytes_pass_at_the_rate(server: Address, rate: float) -> None:
    size = int(rate / 4)
    with SlowLink(server, bytes_per_second=rate, latency=0.01) as link, connected(link) as connection:
        found = min(fetched(connection, size) for _ in range(5))
    assert found == pytest.approx(0.25 + 0.02, rel=0.04)


def test_a_short_message_does_not_wait_for_more_than_its_own_bytes(server: Address) -> None:
    with SlowLink(server, bytes_per_second=1000.0) as link, connected(link) as connection:
        found = min(round_trip(connection) for _ in range(9))
    assert found == pytest.approx(2 * (len(PING) + 1) / 1000, rel=0.1)


def test_all_connections_share_the_link(server: Address) -> None:
    size = int(RATE / 4)
    with SlowLink(server, bytes_per_second=RATE) as link, contextlib.ExitStack() as stack:
        connections = [stack.enter_context(connected(link)) for _ in range(3)]
        start = time.perf_counter()
        threads = [threading.Thread(target=fetched, args=(each, size)) for each in connections]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        took = time.perf_counter() - start
    assert 0.75 * 0.99 < took < 0.75 * 2


def test_what_passes_is_counted_by_direction(server: Address) -> None:
    with SlowLink(server) as link:
        with connected(link) as connection:
            fetched(connection, 100_000)
            before = link.passed
            round_trip(connection)
        connected(link).close()
        until(lambda: link.passed.connections == 2)
        assert (before.to_server, before.to_client, before.connections) == (7, 100_000, 1)
        after = link.passed.since(before)
        assert (after.to_server, after.to_client, after.size, after.connections) == (17, 17, 34, 1)


def test_another_rate_holds_from_then_on(server: Address) -> None:
    with SlowLink(server, bytes_per_second=1000.0, latency=1.0) as link:
        link.change(bytes_per_second=None, latency=0.0)
        with connected(link) as connection:
            assert fetched(connection, 1_000_000) < 1.0


def test_what_is_said_to_the_end_arrives_and_the_end_does_too(server: Address) -> None:
    with SlowLink(server, bytes_per_second=RATE, latency=0.02) as link, connected(link) as connection:
        connection.sendall(b"50000\nlast\n")
        connection.shutdown(socket.SHUT_WR)
        assert received(connection, 100_000) == b"x" * 50_000 + b"last\n"


def test_connections_are_cut_and_new_ones_may_be_opened(server: Address) -> None:
    with SlowLink(server) as link:
        with connected(link) as one, connected(link) as two:
            round_trip(one), round_trip(two)
            assert link.cut() == 2
            for each in (one, two):
                with contextlib.suppress(ConnectionError):
                    assert each.recv(1) == b""
        with connected(link) as connection:
            round_trip(connection)


def test_a_server_that_is_not_there_ends_connections() -> None:
    nowhere = ("127.0.0.1", free_ports(1)[0])
    with SlowLink(nowhere) as link, connected(link) as connection, contextlib.suppress(ConnectionError):
        assert connection.recv(1) == b""


@pytest.mark.parametrize(("rate", "latency"), [(0.0, 0.0), (-1.0, 0.0), (None, -0.1)])
def test_a_link_needs_a_rate_and_a_latency(rate: float | None, latency: float) -> None:
    with pytest.raises(ValueError, match="a rate above 0"):
        SlowLink(("127.0.0.1", 1), bytes_per_second=rate, latency=latency)
