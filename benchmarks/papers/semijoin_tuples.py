"""SPJ and SMJ tuple by tuple, as sections 4.1 and 4.2 of Semijoin streams have them.

Processing is done and measured; transmission is simulated, by the formula of a message: its latency, and its
size over the rate of the link. Both algorithms run over the same streams, and must find the same pairs.
"""

import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from semijoin_settings import ATTRIBUTE, Setting

from wjoin.planner.cost.semijoin import NetworkLink

_SPREAD = 1_000_003
_MODULUS = (1 << 61) - 1


class Arrived(NamedTuple):
    """A tuple: its stream (1 or 2), its place in the stream, which is its time, and its join attribute."""

    stream: int
    number: int
    value: int


@dataclass
class Mirrored:
    """A tuple in the mirror window, of which only a part may be there."""

    tuple: Arrived
    full: bool


@dataclass
class Pairs:
    """Result pairs: how many, and a sum over all that depends on no order."""

    count: int = 0
    checksum: int = 0

    def add(self, first: Arrived, second: Arrived) -> None:
        """Add a result."""
        self.count += 1
        self.checksum += (first.number * _SPREAD + second.number) ** 2 % _MODULUS


@dataclass
class Transmission:
    """What the link has done so far, in simulated time."""

    link: NetworkLink
    messages: int = 0
    size: float = 0.0

    def ship(self, size: float) -> None:
        """Send a message of so many bytes."""
        self.messages += 1
        self.size += size

    @property
    def seconds(self) -> float:
        """Seconds that all messages take, one after the other."""
        return self.link.seconds(self.messages, self.size)


@dataclass
class Window:
    """The last ``size`` tuples of a stream, in a hash table of the join attribute."""

    size: int
    buckets: dict[int, deque[Arrived]] = field(default_factory=dict)
    order: deque[Arrived] = field(default_factory=deque)

    def update(self, new: Arrived) -> None:
        """Insert a tuple and remove the one that expires."""
        self.order.append(new)
        self.buckets.setdefault(new.value, deque()).append(new)
        if len(self.order) > self.size:
            gone = self.order.popleft()
            self.buckets[gone.value].popleft()

    def any(self, value: int) -> bool:
        """Return whether there is a match; the first one found is enough."""
        return bool(self.buckets.get(value))

    def all(self, value: int) -> Collection[Arrived]:
        """Return all matches."""
        return self.buckets.get(value) or ()


@dataclass
class MirrorWindow:
    """The mirror of window 1: the last tuples of stream 1 at the query's site, some of them partial."""

    size: int
    buckets: dict[int, deque[Mirrored]] = field(default_factory=dict)
    order: deque[Mirrored] = field(default_factory=deque)

    def update(self, new: Arrived, *, full: bool) -> None:
        """Insert a tuple and remove the one that expires."""
        entry = Mirrored(new, full)
        self.order.append(entry)
        self.buckets.setdefault(new.value, deque()).append(entry)
        if len(self.order) > self.size:
            gone = self.order.popleft()
            self.buckets[gone.tuple.value].popleft()

    def first(self, value: int) -> Mirrored | None:
        """Return a match, the newest one.

        Those that came without a match are newer than all that are full: what has made an older one full, a
        tuple of stream 2 in its window or after it, has done so to those before it, too. So where the newest
        is full, all are. Of the oldest that cannot be said, and results would be lost.
        """
        bucket = self.buckets.get(value)
        return bucket[-1] if bucket else None

    def all(self, value: int) -> Collection[Mirrored]:
        """Return all matches."""
        return self.buckets.get(value) or ()

    def complete(self, value: int) -> None:
        """Replace the partial tuples of a value by the full ones."""
        for each in self.buckets[value]:
            each.full = True


class SimpleJoin:
    """SPJ, section 4.1: every tuple of stream 1 is shipped whole."""

    def __init__(self, setting: Setting, transmission: Transmission) -> None:
        self.pairs = Pairs()
        self._transmission = transmission
        self._full = float(setting.full * ATTRIBUTE)
        self._exported, self._second = Window(setting.window), Window(setting.window)

    def first(self, new: Arrived) -> None:
        """Take a tuple of stream 1."""
        self._transmission.ship(self._full)
        for match in self._second.all(new.value):
            self.pairs.add(new, match)
        self._exported.update(new)

    def second(self, new: Arrived) -> None:
        """Take a tuple of stream 2."""
        for match in self._exported.all(new.value):
            self.pairs.add(match, new)
        self._second.update(new)


class SemijoinJoin:
    """SMJ, section 4.2: partial tuples first, full ones on request; steps have the paper's numbers."""

    def __init__(self, setting: Setting, transmission: Transmission) -> None:
        self.pairs = Pairs()
        self._transmission = transmission
        self._full, self._partial = float(setting.full * ATTRIBUTE), float(setting.partial * ATTRIBUTE)
        # At N1, and at N2.
        self._own, self._second = Window(setting.window), Window(setting.window)
        self._mirror = MirrorWindow(setting.window)

    def first(self, new: Arrived) -> None:
        """Take a tuple of stream 1."""
        # 1. A partial tuple is shipped, and 2. the window at N1 updated.
        self._transmission.ship(self._partial)
        self._own.update(new)
        # 3. It probes the window of stream 2 for the first match.
        if not self._second.any(new.value):
            self._mirror.update(new, full=False)
            return
        # 4. (a) A request for the full tuple, (b) which is found at N1 and shipped.
        self._transmission.ship(self._partial)
        whole = self._own.order[-1]
        self._transmission.ship(self._full)
        # (c) It probes for all matches.
        for match in self._second.all(whole.value):
            self.pairs.add(whole, match)
        self._mirror.update(whole, full=True)

    def second(self, new: Arrived) -> None:
        """Take a tuple of stream 2."""
        # 1. It probes the mirror window for the first match.
        found = self._mirror.first(new.value)
        if found is not None and not found.full:
            # 2. (a) A request for all full tuples of its value, (b) which are found at N1 and shipped.
            self._transmission.ship(self._partial)
            whole = self._own.all(new.value)
            self._transmission.ship(len(whole) * self._full)
            # (c) They are results, and take the place of the partial ones.
            for match in whole:
                self.pairs.add(match, new)
            self._mirror.complete(new.value)
        elif found is not None:
            for entry in self._mirror.all(new.value):
                if not entry.full:
                    raise AssertionError("a partial tuple is older than a full one of its value")
                self.pairs.add(entry.tuple, new)
        self._second.update(new)


Join = SimpleJoin | SemijoinJoin

ALGORITHMS: dict[str, Callable[[Setting, Transmission], Join]] = {"SPJ": SimpleJoin, "SMJ": SemijoinJoin}


@dataclass(frozen=True)
class Simulated:
    """What an algorithm takes for a second of the streams, in seconds; and what it has found."""

    transmission: float
    processing: float
    messages: float
    size: float
    pairs: Pairs

    @property
    def seconds(self) -> float:
        """The unit-time cost of section 5.1."""
        return self.transmission + self.processing


def streams(setting: Setting, count: int, seed: int = 1) -> Iterator[Arrived]:
    """Yield the first ``count`` tuples of each stream, in turns: values are uniform, rates even."""
    random = np.random.default_rng(seed)
    values = random.integers(0, setting.distinct, (2, count)).tolist()
    for number in range(count):
        yield Arrived(1, number, values[0][number])
        yield Arrived(2, number, values[1][number])


def simulate(algorithm: str, setting: Setting, seconds: float) -> Simulated:
    """Run an algorithm for so many seconds of the streams, after as many tuples as fill the windows twice."""
    fill = 2 * setting.window
    count = round(seconds * setting.rate)
    arriving = list(streams(setting, fill + count))
    transmission = Transmission(setting.link)
    join = ALGORITHMS[algorithm](setting, transmission)
    _run(join, arriving[: 2 * fill])
    messages, size, before = transmission.messages, transmission.size, transmission.seconds
    start = time.process_time()
    _run(join, arriving[2 * fill :])
    took = time.process_time() - start
    measured = count / setting.rate
    return Simulated(
        (transmission.seconds - before) / measured,
        took / measured,
        (transmission.messages - messages) / measured,
        (transmission.size - size) / measured,
        join.pairs,
    )


def _run(join: Join, arriving: Sequence[Arrived]) -> None:
    for each in arriving:
        if each.stream == 1:
            join.first(each)
        else:
            join.second(each)


def steady_semijoin_seconds(setting: Setting) -> float:
    """Return the seconds of transmission in a second that the steps of section 4.2 lead to.

    Equation 2 without two of its approximations. It ships |W1| / dV full tuples where a tuple of stream 2
    meets a partial one, which is the mean over all values; of those that have a match there is one at least.
    And it has a match be partial wherever a tuple has none in W2; one that came without may be full by now.
    """
    miss, window = 1 - 1 / setting.distinct, setting.window
    sides, link = setting.sides, setting.link
    request = link.seconds(1, sides.partial)
    arriving = request + (1 - miss**window) * (request + link.seconds(1, sides.full))
    # The newest match has come ``age`` tuples ago, and nothing of its value since, nor in the window before.
    age = np.arange(window)
    partial = (1 - miss) * miss ** (window + 2.0 * age)
    several = 1 + (window - 1 - age) / setting.distinct
    meeting = (
        partial.sum() * (request + link.latency) + (partial * several).sum() * sides.full / link.bandwidth
    )
    return float(sides.rate_1 * arriving + sides.rate_2 * meeting)
