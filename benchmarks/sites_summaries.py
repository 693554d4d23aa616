"""What the summaries of the 2007 paper tell of the rows of a window at four sites, in the same bytes.

A query over sites brings each row once, or not at all. Each site tells a summary of its rows of both
streams; by all of them each row has a worth, and those worth most come first, until enough results are there.
How many rows that takes, were it known when to stop, is what a summary tells. Bytes are those of rows and of
summaries, also of what goes back to the sites so that these know which rows to send. The rows are those of
sites_approximate.py.

    python benchmarks/sites_summaries.py
    python benchmarks/sites_summaries.py --skew 0.8 --error 0.05 --bytes 0.5
"""

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import kit_path  # noqa: F401 (finds tests.kit)
import numpy as np
import pyarrow as pa
from sites_approximate import BITS, SITES, Load
from tables import aligned

from wjoin.executor.sites.likely_pairs import Sparse
from wjoin.parts.summaries.hashing import shares
from wjoin.parts.summaries.registry import SUMMARIES
from wjoin.parts.summaries.summary import Form, View
from wjoin.sites.held import Extent
from wjoin.sites.key_counts import KeyCounts, bucket_of
from wjoin.sites.key_index import column_hashes
from wjoin.sites.value_filter import ValueFilter

COUNTS = "counts"
"""What sites tell: how many rows each bucket of hashes has."""

NAMES = ("dft", "dftt", "bloom", "skch", "countsketch", "digest", COUNTS)
WIDTH = 212
"""Bytes of a row."""

Keys = np.ndarray
Worths = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Window:
    """The ``keys`` of the rows of each stream at each site; ``size``: bytes that a site tells of a stream."""

    keys: tuple[tuple[Keys, ...], tuple[Keys, ...]]
    size: int

    @classmethod
    def drawn(cls, load: Load, of_counts: float) -> "Window":
        """Return a window of rows, told in a share of the bytes that counts take."""

        def keys(stream: int, site: int) -> Keys:
            seconds = (load.batch(site, stream, second) for second in range(load.window))
            return np.concatenate([np.array(each.column("k")) for each in seconds])

        found = tuple(tuple(keys(stream, site) for site in range(SITES)) for stream in range(2))
        sizes = [len(_counts(each, BITS).encode()) for own in found for each in own]
        return cls(found, int(of_counts * np.mean(sizes)))

    @property
    def together(self) -> tuple[Keys, Keys]:
        """The keys of all rows of each stream, site by site."""
        one, other = (np.concatenate(each) for each in self.keys)
        return one, other

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(map(len, self.together))


def _counts(keys: Keys, bits: int) -> KeyCounts:
    hashes = column_hashes(pa.array(keys))
    return KeyCounts.of(
        hashes, np.zeros(len(keys), np.int64), bits, 0, Extent(len(keys), 1, 0, None, 0, 0, 0)
    )


@dataclass(frozen=True)
class Ranked:
    """How much the rows of both streams are worth, and the bytes that sites get: of a choice's ``buckets``,
    or whatever is chosen.
    """

    worths: Worths
    back: int = 0
    by_bucket: bool = False


def ranked(name: str, window: Window) -> Iterator[Ranked]:
    """Yield how rows can be ranked by a summary."""
    if name == COUNTS:
        yield Ranked(_by_key([_by_counts(own, window) for own in window.keys], window), by_bucket=True)
        return
    views = [[_view(name, keys, window) for keys in own] for own in window.keys]
    if SUMMARIES[name].by_code:
        found = [lambda codes, own=own: sum(each.expected(codes) for each in own) for own in views]
        yield Ranked(_by_key(found, window), back=2 * SITES * window.size)
        return
    yield Ranked(_by_windows(views, window))
    # Which rows come of windows that are as good as each other may as well follow from their keys alone.
    one, other = (np.zeros(len(each)) for each in window.together)
    yield Ranked((one, other))


def _view(name: str, keys: Keys, window: Window) -> View:
    form = Form(window.size, rows=len(keys))
    kind = SUMMARIES[name]
    return kind.view(form, kind.empty(form).add(keys).to_bytes())


def _by_counts(own: Sequence[Keys], window: Window):
    told = [_counts(each, BITS) for each in own]
    whole = KeyCounts.together(told)

    def expected(codes: Keys) -> np.ndarray:
        buckets = bucket_of(column_hashes(pa.array(codes)), BITS)
        return Sparse(whole.buckets, whole.counts.astype(float)).at(buckets)

    return expected


def _by_key(expected: Sequence, window: Window) -> Worths:
    """Return what rows are worth by how many rows of both streams have their key: results for each row."""

    def worth(keys: Keys) -> np.ndarray:
        codes, places = np.unique(keys, return_inverse=True)
        one, other = (each(codes) for each in expected)
        return (one * other / np.maximum(one + other, 1e-9))[places]

    one, other = (worth(each) for each in window.together)
    return one, other


def _by_windows(views: Sequence[Sequence[View]], window: Window) -> Worths:
    """Return what rows are worth by how many partners one of their window has in the mean."""
    found = []
    for stream, own in enumerate(views):
        worths = [
            sum(float(other.expected(keys[:1], mine)[0]) for other in views[1 - stream])
            for mine, keys in zip(own, window.keys[stream], strict=True)
        ]
        found.append(np.repeat(worths, [len(each) for each in window.keys[stream]]))
    return found[0], found[1]


def needed(worths: Worths, window: Window, error: float) -> np.ndarray:
    """Return the rows (of both streams, one after the other) without which more results are missed."""
    keys = np.concatenate(window.together)
    _, places = np.unique(keys, return_inverse=True)
    order = np.lexsort((shares(keys, 7), -np.concatenate(worths)))
    first = len(window.together[0])

    def results(many: int) -> float:
        one, other = order[:many][order[:many] < first], order[:many][order[:many] >= first]
        return float(
            np.bincount(places[one], minlength=len(keys)) @ np.bincount(places[other], minlength=len(keys))
        )

    low, high, wanted = 0, len(order), (1 - error) * results(len(order))
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if results(middle) >= wanted else (middle + 1, high)
    return order[:low]


def outcome(name: str, window: Window, error: float) -> tuple[float, float]:
    """Return the share of the rows that must come, and of the bytes of all rows, with what sites tell."""
    found = []
    for each in ranked(name, window):
        rows = needed(each.worths, window, error)
        told = 2 * SITES * window.size + each.back
        if each.by_bucket:
            chosen = np.unique(np.concatenate(window.together)[rows])
            told += sum(_filter(keys, chosen) for own in window.keys for keys in own)
        found.append((len(rows) / window.rows, (len(rows) * WIDTH + told) / (window.rows * WIDTH)))
    return min(found)


def _filter(own: Keys, chosen: Keys) -> int:
    """Return the bytes that tell a site which of its buckets come."""
    buckets = np.unique(bucket_of(column_hashes(pa.array(own[np.isin(own, chosen)])), BITS))
    return len(ValueFilter.of_buckets(buckets, BITS, "number").encode())


def main() -> None:
    """Print what each summary tells at each skew."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--skew", type=float, nargs="+", default=[0.4, 0.8, 1.0, 1.2])
    add("--local", type=float, default=0.8, help="the share of rows with a key of their site (%(default)s)")
    add("--error", type=float, default=0.1)
    add("--rows", type=int, default=5000, help="of each stream at each site in a second (%(default)s)")
    add("--window", type=int, default=4, help="seconds (%(default)s)")
    add("--domain", type=int, default=1 << 17, help="keys of each site (%(default)s)")
    add("--bytes", type=float, default=1.0, help="of a summary, as a share of what counts take (%(default)s)")
    asked = parser.parse_args()
    lines = [["skew", "bytes a row", *(f"{each}: {what}" for each in NAMES for what in ("rows", "bytes"))]]
    for skew in asked.skew:
        load = Load(skew, asked.local, asked.error, asked.rows, asked.window, asked.window, 0, asked.domain)
        window = Window.drawn(load, asked.bytes)
        cells = itertools.chain(*(outcome(name, window, asked.error) for name in NAMES))
        lines.append(
            [f"{skew:g}", f"{2 * SITES * window.size / window.rows:.2f}", *(f"{each:.3f}" for each in cells)]
        )
    print(aligned(lines))


if __name__ == "__main__":
    sys.exit(main())
