"""How the statement of a checkpoint was written, so that another spelling of it gets the same plan.

State lies by the numbers of columns, conditions and bands, which follow from the order in which a statement
has them. A statement that means the same is therefore bound in the order of the one that wrote the state.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from wjoin.grammar.canonical import canonical
from wjoin.planner.catalog import Relation
from wjoin.planner.conditions.conjuncts import ColumnComparison, Conjunct, Equality, Side
from wjoin.planner.shape.join_keys import KeyPart

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "<>": "<>"}


@dataclass(frozen=True)
class Condition:
    """A condition whatever its spelling; ``turned`` where its sides are not written in the order of FROM."""

    meaning: str
    turned: bool


@dataclass(frozen=True)
class Written:
    """The order of a block's parts, and the words by which the layout of its state is named.

    ``columns``: the names of each relation's; ``conditions``: those of WHERE, ON and USING; ``sides``: the
    sides of equalities as they were spelled, by their meaning.
    """

    aliases: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    conditions: tuple[Condition, ...]
    sides: Mapping[str, str]

    @property
    def meaning(self) -> str:
        """What the conditions mean, in any order."""
        return " AND ".join(sorted(each.meaning for each in self.conditions))

    def text(self, part: KeyPart, aliases: Sequence[str]) -> str:
        """Return the expression of a part of a key as it was spelled; ``aliases`` are those of now."""
        known = self.sides.get(_side(part.side, aliases), part.side.text)
        return replace(part, side=replace(part.side, text=known)).text


def written(
    aliases: Sequence[str],
    relations: Sequence[Relation],
    conjuncts: Sequence[Conjunct],
    before: Written | None,
) -> Written:
    """Return how a block is written; what ``before`` has named keeps its name."""
    sides = {
        _side(side, aliases): side.text
        for each in conjuncts
        if isinstance(each, Equality)
        for side in (each.left, each.right)
    }
    return Written(
        tuple(aliases) if before is None else before.aliases,
        tuple(tuple(column.name.lower() for column in each.columns) for each in relations),
        tuple(condition(each, aliases) for each in conjuncts),
        sides if before is None else {**sides, **before.sides},
    )


def condition(each: Conjunct, aliases: Sequence[str]) -> Condition:
    """Return a conjunct whatever its spelling."""
    match each:
        case Equality(left, right):
            first, second = sorted((left, right), key=lambda side: side.stream)
            sides = (_side(each, aliases) for each in (first, second))
            return Condition(" = ".join(sides), first is not left)
        case ColumnComparison(left, operator, right):
            turned = right.stream < left.stream
            if turned:
                left, operator, right = right, _TURNED[operator], left
            names = (f"${side.stream} . {side.column.name.lower()}" for side in (left, right))
            return Condition(f" {operator} ".join(names), turned)
    return Condition(canonical(each.text, numbered(aliases)), False)


def numbered(aliases: Iterable[str], join: str = "") -> dict[str, str]:
    """Return what stands for each alias, by its place in FROM."""
    return {alias.lower(): f"${join}{number}" for number, alias in enumerate(aliases)}


def _side(side: Side, aliases: Sequence[str]) -> str:
    """Return a side of an equality whatever its spelling."""
    return canonical(side.text, numbered(aliases))


def arranged(
    conjuncts: Sequence[Conjunct], aliases: Sequence[str], before: Written | None
) -> tuple[Conjunct, ...]:
    """Return conjuncts in the order, and with their sides in the order, in which they were written before."""
    if before is None:
        return tuple(conjuncts)
    left = [(condition(each, aliases), each) for each in conjuncts]
    found: list[Conjunct] = []
    for wanted in before.conditions:
        place = next((n for n, (own, _) in enumerate(left) if own.meaning == wanted.meaning), None)
        if place is not None:
            own, each = left.pop(place)
            found.append(_turned(each) if own.turned != wanted.turned else each)
    return (*found, *(each for _, each in left))


def _turned(each: Conjunct) -> Conjunct:
    match each:
        case Equality(left, right):
            return replace(each, left=right, right=left)
        case ColumnComparison(left, operator, right):
            return replace(each, left=right, operator=_TURNED[operator], right=left)
    return each


def in_order(relation: Relation, names: Sequence[str]) -> Relation:
    """Return a relation with its columns in the order of names; those that have none come last."""
    places = {name: place for place, name in reversed(list(enumerate(names)))}
    columns = sorted(relation.columns, key=lambda each: places.get(each.name.lower(), len(places)))
    return replace(relation, columns=tuple(columns))
