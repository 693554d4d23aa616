"""A site on this machine, a process of its own on loopback: for tests, and for trying things out."""

import sys
from collections.abc import Sequence
from pathlib import Path

from wjoin.sites.client import SiteClient
from wjoin.sites.failures import SiteError
from wjoin.sites.protocol import SiteAddress
from wjoin.testing.own_process import OwnProcess
from wjoin.testing.waiting import free_ports

_CONFIGURATION = """\
[site]
listen = "127.0.0.1:{port}"
data = "{folder}/kept"
{more}
{streams}
"""


class Site(OwnProcess):
    """A site that can be started, stopped or killed, and started again with what it keeps.

    ``folder`` is a new one for its data, ``streams`` the part of its configuration (TOML) that declares them,
    ``more`` further entries of the table ``[site]``. As a context manager it runs inside of the block.
    """

    def __init__(self, folder: Path, streams: str, more: str = "") -> None:
        super().__init__(folder / "site.log")
        folder.mkdir(parents=True, exist_ok=True)
        (port,) = free_ports(1)
        self.url = f"grpc://127.0.0.1:{port}"
        self.configuration = folder / "site.toml"
        self.configuration.write_text(
            _CONFIGURATION.format(port=port, folder=folder, more=more, streams=streams), encoding="utf-8"
        )

    @property
    def command(self) -> Sequence[str]:
        """How it is started."""
        return [sys.executable, "-m", "wjoin.cli", "site", "serve", "--config", str(self.configuration)]

    def taken_in(self, stream: str) -> int:
        """Return how many rows of a stream it has taken in. Raises SiteError."""
        with SiteClient(SiteAddress(self.url, patience=5.0)) as client:
            return client.next(stream, None)

    def wait_for(self, stream: str, rows: int) -> None:
        """Wait until it has taken so many rows in."""
        self.wait_until(lambda: self.taken_in(stream) >= rows, f"{rows:,} rows of {stream}")

    def answers(self) -> bool:
        """Return whether it answers."""
        try:
            with SiteClient(SiteAddress(self.url, patience=0.0, call_timeout=2.0)) as client:
                client.streams()
        except SiteError:
            return False
        return True
