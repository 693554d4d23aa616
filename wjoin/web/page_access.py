"""Who may see the live page: where it is served, which names of this machine are true, and the token."""

import hmac
import os
import re
import secrets
from dataclasses import dataclass

from wjoin.grammar.errors import WJoinError
from wjoin.sites.loopback import is_loopback
from wjoin.spark.doors import LOOPBACK, TOKEN

LEAST_TOKEN = 16
"""Characters that a token has at the least."""

_ADDRESS = re.compile(r"(?:(?P<host>\[[0-9A-Fa-f:.]+\]|[\w.-]+):)?(?P<port>\d{1,5})")
_BEARER = re.compile(r"Bearer +(\S+)", re.IGNORECASE)


@dataclass(frozen=True)
class Address:
    """Where to serve; no ``port``: the first free one of some, 0: any free one."""

    host: str = LOOPBACK
    port: int | None = None

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)


def is_address(text: str) -> bool:
    """Return whether a text has the form of a port, or of a host and a port."""
    return _ADDRESS.fullmatch(text) is not None


def parse_address(text: str) -> Address:
    """Read ``PORT`` or ``HOST:PORT`` (``[::1]:4950`` for IPv6); an empty text is the default.

    Raises WJoinError WJ618.

    >>> parse_address("0.0.0.0:8080")
    Address(host='0.0.0.0', port=8080)
    """
    if not text:
        return Address()
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found["port"]) > 65_535:
        raise WJoinError("WJ618", f"{text} is not a port or HOST:PORT")
    return Address((found["host"] or LOOPBACK).strip("[]"), int(found["port"]))


def token_for(address: Address, token: str | None) -> str | None:
    """Return the token that requests must have: the given one, that of the environment, or a new one.

    None where nobody has given one and only this machine can ask. Raises WJoinError WJ618 for a short one.
    """
    token = token or os.environ.get(TOKEN) or None
    if token is not None and len(token) < LEAST_TOKEN:
        raise WJoinError("WJ618", f"the token has less than {LEAST_TOKEN} characters")
    return secrets.token_urlsafe(24) if token is None and not address.loopback else token


def admits(token: str | None, given: str | None, authorization: str | None) -> bool:
    """Return whether a request may be answered, by the token of its URL or of its Authorization header."""
    if token is None:
        return True
    bearer = _BEARER.fullmatch((authorization or "").strip())
    found = (given or "", bearer[1] if bearer is not None else "")
    # Both are compared in any case, each in a time that tells nothing.
    return sum(hmac.compare_digest(each.encode(), token.encode()) for each in found) > 0
