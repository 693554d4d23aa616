"""What a block is planned from, and what the steps of planning have made of it so far."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from wjoin.grammar.syntax import SelectBlock
from wjoin.planner.bind.binding import BoundSelect
from wjoin.planner.catalog import Relation, Types
from wjoin.planner.choose.layouts import UNKNOWN, LayoutRule
from wjoin.planner.choose.plan_candidates import Candidate, Weighing
from wjoin.planner.conditions.conjuncts import Filter
from wjoin.planner.conditions.predicate_calls import ReadCall, Trials
from wjoin.planner.cost.model import CostSettings
from wjoin.planner.cost.semijoin import Shipments
from wjoin.planner.plan.approximation import Approximation, LikelyJoin
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.shape.decompose import Decomposition
from wjoin.planner.shape.join_keys import EqualityClass, TypedEquality
from wjoin.planner.shape.shape import Shape
from wjoin.planner.shape.stages_of_joins import Index
from wjoin.planner.windows.window_graph import WindowGraph
from wjoin.udfs.predicate import Predicate


class NoWindows(Exception):  # noqa: N818 (it is no error: the join is Spark's)
    """A block without a window clause has no condition between event times."""


@dataclass(frozen=True)
class Request:
    """One block of ``text``, and what is known around it.

    ``relations`` are the FROM items' in order, ``parameters`` the values of named parameters,
    ``placeholder`` what stands after FROM in the edited text, ``settings`` session defaults by
    the name of the hint that overrides them, ``costs`` what plans are weighed with, ``layouts``
    which layouts of state a join of streams may have, ``predicates`` those that the statement may call,
    by their names in lower case, ``trials`` what can try those that do not declare what they cost.
    ``from_where``: whether conditions between event times are windows. Of a block without a window clause
    ``dated`` are the relations that stream or are declared.
    """

    text: str
    block: SelectBlock
    relations: Sequence[Relation]
    types: Types
    placeholder: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    costs: CostSettings = field(default_factory=CostSettings)
    layouts: LayoutRule = UNKNOWN
    predicates: Mapping[str, Predicate] = field(default_factory=dict)
    trials: Trials | None = None
    from_where: bool = True
    dated: frozenset[int] | None = None


@dataclass(frozen=True)
class Planning:
    """A block that is bound, on its way to a plan; each step returns it with what it adds.

    ``whole`` are the sequences of joins on all that links their streams, ``drafts`` those to plan, ``shapes``
    their plans, ``weighings`` those of them that may be taken. The first of the ``candidates`` is taken, its
    streams at sites as ``shipments`` say. ``approximate``: what is asked of it if it may lose results;
    ``likely``: the same where all its streams are at sites, ``all_rows``: that all rows come from there.
    """

    request: Request
    bound: BoundSelect
    graph: WindowGraph
    static: frozenset[int]
    calls: tuple[ReadCall, ...]
    equalities: tuple[TypedEquality, ...]
    classes: tuple[EqualityClass, ...]
    filters: tuple[Filter, ...]
    indexes: tuple[Index, ...]
    whole: tuple[Decomposition, ...] = ()
    drafts: tuple[Decomposition, ...] = ()
    hopping: bool = False
    shapes: tuple[Shape, ...] = ()
    weighings: tuple[Weighing, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    shipments: tuple[Shipments, ...] = ()
    approximate: Approximation | None = None
    likely: LikelyJoin | None = None
    all_rows: bool = False

    @property
    def streaming(self) -> bool:
        """Whether any relation is a stream."""
        return any(each.streaming for each in self.request.relations)

    @property
    def staged(self) -> bool:
        """Whether wjoin's own stages decide joins that are not inner ones: Spark has those of tables."""
        return self.streaming or self.bound.tree.ours

    def plans(self) -> Iterator[PhysicalPlan]:
        """Yield the plans that have been made: of every shape, and that which is taken."""
        yield from (each.physical for each in self.shapes)
        yield from (each.plan for each in self.candidates[:1])
