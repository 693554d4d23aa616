"""SPJ and SMJ measured: a real site in a process of its own, and a link with a rate and a latency before it.

The link is 100 times as fast as the paper's, so that a point takes seconds, and a tuple 1.6 times as large: a
partial tuple is a time and a key of 8 bytes each. Latency is the paper's, in each direction. Tuples come in
micro-batches of a second. What is told is the time for a second of the streams.
"""

import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import kit_path  # noqa: F401 (finds tests.kit)
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from semijoin_blocks import BlockJoin, Found, Remote, Semijoin, Simple
from semijoin_settings import Setting

from tests.kit.planned import plan_over, stream_of
from tests.kit.slow_link import SlowLink, port_of
from wjoin.parts.kernels.runs import Int64Array
from wjoin.planner.catalog import Estimate, Origin, SiteFacts
from wjoin.planner.cost.model import CostSettings
from wjoin.planner.cost.semijoin import Shipment
from wjoin.planner.plan.physical import Shipping
from wjoin.sites.client import SiteClient
from wjoin.sites.protocol import SiteAddress, StreamFacts
from wjoin.testing.site import Site

LINK_SCALE = 100
PARTIAL_BYTES = 16
"""A time and a key."""

OFFSET_BYTES = 4
"""What every value of a column of bytes takes besides."""

FILL_ROWS = 2000
"""Rows of a micro-batch while the windows fill, over no slow link."""

MOST_SECONDS = 3.5
"""What a point may take by the estimate, with one micro-batch at the least."""

MOST_BATCHES = 9

_STREAM = "first"
_ENTRIES = """
[streams.{name}]
source = "{source}"
format = "parquet"
time = "ts"
window_rows = {rows}
poll = "100 milliseconds"
"""
_WAYS = {"SPJ": Shipping.FULL, "SMJ": Shipping.PARTIAL}


@dataclass(frozen=True)
class Measured:
    """Seconds, and bytes on the wire (both directions), for a second of the streams; and what was found."""

    seconds: float
    size: float
    found: Found


@dataclass(frozen=True)
class Rig:
    """What a site says of stream 1, a client at its door, a slow link to it, and the keys of stream 2."""

    facts: StreamFacts
    near: SiteClient
    link: SlowLink
    second: Mapping[int, Int64Array]


def payload_width(setting: Setting) -> float:
    """Return the bytes that a full tuple has besides a partial one."""
    return PARTIAL_BYTES * (setting.full / setting.partial - 1)


def _payload(setting: Setting) -> int:
    """Return the length of the value that takes about as much."""
    return max(0, round(payload_width(setting)) - OFFSET_BYTES)


def link_rate(setting: Setting) -> float:
    """Return the bytes a second of the link of a setting."""
    return setting.link_rate * LINK_SCALE


@contextmanager
def rig(folder: Path, settings: list[Setting]) -> Iterator[Rig]:
    """Run a site with a column of keys, and of payloads, for each of the settings, until ``with`` ends."""
    rows = max(_fill(each) + round(MOST_BATCHES * each.rate) for each in settings)
    source = folder / "source"
    source.mkdir()
    second = _write(source / "rows.parquet", sorted({each.distinct for each in settings}), settings, rows)
    with Site(folder / "site", _ENTRIES.format(name=_STREAM, source=source, rows=rows)) as site:
        site.wait_for(_STREAM, rows)
        near = SiteClient(SiteAddress(site.url))
        with SlowLink(port_of(site.url)) as link:
            try:
                yield Rig(near.describe(_STREAM), near, link, second)
            finally:
                near.close()


def _fill(setting: Setting) -> int:
    """Return the tuples of a stream that fill its window twice, in whole micro-batches."""
    return -(-2 * setting.window // FILL_ROWS) * FILL_ROWS


def _write(path: Path, distinct: list[int], settings: list[Setting], rows: int) -> dict[int, Int64Array]:
    """Write stream 1; return the keys of stream 2 by how many distinct ones there are."""
    random = np.random.default_rng(1)
    numbers = np.arange(rows, dtype=np.int64)
    columns = {"ts": pa.array(numbers * 2000, pa.timestamp("us", "UTC"))}
    second: dict[int, Int64Array] = {}
    for count in distinct:
        columns[f"k{count}"] = pa.array(random.integers(0, count, rows))
        second[count] = random.integers(0, count, rows)
    for size in sorted({_payload(each) for each in settings}):
        values = random.integers(0, 256, (rows, size), np.uint8)
        columns[f"p{size}"] = pa.array([each.tobytes() for each in values], pa.binary())
    pq.write_table(pa.table(columns), path)
    return second


def measure(rig: Rig, setting: Setting, algorithm: str) -> Measured:
    """Run an algorithm over the link of a setting, its windows filled before over none."""
    shipped = Simple() if algorithm == "SPJ" else Semijoin()
    join = BlockJoin(setting.window, rig.second[setting.distinct], shipped)
    for _ in range(_fill(setting) // FILL_ROWS):
        join.batch(_remote(rig, rig.near, setting), FILL_ROWS)
    rig.link.change(bytes_per_second=link_rate(setting), latency=setting.latency)
    host, port = rig.link.address
    client = SiteClient(SiteAddress(f"grpc://{host}:{port}"))
    remote = _remote(rig, client, setting)
    # The connection is there before the clock runs.
    client.next(_STREAM, rig.facts.lineage)
    batches = _batches(rig, setting)
    passed, seconds = rig.link.passed, []
    for _ in range(batches):
        start = time.perf_counter()
        join.batch(remote, round(setting.rate))
        seconds.append(time.perf_counter() - start)
    size = rig.link.passed.since(passed).size
    client.close()
    # What the machine does besides makes single micro-batches longer.
    return Measured(statistics.median(seconds), size / batches, join.found)


def _remote(rig: Rig, client: SiteClient, setting: Setting) -> Remote:
    key, payload = f"k{setting.distinct}", f"p{_payload(setting)}"
    return Remote(client, _STREAM, rig.facts.lineage, "ts", key, payload)


def _batches(rig: Rig, setting: Setting) -> int:
    slowest = max(each.seconds for each in predicted(rig.facts, setting).values())
    return min(MOST_BATCHES, max(1, int(MOST_SECONDS / slowest)))


def predicted(facts: StreamFacts, setting: Setting) -> dict[str, Shipment]:
    """Return what the planner expects of a setting, which need not be one that the site has columns for."""
    known = {"rate": setting.rate, "distinct.k": float(setting.distinct)}
    local = stream_of({"k": "bigint", "payload": "binary"}, known)
    latency, bandwidth = (Estimate(each, Origin.GIVEN) for each in (2 * setting.latency, link_rate(setting)))
    widths = {
        "ts": facts.packed["ts"],
        "k": _between(facts, "k", setting.distinct),
        "payload": _between(facts, "p", payload_width(setting) - OFFSET_BYTES),
    }
    remote = replace(local, site=SiteFacts(widths, latency, bandwidth))
    microseconds = round(setting.window / setting.rate * 1e6)
    sql = f"SELECT A.payload, B.k FROM a A, b B WINDOW = {microseconds} MICROSECONDS WHERE A.k = B.k"
    (found,) = plan_over(sql, [remote, local], costs=CostSettings(interval=1.0, cores=1)).shipments
    by_way = {each.shipping: each for each in found.ways}
    return {name: by_way[way] for name, way in _WAYS.items()}


def _between(facts: StreamFacts, first: str, number: float) -> float:
    """Return the packed width of a column that is named by a number, from those that are there."""
    known = sorted((int(name[1:]), width) for name, width in facts.packed.items() if name.startswith(first))
    numbers, widths = zip(*known, strict=True)
    return float(np.interp(number, numbers, widths))
