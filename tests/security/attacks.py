"""What an attacker of a site has: raw HTTP/2, many connections, and patience; and who looks on meanwhile."""

import contextlib
import functools
import itertools
import multiprocessing
import random
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from hpack import Encoder

from tests.sites.processes import Process, wait_for
from wjoin.sites.client import SiteClient
from wjoin.sites.http2 import PREFACE
from wjoin.sites.protocol import SiteAddress

MOST_MEMORY = 500_000_000
"""What a site with `memory` 256 MB stays below."""

DO_GET = "/arrow.flight.protocol.FlightService/DoGet"
DO_ACTION = "/arrow.flight.protocol.FlightService/DoAction"
_SETTINGS = b"\0\0\0\4\0\0\0\0\0"


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Return a frame of HTTP/2."""
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def begin(stream: int = 1, *, token: str | None = None, path: str = DO_GET) -> bytes:
    """Return the frame that begins a request."""
    headers = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost")]
    headers += [("te", "trailers"), ("content-type", "application/grpc")]
    if token is not None:
        headers.append(("authorization", f"Bearer {token}"))
    return frame(1, 4, stream, Encoder().encode(headers))


def part(stream: int, payload: bytes) -> bytes:
    """Return a frame with bytes of a request."""
    return frame(0, 0, stream, payload)


def message(size: int, *, compressed: bool = False) -> bytes:
    """Return the head of a message of gRPC."""
    return bytes([compressed]) + size.to_bytes(4)


def half_request(size: int, sent: int, *, token: str | None = None, stream: int = 1) -> bytes:
    """Return a request of ``size`` bytes of which only some are sent."""
    body = message(size) + b"\x0a" + bytes(sent)
    parts = (part(stream, body[low : low + 16_384]) for low in range(0, len(body), 16_384))
    return b"".join((begin(stream, token=token), *parts))


def connected(url: str, certificate: str | None = None) -> socket.socket:
    """Return a connection to a site, over TLS where there is a certificate, with the greeting of HTTP/2."""
    plain = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=20)
    if certificate is not None:
        plain = _trusting(certificate).wrap_socket(plain, server_hostname="localhost")
    plain.sendall(PREFACE + _SETTINGS)
    return plain


@functools.cache
def _trusting(certificate: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=certificate)
    context.set_alpn_protocols(["h2"])
    return context


def push(where: socket.socket, data: bytes, seconds: float) -> bool:
    """Send as much as is taken in some seconds; return whether the connection is cut."""
    until, view = time.monotonic() + seconds, memoryview(data)
    where.setblocking(False)
    while time.monotonic() < until:
        try:
            if view:
                view = view[where.send(view[: 1 << 18]) :]
            elif ended(where):
                return True
            else:
                time.sleep(0.05)
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            select.select([], [where], [], 0.1)
        except OSError:
            return True
    return ended(where)


def ended(where: socket.socket) -> bool:
    """Return whether the other side has ended a connection."""
    where.setblocking(False)
    try:
        while where.recv(65_536):
            pass
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except OSError:
        return True
    return True


def together(what: Callable[[], None], count: int) -> None:
    """Do something in so many threads at a time."""
    threads = [threading.Thread(target=what) for _ in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


@contextlib.contextmanager
def elsewhere(what: Callable[..., None], *given: object) -> Iterator[None]:
    """Have another process do something, and wait for its end."""
    process = multiprocessing.get_context("spawn").Process(target=what, args=given)
    process.start()
    yield
    process.join()
    assert process.exitcode == 0


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


@contextlib.contextmanager
def answered(ask: Callable[[], object]) -> Iterator[None]:
    """Check that a good caller, who asks again and again, is answered within a second throughout."""
    times: list[float] = []
    failures: list[Exception] = []
    stop = threading.Event()

    def look_on() -> None:
        while not stop.is_set():
            began = time.monotonic()
            try:
                ask()
                times.append(time.monotonic() - began)
            except Exception as error:  # noqa: BLE001 (whatever it is, the test fails)
                failures.append(error)
            stop.wait(0.1)

    thread = threading.Thread(target=look_on)
    thread.start()
    try:
        yield
        # An attack may be over sooner.
        wait_for(lambda: failures or len(times) >= 10)
    finally:
        stop.set()
        thread.join()
    times.sort()
    print(f"{len(times)} answers, slowest {times[-3:]}")
    assert not failures
    # One of twenty may be this machine's doing, which attacks, too.
    assert times[int(0.95 * len(times))] < 1


@contextlib.contextmanager
def looked_on(site: Process, address: SiteAddress, lineage: str) -> Iterator[None]:
    """Check that a site answers a good caller throughout, and stays below its memory."""

    def three_rows(client: SiteClient) -> None:
        rows = client.full("a", lineage, np.array([1, 5, 9]), ["name"])
        assert rows.column(0).to_pylist() == ["row 1", "row 5", "row 9"]

    new = itertools.cycle((False, True))
    with SiteClient(address) as known:

        def ask() -> None:
            if next(new):
                with SiteClient(address) as other:
                    three_rows(other)
            else:
                three_rows(known)

        with answered(ask):
            yield
    print(f"peak {peak(site.process.pid) / 1e6:.0f} MB")
    assert peak(site.process.pid) < MOST_MEMORY


def peak(process: int) -> int:
    """Return the most bytes that a process has had in RAM."""
    lines = Path(f"/proc/{process}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
