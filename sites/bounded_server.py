"""An HTTP server that answers a limited number of requests at a time, each of which must come in time."""

import io
import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

REQUEST_SECONDS = 10.0
"""How long a request may take to arrive, and an answer to leave."""

_TURN_SECONDS = 1.0


class BoundedServer(ThreadingHTTPServer):
    """Answers ``most`` requests at a time, each in a thread that ends with the process.

    Where there is no place, the request that has been coming for longest ends first.
    """

    daemon_threads = True
    block_on_close = False
    patience = 0.5
    """Seconds that a request may have been coming that is ended where there is no place for another."""

    def __init__(
        self,
        address: tuple[str, int],
        handler: type[BaseHTTPRequestHandler],
        most: int,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._free = threading.BoundedSemaphore(most)
        self._lock = threading.Lock()
        self._coming: dict[socket.socket, float] = {}
        self._context = context
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, unless there are too many of them."""
        if self._free.acquire(blocking=False) or (
            self._end_slowest() and self._free.acquire(timeout=_TURN_SECONDS)
        ):
            with self._lock:
                self._coming[request] = time.monotonic()
            super().process_request(request, client_address)
            return
        self.turn_away(request)
        self.shutdown_request(request)

    def _end_slowest(self) -> bool:
        """End the request that has been coming for longest; False where none has for long."""
        with self._lock:
            slowest = min(self._coming, key=self._coming.__getitem__, default=None)
            if slowest is None or time.monotonic() - self._coming[slowest] < self.patience:
                return False
            del self._coming[slowest]
            try:
                slowest.shutdown(socket.SHUT_RDWR)
            except OSError:
                # It has gone by itself.
                return True
        return True

    def has_come(self, request: Any) -> None:
        """Remember that a request is there as a whole: it is answered, whoever comes."""
        with self._lock:
            self._coming.pop(request, None)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a request."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.has_come(request)
            self._free.release()

    def get_request(self) -> tuple[Any, Any]:
        """Return a connection; its greeting of TLS comes in the thread that answers."""
        request, address = super().get_request()
        if self._context is not None:
            request = self._context.wrap_socket(request, server_side=True, do_handshake_on_connect=False)
        return request, address

    def turn_away(self, request: Any) -> None:
        """Say that there are too many; nothing unless a server does."""

    def server_bind(self) -> None:
        """Bind without asking for the name of this machine, which may take long."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: whoever asked has gone, or was too slow."""

    def start(self, name: str, look_seconds: float = 0.5) -> None:
        """Serve from now on, in a thread of that name that looks now and then whether it is to end."""
        threading.Thread(target=self.serve_forever, args=[look_seconds], name=name, daemon=True).start()


class Deadline(io.RawIOBase):
    """What comes from a connection until a time, however slowly."""

    def __init__(self, connection: socket.socket, seconds: float = REQUEST_SECONDS) -> None:
        self._connection = connection
        self._until = time.monotonic() + seconds

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what there is. Raises TimeoutError behind the time."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request took too long")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class BoundedHandler(BaseHTTPRequestHandler):
    """Answers one request of a BoundedServer, of which nothing is logged."""

    server: BoundedServer
    server_version = "wjoin"
    sys_version = ""
    seconds = REQUEST_SECONDS

    def setup(self) -> None:
        """Give the request a time by which it must be here."""
        super().setup()
        if isinstance(self.connection, ssl.SSLSocket):
            self.connection.settimeout(self.seconds)
            self.connection.do_handshake()
        self.rfile = io.BufferedReader(Deadline(self.connection, self.seconds))

    def parse_request(self) -> bool:
        """Read the head of a request; from then on nobody else takes its place."""
        found = super().parse_request()
        self.server.has_come(self.connection)
        self.connection.settimeout(self.seconds)
        return found

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer with a line that says what is wrong."""
        status = HTTPStatus(code)
        self.answer(status, "text/plain; charset=utf-8", f"{message or status.phrase}\n")

    def answer(self, status: HTTPStatus, kind: str, text: str, more: Mapping[str, str] | None = None) -> None:
        """Send an answer."""
        body = text.encode("utf-8", "backslashreplace")
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(more or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *values: Any) -> None:
        """Log nothing."""
