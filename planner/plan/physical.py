"""The physical plan: bounds × route × kernel for each stage, how streams come, and what becomes of results.

A plan is plain data. EXPLAIN prints it and the executor runs it; neither decides anything. What follows
from other parts of it (columns, retention, probes) is derived by ``plan.probes`` and ``plan.edges``.
Streams are numbered in FROM order. Times are microseconds, or the column's own unit
where event time is integral.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import Enum

from wjoin.grammar.join_kinds import JoinKind
from wjoin.grammar.syntax import Per
from wjoin.planner.plan.approximation import Approximation
from wjoin.planner.plan.checks import Operand
from wjoin.planner.plan.stage_kinds import Join, Stage
from wjoin.planner.windows.bounds import Windows


class TimeKind(Enum):
    """The Spark type family of the event-time columns of a join."""

    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"
    INTEGRAL = "integral"


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
    """Which rows of a stream at sites come: as many as miss a share of the results of ``error``, about, or so
    many for each there is (``messages``).

    Others are held there for ``hold`` behind the latest row; ``delay`` is the declared one of the stream.
    Rows are weighed by 2**``bits`` buckets of hashes of the key ``column``, in lower case; one of them has
    ``width`` bytes on the way.
    """

    error: float | None
    messages: float | None
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
    ``shedding``: by which model it is shed, None where the session says (``planner.plan.shedding_models``).
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


@dataclass(frozen=True)
class CountedWindow:
    """A window of rows: fewer than ``rows`` rows of ``stream`` are later than that of a tuple, and not later
    than the tuple's latest timestamp.

    ``condition``: only rows are counted for which it is true, in SQL over the alias; empty where all are.
    ``per``: which of them are, those with the same values of the codes ``keys`` of the stream.
    """

    stream: int
    rows: int
    condition: str = ""
    keys: tuple[int, ...] = ()
    per: Per = Per.STREAM


@dataclass(frozen=True)
class Output:
    """What a plan makes of its complete results.

    ``sink`` is the name by which a statement reads the rows. ``columns`` are the scan columns that it reads.
    Where there are ``windows``, a result must be inside one of them as a whole; all are inside those of the
    plan. ``optional`` are the streams of which a result need not have a row, ``lacked`` those of which WHERE
    lets none have one.
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
    lacked: frozenset[int] = frozenset()


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
