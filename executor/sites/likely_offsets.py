"""A join of two streams at sites of which only rows that probably match come, and how far each has come."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from wjoin.executor.sites.likely_pairs import Sparse
from wjoin.executor.sites.likely_told import NOTHING_TOLD, Told
from wjoin.grammar.plain import plain
from wjoin.parts.kernels.runs import Int64Array
from wjoin.sites.held import HeldRange
from wjoin.sites.packed_numbers import packed_numbers, unpacked_numbers
from wjoin.sites.protocol import SiteAddress


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
    do not count. A share ``error`` of the results may be missed; or, where that is None, of each row
    ``messages`` come, on average. There are 2**``bits`` buckets, and one of ``sample`` is told exactly.
    ``folder``: where the reader of stream 0 tells that of stream 1 what it has
    chosen; None where each chooses for itself.
    """

    sides: tuple[LikelySide, LikelySide]
    ahead: int
    back: int
    ceiling: int
    error: float | None
    bits: int
    sample: int
    folder: str | None = None
    messages: float | None = None

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
    in which micro-batch each of them was chosen last. Of held rows those from the event time ``low`` on have
    come with it (None: all). ``told``: what is known of all that was done so far.
    """

    lineages: tuple[str, ...]
    next: tuple[int, ...]
    batch: int = 0
    seen: int | None = None
    held: tuple[Came, ...] = ()
    bits: int = 0
    buckets: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))
    chosen: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))
    low: int | None = None
    told: Told = NOTHING_TOLD

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
                "low": self.low,
                "told": plain(self.told),
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
            own.get("low"),
            Told.of_json(own.get("told", {})),
        )

    @property
    def newest(self) -> Int64Array:
        """The buckets that were chosen in its micro-batch."""
        found: Int64Array = self.buckets[self.chosen == self.batch]
        return found

    @property
    def since(self) -> Sparse:
        """By bucket 1 more than the micro-batch in which it was chosen last."""
        return Sparse(self.buckets, self.chosen.astype(np.float64) + 1)

    def open(self, wanted: Int64Array, batch: int) -> Int64Array:
        """Return of some buckets those whose rows that came to be known in a micro-batch wait."""
        waits = self.since.at(wanted) <= batch
        found: Int64Array = np.asarray(wanted[waits], np.int64)
        return found


@dataclass(frozen=True)
class LikelyRows:
    """Rows to be brought from one site: those of some ranges that pass a filter, which is encoded."""

    site: int
    lineage: str
    ranges: tuple[HeldRange, ...]
    filter: bytes
