"""Starts sites as `python -m wjoin.cli site serve`, kills them, and makes rows for them."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.packages import ROOT
from wjoin.sites.client import SiteClient
from wjoin.sites.protocol import SiteAddress

BEGIN = 1_700_000_000_000_000
"""The event time of row 0, in microseconds; each row is a millisecond after the one before."""

SCHEMA = "id BIGINT, ts TIMESTAMP, name STRING, price DOUBLE"
_WAIT = 30.0


@dataclass
class Process:
    """A site that runs; ``url`` is where."""

    process: subprocess.Popen[bytes]
    log_file: Path
    url: str = ""
    clients: list[SiteClient] = field(default_factory=list)

    def log(self) -> str:
        return self.log_file.read_text("utf-8")

    def client(self, **options: Any) -> SiteClient:
        client = SiteClient(SiteAddress(self.url, **{"patience": 20.0, "call_timeout": 10.0, **options}))
        self.clients.append(client)
        return client

    def kill(self) -> None:
        """Kill it, as the system does when memory is short."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def end(self) -> None:
        for client in self.clients:
            client.close()
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(_WAIT)
        for pipe in (self.process.stdin,):
            if pipe is not None:
                pipe.close()


@dataclass(frozen=True)
class Sites:
    """Starts sites in a folder."""

    folder: Path
    started: list[Process]

    def start(self, config: str, *, port: int = 0, head: str = "", stdin: bool = False) -> Process:
        """Start a site with tables of streams, and wait until it listens."""
        text = config if "[site]" in config else f'[site]\nlisten = "127.0.0.1:{port}"\n{head}\n{config}'
        file = self.folder / "site.toml"
        file.write_text(text, "utf-8")
        log = self.folder / f"log{len(self.started)}"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "wjoin.cli", "site", "serve", "--config", file],
                cwd=ROOT,
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stderr=out,
                stdout=out,
            )
        site = Process(process, log)
        self.started.append(site)
        wait_for(lambda: "Site: " in site.log() or process.poll() is not None)
        found = re.search(r"Site: (\S+)", site.log())
        assert found is not None, site.log()
        site.url = found[1]
        return site


def wait_for(what: Callable[[], Any], seconds: float = _WAIT) -> Any:
    """Return what a call gives as soon as it is true."""
    until = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < until, "it has taken too long"
        time.sleep(0.02)
    return found


def wait_for_rows(client: SiteClient, stream: str, count: int) -> str:
    """Wait until a stream has so many rows, and return its lineage."""
    lineage = client.describe(stream).lineage
    wait_for(lambda: client.next(stream, lineage) >= count)
    assert client.next(stream, lineage) == count
    return lineage


def rows_of(start: int, stop: int) -> pa.Table:
    """Return rows that their numbers tell."""
    numbers = np.arange(start, stop)
    return pa.table(
        {
            "id": pa.array(numbers * 7919 % 1000),
            "ts": pa.array(BEGIN + numbers * 1000, pa.timestamp("us", tz="UTC")),
            "name": pa.array([f"row {each}" for each in numbers], pa.string()),
            "price": pa.array(numbers / 8),
        }
    )


def put(table: pa.Table, file: Path) -> None:
    """Write a Parquet file that appears by a rename."""
    hidden = file.with_name(f".{file.name}")
    pq.write_table(table, hidden, row_group_size=1000)
    hidden.rename(file)


def stream_of(folder: Path, more: str = "", *, window: str = 'window = "10 days"') -> str:
    """Return the table of a stream of Parquet files."""
    folder.mkdir(exist_ok=True)
    head = f'[streams.a]\nsource = "{folder}"\ntime = "ts"\nkey = ["id"]\npoll = "50 milliseconds"'
    return f"{head}\n{window}\n{more}"
