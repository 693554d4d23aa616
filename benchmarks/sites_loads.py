"""Packets of two routers, as in example 1 of Semijoin streams: one stream at a site, the other one at hand.

A packet has 1,500 bytes, of which its time (8) and its destination (4) are the partial tuple. One of a
hundred of the site's packets has the destination of one packet of the other router, close in time; all
others have destinations of their own.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from streams import START, Load

PACKET = 1500
PARTIAL = 12
MATCHED = 0.01
"""The share of the site's packets that are in a result."""

PACKETS_PER_SECOND = 4000

NAMES = ("a", "b")
"""The stream at the site, and the one at hand."""

COLUMNS = {"a": "ts TIMESTAMP, dest INT, payload BINARY", "b": "ts TIMESTAMP, dest INT"}

_MIX = 2_654_435_761
_ADDRESSES = 1 << 31


@dataclass(frozen=True)
class PacketLoad(Load):
    """Packets in micro-batches of ``batch_rows`` of all streams together; the window in seconds.

    With one stream that at the site is meant.
    """

    streams: int = 2

    @property
    def packets(self) -> int:
        """Packets of each stream in a micro-batch."""
        return self.batch_rows // self.streams

    @property
    def alone(self) -> "PacketLoad":
        """The stream at the site alone."""
        return replace(self, batch_rows=self.packets, streams=1)

    @property
    def practice(self) -> "PacketLoad":
        """The micro-batches that a system repeats before it is measured."""
        return replace(self, batches=3)

    @property
    def title(self) -> str:
        """What is joined, in a few words."""
        rows = f"{self.packets:,} packets of each stream in a micro-batch"
        return f"{PACKET:,}-byte packets, {100 * MATCHED:g} % match, {rows}, window {self.window} s"


def write_packets(load: PacketLoad, folder: Path) -> None:
    """Write both streams below ``folder``: a file for each stream and micro-batch, in their order."""
    random = np.random.default_rng(2006)
    for name in NAMES:
        (folder / name).mkdir(parents=True)
    for batch in range(load.batches):
        numbers = batch * load.packets + np.arange(load.packets)
        times = START + numbers * (1_000_000 // PACKETS_PER_SECOND)
        alike = random.random(load.packets) < MATCHED
        payloads = random.integers(0, 256, (load.packets, PACKET - PARTIAL), np.uint8)
        destinations = {"a": np.where(alike, 2 * numbers, 2 * numbers + 1), "b": 2 * numbers}
        for name in NAMES:
            # Multiplied by an odd number, different ones stay different, and look as addresses do.
            addresses = destinations[name] * _MIX % _ADDRESSES
            columns = {
                "ts": pa.array(times, pa.timestamp("us", "UTC")),
                "dest": pa.array(addresses.astype(np.int32)),
            }
            if name == "a":
                columns["payload"] = pa.array([each.tobytes() for each in payloads], pa.binary())
            # What is random does not compress; trying to would take time.
            table, file = pa.table(columns), folder / name / f".{batch:04}"
            pq.write_table(table, file, compression="none", use_dictionary=False)
            file.rename(folder / name / f"{batch:04}.parquet")
