"""The way of new rows through a stage: probes, each a step to one input after the other."""

from dataclasses import dataclass
from enum import Enum

from wjoin.planner.plan.checks import Band, Check, Operand
from wjoin.planner.windows.bounds import Windows


class Rows(Enum):
    """Where the rows lie that a step meets: those of earlier micro-batches, those of this one, or both."""

    OLD = "old"
    NEW = "new"
    ALL = "all"


@dataclass(frozen=True)
class Range:
    """Where a step looks, as a joined stream allows: from ``back`` before its time to ``ahead`` after it."""

    stream: int
    back: int | None
    ahead: int | None


@dataclass(frozen=True)
class WindowCheck:
    """``t_second - t_first <= upper``."""

    first: int
    second: int
    upper: int


@dataclass(frozen=True)
class Precedence:
    """The earliest time of ``before`` is less than that of ``after``; ``equal``: or the same.

    Both are streams.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    equal: bool


@dataclass(frozen=True)
class Step:
    """A probe's step to one more input.

    ``ranges``: the times of the input's first member, one range for each stream joined before; ``index``: the
    band by whose values rows are found, None where its other side is not joined yet, or the kernel looks
    for none. What is left to check of the tuples that are made: ``windows``, ``keys`` (equal scan columns,
    where codes are hashes), ``order`` and ``checks``, predicates at last.
    """

    input: int
    kernel: str
    rows: Rows
    ranges: tuple[Range, ...]
    index: Band | None = None
    windows: tuple[WindowCheck, ...] = ()
    keys: tuple[tuple[Operand, Operand], ...] = ()
    checks: tuple[Check, ...] = ()
    order: Precedence | None = None


@dataclass(frozen=True)
class Probe:
    """How new rows of input ``origin`` begin results, in one pass over ``windows``.

    ``ordered``: whether the order of the steps is the plan's choice; else the input with the fewest rows at
    hand comes first, of those that a condition links with the ones before. Results inside the windows
    ``excluded`` are those of an earlier pass. ``meets``: what rows it meets, where its stage's route has a
    say in that, else all.
    """

    origin: int
    steps: tuple[Step, ...]
    ordered: bool
    windows: Windows
    excluded: tuple[Windows, ...] = ()
    meets: Rows = Rows.ALL

    @property
    def order(self) -> tuple[int, ...]:
        """The inputs that it meets, in order."""
        return tuple(step.input for step in self.steps)
