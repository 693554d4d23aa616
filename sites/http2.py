"""HTTP/2 as a site speaks it: requests of callers, within bounds, and answers to them (RFC 9113).

A caller may have a small allowance of bytes under way. A larger message has to wait until there is room for
all of it; until then HTTP/2 itself has the caller wait.
"""

import struct
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from hpack import Decoder
from hpack.exceptions import HPACKError

from wjoin.sites.http2_requests import PREFIX, RefusedConnection, Stream
from wjoin.sites.wire import HEAD, Message

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

ALLOWANCE = 65_535
"""Bytes that a connection may have under way without room of its own: what HTTP/2 has of itself."""

MOST_OPEN = 64
"""Requests of one connection at a time; clients are told, and wait."""

_SMALL = ALLOWANCE // MOST_OPEN
"""Bytes of a message that needs no room of its own: the allowance is enough for as many as may be open."""

_STEPS = 64
"""Frames of one connection that are looked at until it is the others' turn."""

_HEAD = 9
_DATA, _HEADERS, _PRIORITY_OF, _RESET, _SETTINGS, _PROMISE, _PING, _LEAVES, _WINDOW, _CONTINUATION = range(10)
_ACK = _END_STREAM = 0x1
_END_HEADERS, _PADDED, _PRIORITY = 0x4, 0x8, 0x20
_INITIAL_WINDOW, _FRAME_SIZE = 4, 5
_SIZES = {_RESET: 4, _PING: 8, _WINDOW: 4}
_SETTING = struct.Struct(">HI")
_OWN_SETTINGS = _SETTING.pack(3, MOST_OPEN)
_MOST_WINDOW = (1 << 31) - 1
_MOST_HEADERS = 32_768
_MOST_FRAME = 16_384
_MOST_SENT = 1 << 20
_RESETS, _RESETS_A_SECOND = 200, 50


class MessageRoom:
    """Bytes for large messages of all connections; who waits for some has its turn in order."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.used = 0
        self.waiting: deque[tuple[Connection, Stream]] = deque()

    def give_out(self) -> "Iterator[Connection]":
        """Let those take bytes whose turn it is and for whom there are so many; yield their connections."""
        while self.waiting and self.used + self.waiting[0][1].size <= self.total:
            connection, stream = self.waiting.popleft()
            self.used += stream.size
            connection.grant(stream)
            yield connection

    def leave(self, stream: "Stream") -> None:
        """Take back what a request has, or have it wait no more."""
        self.used -= stream.reserved
        stream.reserved = 0
        if stream.waits:
            stream.waits = False
            self.waiting = deque(each for each in self.waiting if each[1] is not stream)


@dataclass(frozen=True)
class Rules:
    """What holds for all connections: who has the token, bytes of a message, and the room for large ones.

    ``admits`` gets the header authorization. ``refuses`` tells by the path why a request is not answered, as
    the end of its answer.
    """

    admits: Callable[[str], bool]
    refuses: Callable[[bytes, bool], bytes | None]
    most_message: int
    room: MessageRoom


class Connection:
    """One caller's connection: ``feed`` it what comes, ``step``, and send what is ``out``.

    ``ready`` are requests whose answers go on with what is given to ``answer``. ``more`` tells that there are
    frames to look at once others have had their turn; ``known`` that a request had the token; ``told`` how
    many bytes of ``out`` are no answers.
    """

    def __init__(self, rules: Rules) -> None:
        self.ready: deque[Stream] = deque()
        self.out: deque[memoryview] = deque()
        self.more = False
        self.known = False
        self.told = 0
        self._full = False
        self._rules = rules
        self._in = bytearray()
        self._greeted = False
        self._streams: dict[int, Stream] = {}
        self._sending: deque[Stream] = deque()
        self._latest = 0
        # Bytes that the caller may still send, that it has sent of messages without room of their own, and
        # that it may send of messages that it has taken back.
        self._credit = ALLOWANCE
        self._held = 0
        self._surplus = 0
        # What may be sent to the caller.
        self._window = self._initial_window = ALLOWANCE
        self._frame = _MOST_FRAME
        self._resets = self._reset_at = self._now = 0.0
        # Of a header block: its stream, bytes so far, whether it ends the stream, and when it began.
        self._block: tuple[int, bytearray, bool, float] | None = None
        self._decoder = Decoder(max_header_list_size=_MOST_HEADERS)

    def incomplete_since(self) -> float | None:
        """Return when the oldest request began that is not whole, None where all are."""
        if not self._greeted:
            return 0.0
        began = [each.began for each in self._streams.values() if not each.whole]
        return min(began if self._block is None else [*began, self._block[3]], default=None)

    def has_room(self) -> bool:
        """Return whether there is a request that has room for its message, and is not whole."""
        return any(each.reserved and not each.whole for each in self._streams.values())

    @property
    def answers(self) -> int:
        """How many answers are being sent."""
        return len(self._sending)

    def stuck(self, now: float, least: int, *, moves: bool) -> float:
        """Return for how many seconds an answer has left with less than ``least`` bytes a second.

        One that its caller would take is not stuck where the connection ``moves``: it waits for its turn.
        """
        longest = 0.0
        for stream in self._sending:
            if stream.gone or not stream.left:
                continue
            since, left = stream.slow or (now, stream.left)
            if left - stream.left >= least * (now - since) or (moves and stream.window > 0):
                since, left = now, stream.left
            stream.slow = since, left
            longest = max(longest, now - since)
        return longest

    def feed(self, data: bytes) -> None:
        """Take in what has come."""
        self._in += data

    def step(self, now: float) -> None:
        """Look at some frames. Raises Refused."""
        self._now = now
        at = 0
        if not self._greeted:
            if not self._in.startswith(PREFACE[: len(self._in)]):
                raise RefusedConnection("this is not HTTP/2")
            if len(self._in) < len(PREFACE):
                return
            self._greeted = True
            at = len(PREFACE)
            self._tell(_SETTINGS, 0, 0, _OWN_SETTINGS)
        self.more = False
        view = memoryview(self._in)
        for _ in range(_STEPS):
            if len(view) < at + _HEAD:
                break
            size, flags = int.from_bytes(view[at : at + 3]), view[at + 4]
            if size > _MOST_FRAME:
                raise RefusedConnection("a frame is too large")
            end = at + _HEAD + size
            if len(view) < end:
                break
            number = int.from_bytes(view[at + 5 : at + _HEAD]) & 0x7FFF_FFFF
            self._frame_of(view[at + 3], flags, number, view[at + _HEAD : end])
            at = end
        else:
            self.more = True
        view.release()
        del self._in[:at]

    def _frame_of(self, kind: int, flags: int, number: int, payload: memoryview) -> None:
        if self._block is not None and (kind != _CONTINUATION or number != self._block[0]):
            raise RefusedConnection("headers are interrupted")
        if len(payload) != _SIZES.get(kind, len(payload)):
            raise RefusedConnection("a frame has another size than its kind")
        if kind == _DATA:
            self._data(flags, number, payload)
        elif kind in (_HEADERS, _CONTINUATION):
            self._headers(kind, flags, number, payload)
        elif kind == _RESET:
            self._reset(number)
        elif kind == _SETTINGS:
            if not flags & _ACK:
                self._settings(payload)
        elif kind == _PING:
            if not flags & _ACK:
                self._tell(_PING, _ACK, 0, bytes(payload))
        elif kind == _WINDOW:
            self._widen(number, int.from_bytes(payload) & _MOST_WINDOW)
        elif kind == _PROMISE:
            raise RefusedConnection("a caller promises")

    def _data(self, flags: int, number: int, payload: memoryview) -> None:
        if flags & _PADDED:
            raise RefusedConnection("data are padded")
        self._credit -= len(payload)
        if self._credit < 0:
            raise RefusedConnection("more has come than there is room for")
        stream = self._streams.get(number)
        if stream is None or stream.whole or stream.end is not None:
            if number > self._latest:
                raise RefusedConnection("data come before their headers")
            # It has been answered, or taken back.
            self._give(len(payload))
            return
        stream.body += payload
        if not stream.reserved:
            self._held += len(payload)
            if self._held > ALLOWANCE:
                raise RefusedConnection("more has come than there is room for")
        self._check(stream)
        if flags & _END_STREAM:
            self._whole(stream)

    def _check(self, stream: Stream) -> None:
        """Look at the head of a message; where the message is large, ask for room. Raises Refused."""
        if len(stream.body) < PREFIX:
            return
        if not stream.size:
            stream.size = int.from_bytes(stream.body[1:PREFIX]) + PREFIX
            if stream.body[0]:
                raise RefusedConnection("a message is compressed")
            if stream.size > self._rules.most_message:
                raise RefusedConnection("a message is too large")
            if stream.size > _SMALL:
                stream.waits = True
                self._rules.room.waiting.append((self, stream))
        if len(stream.body) > stream.size:
            raise RefusedConnection("a request has two messages")

    def grant(self, stream: Stream) -> None:
        """Let the caller send all of a message: there is room for it."""
        stream.waits = False
        stream.reserved = stream.size
        self._held -= len(stream.body)
        self._give(stream.size)
        self._tell(_WINDOW, 0, stream.number, stream.size.to_bytes(4))

    def _give(self, count: int) -> None:
        """Let the caller send so many bytes more."""
        spared = min(count, self._surplus)
        self._surplus -= spared
        if count > spared:
            self._credit += count - spared
            self._tell(_WINDOW, 0, 0, (count - spared).to_bytes(4))

    def _whole(self, stream: Stream) -> None:
        if len(stream.body) != stream.size:
            raise RefusedConnection("a message is not whole")
        stream.whole = True
        self.ready.append(stream)

    def _headers(self, kind: int, flags: int, number: int, payload: memoryview) -> None:
        if kind == _HEADERS:
            if flags & _PADDED:
                raise RefusedConnection("headers are padded")
            self._block = number, bytearray(), bool(flags & _END_STREAM), self._now
            payload = payload[5:] if flags & _PRIORITY else payload
        if self._block is None:
            raise RefusedConnection("headers go on that have not begun")
        self._block[1].extend(payload)
        if len(self._block[1]) > _MOST_HEADERS:
            raise RefusedConnection("headers are too large")
        if flags & _END_HEADERS:
            _, block, last, _ = self._block
            self._block = None
            self._begin(number, bytes(block), last)

    def _begin(self, number: int, block: bytes, last: bool) -> None:
        """Begin a request with its headers, or end one with trailers."""
        try:
            found = self._decoder.decode(block, raw=True)
        except (HPACKError, UnicodeError, ValueError, IndexError) as error:
            raise RefusedConnection("headers cannot be read") from error
        stream = self._streams.get(number)
        if stream is None:
            if number <= self._latest:
                # It has been answered already, and these are its trailers.
                return
            if number % 2 == 0 or len(self._streams) >= MOST_OPEN:
                raise RefusedConnection("too many requests at a time")
            stream = self._new(number, found)
        if last and stream.end is None and not stream.whole:
            self._whole(stream)

    def _new(self, number: int, found: Iterable[Any]) -> Stream:
        path, authorization = b"", b""
        for name, value in found:
            if name == b":path":
                path = bytes(value)
            elif name == b"authorization":
                authorization = authorization or bytes(value)
        known = self._rules.admits(authorization.decode("latin-1"))
        self.known = self.known or known
        self._latest = number
        stream = self._streams[number] = Stream(number, path, self._now, self._initial_window)
        stream.end = self._rules.refuses(path, known)
        if stream.end is not None:
            # Nothing of it is read.
            self._send(stream)
        return stream

    def _reset(self, number: int) -> None:
        """End a request that its caller wants no more."""
        passed, self._reset_at = self._now - self._reset_at, self._now
        self._resets = max(0.0, self._resets - passed * _RESETS_A_SECOND) + 1
        if self._resets > _RESETS:
            raise RefusedConnection("too many requests are taken back")
        stream = self._streams.get(number)
        if stream is not None:
            self._drop(stream)

    def _settings(self, payload: memoryview) -> None:
        if len(payload) % _SETTING.size:
            raise RefusedConnection("settings cannot be read")
        for name, value in _SETTING.iter_unpack(payload):
            if name == _INITIAL_WINDOW:
                if value > _MOST_WINDOW:
                    raise RefusedConnection("a window is too large")
                for each in self._streams.values():
                    each.window += value - self._initial_window
                self._initial_window = value
            elif name == _FRAME_SIZE:
                self._frame = max(_MOST_FRAME, min(value, _MOST_SENT))
        self._tell(_SETTINGS, _ACK, 0, b"")

    def _widen(self, number: int, count: int) -> None:
        """Remember that a caller takes so many bytes more, of one answer or of all."""
        if number == 0:
            self._window += count
            window = self._window
        else:
            stream = self._streams.get(number)
            if stream is None:
                return
            stream.window += count
            window = stream.window
        if count == 0 or window > _MOST_WINDOW:
            raise RefusedConnection("a window is wrong")

    def taken(self, stream: Stream) -> None:
        """A request is read: its bytes are nobody's any more, so its caller may send others."""
        if stream.taken:
            return
        stream.taken = True
        if not stream.reserved:
            self._held -= len(stream.body)
            self._give(len(stream.body))
        stream.body = bytearray()
        self._rules.room.leave(stream)

    def answer(self, stream: Stream, message: Message, end: bytes | None) -> None:
        """Send the next message of an answer, its end, or both."""
        stream.pending, stream.end = message, end
        stream.left = sum(map(len, message))
        stream.slow = None
        self._send(stream)

    def _send(self, stream: Stream) -> None:
        if stream.left or stream.end is not None:
            self._sending.append(stream)
        else:
            self.ready.append(stream)

    def fill(self) -> None:
        """Put into ``out``, where there is nothing of answers, some of each answer, in turns."""
        if not self.out:
            self.told, self._full = 0, False
        if self._full:
            return
        sent = 0
        for _ in range(len(self._sending)):
            if sent >= _MOST_SENT:
                return
            stream = self._sending.popleft()
            if stream.gone:
                continue
            if not stream.headed and stream.left:
                stream.headed = True
                self._put(_HEADERS, _END_HEADERS, stream.number, len(HEAD), memoryview(HEAD))
            while (count := min(stream.left, stream.window, self._window, self._frame)) > 0:
                self._put_data(stream, count)
                sent += count
                if sent >= _MOST_SENT:
                    break
            if stream.left:
                self._sending.append(stream)
                continue
            if stream.end is None:
                self.ready.append(stream)
            else:
                self._end(stream, stream.end)

    def _put_data(self, stream: Stream, count: int) -> None:
        stream.window -= count
        stream.left -= count
        self._window -= count
        pieces = []
        at = 0
        while count:
            piece = stream.pending[at]
            if len(piece) > count:
                stream.pending[at] = piece[count:]
                piece = piece[:count]
            else:
                at += 1
            count -= len(piece)
            pieces.append(piece)
        del stream.pending[:at]
        self._put(_DATA, 0, stream.number, sum(map(len, pieces)), *pieces)

    def _end(self, stream: Stream, end: bytes) -> None:
        block = end if stream.headed else HEAD + end
        self._put(_HEADERS, _END_HEADERS | _END_STREAM, stream.number, len(block), memoryview(block))
        if not stream.whole:
            # The caller need not send the rest.
            self._put(_RESET, 0, stream.number, 4, memoryview(bytes(4)))
        self._drop(stream)

    def _put(self, kind: int, flags: int, number: int, size: int, *payload: memoryview) -> None:
        self._full = True
        self.out.append(memoryview(size.to_bytes(3) + bytes((kind, flags)) + number.to_bytes(4)))
        self.out.extend(payload)

    def _tell(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        frame = len(payload).to_bytes(3) + bytes((kind, flags)) + number.to_bytes(4) + payload
        self.told += len(frame)
        self.out.append(memoryview(frame))

    def _drop(self, stream: Stream) -> None:
        """End a request, answered or not; what somebody works on is kept until then."""
        del self._streams[stream.number]
        stream.gone = True
        stream.pending = []
        if stream in self.ready:
            self.ready.remove(stream)
        if not stream.working:
            self.finish(stream)

    def finish(self, stream: Stream) -> None:
        """Give back what a request has that is gone."""
        if stream.reserved:
            self._surplus += stream.reserved - len(stream.body)
        self.taken(stream)
        work, stream.work = stream.work, None
        if isinstance(work, Generator):
            work.close()

    def close(self) -> None:
        """End all requests."""
        for each in [*self._streams.values()]:
            self._drop(each)
