"""Types of join keys: what Spark's ``=`` makes of both sides, and what a key code can be made of."""

from collections.abc import Iterable
from dataclasses import dataclass

from wjoin.grammar.errors import WJoinError
from wjoin.planner.catalog import INTEGRAL, WHOLE, Types
from wjoin.planner.conditions.conjuncts import Equality, Filter, Side

EXACT = WHOLE | {"boolean"}
"""Types whose single value is its own 64-bit key code."""

_VERIFIABLE = EXACT | {"string", "binary", "float", "double"}


@dataclass(frozen=True)
class KeyPart:
    """One expression of an equality class: ``own_type`` is its type, ``type`` the one it is compared in."""

    side: Side
    own_type: str
    type: str

    @property
    def stream(self) -> int:
        """The stream that the expression reads."""
        return self.side.stream

    @property
    def identity(self) -> tuple[int, str, str]:
        """The same of one expression of a stream, compared in one type."""
        return self.stream, self.side.identity, _family(self.type)

    @property
    def text(self) -> str:
        """The expression in the type of the class."""
        return self.side.text if self.own_type == self.type else f"CAST({self.side.text} AS {self.type})"


@dataclass(frozen=True)
class EqualityClass:
    """Expressions that are equal in every result, one to a stream, ascending by stream."""

    type: str
    parts: tuple[KeyPart, ...]

    @property
    def streams(self) -> frozenset[int]:
        """The streams that it links."""
        return frozenset(part.stream for part in self.parts)

    def part(self, stream: int) -> KeyPart | None:
        """Return the expression of a stream, None when the stream has none."""
        return next((part for part in self.parts if part.stream == stream), None)


@dataclass(frozen=True)
class TypedEquality:
    """An equality and the type in which Spark compares its sides."""

    equality: Equality
    types: tuple[str, str]
    common: str


def typed(equality: Equality, types: Types) -> TypedEquality:
    """Return the equality with its types; raises WJ211 where the sides do not compare.

    An error of ``types`` is placed at its side.
    """
    sides = (equality.left, equality.right)
    left, right = (_type(side, types) for side in sides)
    if left == right:
        return TypedEquality(equality, (left, right), left)
    common = types.common(left, right)
    if common is None or _is_string(left) != _is_string(right):
        message = f"{sides[0].text} is {left}, and {sides[1].text} is {right}"
        cast, target, other = (sides[0], right, sides[1]) if _is_string(left) else (sides[1], left, sides[0])
        example = f", for example {other.text} = CAST({cast.text} AS {target})"
        help = f"cast one side{'' if '<' in left + right else example}"
        raise WJoinError("WJ211", message, span=equality.span, help=help)
    return TypedEquality(equality, (left, right), common)


def _type(side: Side, types: Types) -> str:
    if side.plain is not None:
        return side.plain.column.type
    try:
        return types.of(side.stream, side.text)
    except WJoinError as error:
        raise WJoinError(error.code, error.message, span=side.span, help=error.help) from error


def can_be_key(type_name: str) -> bool:
    """Return whether Spark hashes a type, and equal values to equal codes.

    Its hash does not know collations: strings with one, alone or inside, cannot be keys.
    """
    lowered = type_name.lower()
    if lowered.startswith(("struct<", "array<")):
        return not any(word in lowered for word in ("map<", "variant", "collate", "time(", "geo", "object"))
    return is_verifiable(lowered) or lowered.startswith("interval")


def is_verifiable(type_name: str) -> bool:
    """Return whether the operator itself can compare two values of a type."""
    lowered = type_name.lower()
    return lowered in _VERIFIABLE or lowered.startswith("decimal")


def equality_classes(
    equalities: Iterable[TypedEquality],
) -> tuple[tuple[EqualityClass, ...], tuple[Filter, ...]]:
    """Return the equality classes, and a filter for each further expression of one stream in a class.

    Equality carries over only between comparisons in one type (``a = b`` as BIGINT and
    ``b = c`` as DOUBLE do not make ``a = c`` as BIGINT); all integral types count as one.
    """
    groups: dict[int, list[KeyPart]] = {}
    group_of: dict[tuple[int, str, str], int] = {}
    for number, each in enumerate(equalities):
        sides = (each.equality.left, each.equality.right)
        new = [KeyPart(side, own, each.common) for side, own in zip(sides, each.types, strict=True)]
        touched = sorted({group_of[part.identity] for part in new if part.identity in group_of})
        first, *others = touched or [number]
        group = groups.setdefault(first, [])
        for other in others:
            moved = groups.pop(other)
            group_of |= {part.identity: first for part in moved}
            group += moved
        group += [part for part in new if part.identity not in group_of]
        group_of |= {part.identity: first for part in new}
    made = [_class(group) for group in groups.values()]
    return tuple(each for each, _ in made), tuple(condition for _, extra in made for condition in extra)


def _family(type_name: str) -> str:
    return "integral" if type_name in INTEGRAL else type_name


def _class(group: list[KeyPart]) -> tuple[EqualityClass, list[Filter]]:
    common = group[0].type
    if common in INTEGRAL:
        common = max((part.type for part in group), key=INTEGRAL.index)
    parts = [KeyPart(part.side, part.own_type, common) for part in group]
    first: dict[int, KeyPart] = {}
    filters = []
    for part in parts:
        known = first.setdefault(part.stream, part)
        if known is not part:
            filters.append(Filter(part.stream, f"{known.text} = {part.text}"))
    return EqualityClass(common, tuple(first[stream] for stream in sorted(first))), filters


def _is_string(type_name: str) -> bool:
    return type_name.lower().startswith(("string", "char", "varchar"))
