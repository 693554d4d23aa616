"""LIKE with a constant pattern, as a test of strings."""

from wjoin.planner.conditions.expressions import Call, Constant, Expression, Input


def like(inside: Expression, pattern: Expression) -> Expression | None:
    """Return what LIKE tests; None where it is not a column and a constant in which only % is special."""
    if not (isinstance(inside, Input) and isinstance(pattern, Constant)):
        return None
    if inside.type != "string" or not isinstance(pattern.value, str):
        return None
    if "_" in pattern.value or "\\" in pattern.value:
        return None
    return Call("like" if "%" in pattern.value else "=", (inside, pattern), "boolean")
