"""Of two streams at sites only rows that probably match: which to bring in a micro-batch, and from where.

The sites count the join values of their rows by hash (wjoin.sites.key_counts). By the counts of both streams,
of all sites together, those buckets are chosen that are worth their rows (executor/sites/likely_choice.py).
Other rows are held at their sites, and brought when their bucket is chosen later, as long as new rows may
meet them. Which rows have come stands in the offset of the stream alone: in which micro-batch each bucket was
chosen last, and each range came.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np

from wjoin.executor.sites.fetching import client_of
from wjoin.executor.sites.likely_choice import Goal, worthwhile
from wjoin.executor.sites.likely_offsets import Came, Likely, LikelyRows, LikelySide, Reached
from wjoin.executor.sites.likely_pairs import Windows, is_in
from wjoin.executor.sites.likely_told import Choice, Costs, Counted
from wjoin.executor.sites.missed import Missed
from wjoin.parts.kernels.runs import Int64Array
from wjoin.sites.held import Extent, HeldRange, disjoint
from wjoin.sites.key_counts import KeyCounts
from wjoin.sites.protocol import StreamFacts
from wjoin.sites.value_filter import ValueFilter
from wjoin.sites.value_sets import checked_kind

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")

MOST_RANGES = 24
"""Ranges of each site that an offset tells apart; of more, the oldest count as one."""

COUNTED_ROWS = 50_000
"""Rows of the other stream that are counted with one request."""

CHOICE = "choice"
"""What one stream's reader writes for the other's: the buckets."""


@dataclass
class Chooser:
    """Chooses what to bring of one stream, ``own``, of two; one for each reader of a stream."""

    likely: Likely
    own: int
    _counts: dict[tuple[int, int, int, int], KeyCounts] = field(default_factory=dict)
    _others: dict[int, list[Came]] = field(default_factory=dict)
    _lineages: dict[tuple[int, int], str] = field(default_factory=dict)
    _windows: Windows | None = None
    missed: Missed | None = None
    costs: Costs = field(default_factory=Costs)
    _weighed: tuple[object, ...] = ()
    _pending: list[Choice] = field(default_factory=list)
    _counted_for: list[Counted] = field(default_factory=list)

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
        if not self._lineages:
            self.costs.begin(begin.told)
        for site, lineage in enumerate(begin.lineages):
            self._lineages[self.own, site] = lineage
        choice = self._told_choice(begin)
        if choice is None and self._windows is None:
            self._begin_windows(begin)
        new = [*self._new(begin, ends, counted=choice is None)]
        seen = max((each.latest for each in (*begin.held, *new)), default=begin.seen)
        if begin.seen is not None:
            seen = max(seen or begin.seen, begin.seen)
        if choice is None:
            others = self._other(seen)
            rows = (begin.next, *ends, *(each.stop for each in others))
            if rows == self._weighed and begin.next == tuple(ends):
                return begun
            self._weighed = rows
            choice = self._chosen(seen, others)
        there = [self._there([each], begin.open(choice.buckets, each.batch)) for each in begin.held]
        if not any(map(len, there)) and begin.next == tuple(ends):
            return begun
        held = self._kept([*begin.held, *(replace(each, batch=batch) for each in new)], seen)
        first = min((each.batch for each in held), default=batch)
        since = begin.since.renewed(choice.buckets, batch + 1.0, min(first, batch))
        return replace(
            begin,
            next=tuple(ends),
            batch=batch,
            seen=seen,
            held=held,
            buckets=since.buckets,
            chosen=since.values.astype(np.int64) - 1,
            low=choice.lows[self.own],
            told=self.costs.told(self.missed),
        )

    def _begin_windows(self, begin: Reached) -> None:
        """Take what is known where a query begins, or goes on: of held rows it stands in the offset."""
        told = self.likely
        self._windows = Windows(told.ahead, told.back, told.hold, told.bits, begin.batch + 1, begin.since)
        if told.sample:
            self.missed = Missed(told.ahead, told.back, told.hold, told.bits, told.sample)
        for each in begin.held:
            self._counted(self.own, each, self._asked(self.own, each), each.batch)

    def _agreed(self, begin: Reached) -> Reached:
        """Return an offset with what is left of it: its buckets count, and rows that are still held."""
        bits = begin.bits or self.likely.bits
        if bits != self.likely.bits:
            self.likely = replace(self.likely, bits=bits)
        if begin.seen is None:
            return replace(begin, bits=bits)
        least = begin.seen - self.likely.hold
        held = (replace(each, low=least if each.low is None else max(each.low, least)) for each in begin.held)
        return replace(begin, bits=bits, held=tuple(held))

    def parts(self, begin: Reached, end: Reached) -> Iterator[LikelyRows]:
        """Yield what a micro-batch between two offsets brings. It follows from these alone."""
        begin, chosen = self._agreed(begin), end.newest
        mark = None if begin.seen is None else begin.seen - self._side.delay
        for site, (start, stop) in enumerate(zip(begin.next, end.next, strict=True)):
            wanted: list[tuple[Came, Int64Array]] = []
            if start < stop:
                wanted.append((Came(site, start, stop, mark, 0, end.batch), chosen))
            for each in begin.held:
                if each.site == site:
                    lows = [low for low in (each.low, end.low) if low is not None]
                    some = begin.open(chosen, each.batch)
                    wanted.append((replace(each, low=max(lows, default=None)), some))
            yield from self._requests(site, end.lineages[site], wanted)

    def _requests(
        self, site: int, lineage: str, wanted: Sequence[tuple[Came, Int64Array]]
    ) -> Iterator[LikelyRows]:
        """Yield requests for ranges, one for all that ask for the same buckets."""
        found: dict[bytes, list[Came]] = {}
        for each, buckets in wanted:
            found.setdefault(buckets.tobytes(), []).append(each)
        for packed, some in found.items():
            there = self._there(some, np.frombuffer(packed, np.int64))
            if len(there):
                filter = ValueFilter.of_buckets(there, self.likely.bits, self._kind).encode()
                ranges = tuple(HeldRange(each.start, each.stop, each.low) for each in some)
                self.costs.add(self._side.sites[site], told=len(filter), messages=1)
                yield LikelyRows(site, lineage, disjoint(ranges), filter)

    def _there(self, some: Sequence[Came], buckets: Int64Array) -> Int64Array:
        """Return which of some buckets to ask for: those that the ranges have, where that is known."""
        known = [self._known(each) for each in some]
        if None in known or not known:
            return buckets
        there = [is_in(buckets, each) for own in known if own is not None for each in own]
        return buckets[np.logical_or.reduce(there)]

    def _known(self, each: Came) -> list[Int64Array] | None:
        """Return the buckets that the rows of a range have, or None where that is not known."""
        found = self._counts.get(_place(self.own, each))
        if found is not None:
            return [found.buckets]
        at, buckets = each.start, []
        for one in self._counted_for:
            if one.site == each.site and one.start <= at < min(one.stop, each.stop):
                buckets.append(one.buckets)
                at = one.stop
        return buckets if at >= each.stop else None

    def _new(self, begin: Reached, ends: Sequence[int], *, counted: bool) -> Iterator[Came]:
        """Yield the new rows of each site with what is known of their times; ``counted``: count them."""
        mark = None if begin.seen is None else begin.seen - self._side.delay
        places = enumerate(zip(begin.next, ends, strict=True))
        asked = [Came(site, *rows, mark, 0, begin.batch + 1) for site, rows in places if rows[0] < rows[1]]
        for each in asked:
            self.costs.add(self._side.sites[each.site], rows=each.stop - each.start)
        if counted:
            answers = self._at_once(lambda each: self._asked(self.own, each), asked)
            extents = [self._counted(self.own, *pair).extent for pair in zip(asked, answers, strict=True)]
        else:
            extents = self._at_once(self._extent, asked)
        for each, extent in zip(asked, extents, strict=True):
            if extent.latest is not None:
                low = mark if mark is not None and extent.late else None
                yield replace(each, low=low, latest=extent.latest)

    @staticmethod
    def _at_once(ask: Callable[[Asked], Answer], several: Sequence[Asked]) -> list[Answer]:
        """Return the answers of several sites, which are asked at once."""
        with ThreadPoolExecutor(max(1, len(several))) as pool:
            return list(pool.map(ask, several))

    def _extent(self, each: Came) -> Extent:
        client, lineage = client_of(self._side.sites[each.site]), self._lineages[self.own, each.site]
        range = (self._side.stream, lineage, each.start, each.stop)
        self.costs.add(self._side.sites[each.site], messages=1)
        return client.extent(*range, ceiling=self.likely.ceiling, mark=each.low)

    def _asked(self, stream: int, each: Came) -> KeyCounts:
        """Return the counts of a range, which its site is asked for where they are not known."""
        known = self._counts.get(_place(stream, each))
        if known is not None:
            return known
        side = self.likely.sides[stream]
        return client_of(side.sites[each.site]).counts(
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

    def _counted(self, stream: int, each: Came, found: KeyCounts, number: int | None = None) -> KeyCounts:
        """Return the counts of a range, and take them up where they are new.

        ``number``: before which choice it came to be known, None for the one to come.
        """
        place = _place(stream, each)
        if place not in self._counts:
            side = self.likely.sides[stream]
            self._counts[place] = found
            self.costs.add(side.sites[each.site], told=found.size, messages=1)
            if self._windows is not None:
                number = self._windows.number if number is None else number
                self._windows.add(stream, number, found)
                if self.missed is not None:
                    self.missed.add(stream, number, found, self._windows.since)
            if stream != self.own:
                self._counted_for.append(Counted(each.site, each.start, each.stop, found.buckets))
            if stream == self.own:
                self.costs.late += found.extent.late
        return self._counts[place]

    def _described(self) -> list[StreamFacts]:
        return [client_of(each).describe(self._side.stream) for each in self._side.sites]

    def _chosen(self, seen: int | None, others: Sequence[Came]) -> Choice:
        """Return what to bring, by the rows of both streams; tell the other stream's reader."""
        windows, told = self._windows, self.likely
        if windows is None or seen is None:
            return Choice(0, told.bits, np.empty(0, np.int64), (0, 0), ())
        offer = windows.offer(seen)
        goal = Goal(told.error, told.messages)
        spent = self.costs.against(goal, self.missed)
        aimed = goal.aimed(spent, offer.came if told.error is None else float(offer.pairs.values.sum()))
        if told.error is not None and self.missed is not None:
            aimed *= self.missed.counted_share
        widths = [each.width for each in told.sides]
        wanted = {"error": None, "messages": aimed} if told.error is None else {"error": aimed}
        buckets = worthwhile(offer, widths, **wanted)
        self.costs.brings(offer, buckets)
        number = windows.number
        pairs = windows.settle(offer, buckets, seen)
        if self.missed is not None:
            self.missed.settle(number, buckets, offer.lows, seen, pairs)
        upto = [0] * len(told.sides[1].sites)
        for each in others:
            upto[each.site] = max(upto[each.site], each.stop)
        choice = Choice(number, told.bits, buckets, offer.lows, tuple(upto), tuple(self._counted_for))
        self._counted_for = []
        if told.folder is not None and self.own == 0:
            _written(Path(told.folder) / CHOICE, choice.encode())
        return choice

    def _other(self, seen: int | None) -> list[Came]:
        """Return the ranges of the other stream that rows up to ``seen`` of this one may meet."""
        if seen is None:
            return []
        other, side = 1 - self.own, self.likely.sides[1 - self.own]
        least, last = seen - self.likely.hold, seen + max(self.likely.ahead, self.likely.back)
        sites = range(len(side.sites))
        answers = self._at_once(lambda site: [*self._further(site, least, last)], sites)
        for site, found in zip(sites, answers, strict=True):
            ranges = self._others.setdefault(site, [])
            for asked, counts in found:
                extent = self._counted(other, asked, counts).extent
                latest = least if extent.latest is None else extent.latest
                ranges.append(replace(asked, low=extent.earliest, latest=latest))
            self._forget(other, [each for each in ranges[:-1] if each.latest < least])
            while len(ranges) > MOST_RANGES:
                ranges[:2] = [self._together(other, *ranges[:2])]
        return [each for ranges in self._others.values() for each in ranges]

    def _further(self, site: int, least: int, last: int) -> Iterator[tuple[Came, KeyCounts]]:
        """Yield what a site has of the other stream that is not known yet, up to the event time ``last``."""
        other, ranges = 1 - self.own, self._others.get(site, [])
        side = self.likely.sides[other]
        low = ranges[-1].low if ranges else None
        if ranges:
            at = ranges[-1].stop
            next = client_of(side.sites[site]).next(side.stream, self._lineages[other, site])
        else:
            facts = client_of(side.sites[site]).describe(side.stream)
            self._lineages[other, site], at, next = facts.lineage, facts.first, facts.next
        while at < next and (low is None or low <= last):
            asked = Came(site, at, min(next, at + COUNTED_ROWS), least, 0, 0)
            found = self._asked(other, asked)
            yield asked, found
            at, low = asked.stop, found.extent.earliest

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

    def _told_choice(self, begin: Reached) -> Choice | None:
        """Return what the reader of stream 0 has chosen, None where this one is to choose.

        That reader may know of rows that this one comes to later: what it has chosen for them still counts.
        """
        if self.likely.folder is None or self.own == 0:
            return None
        try:
            newest = Choice.decode((Path(self.likely.folder) / CHOICE).read_bytes())
        except OSError:
            return None
        if newest.bits != self.likely.bits:
            return None
        if not self._pending or self._pending[-1].number != newest.number:
            first = [min(_starts(begin, site)) for site in range(len(begin.next))]
            kept = [each for each in self._counted_for if each.stop > first[each.site]]
            self._counted_for = [*kept, *newest.counted]
        waiting = [
            each
            for each in self._pending
            if each.number != newest.number
            and any(at < upto for at, upto in zip(begin.next, each.upto, strict=True))
        ]
        self._pending = [*waiting, newest]
        return Choice.together(self._pending)


def _starts(begin: Reached, site: int) -> list[int]:
    """Return where the ranges of a site begin that may still be brought."""
    return [begin.next[site], *(each.start for each in begin.held if each.site == site)]


def _place(stream: int, each: Came) -> tuple[int, int, int, int]:
    return stream, each.site, each.start, each.stop


def _written(file: Path, data: bytes) -> None:
    """Write a file that is whole whenever it is read."""
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_bytes(data)
    unfinished.replace(file)
