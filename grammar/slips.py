"""From a place where reading stopped to an error that says how to mend it.

Common slips are told by examples of them: the parser's state and the token at which an
example stops are its fingerprint (as Lark's match_examples does, but the examples are read
once). Whatever has no example is told by what the grammar would have taken.
"""

from functools import cache
from typing import NamedTuple

from wjoin.grammar.clauses import MARKS, SyntaxSlip, declaration_leaves, leaves_of, read_tree
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.plurals import listed
from wjoin.grammar.spans import Span
from wjoin.grammar.tokens import scan

_TERMS = (
    "WINDOW = {}",
    "WINDOW (A, B) = {}",
    "DWINDOW (A, B) = {}",
    "WINDOW A = {}",
    "WINDOW (A, B) BETWEEN 1 AND {}",
)
_WIDTHS = "5", "5 SECONDS", ":w", "'5 s'", "INTERVAL 5 SECONDS", "INTERVAL '5' SECOND", "INTERVAL '5 s'"
_WIDTHS_TOO = "- 5 SECONDS", "INTERVAL '1:1' HOUR TO MINUTE"
_WHOLE_TERMS = (
    *(term.format(width) for term in _TERMS for width in (*_WIDTHS, *_WIDTHS_TOO)),
    "WINDOW A = 5 ROWS",
    "PATH (A, B) WITHIN (1)",
    "PATH (A, B) WITHIN (1) BIDIRECTIONAL",
    "(WINDOW = 5)",
)
_BEFORE_WIDTH = "WINDOW (A, B)", "WINDOW A", "WINDOW", "DWINDOW (A, B)"


_INTERVAL_AND_PARAMETER = (
    "INTERVAL stands before a parameter",
    "leave it out: the parameter's value is a duration with a unit, for example w='5 seconds'",
)


class _Example(NamedTuple):
    message: str
    help: str
    examples: tuple[str, ...]


def _after(starts: tuple[str, ...], *ends: str) -> tuple[str, ...]:
    return tuple(f"{start} {end}" for start in starts for end in ends)


_CLAUSE_SLIPS = (
    _Example(
        "the '=' before the width is missing",
        "write it, for example WINDOW (A, B) = 5 SECONDS",
        (
            *_after(_BEFORE_WIDTH, "5", "INTERVAL 5 SECONDS", ":w", "- 5"),
            *_after(_BEFORE_WIDTH[:1] + _BEFORE_WIDTH[-1:], "'5 seconds'"),
            "WINDOW (A, B)",
            "WINDOW A",
            "DWINDOW (A, B)",
        ),
    ),
    _Example(
        "WITHIN belongs to PATH",
        "write WINDOW (A, B) = 5 SECONDS",
        _after(_BEFORE_WIDTH, "WITHIN"),
    ),
    _Example(
        "a window takes two streams",
        "write PATH (A, B, C) WITHIN (w1, w2), or WINDOW = w for every pair of streams",
        ("WINDOW (A, B, C) = 5", "DWINDOW (A, B, C) = 5"),
    ),
    _Example(
        "a single stream is in parentheses",
        "write WINDOW A = w for one stream, WINDOW (A, B) = w for two",
        ("WINDOW (A) = 5", "DWINDOW (A) = 5"),
    ),
    _Example(
        "the streams of a window have no parentheses",
        "write WINDOW (A, B) = 5 SECONDS",
        ("WINDOW A, B = 5",),
    ),
    _Example(
        "DWINDOW takes two streams in parentheses",
        "write DWINDOW (A, B) = 5 SECONDS: A first, then B",
        ("DWINDOW A = 5", "DWINDOW = 5", "DWINDOW 5", "DWINDOW"),
    ),
    _Example(
        "DWINDOW does not support BETWEEN",
        "write WINDOW (A, B) BETWEEN l AND u: its bounds have signs",
        ("DWINDOW (A, B) BETWEEN 1 AND 2", "DWINDOW BETWEEN"),
    ),
    _Example(
        "BETWEEN takes a pair of streams before it",
        "write WINDOW (A, B) BETWEEN l AND u",
        ("WINDOW BETWEEN 1 AND 2", "WINDOW A BETWEEN 1 AND 2"),
    ),
    _Example(
        "the bounds of BETWEEN are not joined by AND",
        "write WINDOW (A, B) BETWEEN l AND u",
        (
            "WINDOW (A, B) BETWEEN 5 ,",
            *(f"WINDOW (A, B) BETWEEN {width} TO" for width in (*_WIDTHS, "INTERVAL '1:1' HOUR TO MINUTE")),
        ),
    ),
    _Example(
        "the streams of a path have no parentheses",
        "write PATH (A, B, C) WITHIN (w1, w2)",
        ("PATH A, B", "PATH = 5", "PATH"),
    ),
    _Example(
        "the word WITHIN is missing in a path",
        "write PATH (A, B, C) WITHIN (w1, w2)",
        _after(("PATH (A, B)", "PATH (A)"), "(1)", "= (1)", "5", "INTERVAL 5 SECONDS", ":w", "", "BETWEEN"),
    ),
    _Example(
        "the widths of a path have no parentheses",
        "write WITHIN (w1, w2), one width for each step",
        _after(("PATH (A, B) WITHIN",), "5", "INTERVAL 5 SECONDS", ":w", "- 5", "= 5"),
    ),
    _Example(
        "a comma separates two terms",
        "join the terms with AND",
        _after(_WHOLE_TERMS, ","),
    ),
    _Example(
        "two terms are not joined",
        "join them with AND or OR",
        _after(_WHOLE_TERMS, "WINDOW = 5", "DWINDOW (A, B) = 5", "PATH (A, B) WITHIN (1)", "(WINDOW = 5)"),
    ),
    _Example(
        "expected a duration, found a name",
        "write a number and a unit, for example 5 SECONDS; a parameter begins with a colon, :w",
        _after(
            (
                *(term.format("") for term in _TERMS),
                *("PATH (A, B) WITHIN (", "PATH (A, B) WITHIN (1,", "WINDOW (A, B) BETWEEN", "WINDOW = -"),
            ),
            "w",
        ),
    ),
    _Example(
        "a unit follows a string",
        "put the unit inside the string, for example '5 seconds', or write INTERVAL before it",
        ("WINDOW = '5' SECONDS",),
    ),
    _Example(
        "a unit follows a parameter",
        "leave it out: the parameter's value includes the unit, for example w='5 seconds'",
        ("WINDOW = :w SECONDS",),
    ),
    _Example(
        *_INTERVAL_AND_PARAMETER,
        ("WINDOW = INTERVAL :w",),
    ),
    _Example(
        "expected the name of a stream, found a string",
        "write names plain or in backticks",
        (
            "WINDOW 'A'",
            "WINDOW ('A'",
            "WINDOW (A, 'B'",
            "DWINDOW ('A'",
            "DWINDOW (A, 'A'",
            "PATH ('A'",
            "PATH (A, 'B'",
        ),
    ),
    _Example(
        "a stream is named with a dot",
        "write the alias of the stream alone: its event time is known",
        ("WINDOW (A.x",),
    ),
    _Example(
        "a term is missing after the last AND or OR",
        "write one, for example WINDOW (A, B) = 5 SECONDS, or leave the word out",
        ("WINDOW = 5 AND", "WINDOW = 5 OR", "WINDOW = 5 AND WINDOW = 5 AND", "WINDOW = 5 OR WINDOW = 5 OR"),
    ),
    _Example(
        "parentheses without a term",
        "write a term inside, for example (WINDOW (A, B) = 5 SECONDS)",
        ("()",),
    ),
    _Example(
        "the width is missing",
        "write a number and a unit, for example 5 SECONDS",
        (
            *(term.format("") for term in _TERMS),
            "PATH (A, B) WITHIN ()",
            "WINDOW (A, B) BETWEEN",
            "(WINDOW = )",
        ),
    ),
)

_STREAMS = "CREATE STREAM s", "CREATE STREAM s (a INT)", "CREATE STREAM s (a INT, b INT)"
_CLAUSES = tuple(f"CREATE STREAM s USING f {clause}" for clause in ("", "OPTIONS (a 1)", "FORMAT json"))

_DECLARATION_SLIPS = (
    _Example(
        *_INTERVAL_AND_PARAMETER,
        ("CREATE STREAM s USING f WATERMARK ts DELAY OF INTERVAL :w",),
    ),
    _Example(
        "streams and sinks have no TEMPORARY, TEMP or GLOBAL",
        "leave the word out: streams and sinks exist as long as their session",
        ("CREATE TEMPORARY", "CREATE OR REPLACE TEMPORARY"),
    ),
    _Example(
        "USING and a format are missing",
        "write for example USING parquet OPTIONS (path 'data/camera1')",
        tuple(
            f"{start} {end}"
            for start in (*_STREAMS, "CREATE SINK s")
            for end in ("", "OPTIONS", "WATERMARK ts", "PARTITIONED")
        ),
    ),
    _Example(
        "the address of a site is missing",
        "write AT SITE 'grpc://host:port', or AT SITES ('…', '…')",
        _after(
            ("CREATE STREAM s AT",),
            *("", "'grpc://host:1'", "SITE", "SITE s", "SITE (", "SITES", "SITES 'a'", "SITES ("),
        ),
    ),
    _Example(
        "a stream or sink cannot be made from a query",
        "write CREATE VIEW name AS SELECT …",
        tuple(f"{start} AS" for start in (*_STREAMS, "CREATE SINK s")),
    ),
    _Example(
        "a name with several parts",
        "the names of streams and sinks have one part",
        ("CREATE STREAM s.t", "ALTER STREAM s.t", "ANALYZE STREAM s.t"),
    ),
    _Example(
        "a sink has no column list",
        "leave it out: the sink takes the columns of the query that is inserted",
        ("CREATE SINK s (a INT)",),
    ),
    _Example(
        "a sink has no watermark",
        "declare it on the stream",
        _after(("CREATE SINK s USING f",), "WATERMARK", "OPTIONS (a 1) WATERMARK"),
    ),
    _Example(
        "a stream is not partitioned",
        "PARTITIONED BY belongs to CREATE SINK",
        _after(_CLAUSES, "PARTITIONED"),
    ),
    _Example(
        "a stream has no key",
        "KEY belongs to CREATE SINK; a column can be computed of a record's: k AS CAST(key AS STRING)",
        _after(_CLAUSES, "KEY"),
    ),
    _Example(
        "the key has no parentheses",
        "write KEY (column)",
        ("CREATE SINK s USING f KEY k", "CREATE SINK s USING f KEY = k", "CREATE SINK s USING f KEY 'k'"),
    ),
    _Example(
        "the name of a format is missing",
        "write FORMAT JSON, FORMAT CSV or FORMAT AVRO, without quotes",
        _after(("CREATE STREAM s USING f FORMAT",), "", "'json'", "= json"),
    ),
    _Example(
        "the options have no parentheses",
        "write OPTIONS (path 'data/camera1')",
        ("CREATE STREAM s USING f OPTIONS path", "CREATE STREAM s USING f OPTIONS 'path'"),
    ),
    _Example(
        "an option has no value",
        "write a name and a value, for example path 'data/camera1'",
        tuple(
            f"CREATE STREAM s USING f OPTIONS ({key}{end}"
            for key in ("a", "a.b", "a.b.c", "'a'")
            for end in ",)"
        ),
    ),
    _Example(
        "a setting has no value",
        "write SET key = value",
        ("SET a.b", *_after(("SET a",), "", "=", "c", "5", "'c'", "-")),
    ),
)

_STATISTIC = "ALTER STREAM s SET STATISTICS ("
_STATISTIC_KEYS = tuple(f"{_STATISTIC}{key}" for key in ("a", "a.b", "a.b.c", "disorder"))
_BEFORE_VALUE = tuple(f"{key} =" for key in _STATISTIC_KEYS)
_BEFORE_NUMBER = tuple(f"{_STATISTIC}a = {sign}" for sign in ("", "-", "+"))

_STATISTICS_SLIPS = (
    _Example(
        "the word STATISTICS is missing",
        "write ALTER STREAM s SET STATISTICS (rate = 1000), or ALTER STREAM s RESET STATISTICS",
        _after(("ALTER STREAM s SET", "ALTER STREAM s RESET"), "(rate = 1)", "rate = 1", ""),
    ),
    _Example(
        "the word SET is missing",
        "write ALTER STREAM s SET STATISTICS (rate = 1000)",
        _after(("ALTER STREAM s",), "STATISTICS", "(rate = 1)"),
    ),
    _Example(
        "ALTER STREAM has no IF EXISTS",
        "leave it out",
        ("ALTER STREAM IF EXISTS s",),
    ),
    _Example(
        "ALTER STREAM changes only statistics",
        "write SET STATISTICS (rate = 1000) or RESET STATISTICS; else CREATE OR REPLACE STREAM",
        _after(("ALTER STREAM s",), "", "ADD", "DROP", "WATERMARK", "OPTIONS", "USING", "AS", "="),
    ),
    _Example(
        "the statistics have no parentheses",
        "write SET STATISTICS (rate = 1000)",
        _after(("ALTER STREAM s SET STATISTICS",), "rate = 1", "= 1", "disorder", ""),
    ),
    _Example(
        "parentheses without a statistic",
        "write one, for example (rate = 1000); RESET STATISTICS resets all of them",
        (f"{_STATISTIC})",),
    ),
    _Example(
        "RESET STATISTICS resets all statistics and has no list",
        "leave the list out",
        _after(("ALTER STREAM s RESET STATISTICS",), "(rate)", "rate", "disorder"),
    ),
    _Example(
        "the name of a statistic is in quotes",
        "write it plain, for example rate = 1000",
        _after((_STATISTIC, f"{_STATISTIC}a = 1,"), "'rate' = 1"),
    ),
    _Example(
        "a statistic is missing after the last comma",
        "write one, for example rate = 1000, or leave the comma out",
        (f"{_STATISTIC}a = 1,)",),
    ),
    _Example(
        "the column of a statistic is in parentheses",
        "write it after a dot, for example distinct.obj_id = 5000",
        _after(_STATISTIC_KEYS, "("),
    ),
    _Example(
        "the statistic disorder belongs to the whole stream, not to a column",
        "write for example disorder = 2 SECONDS",
        (f"{_STATISTIC}disorder.",),
    ),
    _Example(
        "a statistic has no value",
        "write for example rate = 1000, distinct.obj_id = 5000 or disorder = 2 SECONDS",
        (*_after(_STATISTIC_KEYS, ",", ")"), *_after((*_BEFORE_VALUE, *_BEFORE_NUMBER), ",", ")")),
    ),
    _Example(
        "the '=' after the name of a statistic is missing",
        "write for example rate = 1000, or distinct.obj_id = 5000 with a dot before the column",
        _after(_STATISTIC_KEYS, "5", "'c'", "c", "-", "+", ":w", "INTERVAL", "=>", "==", ":", "<="),
    ),
    _Example(
        "expected the value of a statistic, found a string",
        "leave the quotes out, for example rate = 1000",
        _after((*_BEFORE_VALUE[:-1], *_BEFORE_NUMBER), "'5'"),
    ),
    _Example(
        "expected the number of a statistic, found a parameter",
        "write the number itself; disorder alone takes a parameter",
        _after(_BEFORE_NUMBER, ":w"),
    ),
    _Example(
        "expected the number of a statistic, found an interval",
        "write for example rate = 1000; disorder alone is a duration",
        _after(_BEFORE_NUMBER, "INTERVAL"),
    ),
    _Example(
        "the value of a statistic is not a number",
        "write digits without underscores, for example rate = 1000 or disorder = 2 SECONDS",
        _after((*_BEFORE_VALUE, *_BEFORE_NUMBER), "w", "(", "*", "="),
    ),
    _Example(
        "a share is written in percent",
        "write a number from 0 to 1, for example selectivity = 0.1",
        _after(_BEFORE_NUMBER, "1 %"),
    ),
    _Example(
        "the value of a statistic is one number",
        "disorder alone has a unit (rate is rows per second, width bytes); write a comma between statistics",
        _after(_BEFORE_NUMBER, "1 w", "1 ROWS", "1 2", "1 *", "1 /", "1 disorder"),
    ),
    _Example(
        "the word ROWS is missing",
        "write for example SAMPLE 10000 ROWS",
        ("ANALYZE STREAM s SAMPLE 1",),
    ),
    _Example(
        "a sample is a number of ROWS",
        "write for example SAMPLE 10000 ROWS: a stream has no known size to take a share of",
        _after(("ANALYZE STREAM s SAMPLE 1",), "PERCENT", "%", "INTERVAL"),
    ),
    _Example(
        "a sample has no number of rows",
        "write for example SAMPLE 10000 ROWS, a whole number of one or more, without parentheses",
        _after(("ANALYZE STREAM s SAMPLE",), "", "ROWS", "n", "(1 ROWS)", "- 1", "+ 1", ":n", "'1'"),
    ),
    _Example(
        "ANALYZE STREAM takes a sample and nothing else",
        "write ANALYZE STREAM s, or ANALYZE STREAM s SAMPLE 10000 ROWS",
        _after(("ANALYZE STREAM s",), "COMPUTE", "FOR", "1", "(", "TABLESAMPLE", ",", "WITH"),
    ),
)


def _fingerprint(start: str, example: str) -> tuple[int, str] | None:
    tokens = scan(example)
    try:
        read_tree(start, declaration_leaves(example, tokens) if start == "declaration" else leaves_of(tokens))
    except SyntaxSlip as slip:
        return slip.state, slip.leaf.type
    return None


@cache
def _known(start: str) -> dict[tuple[int, str], _Example]:
    """Return the fingerprints of the slips for a start rule; the first example of one counts."""
    known: dict[tuple[int, str], _Example] = {}
    for slip in _CLAUSE_SLIPS if start == "clause" else (*_DECLARATION_SLIPS, *_STATISTICS_SLIPS):
        for example in slip.examples:
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
