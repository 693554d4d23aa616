"""The server of the live page: a small HTTP server in threads of their own, which end with the process."""

import contextlib
import html
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import parse_qs, quote, urlsplit

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from wjoin.grammar.errors import WJoinError
from wjoin.queries.running import Running
from wjoin.queries.session_queries import Queries
from wjoin.sites.bounded_server import REQUEST_SECONDS, BoundedHandler, BoundedServer
from wjoin.sites.loopback import is_own_name
from wjoin.web.page_access import Address, admits, token_for
from wjoin.web.page_answers import RefusedRequest, ServedQueries, answer, is_look
from wjoin.web.present import QueryState
from wjoin.web.watched import QueryWatch

PORT = 4950
"""The port, where none is given: the first free one from here on."""

_PORTS = 20

MOST_REQUESTS = 32
"""Requests that are answered at a time; others are told to come again."""

_BUSY = b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"

LOOKING_SECONDS = 3.0
"""Somebody is taken to look for so long after a request."""

_END_SECONDS = 0.05
"""How often the server looks whether it is to end."""

LAST_SECONDS = 1.5
"""How long a picture that somebody looks at stays after the end: pages ask every second."""

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self' http://localhost:* http://127.0.0.1:* https://localhost:* https://127.0.0.1:*",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Nothing runs or is loaded but what is served here; notebooks of this machine may frame the page."""


class Web(BoundedServer):
    """A live page that is served: each request in a thread that ends with the process.

    ``host`` is that of its address, ``token`` what a request must have, None where everybody on this machine
    may ask; ``open`` tells whether it is still served, ``looked`` when somebody has looked at it last
    (``time.monotonic``).
    """

    def __init__(self, address: Address, port: int, token: str | None) -> None:
        found = socket.getaddrinfo(address.host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family, *_, (host, free, *_) = found[0]
        self.host, self.loopback, self.token = address.host, address.loopback, token
        self.looked, self.open = float("-inf"), True
        super().__init__((str(host), int(free)), _Handler, MOST_REQUESTS)

    def begin(self, read: Callable[[], Sequence[QueryState]], closed: Callable[[], None]) -> Self:
        """Answer from now on with the queries that ``read`` gives; call ``closed`` at the end."""
        self._closed = closed
        self.site = ServedQueries(read, self._suffix())
        self.start("wjoin-web", _END_SECONDS)
        return self

    @property
    def url(self) -> str:
        """The address of the page, with the token where there is one."""
        host = socket.gethostname() if self.host in ("0.0.0.0", "::") else self.host
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}/{self._suffix()}"

    @property
    def port(self) -> int:
        """The port at which it is served."""
        return int(self.server_port)

    def url_of(self, query: StreamingQuery | Running) -> str:
        """Return the address of the page with one query in view."""
        running = query.query if isinstance(query, Running) else query
        return f"{self.url}#{running.runId}"

    def close(self, *, linger: bool = False) -> None:
        """Serve no more; with ``linger`` whoever looks sees first how the queries have ended, for 1.5 s."""
        if self.open:
            if linger and time.monotonic() - self.looked < LOOKING_SECONDS:
                time.sleep(LAST_SECONDS)
            self.open = False
            self.shutdown()
            self.server_close()
            self._closed()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _suffix(self) -> str:
        """Return what every address ends with."""
        return "" if self.token is None else f"?token={quote(self.token)}"

    def _repr_html_(self) -> str:
        """Return a frame with the page, for a notebook."""
        source = html.escape(self.url)
        return f'<iframe src="{source}" title="wjoin: live page" width="100%" height="720"></iframe>'

    def turn_away(self, request: Any) -> None:
        """Say that there are too many requests."""
        request.settimeout(REQUEST_SECONDS)
        with contextlib.suppress(OSError):
            request.sendall(_BUSY)


def serve(spark: SparkSession, queries: Queries, address: Address, token: str | None = None) -> Web:
    """Serve the live page of the queries of a Spark session; ``queries`` are those that wjoin has started.

    Whoever can reach the address may look where that is this machine alone; elsewhere, and where there is a
    ``token``, only requests that have it are answered. Raises WJoinError WJ618.
    """
    token = token_for(address, token)
    web = bound(address, token)
    watch = QueryWatch(spark, queries)
    return web.begin(watch.read, watch.close)


def bound(address: Address, token: str | None) -> Web:
    """Return a live page at the address; without a port at the first free one. Raises WJoinError WJ618."""
    ports = [address.port] if address.port is not None else [*range(PORT, PORT + _PORTS), 0]
    for port in ports:
        try:
            return Web(address, port, token)
        except OSError as error:
            if port == ports[-1]:
                where = f"{address.host}:{port}"
                message = f"{where} cannot be served: {error.strerror or error}"
                raise WJoinError("WJ618", message) from error
    raise AssertionError("there is a last port")


class _Handler(BoundedHandler):
    """Answers one request."""

    server: Web

    def do_GET(self) -> None:  # noqa: N802 (the name that http.server asks for)
        """Answer with what is asked for."""
        try:
            kind, body = self._answer()
        except RefusedRequest as refused:
            self.send_error(refused.status, str(refused))
            return
        except Exception:  # noqa: BLE001 (a page that cannot be made must not be a traceback in a terminal)
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, "not available at the moment")
            return
        self.answer(HTTPStatus.OK, kind, body)

    do_HEAD = do_GET  # noqa: N815 (the name that http.server asks for)

    def _answer(self) -> tuple[str, str]:
        """Return the kind and the text of an answer. Raises Refused."""
        if self.server.loopback and not is_own_name(self.headers["Host"]):
            raise RefusedRequest(HTTPStatus.FORBIDDEN, "requests must use a name of this machine")
        address = urlsplit(self.path)
        asked = {name: values[-1] for name, values in parse_qs(address.query).items()}
        if not admits(self.server.token, asked.get("token"), self.headers["Authorization"]):
            raise RefusedRequest(
                HTTPStatus.UNAUTHORIZED, "the token printed at the start is missing or wrong"
            )
        if is_look(address.path):
            self.server.looked = time.monotonic()
        return answer(self.server.site, address.path, asked)

    def answer(self, status: HTTPStatus, kind: str, text: str, more: Mapping[str, str] | None = None) -> None:
        """Send an answer."""
        asked = {"WWW-Authenticate": 'Bearer realm="wjoin"'} if status is HTTPStatus.UNAUTHORIZED else {}
        super().answer(status, kind, text, {**asked, **_HEADERS})
