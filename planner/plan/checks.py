"""What a stage checks of the rows of several streams."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

from wjoin.planner.catalog import Estimate, Origin
from wjoin.planner.conditions.expressions import TURNED, Call, Expression, Input

Operand = tuple[int, int]
"""A scan column: the stream, and the number of the column."""


class Check(ABC):
    """A check of the rows of several streams.

    ``decides``: whether the join alone checks it. The others only save work, as what implies them is checked
    besides: by Spark, or by another check.
    """

    decides: ClassVar[bool] = False

    @property
    @abstractmethod
    def columns(self) -> tuple[Operand, ...]:
        """The scan columns that it reads."""

    @property
    def streams(self) -> frozenset[int]:
        """The streams whose rows it is about."""
        return frozenset(stream for stream, _ in self.columns)

    @property
    def tested(self) -> bool:
        """Whether tuples are tested by it; else it only tells where to search."""
        return True


@dataclass(frozen=True)
class Comparison(Check):
    """``left operator right`` on scan columns of one integral, date or timestamp type.

    A NULL on either side is false.
    """

    decides = True

    left: Operand
    operator: str
    right: Operand
    type: str

    @property
    def columns(self) -> tuple[Operand, ...]:
        """Both sides."""
        return (self.left, self.right)

    @property
    def directed(self) -> tuple[Operand, str, Operand]:
        """Left, operator and right with the column of the earlier stream on the left, however written."""
        if self.left < self.right:
            return self.left, self.operator, self.right
        return self.right, TURNED[self.operator], self.left

    @property
    def expression(self) -> Expression:
        """The comparison over its columns."""
        return Call(self.operator, (Input(0, self.type), Input(1, self.type)), "boolean")


@dataclass(frozen=True)
class Band(Check):
    """``low <= left - right <= high`` on scan columns of two streams, None where a side is open.

    It holds for every result, and a kernel may search by it: the conditions that imply it
    are checked as well (by comparisons of the stage where ``checked``). ``slack``: 0 for whole
    numbers, days and microseconds; else the share of a value by which the bounds are wider for it.
    ``share``: what it keeps of all pairs.
    """

    left: Operand
    right: Operand
    low: int | float | None
    high: int | float | None
    slack: float
    checked: bool
    share: Estimate = field(default=Estimate(1.0, Origin.DEFAULT), compare=False)

    @property
    def columns(self) -> tuple[Operand, ...]:
        """Both sides."""
        return (self.left, self.right)

    @property
    def tested(self) -> bool:
        """Whether no comparison of the stage implies it."""
        return not self.checked


@dataclass(frozen=True)
class Condition(Check):
    """A condition over scan columns, those of its inputs; Spark evaluates it on the results as well.

    Tuples for which it cannot be true are dropped on the way; where that is not known, they are kept.
    """

    expression: Expression
    operands: tuple[Operand, ...]

    @property
    def columns(self) -> tuple[Operand, ...]:
        """Its inputs."""
        return self.operands


@dataclass(frozen=True)
class PredicateCheck(Check):
    """A condition on a predicate: ``arguments`` are operands and constants.

    ``asked``: the truth that is wanted, or comparisons of a score, all of which must hold. ``cost_us``: what
    a call for one pair takes, in microseconds of one core; ``share``: what it keeps of all pairs; ``tried``:
    on what these were measured, or why they were not; empty where nothing was tried.
    """

    decides = True

    predicate: str
    arguments: tuple[Operand | bool | int | float | str, ...]
    asked: bool | tuple[tuple[str, float], ...]
    cost_us: Estimate
    share: Estimate
    tried: str = ""

    @property
    def columns(self) -> tuple[Operand, ...]:
        """The arguments that are columns."""
        return tuple(each for each in self.arguments if isinstance(each, tuple))


Kind = TypeVar("Kind", bound=Check)


def of_kind(checks: Iterable[Check], kind: type[Kind]) -> tuple[Kind, ...]:
    """Return those checks that are of a kind."""
    return tuple(each for each in checks if isinstance(each, kind))
