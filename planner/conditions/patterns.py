"""LIKE with a constant pattern, as a test of strings."""

from wjoin.planner.conditions.expressions import Call, Constant, Expression, Input

_BOOLEAN = "boolean"


def like(inside: Expression, pattern: Expression) -> Expression | None:
    """Return what LIKE tests; None where it is not a column and a constant in which only % is special."""
    if not (isinstance(inside, Input) and isinstance(pattern, Constant)):
        return None
    if inside.type != "string" or not isinstance(pattern.value, str):
        return None
    text = pattern.value
    if "_" in text or "\\" in text:
        return None
    if "%" not in text:
        return Call("=", (inside, pattern), _BOOLEAN)
    first, *middle, last = text.split("%")
    if any(middle) and (first or last or sum(map(bool, middle)) > 1):
        return Call("like", (inside, pattern), _BOOLEAN)
    if any(middle):
        return _called("contains", inside, next(each for each in middle if each))
    if first and last:
        return Call("like", (inside, pattern), _BOOLEAN)
    return _called("endswith", inside, last) if last else _called("startswith", inside, first)


def _called(name: str, inside: Expression, text: str) -> Call:
    return Call(name, (inside, Constant(text, "string")), _BOOLEAN)
