"""Statements that nobody would write, read and planned: ``python -m tests.parse.fuzzing --seed 0``.

Each is the child of a number, its seed: a statement of the corpus that was changed in a few places, one put
together from its words, or one with an expression that is deep, long or odd. It must end in a plan or in an
error with a code and a place, within a few seconds of one core.
"""

import argparse
import random
import re
import signal
import traceback
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from types import FrameType

from tests.parse.corpus import corpus
from tests.parse.printed import print_condition
from tests.plans.catalogue import PREDICATES, RELATIONS, FakeTypes
from wjoin.grammar import statement_kinds, syntax
from wjoin.grammar.errors import WJoinError, catalogue
from wjoin.grammar.parser import parse_script, unended
from wjoin.grammar.tokens import Kind, scan, unquoted
from wjoin.planner.bind.lineage import joined_streams, query_delays
from wjoin.planner.catalog import Column, Delay, Relation
from wjoin.planner.explain.describe import describe
from wjoin.planner.explain.text import explain_text
from wjoin.planner.planning import apply_edits, plan_select
from wjoin.planner.request import Request
from wjoin.shell.completion import Names, candidates
from wjoin.udfs.built_in import known_predicates

SECONDS = 20.0
"""What one statement may take of a core, which is no matter of load."""

_PIECE = re.compile(r"\w+|\s+|.", re.DOTALL)
_ODD = """
    1e 1e5 1e400 1e999999999 -1e999999999 .5 1.5BD 0x1F 1L 9223372036854775807 9223372036854775808 5S 7Y
    1e5D 99999999999999999999999999999999999999999 '' "" `` ` ' " /* */ /*+ -- \\ ; :: :w :n :big :nan :text
    ? $$ $a$x$a$ é ² ٣ 日本 \x00 \ufeff \u2028 \ud800 ( ) [ ] { } , . .. = == <=> <> != || |> -> => := % ~ ! &
    ^ | @ # * / + - NULL TRUE FALSE NOT AND OR XOR IN IS LIKE RLIKE BETWEEN CASE WHEN THEN ELSE END EXISTS
    ANY ALL SOME DIV CAST INTERVAL DATE TIMESTAMP X'1A' r'\\' CURRENT_DATE MATCH_TIME() MATCH_SPAN(1)
    COUNT(*) rand() OVER FILTER LATERAL VIEW explode UNNEST PIVOT UNPIVOT TABLESAMPLE QUALIFY CLUSTER
    DISTRIBUTE SORT HAVING GROUP ORDER BY LIMIT OFFSET UNION EXCEPT INTERSECT WITH RECURSIVE VALUES TABLE
    SELECT FROM WHERE JOIN NATURAL CROSS LEFT SEMI ANTI FULL OUTER USING ON AS ASOF WINDOW DWINDOW PATH
    MATCH_CONDITION NEAREST WITHIN BIDIRECTIONAL ROWS RANGE SECONDS WATERMARK DELAY OF STREAM similar(A.f,B.f)
    ARRAY<INT> struct(1) named_struct x->x transform(a,x->x) IDENTIFIER('s') ;;
""".split()
_TYPES = (
    *("bigint", "int", "double", "float", "string", "boolean", "date", "decimal(10,2)", "timestamp_ntz"),
    *(
        "array<int>",
        "map<string,int>",
        "struct<x:int,y:int>",
        "binary",
        "smallint",
        "string collate UTF8_LCASE",
    ),
)
_OPERATORS = "+ - * / % || = <> < <= > >= <=> AND OR LIKE DIV & | ^".split()
_LENGTHS = (1, 2, 2, 3, 3, 4, 5, 8, 12, 30)
_LONG = (99, 101, 300, 1000)
_SIGNS = 9000
"""How long a piece may get that stands many times."""

_PARAMETERS: dict[str, object] = {
    **{"w": "5 seconds", "n": 7, "big": 10**400, "nan": float("nan"), "text": "it's", "size": 5, "x": None},
    **{"d": "1e99999999 days", "k": 2.5, "t": True},
}


class Hang(BaseException):
    """A statement took too long."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise Hang in what takes more than so many seconds of a core."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Hang(f"more than {seconds:g} s of a core")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# Statements --------------------------------------------------------------------


@cache
def _words() -> tuple[str, ...]:
    return tuple(sorted({token.text for each in corpus() for token in scan(each) if len(token.text) < 100}))


@cache
def _joins() -> tuple[str, ...]:
    """The statements of the corpus that have a window join which can be read."""
    return tuple(each for each in corpus() if _has_join(each))


def _has_join(text: str) -> bool:
    try:
        statements = parse_script(text)
    except WJoinError:
        return False
    return any(isinstance(_body(each), statement_kinds.Query) for each in statements)


def _body(statement: statement_kinds.Statement) -> statement_kinds.Statement:
    while isinstance(
        statement, statement_kinds.InsertInto | statement_kinds.CreateView | statement_kinds.Explain
    ):
        statement = statement.body
    return statement


def statement(seed: int) -> str:
    """Return the statement of a seed."""
    chance = random.Random(seed)
    texts = _joins() if chance.random() < 0.8 else corpus()
    kind = chance.random()
    if kind < 0.06:
        return " ".join(_word(chance) for _ in range(chance.randrange(1, 60)))
    text = chance.choice(texts)
    if kind < 0.5:
        text = _with_expression(chance, text)
    if kind > 0.4:
        for _ in range(chance.choice((1, 1, 1, 1, 2, 5))):
            text = _changed(chance, text, chance.choice(texts))
    return text


def _word(chance: random.Random) -> str:
    return chance.choice(_ODD if chance.random() < 0.3 else _words())


def _changed(chance: random.Random, text: str, other: str) -> str:
    """Return a statement with one change."""
    pieces = _PIECE.findall(text) or [""]
    place, end = chance.randrange(len(pieces)), chance.randrange(len(pieces))
    match chance.randrange(9):
        case 0:
            del pieces[place]
        case 1:
            pieces.insert(place, f" {_word(chance)} ")
        case 2:
            pieces[place] = _word(chance)
        case 3:
            pieces[place], pieces[end] = pieces[end], pieces[place]
        case 4:
            pieces.insert(place, pieces[place])
        case 5:
            pieces = pieces[:place] if chance.random() < 0.5 else pieces[place:]
        case 6:
            # A piece of another statement.
            others = _PIECE.findall(other) or [""]
            first = chance.randrange(len(others))
            pieces[place:place] = others[first : first + chance.randrange(1, 30)]
        case 7:
            piece = pieces[place : place + chance.randrange(1, 12)]
            pieces[place:place] = piece * _many(chance, "".join(piece))
        case _:
            del pieces[min(place, end) : min(place, end) + chance.randrange(1, 12)]
    return "".join(pieces)


def _many(chance: random.Random, piece: str) -> int:
    """Return how many times a piece stands, seldom very many times."""
    return max(
        1, min(chance.choice(_LONG if chance.random() < 0.04 else _LENGTHS), _SIGNS // (len(piece) + 1))
    )


def _with_expression(chance: random.Random, text: str) -> str:
    """Return a statement with an expression in the place of a name, or with one more condition."""
    tokens = scan(text)
    names = sorted({token.text for token in tokens if token.kind is Kind.WORD}) or ["a"]
    fields = re.findall(r"\b\w+\.\w+\b", text) or names
    expression = _expression(chance, fields, chance.randrange(5))
    where = [token.end for token in tokens if token.word == "WHERE"]
    if where and chance.random() < 0.6:
        return f"{text[: where[0]]} {expression} AND {text[where[0] :]}"
    places = [token for token in tokens if token.kind in (Kind.WORD, Kind.NUMBER)]
    if not places:
        return f"{text} {expression}"
    at = chance.choice(places)
    return f"{text[: at.start]} {expression} {text[at.end :]}"


def _expression(chance: random.Random, fields: Sequence[str], depth: int) -> str:
    if depth <= 0:
        kind = chance.random()
        return (
            chance.choice(fields)
            if kind < 0.6
            else str(chance.randrange(-9, 99))
            if kind < 0.8
            else _word(chance)
        )
    one, other = (_expression(chance, fields, depth - chance.randrange(1, 3)) for _ in range(2))
    operator, many = chance.choice(_OPERATORS), _many(chance, one)
    made = (
        f"{one} {operator} {other}",
        f"({one} {operator} {other})",
        f"NOT {one} {operator} {other}",
        f"CASE WHEN {one} {operator} {other} THEN {one} ELSE {other} END",
        f"{one} BETWEEN {other} AND {one}",
        f"{one} IN ({other}, {one})",
        f"abs({one} - {other}) <= {chance.randrange(9)}",
        f"{chance.choice(('similar', 'linked', 'coalesce', 'if', 'CAST', 'date_sub', '_f'))}({one}, {other})",
        f"CAST({one} AS {chance.choice(_TYPES)})",
        f"{one} IS NOT NULL",
        f"{one} {operator} (SELECT max({other}) FROM t)",
        f"EXISTS (SELECT 1 FROM t WHERE {one} = {other})",
        f"INTERVAL {chance.choice(('5', '1', ':w', one))} {chance.choice(('SECONDS', 'MONTH', 'x', ''))}",
        f" {operator} ".join([one] * many),
        f"{'(' * many}{one}{')' * many}",
        f"{chance.choice(('NOT ', '- ', '! ', '~', 'abs(', 'CASE WHEN ', '(SELECT ', 'x -> ', 'a.'))}" * many
        + one,
        f"{one}{chance.choice(('[0]', '.x', '::int', ' IS NULL', ' IN (1)', ' OVER ()', ' JOIN t'))}"
        * (many // 3 + 1),
        "CASE WHEN true THEN " * many + one + " END" * many,
        f"{one} IN ({', '.join([other] * _many(chance, other))})",
    )
    return chance.choice(made)


# What reads them ---------------------------------------------------------------


def check(text: str, seed: int = 0) -> str:
    """Read and plan a text: return the code of its error, or ``planned``, ``declared`` or ``Spark's own``.

    Raises AssertionError where an error lacks something, and whatever is no error of the language.
    """
    chance = random.Random(seed)
    unended(text)
    if chance.random() < 0.1:
        candidates(text, chance.randrange(len(text) + 1), Names())
    try:
        statements = parse_script(text)
    except WJoinError as error:
        return _told(error, text)
    told = "Spark's own"
    for each in statements:
        found = _planned(text, each, seed)
        told = found if found != "Spark's own" else told
    return told


_DECLARED = {name: {"ts": Delay(1)} for name in ("camera1", "camera2", "orders", "visits", "a", "b", "t")}


def _planned(text: str, statement: statement_kinds.Statement, seed: int) -> str:
    statement = _body(statement)
    if not isinstance(statement, statement_kinds.Query):
        query_delays(statement.span.of(text), _DECLARED, lambda name: name.startswith("s"))
        joined_streams(statement.span.of(text), _DECLARED)
        return "Spark's own" if isinstance(statement, statement_kinds.SparkStatement) else "declared"
    piece = " " * statement.span.start + statement.span.of(text)
    blocks: Sequence[syntax.SelectBlock] = statement.blocks
    number = 0
    try:
        while blocks:
            block = blocks[0]
            while block.nested:
                block = block.nested[0]
            print_condition(block.window)
            relations = tuple(_relation(piece, item) for item in block.items)
            for item in block.items if number == 0 else ():
                query_delays(f"SELECT * FROM {item.relation.of(piece)}", _DECLARED, lambda name: True)
            asked = Request(
                piece,
                block,
                relations,
                FakeTypes(relations),
                f"__wjoin_input_{number}",
                _PARAMETERS,
                predicates={**known_predicates(), **PREDICATES},
            )
            planned = plan_select(asked)
            if seed % 10 == 0:
                explain_text(describe(planned))
            piece = apply_edits(piece, planned.edits)
            number += 1
            again = parse_script(piece)[0]
            blocks = again.blocks if isinstance(again, statement_kinds.Query) else ()
    except WJoinError as error:
        return _told(error, piece)
    return "planned"


def _relation(text: str, item: syntax.FromItem) -> Relation:
    """Return a relation that has whatever columns the statement names."""
    name = unquoted(item.parts[-1].name).lower() if item.parts else "(query)"
    if name in RELATIONS:
        return RELATIONS[name]
    names = {
        token.text.lower() for token in scan(text) if token.kind is Kind.WORD and not token.text[0].isdigit()
    }
    columns = [
        Column(each, _TYPES[zlib.crc32(each.encode("utf-8", "replace")) % len(_TYPES)])
        for each in sorted(names)
    ]
    shown = tuple(each for each in columns if each.name != "ts" and not each.type.startswith("timestamp"))
    streaming = zlib.crc32(name.encode("utf-8", "replace")) % 4 > 0
    return Relation((*shown, Column("ts", "timestamp")), "ts", {"ts": Delay(2_000_000)}, streaming)


def _told(error: WJoinError, text: str) -> str:
    assert error.code in catalogue()
    assert error.span is not None, f"no place: {error}"
    assert 0 <= error.span.start <= error.span.end <= len(text), f"{error.span} is not in the text: {error}"
    assert str(error).startswith(f"error[{error.code}]: ")
    assert error.help
    return error.code


# Many --------------------------------------------------------------------------


def failures(seeds: range) -> tuple[list[str], Counter[str]]:
    """Return what went wrong with the statements of seeds, in words, and how often each outcome came."""
    wrong: list[str] = []
    told: Counter[str] = Counter()
    for seed in seeds:
        text = statement(seed)
        try:
            with limited(SECONDS):
                told[check(text, seed)] += 1
        except (Exception, Hang) as error:  # noqa: BLE001 (whatever it is, it is told)
            told[type(error).__name__] += 1
            where = "".join(traceback.format_exception(error, limit=-3)[-4:])
            wrong.append(
                f"seed {seed}: {type(error).__name__}: {str(error)[:300]}\n{where[-1500:]}\n{text[:3000]}"
            )
    return wrong, told


def main() -> None:
    """Run the statements of some seeds, and print what went wrong with them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1000)
    given = parser.parse_args()
    wrong, told = failures(range(given.seed, given.seed + given.count))
    print(*wrong, sep="\n\n" + "-" * 80 + "\n")
    print(len(wrong), "went wrong;", dict(told.most_common()))


if __name__ == "__main__":
    main()
