"""Where a statement reads a sink by name, and as of which commit time.

``FROM sink``, ``FROM sink AS OF time`` and ``FROM sink FOR COMMIT TIME BETWEEN time AND time``; a time is
``TIMESTAMP '…'``, a string, a parameter, or an expression in parentheses.
"""

from collections.abc import Collection
from dataclasses import dataclass

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.nesting import QUERY_WORDS, Code, pair
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import Identifier
from wjoin.grammar.tokens import Kind, identifier, is_name, scan

_CLAUSE_WORDS = frozenset("FROM SELECT WHERE GROUP ORDER HAVING SORT CLUSTER DISTRIBUTE WINDOW LIMIT".split())
_NO_ALIAS = _CLAUSE_WORDS | frozenset(
    """
    ANTI ASOF CROSS DWINDOW EXCEPT FOR FULL INNER INSERT INTERSECT JOIN LATERAL LEFT MATCH_RECOGNIZE MINUS
    NATURAL OFFSET ON PATH PIVOT QUALIFY RIGHT SEMI SET TABLESAMPLE UNION UNPIVOT USING WITH
    """.split()
)
_NOT_A_SOURCE = frozenset("DELETE DISTINCT COLUMNS FUNCTIONS TABLES VIEWS".split())
"""Words before a FROM behind which no relation of a query stands."""

_REMEDY = (
    "write FROM sink AS OF TIMESTAMP '2026-01-31 12:00:00', or FROM sink FOR COMMIT TIME BETWEEN "
    "TIMESTAMP '…' AND TIMESTAMP '…'"
)


@dataclass(frozen=True)
class ResultRead:
    """A relation that is a sink, or is read as of a time as only a sink is; ``span`` has the clause with it.

    ``first`` and ``last`` are the expressions of the times between which what it reads was committed, None
    where all is read on that side. ``aliased``: an alias follows.
    """

    name: Identifier
    first: str | None
    last: str | None
    aliased: bool
    span: Span


def find_reads(text: str, sinks: Collection[str]) -> tuple[ResultRead, ...]:
    """Return where a statement reads one of the ``sinks`` (lower case), in their order.

    A common table expression of the name of a sink hides it. Raises WJoinError WJ106 for a time that cannot
    be read.
    """
    lower = text.lower()
    if "commit" not in lower and not any(name in lower for name in sinks):
        return ()
    code = pair(text, scan(text))
    found = []
    for place, token in enumerate(code.tokens):
        if not is_name(token) or code.is_field(place) or code.mark(place + 1) in (".", "("):
            continue
        name = identifier(token)
        clause = clause_end(code, place + 1, len(code.tokens))
        timed = clause > place + 1
        if not timed and (name.name.lower() not in sinks or _is_common(code, name)):
            continue
        if timed and code.word(place + 1) == "AS" and name.name.lower() not in sinks:
            continue
        if _is_relation(code, place):
            first, last = _times(code, place + 1) if timed else (None, None)
            found.append(ResultRead(name, first, last, _aliased(code, clause), code.span(place, clause)))
    return tuple(found)


def clause_end(code: Code, place: int, end: int) -> int:
    """Return the place after the clause of a commit time; the same place where there is none."""
    words = [code.word(index) for index in range(place, min(place + 4, end))]
    if words == ["FOR", "COMMIT", "TIME", "BETWEEN"]:
        middle = _time_end(code, place + 4, end)
        after = _time_end(code, middle + 1, end) if code.word(middle) == "AND" else middle
        if after <= middle + 1:
            span = code.span(place, min(after + 1, end))
            raise WJoinError("WJ106", "the commit times cannot be read", span=span, help=_REMEDY)
        return after
    after = _time_end(code, place + 2, end)
    return after if words[:2] == ["AS", "OF"] and after > place + 2 else place


def _time_end(code: Code, place: int, end: int) -> int:
    """Return the place after the expression of a time; the same place where there is none."""
    if place >= end:
        return place
    after = place + (code.word(place) == "TIMESTAMP")
    if after < end and code.kind(after) is Kind.STRING:
        return after + 1
    if code.kind(place) is Kind.PARAMETER or code.mark(place) == "(":
        return code.after(place)
    return place


def _times(code: Code, place: int) -> tuple[str | None, str | None]:
    if code.word(place) == "AS":
        return None, code.span(place + 2, _time_end(code, place + 2, len(code.tokens))).of(code.text)
    middle = _time_end(code, place + 4, len(code.tokens))
    last = code.span(middle + 1, _time_end(code, middle + 1, len(code.tokens)))
    return code.span(place + 4, middle).of(code.text), last.of(code.text)


def _aliased(code: Code, place: int) -> bool:
    if place >= len(code.tokens):
        return False
    token = code.tokens[place]
    return token.word == "AS" or (is_name(token) and token.word not in _NO_ALIAS)


def _is_common(code: Code, name: Identifier) -> bool:
    """Return whether a name is that of a common table expression somewhere in the statement."""
    for place, token in enumerate(code.tokens):
        if is_name(token) and name.matches(identifier(token).name) and code.word(place - 1) != "FROM":
            after = code.after(place + 1) if code.mark(place + 1) == "(" else place + 1
            if code.word(after) == "AS" and code.mark(after + 1) == "(":
                return True
    return False


def _is_relation(code: Code, place: int) -> bool:
    """Return whether a name stands where a FROM has a relation."""
    before = code.word(place - 1)
    if before == "JOIN":
        return True
    if before == "TABLE":
        return code.word(place - 2) in ("", "ALL", "EXCEPT", "INTERSECT", "UNION")
    if before == "FROM":
        return code.word(place - 2) not in _NOT_A_SOURCE and _in_query(code, place)
    if code.mark(place - 1) != ",":
        return False
    opening = _opening(code, place)
    words = [code.word(each) for each in code.level(opening + 1, place)]
    clause = next((word for word in reversed(words) if word in _CLAUSE_WORDS), "")
    return clause == "FROM" and _in_query(code, place)


def _opening(code: Code, place: int) -> int:
    """Return the place of the parenthesis around a place, -1 where there is none."""
    for each in range(place - 1, -1, -1):
        if code.partner[each] > place and code.mark(each) == "(":
            return each
    return -1


def _in_query(code: Code, place: int) -> bool:
    """Return whether a FROM is that of a query, and not of a function such as extract(DAY FROM x)."""
    opening = _opening(code, place)
    return opening < 0 or code.first_word(opening) in QUERY_WORDS
