"""HTTP/2 as far as a site's front looks into it: who asks, and how large each message is (RFC 9113).

What a caller sends is let through piece by piece. A message is let through once there is room for all of it:
gRPC keeps what has come of a message in memory until the rest is there, and has no bound of its own.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from hpack import Decoder
from hpack.exceptions import HPACKError

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

ALLOWANCE = 64_000
"""Bytes that a connection may have under way without room of its own: small requests, and callers that have
not shown the token."""

MOST_OPEN = 256
"""Requests of one connection at a time, answers included."""

MOST_OWED, MOST_OWED_EACH = 128, 8
"""Requests of all connections, and of one, that are whole and wait for their answer to begin."""

MOST_INCOMPLETE = 32
"""Requests of one connection that are not whole."""

_STEPS = 64
"""Pieces of one connection that are looked at until it is the others' turn."""

_HEAD = 9
_PREFIX = 5
_DATA, _HEADERS, _RESET, _PROMISE, _CONTINUATION = 0, 1, 3, 5, 9
_END_STREAM, _END_HEADERS, _PADDED, _PRIORITY = 0x1, 0x4, 0x8, 0x20
_CANCELLED, _CANCEL = b"\0\0\4\3\0", b"\0\0\0\x08"
_MOST_HEADERS = 32_768
_MOST_CONTROL = 16_384
_RESETS, _RESETS_A_SECOND = 200, 50
_LARGE = (b"/arrow.flight.protocol.FlightService/DoGet", b"/arrow.flight.protocol.FlightService/DoAction")
"""Methods whose requests may be large."""

Headers = dict[str, list[str]]


class Refused(Exception):  # noqa: N818 (it is no failure of this program)
    """A connection is to be cut, and why."""


class Line:
    """Who waits for room, in the order in which they have come; nobody overtakes."""

    def __init__(self) -> None:
        self.waiting: deque[Requests] = deque()

    def turn(self, who: "Requests", free: bool) -> bool:
        """Return whether it is somebody's turn, there being room; else have it wait."""
        first = not self.waiting or self.waiting[0] is who
        if free and first:
            self.leave(who)
            return True
        if who not in self.waiting:
            self.waiting.append(who)
        return False

    def leave(self, who: "Requests") -> None:
        """Have somebody wait no more."""
        if who in self.waiting:
            self.waiting.remove(who)


class Room:
    """What all connections share: bytes for large messages, and places of requests that wait for answers."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.used = 0
        self.owed = 0
        self.for_bytes = Line()
        self.for_places = Line()

    def take(self, who: "Requests", count: int) -> bool:
        """Take some bytes, if there are so many, and nobody has waited for longer."""
        if not self.for_bytes.turn(who, self.used + count <= self.total):
            return False
        self.used += count
        return True

    def give(self, count: int) -> None:
        """Give some bytes back."""
        self.used -= count


@dataclass(frozen=True)
class Rules:
    """What holds for all connections: who is known, bytes of a message, and the room for large ones."""

    admits: Callable[[Headers], bool]
    most_message: int
    room: Room


@dataclass
class _Stream:
    """A request: whether it may be large, when it began, and what is taken for its messages."""

    began: float
    large: bool
    whole: bool = False
    begun: bool = False
    unwanted: bool = False
    left: int = 0
    messages: int = 0
    small: int = 0
    reserved: int = 0
    prefix: bytearray = field(default_factory=bytearray)


class Requests:
    """What one caller sends: ``feed`` it, and pass on what ``through`` gives.

    ``waits`` tells that there is no room for the next message; ``more`` that ``through`` has more to give
    once others have had their turn; ``known`` that a request had the token.
    """

    def __init__(self, rules: Rules) -> None:
        self.waits = False
        self.more = False
        self.known = False
        self._rules = rules
        self._in = bytearray()
        self._out = bytearray()
        self._greeted = False
        self._streams: dict[int, _Stream] = {}
        self._latest = 0
        self._owed = 0
        self._small = 0
        self._resets = 0.0
        self._reset_at = 0.0
        self._now = 0.0
        # Of the DATA frame that is being read: its stream, bytes left, and whether it is the last one.
        self._data: tuple[_Stream | None, bool] | None = None
        self._left = 0
        # Of a header block: its stream, bytes so far, and whether it ends the stream.
        self._block: tuple[int, bytearray, bool] | None = None
        self._decoder = Decoder(max_header_list_size=_MOST_HEADERS)

    def incomplete_since(self) -> float | None:
        """Return when the oldest request began that is not whole, None where all are."""
        if not self._greeted:
            return 0.0
        return min((each.began for each in self._streams.values() if not each.whole), default=None)

    def feed(self, data: bytes | memoryview) -> None:
        """Take in what has come."""
        self._in += data

    def through(self, now: float) -> bytearray:
        """Return what of some pieces may go on. Raises Refused."""
        self._now = now
        self.waits = False
        self.more = all(self._step() for _ in range(_STEPS))
        if not self.waits:
            # What it has waited for may have been taken back.
            self._wait_no_more()
        out, self._out = self._out, bytearray()
        return out

    def _step(self) -> bool:
        """Let a piece through; False where more must come, or there is no room."""
        if not self._greeted:
            return self._greeting()
        if self._data is not None:
            return self._message(*self._data)
        if len(self._in) < _HEAD:
            return False
        size, kind, flags = int.from_bytes(self._in[:3]), self._in[3], self._in[4]
        stream = int.from_bytes(self._in[5:_HEAD]) & 0x7FFF_FFFF
        if self._block is not None and (kind != _CONTINUATION or stream != self._block[0]):
            raise Refused("headers are interrupted")
        if kind == _DATA:
            if flags & _PADDED:
                raise Refused("data are padded")
            found = self._streams.get(stream)
            if found is not None and flags & _END_STREAM and not self._may_end():
                self.waits = True
                return False
            self._pass(_HEAD)
            self._data, self._left = (found, bool(flags & _END_STREAM)), size
            return True
        if size > _MOST_CONTROL:
            raise Refused("a frame is too large")
        if len(self._in) < _HEAD + size:
            return False
        payload = bytes(self._in[_HEAD : _HEAD + size])
        if kind in (_HEADERS, _CONTINUATION):
            self._headers(kind, flags, stream, payload)
        elif kind == _RESET and self._reset(stream):
            del self._in[: _HEAD + size]
            return True
        elif kind == _PROMISE:
            raise Refused("a caller promises")
        self._pass(_HEAD + size)
        return True

    def _pass(self, count: int) -> None:
        self._out += self._in[:count]
        del self._in[:count]

    def _greeting(self) -> bool:
        begin = bytes(self._in[: len(PREFACE)])
        if not PREFACE.startswith(begin):
            raise Refused("this is not HTTP/2")
        if len(begin) < len(PREFACE):
            return False
        self._greeted = True
        self._pass(len(PREFACE))
        return True

    def _headers(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == _HEADERS:
            if flags & _PADDED:
                raise Refused("headers are padded")
            self._block = stream, bytearray(), bool(flags & _END_STREAM)
            payload = payload[5:] if flags & _PRIORITY else payload
        if self._block is None:
            raise Refused("headers go on that have not begun")
        self._block[1].extend(payload)
        if len(self._block[1]) > _MOST_HEADERS:
            raise Refused("headers are too large")
        if flags & _END_HEADERS:
            number, block, last = self._block
            self._block = None
            self._begin(number, bytes(block), last)

    def _begin(self, number: int, block: bytes, last: bool) -> None:
        """Begin a request with its headers, or end one with trailers."""
        try:
            found = self._decoder.decode(block, raw=True)
        except (HPACKError, UnicodeError, ValueError, IndexError) as error:
            raise Refused("headers cannot be read") from error
        stream = self._streams.get(number)
        if stream is None:
            if number <= self._latest:
                # It has been answered already, and these are its trailers.
                return
            self._latest = number
            stream = self._streams[number] = self._stream(found)
        if last:
            self._end(stream)
        incomplete = sum(not each.whole for each in self._streams.values())
        if len(self._streams) > MOST_OPEN or incomplete > MOST_INCOMPLETE:
            raise Refused("too many requests at a time")

    def _may_end(self) -> bool:
        """Return whether one more request may be whole: gRPC has a thread for each until it answers."""
        room = self._rules.room
        return self._owed < MOST_OWED_EACH and room.for_places.turn(self, room.owed < MOST_OWED)

    def _end(self, stream: _Stream) -> None:
        if not stream.whole:
            stream.whole = True
            self._owe(1)

    def _owe(self, count: int) -> None:
        self._owed += count
        self._rules.room.owed += count

    def _stream(self, found: object) -> _Stream:
        headers: dict[str, list[str]] = {}
        path = b""
        for name, value in found:  # type: ignore[attr-defined]
            if name == b":path":
                path = bytes(value)
            elif name == b"authorization":
                headers.setdefault("authorization", []).append(bytes(value).decode("latin-1"))
        known = self._rules.admits(headers)
        self.known = self.known or known
        return _Stream(self._now, large=known and path in _LARGE)

    def _message(self, stream: _Stream | None, last: bool) -> bool:
        """Let through what there is of a DATA frame."""
        if stream is not None and len(stream.prefix) == _PREFIX:
            return self._admit(stream)
        if self._left == 0:
            self._data = None
            if stream is not None and last:
                self._end(stream)
            return True
        count = min(len(self._in), self._left)
        if count == 0:
            return False
        if stream is None:
            # gRPC throws away what comes to a request that has been answered.
            self._pass(count)
        elif stream.left:
            count = min(count, stream.left)
            stream.left -= count
            self._pass(count)
        else:
            count = min(count, _PREFIX - len(stream.prefix))
            stream.prefix += self._in[:count]
            del self._in[:count]
        self._left -= count
        return True

    def _admit(self, stream: _Stream) -> bool:
        """Let a message begin, if there is room for it."""
        size = int.from_bytes(stream.prefix[1:])
        if stream.prefix[0]:
            raise Refused("a message is compressed")
        if size > self._rules.most_message:
            raise Refused("a message is too large")
        if stream.large and stream.messages:
            raise Refused("a request has two messages")
        if self._small + size <= ALLOWANCE:
            self._small += size
            stream.small += size
        elif not stream.large:
            raise Refused("too much has come without the token")
        elif self._rules.room.take(self, size):
            stream.reserved += size
        else:
            self.waits = True
            return False
        stream.messages += 1
        stream.left = size
        self._out += stream.prefix
        stream.prefix.clear()
        return True

    def _reset(self, number: int) -> bool:
        """End a request that its caller wants no more; True where gRPC is told when it has begun to answer.

        Until then it has a thread that waits for its turn, whoever takes the request back.
        """
        passed, self._reset_at = self._now - self._reset_at, self._now
        self._resets = max(0.0, self._resets - passed * _RESETS_A_SECOND) + 1
        if self._resets > _RESETS:
            raise Refused("too many requests are taken back")
        stream = self._streams.get(number)
        if stream is not None and stream.whole and not stream.begun:
            stream.unwanted = True
            return True
        self.ended(number)
        return False

    @property
    def owed(self) -> bool:
        """Whether there are whole requests that gRPC has not begun to answer."""
        return self._owed > 0

    def answered(self, number: int) -> None:
        """An answer has begun: what was kept of the request is gRPC's no more."""
        stream = self._streams.get(number)
        if stream is None or not stream.whole or stream.begun:
            return
        stream.begun = True
        self._owe(-1)
        self._free(stream)
        if stream.unwanted:
            self._out += _CANCELLED + number.to_bytes(4) + _CANCEL
            self.ended(number)

    def ended(self, number: int) -> None:
        """An answer is whole, or nobody waits for it."""
        stream = self._streams.pop(number, None)
        if stream is not None:
            self._free(stream)
            if stream.whole and not stream.begun:
                self._owe(-1)
            if self._data is not None and self._data[0] is stream:
                # What is left of its frame goes nowhere.
                self._out += stream.prefix
                self._data = None, self._data[1]

    def _free(self, stream: _Stream) -> None:
        self._small -= stream.small
        self._rules.room.give(stream.reserved)
        stream.small = stream.reserved = 0

    def _wait_no_more(self) -> None:
        self._rules.room.for_bytes.leave(self)
        self._rules.room.for_places.leave(self)

    def leave(self) -> None:
        """The caller has gone: give back what was taken, but for requests that gRPC has yet to answer."""
        self._wait_no_more()
        for number, each in [*self._streams.items()]:
            if not each.whole or each.begun:
                self.ended(number)

    def close(self) -> None:
        """Give back all that was taken."""
        for number in [*self._streams]:
            self.ended(number)


class Answers:
    """Looks at what a caller is sent, for answers that begin and end; ``left`` of a frame is to come."""

    def __init__(self, began: Callable[[int], None], ended: Callable[[int], None]) -> None:
        self.left = 0
        self._began = began
        self._ended = ended
        self._part = b""

    def see(self, data: memoryview) -> bool:
        """Look at what is sent next; return whether an answer begins or ends in it."""
        at, end, told = 0, len(data), False
        while at < end:
            if self.left:
                step = min(self.left, end - at)
                self.left -= step
                at += step
                continue
            step = min(_HEAD - len(self._part), end - at)
            head = self._part + bytes(data[at : at + step])
            at += step
            if len(head) < _HEAD:
                self._part = head
                break
            self._part = b""
            self.left = int.from_bytes(head[:3])
            told |= self._frame(head[3], head[4], int.from_bytes(head[5:]))
        return told

    def _frame(self, kind: int, flags: int, stream: int) -> bool:
        begins = kind == _HEADERS
        ends = kind == _RESET or (kind in (_HEADERS, _DATA) and bool(flags & _END_STREAM))
        if begins:
            self._began(stream)
        if ends:
            self._ended(stream)
        return begins or ends
