"""How the statement of a checkpoint was written, so that another spelling of it gets the same plan.

Scans number their columns in the order in which a statement has them and its conditions, and so do stages
their bands. A statement that means the same is therefore bound in the order of the one that wrote the state.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from wjoin.grammar.canonical import canonical
from wjoin.planner.catalog import Relation
from wjoin.planner.conditions.conjuncts import ColumnComparison, Conjunct, Equality, Side
from wjoin.planner.conditions.expressions import TURNED
from wjoin.planner.text.scope import ComputedValue, StreamColumn


@dataclass(frozen=True)
class Written:
    """The order of a block's parts.

    ``columns``: the names of each relation's; ``conditions``: what those of WHERE, ON and USING mean.
    """

    columns: tuple[tuple[str, ...], ...]
    conditions: tuple[str, ...]

    @classmethod
    def of(
        cls, aliases: Sequence[str], relations: Sequence[Relation], conjuncts: Sequence[Conjunct]
    ) -> "Written":
        """Return how a block is written."""
        return cls(
            tuple(tuple(column.name.lower() for column in each.columns) for each in relations),
            tuple(meaning(each, aliases) for each in conjuncts),
        )

    def relation(self, number: int, relation: Relation) -> Relation:
        """Return a relation with its columns as it had them here; those that are new come last."""
        names = self.columns[number] if number < len(self.columns) else ()
        columns = sorted(relation.columns, key=lambda each: _place(each.name.lower(), names))
        return replace(relation, columns=tuple(columns))

    def arranged(self, conjuncts: Sequence[Conjunct], aliases: Sequence[str]) -> list[Conjunct]:
        """Return conditions in the order that they had here; those that are new come last."""
        return sorted(conjuncts, key=lambda each: _place(meaning(each, aliases), self.conditions))


def _place(name: str, names: Sequence[str]) -> int:
    return names.index(name) if name in names else len(names)


def meaning(condition: Conjunct, aliases: Sequence[str]) -> str:
    """Return what a condition means, whatever its spelling."""
    match condition:
        case Equality(left, right):
            first, second = sorted((left, right), key=lambda side: side.stream)
            return " = ".join(_side(each, aliases) for each in (first, second))
        case ColumnComparison(left, operator, right):
            if right.stream < left.stream:
                left, operator, right = right, TURNED[operator], left
            return f" {operator} ".join(_value(side, aliases) for side in (left, right))
    return canonical(condition.text, numbered(aliases))


def _value(side: StreamColumn, aliases: Sequence[str]) -> str:
    if isinstance(side, ComputedValue):
        return canonical(side.column.name, numbered(aliases))
    return f"${side.stream} . {side.column.name.lower()}"


def numbered(aliases: Iterable[str], join: str = "") -> dict[str, str]:
    """Return what stands for each alias, by its place in FROM."""
    return {alias.lower(): f"${join}{number}" for number, alias in enumerate(aliases)}


def _side(side: Side, aliases: Sequence[str]) -> str:
    """Return a side of an equality whatever its spelling."""
    return canonical(side.text, numbered(aliases))
