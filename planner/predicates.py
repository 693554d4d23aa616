"""Conditions on a predicate of two or more streams, which the join decides: Spark need not call it again."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from sqlglot import exp

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.planner.catalog import Estimate, Origin
from wjoin.planner.meaning import Meaning
from wjoin.planner.names import StreamColumn
from wjoin.udfs.predicate import Predicate

Value = bool | int | float | str
"""A constant argument of a predicate."""

Limits = tuple[tuple[str, float], ...]
"""Comparisons of a score, or of truth as 0 and 1, with constants; all of them must hold."""

DEFAULT_COST_US, DEFAULT_SHARE = 10.0, 0.1
"""What a predicate is taken to cost, and to keep of all pairs, where nobody has told."""

_COMPARISONS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.EQ: ("=", "="),
    exp.NEQ: ("<>", "<>"),
    exp.LT: ("<", ">"),
    exp.LTE: ("<=", ">="),
    exp.GT: (">", "<"),
    exp.GTE: (">=", "<="),
}
"""By its kind an operator, and the same with its sides exchanged."""

TRUE: Limits = (("=", 1.0),)
FALSE: Limits = (("=", 0.0),)


@dataclass(frozen=True)
class ReadCall:
    """A condition on one call of a predicate: its arguments are columns and constants."""

    predicate: Predicate
    arguments: tuple[StreamColumn | Value, ...]
    limits: Limits

    @property
    def columns(self) -> tuple[StreamColumn, ...]:
        """The columns that it reads."""
        return tuple(each for each in self.arguments if isinstance(each, StreamColumn))

    @property
    def cost_us(self) -> Estimate:
        """The microseconds of a call for one pair."""
        return _told(self.predicate.cost_us, DEFAULT_COST_US)

    @property
    def share(self) -> Estimate:
        """The share of pairs that it keeps."""
        return _told(self.predicate.selectivity, DEFAULT_SHARE)

    @property
    def streams(self) -> set[int]:
        """The streams whose rows it is about."""
        return {each.stream for each in self.columns}


def _told(value: float | None, default: float) -> Estimate:
    return Estimate(default) if value is None else Estimate(value, Origin.GIVEN)


def read_call(tree: exp.Expr, meaning: Meaning, predicates: Mapping[str, Predicate]) -> ReadCall | None:
    """Return a condition on a predicate as the join can decide it, None for any other condition."""
    call, limits = _limited(tree, meaning)
    if call is None:
        return None
    predicate = predicates.get(meaning.function(call))
    if predicate is None or (limits is None) != (predicate.returns == "boolean"):
        return None
    negated = isinstance(_bare(tree), exp.Not)
    arguments = tuple(_argument(each, meaning) for each in call.expressions)
    known = tuple(each for each in arguments if each is not None)
    if len(known) < len(arguments):
        return None
    return ReadCall(predicate, known, limits or (FALSE if negated else TRUE))


def check_calls(tree: exp.Expr, meaning: Meaning, predicates: Mapping[str, Predicate], span: Span) -> None:
    """Raise WJoinError WJ217 for a predicate that is called with another number of arguments."""
    for call in tree.find_all(exp.Anonymous):
        predicate = predicates.get(meaning.function(call))
        if predicate is not None and not predicate.takes(len(call.expressions)):
            given = len(call.expressions)
            message = f"the predicate {predicate.name} is called with {given} arguments"
            raise WJoinError("WJ217", message, span=span, help=f"it takes ({predicate.arguments})")


def _limited(tree: exp.Expr, meaning: Meaning) -> tuple[exp.Anonymous | None, Limits | None]:
    """Return the call that a condition is about, and what it asks of a score; None for truth."""
    node = _bare(tree)
    match node:
        case exp.Anonymous():
            return node, None
        case exp.Not():
            inside = _bare(node.this)
            return (inside, None) if isinstance(inside, exp.Anonymous) else (None, None)
        case exp.Between() if not node.args.get("symmetric"):
            low, high = (_number(node.args[each], meaning) for each in ("low", "high"))
            inside = _bare(node.this)
            if isinstance(inside, exp.Anonymous) and low is not None and high is not None:
                return inside, ((">=", low), ("<=", high))
    if type(node) in _COMPARISONS:
        operator, turned = _COMPARISONS[type(node)]
        left, right = _bare(node.this), _bare(node.expression)
        for call, other, each in ((left, right, operator), (right, left, turned)):
            value = _number(other, meaning)
            if isinstance(call, exp.Anonymous) and value is not None:
                return call, ((each, value),)
    return None, None


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _number(node: exp.Expr, meaning: Meaning) -> float | None:
    """Return the DOUBLE as which Spark compares a constant with a score; None for what is none."""
    value = _constant(node, meaning)
    if isinstance(value, bool | str) or value is None:
        return None
    number = float(value)
    return number if isfinite(number) else None


def _argument(node: exp.Expr, meaning: Meaning) -> StreamColumn | Value | None:
    node = _bare(node)
    return meaning.column(node) if isinstance(node, exp.Column) else _constant(node, meaning)


def _constant(node: exp.Expr, meaning: Meaning) -> Value | None:
    """Return the value of a literal or a parameter, None for anything else."""
    node = _bare(node)
    match node:
        case exp.Neg() if isinstance(node.this, exp.Literal):
            value = _constant(node.this, meaning)
            return None if isinstance(value, bool | str) or value is None else -value
        case exp.Boolean():
            return bool(node.this)
        case exp.Literal():
            if node.is_string:
                return node.name
            return int(node.name) if node.name.isdigit() else float(node.name)
        case exp.Placeholder():
            given = meaning.parameters.get(node.name)
            return given if isinstance(given, bool | int | float | str) else None
    return None
