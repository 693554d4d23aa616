"""Of two streams at sites only rows that probably match: which to bring in a micro-batch, and from where.

The sites count the join values of their rows by hash (wjoin.sites.key_counts). By the counts of both streams,
of all sites together, those buckets are chosen that are worth their rows (executor/sites/likely_choice.py).
Other rows are held at their sites, and brought when their bucket is chosen later. Which rows have come stands
in the offset of the stream alone: in which micro-batch each bucket was chosen last, and each range came.
"""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from wjoin.executor.sites.fetching import client_of
from wjoin.executor.sites.likely_choice import worthwhile
from wjoin.executor.sites.missed import Missed
from wjoin.grammar.plain import plain
from wjoin.parts.kernels.runs import BoolArray, Int64Array
from wjoin.sites.held import Extent, HeldRange, disjoint
from wjoin.sites.key_counts import KeyCounts
from wjoin.sites.packed_numbers import packed_numbers, unpacked_numbers
from wjoin.sites.protocol import SiteAddress, StreamFacts
from wjoin.sites.value_filter import ValueFilter
from wjoin.sites.value_sets import checked_kind

MOST_RANGES = 24
"""Ranges of each site that an offset tells apart; of more, the oldest count as one."""

COUNTED_ROWS = 50_000
"""Rows of the other stream that are counted with one request."""

CHOICE, REPORT = "choice", "missed.json"
"""What one stream's reader writes for the other's: the buckets, and what they miss."""

MOST_MISSED = 0.95
"""The share of results that a choice misses at the most, however few have been missed so far."""

_NEVER = -1
_STEP, _ALLOWED = (0.8, 1.15), (0.1, 1.5)
"""By how much the error that is aimed at changes with a micro-batch, and how far."""


@dataclass(frozen=True)
class LikelySide:
    """One of two streams: ``column`` is that of its key at the sites, ``width`` the bytes of a row."""

    sites: tuple[SiteAddress, ...] = field(repr=False)
    stream: str
    column: str
    delay: int
    width: float


@dataclass(frozen=True)
class Likely:
    """A join of two streams at sites of which only rows that probably match are brought.

    The time of stream 1 is from ``back`` before to ``ahead`` after that of stream 0; times above ``ceiling``
    do not count. A share ``error`` of the results may be missed. There are 2**``bits`` buckets, and one of
    ``sample`` is told exactly. ``folder``: where the reader of stream 0 tells that of stream 1 what it has
    chosen; None where each chooses for itself.
    """

    sides: tuple[LikelySide, LikelySide]
    ahead: int
    back: int
    ceiling: int
    error: float
    bits: int
    sample: int
    folder: str | None = None

    @property
    def hold(self) -> int:
        """How far in event time behind the latest row of its stream a row is held for a partner."""
        return 2 * max(self.ahead, self.back, 0) + max(each.delay for each in self.sides)

    def to_json(self) -> str:
        """Return it as text, without the addresses."""
        sides = [{**plain(replace(each, sites=())), "sites": []} for each in self.sides]
        return json.dumps({**self.__dict__, "sides": sides})

    @classmethod
    def of_json(cls, text: str, sites: Sequence[tuple[SiteAddress, ...]]) -> "Likely":
        """Return what ``to_json`` has told; ``sites``: the addresses of both streams."""
        told = json.loads(text)
        one, other = (
            LikelySide(**{**each, "sites": own}) for each, own in zip(told["sides"], sites, strict=True)
        )
        return cls(**{**told, "sides": (one, other)})


@dataclass(frozen=True)
class Came:
    """Rows start..stop-1 of a site that came in a micro-batch: those from the event time ``low`` on count."""

    site: int
    start: int
    stop: int
    low: int | None
    latest: int
    batch: int


@dataclass(frozen=True, eq=False)
class Reached:
    """An offset: how far the rows of each site are read, and what has been brought of them.

    ``next``: by site; ``seen``: the greatest event time; ``held``: ranges with rows that may still be
    brought. There are 2**``bits`` buckets, as many as the query has begun with; ``buckets`` and ``chosen``:
    in which micro-batch each of them was chosen last.
    """

    lineages: tuple[str, ...]
    next: tuple[int, ...]
    batch: int = 0
    seen: int | None = None
    held: tuple[Came, ...] = ()
    bits: int = 0
    buckets: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))
    chosen: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))

    def to_json(self) -> dict[str, Any]:
        """Return the offset as Spark keeps it."""
        ages = self.batch - self.chosen
        packed = packed_numbers([np.diff(self.buckets, prepend=-1), ages])
        return {
            "sites": [
                {"lineage": lineage, "next": next}
                for lineage, next in zip(self.lineages, self.next, strict=True)
            ],
            "likely": {
                "batch": self.batch,
                "seen": self.seen,
                "held": [[*each.__dict__.values()] for each in self.held],
                "bits": self.bits,
                "count": len(self.buckets),
                "chosen": base64.b64encode(packed).decode(),
            },
        }

    @classmethod
    def of_json(cls, told: Mapping[str, Any]) -> "Reached":
        """Return the offset that stands in a checkpoint."""
        if "likely" not in told:
            # All rows have come so far.
            sites = told["sites"]
            return cls(tuple(each["lineage"] for each in sites), tuple(each["next"] for each in sites))
        own, count = told["likely"], told["likely"]["count"]
        gaps, ages = unpacked_numbers(base64.b64decode(own["chosen"]), [count, count])
        return cls(
            tuple(each["lineage"] for each in told["sites"]),
            tuple(each["next"] for each in told["sites"]),
            own["batch"],
            own["seen"],
            tuple(Came(*each) for each in own["held"]),
            own["bits"],
            np.cumsum(gaps) - 1,
            own["batch"] - ages,
        )

    def since(self) -> Int64Array:
        """Return for each bucket in which micro-batch it was chosen last."""
        found = np.full(1 << self.bits, _NEVER, np.int64)
        found[self.buckets] = self.chosen
        return found


@dataclass(frozen=True)
class LikelyRows:
    """Rows to be brought from one site: those of some ranges that pass a filter, which is encoded."""

    site: int
    lineage: str
    ranges: tuple[HeldRange, ...]
    filter: bytes


@dataclass
class Chooser:
    """Chooses what to bring of one stream, ``own``, of two; one for each reader of a stream."""

    likely: Likely
    own: int
    _counts: dict[tuple[int, int, int, int], KeyCounts] = field(default_factory=dict)
    _others: dict[int, list[Came]] = field(default_factory=dict)
    _lineages: dict[tuple[int, int], str] = field(default_factory=dict)
    missed: Missed | None = None
    late: int = 0
    _weighed: tuple[object, ...] = ()
    _allowed: float = 1.0
    _settled: int = 0

    def __post_init__(self) -> None:
        told = self.likely
        if told.sample and self.missed is None:
            self.missed = Missed(told.ahead, told.back, told.hold, told.bits, told.sample)

    def begin(self, *, latest: bool) -> Reached:
        """Return where a new query begins: at the first rows that are kept, or after the last ones."""
        facts = self._described()
        places = tuple(each.next if latest else each.first for each in facts)
        return Reached(tuple(each.lineage for each in facts), places, bits=self.likely.bits)

    @property
    def _side(self) -> LikelySide:
        return self.likely.sides[self.own]

    @cached_property
    def _kind(self) -> str:
        facts = client_of(self._side.sites[0]).describe(self._side.stream)
        return checked_kind(facts.schema.field(self._side.column).type)

    def after(self, begin: Reached, ends: Sequence[int]) -> Reached:
        """Return how far a micro-batch goes: up to the rows ``ends`` of the sites.

        It is ``begin`` where there is nothing to be brought. Raises SiteError.
        """
        begun, begin = begin, self._agreed(begin)
        batch = begin.batch + 1
        for site, lineage in enumerate(begin.lineages):
            self._lineages[self.own, site] = lineage
        told = self._told_choice()
        new = [*self._new(begin, ends, counted=told is None)]
        seen = max((each.latest for each in (*begin.held, *new)), default=begin.seen)
        if begin.seen is not None:
            seen = max(seen or begin.seen, begin.seen)
        since = begin.since()
        chosen = told
        if chosen is None:
            others = self._other(seen)
            rows = (begin.next, *ends, *(each.stop for each in others))
            if rows == self._weighed and begin.next == tuple(ends):
                return begun
            self._weighed = rows
            chosen = self._choice([*begin.held, *new], others, since == begin.batch)
            self._tell(chosen, seen)
        fresh = np.zeros(len(since), np.bool_)
        for each in begin.held:
            counts = self._counts.get(_place(self.own, each))
            at = np.flatnonzero(chosen) if counts is None else counts.buckets
            fresh[at] |= chosen[at] & (since[at] < each.batch)
        if not fresh.any() and begin.next == tuple(ends):
            return begun
        since[chosen] = batch
        held = self._kept([*begin.held, *(replace(each, batch=batch) for each in new)], seen)
        first = min((each.batch for each in held), default=batch)
        buckets = np.flatnonzero(since >= min(first, batch))
        return replace(
            begin,
            next=tuple(ends),
            batch=batch,
            seen=seen,
            held=held,
            buckets=buckets,
            chosen=since[buckets],
        )

    def _agreed(self, begin: Reached) -> Reached:
        """Return an offset with what is left of it: its buckets count, and rows that are still held."""
        bits = begin.bits or self.likely.bits
        if bits != self.likely.bits:
            self.likely = replace(self.likely, bits=bits)
            self.missed = None
            self.__post_init__()
        if begin.seen is None:
            return replace(begin, bits=bits)
        least = begin.seen - self.likely.hold
        held = (replace(each, low=least if each.low is None else max(each.low, least)) for each in begin.held)
        return replace(begin, bits=bits, held=tuple(held))

    def parts(self, begin: Reached, end: Reached) -> Iterator[LikelyRows]:
        """Yield what a micro-batch between two offsets brings. It follows from these alone."""
        begin = self._agreed(begin)
        chosen, since = end.since() == end.batch, begin.since()
        mark = None if begin.seen is None else begin.seen - self._side.delay
        for site, (start, stop) in enumerate(zip(begin.next, end.next, strict=True)):
            wanted: list[tuple[Came, BoolArray]] = []
            if start < stop:
                wanted.append((Came(site, start, stop, mark, 0, end.batch), chosen))
            wanted += [(each, chosen & (since < each.batch)) for each in begin.held if each.site == site]
            yield from self._requests(site, end.lineages[site], wanted)

    def _requests(
        self, site: int, lineage: str, wanted: Sequence[tuple[Came, BoolArray]]
    ) -> Iterator[LikelyRows]:
        """Yield requests for ranges, one for all that ask for the same buckets."""
        found: dict[bytes, list[Came]] = {}
        for each, buckets in wanted:
            found.setdefault(np.packbits(buckets).tobytes(), []).append(each)
        for packed, some in found.items():
            flags = np.unpackbits(np.frombuffer(packed, np.uint8)).astype(np.bool_)
            there = self._there(some, flags)
            if len(there):
                filter = ValueFilter.of_buckets(there, self.likely.bits, self._kind)
                ranges = tuple(HeldRange(each.start, each.stop, each.low) for each in some)
                yield LikelyRows(site, lineage, disjoint(ranges), filter.encode())

    def _there(self, some: Sequence[Came], flags: BoolArray) -> Int64Array:
        """Return which buckets to ask for: those of ``flags`` that the ranges have, where that is known."""
        known = [self._counts.get(_place(self.own, each)) for each in some]
        if None in known:
            return np.flatnonzero(flags)
        there = np.unique(np.concatenate([each.buckets for each in known if each is not None]))
        found: Int64Array = there[flags[there]]
        return found

    def _new(self, begin: Reached, ends: Sequence[int], *, counted: bool) -> Iterator[Came]:
        """Yield the new rows of each site with what is known of their times; ``counted``: count them."""
        mark = None if begin.seen is None else begin.seen - self._side.delay
        for site, (start, stop) in enumerate(zip(begin.next, ends, strict=True)):
            if start < stop:
                asked = Came(site, start, stop, mark, 0, begin.batch + 1)
                extent = self._counted(self.own, asked).extent if counted else self._extent(asked)
                if extent.latest is not None:
                    low = mark if mark is not None and extent.late else None
                    yield replace(asked, low=low, latest=extent.latest)

    def _extent(self, each: Came) -> Extent:
        client, lineage = client_of(self._side.sites[each.site]), self._lineages[self.own, each.site]
        range = (self._side.stream, lineage, each.start, each.stop)
        return client.extent(*range, ceiling=self.likely.ceiling, mark=each.low)

    def _counted(self, stream: int, each: Came) -> KeyCounts:
        """Return the counts of a range, which are asked for once."""
        place = _place(stream, each)
        if place not in self._counts:
            side = self.likely.sides[stream]
            found = client_of(side.sites[each.site]).counts(
                side.stream,
                self._lineages[stream, each.site],
                side.column,
                each.start,
                each.stop,
                ceiling=self.likely.ceiling,
                low=each.low,
                bits=self.likely.bits,
                sample=self.likely.sample,
            )
            self._counts[place] = found
            self._sampled(stream, found)
            if stream == self.own:
                self.late += found.extent.late
        return self._counts[place]

    def _described(self) -> list[StreamFacts]:
        return [client_of(each).describe(self._side.stream) for each in self._side.sites]

    def _choice(self, own: Sequence[Came], others: Sequence[Came], chosen: BoolArray) -> BoolArray:
        """Return the buckets to bring, by the rows of both streams."""
        rows = [np.zeros(len(chosen), np.int64), np.zeros(len(chosen), np.int64)]
        for stream, ranges in ((self.own, own), (1 - self.own, others)):
            for each in ranges:
                found = self._counted(stream, each)
                rows[stream][found.buckets] += found.counts
        widths = [each.width for each in self.likely.sides]
        error = min(self._allowed * self.likely.error, MOST_MISSED)
        return worthwhile(rows, widths, error, chosen)

    def _other(self, seen: int | None) -> list[Came]:
        """Return the ranges of the other stream that rows up to ``seen`` of this one may meet."""
        if seen is None:
            return []
        other, side = 1 - self.own, self.likely.sides[1 - self.own]
        least, last = seen - self.likely.hold, seen + max(self.likely.ahead, self.likely.back)
        for site, address in enumerate(side.sites):
            ranges = self._others.setdefault(site, [])
            if ranges:
                at = ranges[-1].stop
                next = client_of(address).next(side.stream, self._lineages[other, site])
            else:
                facts = client_of(address).describe(side.stream)
                self._lineages[other, site], at, next = facts.lineage, facts.first, facts.next
            while at < next and not (ranges and ranges[-1].low is not None and ranges[-1].low > last):
                asked = Came(site, at, min(next, at + COUNTED_ROWS), least, 0, 0)
                extent = self._counted(other, asked).extent
                latest = least if extent.latest is None else extent.latest
                ranges.append(replace(asked, low=extent.earliest, latest=latest))
                at = asked.stop
            self._forget(other, [each for each in ranges[:-1] if each.latest < least])
            while len(ranges) > MOST_RANGES:
                ranges[:2] = [self._together(other, *ranges[:2])]
        return [each for ranges in self._others.values() for each in ranges]

    def _forget(self, stream: int, ranges: Sequence[Came]) -> None:
        """Forget ranges of the other stream."""
        for each in [*ranges]:
            self._counts.pop(_place(stream, each), None)
            self._others[each.site].remove(each)

    def _kept(self, came: Sequence[Came], seen: int | None) -> tuple[Came, ...]:
        """Return the ranges that are still held, the oldest ones of a site together where there are many."""
        found: list[Came] = []
        for site in range(len(self._side.sites)):
            own = [each for each in came if each.site == site]
            for each in own:
                if seen is not None and each.latest < seen - self.likely.hold:
                    self._counts.pop(_place(self.own, each), None)
            own = [each for each in own if seen is None or each.latest >= seen - self.likely.hold]
            while len(own) > MOST_RANGES:
                own[:2] = [self._together(self.own, *own[:2])]
            found += own
        return tuple(found)

    def _together(self, stream: int, one: Came, other: Came) -> Came:
        """Return two ranges that follow each other as one; what came with the second is taken to be older."""
        lows = [each.low for each in (one, other) if each.low is not None]
        latest = max(one.latest, other.latest)
        whole = Came(one.site, one.start, other.stop, max(lows, default=None), latest, one.batch)
        known = [self._counts.pop(_place(stream, each), None) for each in (one, other)]
        counts = [each for each in known if each is not None]
        if len(counts) == len(known):
            self._counts[_place(stream, whole)] = KeyCounts.together(counts)
        return whole

    def _told_choice(self) -> BoolArray | None:
        """Return what the reader of stream 0 has chosen, None where this one is to choose."""
        if self.likely.folder is None or self.own == 0:
            return None
        try:
            told = (Path(self.likely.folder) / CHOICE).read_bytes()
        except OSError:
            return None
        flags = np.unpackbits(np.frombuffer(told, np.uint8)).astype(np.bool_)
        return flags if len(flags) == 1 << self.likely.bits else None

    def _tell(self, chosen: BoolArray, seen: int | None) -> None:
        """Tell the other stream's reader what is chosen, and who asks what that misses."""
        if self.missed is not None and seen is not None:
            self.missed.settle(chosen, seen)
            self._allowed = allowed(self._allowed, self.likely.error, self.missed)
        if self.likely.folder is None or self.own != 0:
            return
        _written(Path(self.likely.folder) / CHOICE, np.packbits(chosen).tobytes())
        if self.missed is not None:
            self._settled += 1
            told = {
                **self.missed.missing.__dict__,
                "batches": self._settled,
                "found": self.missed.found,
                "late": self.late,
            }
            _written(Path(self.likely.folder) / REPORT, json.dumps(told).encode())

    def _sampled(self, stream: int, found: KeyCounts) -> None:
        if self.missed is not None:
            self.missed.add(stream, found)


def allowed(before: float, error: float, missed: Missed) -> float:
    """Return what share of the wished error the next choice aims at, by what the choices so far have missed.

    The counts know of no times: of a bucket that seems to have many results few may be in the window.
    """
    share = missed.missing.error(missed.found)[0]
    if share <= 0:
        return before
    return float(np.clip(before * np.clip(error / share, *_STEP), *_ALLOWED))


def _place(stream: int, each: Came) -> tuple[int, int, int, int]:
    return stream, each.site, each.start, each.stop


def _written(file: Path, data: bytes) -> None:
    """Write a file that is whole whenever it is read."""
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_bytes(data)
    unfinished.replace(file)
