"""The physical plan: bounds × route × kernel × shipping, per stage.

A plan is plain data. EXPLAIN prints it and the executor runs it; neither decides anything.
Streams are numbered in FROM order. Times are microseconds, or the column's own unit
where event time is integral.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import Enum


class TimeKind(Enum):
    """The Spark type family of the event-time columns of a join."""

    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"
    INTEGRAL = "integral"


class Bounds(Enum):
    """Which time range of the other streams a partial tuple is compared with (see ``planner.reach``)."""

    EXACT = "exact"
    LCA = "lca"
    GCA = "gca"


class Route(Enum):
    """Which worker stores a tuple and which workers it visits."""

    HASH = "hash"
    SINGLE = "single"


class Kernel(Enum):
    """How candidates are found in one worker's windows.

    HW: the rows of the key, then the time range inside them. MW: the rows inside the time
    range, then the key. NLW: all rows, then time range and key (W-join 2002, 3.1 and 3.2).
    ORDERED: the rows of the key that a band allows, then the time range (S2J, "Optimizations").
    ADAPTIVE: HW or MW, chosen by each worker from what arrives at it.
    """

    HW = "hw"
    MW = "mw"
    NLW = "nlw"
    ORDERED = "ordered"
    ADAPTIVE = "adaptive"


class Passes(Enum):
    """How a disjunction of windows runs (W-join 2002, 5.2.1).

    HULL: one pass inside the edge-wise hull of the alternatives, whose results must satisfy one
    of them. UNION: a pass for each alternative; what an earlier one has found does not count again.
    """

    HULL = "hull"
    UNION = "union"


class Shipping(Enum):
    """What travels between workers."""

    BLOCKS = "blocks"


class Method(Enum):
    """What joins the streams: wjoin's stages, or a chain of Spark's own joins of two."""

    MULTIWAY = "multiway"
    NATIVE = "native"


UpperBounds = tuple[tuple[int | None, ...], ...]
"""``upper[i][j]``: the greatest t_j - t_i allowed; None when unbounded. The least is -upper[j][i]."""


@dataclass(frozen=True)
class ScanColumn:
    """A value that travels with a tuple: a Spark expression over the stream's alias.

    ``output`` is the column's name in the relation when the rest of the statement reads it,
    None when only the join itself needs the value.
    """

    expression: str
    type: str
    output: str | None


@dataclass(frozen=True)
class KeyCode:
    """A join key reduced to one 64-bit code.

    ``exact``: the key is one integral, boolean, date or timestamp value and the code is that
    value. Otherwise the code is a hash of ``expressions`` and candidates are compared on
    ``verify``, the numbers of the scan columns that hold the key's parts (empty where Spark
    compares them after the join).
    """

    expressions: tuple[str, ...]
    types: tuple[str, ...]
    exact: bool
    verify: tuple[int, ...]


@dataclass(frozen=True)
class StreamScan:
    """What is read of one stream. ``codes`` are its join keys, one for each stage that uses one."""

    alias: str
    event_time: str
    delay: int
    filters: tuple[str, ...]
    columns: tuple[ScanColumn, ...]
    codes: tuple[KeyCode, ...]
    streaming: bool


@dataclass(frozen=True)
class Comparison:
    """``left operator right`` on scan columns of one integral, date or timestamp type.

    Operands are (stream, number of the scan column). A NULL on either side is false.
    """

    left: tuple[int, int]
    operator: str
    right: tuple[int, int]


@dataclass(frozen=True)
class Band:
    """``low <= left - right <= high`` on scan columns of two streams, None where a side is open.

    It holds for every result, and is only searched for and tested: the conditions that imply it
    are checked as well (by comparisons of the stage where ``checked``). ``slack``: 0 for whole
    numbers, days and microseconds; else the share of a value by which the bounds are wider for it.
    """

    left: tuple[int, int]
    right: tuple[int, int]
    low: int | float | None
    high: int | float | None
    slack: float
    checked: bool


def completed(condition: Comparison | Band, joined: Collection[int], new: Collection[int]) -> bool:
    """Return whether both streams of a condition are joined, and one of them is new."""
    streams = {condition.left[0], condition.right[0]}
    return streams.issubset(joined) and not streams.isdisjoint(new)


@dataclass(frozen=True)
class StageInput:
    """One input of a stage: a scan, or the result of an earlier stage.

    ``members`` are the streams whose rows a tuple of this input is made of; ``key`` is
    (stream, number of its code), None where the stage has no equality.
    """

    members: tuple[int, ...]
    stage: int | None
    key: tuple[int, int] | None


@dataclass(frozen=True)
class Stage:
    """A join of two or more inputs on one worker set.

    ``orders[i]`` is the order in which new rows of input i meet the other inputs; where there are
    no ``orders``, they meet the one with the fewest rows at hand first. ``indexed[i]`` is the number
    of the band that orders the rows of input i for the kernel ORDERED, None where none does.
    """

    inputs: tuple[StageInput, ...]
    bounds: Bounds
    route: Route
    kernel: Kernel
    shipping: Shipping
    comparisons: tuple[Comparison, ...]
    orders: tuple[tuple[int, ...], ...] = ()
    bands: tuple[Band, ...] = ()
    indexed: tuple[int | None, ...] = ()

    def __post_init__(self) -> None:
        members = self.members
        if len(self.inputs) < 2 or len(set(members)) != len(members):
            raise ValueError("a stage joins two or more inputs with distinct streams")
        conditions: tuple[Comparison | Band, ...] = (*self.comparisons, *self.bands)
        for each in conditions:
            if each.left[0] not in members or each.right[0] not in members:
                raise ValueError("a condition names a stream that is not in the stage")

    @property
    def members(self) -> tuple[int, ...]:
        """The streams of all inputs, in input order."""
        return tuple(member for each in self.inputs for member in each.members)

    def index(self, number: int) -> Band | None:
        """Return the band that orders the rows of an input, None where none does."""
        place = self.indexed[number] if self.indexed else None
        return None if place is None else self.bands[place]


@dataclass(frozen=True)
class StaticJoin:
    """A join of the rows made so far with static relation ``stream``, which Spark's own join does.

    ``equalities`` and ``comparisons`` are conditions in SQL over the aliases that link it to the
    streams before it; the bounds of the windows between them hold as well. A static relation is
    complete: nothing of it is kept, and nothing is kept for it.
    """

    stream: int
    equalities: tuple[str, ...]
    comparisons: tuple[str, ...]


@dataclass(frozen=True)
class PhysicalPlan:
    """A whole W-join.

    ``upper`` is the closure of the window graph (the edge-wise hull of the branches of a
    disjunction); ``branches`` the closures that a result must satisfy one of, empty for a
    single conjunction. ``match`` names the match functions that the statement uses (``time``,
    ``start``, ``span``). ``match_delay`` is how far MATCH_TIME of a result may lie behind the
    greatest one already emitted, None when that has no bound. ``lookups`` join the static
    relations to the result of the stages, in order; empty when every relation is static.
    ``passes`` matters only where there are branches. Under the method NATIVE the stages tell only
    in which order the streams are joined, and on which keys.

    ``watermarked`` are the streams that come with a watermark of Spark's own. Spark takes no second one
    after that, so MATCH_TIME then goes by the watermarks of the inputs; ``undated`` says why it cannot,
    empty where it can.
    """

    streams: tuple[StreamScan, ...]
    time_kind: TimeKind
    upper: UpperBounds
    branches: tuple[UpperBounds, ...]
    stages: tuple[Stage, ...]
    match: frozenset[str]
    match_delay: int | None
    lookups: tuple[StaticJoin, ...] = ()
    passes: Passes = Passes.HULL
    method: Method = Method.MULTIWAY
    watermarked: tuple[int, ...] = ()
    undated: str = ""

    @property
    def staged(self) -> tuple[int, ...]:
        """The streams that the stages join; a single one needs no stage."""
        static = {each.stream for each in self.lookups}
        return tuple(stream for stream in range(len(self.streams)) if stream not in static)

    def with_stage(self, number: int, stage: Stage) -> "PhysicalPlan":
        """Return the plan with another stage in the place of one."""
        return replace(self, stages=(*self.stages[:number], stage, *self.stages[number + 1 :]))

    @property
    def streaming(self) -> bool:
        """Whether any input is a stream."""
        return any(stream.streaming for stream in self.streams)
