"""The physical plan: bounds × route × kernel for each stage, how streams come, and what becomes of results.

A plan is plain data. EXPLAIN prints it and the executor runs it; neither decides anything. What follows
from other parts of it (columns, retention, probes) is derived by ``plan.probes`` and ``plan.edges``.
Streams are numbered in FROM order. Times are microseconds, or the column's own unit
where event time is integral.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

from wjoin.grammar.join_kinds import JoinKind, Nearest
from wjoin.parts.routes.route import Placement
from wjoin.planner.plan.approximation import Approximation
from wjoin.planner.plan.checks import Band, Check, Comparison, Condition, Operand, of_kind
from wjoin.planner.plan.steps import Probe
from wjoin.planner.windows.bounds import Windows


class TimeKind(Enum):
    """The Spark type family of the event-time columns of a join."""

    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"
    INTEGRAL = "integral"


class Bounds(Enum):
    """Which time range of the other streams a partial tuple is compared with (see ``planner.plan.reach``)."""

    EXACT = "exact"
    LCA = "lca"
    GCA = "gca"


class Passes(Enum):
    """How a disjunction of windows runs (W-join 2002, 5.2.1).

    HULL: one pass inside the edge-wise hull of the alternatives, whose results must satisfy one
    of them. UNION: a pass for each alternative; what an earlier one has found does not count again.
    """

    HULL = "hull"
    UNION = "union"


class Shipping(Enum):
    """What comes of a stream from its site: whole rows, or partial ones first.

    PARTIAL: the columns that the join reads; the others of those rows that are in results come when these
    leave the stages (Semijoin streams, section 4.2). HELD: no row comes but those that a stage asks for,
    by the keys of what they meet there (``planner.choose.held_streams``). LIKELY: rows come whole where they
    probably match, in a join that may lose results (``planner.choose.likely``).
    """

    FULL = "full"
    PARTIAL = "partial"
    HELD = "held"
    LIKELY = "likely"


class Method(Enum):
    """What joins the streams: wjoin's stages, or a chain of Spark's own joins of two."""

    MULTIWAY = "multiway"
    NATIVE = "native"


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
class LikelyRows:
    """Which rows of a stream at sites come: as many as miss a share of the results of ``error``, about.

    Others are held there for ``hold`` behind the latest row; ``delay`` is the declared one of the stream.
    Rows are weighed by 2**``bits`` buckets of hashes of the key ``column``, in lower case; one of them has
    ``width`` bytes on the way.
    """

    error: float
    hold: int
    delay: int
    column: str
    bits: int
    width: float


@dataclass(frozen=True)
class SiteScan:
    """How a stream travels from its site.

    ``number`` is the scan column with the number that a row has there: its complement where the row came
    partially. ``late`` are the scan columns that such a row lacks, and that only results need; ``early`` the
    names of the relation's columns that are read before. ``likely``: which rows come, None for all.
    """

    number: int
    late: tuple[int, ...]
    early: tuple[str, ...]
    shipping: Shipping = Shipping.FULL
    likely: LikelyRows | None = None


@dataclass(frozen=True)
class StreamScan:
    """What is read of one stream. ``codes`` are its join keys, one for each stage that uses one.

    ``event_time`` is empty for a table without one, which is in no window and no stage.
    ``ahead``: how many microseconds later than its micro-batch a row of it may be, None where that is not
    declared (see ``planner.planning.ahead``). ``site``: how it travels, None where it is not at a site.
    ``shedding``: by which model it is shed, None where it is as the session says (``planner.plan.shedding``).
    ``meets``: conditions without which a row meets no other, but is in the results of an outer join.
    ``idle_after``: without a row for so many microseconds it is silent, None where it never is.
    ``late_into`` is the sink that its late rows go to, empty for none, and ``late`` what is read for that.
    ``home``: the number of the code that says at which node a row lives, None where none does.
    """

    alias: str
    event_time: str
    delay: int
    filters: tuple[str, ...]
    columns: tuple[ScanColumn, ...]
    codes: tuple[KeyCode, ...]
    streaming: bool
    ahead: int | None = None
    site: SiteScan | None = None
    shedding: str | None = None
    meets: tuple[str, ...] = ()
    idle_after: int | None = None
    late_into: str = ""
    late: tuple[ScanColumn, ...] = ()
    home: int | None = None

    @property
    def dated(self) -> bool:
        """Whether its rows have an event time."""
        return bool(self.event_time)


@dataclass(frozen=True)
class Retention:
    """How long a row is kept for a stream of another input: until that stream's watermark has passed the
    least of ``t_member + distance``, for ever where all are None."""

    stream: int
    distances: tuple[tuple[int, int | None], ...]

    @property
    def ends(self) -> bool:
        """Whether a row is kept for a time only."""
        return any(distance is not None for _, distance in self.distances)


@dataclass(frozen=True)
class Scanned:
    """The rows of a stream."""

    stream: int


@dataclass(frozen=True)
class Joined:
    """The results of the earlier stage with the number ``stage``."""

    stage: int
    members: tuple[int, ...]


@dataclass(frozen=True)
class PassedOn:
    """The rows of a stream, which the hop before has passed on."""

    stage: int
    stream: int


@dataclass(frozen=True)
class Partial:
    """Partial results of the hop before, whose newest row each is of the stream ``begun_by``."""

    stage: int
    members: tuple[int, ...]
    begun_by: int


@dataclass(frozen=True)
class Pairs:
    """New rows of the stream ``begun_by``, each with one row of another stream that a hop has found for it.

    They come with the number of the new row, on which those that it has begun meet.
    """

    stage: int
    begun_by: int
    other: int


Source = Scanned | Joined | PassedOn | Partial | Pairs
"""What comes to a stage along an edge."""


@dataclass(frozen=True)
class StageEdge:
    """What comes to one input of a stage, and what becomes of it there.

    ``key`` is (stream, number of its code), None where the stage has no equality. ``columns`` are the columns
    of its blocks: what this stage, the next ones and the outputs read of the members. ``stored``: whether
    its rows are kept for the rows of other inputs, and ``retention`` how long. ``index`` is the band that
    orders its rows for a kernel that looks for values, None where none does.
    """

    source: Source
    key: tuple[int, int] | None = None
    index: Band | None = None
    columns: tuple[str, ...] = ()
    stored: bool = True
    retention: tuple[Retention, ...] = ()

    @property
    def stage(self) -> int | None:
        """The number of the stage that it comes from, None where a stream is scanned."""
        return None if isinstance(self.source, Scanned) else self.source.stage

    @cached_property
    def members(self) -> tuple[int, ...]:
        """The streams whose rows each of its tuples is made of."""
        match self.source:
            case Scanned(stream) | PassedOn(_, stream):
                return (stream,)
            case Joined(_, members) | Partial(_, members):
                return members
            case Pairs(_, begun_by, other):
                return begun_by, other

    @property
    def newest(self) -> tuple[int, ...]:
        """The streams whose earliest row tells which of two new tuples is later, and meets the other."""
        return (self.source.begun_by,) if isinstance(self.source, Partial | Pairs) else self.members


@dataclass(frozen=True)
class _Common:
    """What every kind of stage has.

    ``placement`` says which workers a row comes to, ``kernels`` how candidates are found: the first of
    them by the steps, or by each worker the one that suits its rows (``wjoin.parts``). ``checks`` are
    all that can be checked here; predicates come last, those to call first before others.
    There is a probe for each input whose new rows begin results, and for each pass over the windows; two
    where rows visit several workers.
    """

    inputs: tuple[StageEdge, ...]
    bounds: Bounds
    placement: Placement
    kernels: tuple[str, ...]
    checks: tuple[Check, ...] = ()
    probes: tuple[Probe, ...] = ()

    def __post_init__(self) -> None:
        if len(self.inputs) < 2:
            raise ValueError("a stage joins two or more inputs")
        for each in self.checks:
            if not each.streams <= set(self.members):
                raise ValueError("a condition names a stream that is not in the stage")

    @property
    def members(self) -> tuple[int, ...]:
        """The streams of all inputs, in input order."""
        return tuple(dict.fromkeys(member for each in self.inputs for member in each.members))

    @property
    def bands(self) -> tuple[Band, ...]:
        """The checks by which kernels can search, in the order of their numbers."""
        return of_kind(self.checks, Band)

    @property
    def keyed(self) -> bool:
        """Whether the inputs meet on a key, or on the row that has begun them."""
        return all(each.key is not None or isinstance(each.source, Pairs) for each in self.inputs)

    @property
    def indexed(self) -> bool:
        """Whether a band orders the rows of some input for a kernel that looks for values."""
        return any(each.index is not None for each in self.inputs)


@dataclass(frozen=True)
class Gate:
    """A condition of ON on what comes to one input of a join: a tuple of which it is not true meets no other.

    ``text`` is the same in SQL.
    """

    check: Comparison | Condition
    text: str


@dataclass(frozen=True)
class Join(_Common):
    """A join of two or more inputs, each of which meets all others, on one set of workers.

    ``kind``: what becomes of rows of two inputs without a partner; ``on`` are then the conditions of ON, in
    SQL over their aliases. In a tree of joins not all of which are inner ones it has ``windows`` of its own,
    and of a tuple that lacks a row of the streams ``asked`` it knows that it meets no other; nor does one of
    which one of ``gates`` is not true. Where there are ``alternatives``, what meets must be inside one
    of these windows, too. ``lags``: how much earlier than the watermarks that it waits for its results may
    be. ``nearest``: which row of the second input an ASOF JOIN takes of one of the first; of several rows of
    that instant the least one by the columns ``tied``. ``timed_by`` is the stream whose times are compared
    with those of the second input, there of its first stream.
    """

    kind: JoinKind = JoinKind.INNER
    on: tuple[str, ...] = ()
    windows: Windows | None = None
    asked: frozenset[int] = frozenset()
    gates: tuple[Gate, ...] = ()
    lags: tuple[Retention, ...] = ()
    nearest: Nearest | None = None
    tied: tuple[Operand, ...] = ()
    timed_by: int = 0
    alternatives: tuple[Windows, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if sum(len(each.members) for each in self.inputs) != len(self.members):
            raise ValueError("a stage joins inputs with distinct streams")

    def chains(self, number: int) -> tuple[tuple[int, ...], ...]:
        """Return the others: with one after the other new rows of an input make results."""
        if self.nearest is not None and number > 0:
            # No new row of the second stream begins a result: those of the first wait for it.
            return ()
        return (tuple(other for other in range(len(self.inputs)) if other != number),)


@dataclass(frozen=True)
class Hop(_Common):
    """A stage whose inputs each meet only some of the others (PSP 2009, section 4.1), without a key.

    What they make goes on to the next one, where it is not kept, and so do rows that are kept there.
    ``meets``: by input those whose rows its new rows meet there, each by itself.
    """

    meets: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        for each, met in zip(self.inputs, self.meets, strict=True):
            if any(set(each.members) & set(self.inputs[other].members) for other in met):
                raise ValueError("in a hop, rows meet those of streams that they have none of yet")

    def chains(self, number: int) -> tuple[tuple[int, ...], ...]:
        """Return the inputs with each of which new rows of input ``number`` make partial results."""
        return tuple((other,) for other in self.meets[number])


@dataclass(frozen=True)
class Gather(_Common):
    """Puts the pairs together that one new row has begun in the hop before, and keeps nothing."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(isinstance(each.source, Pairs) for each in self.inputs):
            raise ValueError("pairs that one row has begun come together, and no others")

    def chains(self, number: int) -> tuple[tuple[int, ...], ...]:
        """Return with which others the pairs of an input make results: the first ones of a row with all."""
        own = [place for place, each in enumerate(self.inputs) if each.newest == self.inputs[number].newest]
        return (tuple(own[1:]),) if own[0] == number else ()


Stage = Join | Hop | Gather
"""A step of a plan that many workers share: what it makes of its inputs, on which workers, and how."""


def windows_of(plan: "PhysicalPlan", stage: Stage) -> Windows:
    """Return the windows between the streams of a stage."""
    own = stage.windows if isinstance(stage, Join) else None
    return plan.windows if own is None else own


def decides_at_once(plan: "PhysicalPlan", number: int) -> bool:
    """Return whether a stage must know itself what meets: what has no partner is a result there, or later."""
    own = plan.stages[number]
    if isinstance(own, Join) and own.kind is not JoinKind.INNER:
        return True
    made = number
    for place, stage in enumerate(plan.stages):
        side = next((n for n, each in enumerate(stage.inputs) if each.stage == made), None)
        if place <= made or side is None or not isinstance(stage, Join):
            continue
        if 1 - side in stage.kind.preserved or (side == 1 and stage.kind.asof):
            return True
        made = place
    return False


def meeting(stage: Stage, number: int) -> list[int]:
    """Return the inputs of a stage whose new rows meet those of input ``number``."""
    return [
        other for other in range(len(stage.inputs)) if any(number in chain for chain in stage.chains(other))
    ]


@dataclass(frozen=True)
class CountedWindow:
    """A window of rows: fewer than ``rows`` rows of ``stream`` are later than that of a tuple, and not later
    than the tuple's latest timestamp.

    ``condition``: only rows are counted for which it is true, in SQL over the alias; empty where all are.
    ``keys``: only those with the same values of these codes of the stream, empty where all are.
    """

    stream: int
    rows: int
    condition: str = ""
    keys: tuple[int, ...] = ()


@dataclass(frozen=True)
class Output:
    """What a plan makes of its complete results.

    ``sink`` is the name by which a statement reads the rows. ``columns`` are the scan columns that it reads.
    Where there are ``windows``, a result must be inside one of them as a whole; all are inside those of the
    plan. ``optional`` are the streams of which a result need not have a row.
    ``history``: whether it has the results among the rows that a state had before, too, once.
    ``match`` names the match functions that the statement uses (``time``, ``start``, ``span``).
    ``match_delay`` is how far MATCH_TIME of a result may lie behind the greatest one already emitted, None
    when that has no bound; ``undated`` says why it has no watermark, empty where it can have one.
    """

    sink: str
    columns: tuple[Operand, ...]
    windows: tuple[Windows, ...] = ()
    match: frozenset[str] = frozenset()
    match_delay: int | None = None
    undated: str = ""
    optional: frozenset[int] = frozenset()
    history: bool = False


@dataclass(frozen=True)
class StaticJoin:
    """A join of the rows made so far with static relation ``stream``, which Spark's own join does.

    ``equalities`` and ``comparisons`` are conditions in SQL over the aliases that link it to the
    streams before it; the bounds of the windows between them hold as well. A static relation is
    complete: nothing of it is kept, and nothing is kept for it. Where not all joins are inner ones it has
    ``windows`` of its own, those of its conditions; None stands for those of the plan. Where there are
    ``alternatives``, a row is inside one of these, too.
    """

    stream: int
    equalities: tuple[str, ...]
    comparisons: tuple[str, ...]
    kind: JoinKind = JoinKind.INNER
    windows: Windows | None = None
    alternatives: tuple[Windows, ...] = ()


@dataclass(frozen=True)
class PhysicalPlan:
    """A whole W-join.

    ``windows`` is the closure of the window graph (the hull of the branches of a
    disjunction); ``branches`` the closures that a result must satisfy one of, empty for a
    single conjunction. ``passes`` matters only where there are branches. ``lookups`` join the static
    relations to the result of the stages, in order; empty when every relation is static.
    Under the method NATIVE the stages tell only in which order the streams are joined, and on which keys.

    ``watermarked`` are the streams that come with a watermark of Spark's own. Spark takes no second one
    after that, so MATCH_TIME then goes by the watermarks of the inputs. ``begun`` is the plan that has begun
    the state, where that is another one (``planner.sets.changed_join``).

    ``counted`` are the windows of rows, and ``asked`` by alternative the numbers of those that a result must
    be inside of; one alternative where there are no ``branches``.

    ``approximate``: what is asked of an approximate join, None where all results are made.
    """

    streams: tuple[StreamScan, ...]
    time_kind: TimeKind
    windows: Windows
    branches: tuple[Windows, ...]
    stages: tuple[Stage, ...]
    outputs: tuple[Output, ...]
    lookups: tuple[StaticJoin, ...] = ()
    passes: Passes = Passes.HULL
    method: Method = Method.MULTIWAY
    watermarked: tuple[int, ...] = ()
    begun: "PhysicalPlan | None" = None
    counted: tuple[CountedWindow, ...] = ()
    asked: tuple[tuple[int, ...], ...] = ()
    approximate: Approximation | None = None

    @property
    def optional(self) -> frozenset[int]:
        """The streams of which a result of some output need not have a row."""
        return frozenset().union(*(each.optional for each in self.outputs))

    @property
    def kind(self) -> JoinKind:
        """The kind of the first join that is not an inner one, INNER where all are."""
        kinds = (stage.kind for stage in self.stages if isinstance(stage, Join))
        return next((kind for kind in kinds if kind is not JoinKind.INNER), JoinKind.INNER)

    @property
    def hidden(self) -> frozenset[int]:
        """The streams of stages of whose rows no result has one, only whether there is one."""
        joins = (stage for stage in self.stages if isinstance(stage, Join) and stage.kind.one_sided)
        return frozenset(stream for stage in joins for stream in stage.inputs[1].members)

    @property
    def tree(self) -> bool:
        """Whether it has several joins that are not all inner ones."""
        return any(isinstance(stage, Join) and bool(stage.asked) for stage in self.stages)

    @property
    def waits(self) -> bool:
        """Whether some results wait until nothing can change them: rows without a partner, and counts."""
        kinds = (isinstance(stage, Join) and stage.kind.waits for stage in self.stages)
        return bool(self.counted) or any(kinds)

    @property
    def asof(self) -> bool:
        """Whether some stage is an ASOF join."""
        return any(isinstance(stage, Join) and stage.nearest is not None for stage in self.stages)

    def needs(self, streams: Collection[int]) -> bool:
        """Return whether every result has rows of some streams, which come together."""
        return not any(each.optional.issuperset(streams) for each in self.outputs)

    @property
    def apart(self) -> bool:
        """Whether each alternative of the windows has a pass of its own."""
        return bool(self.branches) and self.passes is Passes.UNION

    @property
    def staged(self) -> tuple[int, ...]:
        """The streams that the stages join; a single one needs no stage."""
        static = {each.stream for each in self.lookups}
        return tuple(stream for stream in range(len(self.streams)) if stream not in static)

    def with_stage(self, number: int, stage: Stage) -> "PhysicalPlan":
        """Return the plan with another stage in the place of one."""
        return replace(self, stages=(*self.stages[:number], stage, *self.stages[number + 1 :]))

    def staged_columns(self, output: Output) -> list[Operand]:
        """Return the columns of an output that come out of the stages."""
        return [each for each in output.columns if each[0] in self.staged]

    @property
    def telling(self) -> tuple[int, ...]:
        """The streams whose late rows are told, and go to a sink."""
        return tuple(number for number, scan in enumerate(self.streams) if scan.late)

    @property
    def untelling(self) -> "PhysicalPlan":
        """The same plan whose stages tell no late rows."""
        return replace(self, streams=tuple(replace(scan, late_into="", late=()) for scan in self.streams))

    @property
    def streaming(self) -> bool:
        """Whether any input is a stream."""
        return any(stream.streaming for stream in self.streams)

    @property
    def clocked(self) -> bool:
        """Whether its workers need the clock of the micro-batches: a stream of it may be silent."""
        return self.streaming and any(each.idle_after is not None for each in self.streams)

    @property
    def ends_earlier(self) -> bool:
        """Whether rows wait in a later stage for streams of earlier ones, which end with all streams."""
        joins = (stage for stage in self.stages if isinstance(stage, Join) and stage.asked)
        waiting = ((each, (0,) if each.kind.asof else each.kind.preserved) for each in joins)
        sides = any(each.inputs[1 - side].stage is not None for each, own in waiting for side in own)
        return sides or (bool(self.counted) and len(self.stages) > 1)

    @property
    def asks_later(self) -> bool:
        """Whether a stage goes by how far streams have come at later ones, when they are silent or end."""
        return self.clocked or self.ends_earlier
