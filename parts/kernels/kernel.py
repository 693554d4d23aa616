"""What a kernel is: the facts by which plans are made, weighed and explained, and the search itself."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from wjoin.parts.kernels.candidates import Candidates, Search
from wjoin.parts.kernels.runs import BoolArray, Int64Array, Order, SortedRun


@dataclass(frozen=True)
class StepEstimate:
    """What is expected of a step of a probe to one more input, per unit of time.

    ``number``: that of the input. ``searches``: tuples that look for partners. Rows that they meet:
    ``window``, all that the input holds; ``period``, those in their time range; ``matching``, those of
    their key among them; ``of_key``, those of their key at any time; ``banded`` and ``near``, those of
    ``of_key`` and of ``matching`` that the band of the input's order allows. ``tested``: conditions that are
    tested on a pair before it is made, on blocks of rows that meet many of the same. ``checked``: what passes
    all checks but predicates, ``tuples``: those, too. ``predicate_seconds``: what the predicates take that
    are called for the step.
    """

    number: int
    searches: float
    window: float
    period: float
    matching: float
    of_key: float
    banded: float
    near: float
    tested: int
    checked: float
    tuples: float
    predicate_seconds: float = 0.0


@dataclass(frozen=True)
class Refusal:
    """Why a kernel cannot be used in a stage, and what to do."""

    reason: str
    remedy: str


class Kernel(ABC):
    """A way to find candidates in one worker's windows; it has no state.

    ``name`` is that of hints, settings, EXPLAIN and checkpoints. ``words``: how it finds the partners of a
    row, with a key and without; ``meaning``: the same in a picture of the plan. ``search_seconds``: what a
    tuple costs that meets a run without a row near it, as most are, and ``pair_seconds`` a pair of a tuple
    and a row that is compared, in seconds of one core, unless ``wjoin calibrate`` has measured them.
    ``order`` is that of the runs that it searches; tuples come in it, too.
    """

    name: str
    words: tuple[str, str]
    meaning: str
    search_seconds: float
    pair_seconds: float
    order: Order

    sweeps = False
    """Whether tuples without a partner on some input are dropped before any are joined."""

    timely = False
    """Whether the rows of a key that it compares stand in the order of their times, all in the time range."""

    selective = False
    """Whether all that it compares agrees, so that every comparison makes a tuple."""

    everywhere = True
    """Whether a hint for it must hold for every stage; else the others take what they like."""

    def refusal(self, *, keyed: bool, indexed: bool) -> Refusal | None:
        """Return why a stage cannot have it, None where it can.

        ``keyed``: its inputs meet on a key. ``indexed``: a band orders the rows of some input.
        """
        return None

    @abstractmethod
    def compared(self, step: StepEstimate) -> float:
        """Return the pairs of a tuple and a row that a step compares."""

    def made(self, step: StepEstimate) -> float:
        """Return the tuples that a step makes, on which conditions are then checked."""
        return step.matching

    def tested(self, step: StepEstimate) -> int:
        """Return how many conditions are tested on each pair before a tuple is made of it: in blocks of rows
        that stand together by time."""
        return step.tested if self.order is Order.TIME else 0

    @abstractmethod
    def candidates(self, run: SortedRun, search: Search) -> Candidates:
        """Return the rows to compare with each tuple."""

    @abstractmethod
    def agree(self, run: SortedRun, search: Search, tuples: Int64Array, rows: Int64Array) -> BoolArray | None:
        """Return which pairs of a tuple and a candidate have one code and times in range, None for all."""
