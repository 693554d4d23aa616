"""SQL text to a tree, by sqlglot: with an end to how deep it may be, and room on the stack for what is deep.

Whoever walks a tree does so without recursion: sqlglot makes a chain of 1,000 ORs a tree of depth 1,000,
which is no depth that anybody wrote, and Spark reads it.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError

from wjoin.grammar.nesting import MAXIMAL_DEPTH, too_deep
from wjoin.grammar.spans import Span
from wjoin.grammar.stack import room
from wjoin.grammar.tokens import Token, scan

_PREFIXES = frozenset(("-", "+", "~", "!"))
_BARE_JOINS = 8
"""JOINs without ON or USING after each other: sqlglot takes twice as long for each of them."""


def parse(sql: str) -> exp.Expr:
    """Return the tree of a piece of Spark SQL.

    Raises SqlglotError where it cannot be read, and WJoinError WJ114 with its place where it is too deep.
    """
    tokens = scan(sql)
    deep = _too_deep(tokens)
    if deep is not None:
        raise too_deep(deep.span)
    if _bare_joins(tokens) > _BARE_JOINS:
        raise ParseError("many JOINs without a condition")
    with _quiet():
        try:
            return sqlglot.parse_one(sql, dialect="spark")
        except RecursionError:
            # Deeper than what people write; or the caller is deep itself.
            pass
        try:
            with room():
                return sqlglot.parse_one(sql, dialect="spark")
        except RecursionError:
            raise too_deep(Span(0, len(sql))) from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep sqlglot from telling users which statements it does not know: they are Spark's."""
    logger, silence = logging.getLogger("sqlglot"), logging.Filter("none of these")
    logger.addFilter(silence)
    try:
        yield
    finally:
        logger.removeFilter(silence)


def _too_deep(tokens: Sequence[Token]) -> Token | None:
    """Return the first token that brackets, CASE and signs before it make too deep."""
    depth = signs = 0
    for token in tokens:
        if token.text in ("(", "[", "{") or token.word == "CASE":
            depth += 1
        elif token.text in (")", "]", "}") or token.word == "END":
            depth = max(0, depth - 1)
        signs = signs + 1 if token.text in _PREFIXES or token.word == "NOT" else 0
        if depth + signs > MAXIMAL_DEPTH:
            return token
    return None


def _bare_joins(tokens: Sequence[Token]) -> int:
    """Return the most JOINs one after the other that no condition follows."""
    most = bare = 0
    for place, token in enumerate(tokens):
        if token.word == "JOIN" and tokens[place - 1].word != "CROSS":
            bare += 1
            most = max(most, bare)
        elif token.word in ("ON", "USING"):
            bare = 0
    return most
