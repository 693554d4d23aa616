"""The kinds of stages of a plan: what comes to each along its edges, and which of its rows meet."""

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from wjoin.grammar.join_kinds import JoinKind, Nearest
from wjoin.parts.routes.route import Placement
from wjoin.planner.plan.checks import Band, Check, Comparison, Condition, Operand, of_kind
from wjoin.planner.plan.steps import Probe
from wjoin.planner.windows.bounds import Windows


class Bounds(Enum):
    """Which time range of the other streams a partial tuple is compared with (see ``planner.plan.reach``)."""

    EXACT = "exact"
    LCA = "lca"
    GCA = "gca"


@dataclass(frozen=True)
class Retention:
    """How long a row is kept for a stream of another input: until that stream's watermark has passed the
    least of ``t_member + distance``, for ever where all are None.

    ``until`` are columns of its block with times that it says itself, after which it meets none of them.
    """

    stream: int
    distances: tuple[tuple[int, int | None], ...]
    until: tuple[str, ...] = ()

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
    of these windows, too, and of the windows of rows that ``counted`` has for that one. ``lags``: how much
    earlier than the watermarks that it waits for its results may be. ``nearest``: which row of the second
    input an ASOF JOIN takes of one of the first; of several rows of that instant the least one by the
    columns ``tied``. ``timed_by`` is the stream whose times are compared with those of the second input,
    there of its first stream.
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
    counted: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.counted and len(self.counted) != len(self.alternatives):
            raise ValueError("each alternative of a stage has its own windows of rows")
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


def meeting(stage: Stage, number: int) -> list[int]:
    """Return the inputs of a stage whose new rows meet those of input ``number``."""
    return [
        other for other in range(len(stage.inputs)) if any(number in chain for chain in stage.chains(other))
    ]
