"""A site on this machine, a process of its own on loopback: for tests, and for trying things out."""

import os
import subprocess
import sys
from pathlib import Path

from wjoin.sites.client import SiteClient
from wjoin.sites.failures import SiteError
from wjoin.sites.protocol import SiteAddress
from wjoin.testing.own_process import OwnProcess
from wjoin.testing.waiting import free_ports, until

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
        folder.mkdir(parents=True, exist_ok=True)
        (port,) = free_ports(1)
        self.url = f"grpc://127.0.0.1:{port}"
        self.configuration = folder / "site.toml"
        self._log = folder / "site.log"
        self.configuration.write_text(
            _CONFIGURATION.format(port=port, folder=folder, more=more, streams=streams), encoding="utf-8"
        )

    @property
    def said(self) -> str:
        """What it has printed."""
        return self._log.read_text(errors="replace")[-4000:] if self._log.exists() else ""

    def start(self) -> None:
        """Start it, and wait until it answers. Raises AssertionError where it ends instead."""
        command = [sys.executable, "-m", "wjoin.cli", "site", "serve", "--config", str(self.configuration)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=dict(os.environ)
            )
        until(self._answers, "the site answers", process=self._process, said=lambda: self.said)

    def taken_in(self, stream: str) -> int:
        """Return how many rows of a stream it has taken in. Raises SiteError."""
        client = SiteClient(SiteAddress(self.url, patience=5.0))
        try:
            return client.next(stream, None)
        finally:
            client.close()

    def wait_for(self, stream: str, rows: int) -> None:
        """Wait until it has taken so many rows in."""
        until(
            lambda: self.taken_in(stream) >= rows,
            f"{rows:,} rows of {stream}",
            process=self._process,
            said=lambda: self.said,
        )

    def _answers(self) -> bool:
        client = SiteClient(SiteAddress(self.url, patience=0.0, call_timeout=2.0))
        try:
            client.streams()
            return True
        except SiteError:
            return False
        finally:
            client.close()
