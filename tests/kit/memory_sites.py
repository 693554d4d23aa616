"""Sites in this process: their counts and filters are the product's own, the way there is not."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from wjoin.executor.sites import likely
from wjoin.sites.held import Extent, HeldRange
from wjoin.sites.key_counts import KeyCounts
from wjoin.sites.key_index import column_hashes
from wjoin.sites.protocol import SiteAddress
from wjoin.sites.value_filter import ValueFilter

Rows = tuple[np.ndarray, np.ndarray]
NONE = np.empty(0, np.int64)


@dataclass
class Memory:
    """A site: keys and times of the rows of its streams, as ``SiteClient`` asks for them."""

    rows: dict[str, Rows] = field(default_factory=lambda: {"r": (NONE, NONE), "s": (NONE, NONE)})

    def put(self, stream: str, keys: np.ndarray, times: np.ndarray) -> None:
        known = self.rows[stream]
        self.rows[stream] = (np.concatenate([known[0], keys]), np.concatenate([known[1], times]))

    def describe(self, stream: str) -> SimpleNamespace:
        schema = pa.schema([("k", pa.int64())])
        return SimpleNamespace(lineage="x", first=0, next=self.next(stream, "x"), schema=schema)

    def next(self, stream: str, lineage: str) -> int:
        return len(self.rows[stream][0])

    def extent(
        self, stream: str, lineage: str, start: int, stop: int, *, ceiling: int, mark: int | None
    ) -> Extent:
        times = self.rows[stream][1][start:stop]
        late = 0 if mark is None else int((times < mark).sum())
        ends = (int(times.min()), int(times.max())) if len(times) else (None, None)
        return Extent(len(times), 1, 0, None, *ends, late)

    def counts(
        self, stream: str, lineage: str, column: str, start: int, stop: int, *,
        ceiling: int, low: int | None, bits: int, sample: int,
    ) -> KeyCounts:  # fmt: skip
        keys, times = (each[start:stop] for each in self.rows[stream])
        counted = np.ones(len(times), np.bool_) if low is None else times >= low
        extent = self.extent(stream, lineage, start, stop, ceiling=ceiling, mark=low)
        hashes = column_hashes(pa.array(keys[counted]))
        return KeyCounts.of(hashes, times[counted], bits, sample, extent)

    def reduced(self, stream: str, ranges: Sequence[HeldRange], keys: ValueFilter) -> np.ndarray:
        """Return the numbers of the rows that a request brings."""
        own, times = self.rows[stream]
        numbers, there = np.arange(len(own)), np.zeros(len(own), np.bool_)
        for each in ranges:
            within = (numbers >= each.start) & (numbers < each.stop)
            there |= within if each.low is None else within & (times >= each.low)
        return np.flatnonzero(there & keys.contains(pa.array(own)))


@contextmanager
def reached(sites: Sequence[Memory]) -> Iterator[tuple[SiteAddress, ...]]:
    """Have choosers reach sites in memory; yield their addresses."""
    addresses = tuple(SiteAddress(f"grpc://site:{number + 1}") for number in range(len(sites)))
    known = {each.url: site for each, site in zip(addresses, sites, strict=True)}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(likely, "client_of", lambda address: known[address.url])
        yield addresses
