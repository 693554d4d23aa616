"""Whether conditions on a row imply another one, as far as their texts tell."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp
from sqlglot.errors import SqlglotError

from wjoin.grammar.canonical import canonical
from wjoin.planner.text.literals import number
from wjoin.planner.text.trees import parse

_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
}

_STRICTER: dict[tuple[type[exp.Expr], type[exp.Expr]], Callable[[Decimal, Decimal], bool]] = {
    (exp.GT, exp.GT): lambda known, wanted: known >= wanted,
    (exp.GTE, exp.GTE): lambda known, wanted: known >= wanted,
    (exp.GT, exp.GTE): lambda known, wanted: known >= wanted,
    (exp.GTE, exp.GT): lambda known, wanted: known > wanted,
    (exp.LT, exp.LT): lambda known, wanted: known <= wanted,
    (exp.LTE, exp.LTE): lambda known, wanted: known <= wanted,
    (exp.LT, exp.LTE): lambda known, wanted: known <= wanted,
    (exp.LTE, exp.LT): lambda known, wanted: known < wanted,
    (exp.EQ, exp.EQ): lambda known, wanted: known == wanted,
    (exp.EQ, exp.NEQ): lambda known, wanted: known != wanted,
    (exp.NEQ, exp.NEQ): lambda known, wanted: known == wanted,
    (exp.EQ, exp.GT): lambda known, wanted: known > wanted,
    (exp.EQ, exp.GTE): lambda known, wanted: known >= wanted,
    (exp.EQ, exp.LT): lambda known, wanted: known < wanted,
    (exp.EQ, exp.LTE): lambda known, wanted: known <= wanted,
}
"""When a comparison of a column with one number implies one with another number."""

_EXACT = 15
"""Digits of a number up to which different ones are different as DOUBLEs, too."""


@dataclass(frozen=True)
class _Bound:
    """A comparison of a column with a number."""

    column: str
    operator: type[exp.Expr]
    value: Decimal


def implied(wanted: str, known: Sequence[str], numeric: Collection[str]) -> bool:
    """Return whether a row for which all ``known`` conditions are true satisfies a ``wanted`` one.

    False where that is not seen. ``numeric``: the names of columns that hold numbers, in lower case.

    >>> implied("A.v > 3", ["A.v > 5", "A.k = 1"], {"v"}), implied("A.v > 5", ["A.v > 3"], {"v"})
    (True, False)
    """
    if any(canonical(wanted) == canonical(each) for each in known):
        return True
    # What a backslash means in a string is for a setting to say.
    readable = [each for each in known if "\\" not in each]
    if "\\" in wanted:
        return False
    try:
        trees = [tree for each in readable for tree in _conjuncts(parse(each))]
        return _holds(parse(wanted), trees, numeric)
    except SqlglotError:
        return False


def _holds(wanted: exp.Expr, known: Sequence[exp.Expr], numeric: Collection[str]) -> bool:
    parts = list(_conjuncts(wanted))
    if len(parts) > 1:
        return all(_holds(each, known, numeric) for each in parts)
    (wanted,) = parts
    if any(_implies(each, wanted, numeric) for each in known):
        return True
    if isinstance(wanted, exp.Or):
        return any(_holds(each, known, numeric) for each in wanted.flatten())
    return any(
        isinstance(each, exp.Or)
        and all(_holds(wanted, list(_conjuncts(branch)), numeric) for branch in each.flatten())
        for each in known
    )


def _conjuncts(tree: exp.Expr) -> Iterator[exp.Expr]:
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        for each in tree.flatten():
            yield from _conjuncts(each)
    elif isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
        yield exp.GTE(this=tree.this.copy(), expression=tree.args["low"].copy())
        yield exp.LTE(this=tree.this.copy(), expression=tree.args["high"].copy())
    else:
        yield tree


def _implies(known: exp.Expr, wanted: exp.Expr, numeric: Collection[str]) -> bool:
    """Return whether one condition implies another, neither of which is several by AND."""
    if _words(known) == _words(wanted):
        return True
    first, second = _bound(known, numeric), _bound(wanted, numeric)
    if first is None or second is None or first.column != second.column:
        return False
    stricter = _STRICTER.get((first.operator, second.operator))
    return stricter is not None and stricter(first.value, second.value)


def _words(tree: exp.Expr) -> str:
    return canonical(tree.sql(dialect="spark"))


def _bound(tree: exp.Expr, numeric: Collection[str]) -> _Bound | None:
    if type(tree) not in _TURNED:
        return None
    left, right, operator = tree.this.unnest(), tree.expression.unnest(), type(tree)
    if isinstance(right, exp.Column):
        left, right, operator = right, left, _TURNED[operator]
    value = _number(right)
    if not isinstance(left, exp.Column) or left.name.lower() not in numeric or value is None:
        return None
    return _Bound(_words(left), operator, value)


def _number(tree: exp.Expr) -> Decimal | None:
    if isinstance(tree, exp.Neg):
        found = _number(tree.this.unnest())
        return None if found is None else -found
    if not isinstance(tree, exp.Literal) or tree.is_string or len(tree.name) > _EXACT:
        return None
    return number(tree.name)
