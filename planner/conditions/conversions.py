"""Conversions between types that are known to be Spark's, in every mode.

A value that does not fit is one of which anything may be said: Spark fails, begins anew, or says NULL.
"""

from collections.abc import Sequence

from wjoin.planner.conditions.expressions import (
    NUMERIC_ORDER,
    Call,
    Expression,
    common_type,
    digits_of,
    is_decimal,
)
from wjoin.planner.conditions.time_arithmetic import midnight

_FRACTIONS = ("float", "double")


def cast(inside: Expression, kind: str) -> Expression | None:
    """Return CAST, None where it is not known here."""
    source = inside.type
    if source == kind and source != "timestamp":
        # What TIMESTAMP means is for a setting to say.
        return inside
    if (source, kind) == ("date", "timestamp_ntz"):
        return midnight(inside)
    whole = kind in NUMERIC_ORDER
    known = (
        (source in NUMERIC_ORDER and (whole or kind == "double"))
        or (source in _FRACTIONS and whole)
        or (source == "float" and kind == "double")
        or (is_decimal(source) and kind == "double")
        or (source == "timestamp" and kind in ("bigint", "double"))
        or _has_room(kind, source)
    )
    return Call("cast", (inside,), kind) if known else None


def _has_room(kind: str, source: str) -> bool:
    """Return whether a type is a DECIMAL for all numbers of another one."""
    if not is_decimal(kind) or not (is_decimal(source) or source in NUMERIC_ORDER):
        return False
    return all(most >= own for most, own in zip(digits_of(kind), digits_of(source), strict=True))


def unified(values: Sequence[Expression]) -> list[Expression]:
    """Return values of one type, that to which Spark widens all of them; nothing where it is not known."""
    kind: str | None = values[0].type if values else None
    for each in values:
        kind = None if kind is None else common_type(kind, each.type)
    if kind is None:
        return []
    if all(each.type == kind for each in values):
        return list(values)
    if kind not in (*NUMERIC_ORDER, "double") and not is_decimal(kind):
        return []
    return [found for each in values if (found := cast(each, kind)) is not None]
