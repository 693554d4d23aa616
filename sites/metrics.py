"""What a site counts, in Prometheus' text form, version 0.0.4, and the server that tells it."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any

from wjoin.grammar.errors import WJoinError
from wjoin.sites.access import Listen, admits
from wjoin.sites.bounded_server import BoundedServer

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = 10.0
_MOST_REQUESTS = 8

Sample = tuple[dict[str, str], float]


@dataclass(frozen=True)
class Metric:
    """A metric with its values under labels; ``kind`` is "gauge" or "counter"."""

    name: str
    kind: str
    help: str
    samples: tuple[Sample, ...]


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


def exposition(metrics: Iterator[Metric]) -> str:
    """Return metrics as Prometheus reads them."""
    return "".join(line for each in metrics if each.samples for line in _lines(each))


def _lines(metric: Metric) -> Iterator[str]:
    yield f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.kind}\n"
    for labels, value in metric.samples:
        inside = ",".join(f'{name}="{_quoted(text)}"' for name, text in labels.items())
        yield f"{metric.name}{{{inside}}} {float(value)!r}\n"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


class MetricsServer(BoundedServer):
    """Serves /metrics; where a token is given, only to who has it."""

    allow_reuse_address = True

    def __init__(self, listen: Listen, token: str | None, read: Callable[[], str]) -> None:
        self.read = read
        self.token = token
        if ":" in listen.host:
            import socket

            self.address_family = socket.AF_INET6
        try:
            super().__init__((listen.host, listen.port), _Handler, _MOST_REQUESTS)
        except OSError as error:
            raise WJoinError("WJ903", f"metrics cannot be served at {listen}: {error.strerror}") from error

    def start(self) -> None:
        """Serve from now on."""
        threading.Thread(target=self.serve_forever, name="site-metrics", daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: whoever asked has gone, or was too slow."""


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: MetricsServer
    server_version = "wjoin"
    sys_version = ""
    timeout = _SECONDS

    def do_GET(self) -> None:
        """Answer with the metrics."""
        if not admits(self.server.token, {"authorization": [self.headers["Authorization"] or ""]}):
            self._send(HTTPStatus.UNAUTHORIZED, "the token is missing or wrong\n")
        elif self.path != "/metrics":
            self._send(HTTPStatus.NOT_FOUND, "there is only /metrics\n")
        else:
            self._send(HTTPStatus.OK, self.server.read())

    def _send(self, status: HTTPStatus, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *values: Any) -> None:
        """Log nothing."""
