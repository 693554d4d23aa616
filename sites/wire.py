"""Arrow Flight on the wire: messages in protobuf's form, and the ends of gRPC's answers."""

import base64
import json
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from hpack import Encoder, NeverIndexedHeaderTuple

from wjoin.sites.failures import SiteError, packed

Message = list[memoryview]
"""A message of an answer in pieces, with gRPC's head before it."""

_SERVICE = b"/arrow.flight.protocol.FlightService/"
DO_GET, DO_ACTION = _SERVICE + b"DoGet", _SERVICE + b"DoAction"

_TICKET = _RESULT = _KIND = 1
_BODY = 2
_DATA_HEADER, _APP_METADATA, _DATA_BODY = 2, 3, 1000
_NUMBER, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_FIXED = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}
_MOST_FIELDS = 16
_ARROW_HEAD = 8
_MOST_TOLD = 1_000
"""Bytes of a failure's texts in the end of an answer, of which gRPC's clients take 8 kB."""

_IO_ERROR = "5"
_STATUS: Mapping[str, tuple[int, bytes]] = {"busy": (14, b"Unavailable"), "refused": (16, b"Unauthenticated")}
"""What gRPC and Arrow call a failure of a kind; others are of no kind that they know."""

_FAILED = (2, b"Failed")


def _block(*headers: tuple[str, str | bytes]) -> bytes:
    """Return headers that no table keeps, so that those of all connections are the same."""
    return bytes(Encoder().encode([NeverIndexedHeaderTuple(*each) for each in headers], huffman=False))


HEAD = _block((":status", "200"), ("content-type", "application/grpc"))
"""The headers that an answer begins with."""

END = _block(("grpc-status", "0"))
"""The headers that a whole answer ends with."""


def failure(error: SiteError) -> bytes:
    """Return the headers that an answer ends with that failed, as pyarrow's client reads them."""
    code, detail = _STATUS.get(error.kind, _FAILED)
    message = _short(error.message)
    help = None if error.help is None else _short(error.help)
    told = packed(SiteError(error.kind, message, help=help))
    return _block(
        ("grpc-status", str(code)),
        (
            "grpc-message",
            urllib.parse.quote(message[: _MOST_TOLD // 10], " !#$&'()*+,/:;=?@[]", errors="backslashreplace"),
        ),
        ("grpc-status-details-bin", base64.b64encode(told)),
        ("x-arrow-status", _IO_ERROR),
        ("x-arrow-status-detail-bin", base64.b64encode(detail)),
        ("x-arrow-status-message-bin", base64.b64encode(message.encode("utf-8", "backslashreplace"))),
    )


def _short(text: str) -> str:
    data = text.encode("utf-8", "backslashreplace")
    return text if len(data) <= _MOST_TOLD else data[:_MOST_TOLD].decode("utf-8", "ignore") + "…"


def read_ticket(message: memoryview) -> memoryview:
    """Return what a ticket has. Raises SiteError "broken"."""
    return _read(message).get(_TICKET, message[:0])


def read_action(message: memoryview) -> tuple[str, bytes]:
    """Return the kind of an action, and its body. Raises SiteError "broken"."""
    found = _read(message)
    kind = bytes(found.get(_KIND, b"")).decode("utf-8", "backslashreplace")
    return kind, bytes(found.get(_BODY, b""))


def _read(message: memoryview) -> dict[int, memoryview]:
    """Return the texts of a message by the numbers of their fields. Raises SiteError "broken"."""
    found: dict[int, memoryview] = {}
    at = 0
    for _ in range(_MOST_FIELDS):
        if at == len(message):
            return found
        tag, at = _varint(message, at)
        form = tag & 7
        if form == _NUMBER:
            _, at = _varint(message, at)
            continue
        if form == _BYTES:
            size, at = _varint(message, at)
            found[tag >> 3] = message[at : at + size]
        elif form in _FIXED:
            size = _FIXED[form]
        else:
            raise _unreadable()
        at += size
        if at > len(message):
            break
    raise _unreadable()


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """Return a number, and what is behind it."""
    number = 0
    for shift, byte in enumerate(message[at : at + 10]):
        number |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return number, at + shift + 1
    raise _unreadable()


def _unreadable() -> SiteError:
    return SiteError("broken", "the request cannot be read as a message of Arrow Flight")


def _field(number: int, size: int) -> bytes:
    """Return what stands before a field of some bytes."""
    return _number(number << 3 | _BYTES) + _number(size)


def _number(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def _grpc(size: int) -> bytes:
    return b"\0" + size.to_bytes(4)


def result(body: bytes) -> Message:
    """Return the answer to an action."""
    head = _field(_RESULT, len(body))
    return [memoryview(_grpc(len(head) + len(body)) + head + body)]


class _Written:
    """A file that keeps what is written into it, in the pieces in which it came."""

    closed = False

    def __init__(self) -> None:
        self.pieces: list[Any] = []

    def write(self, data: Any) -> int:
        self.pieces.append(data)
        return len(data)

    def flush(self) -> None:
        """There is nothing to be done."""

    close = flush


class Blocks:
    """Makes messages of the blocks of an answer, whose columns have no dictionaries; no value is copied."""

    def __init__(self, schema: pa.Schema, options: pa.ipc.IpcWriteOptions) -> None:
        self._written = _Written()
        self._writer = pa.ipc.new_stream(pa.PythonFile(self._written, "w"), schema, options=options)
        self._begun = False
        self.schema = _flight(schema.serialize().to_pybytes()[_ARROW_HEAD:], None, [])

    def message(self, block: pa.RecordBatch, *, tell: bool) -> tuple[Message, int]:
        """Return the message of a block, and how many bytes of Arrow it takes on the way.

        ``tell``: beside it stand these bytes, and how many they are without compression.
        """
        self._writer.write_batch(block)
        written, self._written.pieces = iter(self._written.pieces), []
        if not self._begun:
            # The first block has the schema before it.
            _head(written)
            self._begun = True
        head = _head(written)
        body = [memoryview(each) for each in written]
        travels = len(head) + sum(map(len, body))
        told = None
        if tell:
            plain = pa.ipc.get_record_batch_size(block)
            told = json.dumps({"bytes": travels, "plain": plain}).encode()
        return _flight(head, told, body), travels


def _head(written: Iterator[Any]) -> bytes:
    """Return the metadata of a message of Arrow, behind the four bytes of a mark and their length."""
    found = bytearray()
    while len(found) < _ARROW_HEAD or len(found) < _ARROW_HEAD + int.from_bytes(found[4:8], "little"):
        found += next(written)
    return bytes(found[_ARROW_HEAD:])


def _flight(head: bytes, told: bytes | None, body: list[memoryview]) -> Message:
    size = sum(map(len, body))
    fields = _field(_DATA_HEADER, len(head)) + head
    if told is not None:
        fields += _field(_APP_METADATA, len(told)) + told
    fields += _field(_DATA_BODY, size) if size else b""
    return [memoryview(_grpc(len(fields) + size) + fields), *body]
