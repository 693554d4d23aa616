"""A link as slow as a test wants it: a proxy between clients and a TCP server, with a rate and a latency.

A message is on its way for ``latency`` seconds and its size over ``bytes_per_second``, in each direction; all
connections share the link. It counts what has passed, at the sockets. Clients connect to ``link.address`` in

    with SlowLink(("127.0.0.1", 7777), bytes_per_second=1e5, latency=0.005) as link:
"""

import asyncio
import contextlib
import math
import selectors
import threading
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

CHUNK_SECONDS = 0.002
"""A link passes on what it brings in this time, so that the end of a message comes when it should."""

LEAST_CHUNK, MOST_CHUNK = 64, 1 << 16
"""Bytes that are passed on at once, at the least and at the most."""

AHEAD_SECONDS = 0.05
"""So much more than it has brought a link takes in; then those who send must wait."""

_STARTING_SECONDS = 10.0

Address = tuple[str, int]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Passed:
    """Bytes that have left the link at its two ends, and connections that were opened."""

    to_server: int
    to_client: int
    connections: int

    @property
    def size(self) -> int:
        """Bytes of both directions."""
        return self.to_server + self.to_client

    def since(self, before: "Passed") -> "Passed":
        """Return what has passed since an earlier moment."""
        return Passed(
            self.to_server - before.to_server,
            self.to_client - before.to_client,
            self.connections - before.connections,
        )


class _Lane:
    """One direction of a link: when it is free again, and what it has brought."""

    def __init__(self) -> None:
        self.free = 0.0
        self.brought = 0

    def arrival(self, now: float, size: int, speed: float, latency: float) -> float:
        """Return when bytes that are sent now arrive; they wait for those that were sent before."""
        self.free = max(now, self.free) + size / speed
        return self.free + latency


class SlowLink:
    """A link to a server, from ``with`` to its end.

    ``bytes_per_second``: in each direction, None for no limit. ``latency``: seconds in each direction, so
    that a request and its answer take twice as long. Raises OSError where no port can be listened to.
    """

    def __init__(
        self,
        server: Address,
        *,
        bytes_per_second: float | None = None,
        latency: float = 0.0,
        host: str = "127.0.0.1",
    ) -> None:
        self._server, self._host = server, host
        self._up, self._down = _Lane(), _Lane()
        self._opened = 0
        self._open: set[asyncio.StreamWriter] = set()
        self._speed, self._latency = math.inf, 0.0
        self.change(bytes_per_second=bytes_per_second, latency=latency)
        # Only select() waits for fractions of a millisecond.
        self._loop = asyncio.SelectorEventLoop(selectors.SelectSelector())
        self._thread = threading.Thread(target=self._run, name="wjoin-slow-link", daemon=True)
        self._listening: asyncio.Server | None = None

    def __enter__(self) -> "SlowLink":
        self._thread.start()
        try:
            self._listening = self._ask(asyncio.start_server(self._connected, self._host, 0))
        except OSError:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._ask(self._closed())
        self._end()

    @property
    def address(self) -> Address:
        """Host and port that clients connect to. Raises RuntimeError outside of ``with``."""
        if self._listening is None:
            raise RuntimeError("the link is not open")
        host, port = self._listening.sockets[0].getsockname()[:2]
        return host, port

    @property
    def passed(self) -> Passed:
        """What has passed so far."""
        return Passed(self._up.brought, self._down.brought, self._opened)

    def change(self, *, bytes_per_second: float | None, latency: float) -> None:
        """Give the link another rate and latency, for all that is sent from now on."""
        if latency < 0 or (bytes_per_second is not None and bytes_per_second <= 0):
            raise ValueError("a link has a rate above 0, and a latency of 0 or more")
        self._speed = math.inf if bytes_per_second is None else bytes_per_second
        self._latency = latency

    def cut(self) -> int:
        """Cut all connections, as where a cable is pulled; return how many. New ones may be opened."""
        return self._ask(self._cut())

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _ask(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_STARTING_SECONDS)

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _closed(self) -> None:
        if self._listening is not None:
            self._listening.close()
        await self._cut()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _cut(self) -> int:
        count = len(self._open)
        for writer in self._open:
            writer.transport.abort()
        self._open.clear()
        return count // 2

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a client that has connected, until both sides have said all."""
        self._opened += 1
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._server)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, far_writer}
        self._open |= both
        ways = (
            self._bring(reader, far_writer, self._up),
            self._bring(far_reader, writer, self._down),
        )
        try:
            await asyncio.gather(*ways)
        except asyncio.CancelledError:
            # The link ends, and its connections with it; asyncio would tell of each as of a failure.
            for each in both:
                each.transport.abort()
        except ConnectionError:
            # What one side sees of a connection that has broken, the other one shall see, too.
            for each in both:
                each.transport.abort()
        finally:
            self._open -= both
            for each in both:
                each.close()

    async def _bring(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, lane: _Lane) -> None:
        """Bring what is read to the other side, until nothing more comes."""
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        delivery = asyncio.create_task(self._deliver(queue, writer, lane))
        try:
            while data := await reader.read(self._chunk()):
                now = self._loop.time()
                queue.put_nowait((lane.arrival(now, len(data), self._speed, self._latency), data))
                ahead = lane.free - now - AHEAD_SECONDS
                if ahead > 0:
                    await asyncio.sleep(ahead)
            queue.put_nowait((self._loop.time() + self._latency, b""))
            await delivery
        finally:
            delivery.cancel()

    async def _deliver(
        self, queue: "asyncio.Queue[tuple[float, bytes]]", writer: asyncio.StreamWriter, lane: _Lane
    ) -> None:
        while True:
            due, data = await queue.get()
            wait = due - self._loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
            if not data:
                break
            lane.brought += len(data)
            writer.write(data)
            await writer.drain()
        with contextlib.suppress(OSError):
            writer.write_eof()

    def _chunk(self) -> int:
        if math.isinf(self._speed):
            return MOST_CHUNK
        return min(MOST_CHUNK, max(LEAST_CHUNK, int(self._speed * CHUNK_SECONDS)))


def port_of(url: str) -> Address:
    """Return host and port of a URL such as that of a site.

    >>> port_of("grpc://127.0.0.1:7777")
    ('127.0.0.1', 7777)
    """
    host, _, port = url.rpartition("://")[2].rpartition(":")
    return host.strip("[]"), int(port)
