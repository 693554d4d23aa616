"""What the front of a site lets through: bytes in any cut and any mutation, with the room given back."""

import random

import pytest

from tests.security.attacks import begin, frame, message, mutated, part
from tests.security.test_mutations import raw
from wjoin.sites.http2 import ALLOWANCE, PREFACE, Answers, Refused, Requests, Room, Rules

LARGE = 100_000


def rules(total: int = 4 * LARGE, token: str | None = None) -> Rules:
    def admits(headers: dict[str, list[str]]) -> bool:
        return token is None or headers.get("authorization") == [f"Bearer {token}"]

    return Rules(admits, 2 * LARGE, Room(total))


def large(stream: int, *, token: str | None = None, size: int = LARGE, sent: int = LARGE) -> bytes:
    """Return a large request; whole where as much is sent as it has."""
    body = message(size) + bytes(sent)
    parts = b"".join(part(stream, body[low : low + 16_000]) for low in range(0, len(body), 16_000))
    end = frame(0, 1, stream, b"") if sent == size else b""
    return begin(stream, token=token) + parts + end


def let_through(requests: Requests, now: float = 0.0) -> bytes:
    """Return what may go on, in as many turns as it takes."""
    found = requests.through(now)
    while requests.more:
        found += requests.through(now)
    return bytes(found)


def test_what_is_let_through_is_what_has_come_in_any_cut() -> None:
    chance = random.Random(1)
    for good in (*raw("x"), large(1) + large(3, size=5, sent=5)):
        data = PREFACE + good
        for most in (1, 9, 1000, 1 << 20):
            some, found, at = rules(), bytearray(), 0
            requests = Requests(some)
            while at < len(data):
                step = chance.randrange(1, most + 1)
                requests.feed(data[at : at + step])
                found += let_through(requests)
                at += step
            assert found == data


def test_mutated_bytes_are_refused_or_let_through_and_the_room_is_given_back() -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    some = rules()
    for _ in range(300):
        good = b"".join(chance.choice((*raw("x"), large(5), large(7, sent=LARGE // 2))) for _ in range(2))
        data = PREFACE + mutated(chance, good)
        requests = Requests(some)
        answers = Answers(requests.answered, requests.ended)
        try:
            for low in range(0, len(data), 5_000):
                requests.feed(data[low : low + 5_000])
                let_through(requests, low)
                answers.see(memoryview(chance.choice((b"", mutated(chance, frame(1, 4, 1, b"")), b"\0" * 9))))
        except Refused:
            pass
        requests.leave()
        requests.close()
        assert (some.room.used, some.room.owed) == (0, 0)
        assert not some.room.for_bytes.waiting and not some.room.for_places.waiting


def test_small_pieces_take_turns_with_those_of_others() -> None:
    requests = Requests(rules())
    sent = PREFACE + frame(8, 0, 0, b"\0\0\0\1") * 1000
    requests.feed(sent)
    first = requests.through(0.0)
    assert requests.more and 0 < len(first) < 2_000
    assert first + let_through(requests) == sent


def test_a_large_request_waits_for_room_and_nobody_overtakes() -> None:
    some = rules(2 * LARGE)
    callers = [Requests(some) for _ in range(4)]
    for each in callers:
        each.feed(PREFACE + large(1))
        let_through(each)
    assert [each.waits for each in callers] == [False, False, True, True]
    callers[3].close()
    callers[0].answered(1)
    let_through(callers[2])
    assert not callers[2].waits
    assert some.room.used == 2 * LARGE


def test_without_the_token_there_is_no_room() -> None:
    some = rules(token="secret")
    stranger = Requests(some)
    stranger.feed(PREFACE + large(1, token="guess"))
    with pytest.raises(Refused, match="without the token"):
        let_through(stranger)
    assert some.room.used == 0
    known = Requests(some)
    known.feed(PREFACE + large(1, token="secret", sent=ALLOWANCE))
    let_through(known)
    assert known.known and some.room.used == LARGE


def test_a_request_taken_back_keeps_its_place_until_grpc_has_begun_with_it() -> None:
    some = rules()
    requests = Requests(some)
    requests.feed(PREFACE + large(1) + frame(3, 0, 1, bytes(4)))
    assert frame(3, 0, 1, b"\0\0\0\x08") not in let_through(requests)
    assert (some.room.owed, some.room.used) == (1, LARGE)
    requests.answered(1)
    assert requests.through(0.0) == frame(3, 0, 1, b"\0\0\0\x08")
    assert (some.room.owed, some.room.used) == (0, 0)
