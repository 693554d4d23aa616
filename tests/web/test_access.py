"""Addresses, the names of this machine, and the token."""

import pytest

from wjoin.grammar.errors import WJoinError
from wjoin.sites.loopback import is_own_name
from wjoin.web.page_access import Address, admits, is_address, parse_address, token_for

SECRET = "a token that is long enough"


@pytest.mark.parametrize(
    ("text", "address", "loopback"),
    [
        ("", Address("127.0.0.1", None), True),
        ("0", Address("127.0.0.1", 0), True),
        ("4950", Address("127.0.0.1", 4950), True),
        ("localhost:80", Address("localhost", 80), True),
        ("127.1.2.3:80", Address("127.1.2.3", 80), True),
        ("[::1]:80", Address("::1", 80), True),
        ("0.0.0.0:80", Address("0.0.0.0", 80), False),
        ("[::]:80", Address("::", 80), False),
        ("node-7.example.org:80", Address("node-7.example.org", 80), False),
        ("localhost.example.org:80", Address("localhost.example.org", 80), False),
    ],
)
def test_addresses(text, address, loopback):
    assert parse_address(text) == address
    assert address.loopback == loopback
    assert text == "" or is_address(text)


@pytest.mark.parametrize("text", ["65536", "host:", ":80", "a b:80", "http://x:80", "::1:80", "1:2:3"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(WJoinError) as caught:
        parse_address(text)
    assert caught.value.code == "WJ618"


@pytest.mark.parametrize("header", ["localhost:4950", "LOCALHOST", "127.0.0.1:1", "[::1]:4950", "127.0.0.1"])
def test_names_of_this_machine(header):
    assert is_own_name(header)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "evil.example",
        "evil.example:4950",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "0.0.0.0",
    ],
)
def test_names_that_were_led_here(header):
    assert not is_own_name(header)


def test_the_token_is_needed_beyond_this_machine_and_where_it_is_given(monkeypatch):
    monkeypatch.delenv("WJOIN_WEB_TOKEN", raising=False)
    assert token_for(Address(), None) is None
    first, second = (token_for(Address("0.0.0.0", 1), None) for _ in range(2))
    assert first and second and first != second and len(first) >= 32
    assert token_for(Address(), SECRET) == SECRET
    with pytest.raises(WJoinError) as caught:
        token_for(Address(), "short")
    assert caught.value.code == "WJ618"
    monkeypatch.setenv("WJOIN_WEB_TOKEN", SECRET)
    assert token_for(Address(), None) == token_for(Address("0.0.0.0", 1), None) == SECRET


@pytest.mark.parametrize(
    ("given", "authorization", "admitted"),
    [
        (SECRET, None, True),
        (None, f"Bearer {SECRET.replace(' ', '-')}", False),
        (None, None, False),
        ("", "", False),
        (SECRET[:-1], None, False),
        (SECRET + "x", None, False),
        ("ö", "Basic abc", False),
    ],
)
def test_who_is_admitted(given, authorization, admitted):
    assert admits(SECRET, given, authorization) == admitted
    assert admits(None, given, authorization)


def test_a_token_in_the_header():
    assert admits("x" * 16, None, "Bearer " + "x" * 16)
    assert admits("x" * 16, None, "bearer   " + "x" * 16)
    assert not admits("x" * 16, None, "Bearer " + "x" * 15)
