"""Keeps connections within their number, and cuts off who sends more than a request may have.

gRPC has limits for neither that Flight passes on. On Linux a process can look at its own sockets: a thread
counts those that are connected to the site's port, and shuts down the ones too many, first those from which
nothing has come for longest. gRPC then closes them as if the caller had.
"""

import os
import resource
import socket
import stat
import struct
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

_EACH, _AT_REST = 0.05, 0.2
"""Seconds between two looks: while something comes, and else, as a look takes milliseconds."""
_FILES = Path("/proc/self/fd")
# Where struct tcp_info has milliseconds since the last data, and bytes received.
_IDLE, _RECEIVED, _INFO_BYTES = 52, 128, 136
# What TLS's handshake and HTTP/2's first frames have about: a call has more.
_GREETING = 1_000
_SPARE_FILES = 1_024


@dataclass(frozen=True)
class Connection:
    """A caller's connection: the file number and inode of its socket, the caller's port, and what came."""

    number: int
    inode: int
    peer: int
    idle: int
    """Milliseconds."""
    received: int


def raise_file_limit(connections: int) -> None:
    """Let this process have as many files as its connections take, within what the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # More come than are kept, until they are shut down.
    wanted = max(soft, 8 * connections + _SPARE_FILES, 65_536)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class ConnectionGuard:
    """Watches the connections to a port; ``open`` and ``cut`` count those there and those shut down."""

    def __init__(self, port: int, most: int, most_bytes: int) -> None:
        self.open = 0
        self.cut = 0
        self._port = port
        self._most = most
        self._most_bytes = most_bytes
        self._requests: Counter[int] = Counter()
        self._before: dict[int, tuple[int, int]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="site-connections", daemon=True)

    def start(self) -> None:
        """Begin to watch, where the system tells of sockets."""
        if _FILES.exists():
            self._thread.start()

    def stop(self) -> None:
        """Watch no more."""
        self._stop.set()

    def asked(self, peer: str) -> None:
        """Count a request of a caller, named as gRPC names it: its bytes have all come."""
        port = peer.rpartition(":")[2]
        if port.isdecimal():
            self._requests[int(port)] += 1

    def _run(self) -> None:
        found: list[Connection] = []
        while not self._stop.wait(_EACH if any(map(_coming, found)) else _AT_REST):
            found = connections(self._port)
            self.open = len(found)
            for each in self._too_many(found) + self._too_large(found):
                if shut_down(each):
                    self.cut += 1

    def _too_many(self, found: list[Connection]) -> list[Connection]:
        ordered = sorted(found, key=lambda each: (each.received > _GREETING, -each.idle))
        return ordered[: max(0, len(found) - self._most)]

    def _too_large(self, found: list[Connection]) -> list[Connection]:
        """Return the connections that have sent several times what a request may have, and no request."""
        before, self._before = self._before, {}
        wrong = []
        for each in found:
            count = self._requests[each.peer]
            known, base = before.get(each.inode, (count, 0))
            if known != count:
                base = each.received
            self._before[each.inode] = (count, base)
            if each.received - base > 4 * self._most_bytes:
                wrong.append(each)
        for peer in self._requests.keys() - {each.peer for each in found}:
            del self._requests[peer]
        return wrong


def _coming(each: Connection) -> bool:
    return each.idle < 1000 * _AT_REST


def connections(port: int) -> list[Connection]:
    """Return the connections of this process to a port of its own."""
    # Each of its files is asked: the system's table of connections takes twenty milliseconds to read.
    found = (_connection(int(file.name), port) for file in _FILES.iterdir())
    return [each for each in found if each is not None]


def _connection(number: int, port: int) -> Connection | None:
    """Return the connection that a file is; None for any other file, and for one that has gone."""
    try:
        status = os.stat(number)
        if not stat.S_ISSOCK(status.st_mode):
            return None
        with socket.socket(fileno=os.dup(number)) as copy:
            if copy.family not in (socket.AF_INET, socket.AF_INET6) or copy.getsockname()[1] != port:
                return None
            peer = copy.getpeername()[1]
            info = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    except OSError:
        return None
    idle, received = 0, 0
    if len(info) >= _INFO_BYTES:
        idle = struct.unpack_from("<I", info, _IDLE)[0]
        received = struct.unpack_from("<Q", info, _RECEIVED)[0]
    return Connection(number, status.st_ino, peer, idle, received)


def shut_down(found: Connection) -> bool:
    """Shut a connection down; False where it has gone by itself, and its number may be another's."""
    try:
        copy = os.dup(found.number)
    except OSError:
        return False
    status = os.fstat(copy)
    if not stat.S_ISSOCK(status.st_mode) or status.st_ino != found.inode:
        os.close(copy)
        return False
    with socket.socket(fileno=copy) as caller:
        try:
            caller.shutdown(socket.SHUT_RDWR)
        except OSError:
            return False
    return True
