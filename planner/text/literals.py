"""Parameter values as Spark SQL literals, for expressions that run apart from the statement."""

import math
from datetime import date, datetime
from decimal import Decimal, InvalidOperation


def literal(value: object) -> str | None:
    """Return the literal that means the same as ``value`` in every setting of Spark, else None.

    >>> literal(5), literal(-3_000_000_000), literal("x"), literal(None)
    ('5', '(-3000000000L)', "'x'", 'NULL')
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() if -(2**63) < value < 2**63:
            shown = f"{value}" if -(2**31) <= value < 2**31 else f"{value}L"
            return f"({shown})" if value < 0 else shown
        case float() if math.isfinite(value):
            return f"({value!r}D)" if value < 0 else f"{value!r}D"
        case Decimal() if value.is_finite():
            return f"({value:f}BD)" if value < 0 else f"{value:f}BD"
        case str() if value.isprintable() and "'" not in value and "\\" not in value:
            return f"'{value}'"
        case date() if not isinstance(value, datetime):
            return f"DATE '{value.isoformat()}'"
    return None


def number(text: str) -> Decimal | None:
    """Return the number that a literal without a suffix spells, None where it is none, or beyond all DOUBLEs.

    >>> number("1.50"), number("2e3"), number("1e"), number("9" * 400)
    (Decimal('1.50'), Decimal('2E+3'), None, None)
    """
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return value if in_reach(value) else None


def in_reach(value: float | Decimal) -> bool:
    """Return whether a number is finite as a DOUBLE, which one of 400 digits is not.

    >>> in_reach(5), in_reach(10**400), in_reach(math.nan)
    (True, False, False)
    """
    try:
        return math.isfinite(float(value))
    except (OverflowError, ValueError):
        return False
