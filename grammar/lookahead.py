"""Which WINDOW, DWINDOW and PATH are ours, told by what stands before and after them.

The same words are aliases, columns, functions and the named windows of Spark SQL. Ours
follow an operand or relation (after which Spark takes no expression) and have one of the
clause's shapes, well formed or not: what Spark cannot read either is ours to explain.
"""

from wjoin.grammar.durations import UNITS
from wjoin.grammar.nesting import Code
from wjoin.grammar.tokens import Kind, is_name

CLAUSE_WORDS = frozenset({"WINDOW", "DWINDOW", "PATH"})
"""The words that begin a term of the window clause."""

_COMPARE = frozenset({"=", "==", "<", "<=", ">", ">=", "<=>", "<>", "!=", ":="})
_AFTER_NAME = frozenset(
    """
    AND ASC AT BETWEEN COLLATE DESC DIV ELSE END ESCAPE FILTER ILIKE IN IS LIKE NOT NULLS OR OVER REGEXP RLIKE
    THEN WHEN
    ANTI AS ASOF CLUSTER CROSS DISTRIBUTE EXCEPT FULL GROUP HAVING INNER INTERSECT JOIN LATERAL LEFT LIMIT
    MINUS NATURAL OFFSET ON ORDER PIVOT QUALIFY RIGHT SELECT SEMI SORT TABLESAMPLE UNION UNPIVOT USING
    WATERMARK WHERE WINDOW
    """.split()
)


def _compares(code: Code, place: int) -> bool:
    """Return whether a width, or what leads to one, stands at a place."""
    if code.mark(place) in _COMPARE or code.word(place) == "BETWEEN":
        return True
    if code.word(place) == "WITHIN":
        return code.word(place + 1) != "GROUP"
    if code.word(place) == "INTERVAL":
        return code.kind(place + 1) in (Kind.NUMBER, Kind.STRING)
    return code.kind(place) in (Kind.NUMBER, Kind.PARAMETER)


def _upper_names(code: Code, opening: int) -> list[str]:
    return [name.text.strip("`").upper() for name in code.names(opening)]


def _name_list_end(code: Code, place: int) -> int:
    """Return the place after ``name, name, …``."""
    if place < len(code.tokens) and is_name(code.tokens[place]):
        place += 1
    while code.mark(place) == "," and place + 1 < len(code.tokens) and is_name(code.tokens[place + 1]):
        place += 2
    return place


def _may_be_alias(code: Code, place: int) -> bool:
    """Return whether Spark can read the word at a place as the alias of the relation before it."""
    before = place - 1
    if not is_name(code.tokens[before]):
        return True
    if code.word(before) in UNITS and code.kind(before - 1) in (Kind.NUMBER, Kind.STRING):
        return True  # the end of a WATERMARK clause
    while code.is_field(before) and before > 1:
        before -= 2
    return code.mark(before - 1) in (",", "(") or code.word(before - 1) in ("FROM", "JOIN", "STREAM")


def has_shape(code: Code, place: int, streams: frozenset[str]) -> bool:
    """Return whether the tokens at a place have the shape of a window term.

    ``streams`` are names of the FROM list, upper case: a list of nothing else after the word
    is a term whose width was forgotten.
    """
    word, following = code.word(place), place + 1
    if word not in CLAUSE_WORDS:
        return False
    if code.mark(following) == "(":
        closing = code.partner[following]
        if closing < 0:
            after = _name_list_end(code, following + 1)
            return after > following + 2 and _compares(code, after)
        if _compares(code, closing + 1) or (word == "PATH" and code.mark(closing + 1) == "("):
            return True
        if code.kind(closing + 1) is Kind.STRING:
            return len(_upper_names(code, following)) > 1
        names = _upper_names(code, following)
        return len(names) > 1 and streams.issuperset(names) and not _may_be_alias(code, place)
    if _compares(code, following) and code.kind(following) is not Kind.PARAMETER:
        return True
    if following >= len(code.tokens) or not is_name(code.tokens[following]):
        return code.kind(following) is Kind.PARAMETER
    if code.word(following) in _AFTER_NAME or code.word(following + 1) == "AS":
        return False
    return _compares(code, _name_list_end(code, following)) or _is_landmark(code, following + 1)


def _is_landmark(code: Code, place: int) -> bool:
    """Return whether ``SINCE (…)`` stands at a place."""
    return code.word(place) == "SINCE" and code.mark(place + 1) == "("


def is_strong(code: Code, place: int, streams: frozenset[str]) -> bool:
    """Return whether a term has a shape that no expression of Spark SQL has.

    Asked where an expression may stand, so that a column or function of the same name is
    left to Spark.
    """
    following = place + 1
    if not has_shape(code, place, streams):
        return False
    if code.mark(following) == "(":
        closing = code.partner[following]
        if code.word(closing + 1) == "WITHIN" or closing < 0:
            return True
        return _is_strong_pair(code, place, streams)
    if code.mark(following) in _COMPARE or code.word(following) == "BETWEEN":
        return _is_duration(code, following + 1)
    landmark = _is_landmark(code, following + 1)
    return landmark or _compares(code, following) or _compares(code, following + 1)


def _is_strong_pair(code: Code, place: int, streams: frozenset[str]) -> bool:
    """Return whether ``WINDOW (A, B) = w`` is no comparison of a function of that name."""
    names, after = _upper_names(code, place + 1), code.partner[place + 1] + 1
    if len(names) < 2 or not _compares(code, after):
        return False
    if _is_duration(code, after + 1) or (code.word(place) != "PATH" and streams.issuperset(names)):
        return True
    # Spark's function window() takes literals for the width, and gives no interval.
    width = after + 1 + (code.mark(after + 1) in ("-", "+"))
    is_interval = code.word(width) == "INTERVAL" or code.kind(width) is Kind.PARAMETER
    return code.word(place) == "WINDOW" and is_interval


def _is_duration(code: Code, place: int) -> bool:
    """Return whether a number and a unit, which is no expression of Spark, stand at a place."""
    place += code.mark(place) in ("-", "+")
    return code.kind(place) is Kind.NUMBER and code.word(place + 1) in (*UNITS, "ROWS")


def starts_clause(code: Code, place: int, streams: frozenset[str]) -> bool:
    """Return whether a window clause starts at a place that follows an operand or relation."""
    place += code.word(place) == "NOT"
    if code.mark(place) != "(":
        return has_shape(code, place, streams)
    glued = place > 0 and code.tokens[place - 1].end == code.tokens[place].start
    while code.mark(place) == "(":
        place += 1
    place += code.word(place) == "NOT"
    return has_shape(code, place, streams) and (not glued or is_strong(code, place, streams))


def names_window(code: Code, place: int) -> bool:
    """Return whether Spark's own ``WINDOW name AS`` stands at a place."""
    return code.word(place) == "WINDOW" and code.word(place + 2) == "AS"
