"""What a site listens with: connections and their time, TLS, and threads that make answers.

One thread reads for all callers, gives each a little of its time in turn, and never waits. Others make
answers, and send what they have made.
"""

import functools
import itertools
import logging
import queue
import resource
import selectors
import socket
import ssl
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from math import inf
from pathlib import Path
from typing import Any

from wjoin.sites.access import Listen
from wjoin.sites.failures import SiteError
from wjoin.sites.http2 import Connection, Rules
from wjoin.sites.http2_requests import RefusedConnection, Stream
from wjoin.sites.wire import END, Message, failure

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
_READ_BYTES = 65_536
_TURN_BYTES = 1 << 21
_MOST_TOLD = 65_536
"""Bytes of acknowledgements and the like that may wait for a caller; from then on nothing is read."""

_ENOUGH = 65_536
"""Bytes of an answer that are worth a turn."""

_PIECES = 512
_TLS_BYTES = 16_384
"""Of a record of TLS."""

_MOST_EACH = 8
"""Answers of one connection that threads make at a time."""

_SPARE_THREADS = 8
"""Threads besides those that wait for their call's turn."""

_SPARE_FILES = 1_024
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_NOT_NOW = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def raise_file_limit(connections: int) -> None:
    """Let this process have as many files as its connections take, within what the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, 2 * connections + _SPARE_FILES)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def tls(certificate: bytes, key: bytes, protocols: Sequence[str] = ("h2",)) -> ssl.SSLContext:
    """Return what a server of some protocols shows its callers. Raises ssl.SSLError or OSError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    # A client prefers what its processor has instructions for.
    context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    context.set_alpn_protocols([*protocols])
    with tempfile.TemporaryDirectory(prefix="wjoin-tls-") as folder:
        # OpenSSL takes them from files only.
        both = Path(folder) / "both.pem"
        both.touch(mode=0o600)
        both.write_bytes(certificate + b"\n" + key)
        context.load_cert_chain(both)
    return context


class _Caller:
    """A connection from outside."""

    def __init__(self, socket: socket.socket, rules: Rules, began: float) -> None:
        self.socket = socket
        self.connection = Connection(rules)
        self.encrypted = isinstance(socket, ssl.SSLSocket)
        self.shaken = not self.encrypted
        self.ended = False
        self.began = self.last = began
        self.out_since = began
        self.up = self.down = 0
        self.past: deque[tuple[float, int, int]] = deque([(began, 0, 0)], maxlen=_LOOKS_BACK)
        self.mask = 0
        self.working = 0
        self.has_turn = False

    def rates(self, now: float) -> tuple[float, float]:
        """Return how many bytes a second have come lately, and how many have left."""
        at, up, down = self.past[0]
        seconds, full = now - at, len(self.past) == _LOOKS_BACK
        self.past.append((now, self.up, self.down))
        return ((self.up - up) / seconds, (self.down - down) / seconds) if full else (inf, inf)

    def stuck(self, now: float, leaves: float) -> float:
        """Return for how many seconds an answer, or what is out, has hardly left.

        ``leaves`` bytes a second leave of all: while that is enough for so many answers, one that its caller
        would take waits for its turn.
        """
        moves = leaves >= SLOW_BYTES * max(1, self.connection.answers)
        if moves or not self.connection.out:
            self.out_since = now
        return max(now - self.out_since, self.connection.stuck(now, SLOW_BYTES, moves=moves))

    def send(self) -> bool:
        """Send some of what is out; return whether more may be sent. Raises OSError."""
        out = self.connection.out
        if self.encrypted and len(out) > 1 and len(out[0]) < _TLS_BYTES:
            # Each piece would be a record of its own.
            some: list[memoryview] = []
            while out and sum(map(len, some)) < _TLS_BYTES:
                some.append(out.popleft())
            out.appendleft(memoryview(b"".join(some)))
        try:
            if self.encrypted:
                sent = self.socket.send(out[0])
            else:
                sent = self.socket.sendmsg(itertools.islice(out, _PIECES))
        except _NOT_NOW:
            return False
        self.down += sent
        while sent:
            if len(out[0]) > sent:
                out[0] = out[0][sent:]
                break
            sent -= len(out.popleft())
        return True


_Jobs = queue.SimpleQueue[tuple[_Caller, Stream] | None]
"""What a thread is to do."""


class Front:
    """Listens, and has ``answer`` make answers by a request's path; ``open`` and ``cut`` count connections.

    ``places`` calls may wait inside ``answer`` at a time, and ``waiting`` tells whether some do.
    """

    def __init__(
        self,
        listen: Listen,
        context: ssl.SSLContext | None,
        rules: Rules,
        most: int,
        places: int,
        waiting: Callable[[], bool],
        answer: Callable[[bytes, memoryview], Iterator[Message]],
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
        self._answer = answer
        self._callers: set[_Caller] = set()
        self._of: dict[Connection, _Caller] = {}
        self._again_soon: set[_Caller] = set()
        self._turns: deque[_Caller] = deque()
        # Whoever was busy last is the next: its memory is the warmest.
        self._idle = [_Jobs() for _ in range(places + _SPARE_THREADS)]
        # Whoever has it may look at callers and change what is known of them.
        self._lock = threading.Lock()
        self._bell, self._ring = socket.socketpair()
        self._rung = False
        self._selector = selectors.DefaultSelector()
        self._stop = threading.Event()
        targets: list[Callable[[], None]] = [
            self._run,
            *(functools.partial(self._work, each) for each in self._idle),
        ]
        self._threads = [threading.Thread(target=each, name="site-front", daemon=True) for each in targets]

    @property
    def open(self) -> int:
        """Connections that are there."""
        return len(self._callers)

    def start(self) -> None:
        """Let callers in from now on."""
        for each in (self._listener, self._bell):
            each.setblocking(False)
            self._selector.register(each, _READ, None)
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let nobody in any more, and end the connections."""
        self._stop.set()
        if self._threads[0].is_alive():
            self._threads[0].join()
        for jobs in self._idle:
            jobs.put(None)
        for each in (self._listener, self._bell, self._ring):
            each.close()

    def _work(self, jobs: _Jobs) -> None:
        """Make answers, in a thread of its own."""
        while (job := jobs.get()) is not None:
            caller, stream = job
            made = self._some_of(stream)
            with self._lock:
                self._take(caller, stream, *made)
                self._idle.append(jobs)
                self._settle()
                if self._again_soon and not self._rung and not self._stop.is_set():
                    self._rung = True
                    self._ring.send(b"\0")

    def _some_of(self, stream: Stream) -> tuple[Message, bytes | None]:
        """Return what comes next of an answer, and its end if it is that."""
        found: Message = []
        try:
            if stream.work is None:
                stream.work = self._answer(stream.path, stream.message)
            size = 0
            for message in stream.work:
                found += message
                size += sum(map(len, message))
                if size >= _ENOUGH:
                    return found, None
        except SiteError as error:
            return found, failure(error)
        except Exception as error:  # noqa: BLE001 (the thread goes on with others)
            _LOG.error("a request failed: %s: %s", type(error).__name__, error, exc_info=error)
            told = f"the site could not answer: {type(error).__name__}; see its log"
            return found, failure(SiteError("failed", told))
        return found, END

    def _run(self) -> None:
        looked = 0.0
        while not self._stop.is_set():
            events = self._selector.select(0 if self._again_soon else _LOOK)
            with self._lock:
                # Each does a little, so that who sends much, or much that is small, keeps nobody waiting.
                again, self._again_soon = self._again_soon, set()
                for key, mask in events:
                    if key.data is not None:
                        self._guarded(key.data, self._event, mask)
                    elif key.fileobj is self._bell:
                        self._bell.recv(1_024)
                        self._rung = False
                    else:
                        self._accept()
                for each in again:
                    self._guarded(each, self._event, 0)
                self._settle()
                now = time.monotonic()
                if now - looked >= _LOOK:
                    looked = now
                    self._look(now)
        with self._lock:
            for each in [*self._callers]:
                self._end(each)
            self._selector.close()

    def _settle(self) -> None:
        """Give out room, and have answers made."""
        for connection in self._rules.room.give_out():
            self._guarded(self._of[connection], self._event, 0)
        self._give_turns()

    def _guarded(self, caller: _Caller, what: Callable[..., None], *given: Any) -> None:
        """Do something for a caller, and end its connection where that cannot be done."""
        if caller.ended:
            return
        try:
            what(caller, *given)
        except RefusedConnection as refused:
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
            self._of[caller.connection] = caller
            self._watch(caller)
            if len(self._callers) > self._most:
                self._cut(self._least(caller), "there are too many")

    def _least(self, new: _Caller) -> _Caller:
        """Return who of the others is missed least: a stranger, and who has been silent for longest."""
        return min(self._callers - {new}, key=lambda each: (each.connection.known, each.last))

    def _event(self, caller: _Caller, events: int) -> None:
        """Go on with a caller."""
        caller.last = time.monotonic()
        if not caller.shaken:
            self._shake(caller)
        else:
            if events & _READ:
                self._read(caller)
            if not caller.ended:
                caller.connection.step(caller.last)
                self._write(caller)
                if caller.connection.more:
                    self._again_soon.add(caller)
        self._watch(caller)

    def _shake(self, caller: _Caller) -> None:
        """Go on with the handshake of TLS."""
        try:
            caller.socket.do_handshake()  # type: ignore[attr-defined]  # a socket of TLS
        except _NOT_NOW:
            return
        caller.shaken = True

    def _read(self, caller: _Caller) -> None:
        """Read some of what the caller sends; of TLS a whole record: what is left makes an event."""
        try:
            data = caller.socket.recv(_READ_BYTES)
        except _NOT_NOW:
            return
        if not data:
            self._end(caller)
            return
        caller.up += len(data)
        caller.connection.feed(data)

    def _write(self, caller: _Caller) -> None:
        """Send some of what there is, and have more made where all has left."""
        connection, until = caller.connection, caller.down + _TURN_BYTES
        while caller.down < until:
            connection.fill()
            if not connection.out or not caller.send():
                break
        else:
            self._again_soon.add(caller)
        if connection.ready and not caller.has_turn and not connection.out:
            caller.has_turn = True
            self._turns.append(caller)

    def _give_turns(self) -> None:
        """Have answers made, of each caller one at a time."""
        for _ in range(len(self._turns)):
            if not self._idle:
                return
            caller = self._turns.popleft()
            ready = caller.connection.ready
            caller.has_turn = False
            if caller.ended or not ready or caller.working >= _MOST_EACH:
                # It comes again when one of its answers is made.
                continue
            stream = ready.popleft()
            stream.working = True
            caller.working += 1
            self._idle.pop().put((caller, stream))
            if ready:
                caller.has_turn = True
                self._turns.append(caller)

    def _take(self, caller: _Caller, stream: Stream, message: Message, end: bytes | None) -> None:
        """Send what was made of an answer."""
        caller.working -= 1
        stream.working = False
        if stream.gone:
            try:
                caller.connection.finish(stream)
            except Exception:  # noqa: BLE001 (the thread goes on with others)
                _LOG.exception("an answer that nobody waits for did not end")
            self._guarded(caller, self._event, 0)
        else:
            self._guarded(caller, self._answered, stream, message, end)

    def _answered(self, caller: _Caller, stream: Stream, message: Message, end: bytes | None) -> None:
        caller.connection.taken(stream)
        caller.connection.answer(stream, message, end)
        self._event(caller, 0)

    def _watch(self, caller: _Caller) -> None:
        """Be told of what the caller's connection is waited for."""
        if caller.ended:
            return
        connection = caller.connection
        reads = not caller.shaken or not (connection.more or connection.told > _MOST_TOLD)
        mask = _READ * reads | _WRITE * bool(connection.out)
        if mask == caller.mask:
            return
        if caller.mask == 0:
            self._selector.register(caller.socket, mask, caller)
        elif mask == 0:
            self._selector.unregister(caller.socket)
        else:
            self._selector.modify(caller.socket, mask, caller)
        caller.mask = mask

    def _look(self, now: float) -> None:
        """Cut who is too slow."""
        some_wait = self._waiting()
        for each in [*self._callers]:
            self._guarded(each, self._look_at, now, some_wait)

    def _look_at(self, caller: _Caller, now: float, some_wait: bool) -> None:
        comes, leaves = caller.rates(now)
        connection = caller.connection
        since = connection.incomplete_since()
        late = None if since is None else now - max(since, caller.began)
        stuck = caller.stuck(now, leaves)
        if not caller.shaken and now - caller.began > STRANGER_SECONDS:
            self._cut(caller, "its greeting takes too long")
        elif late is not None and late > (REQUEST_SECONDS if connection.known else STRANGER_SECONDS):
            self._cut(caller, "its request takes too long")
        elif self._rules.room.waiting and comes < SLOW_BYTES and connection.has_room():
            self._cut(caller, "its request comes slowly, and others wait")
        elif stuck > (_STUCK_SECONDS if some_wait else BLOCK_SECONDS):
            self._cut(caller, "it does not read its answer")

    def _cut(self, caller: _Caller, why: str) -> None:
        if not caller.ended:
            self.cut += 1
            _LOG.debug("a connection is cut: %s", why)
            self._end(caller)

    def _end(self, caller: _Caller) -> None:
        """End a connection, and give back what was taken for it."""
        if caller.ended:
            return
        caller.ended = True
        self._callers.discard(caller)
        del self._of[caller.connection]
        if caller.mask:
            self._selector.unregister(caller.socket)
        caller.socket.close()
        caller.connection.close()
