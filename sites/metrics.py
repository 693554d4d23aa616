"""What a site counts, and the server that tells it to Prometheus."""

import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http import HTTPStatus

from wjoin.grammar.errors import WJoinError
from wjoin.sites.access import Listen, admits
from wjoin.sites.bounded_server import BoundedHandler, BoundedServer
from wjoin.sites.exposition import CONTENT_TYPE, Metric
from wjoin.sites.loopback import is_own_name

_MOST_REQUESTS = 32


_COUNTED = {
    "requests_total": "Requests for rows.",
    "sent_rows_total": "Rows sent.",
    "sent_bytes_total": "Bytes sent, compressed, about.",
    "errors_total": "Requests that failed.",
}


class RequestCounts:
    """What has been asked and sent, by kind of request and stream; and errors by kind."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()

    def add(self, name: str, count: int = 1, **labels: str) -> None:
        """Count something under labels."""
        with self._lock:
            self._counts[name, tuple(labels.items())] += count

    def metrics(self) -> Iterator[Metric]:
        """Yield what was counted."""
        with self._lock:
            counts = [*self._counts.items()]
        for name, help in _COUNTED.items():
            samples = tuple((dict(labels), count) for (own, labels), count in counts if own == name)
            yield Metric(f"wjoin_site_{name}", "counter", help, samples)


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


class _Handler(BoundedHandler):
    """Answers one request."""

    server: MetricsServer

    def do_GET(self) -> None:  # noqa: N802 (the name that http.server asks for)
        """Answer with the metrics."""
        server = self.server
        if server.listen.loopback and not is_own_name(self.headers["Host"]):
            self.send_error(HTTPStatus.FORBIDDEN, "requests must use a name of this machine")
        elif not admits(server.token, self.headers["Authorization"] or ""):
            self.send_error(HTTPStatus.UNAUTHORIZED, "the token is missing or wrong")
        elif self.path != "/metrics":
            self.send_error(HTTPStatus.NOT_FOUND, "there is only /metrics")
        else:
            self.answer(HTTPStatus.OK, CONTENT_TYPE, server.read())

    do_HEAD = do_GET  # noqa: N815 (the name that http.server asks for)
