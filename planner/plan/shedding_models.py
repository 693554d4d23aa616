"""How a join sheds rows when it is overloaded: by which model each stream, and on what a row is judged."""

from dataclasses import dataclass, field

from wjoin.grammar.errors import WJoinError
from wjoin.planner.cost.shed_share import OFF, Thresholds, lost_share, settled_ratio, shedding_ratio
from wjoin.planner.plan.block_columns import meeting_name
from wjoin.planner.plan.physical import Method, PhysicalPlan, TimeKind
from wjoin.planner.plan.stage_kinds import Scanned


@dataclass(frozen=True)
class SheddingRules:
    """What a session says of overload: the ``model`` of streams that say nothing, and what limits the state.

    ``memory``: bytes that the state of a join may have, ``disk``: bytes of its files; None for no limit.
    ``interval``: seconds that a micro-batch may take without being too slow.
    """

    model: str = OFF
    thresholds: Thresholds = field(default_factory=Thresholds)
    memory: int | None = None
    disk: int | None = None
    interval: float = 1.0


@dataclass(frozen=True)
class StreamShedding:
    """How stream ``number`` is shed: by a ``model``, its rows judged by the key of ``stage``, None: each by
    itself."""

    number: int
    model: str
    stage: int | None

    @property
    def judged(self) -> tuple[str, int]:
        """What is kept or shed as one."""
        return ("row of", self.number) if self.stage is None else ("key of", self.stage)


@dataclass(frozen=True)
class Shedding:
    """How a join sheds. ``streams`` are those that it reads from sources.

    ``reach``: how much later than a row, in the unit of event time, the watermarks are past which nothing
    meets it, None for never. ``clocked``: whether event times are times of a clock. ``fixed``: seconds that
    a micro-batch costs without rows.
    """

    rules: SheddingRules
    streams: tuple[StreamShedding, ...]
    reach: int | None
    clocked: bool
    fixed: float

    @property
    def sheds(self) -> bool:
        """Whether a stream is shed when it is too much."""
        return any(each.model != OFF for each in self.streams)

    @property
    def refuses(self) -> bool:
        """Whether a state above its limit ends the query: it goes on growing if some stream is not shed."""
        return any(each.model == OFF for each in self.streams)

    @property
    def watches(self) -> bool:
        """Whether anything is measured before a micro-batch."""
        return self.sheds or self.rules.memory is not None or self.rules.disk is not None

    def ratios(self, state: float, demand: float) -> dict[int, float]:
        """Return the share of its rows that each stream sheds, by its number.

        ``state`` is the utilisation of the state, ``demand`` that of the time if nothing were shed.
        """
        limits = self.rules.thresholds
        return {
            each.number: max(
                shedding_ratio(each.model, state, limits), settled_ratio(each.model, demand, limits)
            )
            for each in self.streams
        }

    def lost(self, ratios: dict[int, float]) -> float:
        """Return the share of the results that is lost with such ratios."""
        return lost_share((each.judged, 1 - ratios[each.number]) for each in self.streams)


def shedding_of(plan: PhysicalPlan, rules: SheddingRules, fixed: float, *, files: bool) -> Shedding | None:
    """Return how a plan over streams sheds, None where nothing is shed or watched.

    ``files``: whether its state is in files. Raises WJoinError WJ724 where it cannot shed and is asked to.
    """
    if not plan.streaming:
        return None
    if reason := cannot_shed(plan, rules, files=files):
        raise WJoinError("WJ724", f"the join cannot shed rows: {reason}")
    if plan.method is Method.NATIVE or not plan.stages or not (files or rules.memory):
        return None
    streams = tuple(
        StreamShedding(
            each.source.stream,
            (plan.streams[each.source.stream].shedding or rules.model),
            None if meeting_name(each) is None else number,
        )
        for number, stage in enumerate(plan.stages)
        for each in stage.inputs
        if isinstance(each.source, Scanned) and plan.streams[each.source.stream].streaming
    )
    return Shedding(rules, streams, _reach(plan), plan.time_kind is TimeKind.TIMESTAMP, fixed)


def cannot_shed(plan: PhysicalPlan, rules: SheddingRules, *, files: bool) -> str:
    """Return why a plan cannot shed, empty where it can or is not asked to (see ``shedding_of``)."""
    asked = [scan.shedding or rules.model for scan in plan.streams if scan.streaming and scan.dated]
    if all(model == OFF for model in asked):
        return ""
    if plan.method is Method.NATIVE or not plan.stages:
        return "Spark's own joins run it"
    if any(scan.site is not None for scan in plan.streams):
        return "a stream is at a site"
    if plan.optional:
        return "a missing row makes other results of an outer or ASOF join"
    if plan.counted:
        return "a window of rows counts all of them"
    if not files:
        return "its state is in Spark's store, which nobody can see as a whole"
    return ""


def _reach(plan: PhysicalPlan) -> int | None:
    distances = [
        distance
        for stage in plan.stages
        for each in stage.inputs
        for retention in each.retention
        for _, distance in retention.distances
    ]
    known = [each for each in distances if each is not None]
    return max([0, *known]) if len(known) == len(distances) else None
