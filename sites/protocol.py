"""What a site and its clients say to each other: requests, facts of streams, and their form in bytes."""

import base64
import json
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wjoin.grammar.plain import typed
from wjoin.grammar.statement_kinds import ROW_NUMBER
from wjoin.sites.failures import SiteError

ROW = ROW_NUMBER
"""The int64 column with a row's number: its offset in the stream, and its id at the site."""

T = TypeVar("T")
Numbers = npt.NDArray[np.int64]

_HEAD = struct.Struct("<4sI")
_MAGIC = b"WJS1"
HEAD_BYTES = 64_000
"""JSON of a request at the most: the names of thousands of columns."""

_LEAST_OBJECT = 8
"""Bytes that a list or an object in JSON has at the least, on average."""

_LEAST_STEP, _GREATEST_STEP = 0, (1 << 32) - 1


@dataclass(frozen=True)
class SiteAddress:
    """Where a site is, and what it takes to be let in; times in seconds."""

    url: str
    """'grpc://host:port', or 'grpc+tls://host:port'."""
    token: str | None = field(default=None, repr=False)
    certificate: str | None = field(default=None, repr=False)
    """PEM text of the authority to trust, None for those that the system trusts."""
    patience: float = 300.0
    """How long to go on trying where a site cannot be reached or is slow."""
    call_timeout: float = 60.0
    """How long one call may take."""


@dataclass(frozen=True)
class StreamFacts:
    """What a site knows of a stream. Times are microseconds, or the unit of an integral event time."""

    stream: str
    lineage: str
    schema: pa.Schema
    time: str
    """The event-time column."""
    first: int
    next: int
    """Rows kept have numbers from ``first`` on, below ``next``."""
    latest: int | None
    """The greatest event time that a clock shows (wjoin.sites.far), None while there is no such row."""
    span: int | None
    """Event time from the earliest to the latest kept row."""
    window: int | None
    """The window that is kept, None where it is one of rows."""
    rate: float
    """Rows a second of event time lately; rows a unit where event time is a number."""
    widths: Mapping[str, float]
    """Average bytes of a row by column, as they travel, before compression."""
    distinct: Mapping[str, float]
    """Estimates of the distinct values of each key column among the rows kept."""
    packed: Mapping[str, float]
    """Average bytes of a row by column in blocks that are compressed by zstd, as clients ask for them."""


@dataclass(frozen=True)
class MeasuredLink:
    """The way to a site: ``latency`` is the time of an empty call in seconds, there and back."""

    latency: float
    bytes_per_second: float


def facts_to_json(facts: StreamFacts) -> dict[str, Any]:
    """Return facts as JSON takes them."""
    plain = {name: value for name, value in facts.__dict__.items() if name != "schema"}
    return {**plain, "schema": schema_to_text(facts.schema)}


def facts_from_json(plain: Mapping[str, Any]) -> StreamFacts:
    """Return the facts of JSON. Raises SiteError "broken"."""
    try:
        return StreamFacts(**{**plain, "schema": schema_from_text(plain["schema"])})
    except (KeyError, TypeError, ValueError, pa.ArrowException) as error:
        raise SiteError("broken", f"the description of a stream cannot be read: {error}") from error


def schema_to_text(schema: pa.Schema) -> str:
    """Return a schema as text: Arrow's bytes in base64."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def schema_from_text(text: str) -> pa.Schema:
    """Return the schema of a text of ``schema_to_text``."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


@dataclass(frozen=True)
class RowsRequest:
    """A request for rows: ``kind`` "rows" (all from ``start`` to before ``stop``), "full" (those with some
    numbers), "reduced" (those of some ranges that pass a filter) or "probe" (``stop`` bytes of noise).

    ``block_bytes`` is how many bytes before compression a batch of the answer has at the most, None for the
    site's own choice; ``compression`` is "zstd", "lz4" or None.
    """

    kind: str
    stream: str = ""
    lineage: str = ""
    columns: tuple[str, ...] = ()
    start: int = 0
    stop: int = 0
    compression: str | None = None
    block_bytes: int | None = None


def encode_request(request: RowsRequest, body: bytes = b"") -> bytes:
    """Return a request with its body (numbers or a filter) as bytes: 4 letters, a length, JSON, the body."""
    head = json.dumps(asdict(request), separators=(",", ":")).encode()
    return b"".join((_HEAD.pack(_MAGIC, len(head)), head, body))


def decode_request(ticket: bytes | memoryview) -> tuple[RowsRequest, memoryview]:
    """Return the request of a ticket, and its body. Raises SiteError "broken"."""
    view = memoryview(ticket)
    if len(view) < _HEAD.size:
        raise SiteError("broken", "the request is shorter than its head")
    magic, length = _HEAD.unpack_from(view)
    if magic != _MAGIC:
        raise SiteError("broken", f"the request does not begin with {_MAGIC.decode()}")
    if length > len(view) - _HEAD.size:
        raise SiteError("broken", "the request has been cut off")
    body = view[_HEAD.size + length :]
    return read_typed(RowsRequest, view[_HEAD.size : _HEAD.size + length]), body


def read_typed(kind: type[T], text: memoryview | bytes, most_bytes: int = HEAD_BYTES) -> T:
    """Return the dataclass that stands in a JSON text. Raises SiteError "broken" or "limit"."""
    try:
        return typed(kind, read_json(text, most_bytes))
    except ValueError as error:
        raise SiteError("broken", f"the request cannot be read: {error}") from error


def read_json(text: memoryview | bytes, most_bytes: int = HEAD_BYTES) -> dict[str, Any]:
    """Return the object of a JSON text, its texts such as UTF-8 has. Raises SiteError "broken" or "limit"."""
    if len(text) > most_bytes:
        raise SiteError(
            "limit", f"JSON of {len(text)} bytes is asked to be read, and the limit is {most_bytes}"
        )
    data = bytes(text)
    # An empty list takes as much memory as fifty letters.
    if sum(map(data.count, (b"[", b"{"))) > most_bytes // _LEAST_OBJECT:
        raise SiteError("broken", "the request has more lists than it may have")
    try:
        plain = json.loads(data or b"{}")
        if b"\\u" in data:
            # Lone surrogates can be written so, and in no other text.
            json.dumps(plain, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise SiteError("broken", f"the request cannot be read as JSON: {type(error).__name__}") from error
    if not isinstance(plain, dict):
        raise SiteError("broken", "the request is no JSON object")
    return plain


def encode_numbers(numbers: Numbers) -> bytes:
    """Return ascending row numbers; in half the bytes where their steps are small."""
    steps = np.diff(numbers)
    if len(steps) and (steps.min() < _LEAST_STEP or steps.max() > _GREATEST_STEP):
        return b"8" + numbers.astype("<i8").tobytes()
    return b"4" + numbers[:1].astype("<i8").tobytes() + steps.astype("<u4").tobytes()


def decode_numbers(body: memoryview) -> Numbers:
    """Return the numbers of ``encode_numbers``. Raises SiteError "broken"."""
    form, data = bytes(body[:1]), body[1:]
    if form == b"8" and len(data) % 8 == 0:
        return np.frombuffer(data, "<i8").astype(np.int64)
    if form == b"4" and len(data) == 0:
        return np.empty(0, np.int64)
    if form == b"4" and len(data) >= 8 and len(data) % 4 == 0:
        first = np.frombuffer(data[:8], "<i8").astype(np.int64)
        return np.cumsum(np.concatenate([first, np.frombuffer(data[8:], "<u4").astype(np.int64)]))
    raise SiteError("broken", "the row numbers of the request cannot be read")


def count_of_numbers(body: memoryview) -> int:
    """Return how many numbers a body has, without reading them."""
    return len(body) // 8 if bytes(body[:1]) == b"8" else max(0, (len(body) - 1) // 4 - 1)
