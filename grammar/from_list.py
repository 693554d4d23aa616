"""The FROM list of a SELECT with a window clause: its relations and explicit joins."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from wjoin.grammar.clauses import SyntaxSlip, duration_end, read_watermark, read_within
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.join_kinds import KINDS, JoinKind
from wjoin.grammar.nesting import QUERY_WORDS, Code
from wjoin.grammar.result_reads import clause_end
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import (
    BareNumber,
    Duration,
    FromItem,
    Identifier,
    LateralView,
    MatchCondition,
    TimeDuration,
    UsingColumns,
    Watermark,
    WindowAnd,
    WindowBetween,
    WindowCondition,
    WindowOr,
)
from wjoin.grammar.tokens import Kind, identifier, is_name

MATCH_CONDITION = "MATCH_CONDITION"
"""The word after which the condition of an ASOF JOIN stands."""

WITHIN = "WITHIN"
"""The word after which ksqlDB has the window of a join."""

_NO_ALIAS = frozenset(
    """
    ANTI AS ASOF CROSS EXCEPT FOR FULL INNER INTERSECT JOIN LATERAL LEFT MATCH_CONDITION MATCH_RECOGNIZE MINUS
    NATURAL ON PIVOT RIGHT SEMI TABLESAMPLE UNION UNPIVOT USING WHERE WITH
    """.split()
)
_AFTER_QUERY = frozenset("EXCEPT INTERSECT LIMIT MINUS OFFSET ORDER SORT UNION".split())
"""What can follow a query in parentheses that is part of a larger one."""

_NOT_A_STREAM = {
    "TABLESAMPLE": "sample in a subquery: (SELECT * FROM t TABLESAMPLE (…)) AS a",
    "PIVOT": "pivot in a subquery with an alias",
    "UNPIVOT": "unpivot in a subquery with an alias",
    "MATCH_RECOGNIZE": "match in a subquery with an alias",
}


class Sources(NamedTuple):
    """What a FROM list says: its relations, USING clauses, ON predicates, LATERAL VIEWs and WITHINs.

    Of a predicate: the number of the item that it joins, and the range of its tokens.
    """

    items: tuple[FromItem, ...]
    using: tuple[UsingColumns, ...]
    conditions: tuple[tuple[int, int, int], ...]
    laterals: tuple[LateralView, ...]
    windows: tuple[WindowCondition, ...] = ()


def read_sources(code: Code, start: int, end: int) -> Sources:
    """Return the FROM list of the tokens ``start`` (after FROM) to before ``end``.

    Raises WJ107 for a kind of join, WJ108 for a relation, WJ223 for an ASOF JOIN, and WJ103 and its kin for
    a watermark clause, that cannot take part in a window join.
    """
    steps, place = _joined(code, start, end)
    while place < end and code.mark(place) == ",":
        found, place = _joined(code, place + 1, end)
        if any(each.item.kind in (JoinKind.RIGHT, JoinKind.FULL) for each in found):
            # These join only what comes after the comma.
            found[0] = replace(found[0], item=replace(found[0].item, joined=len(found)))
        steps += found
    laterals = read_laterals(code, place, end) if place < end else ()
    using = (replace(each.using, right=n) for n, each in enumerate(steps) if each.using is not None)
    conditions = ((n, *each) for n, step in enumerate(steps) for each in step.conditions)
    items = tuple(each.item for each in steps)
    windows = tuple(each.window for each in steps if each.window is not None)
    return Sources(items, tuple(using), tuple(conditions), laterals, windows)


@dataclass(frozen=True)
class _Step:
    """An item, and what its join with those before it says: USING or NATURAL, tokens of ON, WITHIN."""

    item: FromItem
    using: UsingColumns | None = None
    conditions: tuple[tuple[int, int], ...] = ()
    window: WindowCondition | None = None


def _joined(code: Code, start: int, end: int) -> tuple[list[_Step], int]:
    """Return the joins up to a comma, a LATERAL VIEW or the end, one after the other, and the place there."""
    steps, place = _operand(code, start, end)
    while place < end and code.mark(place) != "," and not is_lateral_view(code, place):
        after, kind = _join(code, place)
        crossed = code.word(place) == "CROSS"
        natural = code.span(place, after) if code.word(place) == "NATURAL" else None
        right, place = _operand(code, after, end)
        match = None
        if kind.asof:
            match, place = _match(code, place, end, code.tokens[after - 2].span)
        window: WindowCondition | None = None
        if within_at(code, place) and place < end:
            window, place = _within(code, place, end, [*steps, *right], kind)
        using: UsingColumns | None = None
        conditions: tuple[tuple[int, int], ...] = ()
        if natural is not None:
            using = UsingColumns(0, None, span=natural)
        elif code.word(place) == "ON" and place < end:
            stop = _condition_end(code, place + 1, end)
            conditions, place = ((place + 1, stop),), stop
        elif code.word(place) == "USING" and place < end:
            columns = _name_list(code, place + 1, end)
            close = code.after(place + 1)
            using, place = UsingColumns(0, columns, span=code.span(place, close)), close
        first, *others = right
        item = replace(first.item, crossed=crossed, kind=kind, match=match, joined=len(right))
        steps += [_Step(item, using, conditions, window), *others]
    return steps, place


def _operand(code: Code, start: int, end: int) -> tuple[list[_Step], int]:
    """Return a relation, or joins in parentheses, and the place after it."""
    if code.mark(start) != "(" or start >= end or not holds_joins(code, start):
        item, place = _item(code, start, end)
        return [_Step(item)], place
    close = code.after(start) - 1
    steps, place = _joined(code, start + 1, close)
    if place < close:
        remedy = "list the streams without parentheses"
        span = code.span(start, close + 1)
        raise WJoinError("WJ108", "FROM items are in parentheses", span=span, help=remedy)
    alias, after = _alias(code, close + 1, end)
    if alias is not None:
        message = f"joins in parentheses have the alias {alias.name}"
        remedy = "use the names of their relations, or a subquery: (SELECT … ) AS " + alias.name
        raise WJoinError("WJ108", message, span=code.span(start, after), help=remedy)
    return steps, close + 1


def holds_joins(code: Code, opening: int) -> bool:
    """Return whether parentheses in FROM hold relations, and are no subquery."""
    inside, close = opening + 1, code.partner[opening]
    while code.mark(inside) == "(" and code.after(inside) == close:
        inside, close = inside + 1, close - 1
    if code.mark(inside) != "(":
        return code.word(inside) not in QUERY_WORDS
    return code.word(code.after(inside)) not in _AFTER_QUERY


def is_lateral_view(code: Code, place: int) -> bool:
    """Return whether a LATERAL VIEW stands at a place."""
    return code.word(place) == "LATERAL" and code.word(place + 1) == "VIEW"


def read_laterals(code: Code, start: int, end: int) -> tuple[LateralView, ...]:
    """Return the LATERAL VIEWs of some tokens, one after the other. Raises WJ108 and WJ222."""
    found = []
    while start < end:
        if not is_lateral_view(code, start):
            remedy = "the relations of FROM come before LATERAL VIEW"
            message = f"{code.mark(start)} cannot follow a LATERAL VIEW"
            raise WJoinError("WJ108", message, span=code.tokens[start].span, help=remedy)
        place = start + 2 + (code.word(start + 2) == "OUTER")
        opening = place
        while opening < end and code.mark(opening) != "(":
            opening += 1
        name = code.after(opening) if opening < end else end
        # Where no name is written, Spark takes the word AS for one.
        unnamed = name < end and code.word(name) == "AS"
        if name >= end or not is_name(code.tokens[name]) or (unnamed and name + 1 >= end):
            span = code.span(start, min(name + 1, end))
            remedy = "write LATERAL VIEW explode(A.tags) t AS tag"
            raise WJoinError("WJ108", "a LATERAL VIEW has no name", span=span, help=remedy)
        first = name + 1 + (not unnamed and code.word(name + 1) == "AS")
        columns: list[Identifier] = []
        after = first
        while after < end and is_name(code.tokens[after]) and not is_lateral_view(code, after):
            columns.append(identifier(code.tokens[after]))
            after += 1
            if after >= end or code.mark(after) != ",":
                break
            after += 1
        named = identifier(code.tokens[name])
        if not columns:
            remedy = f"write AS and a name for each: {code.span(start, name + 1).of(code.text)} AS x"
            message = f"the LATERAL VIEW {named.name} does not name its columns"
            raise WJoinError("WJ222", message, span=code.span(start, name + 1), help=remedy)
        generator, span = code.span(place, code.after(opening)), code.span(start, after)
        found.append(LateralView(generator, named, tuple(columns), span))
        start = after
    return tuple(found)


def _join(code: Code, place: int) -> tuple[int, JoinKind]:
    """Return the place after the join words at a place, and the kind of join; raises for other kinds."""
    after = code.join_end(place)
    if not after:
        raise _not_a_source(code, place)
    words = tuple(code.word(index) for index in range(place, after - 1))
    if words[:1] == ("NATURAL",) and words[1:] in KINDS and not {"ASOF", "CROSS"}.intersection(words):
        return after, KINDS[words[1:]]
    if words not in KINDS:
        message = f"{' '.join(words)} JOIN is not supported with a window clause"
        raise WJoinError("WJ107", message, span=code.span(place, after), help=_instead(words))
    return after, KINDS[words]


def _instead(words: Sequence[str]) -> str:
    """Return what can stand in the place of a join of another kind, and what it would do."""
    if "NATURAL" in words and "ASOF" not in words:
        return "write NATURAL first, then INNER, LEFT, RIGHT, FULL, SEMI, ANTI or nothing"
    if "ASOF" in words:
        return "use ASOF JOIN or LEFT ASOF JOIN"
    return "use JOIN … ON"


def within_at(code: Code, place: int) -> bool:
    """Return whether a WITHIN stands at a place, and no alias of that name."""
    if code.word(place) != WITHIN or not code.ends_operand(place - 1):
        return False
    length = place + 1 + (code.mark(place + 1) == "(")
    return code.word(length) == "INTERVAL" or code.kind(length) in (Kind.NUMBER, Kind.STRING, Kind.PARAMETER)


def _within(
    code: Code, place: int, end: int, sides: Sequence[_Step], kind: JoinKind
) -> tuple[WindowCondition, int]:
    """Return the window that the WITHIN at a place gives the join of two relations, and its end.

    That of a third one goes by the later time of the first two.
    """
    pair = code.mark(place + 1) == "("
    stop = code.after(place + 1) if pair else duration_end(code.tokens, place + 1)
    span = code.span(place, stop)
    names = [each.item.alias or each.item.parts[-1] for each in sides if each.item.alias or each.item.parts]
    try:
        low, high = read_within(code.tokens[place:stop])
    except SyntaxSlip:
        remedy = "write WITHIN 5 MINUTES, or WITHIN (1 MINUTE, 5 MINUTES): how much earlier, how much later"
        raise WJoinError("WJ108", "a WITHIN cannot be read", span=span, help=remedy) from None
    of_three = None
    if len(sides) == len(names) == 3 and {each.item.kind for each in sides} == {kind} == {JoinKind.INNER}:
        of_three = _after_two(sides[1].window, names, (low, high), span)
    if of_three is None and (len(sides) != 2 or len(names) != 2):
        shown = [each.name for each in names]
        message = f"a WITHIN is at a join of {', '.join(shown)}: it would go by the latest of several times"
        width = code.span(place + 1, stop).of(code.text)
        partner = _partner(code, stop, end, shown)
        line = f"WINDOW ({partner}, {shown[-1]}) = {'5 MINUTES' if pair else width}"
        remedy = f"leave it out and write a window clause after FROM, for example {line}"
        raise WJoinError("WJ107", message, span=span, help=remedy)
    if code.word(stop) == "GRACE":
        after = duration_end(code.tokens, stop + 2)
        delay = code.span(stop + 2, after).of(code.text)
        remedy = f"leave it out; a stream says that of itself: CREATE STREAM … WATERMARK ts DELAY OF {delay}"
        message = "a join has no GRACE PERIOD: how late rows may be is a matter of their stream"
        raise WJoinError("WJ107", message, span=code.span(stop, after), help=remedy)
    if of_three is not None:
        return of_three, stop
    first, second = names
    return WindowBetween(first, second, low, high, span=span), stop


def _partner(code: Code, place: int, end: int, names: Sequence[str]) -> str:
    """Return which relation before the last one a condition of its join names, the one before it if none."""
    said = range(place, _condition_end(code, place, end))
    named = {code.mark(each).strip("`").lower() for each in said if code.mark(each + 1) == "."}
    return next((name for name in reversed(names[:-1]) if name.lower() in named), names[-2])


def _after_two(
    window: WindowCondition | None, names: Sequence[Identifier], width: tuple[Duration, Duration], span: Span
) -> WindowOr | None:
    """Return the window of a third relation around the later time of two that have a ``window``.

    Either that is the time of the second one, or the second one is not later than the first.
    """
    if not isinstance(window, WindowBetween):
        return None
    first, second, third = names
    low, high, none = window.low, window.high, _none(window.high)
    if none is None:
        return None

    def both(least: Duration, most: Duration, later: Identifier) -> WindowAnd:
        apart = WindowBetween(first, second, least, most, span=span)
        return WindowAnd((apart, WindowBetween(later, third, *width, span=span)), span=span)

    return WindowOr((both(none, high, second), both(low, none, first)), span=span)


def _none(like: Duration) -> Duration | None:
    """Return no time at all, in the unit of a duration; None where that is not known."""
    match like:
        case TimeDuration():
            return replace(like, microseconds=0)
        case BareNumber():
            return replace(like, value=0)
    return None


def _match(code: Code, place: int, end: int, asof: Span) -> tuple[MatchCondition, int]:
    """Return the MATCH_CONDITION at a place, and the place after it. Raises WJ223 where there is none."""
    opening = place + 1
    if code.word(place) != MATCH_CONDITION or code.mark(opening) != "(" or opening >= end:
        remedy = "write one before ON: MATCH_CONDITION (A.ts >= B.ts)"
        raise WJoinError("WJ223", "an ASOF JOIN has no MATCH_CONDITION", span=asof, help=remedy)
    after = code.after(opening)
    span = code.span(place, after)
    return MatchCondition(code.span(opening + 1, after - 1), asof, span=span), after


def _not_a_source(code: Code, place: int) -> WJoinError:
    word, span = code.word(place), code.tokens[place].span
    if word == "LATERAL":
        remedy = "a stream cannot use columns of another; use LATERAL VIEW explode(A.tags) t AS tag"
        return WJoinError(
            "WJ107", "a LATERAL relation is not supported with a window clause", span=span, help=remedy
        )
    if word in _NOT_A_STREAM:
        message = f"{word} is not supported with a window clause"
        return WJoinError("WJ108", message, span=span, help=_NOT_A_STREAM[word])
    if code.kind(place) is Kind.STRING:
        remedy = "write a name plain or in backticks, not in quotes"
        return WJoinError("WJ108", f"the string {code.mark(place)} is not a relation", span=span, help=remedy)
    return WJoinError("WJ108", f"{code.mark(place)} cannot follow or begin a FROM item", span=span)


def _condition_end(code: Code, start: int, end: int) -> int:
    for place in code.level(start, end):
        if code.mark(place) == "," or code.join_end(place):
            return place
        if code.word(place) == "LATERAL" and code.ends_operand(place - 1):
            return place
    return end


def _name_list(code: Code, opening: int, end: int) -> tuple[Identifier, ...]:
    names = code.names(opening) if opening < end else []
    if not names:
        span = code.span(opening - 1, max(opening, code.partner[opening] + 1 if opening < end else 0))
        raise WJoinError("WJ108", "USING has no list of columns", span=span, help="write USING (x, y)")
    return tuple(map(identifier, names))


# One relation ----------------------------------------------------------------


class _Relation(NamedTuple):
    """The relation of an item as token range, with the parts of its name."""

    start: int
    end: int
    parts: tuple[Identifier, ...]


def _item(code: Code, start: int, end: int) -> tuple[FromItem, int]:
    """Return the FROM item that starts at a place, and the place after it."""
    if start >= end:
        span = code.tokens[start - 1].span
        raise WJoinError("WJ108", "a relation is missing in FROM", span=span, help="write one after the mark")
    if code.word(start) == "STREAM" and code.mark(start + 1) == "(" and start + 1 < end:
        closing = code.partner[start + 1]
        relation = _relation(code, start + 2, closing)
        if relation.end != closing or not relation.parts:
            span = code.span(start, closing + 1)
            remedy = "STREAM takes the name of a table: STREAM(t)"
            raise WJoinError("WJ108", "STREAM does not hold a table name", span=span, help=remedy)
        place, streaming = closing + 1, True
    else:
        streaming = _is_stream_word(code, start, end)
        relation = _relation(code, start + streaming, end)
        place = relation.end
    watermark, place = _watermark(code, place, end)
    alias, place = _alias(code, place, end)
    if alias is not None and code.mark(place) == "(" and place < end:
        # The names of the columns belong to what Spark reads: t AS a(x, y).
        if watermark is not None or streaming:
            raise WJoinError(
                "WJ108",
                f"the alias {alias.name} has a list of columns beside a WATERMARK or STREAM",
                span=code.span(place, code.after(place)),
                help="name the columns in a subquery: (SELECT x AS a FROM t) AS s",
            )
        place = code.after(place)
        relation = _Relation(relation.start, place, ())
    if watermark is None:
        watermark, place = _watermark(code, place, end)
    span = code.span(start, place)
    if alias is None and not relation.parts:
        raise WJoinError(
            "WJ108", "a relation without a name has no alias", span=span, help="add AS and a name"
        )
    marked = code.span(relation.start, relation.end)
    return FromItem(marked, relation.parts, alias, watermark, span=span, streaming=streaming), place


def _is_stream_word(code: Code, start: int, end: int) -> bool:
    following = code.tokens[start + 1] if start + 1 < end else None
    if code.word(start) != "STREAM" or following is None or not is_name(following):
        return False
    return following.word not in _NO_ALIAS and not _watermark_at(code, start + 1)


def _relation(code: Code, start: int, end: int) -> _Relation:
    """Return the relation at a place: a subquery, a dotted name, a table function or ``{name}``."""
    if start >= end:
        raise _not_a_source(code, start - 1)
    if code.mark(start) == "(":
        return _Relation(start, code.after(start), ())
    if code.mark(start) == "{" and code.mark(start + 2) == "}":
        return _Relation(start, start + 3, ())
    if code.word(start) == "VALUES" and (stop := _rows_end(code, start + 1, end)):
        return _Relation(start, stop, ())
    if not is_name(code.tokens[start]) or code.word(start) in _NO_ALIAS or code.word(start) in _NOT_A_STREAM:
        raise _not_a_source(code, start)
    parts, place = code.dotted(start)
    if place < end and code.mark(place) == "(":
        return _Relation(start, code.after(place), ())
    stop = clause_end(code, _version_end(code, place, end), end)
    if code.word(stop) == "WITH" and stop + 1 < end and code.mark(stop + 1) == "(":
        stop = code.after(stop + 1)
    return _Relation(start, stop, parts if stop == place else ())


def _rows_end(code: Code, place: int, end: int) -> int:
    """Return the place after the rows of a VALUES, each in parentheses; 0 where there are none."""
    while code.mark(place) == "(" and place < end:
        place = code.after(place)
        if code.mark(place) != "," or code.mark(place + 1) != "(":
            return place
        place += 1
    return 0


def _version_end(code: Code, place: int, end: int) -> int:
    """Return the place after ``[FOR] VERSION AS OF 3`` or the like; the same place where there is none."""
    first = place + (code.word(place) == "FOR")
    words = [code.word(index) for index in range(first, min(first + 3, end))]
    if words[1:] != ["AS", "OF"] or words[0] not in ("VERSION", "TIMESTAMP", "SYSTEM_VERSION", "SYSTEM_TIME"):
        return place
    value = first + 3
    if value < end and code.mark(value + 1) == "(":
        return code.after(value + 1)
    return min(value + 1, end)


def _alias(code: Code, place: int, end: int) -> tuple[Identifier | None, int]:
    written = place < end and code.word(place) == "AS"
    name = place + written
    if not written and within_at(code, place):
        return None, place
    if name < end and is_name(code.tokens[name]) and (written or code.tokens[name].word not in _NO_ALIAS):
        return identifier(code.tokens[name]), name + 1
    if written:
        span = code.tokens[name].span if name < end else code.tokens[place].span
        raise WJoinError("WJ108", "AS is not followed by a name", span=span, help="write AS and a name")
    return None, place


def _watermark_at(code: Code, place: int) -> bool:
    """Return whether a watermark clause, and no alias of that name, starts at a place."""
    if code.word(place) != "WATERMARK" or place + 2 >= len(code.tokens):
        return False
    if code.word(place + 1) == "FOR":
        return is_name(code.tokens[place + 2])
    return is_name(code.tokens[place + 1]) and (
        code.word(place + 2) == "DELAY" or code.mark(place + 2) in ("(", ".")
    )


def _watermark(code: Code, place: int, end: int) -> tuple[Watermark | None, int]:
    if place >= end or not _watermark_at(code, place):
        return None, place
    stop = place + 4  # WATERMARK ts DELAY OF
    if code.word(place + 1) == "FOR":
        stop = place + 5  # WATERMARK FOR ts AS ts
        stop += code.mark(stop) == "-"
    elif code.word(place + 2) != "DELAY":
        raise WJoinError(
            "WJ108",
            "WATERMARK does not name a column of the relation",
            span=code.span(place + 1, min(code.after(place + 2), end)),
            help="compute the event time in a subquery and name its column",
        )
    tokens = code.tokens[:end]
    if code.word(place + 1) != "FOR" or code.mark(stop - 1) == "-":
        stop = duration_end(tokens, min(stop, end))
    try:
        return read_watermark(tokens[place:stop]), min(stop, end)
    except SyntaxSlip as slip:
        start = slip.leaf.start_pos or 0
        raise WJoinError(
            "WJ108",
            "a WATERMARK clause cannot be read",
            span=Span(start, slip.leaf.end_pos or start),
            help="write WATERMARK ts DELAY OF INTERVAL 5 SECONDS",
        ) from None
