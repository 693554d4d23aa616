"""Conditions on a predicate of two or more streams, which the join decides: Spark need not call it again."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from sqlglot import exp

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.plurals import counted
from wjoin.grammar.spans import Span
from wjoin.planner.catalog import Estimate, Origin
from wjoin.planner.conditions.expressions import TURNED
from wjoin.planner.conditions.meaning import Meaning
from wjoin.planner.conditions.readable import COMPARISONS
from wjoin.planner.text.literals import in_reach, number
from wjoin.planner.text.scope import StreamColumn
from wjoin.udfs.predicate import Predicate

Value = bool | int | float | str
"""A constant argument of a predicate."""

Limits = tuple[tuple[str, float], ...]
"""Comparisons of a score with numbers; all of them must hold."""

DEFAULT_COST_US, DEFAULT_SHARE = 10.0, 0.1
"""What a predicate is taken to cost, and to keep of all pairs, where nobody has told."""


@dataclass(frozen=True)
class Trial:
    """What calls of a predicate for pairs of some rows have shown (PSP 2009, table 1: T_j).

    ``cost_us``: microseconds of one core for a pair, ``share``: the share of pairs for which the condition
    held; None where it could not be tried. ``words`` say on what it was tried, or why it was not.
    """

    cost_us: float | None
    share: float | None
    words: str


class Trials(Protocol):
    """Whoever can call a predicate for pairs of the rows that are to be joined."""

    def of(self, call: "ReadCall") -> Trial | None:
        """Return what a call does on a sample, None where there are no rows that could be tried."""
        ...


def cost_of(predicate: Predicate, trial: Trial | None = None) -> Estimate:
    """Return the microseconds of a call for one pair."""
    return _known(predicate.cost_us, None if trial is None else trial.cost_us, DEFAULT_COST_US)


def share_of(predicate: Predicate, trial: Trial | None = None) -> Estimate:
    """Return the share of pairs that a condition on a predicate keeps."""
    return _known(predicate.selectivity, None if trial is None else trial.share, DEFAULT_SHARE)


def _known(given: float | None, measured: float | None, default: float) -> Estimate:
    if given is not None:
        return Estimate(given, Origin.GIVEN)
    return Estimate(default) if measured is None else Estimate(measured, Origin.MEASURED)


@dataclass(frozen=True)
class ReadCall:
    """A condition on one call of a predicate, whose arguments are columns and constants.

    ``asked``: whether the rows shall match or shall not, or what a score must be. ``trial``: what was
    measured of it, None where all is declared or nothing could be tried.
    """

    predicate: Predicate
    arguments: tuple[StreamColumn | Value, ...]
    asked: bool | Limits
    trial: Trial | None = None

    @property
    def cost_us(self) -> Estimate:
        """The microseconds of a call for one pair."""
        return cost_of(self.predicate, self.trial)

    @property
    def share(self) -> Estimate:
        """The share of pairs that the condition keeps."""
        return share_of(self.predicate, self.trial)

    @property
    def streams(self) -> set[int]:
        """The streams whose rows it is about."""
        return {each.stream for each in self.arguments if isinstance(each, StreamColumn)}


def read_call(tree: exp.Expr, meaning: Meaning, predicates: Mapping[str, Predicate]) -> ReadCall | None:
    """Return a condition on a predicate as the join can decide it, None for any other condition."""
    found = _asked(tree.unnest(), meaning)
    if found is None:
        return None
    call, asked = found
    predicate = predicates.get(meaning.function(call))
    if predicate is None or isinstance(asked, bool) != (predicate.returns == "boolean"):
        return None
    arguments = [_argument(each, meaning) for each in call.expressions]
    known = tuple(each for each in arguments if each is not None)
    return ReadCall(predicate, known, asked) if len(known) == len(arguments) else None


def tried(call: ReadCall, trials: Trials | None) -> ReadCall:
    """Return a call with what a trial of it tells, where it does not declare all."""
    declared = call.predicate.cost_us is not None and call.predicate.selectivity is not None
    return call if declared or trials is None else replace(call, trial=trials.of(call))


def check_calls(tree: exp.Expr, meaning: Meaning, predicates: Mapping[str, Predicate], span: Span) -> None:
    """Raise WJoinError WJ217 for a predicate that is called with another number of arguments.

    And for a score that stands as a condition, or a yes or no that is compared with a number.
    """
    for call in tree.find_all(exp.Anonymous):
        predicate = predicates.get(meaning.function(call))
        if predicate is not None and not predicate.takes(len(call.expressions)):
            given = len(call.expressions)
            message = f"the predicate {predicate.name} is called with {counted(given, 'argument')}"
            raise WJoinError("WJ217", message, span=span, help=f"it takes ({predicate.arguments})")
    found = _asked(tree.unnest(), meaning)
    predicate = None if found is None else predicates.get(meaning.function(found[0]))
    if found is None or predicate is None:
        return
    answers, condition = predicate.returns == "boolean", isinstance(found[1], bool)
    if condition and not answers:
        message = f"the predicate {predicate.name} returns a number, not a condition"
        help = f"compare it with one: {predicate.name}(…) > 0.9"
        raise WJoinError("WJ217", message, span=span, help=help)
    if answers and not condition:
        message = f"the predicate {predicate.name} returns a boolean, and is compared with a number"
        raise WJoinError("WJ217", message, span=span, help="leave the comparison out")


def _asked(node: exp.Expr, meaning: Meaning) -> tuple[exp.Anonymous, bool | Limits] | None:
    """Return the call that a condition is about, and what is asked of it (see ``ReadCall``)."""
    match node:
        case exp.Anonymous():
            return node, True
        case exp.Not():
            inside = node.this.unnest()
            return (inside, False) if isinstance(inside, exp.Anonymous) else None
        case exp.Between() if not node.args.get("symmetric"):
            low, high = (_number(node.args[each], meaning) for each in ("low", "high"))
            inside = node.this.unnest()
            if isinstance(inside, exp.Anonymous) and low is not None and high is not None:
                return inside, ((">=", low), ("<=", high))
            return None
    operator = COMPARISONS.get(type(node))
    if operator not in TURNED:
        return None
    left, right = node.this.unnest(), node.expression.unnest()
    for call, other, each in ((left, right, operator), (right, left, TURNED[operator])):
        value = _number(other, meaning)
        if isinstance(call, exp.Anonymous) and value is not None:
            return call, ((each, value),)
    return None


def _number(node: exp.Expr, meaning: Meaning) -> float | None:
    """Return the DOUBLE as which Spark compares a constant with a score; None for what is none."""
    value = _constant(node, meaning)
    if isinstance(value, bool | str) or value is None:
        return None
    return float(value) if in_reach(value) else None


def _argument(node: exp.Expr, meaning: Meaning) -> StreamColumn | Value | None:
    node = node.unnest()
    return meaning.column(node) if isinstance(node, exp.Column) else _constant(node, meaning)


def _constant(node: exp.Expr, meaning: Meaning) -> Value | None:
    """Return the value of a literal or a parameter, None for anything else."""
    node = node.unnest()
    match node:
        case exp.Neg() if isinstance(node.this, exp.Literal):
            value = _constant(node.this, meaning)
            return None if isinstance(value, bool | str) or value is None else -value
        case exp.Boolean():
            return bool(node.this)
        case exp.Literal():
            if node.is_string:
                return node.name
            given = number(node.name)
            return given if given is None else int(given) if node.name.isdigit() else float(given)
        case exp.Placeholder():
            passed = meaning.parameters.get(node.name)
            return passed if isinstance(passed, bool | int | float | str) else None
    return None
