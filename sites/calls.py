"""Calls of a site over Arrow Flight: their time, their failures, and when they are tried again."""

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.flight as flight

from wjoin.sites.failures import SiteError, unpacked
from wjoin.sites.protocol import SiteAddress

T = TypeVar("T")

_OPTIONS = [
    # gRPC waits up to two minutes until it tries a server again that was away.
    ("grpc.initial_reconnect_backoff_ms", 100),
    # So long may the greeting take, over a slow link or at a busy site; then it begins anew.
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # A connection of its own: another client's does not take its time.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", -1),
]
_PASSING = ("unreachable", "busy")
_LEAST_PAUSE, _GREATEST_PAUSE = 0.05, 2.0
_TLS = (
    "CERTIFICATE_VERIFY_FAILED",
    "WRONG_VERSION_NUMBER",
    "not in peer certificate",
    "ostname",
    "handshake",
)


class Tries:
    """How often, and how long, something is tried."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self.reset()

    def reset(self) -> None:
        """Begin anew: something has come."""
        self._until = time.monotonic() + self._patience
        self._pause = _LEAST_PAUSE

    def wait(self, error: SiteError) -> None:
        """Wait before the next try. Raises the error where it does not pass, or patience is over."""
        if error.kind not in _PASSING:
            raise error
        left = self._until - time.monotonic()
        if left <= 0:
            message = f"{error.message} (tried for {self._patience:.0f} s)"
            raise SiteError("unreachable", message, site=error.site, help=error.help) from error
        time.sleep(min(left, self._pause * random.uniform(0.5, 1.0)))
        self._pause = min(2 * self._pause, _GREATEST_PAUSE)


class Caller:
    """Makes calls of one site. ``sent`` and ``received`` count bytes by kind."""

    def __init__(self, address: SiteAddress) -> None:
        self.address = address
        self.sent: Counter[str] = Counter()
        self.received: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._client: Any = None
        self._closed = False

    def tries(self) -> Tries:
        """Return new tries, with the address's patience."""
        return Tries(self.address.patience)

    def again(self, call: Callable[[], T]) -> T:
        """Return what a call gives, tried until patience is over. Raises SiteError."""
        tries = self.tries()
        while True:
            try:
                return call()
            except SiteError as error:
                tries.wait(error)

    def act(self, kind: str, body: bytes) -> bytes:
        """Return the answer to an action. Raises SiteError."""
        try:
            found = b"".join(
                each.body.to_pybytes()
                for each in self._flight().do_action(flight.Action(kind, body), self._options())
            )
        except (pa.ArrowException, OSError) as error:
            raise self._failure(error) from error
        self._count("action", len(body), len(found))
        return found

    def get(self, kind: str, ticket: bytes) -> Iterator[pa.RecordBatch]:
        """Yield the blocks of a request for rows. Raises SiteError."""
        reader: Any = None
        ratio = 1.0
        try:
            reader = self._flight().do_get(flight.Ticket(ticket), self._options())
            self._count(kind, len(ticket), 0)
            while True:
                try:
                    chunk = reader.read_chunk()
                except StopIteration:
                    reader = None
                    return
                if chunk.app_metadata is not None:
                    told = json.loads(chunk.app_metadata.to_pybytes())
                    ratio = told["bytes"] / max(told["plain"], 1)
                if chunk.data is not None:
                    self._count(kind, 0, int(ratio * pa.ipc.get_record_batch_size(chunk.data)))
                    yield chunk.data
        except (pa.ArrowException, OSError) as error:
            reader = None
            raise self._failure(error) from error
        except (ValueError, KeyError, TypeError) as error:
            message = f"its answer cannot be read: {error}"
            raise SiteError("broken", message, site=self.address.url) from error
        finally:
            if reader is not None:
                # Whoever read has stopped before the end.
                reader.cancel()

    def close(self) -> None:
        """Let the connection go; a later call raises SiteError "failed"."""
        with self._lock:
            self._closed = True
            if self._client is not None:
                self._client.close()
                self._client = None

    def _flight(self) -> Any:
        with self._lock:
            if self._closed:
                raise SiteError("failed", "the client has been closed", site=self.address.url)
            if self._client is None:
                certificate = self.address.certificate
                self._client = flight.FlightClient(
                    self.address.url,
                    tls_root_certs=None if certificate is None else certificate.encode(),
                    generic_options=_OPTIONS,
                )
            return self._client

    def _options(self) -> Any:
        token = self.address.token
        if token is not None and not (token.isascii() and token.isprintable()):
            message = "the token has signs that a token cannot have"
            raise SiteError("refused", message, site=self.address.url)
        headers = [] if token is None else [(b"authorization", b"Bearer " + token.encode())]
        return flight.FlightCallOptions(timeout=self.address.call_timeout, headers=headers)

    def _count(self, kind: str, sent: int, received: int) -> None:
        with self._lock:
            self.sent[kind] += sent
            self.received[kind] += received

    def _failure(self, error: Exception) -> SiteError:
        """Return what a failure of Flight's means."""
        site = self.address.url
        told = unpacked(getattr(error, "extra_info", None), site)
        if told is not None:
            return told
        text = _short(error)
        if isinstance(error, flight.FlightUnauthenticatedError | flight.FlightUnauthorizedError):
            return SiteError("refused", text, site=site, help="give the token of the site's token_file")
        if isinstance(error, flight.FlightTimedOutError):
            message = f"no answer within {self.address.call_timeout:g} s"
            return SiteError("unreachable", message, site=site)
        if isinstance(error, flight.FlightUnavailableError | flight.FlightCancelledError):
            if any(word in text for word in _TLS):
                help = (
                    "give the certificate of the site's authority, and a host name that is in the certificate"
                )
                return SiteError("refused", f"the TLS handshake failed: {text}", site=site, help=help)
            help = "check that the site runs, and whether it is grpc:// or grpc+tls://"
            return SiteError("unreachable", f"it cannot be reached: {text}", site=site, help=help)
        if isinstance(error, flight.FlightInternalError) and any(
            word in text for word in ("RST_STREAM", "Stream removed", "GOAWAY", "onnection reset")
        ):
            return SiteError("unreachable", f"the connection was lost: {text}", site=site)
        if isinstance(error, flight.FlightServerError):
            return SiteError("failed", text, site=site)
        return SiteError("broken", f"its answer cannot be read: {text}", site=site)


def _short(error: Exception) -> str:
    """Return the first line of a message, without what gRPC tells of its own files."""
    text = str(error).partition(". gRPC client debug context")[0].partition(". Client context")[0]
    return " ".join(text.split())[:300]
