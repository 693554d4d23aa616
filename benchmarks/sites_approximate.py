"""Approximate joins of two streams at four sites: bytes at the sockets, and the results that are missed.

Each site has a share of both streams. A part of a site's keys is its own, the others are of all sites (the
geographic skew of Kriakov, Delis and Kollios, 2007); of both, some are more frequent: the key of rank k as
k**-skew. SIMPLE brings all rows; APPROXIMATE(error = …) those that probably match, as a query does with each
micro-batch (executor/sites/likely.py). No Spark is needed: rows, counts and filters are the same without it.

    python benchmarks/sites_approximate.py
    python benchmarks/sites_approximate.py --skew 0.4 1.0 --error 0.05 0.1 --local 0.8
    python benchmarks/sites_approximate.py --rate 900 --latency 20 100 --rows 500 --domain 13107

With ``--rate`` the links are limited: a proxy before each site brings so many kbit in a second in each
direction, with a latency; it is told how many rows a second of both streams each way brings then.
"""

import argparse
import contextlib
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import kit_path  # noqa: F401 (finds tests.kit)
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tables import aligned

from tests.kit.slow_link import SlowLink, port_of
from wjoin.executor.sites.fetching import client_of
from wjoin.executor.sites.likely import Chooser
from wjoin.executor.sites.likely_offsets import Likely, LikelyRows, LikelySide, Reached
from wjoin.executor.sites.missed import pairs_by_key
from wjoin.sites.protocol import SiteAddress
from wjoin.sites.value_filter import ValueFilter
from wjoin.testing.site import Site

SITES = 4
NAMES = ("r", "s")
START = 1_714_557_600_000_000
SECOND = 1_000_000
BITS, SAMPLE = 24, 32
CEILING = 1 << 62
COLUMNS = ["k", "ts", "payload"]
_MIX = 2_654_435_761

_STREAM = """
[streams.{name}]
source = "{folder}"
time = "ts"
key = ["k"]
window = "1 hour"
poll = "20 ms"
"""

Rows = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Load:
    """``rows`` of each stream at each site in each of ``seconds``; keys from ``domain`` for each site."""

    skew: float
    local: float
    error: float
    rows: int
    seconds: int
    window: int
    payload: int
    domain: int
    rate: float | None = None
    latency: float = 0.0

    @property
    def all_rows(self) -> int:
        """The rows of both streams at all sites."""
        return 2 * SITES * self.rows * self.seconds

    def batch(self, site: int, stream: int, second: int) -> pa.Table:
        """Return a second of rows of a stream at a site."""
        random = np.random.default_rng([site, stream, second])
        weights = np.cumsum(np.arange(1, self.domain + 1) ** -self.skew)
        ranks = np.searchsorted(weights / weights[-1], random.random(self.rows))
        home = np.where(random.random(self.rows) < self.local, site, random.integers(0, SITES, self.rows))
        times = START + second * SECOND + np.sort(random.integers(0, SECOND, self.rows))
        return pa.table(
            {
                "k": pa.array((ranks * SITES + home) * _MIX % (1 << 40)),
                "ts": pa.array(times, pa.timestamp("us", "UTC")),
                "payload": pa.array([random.bytes(self.payload) for _ in range(self.rows)], pa.binary()),
            }
        )


@dataclass(frozen=True)
class Measured:
    """What a run has cost and missed; ``told``: its error as estimated, and the interval.

    ``least``: the share of the rows without which no choice misses as few results as were asked for.
    """

    load: Load
    simple: int
    likely: int
    rows: float
    error: float
    told: tuple[float, float, float]
    least: float
    simple_seconds: float
    likely_seconds: float

    @property
    def share(self) -> float:
        """The bytes as a share of SIMPLE's."""
        return self.likely / self.simple


@contextlib.contextmanager
def served(load: Load, folder: Path) -> Iterator[tuple[list[Site], list[SlowLink]]]:
    """Run the sites, each behind a link that counts bytes."""
    with contextlib.ExitStack() as stack:
        sites, links = [], []
        for number in range(SITES):
            streams = ""
            for name in NAMES:
                (folder / f"{name}{number}").mkdir()
                streams += _STREAM.format(name=name, folder=folder / f"{name}{number}")
            sites.append(Site(folder / f"site{number}", streams))
            stack.callback(sites[-1].kill)
            links.append(stack.enter_context(SlowLink(port_of(sites[-1].url))))
        with ThreadPoolExecutor(SITES) as pool:
            list(pool.map(Site.start, sites))
        yield sites, links


def measured(load: Load, folder: Path) -> Measured:
    """Run a load: second by second, then all rows once more as SIMPLE brings them."""
    with served(load, folder) as (sites, links):
        addresses = tuple(SiteAddress("grpc://{}:{}".format(*each.address)) for each in links)
        width = load.payload + 12.0
        one, other = (LikelySide(addresses, name, "k", 0, width) for name in NAMES)
        span = load.window * SECOND
        told = folder / "told"
        told.mkdir()
        likely = Likely((one, other), span, span, CEILING, load.error, BITS, SAMPLE, str(told))
        choosers = [Chooser(likely, 0), Chooser(likely, 1)]
        places: list[Reached] = []
        sent: list[list[Rows]] = [[], []]
        came: list[list[Rows]] = [[], []]
        before, working = [each.passed for each in links], 0.0
        for second in range(load.seconds):
            for site, stream in itertools.product(range(SITES), range(2)):
                _put(
                    load.batch(site, stream, second), folder / f"{NAMES[stream]}{site}", second, sent[stream]
                )
            for site, name in itertools.product(sites, NAMES):
                site.wait_for(name, load.rows * (second + 1))
            limit(links, load)
            began = time.monotonic()
            # A site knows the columns of a stream by its first file.
            places = places or [each.begin(latest=False) for each in choosers]
            for stream, chooser in enumerate(choosers):
                end = chooser.after(places[stream], [load.rows * (second + 1)] * SITES)
                came[stream] += brought(chooser, places[stream], end, addresses)
                places[stream] = end
            working += time.monotonic() - began
            limit(links, None)
        size = sum(link.passed.since(at).size for link, at in zip(links, before, strict=True))
        before = [each.passed for each in links]
        limit(links, load)
        began = time.monotonic()
        for second, stream in itertools.product(range(load.seconds), range(2)):
            numbers = (second * load.rows, (second + 1) * load.rows)
            asked = [
                (address, NAMES[stream], lineage, *numbers)
                for address, lineage in zip(addresses, places[stream].lineages, strict=True)
            ]
            with ThreadPoolExecutor(SITES) as pool:
                list(pool.map(_all_rows, asked))
        simple_seconds = time.monotonic() - began
        limit(links, None)
        simple = sum(link.passed.since(at).size for link, at in zip(links, before, strict=True))
    all_pairs, found = pairs(sent, span), pairs(came, span)
    missed = choosers[0].missed
    error = missed.missing.error(missed.found) if missed else (0.0, 0.0, 0.0)
    rows = sum(len(each[0]) for own in came for each in own) / load.all_rows
    least = least_rows(sent, span, load.error)
    true = 1 - found / all_pairs
    return Measured(load, simple, size, rows, true, error, least, simple_seconds, working)


def limit(links: Sequence[SlowLink], load: Load | None) -> None:
    """Have links be as slow as a load wants, from now on; None: as fast as they can be."""
    for each in links:
        if load is None or load.rate is None:
            each.change(bytes_per_second=None, latency=0.0)
        else:
            each.change(bytes_per_second=load.rate * 125, latency=load.latency)


def _all_rows(asked: tuple[SiteAddress, str, str, int, int]) -> None:
    address, *rest = asked
    for _ in client_of(address).rows(*rest, COLUMNS):
        pass


def brought(
    chooser: Chooser, begin: Reached, end: Reached, addresses: Sequence[SiteAddress]
) -> Iterator[Rows]:
    """Yield the rows that a micro-batch brings."""
    if end is begin:
        return

    def of_part(part: LikelyRows) -> list[Rows]:
        asked = (NAMES[chooser.own], part.lineage, part.ranges, "k", COLUMNS)
        filter = ValueFilter.decode(part.filter)
        client = client_of(addresses[part.site])
        blocks = client.reduced(*asked, filter=None, keys=filter, high=CEILING)
        return [_rows(each) for each in blocks]

    parts = [*chooser.parts(begin, end)]
    with ThreadPoolExecutor(max(1, len(parts))) as pool:
        for found in pool.map(of_part, parts):
            yield from found


def pairs(rows: Sequence[Sequence[Rows]], span: int) -> int:
    """Return how many pairs some rows of both streams have."""
    sides = [tuple(np.concatenate(each) for each in zip(*own, strict=True)) for own in rows]
    return int(pairs_by_key(sides[0], sides[1], span, span)[1].sum())


def least_rows(rows: Sequence[Sequence[Rows]], span: int, error: float) -> float:
    """Return a share of the rows of both streams with less than which more results are missed than ``error``.

    The pairs among some rows are at most half of the sum of their partners. So no choice does with less rows
    than those with the most partners whose sum is twice the results that are wanted.
    """
    sides = [tuple(np.concatenate(each) for each in zip(*own, strict=True)) for own in rows]
    partners = np.concatenate([partners_of(*sides, span), partners_of(*reversed(sides), span)])
    reached = np.cumsum(np.sort(partners)[::-1])
    return float(np.searchsorted(reached, (1 - error) * reached[-1]) + 1) / len(partners)


def partners_of(own: Rows, others: Rows, span: int) -> np.ndarray:
    """Return how many partners each row has."""
    _, places = np.unique(np.concatenate([own[0], others[0]]), return_inverse=True)
    first = min(int(own[1].min()), int(others[1].min())) - span
    width = max(int(own[1].max()), int(others[1].max())) + span + 1 - first
    at = places[: len(own[0])] * width + own[1] - first
    order = np.sort(places[len(own[0]) :] * width + others[1] - first)
    return np.searchsorted(order, at + span, "right") - np.searchsorted(order, at - span, "left")


def _rows(found: pa.Table | pa.RecordBatch) -> Rows:
    return np.array(found.column("k")), np.array(found.column("ts").cast(pa.int64()))


def _put(rows: pa.Table, folder: Path, number: int, sent: list[Rows]) -> None:
    hidden = folder / f".{number:04}"
    pq.write_table(rows, hidden, compression="none")
    hidden.rename(folder / f"{number:04}.parquet")
    sent.append(_rows(rows))


def table(found: Sequence[Measured]) -> str:
    """Return a line for each run."""
    lines = [
        [
            *("skew", "own keys", "asked ε", "bytes / SIMPLE", "rows brought", "no choice with less than"),
            *("true ε", "told ε", "with 95 %", "link", "rows/s", "of SIMPLE's"),
        ]
    ]
    for each in found:
        share, low, high = each.told
        lines.append(
            [
                f"{each.load.skew:g}",
                f"{each.load.local:.0%}",
                f"{each.load.error:.0%}",
                f"{each.share:.3f}",
                f"{each.rows:.3f}",
                f"{each.least:.3f}",
                f"{each.error:.4f}",
                f"{share:.4f}",
                f"{low:.4f} to {high:.4f}",
                *_speed(each),
            ]
        )
    return aligned(lines)


def _speed(each: Measured) -> tuple[str, str, str]:
    load = each.load
    if load.rate is None:
        return "", "", ""
    link = f"{load.rate:g} kbit/s, {1000 * load.latency:g} ms"
    faster = each.simple_seconds / each.likely_seconds
    return link, f"{load.all_rows / each.likely_seconds:,.0f}", f"{faster:.2f}"


def main() -> int:
    """Run what the command line asks for; 1 where a true error is more than twice the one asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--skew", type=float, nargs="+", default=[0.4, 0.8, 1.0, 1.2])
    add("--local", type=float, nargs="+", default=[0.8], help="the share of rows with a key of their site")
    add("--error", type=float, nargs="+", default=[0.1])
    add("--rows", type=int, default=5000, help="of each stream at each site in a second (%(default)s)")
    add("--seconds", type=int, default=12)
    add("--window", type=int, default=4, help="seconds (%(default)s)")
    add("--payload", type=int, default=200, help="bytes of a row besides key and time (%(default)s)")
    add("--domain", type=int, default=1 << 17, help="keys of each site (%(default)s)")
    add("--rate", type=float, help="kbit/s of each link in each direction (no limit)")
    add("--latency", type=float, nargs="+", default=[20], help="ms in each direction, with --rate")
    add("--json", type=Path, help="write the outcomes to this file, too")
    asked = parser.parse_args()
    shape = (asked.rows, asked.seconds, asked.window, asked.payload, asked.domain)
    found = []
    latencies = [each / 1000 for each in asked.latency] if asked.rate else [0.0]
    for skew, local, error, latency in itertools.product(asked.skew, asked.local, asked.error, latencies):
        with tempfile.TemporaryDirectory("-sites", "wjoin-") as folder:
            found.append(measured(Load(skew, local, error, *shape, asked.rate, latency), Path(folder)))
        print(table(found[-1:]), file=sys.stderr, flush=True)
    print(table(found))
    if asked.json is not None:
        told = [{**asdict(each), "share": each.share} for each in found]
        asked.json.write_text(json.dumps(told, indent=1), "utf-8")
    return int(any(each.error > 2 * each.load.error for each in found))


if __name__ == "__main__":
    sys.exit(main())
