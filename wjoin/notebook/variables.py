"""The named parameters of a statement, which are variables of the notebook."""

import datetime
import decimal
from collections.abc import Mapping
from typing import Any

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.statement_kinds import Statement
from wjoin.grammar.tokens import Kind, scan

_VALUES = (
    *(str, bool, int, float, bytes, decimal.Decimal, type(None)),
    *(datetime.date, datetime.time, datetime.timedelta, list, tuple, dict),
)


def parameters(text: str, statement: Statement, variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables that a statement names with a colon before them, as far as they are there.

    Values of NumPy and pandas become those of Python. Raises WJoinError WJ212 for one that Spark has no
    literal for.
    """
    found: dict[str, Any] = {}
    for token in scan(text[: statement.span.end]):
        name = token.text[1:]
        if token.kind is Kind.PARAMETER and token.start >= statement.span.start and name in variables:
            value = _plain(variables[name])
            if not isinstance(value, _VALUES):
                kind = type(value).__name__
                raise WJoinError(
                    "WJ212",
                    f"the variable {name} is a {kind}, which is not an SQL value",
                    span=token.span,
                    help="set it to a number, a string, a date or time, a timedelta or a list of these"
                    + (
                        f"; {name}.createOrReplaceTempView('name') makes it a view"
                        if kind == "DataFrame"
                        else ""
                    ),
                )
            found[name] = value
    return found


def _plain(value: Any) -> Any:
    """Return a scalar of NumPy or pandas as one of Python."""
    for method in ("to_pydatetime", "to_pytimedelta", "item"):
        if hasattr(value, method) and getattr(value, "ndim", 0) == 0:
            return getattr(value, method)()
    return value
