"""EXPLAIN as a document: all that the renderers read, and what is written as JSON.

Times are microseconds (units of the column where event time is integral), None where there is no
bound; costs are seconds of one core per second of event time (per unit there, too).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

FORMAT = 2
"""Raised whenever a program that reads an older document could misread a newer one."""

INTEGRAL = "integral"


@dataclass(frozen=True)
class EstimateEntry:
    """A number that was estimated from, and its source: given, analyzed, measured or default."""

    value: float
    source: str


@dataclass(frozen=True)
class StreamEntry:
    """One FROM item.

    ``event_time`` is empty for a table that has none. ``undeclared``: rows can be late, and nobody has told
    how far. ``kept_for``: how much later than a row of it those of each other stream may be for it to be
    kept; empty where nothing is kept.
    ``unbounded``: the streams of which no window bounds how far they may be after it. ``columns`` are read by
    the rest of the statement, ``joined_by`` values that travel, too, and that only the join reads.
    ``idle_after``: the microseconds without a row after which nobody waits for it, None where others do.
    ``late_into``: the sink that its late rows go to, empty for none. ``kept_rows``: in words, the later rows
    until which a row is kept, empty where windows in time end that. ``ends``: times in a row of it, by the
    streams that it meets no row of after these.
    """

    alias: str
    relation: str
    event_time: str
    delay: int
    streaming: bool
    columns: tuple[str, ...]
    filters: tuple[str, ...]
    undeclared: bool
    kept_for: Mapping[str, int | None]
    unbounded: tuple[str, ...]
    joined_by: tuple[str, ...]
    idle_after: int | None = None
    late_into: str = ""
    kept_rows: str = ""
    ends: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class WindowEntry:
    """Bounds of how much later ``to`` is than ``from_``; ``alternative`` counts from 1, 0 is the hull."""

    from_: str
    to: str
    lo: int | None
    hi: int | None
    alternative: int


@dataclass(frozen=True)
class CompletedEntry(WindowEntry):
    """A window as all those of its alternative make it.

    ``origin`` says where its bounds come from, ``kind`` in one of the words of ``phrases.BoundOrigin``.
    """

    origin: str
    kind: str


@dataclass(frozen=True)
class ConstraintsEntry:
    """The windows as written and completed; ``hull`` are those around all alternatives, if there are some."""

    given: tuple[WindowEntry, ...]
    completed: tuple[CompletedEntry, ...]
    contradictory_alternatives: int
    hull: tuple[WindowEntry, ...]


@dataclass(frozen=True)
class ClassEntry:
    """Expressions that are equal in every result."""

    type: str
    parts: tuple[str, ...]


@dataclass(frozen=True)
class KeyEntry:
    """The values of a join key: how many different ones, and the share of the most frequent one.

    ``local``: of the pairs of rows with the same key, the share that live at one node, None where not known.
    """

    expressions: tuple[str, ...]
    distinct: EstimateEntry
    heaviest: EstimateEntry
    local: EstimateEntry | None = None


@dataclass(frozen=True)
class StatisticsEntry:
    """What is known of a stream; ``known`` is false where its declaration tells all of it."""

    alias: str
    rate: EstimateEntry
    width: EstimateEntry
    disorder: EstimateEntry
    selectivity: EstimateEntry
    keys: tuple[KeyEntry, ...]
    known: bool


Choice = str | tuple[str, ...] | None
"""What all stages have, or each of them; None without stages."""

Orders = tuple[tuple[str, ...], ...]
"""For each input the inputs that its new rows meet, itself first; empty where that is not fixed."""


@dataclass(frozen=True)
class CandidateEntry:
    """A plan that was weighed.

    ``plan`` tells it in the words of hints, ``words`` in plain ones. ``ranked`` says whether it could
    be taken by its cost, ``lost`` why it was not, empty for the one that was. Of an approximate join: the
    ``visits`` of a row to other nodes, and the share of the results that is ``missing``.
    """

    plan: str
    words: str
    ranked: bool
    method: str
    bounds: Choice
    route: Choice
    kernel: Choice
    passes: str
    order: tuple[Orders, ...]
    cost: float
    terms: Mapping[str, float]
    comparisons: float
    results: float
    shuffled_bytes: float
    state_rows: float
    state_bytes: float
    lost: str
    visits: float = 0.0
    missing: float = 0.0


@dataclass(frozen=True)
class FasterEntry:
    """A plan in plain ``words`` that is ``times`` as fast as the chosen one, and the state forbids.

    ``hint`` asks a SELECT for it, empty where none does. ``begun``: there is a checkpoint with other
    state, else it is not known whether there is one.
    """

    words: str
    times: float
    hint: str
    begun: bool


@dataclass(frozen=True)
class HopEntry:
    """What the rows of an input do in a hop.

    ``newest``: the stream whose new row has begun the partial results that they are, None for rows of one
    stream. ``meets``: the streams that they meet here. ``kept``: the streams whose new rows come to meet them
    here; ``before``: the hops, counted from 1, that keep them, too. ``passed_on``: whether they go to the
    next hop as they are. ``gathered``: whether they meet only what the same row has begun.
    """

    newest: str | None
    meets: tuple[str, ...]
    kept: tuple[str, ...]
    before: tuple[int, ...]
    passed_on: bool
    gathered: bool = False


@dataclass(frozen=True)
class InputEntry:
    """An input of a stage: a stream, or the result of the stage of that number, counted from 1.

    ``hashed``: the key is compared by a hash first. ``ordered_by``: what orders its rows besides time.
    ``hop`` is None where the stage is no hop.
    """

    members: tuple[str, ...]
    stage: int | None
    key: tuple[str, ...]
    kept_for: Mapping[str, int | None]
    hashed: bool
    ordered_by: str | None
    hop: HopEntry | None = None


@dataclass(frozen=True)
class BandEntry:
    """Bounds on the difference of two streams' columns, and the share of pairs that they keep.

    ``checked``: a check of the stage implies them.
    """

    condition: str
    lo: float | None
    hi: float | None
    keeps: EstimateEntry
    checked: bool


@dataclass(frozen=True)
class CallEntry:
    """A condition on a predicate: microseconds of a call for a pair, and the share of pairs that it keeps.

    ``tried`` says on what these were measured, or why they could not be; empty where nothing was tried.
    """

    condition: str
    cost_us: EstimateEntry
    keeps: EstimateEntry
    tried: str


@dataclass(frozen=True)
class PartEntry:
    """A part of a plan that could be another one."""

    name: str
    value: str
    meaning: str


@dataclass(frozen=True)
class LyingEntry:
    """What each drawn worker does with a row of an input: a word of ``phrases.Lying``, or nothing."""

    members: tuple[str, ...]
    workers: tuple[str, ...]


@dataclass(frozen=True)
class DealtEntry:
    """How slices of event time lie on workers, to be drawn; workers count from 1.

    ``slices``: the workers that keep the rows of each of some slices, one after the other. ``rows``: for each
    input, where a row near the end of slice ``place`` of these (from 1) goes. ``more``: whether there are
    more workers than are drawn.
    """

    slices: tuple[tuple[int, ...], ...]
    place: int
    rows: tuple[LyingEntry, ...]
    more: bool


@dataclass(frozen=True)
class StageEntry:
    """A join of two or more inputs.

    ``words`` say how it finds the partners of a row, ``classes`` are the numbers of the equality
    classes of its key, ``calls`` the conditions on predicates. ``parts`` are empty where Spark's own joins
    run it. ``warning`` is that of its route, empty where there is none; ``notes`` are sentences that every
    form of EXPLAIN shows, such as how its rows lie on several workers, and ``dealt`` is what can be drawn of
    that.
    """

    inputs: tuple[InputEntry, ...]
    bounds: str
    route: str
    kernel: str
    order: Orders
    bands: tuple[BandEntry, ...]
    words: str
    classes: tuple[int, ...]
    checks: tuple[str, ...]
    parts: tuple[PartEntry, ...]
    warning: str
    calls: tuple[CallEntry, ...]
    notes: tuple[str, ...]
    dealt: DealtEntry | None

    @property
    def gathers(self) -> bool:
        """Whether it puts together what rows have begun."""
        return any(each.hop is not None and each.hop.gathered for each in self.inputs)


@dataclass(frozen=True)
class JoinEntry:
    """A join of two that Spark runs itself; ``kept_for`` is for the rows of either side, ``on`` its key."""

    left: tuple[str, ...]
    right: tuple[str, ...]
    on: tuple[str, ...]
    checks: tuple[str, ...]
    kept_for: tuple[int | None, int | None]


@dataclass(frozen=True)
class LaterEntry:
    """A condition that Spark evaluates on the joined rows.

    ``unread``: what keeps the join from testing it before, empty where the join does.
    """

    condition: str
    unread: str


@dataclass(frozen=True)
class LookupEntry:
    """A static relation that Spark joins to the result of the stages; ``kind`` is empty of an inner join."""

    alias: str
    equalities: tuple[str, ...]
    checks: tuple[str, ...]
    kind: str


@dataclass(frozen=True)
class WayEntry:
    """A way to ship a stream from its site, and what it takes in a second of event time.

    ``shipping`` is full or partial, ``words`` say what that means; ``size`` in bytes, ``seconds`` of its
    link.
    """

    shipping: str
    words: str
    size: float
    messages: float
    seconds: float


@dataclass(frozen=True)
class ShipmentEntry:
    """How a stream travels from its site: the ways that were weighed, the chosen one first.

    ``matched``: the share of its rows that are in a result; ``latency`` in seconds, ``bandwidth`` in bytes a
    second.
    """

    alias: str
    ways: tuple[WayEntry, ...]
    matched: EstimateEntry
    latency: EstimateEntry
    bandwidth: EstimateEntry
    early: tuple[str, ...]
    late: tuple[str, ...]


@dataclass(frozen=True)
class ClosingEntry:
    """A stream that holds a group by MATCH_TIME() open until it has sent a row ``lag`` after its end."""

    alias: str
    lag: int


@dataclass(frozen=True)
class ShedEntry:
    """How a stream is shed: by a ``model``, whole values of the ``key`` as one, or single rows where that is
    empty; then ``heaviest`` is None, else the share of its rows that one value may have."""

    alias: str
    model: str
    key: tuple[str, ...]
    heaviest: EstimateEntry | None


@dataclass(frozen=True)
class OverloadEntry:
    """What happens to a join that gets more than it can work off.

    ``refused``: why it cannot shed rows, which it is asked to; empty where it can or need not. ``streams``
    are those that are shed, above a utilisation ``begins`` (τ1) at least a share ``base`` of their rows.
    ``tenth``: the share of the results that is lost where a tenth of these rows goes, ``tenth_by_row`` if
    these were single ones. ``memory`` and ``disk``: the bytes that the state and its files may have, None for
    no limit; ``ends``: whether the query ends above them.
    """

    refused: str
    streams: tuple[ShedEntry, ...]
    begins: float
    base: float
    tenth: float
    tenth_by_row: float
    memory: int | None
    disk: int | None
    ends: bool


@dataclass(frozen=True)
class Document:
    """The plan of a block.

    ``shared`` is what all ranked candidates pay alike, by term. ``unknown`` are the relations of which
    nothing is known, ``default_distinct`` the values that a column of theirs is taken to have.
    ``joins`` are those of a plan that Spark's own
    joins run. ``undated`` says why MATCH_TIME() has no watermark, empty where it has one or nothing
    asks for it; ``closing``: what closes a group by it. ``network``: how many times as long as joining them
    it takes to send rows to workers. ``worth_a_change``: the share by which a plan must be cheaper than a
    preferred one. ``overload`` is None where nothing is shed and nothing limits the state.
    """

    format: int
    time: str
    streams: tuple[StreamEntry, ...]
    constraints: ConstraintsEntry
    equality_classes: tuple[ClassEntry, ...]
    residual: tuple[str, ...]
    later: tuple[LaterEntry, ...]
    statistics: tuple[StatisticsEntry, ...]
    chosen: CandidateEntry
    candidates: tuple[CandidateEntry, ...]
    faster: FasterEntry | None
    shared: Mapping[str, float]
    unknown: tuple[str, ...]
    assumptions: tuple[str, ...]
    stages: tuple[StageEntry, ...]
    match_delay: int | None
    joins: tuple[JoinEntry, ...]
    lookups: tuple[LookupEntry, ...]
    laterals: tuple[str, ...]
    undated: str
    closing: tuple[ClosingEntry, ...]
    network: float
    default_distinct: float
    worth_a_change: float
    shipments: tuple[ShipmentEntry, ...]
    overload: OverloadEntry | None = None

    @property
    def unit(self) -> str:
        """The word for that of which rates and costs are told."""
        return "unit" if self.time == INTEGRAL else "second"

    @property
    def per(self) -> str:
        """What follows a count of rows to make it a rate."""
        return " per unit" if self.time == INTEGRAL else "/s"

    @property
    def streaming(self) -> bool:
        """Whether any input is a stream."""
        return any(each.streaming for each in self.streams)

    @property
    def native(self) -> bool:
        """Whether Spark's own joins of two run the plan."""
        return self.chosen.method == "native"

    @property
    def ranked(self) -> tuple[CandidateEntry, ...]:
        """The plans that could be taken by their cost, the chosen one first."""
        return tuple(each for each in self.candidates if each.ranked)

    @property
    def unranked(self) -> tuple[CandidateEntry, ...]:
        """The plans that only a hint takes."""
        return tuple(each for each in self.candidates if not each.ranked)
