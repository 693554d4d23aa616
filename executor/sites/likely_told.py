"""What the reader of a stream at sites tells: its choices to the other stream's, and what all that costs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wjoin.executor.sites.likely_choice import Goal
from wjoin.executor.sites.likely_pairs import Offer, is_in
from wjoin.executor.sites.missed import Missed
from wjoin.parts.kernels.runs import Int64Array
from wjoin.sites.packed_numbers import packed_numbers, unpacked_numbers
from wjoin.sites.protocol import SiteAddress


@dataclass(frozen=True, eq=False)
class Counted:
    """Which ``buckets`` the rows start..stop-1 of stream 1 at a site have."""

    site: int
    start: int
    stop: int
    buckets: Int64Array


@dataclass(frozen=True, eq=False)
class Choice:
    """The ``buckets`` that choice ``number`` brings, of 2**``bits``.

    ``lows``: from which event time on held rows of each stream come; ``upto``: how far the rows of stream 1
    were known at each site; ``counted``: those of them that were new.
    """

    number: int
    bits: int
    buckets: Int64Array
    lows: tuple[int, int]
    upto: tuple[int, ...]
    counted: tuple[Counted, ...] = ()

    def encode(self) -> bytes:
        """Return it as bytes: a line of JSON, and the buckets."""
        head = {"number": self.number, "bits": self.bits, "lows": self.lows, "upto": self.upto}
        counted = [[each.site, each.start, each.stop, len(each.buckets)] for each in self.counted]
        line = json.dumps({**head, "count": len(self.buckets), "counted": counted}).encode()
        some = [self.buckets, *(each.buckets for each in self.counted)]
        return line + b"\n" + packed_numbers([np.diff(each, prepend=-1) for each in some])

    @classmethod
    def decode(cls, data: bytes) -> "Choice":
        """Return the choice of ``encode``."""
        line, _, packed = data.partition(b"\n")
        told = json.loads(line)
        lengths = [told["count"], *(each[3] for each in told["counted"])]
        buckets, *others = (np.cumsum(gaps) - 1 for gaps in unpacked_numbers(packed, lengths))
        counted = (
            Counted(site, start, stop, own)
            for (site, start, stop, _), own in zip(told["counted"], others, strict=True)
        )
        low, other = told["lows"]
        return cls(told["number"], told["bits"], buckets, (low, other), tuple(told["upto"]), tuple(counted))

    @classmethod
    def together(cls, some: Sequence["Choice"]) -> "Choice":
        """Return what any of some choices brings; the last one is the newest."""
        if len(some) == 1:
            return some[0]
        buckets = np.unique(np.concatenate([each.buckets for each in some]))
        lows = min(each.lows[0] for each in some), min(each.lows[1] for each in some)
        return cls(some[-1].number, some[-1].bits, buckets, lows, some[-1].upto)


@dataclass(frozen=True)
class SiteCosts:
    """Of one site: rows that came to be known, requests to it, and bytes of summaries and filters."""

    rows: int = 0
    messages: int = 0
    summary_bytes: int = 0

    def plus(self, other: "SiteCosts") -> "SiteCosts":
        """Return both together."""
        return SiteCosts(
            self.rows + other.rows,
            self.messages + other.messages,
            self.summary_bytes + other.summary_bytes,
        )


@dataclass(frozen=True)
class Told:
    """What is known of all that was done since a query began, as it stands in the offset of a stream.

    ``found`` and ``missing`` results as the counts have them, with 95 % ``least`` to ``most`` of the latter;
    ``late`` rows; ``sites`` by their addresses. The reader that chooses for both streams tells of results.
    """

    found: float = 0.0
    missing: float = 0.0
    least: float = 0.0
    most: float = 0.0
    late: int = 0
    sites: Mapping[str, SiteCosts] = field(default_factory=dict)

    @classmethod
    def of_json(cls, told: Mapping[str, Any]) -> "Told":
        """Return what stands in an offset; nothing where it says nothing."""
        sites = {url: SiteCosts(**each) for url, each in told.get("sites", {}).items()}
        return cls(**{**told, "sites": sites})


NOTHING_TOLD = Told()


@dataclass
class Costs:
    """Adds up what is done; ``before``: what a query had told when its process began."""

    before: Told = NOTHING_TOLD
    late: int = 0
    brought: float = 0.0
    came: float = 0.0
    sites: dict[str, SiteCosts] = field(default_factory=dict)

    def begin(self, before: Told) -> None:
        """Go on from what was told before."""
        self.before = before

    def add(self, site: SiteAddress, *, rows: int = 0, messages: int = 0, told: int = 0) -> None:
        """Take what was done at a site."""
        known = self.sites.get(site.url, SiteCosts())
        self.sites[site.url] = known.plus(SiteCosts(rows, messages, told))

    def brings(self, offer: Offer, buckets: Int64Array) -> None:
        """Take what a choice brings."""
        chosen = is_in(offer.gain.buckets, buckets)
        self.brought += float((offer.rows[0] + offer.rows[1])[chosen].sum())
        self.came += offer.came

    def against(self, goal: Goal, missed: Missed | None) -> tuple[float, float]:
        """Return what counts against a goal, and of how much."""
        if goal.error is None:
            return self.brought, self.came
        if missed is None:
            return 0.0, 0.0
        results = missed.missing.results
        return results, results + missed.found

    def told(self, missed: Missed | None) -> Told:
        """Return all that is known."""
        before = self.before
        sites = {
            url: before.sites.get(url, SiteCosts()).plus(self.sites.get(url, SiteCosts()))
            for url in {**before.sites, **self.sites}
        }
        if missed is None:
            return Told(
                before.found, before.missing, before.least, before.most, before.late + self.late, sites
            )
        found = missed.missing
        low, high = max(0.0, found.results - found.spread), found.results + found.spread
        return Told(
            round(before.found + missed.found, 1),
            round(before.missing + found.results, 1),
            round(before.least + low, 1),
            round(before.most + high, 1),
            before.late + self.late,
            sites,
        )
