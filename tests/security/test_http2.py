"""A site's HTTP/2: requests in any cut and any mutation, within bounds, with all room given back."""

import random

import pytest

from tests.security.attacks import begin, frame, message, mutated, part
from tests.security.test_mutations import raw
from wjoin.sites.http2 import ALLOWANCE, MOST_OPEN, PREFACE, Connection, MessageRoom, Rules
from wjoin.sites.http2_requests import RefusedConnection
from wjoin.sites.wire import DO_GET, END

LARGE = 100_000
REFUSED = b"refused"


def rules(total: int = 4 * LARGE, token: str | None = None) -> Rules:
    def admits(authorization: str) -> bool:
        return token is None or authorization == f"Bearer {token}"

    def refuses(path: bytes, known: bool) -> bytes | None:
        return None if known and path == DO_GET else REFUSED

    return Rules(admits, refuses, 2 * LARGE, MessageRoom(total))


def large(stream: int, *, token: str | None = None, size: int = LARGE, sent: int = LARGE) -> bytes:
    """Return a large request; whole where as much is sent as it has."""
    body = message(size) + bytes(sent)
    parts = b"".join(part(stream, body[low : low + 16_000]) for low in range(0, len(body), 16_000))
    end = frame(0, 1, stream, b"") if sent == size else b""
    return begin(stream, token=token) + parts + end


def step(connection: Connection, now: float = 0.0) -> None:
    """Look at all that has come, in as many turns as it takes."""
    connection.step(now)
    while connection.more:
        connection.step(now)


def give_out(some: Rules) -> int:
    """Give out room; return to how many."""
    return len([*some.room.give_out()])


def fed(connection: Connection, some: Rules, data: bytes) -> None:
    """Feed as a caller sends that waits for its windows."""
    for low in range(0, len(data), 16_000):
        connection.feed(data[low : low + 16_000])
        step(connection)
        give_out(some)


def sent_by(connection: Connection) -> dict[int, list[tuple[int, bytes]]]:
    """Return the frames that are out by their kind, each with its stream."""
    data = b""
    connection.fill()
    while connection.out:
        data += b"".join(connection.out)
        connection.out.clear()
        connection.fill()
    found: dict[int, list[tuple[int, bytes]]] = {}
    while data:
        size, kind, stream = int.from_bytes(data[:3]), data[3], int.from_bytes(data[5:9])
        found.setdefault(kind, []).append((stream, data[9 : 9 + size]))
        data = data[9 + size :]
    return found


def test_requests_are_read_in_any_cut() -> None:
    chance = random.Random(1)
    two = raw("x")[1], [raw("x")[0][len(begin()) + 14 :], b"\x0a\x03abc"]
    other = large(1, size=60_000, sent=60_000) + large(3, size=5, sent=5), [bytes(60_000), bytes(5)]
    for good, bodies in (two, other):
        data = PREFACE + good
        for most in (1, 9, 1000, 1 << 20):
            some, at = rules(), 0
            connection = Connection(some)
            while at < len(data):
                count = chance.randrange(1, most + 1)
                connection.feed(data[at : at + count])
                step(connection)
                give_out(some)
                at += count
            assert [bytes(each.message) for each in connection.ready] == bodies


def test_mutated_bytes_are_refused_or_read_and_the_room_is_given_back() -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    some = rules()
    for _ in range(300):
        good = b"".join(chance.choice((*raw("x"), large(5), large(7, sent=LARGE // 2))) for _ in range(2))
        data = PREFACE + mutated(chance, good)
        connection = Connection(some)
        works = []
        try:
            for low in range(0, len(data), 5_000):
                connection.feed(data[low : low + 5_000])
                step(connection, low)
                give_out(some)
                while connection.ready and chance.random() < 0.7:
                    stream = connection.ready.popleft()
                    stream.working = True
                    works.append(stream)
                if works and chance.random() < 0.7:
                    stream = works.pop()
                    stream.working = False
                    if stream.gone:
                        connection.finish(stream)
                    else:
                        connection.taken(stream)
                        connection.answer(stream, [memoryview(bytes(chance.randrange(1, LARGE)))], END)
                sent_by(connection)
        except RefusedConnection:
            pass
        connection.close()
        for stream in works:
            stream.working = False
            connection.finish(stream)
        assert some.room.used == 0 and not some.room.waiting


def test_small_frames_take_turns_with_those_of_others() -> None:
    connection = Connection(rules())
    connection.feed(PREFACE + frame(6, 0, 0, bytes(8)) * 1000)
    connection.step(0.0)
    assert connection.more and 0 < connection.told < 2_000
    step(connection)
    assert len(sent_by(connection)[6]) == 1000


def test_a_large_request_waits_for_room_and_nobody_overtakes() -> None:
    some = rules(2 * LARGE + 10)
    callers = [Connection(some) for _ in range(4)]
    for each in callers:
        each.feed(PREFACE + large(1, sent=50_000))
        step(each)
    assert give_out(some) == 2
    assert [caller for caller, _ in some.room.waiting] == callers[2:]
    callers[3].close()
    callers[0].close()
    assert [*some.room.give_out()] == [callers[2]]
    assert some.room.used == 2 * (LARGE + 5)
    # Only who has room is told to send more.
    assert [8 in sent_by(each) for each in callers[1:3]] == [True, True]


def test_more_than_there_is_room_for_is_refused() -> None:
    for sent in (
        large(1),
        b"".join(begin(at) + part(at, message(900) + bytes(800)) for at in range(1, 200, 2)),
    ):
        connection = Connection(rules())
        connection.feed(PREFACE + sent)
        with pytest.raises(RefusedConnection):
            step(connection)
    assert MOST_OPEN * 900 < ALLOWANCE


def test_without_the_token_nothing_is_read() -> None:
    some = rules(token="secret")
    stranger = Connection(some)
    fed(stranger, some, PREFACE + large(1, token="guess"))
    assert some.room.used == 0 and not some.room.waiting and not stranger.known
    found = sent_by(stranger)
    assert [payload.endswith(REFUSED) for _, payload in found[1]] == [True]
    assert not stranger.ready
    known = Connection(some)
    fed(known, some, PREFACE + large(1, token="secret"))
    assert known.known and some.room.used == LARGE + 5
    assert [bytes(each.message) for each in known.ready] == [bytes(LARGE)]


def test_a_request_taken_back_keeps_its_room_while_somebody_works_on_it() -> None:
    some = rules()
    connection = Connection(some)
    fed(connection, some, PREFACE + large(1))
    stream = connection.ready.popleft()
    stream.working = True
    fed(connection, some, frame(3, 0, 1, bytes(4)))
    assert stream.gone and some.room.used == LARGE + 5
    stream.working = False
    connection.finish(stream)
    assert some.room.used == 0


def test_answers_keep_to_the_windows_and_frames_of_the_caller() -> None:
    some = rules()
    connection = Connection(some)
    fed(connection, some, PREFACE + large(1, size=5, sent=5) + large(3, size=5, sent=5))
    for each in [*connection.ready]:
        connection.taken(each)
        connection.answer(each, [memoryview(b"a" * 3), memoryview(bytes(LARGE))], END)
    connection.ready.clear()
    sent = b"".join(payload for _, payload in sent_by(connection)[0])
    assert len(sent) == ALLOWANCE
    assert 0 not in sent_by(connection)
    connection.feed(frame(8, 0, 0, (3 * LARGE).to_bytes(4)))
    step(connection)
    found = sent_by(connection)
    assert max(len(payload) for _, payload in found[0]) <= 16_384
    assert sum(len(payload) for _, payload in found[0]) == ALLOWANCE
    connection.feed(frame(4, 0, 0, b"\0\4" + (4 * LARGE).to_bytes(4) + b"\0\5" + LARGE.to_bytes(4)))
    step(connection)
    found = sent_by(connection)
    assert max(len(payload) for _, payload in found[0]) > 16_384
    assert [stream for stream, payload in found[1] if payload == END] == [1, 3]
    assert not connection.answers
