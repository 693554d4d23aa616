"""Messages of Arrow Flight: what protobuf may have around them, and failures that clients still take."""

import random

import pytest

from wjoin.sites.failures import SiteError
from wjoin.sites.wire import failure, read_action, read_ticket


def test_fields_that_nobody_knows_are_left_out() -> None:
    unknown = b"\x38\xff\xff\x01" + b"\x39" + bytes(8) + b"\x3d" + bytes(4) + b"\x3a\x03abc"
    message = unknown + b"\x0a\x04ping" + unknown + b"\x12\x02{}"
    assert read_action(memoryview(message)) == ("ping", b"{}")
    assert bytes(read_ticket(memoryview(b"\x0a\x03old\x0a\x03new"))) == b"new"
    assert read_action(memoryview(b"\x0a\x01\xff")) == ("\\xff", b"")


@pytest.mark.parametrize(
    "message",
    [
        b"\x0a",
        b"\x0a\x05abc",
        b"\xff" * 11,
        b"\x0b",
        b"\x09abc",
        b"\x0a\xff\xff\xff\xff\x0f",
        b"\x38\x01" * 20,
    ],
)
def test_what_is_no_message_is_broken(message: bytes) -> None:
    with pytest.raises(SiteError, match="cannot be read"):
        read_ticket(memoryview(message))


def test_mutations_are_read_or_broken() -> None:
    chance = random.Random(7)
    for _ in range(20_000):
        try:
            read_action(memoryview(chance.randbytes(chance.randrange(20))))
        except SiteError as error:
            assert error.kind == "broken"


@pytest.mark.parametrize("text", ["x", "\ud800\x1b\n", "é" * 5_000, '"\\' * 5_000])
def test_failures_have_an_end_that_clients_take(text: str) -> None:
    assert len(failure(SiteError("gone", text, help=text))) < 8_000
