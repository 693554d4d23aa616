"""What a site counts, and the server that tells it to Prometheus."""

import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

from wjoin.grammar.errors import WJoinError
from wjoin.sites.access import Listen, admits
from wjoin.sites.bounded_server import BoundedHandler, BoundedServer
from wjoin.sites.exposition import CONTENT_TYPE, Metric
from wjoin.sites.loopback import is_own_name

_MOST_REQUESTS = 32


class Counts:
    """What has been asked and sent, by kind of request and stream; and errors by kind."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.requests: Counter[tuple[str, str]] = Counter()
        self.rows: Counter[tuple[str, str]] = Counter()
        self.bytes: Counter[tuple[str, str]] = Counter()
        self.errors: Counter[str] = Counter()

    def asked(self, kind: str, stream: str) -> None:
        """Count a request."""
        with self._lock:
            self.requests[kind, stream] += 1

    def sent(self, kind: str, stream: str, rows: int, size: int) -> None:
        """Count a block of an answer."""
        with self._lock:
            self.rows[kind, stream] += rows
            self.bytes[kind, stream] += size

    def failed(self, kind: str) -> None:
        """Count an error."""
        with self._lock:
            self.errors[kind] += 1

    def metrics(self) -> Iterator[Metric]:
        """Yield what was counted."""
        with self._lock:
            for name, help, counts in (
                ("requests_total", "Requests for rows.", self.requests),
                ("sent_rows_total", "Rows sent.", self.rows),
                ("sent_bytes_total", "Bytes sent, compressed, about.", self.bytes),
            ):
                samples = [({"kind": kind, "stream": stream}, n) for (kind, stream), n in counts.items()]
                yield Metric(f"wjoin_site_{name}", "counter", help, tuple(samples))
            errors = tuple(({"kind": kind}, float(n)) for kind, n in self.errors.items())
            yield Metric("wjoin_site_errors_total", "counter", "Requests that failed.", errors)


class MetricsServer(BoundedServer):
    """Serves /metrics, over TLS where there is a ``context``; where a token is given, only to who has it."""

    allow_reuse_address = True

    def __init__(
        self, listen: Listen, token: str | None, context: ssl.SSLContext | None, read: Callable[[], str]
    ) -> None:
        self.read = read
        self.token = token
        self.listen = listen
        if ":" in listen.host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((listen.host, listen.port), _Handler, _MOST_REQUESTS, context)
        except OSError as error:
            raise WJoinError("WJ903", f"metrics cannot be served at {listen}: {error.strerror}") from error

    def start(self) -> None:
        """Serve from now on."""
        threading.Thread(target=self.serve_forever, name="site-metrics", daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: whoever asked has gone, or was too slow."""


class _Handler(BoundedHandler):
    """Answers one request."""

    server: MetricsServer

    def do_GET(self) -> None:  # noqa: N802 (the name that http.server asks for)
        """Answer with the metrics."""
        server = self.server
        if server.listen.loopback and not is_own_name(self.headers["Host"]):
            self.send_error(HTTPStatus.FORBIDDEN, "requests must use a name of this machine")
        elif not admits(server.token, {"authorization": [self.headers["Authorization"] or ""]}):
            self.send_error(HTTPStatus.UNAUTHORIZED, "the token is missing or wrong")
        elif self.path != "/metrics":
            self.send_error(HTTPStatus.NOT_FOUND, "there is only /metrics")
        else:
            self.answer(HTTPStatus.OK, CONTENT_TYPE, server.read())

    do_HEAD = do_GET  # noqa: N815 (the name that http.server asks for)
