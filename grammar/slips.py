"""From a place where reading stopped to an error that says how to mend it.

Common slips are told by examples of them: the parser's state and the token at which an
example stops are its fingerprint (as Lark's match_examples does, but the examples are read
once). Whatever has no example is told by what the grammar would have taken.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from typing import NamedTuple

from wjoin.grammar.clauses import MARKS, SyntaxSlip, declaration_leaves, leaves_of, read_tree
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.plurals import listed
from wjoin.grammar.spans import Span
from wjoin.grammar.tokens import scan


class _Slip(NamedTuple):
    message: str
    help: str


_CLAUSE_SLIPS = """
the '=' before the width is missing
  write it, for example WINDOW (A, B) = 5 SECONDS
  {WINDOW (A, B)|WINDOW A|WINDOW|DWINDOW (A, B)} {5|INTERVAL 5 SECONDS|:w|- 5}
  {WINDOW (A, B)|DWINDOW (A, B)} '5 seconds'
  {WINDOW (A, B)|WINDOW A|DWINDOW (A, B)}
WITHIN belongs to PATH
  write WINDOW (A, B) = 5 SECONDS
  {WINDOW (A, B)|WINDOW A|DWINDOW (A, B)} WITHIN
a window takes two streams
  write PATH (A, B, C) WITHIN (w1, w2), or WINDOW = w for every pair of streams
  {WINDOW|DWINDOW} (A, B, C) = 5
a single stream is in parentheses
  write WINDOW A = w for one stream, WINDOW (A, B) = w for two
  {WINDOW|DWINDOW} (A) = 5
the streams of a window have no parentheses
  write WINDOW (A, B) = 5 SECONDS
  WINDOW A, B = 5
DWINDOW takes two streams in parentheses
  write DWINDOW (A, B) = 5 SECONDS: A first, then B
  DWINDOW {A = 5|= 5|5|}
DWINDOW does not support BETWEEN
  write WINDOW (A, B) BETWEEN l AND u: its bounds have signs
  DWINDOW {(A, B) |}BETWEEN 1 AND 2
BETWEEN takes a pair of streams before it
  write WINDOW (A, B) BETWEEN l AND u
  WINDOW A BETWEEN 1 AND 2
the bounds of BETWEEN are not joined by AND
  write WINDOW (A, B) BETWEEN l AND u
  WINDOW (A, B) BETWEEN 5 ,
  WINDOW (A, B) BETWEEN {5|5 SECONDS|:w|'5 s'|INTERVAL 5 SECONDS|INTERVAL '5' SECOND} TO
  WINDOW (A, B) BETWEEN INTERVAL '1:1' HOUR TO MINUTE TO
the streams of a path have no parentheses
  write PATH (A, B, C) WITHIN (w1, w2)
  PATH {A, B|= 5|}
the word WITHIN is missing in a path
  write PATH (A, B, C) WITHIN (w1, w2)
  {PATH (A, B)|PATH (A)} {(1)|= (1)|5|INTERVAL 5 SECONDS|:w||BETWEEN}
the widths of a path have no parentheses
  write WITHIN (w1, w2), one width for each step
  PATH (A, B) WITHIN {5|INTERVAL 5 SECONDS|:w|- 5|= 5}
a comma separates two terms
  join the terms with AND
  {WINDOW|WINDOW (A, B)|DWINDOW (A, B)|WINDOW A} = 5 ,
  {WINDOW A = 5 SECONDS|WINDOW A = 5 ROWS|WINDOW (A, B) BETWEEN 1 AND 5|(WINDOW = 5)} ,
  PATH (A, B) WITHIN (1) {|BIDIRECTIONAL} ,
a window of rows counts all rows of its stream, those with the same key, or those of the same home
  write ROWS, ROWS PER KEY, or ROWS PER HOME
  WINDOW A = 5 ROWS {PER|PER w|PER (|PER 'w'|AT}
two terms are not joined
  join them with AND or OR
  WINDOW = {5|5 SECONDS|:w|'5 s'} {WINDOW = 5|DWINDOW (A, B) = 5|PATH (A, B) WITHIN (1)|(WINDOW = 5)}
  WINDOW = INTERVAL {5 SECONDS|'5' SECOND|'5 s'|'1:1' HOUR TO MINUTE} {WINDOW = 5|DWINDOW|PATH|(}
  WINDOW A = {5|5 SECONDS|5 ROWS} {WINDOW = 5|DWINDOW|PATH|(}
  {PATH (A, B) WITHIN (1)|PATH (A, B) WITHIN (1) BIDIRECTIONAL|(WINDOW = 5)} {WINDOW = 5|DWINDOW|PATH|(}
expected a duration, found a name
  write a number and a unit, for example 5 SECONDS; a parameter begins with a colon, :w
  {WINDOW =|WINDOW A =|WINDOW = -} w
  {WINDOW (A, B) BETWEEN 1 AND|WINDOW (A, B) BETWEEN|PATH (A, B) WITHIN (|PATH (A, B) WITHIN (1,} w
expected a duration, found a name
  write a number and a unit, such as 5 SECONDS, or what a row says, with a limit: A.ends - A.ts AT MOST 1 HOUR
  {WINDOW (A, B) =|DWINDOW (A, B) =} w
a unit follows a string
  put the unit inside the string, for example '5 seconds', or write INTERVAL before it
  WINDOW = '5' SECONDS
a unit follows a parameter
  leave it out: the parameter's value includes the unit, for example w='5 seconds'
  WINDOW = :w SECONDS
INTERVAL stands before a parameter
  leave it out: the parameter's value is a duration with a unit, for example w='5 seconds'
  WINDOW = INTERVAL :w
expected the name of a stream, found a string
  write names plain or in backticks
  WINDOW {'A'|('A'|(A, 'B'}
  {DWINDOW|PATH} {('A'|(A, 'B'}
a stream is named with a dot
  write the alias of the stream alone: its event time is known
  WINDOW (A.x
a term is missing after the last AND or OR
  write one, for example WINDOW (A, B) = 5 SECONDS, or leave the word out
  WINDOW = 5 {AND|OR|AND WINDOW = 5 AND|OR WINDOW = 5 OR}
parentheses without a term
  write a term inside, for example (WINDOW (A, B) = 5 SECONDS)
  ()
the width is missing
  write a number and a unit, for example 5 SECONDS
  {WINDOW|WINDOW (A, B)|DWINDOW (A, B)|WINDOW A} =
  {WINDOW (A, B) BETWEEN 1 AND|PATH (A, B) WITHIN ()|WINDOW (A, B) BETWEEN|(WINDOW = )}
"""
_DECLARATION_SLIPS = """
INTERVAL stands before a parameter
  leave it out: the parameter's value is a duration with a unit, for example w='5 seconds'
  CREATE STREAM s USING f WATERMARK ts DELAY OF INTERVAL :w
streams and sinks have no TEMPORARY, TEMP or GLOBAL
  leave the word out: streams and sinks exist as long as their session
  CREATE {|OR REPLACE }TEMPORARY
USING and a format are missing
  write for example USING parquet OPTIONS (path 'data/camera1')
  CREATE {STREAM s|STREAM s (a INT)|STREAM s (a INT, b INT)|SINK s} {|OPTIONS|WATERMARK ts|PARTITIONED}
the address of a site is missing
  write AT SITE 'grpc://host:port', or AT SITES ('…', '…')
  CREATE STREAM s AT {|'grpc://host:1'|SITE|SITE s|SITE (|SITES|SITES 'a'|SITES (}
a stream or sink cannot be made from a query
  write CREATE VIEW name AS SELECT …, or CREATE SINK name USING … and INSERT INTO name SELECT …
  CREATE {STREAM s|STREAM s (a INT)|STREAM s (a INT, b INT)|SINK s} AS
a name with several parts
  the names of streams and sinks have one part
  {CREATE|ALTER|ANALYZE} STREAM s.t
a sink has no column list
  leave it out: the sink takes the columns of the query that is inserted
  CREATE SINK s (a INT)
a sink has no watermark
  declare it on the stream
  CREATE SINK s USING f {|OPTIONS (a 1)} WATERMARK
a stream is not partitioned
  PARTITIONED BY belongs to CREATE SINK
  CREATE STREAM s USING f {|OPTIONS (a 1)|FORMAT json} PARTITIONED
a stream has no key
  KEY belongs to CREATE SINK; a column can be computed of a record's: k AS CAST(key AS STRING)
  CREATE STREAM s USING f {|OPTIONS (a 1)|FORMAT json} KEY
the key has no parentheses
  write KEY (column)
  CREATE SINK s USING f KEY {k|= k|'k'}
the name of a format is missing
  write FORMAT JSON, FORMAT CSV or FORMAT AVRO, without quotes
  CREATE STREAM s USING f FORMAT {|'json'|= json}
the options have no parentheses
  write OPTIONS (path 'data/camera1')
  CREATE STREAM s USING f OPTIONS {path|'path'}
an option has no value
  write a name and a value, for example path 'data/camera1'
  CREATE STREAM s USING f OPTIONS ({a|a.b|a.b.c|'a'}{,|)}
a setting has no value
  write SET key = value
  SET {a|a =|a c|a 5|a 'c'|a -|a.b}
the word STATISTICS is missing
  write ALTER STREAM s SET STATISTICS (rate = 1000), or ALTER STREAM s RESET STATISTICS
  ALTER STREAM s {SET|RESET} {(rate = 1)|rate = 1|}
the word SET is missing
  write ALTER STREAM s SET STATISTICS (rate = 1000)
  ALTER STREAM s {STATISTICS|(rate = 1)}
ALTER STREAM has no IF EXISTS
  leave it out
  ALTER STREAM IF EXISTS s
ALTER STREAM changes only statistics
  write SET STATISTICS (rate = 1000) or RESET STATISTICS; else CREATE OR REPLACE STREAM
  ALTER STREAM s {|ADD|DROP|WATERMARK|OPTIONS|USING|AS|=}
the statistics have no parentheses
  write SET STATISTICS (rate = 1000)
  ALTER STREAM s SET STATISTICS {rate = 1|= 1|disorder|}
parentheses without a statistic
  write one, for example (rate = 1000); RESET STATISTICS resets all of them
  ALTER STREAM s SET STATISTICS ()
RESET STATISTICS resets all statistics and has no list
  leave the list out
  ALTER STREAM s RESET STATISTICS {(rate)|rate|disorder}
the name of a statistic is in quotes
  write it plain, for example rate = 1000
  ALTER STREAM s SET STATISTICS ({|a = 1,} 'rate' = 1
a statistic is missing after the last comma
  write one, for example rate = 1000, or leave the comma out
  ALTER STREAM s SET STATISTICS (a = 1,)
the column of a statistic is in parentheses
  write it after a dot, for example distinct.obj_id = 5000
  ALTER STREAM s SET STATISTICS ({a|a.b|a.b.c|disorder} (
the statistic disorder belongs to the whole stream, not to a column
  write for example disorder = 2 SECONDS
  ALTER STREAM s SET STATISTICS (disorder.
a statistic has no value
  write for example rate = 1000, distinct.obj_id = 5000 or disorder = 2 SECONDS
  ALTER STREAM s SET STATISTICS ({a|disorder|a =|disorder =|a = -|a = +} {,|)}
the '=' after the name of a statistic is missing
  write for example rate = 1000, or distinct.obj_id = 5000 with a dot before the column
  ALTER STREAM s SET STATISTICS ({a|a.b|a.b.c|disorder} {5|'c'|c|-|+|:w|INTERVAL|=>|==|:|<=}
expected the value of a statistic, found a string
  leave the quotes out, for example rate = 1000
  ALTER STREAM s SET STATISTICS (a = {|-|+} '5'
expected the number of a statistic, found a parameter
  write the number itself; disorder alone takes a parameter
  ALTER STREAM s SET STATISTICS (a = {|-|+} :w
expected the number of a statistic, found an interval
  write for example rate = 1000; disorder alone is a duration
  ALTER STREAM s SET STATISTICS (a = {|-|+} INTERVAL
the value of a statistic is not a number
  write digits without underscores, for example rate = 1000 or disorder = 2 SECONDS
  ALTER STREAM s SET STATISTICS ({a =|a = -|a = +|disorder =} {w|(|*|=}
a share is written in percent
  write a number from 0 to 1, for example selectivity = 0.1
  ALTER STREAM s SET STATISTICS (a = {|-|+} 1 %
the value of a statistic is one number
  disorder alone has a unit (rate is rows per second, width bytes); write a comma between statistics
  ALTER STREAM s SET STATISTICS (a = {|-|+} 1 {w|ROWS|2|*|/|disorder}
the word ROWS is missing
  write for example SAMPLE 10000 ROWS
  ANALYZE STREAM s SAMPLE 1
a sample is a number of ROWS
  write for example SAMPLE 10000 ROWS: a stream has no known size to take a share of
  ANALYZE STREAM s SAMPLE 1 {PERCENT|%|INTERVAL}
a sample has no number of rows
  write for example SAMPLE 10000 ROWS, a whole number of one or more, without parentheses
  ANALYZE STREAM s SAMPLE {|ROWS|n|(1 ROWS)|- 1|+ 1|:n|'1'}
ANALYZE STREAM takes a column after BY, a sample, and nothing else
  write ANALYZE STREAM s, ANALYZE STREAM s BY region, or ANALYZE STREAM s SAMPLE 10000 ROWS
  ANALYZE STREAM s {COMPUTE|FOR|1|(|,}
"""
"""Slips: what is said, what to do, and examples; those in braces stand for one another."""


def _examples(patterns: Sequence[str]) -> Iterator[str]:
    """Yield what patterns stand for: each of the choices in their braces."""
    for pattern in patterns:
        pieces = re.split(r"{(.*?)}", pattern)
        yield from map("".join, product(*(each.split("|") for each in pieces)))


def _fingerprint(start: str, example: str) -> tuple[int, str] | None:
    tokens = scan(example)
    try:
        read_tree(start, declaration_leaves(example, tokens) if start == "declaration" else leaves_of(tokens))
    except SyntaxSlip as slip:
        return slip.state, slip.leaf.type
    return None


@cache
def _known(start: str) -> dict[tuple[int, str], _Slip]:
    """Return the fingerprints of the slips for a start rule; the first example of one counts."""
    known: dict[tuple[int, str], _Slip] = {}
    slips = _CLAUSE_SLIPS if start == "clause" else _DECLARATION_SLIPS
    for each in re.split(r"\n(?! )", slips.strip()):
        message, help, *patterns = map(str.strip, each.split("\n"))
        slip = _Slip(message, help)
        for example in _examples(patterns):
            mark = _fingerprint(start, example)
            if mark is not None:
                known.setdefault(mark, slip)
    return known


_OPERATORS = {
    "<": "write =: a window's bound is inclusive, WINDOW (A, B) = w means at most w apart",
    "<=": "write =: WINDOW (A, B) = w already means at most w apart",
    "==": "write one =",
    "<=>": "write =",
    ":=": "write =",
    "!=": "write = and the greatest distance allowed",
    "<>": "write = and the greatest distance allowed",
    ">": "a window bounds a distance from above; WINDOW (A, B) BETWEEN l AND u bounds it on both sides",
    ">=": "a window bounds a distance from above; WINDOW (A, B) BETWEEN l AND u bounds it on both sides",
    "*": "a width is one number and a unit: no arithmetic",
    "/": "a width is one number and a unit: no arithmetic",
    "->": "write commas between the streams of a path",
}
_GROUPS = (
    (frozenset({"WINDOW", "DWINDOW", "PATH", "LPAR"}), "a term (WINDOW, DWINDOW or PATH)"),
    (frozenset({"NUMBER", "INTERVAL", "PARAMETER", "STRING", "MINUS", "PLUS"}), "a duration"),
)
_WORDS = {
    **{name: mark for mark, name in MARKS.items()},
    "COMMA": "a comma",
    "DOT": "a dot",
    "NAME": "a name",
    "STRING": "a string",
    "NUMBER": "a number",
    "PARAMETER": "a parameter",
    "COLUMN": "a column",
    "EXPRESSION": "an expression",
    "REST": "a value",
    "$END": "the end",
}
_CODES = {"clause": "WJ101", "declaration": "WJ106"}


def explain(slip: SyntaxSlip, start: str) -> WJoinError:
    """Return the error for a place where reading from a start rule stopped."""
    leaf, code = slip.leaf, _CODES[start]
    span = Span(leaf.start_pos or 0, leaf.end_pos or 0)
    text = str(leaf.value)
    if start == "clause" and text in _OPERATORS:
        return WJoinError(code, f"a window clause has no {text}", span=span, help=_OPERATORS[text])
    if start == "clause" and text.upper() == "NOT":
        remedy = "state which distances are allowed, not which are not"
        return WJoinError(code, "a window clause has no NOT", span=span, help=remedy)
    if start == "clause" and text.upper() in ("JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL"):
        remedy = "put the window clause after the last relation of FROM"
        return WJoinError(code, "a join follows the window clause", span=span, help=remedy)
    if start == "declaration" and text.upper() == "WITH":
        options = "kafka.bootstrap.servers 'host:9092', subscribe 'topic'"
        remedy = f"write USING kafka OPTIONS ({options}) FORMAT JSON"
        return WJoinError(code, "options follow USING, not WITH", span=span, help=remedy)
    known = _known(start).get((slip.state, leaf.type))
    if known is not None:
        return WJoinError(code, known.message, span=span, help=known.help)
    found = "the end of the text" if leaf.type == "$END" else text
    return WJoinError(code, f"expected {_in_words(slip.expected)}, found {found}", span=span)


def _in_words(expected: frozenset[str]) -> str:
    words: list[str] = []
    for group, name in _GROUPS:
        if group <= expected:
            words.append(name)
            expected -= group
    words += sorted(_WORDS.get(word, word) for word in expected)
    words = words or ["nothing more"]
    return listed(words, "or")
