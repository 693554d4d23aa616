"""What a route is: the facts by which plans are made and explained, and who gets which rows."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from wjoin.parts.kernels.runs import Int64Array


class Role(IntEnum):
    """As what a worker gets rows: to keep them for later ones, to begin results with them, or both.

    ``PASSED``: neither; they are beyond what can join, and only counted. ``VISIT`` and ``COPY`` are PROBE and
    BOTH of rows that another worker gets, too, and counts. ``ALONE``: neither; they meet no row, and are
    results of an outer join by themselves. ``LATE``: neither; if they are late, they go to a sink.
    ``TRIAL`` is VISIT of rows that no summary has sent there: what they find would be lost.
    """

    PASSED = 0
    STORE = 1
    PROBE = 2
    BOTH = 3
    VISIT = 6
    COPY = 7
    ALONE = 8
    LATE = 16
    TRIAL = 34

    @property
    def stores(self) -> bool:
        """Whether the rows are kept for later ones."""
        return bool(self & Role.STORE)

    @property
    def probes(self) -> bool:
        """Whether the rows begin results."""
        return bool(self & Role.PROBE)

    @property
    def counts(self) -> bool:
        """Whether the worker is the one that counts the rows."""
        return self in (Role.PASSED, Role.PROBE, Role.BOTH, Role.ALONE)


@dataclass(frozen=True)
class Share:
    """Rows for one worker: its number, the numbers of the rows (None for all), and as what it gets them."""

    worker: int
    rows: Int64Array | None
    role: Role = Role.BOTH


@dataclass(frozen=True)
class Placement:
    """Where the rows of a stage lie: by which route, and by one with slices how these are cut and assigned.

    ``workers``: how many share the slices, None for all. ``length``: of a slice, in the plan's unit of time,
    or in that of the values of the band with the number ``band``; None where there are no slices, or until
    the windows have told. ``copies``: on how many workers each slice lies. ``bucket``: of the key codes whose
    rows are in slices, None for all. ``master``: the input that lies in slices, where a route copies the rows
    of the others to these.
    """

    route: str
    workers: int | None = None
    length: int | float | None = None
    copies: int = 1
    band: int | None = None
    bucket: int | None = None
    master: int = 0


@dataclass(frozen=True)
class Slicing:
    """The slices of a ``placement``, as the rows of one input of a stage see them.

    Rows that one of these can join lie from ``back`` before it to ``ahead`` after it, None for however far.
    ``column``: the scan column (stream, number) whose values are in slices, None for event time; ``slack``: 0
    for whole numbers, else the share of a value by which its reach is wider. ``sliced``: whether rows are
    kept by the worker of their slice; others are kept wherever they can reach a slice. ``visits``: whether
    sliced rows go where they are not kept, too. ``stored`` and ``probes``: whether sliced rows are kept at
    all, and whether they begin results, in a stage where inputs do not do both.
    """

    placement: Placement
    back: int | float | None
    ahead: int | float | None
    sliced: bool
    visits: bool
    column: tuple[int, int] | None = None
    slack: float = 0.0
    stored: bool = True
    probes: bool = True

    @property
    def length(self) -> int | float:
        """The length of a slice. Raises ValueError where there are none."""
        if self.placement.length is None:
            raise ValueError("the rows of a stage without slices lie by their keys")
        return self.placement.length


@dataclass(frozen=True)
class Slices:
    """The slices of rows by their numbers, int64 arrays: of the rows themselves, and the first and the last
    in their reach, which is none where the last is before the first."""

    rule: Slicing
    own: Int64Array
    first: Int64Array
    last: Int64Array

    def at(self, rows: Int64Array) -> "Slices":
        """Return those of some rows."""
        return Slices(self.rule, self.own[rows], self.first[rows], self.last[rows])


@dataclass(frozen=True)
class Visits:
    """Where rows live and which other nodes they visit, in an approximate join.

    ``home``: the node of each row, int64; ``chosen``: bool of (rows, nodes), whether a row visits a node;
    ``tried``: bool by row, whether it goes to all others as well, to learn what they would have missed.
    ``begun``: as what it comes to its home, None where it does not.
    """

    home: Int64Array
    chosen: npt.NDArray[np.bool_]
    tried: npt.NDArray[np.bool_]
    begun: Role | None = Role.BOTH


Codes = Int64Array | None
"""Key codes (int64[n]), None where there is no key."""

RowSlices = Slices | Visits | None
"""The slices of rows where a route has such, or what they visit."""


class Route(ABC):
    """Which worker stores a row, and which workers it visits; it has no state.

    ``name`` is that of EXPLAIN and of checkpoints; ``meaning`` says it in a picture of the plan,
    ``meant_for`` in an error what joins it is for.

    Nothing removes a result that is made twice. So for each row of a result exactly one worker that gets the
    row to probe must have those rows of it stored that came before. One worker counts a row, of several that
    get it to probe (``Role.counts``). Of rows that are kept only, or neither, exactly one worker gets each.
    """

    name: str
    meaning: str
    meant_for: str

    visits = False
    """Whether rows probe workers where they are not stored."""

    pairs = False
    """Whether it joins two inputs at a time: more of them meet one after the other."""

    hops = False
    """Whether a stage can have it whose partial results go on to other workers, where they are not kept."""

    slices = False
    """Whether it cuts event time, or values, into slices (``Slicing``)."""

    values = False
    """Whether it cuts the values of a band's columns, in place of event time."""

    heaviest = False
    """Whether it cuts the rows of the most frequent key only."""

    copies = False
    """Whether it keeps the rows of a slice on several workers."""

    homes = False
    """Whether each row of one input lies on one worker, to which all rows come that can meet it."""

    anywhere = False
    """Whether any worker may keep a row where the rows that can meet it visit every worker."""

    approximate = False
    """Whether results may be lost: it is taken where a statement asks for it only."""

    warning = ""
    """What the page of EXPLAIN warns of where a stage has this route."""

    @abstractmethod
    def applies(self, *, keyed: bool, inputs: int, near: bool) -> bool:
        """Return whether a stage of so many inputs can have it.

        ``keyed``: they meet on a key; ``near``: there are two, whose columns a band holds near each other.
        """

    def workers(self, partitions: int) -> int:
        """Return the number of workers, given that of shuffle partitions: all, unless a route says less."""
        return partitions

    @abstractmethod
    def shares(self, codes: Codes, times: Int64Array, workers: int, slices: RowSlices) -> Iterator[Share]:
        """Yield who gets which rows, by their key codes (None without a key) and event times, both int64, and
        their slices where the route has such, or what they visit.

        It must follow from these alone: Spark may repeat a task whose rows then come in another order.
        """


def by_worker(numbers: npt.NDArray[Any], workers: int) -> Iterator[tuple[int, Int64Array]]:
    """Yield each worker that some row is for, with the places of these rows, which ascend.

    ``numbers``: the worker of each row, whole numbers below ``workers``.
    """
    # Of numbers of 16 bits at the most, NumPy's stable sort counts.
    assigned = numbers.astype(np.min_scalar_type(workers - 1))
    order = np.argsort(assigned, kind="stable")
    edges = np.concatenate(([0], np.cumsum(np.bincount(assigned, minlength=workers))))
    for worker in np.flatnonzero(np.diff(edges)).tolist():
        yield worker, order[edges[worker] : edges[worker + 1]]
