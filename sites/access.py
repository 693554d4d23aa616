"""Who is let in: where a site listens, and its token."""

import hmac
import re
from dataclasses import dataclass

from wjoin.sites.loopback import is_loopback

_LISTEN = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[\w.-]+):(?P<port>\d{1,5})")


@dataclass(frozen=True)
class Listen:
    """An address to listen at; port 0 is any free one."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_listen(text: str) -> Listen | None:
    """Return the address of HOST:PORT, None for what is none.

    >>> parse_listen("[::1]:7777")
    Listen(host='::1', port=7777)
    """
    found = _LISTEN.fullmatch(text)
    if found is None or int(found["port"]) > 65_535:
        return None
    return Listen(found["host"].strip("[]"), int(found["port"]))


def admits(token: str | None, authorization: str) -> bool:
    """Return whether a call's header has the token, found out in a time that tells nothing of it."""
    return token is None or hmac.compare_digest(authorization.encode(), f"Bearer {token}".encode())
