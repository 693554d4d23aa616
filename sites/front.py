"""The front of a site: what listens, and lets through to gRPC what there is room for.

gRPC, as Flight has it, bounds neither connections nor the bytes of half a request, and it reads the token
when a request is whole. So it listens at a socket in a folder of this user's alone, and all that comes from
outside goes through here: TLS, the number of connections, the token before a large request, bytes of all
requests together, and the time for each.
"""

import contextlib
import fcntl
import logging
import os
import resource
import selectors
import shutil
import socket
import ssl
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from wjoin.sites.access import Listen
from wjoin.sites.http2 import Answers, Refused, Requests, Rules
from wjoin.sites.limits import Waiting

_LOG = logging.getLogger("wjoin.sites")

REQUEST_SECONDS = 60.0
"""How long a request may take to come from a caller who has the token; the longest that clients wait."""

STRANGER_SECONDS = 10.0
"""How long TLS, the first bytes, and a request may take from a caller who has not shown the token."""

BLOCK_SECONDS = 60.0
"""How long a block of an answer may take to leave."""

_STUCK_SECONDS = 0.25
SLOW_BYTES = 16_000
"""Whoever sends or takes less in a second is cut where others wait for the room that it has."""

_LOOK = 0.1
_LOOKS_BACK = 4
_UPWARD, _DOWNWARD = 65_536, 1 << 19
_AT_ONCE = 1 << 20
"""Bytes that gRPC writes at once: those of a block."""

_MOVED = 65_536
"""Of a frame of an answer that has so much left the bytes are not looked at."""

_SPARE_FILES = 1_024
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_NOT_NOW = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def raise_file_limit(connections: int) -> None:
    """Let this process have as many files as its connections take, within what the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, 4 * connections + _SPARE_FILES)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def tls(certificate: bytes, key: bytes, protocols: Sequence[str] = ("h2",)) -> ssl.SSLContext:
    """Return what a server of some protocols shows its callers. Raises ssl.SSLError or OSError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols([*protocols])
    with tempfile.TemporaryDirectory(prefix="wjoin-tls-") as folder:
        # OpenSSL takes them from files only.
        both = Path(folder) / "both.pem"
        both.touch(mode=0o600)
        both.write_bytes(certificate + b"\n" + key)
        context.load_cert_chain(both)
    return context


def _widen(name: str) -> None:
    """Let gRPC write a block at once into its connection with the socket of a name, rather than in fifths.

    Such a connection has the system's buffer, and gRPC has no setting for it.
    """
    sockets = (int(each.name) for each in Path("/dev/fd").iterdir() if each.is_socket())
    for number in sockets:
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(number)) as found:
            if found.getpeername() == name:
                found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _AT_ONCE)
                return


class _Caller:
    """A connection from outside and the one to gRPC that goes with it."""

    def __init__(self, client: socket.socket, rules: Rules, began: float) -> None:
        self.client = client
        self.backend: socket.socket | None = None
        self.peer = ""
        self.requests = Requests(rules)
        self.answers = Answers(self.requests.answered, self.requests.ended)
        self.upward = bytearray()
        self.downward = memoryview(b"")
        self.shaken = not isinstance(client, ssl.SSLSocket)
        self.moves = self.shaken and hasattr(os, "splice")
        self.widened = False
        self.began = self.last = self.took = began
        self.up = self.down = 0
        self.past: deque[tuple[float, int, int]] = deque([(began, 0, 0)], maxlen=_LOOKS_BACK)
        self.masks = {"client": 0, "backend": 0}

    def slow(self, now: float) -> tuple[bool, bool]:
        """Return whether little has come lately, and whether little has left."""
        (at, up, down), full = self.past[0], len(self.past) == _LOOKS_BACK
        self.past.append((now, self.up, self.down))
        least = SLOW_BYTES * (now - at)
        return full and self.up - up < least, full and self.down - down < least


class Front:
    """Listens, and goes on to gRPC at ``door``; ``open`` and ``cut`` count connections."""

    def __init__(
        self,
        listen: Listen,
        context: ssl.SSLContext | None,
        rules: Rules,
        most: int,
        waiting: Callable[[], Waiting],
    ) -> None:
        family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
        self._listener = socket.create_server((listen.host, listen.port), family=family, backlog=256)
        self._listener.setblocking(False)
        self.port = int(self._listener.getsockname()[1])
        self.cut = 0
        self._context = context
        self._rules = rules
        self._most = most
        self._waiting = waiting
        self._folder = Path(tempfile.mkdtemp(prefix="wjoin-site-"))
        self._count = 0
        self._callers: set[_Caller] = set()
        self._leaving: set[_Caller] = set()
        self._again_soon: set[_Caller] = set()
        self._of: dict[Requests, _Caller] = {}
        self._selector = selectors.DefaultSelector()
        self._buffer = memoryview(bytearray(_DOWNWARD))
        self._pipe = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        with contextlib.suppress(OSError):
            # Its 64 kB do as well, where the user has too many large pipes.
            fcntl.fcntl(self._pipe[1], fcntl.F_SETPIPE_SZ, _DOWNWARD)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="site-front", daemon=True)

    @property
    def door(self) -> Path:
        """The socket at which gRPC is to listen."""
        return self._folder / "door"

    @property
    def open(self) -> int:
        """Connections that are there."""
        return len(self._callers)

    def start(self) -> None:
        """Let callers in from now on."""
        self._selector.register(self._listener, _READ, None)
        self._thread.start()

    def stop(self) -> None:
        """Let nobody in any more, and end the connections."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._listener.close()
        for each in self._pipe:
            os.close(each)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self) -> None:
        looked = 0.0
        while not self._stop.is_set():
            # Each does a little, so that who sends much, or much that is small, keeps nobody waiting.
            again, self._again_soon = self._again_soon, set()
            for key, events in self._selector.select(0 if again else _LOOK):
                if key.data is None:
                    self._accept()
                else:
                    caller, which = key.data
                    self._guarded(caller, self._event, which, events)
            for each in again:
                self._guarded(each, self._again)
            self._go_on()
            now = time.monotonic()
            if now - looked >= _LOOK:
                looked = now
                self._look(now)
        for each in [*self._callers]:
            self._end(each)
        for each in [*self._leaving]:
            self._finish(each)
        self._selector.close()

    def _guarded(self, caller: _Caller, what: Callable[..., None], *given: Any) -> None:
        """Do something for a caller, and end its connection where that cannot be done."""
        if caller in self._leaving:
            self._drain(caller)
        if caller not in self._callers:
            return
        try:
            what(caller, *given)
        except Refused as refused:
            self._cut(caller, str(refused))
        except OSError:
            self._end(caller)
        except Exception:  # noqa: BLE001 (one caller's connection must not end the others')
            _LOG.exception("a connection failed")
            self._cut(caller, "it failed")

    def _accept(self) -> None:
        for _ in range(16):
            try:
                client, _ = self._listener.accept()
            except OSError:
                # Nobody is there any more; or there are no more files, until others have gone.
                return
            client.setblocking(False)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._context is not None:
                try:
                    client = self._context.wrap_socket(
                        client, server_side=True, do_handshake_on_connect=False, suppress_ragged_eofs=True
                    )
                except OSError:
                    client.close()
                    continue
            caller = _Caller(client, self._rules, time.monotonic())
            self._callers.add(caller)
            self._of[caller.requests] = caller
            self._interest(caller)
            if len(self._callers) > self._most:
                self._cut(self._least(caller), "there are too many")

    def _least(self, new: _Caller) -> _Caller:
        """Return who of the others is missed least: a stranger, and who has been silent for longest."""
        return min(self._callers - {new}, key=lambda each: (each.requests.known, each.last))

    def _event(self, caller: _Caller, which: str, events: int) -> None:
        caller.last = time.monotonic()
        if not caller.shaken:
            self._shake(caller)
        elif which == "client":
            if events & _WRITE:
                self._down(caller)
            if events & _READ:
                self._up(caller)
        else:
            if events & _WRITE:
                self._on(caller)
            if events & _READ:
                self._back(caller)
        self._interest(caller)

    def _shake(self, caller: _Caller) -> None:
        """Go on with the handshake of TLS."""
        try:
            caller.client.do_handshake()  # type: ignore[attr-defined]
        except _NOT_NOW:
            return
        caller.shaken = True

    def _up(self, caller: _Caller) -> None:
        """Read some of what the caller sends; of TLS a whole record: what is left makes an event."""
        try:
            data = caller.client.recv(_UPWARD)
        except _NOT_NOW:
            return
        if not data:
            self._end(caller)
            return
        caller.up += len(data)
        caller.requests.feed(data)
        self._on(caller)

    def _on(self, caller: _Caller) -> None:
        """Send on to gRPC what is let through."""
        caller.upward += caller.requests.through(caller.last)
        if caller.requests.more:
            self._again_soon.add(caller)
        if not caller.upward:
            return
        if caller.backend is None:
            caller.backend = self._connected(caller)
        with contextlib.suppress(*_NOT_NOW):
            del caller.upward[: caller.backend.send(caller.upward)]

    def _connected(self, caller: _Caller) -> socket.socket:
        """Return a connection to gRPC, from an address that tells it from others."""
        backend = socket.socket(socket.AF_UNIX)
        try:
            self._count += 1
            own = self._folder / str(self._count)
            backend.bind(str(own))
            own.unlink()
            backend.connect(str(self.door))
            backend.setblocking(False)
        except OSError:
            backend.close()
            raise
        caller.peer = f"unix:{own}"
        return backend

    def _back(self, caller: _Caller) -> None:
        """Send on what gRPC answers."""
        if caller.backend is None or caller.downward:
            return
        caller.took = caller.last
        if caller.answers.left >= _MOVED and caller.moves:
            self._move(caller, caller.backend)
            return
        try:
            count = caller.backend.recv_into(self._buffer)
        except _NOT_NOW:
            return
        if count == 0:
            self._end(caller)
            return
        data = self._buffer[:count]
        told = caller.answers.see(data)
        try:
            sent = caller.client.send(data)
        except _NOT_NOW:
            sent = 0
        caller.down += sent
        if sent < count:
            caller.downward = memoryview(bytes(data[sent:]))
        if told:
            # Its own answer may have made room, or be one that it has taken back.
            self._on(caller)

    def _move(self, caller: _Caller, backend: socket.socket) -> None:
        """Have the system move some of a large frame, which nobody here needs to see, without copies."""
        if not caller.widened:
            caller.widened = True
            _widen(caller.peer.removeprefix("unix:"))
        source, into = self._pipe
        try:
            count = os.splice(backend.fileno(), into, min(caller.answers.left, _DOWNWARD))
        except _NOT_NOW:
            return
        if count == 0:
            self._end(caller)
            return
        caller.answers.left -= count
        left = count
        try:
            while left:
                left -= os.splice(source, caller.client.fileno(), left)
        except _NOT_NOW:
            pass
        finally:
            # The pipe is all callers': nothing stays in it.
            caller.downward = memoryview(os.read(source, left) if left else b"")
        caller.down += count - left

    def _down(self, caller: _Caller) -> None:
        """Send what is left of an answer."""
        while caller.downward:
            try:
                sent = caller.client.send(caller.downward)
            except _NOT_NOW:
                return
            caller.took = caller.last
            caller.down += sent
            caller.downward = caller.downward[sent:]

    def _interest(self, caller: _Caller) -> None:
        """Be told of what the caller's connections are waited for."""
        if caller not in self._callers:
            return
        full = caller.upward or caller.requests.waits or caller.requests.more
        reads = not caller.shaken or not full
        self._watch(caller, "client", caller.client, _READ * reads | _WRITE * bool(caller.downward))
        if caller.backend is not None:
            mask = _READ * (not caller.downward) | _WRITE * bool(caller.upward)
            self._watch(caller, "backend", caller.backend, mask)

    def _watch(self, caller: _Caller, which: str, watched: socket.socket, mask: int) -> None:
        before = caller.masks[which]
        if mask == before:
            return
        if before == 0:
            self._selector.register(watched, mask, (caller, which))
        elif mask == 0:
            self._selector.unregister(watched)
        else:
            self._selector.modify(watched, mask, (caller, which))
        caller.masks[which] = mask

    def _look(self, now: float) -> None:
        """Cut who is too slow, and go on with those who have waited."""
        waiting = self._waiting()
        waits = bool(self._rules.room.for_bytes.waiting)
        stuck = dict(waiting.stuck)
        for each in [*self._callers]:
            comes_slowly, leaves_slowly = each.slow(now)
            since = each.requests.incomplete_since()
            late = None if since is None else now - max(since, each.began)
            limit = REQUEST_SECONDS if each.requests.known else STRANGER_SECONDS
            blocked = stuck.get(each.peer, 0.0)
            if not each.shaken and now - each.began > STRANGER_SECONDS:
                self._cut(each, "its greeting takes too long")
            elif late is not None and late > limit:
                self._cut(each, "its request takes too long")
            elif waits and comes_slowly and late is not None and not each.requests.waits:
                self._cut(each, "its request comes slowly, and others wait")
            elif leaves_slowly and blocked > (_STUCK_SECONDS if waiting.some else BLOCK_SECONDS):
                self._cut(each, "it does not read its answer")
            elif each.downward and now - each.took > BLOCK_SECONDS:
                # What gRPC has written as a whole may wait here.
                self._cut(each, "it does not read its answer")
        for each in [*self._leaving]:
            if now - each.last > STRANGER_SECONDS:
                self._finish(each)

    def _go_on(self) -> None:
        """Have those go on who wait and for whom there is room now, in their order."""
        for line in (self._rules.room.for_places, self._rules.room.for_bytes):
            while line.waiting:
                first = line.waiting[0]
                self._guarded(self._of[first], self._again)
                if line.waiting and line.waiting[0] is first:
                    break

    def _again(self, caller: _Caller) -> None:
        """Go on where there was no room, or it was others' turn."""
        self._on(caller)
        self._interest(caller)

    def _cut(self, caller: _Caller, why: str) -> None:
        if caller in self._callers:
            self.cut += 1
            _LOG.debug("a connection is cut: %s", why)
            self._end(caller)

    def _end(self, caller: _Caller) -> None:
        """End both connections, and give back what was taken for them.

        That to gRPC stays until it has begun to answer all that is whole.
        """
        if caller not in self._callers:
            return
        self._callers.discard(caller)
        del self._of[caller.requests]
        self._close(caller, "client", caller.client)
        caller.requests.leave()
        if caller.backend is not None and caller.requests.owed:
            self._leaving.add(caller)
            caller.last = time.monotonic()
            self._watch(caller, "backend", caller.backend, _READ)
        else:
            self._finish(caller)

    def _drain(self, caller: _Caller) -> None:
        """Read what nobody waits for, as long as gRPC has to begin with it."""
        try:
            count = 0 if caller.backend is None else caller.backend.recv_into(self._buffer)
        except _NOT_NOW:
            return
        except OSError:
            count = 0
        caller.answers.see(self._buffer[:count])
        if count == 0 or not caller.requests.owed:
            self._finish(caller)

    def _finish(self, caller: _Caller) -> None:
        self._leaving.discard(caller)
        caller.requests.close()
        if caller.backend is not None:
            self._close(caller, "backend", caller.backend)

    def _close(self, caller: _Caller, which: str, closed: socket.socket) -> None:
        if caller.masks[which]:
            self._selector.unregister(closed)
            caller.masks[which] = 0
        closed.close()
