"""A statement's text goes one way through wjoin/, and is parsed once (twice if it names a stream)."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

import wjoin
from tests.kit.kinds import kinds_of_statements
from tests.packages import ROOT
from wjoin.grammar import parser, statement_kinds
from wjoin.statements.dispatch import HANDLERS

MARK = "on its way"
JOIN = f"SELECT ja.k, '{MARK}' AS mark FROM ja, jb WINDOW (ja, jb) = 10 SECONDS WHERE ja.k = jb.k"
NODES = (
    statement_kinds.Query,
    statement_kinds.InsertInto,
    statement_kinds.Explain,
    statement_kinds.CreateView,
)
JOINED = ("joins.predicates", "joins.from_items", "joins.from_items", "joins.names")
# What a statement runs with is put together there, and errors get their place, wherever they are raised.
ASIDE = {"context", "spark.spark_failures"}
FACE = ROOT / "wjoin"
ROOMS = {"statements", "joins", "sources", "queries", "checkpoints", "spark", "settings"}


@pytest.fixture
def streams(session: wjoin.Session) -> wjoin.Session:
    """A session with two streams, tables here, and a sink."""
    for name in ("ja", "jb"):
        frame = session.spark.range(3).selectExpr("id AS k", "timestamp_seconds(id) AS ts")
        session.stream(name, frame, "ts", "1 second")
    session.sql("CREATE SINK nowhere USING noop")
    return session


@pytest.mark.parametrize(
    ("statement", "journey"),
    [
        (JOIN, ["session", "joins.recognised", "statements.dispatch", "joins.rewrite", *JOINED]),
        (
            f"INSERT INTO nowhere {JOIN}",
            [
                "session",
                "joins.recognised",
                "statements.dispatch",
                "statements.statement_sets",
                "statements.inserts",
                "statements.late_sinks",
                "statements.inserts",
                "joins.rewrite",
                *JOINED,
                "statements.sinks",
                "sources.record_formats",
            ],
        ),
        (
            f"EXPLAIN {JOIN}",
            [
                "session",
                "joins.recognised",
                "statements.dispatch",
                "statements.explain",
                "statements.inserts",
                "joins.rewrite",
                *JOINED,
                "joins.rewrite",
            ],
        ),
        (
            f"CREATE VIEW jv AS {JOIN}",
            [
                "session",
                "joins.recognised",
                "statements.dispatch",
                "joins.rewrite",
                *JOINED,
                "joins.delays",
                "statements.views",
            ],
        ),
        (
            f"SELECT '{MARK}'",
            [
                "session",
                "joins.recognised",
                "statements.spark",
                "joins.predicates",
                "statements.about",
                "statements.views",
                "statements.views",
            ],
        ),
    ],
)
def test_text_goes_one_way_and_is_parsed_once(
    streams: wjoin.Session, statement: str, journey: list[str]
) -> None:
    entered, parses = followed(lambda: streams.sql(statement))
    # One that names a declared stream may be a window join without a window clause, and is read as one, too.
    expected = 2 if "ja" in statement else 1
    assert ([name for name in entered if name not in ASIDE], parses) == (journey, expected)


def test_each_kind_of_statement_has_a_handler() -> None:
    assert set(HANDLERS) == kinds_of_statements()


@pytest.mark.long
def test_what_is_left_of_two_joins_is_read_again(streams: wjoin.Session) -> None:
    both = f"SELECT * FROM ({JOIN}) UNION ALL ({JOIN})"
    assert followed(lambda: streams.sql(both))[1] == 3


def followed(run: Callable[[], object]) -> tuple[list[str], int]:
    """Return the modules of wjoin/ that another one calls with a statement, in order; and the parses."""
    entered: list[str] = []
    known: set[FrameType] = set()
    parses = 0

    def look(frame: FrameType, event: str, _: object) -> None:
        nonlocal parses
        if event != "call":
            return
        parses += frame.f_code is parser.parse_script.__code__
        module = _module(frame)
        # A generator is called again where it goes on.
        if module is None or frame in known:
            return
        known.add(frame)
        given = [frame.f_locals[name] for name in frame.f_code.co_varnames[: frame.f_code.co_argcount]]
        if _caller(frame) != module and any(map(_carries, given)):
            entered.append(module)

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        run()
    finally:
        sys.setprofile(before)
    return entered, parses


def _caller(frame: FrameType) -> str | None:
    """Return the module of wjoin/ from which a function is called, through whatever else."""
    caller = frame.f_back
    while caller is not None and _module(caller) is None:
        caller = caller.f_back
    return None if caller is None else _module(caller)


def _module(frame: FrameType) -> str | None:
    path = Path(frame.f_code.co_filename)
    if not path.is_relative_to(FACE):
        return None
    room, *_ = parts = path.relative_to(FACE).with_suffix("").parts
    return ".".join(parts) if len(parts) == 1 or room in ROOMS else None


def _carries(value: object) -> bool:
    """Return whether an argument is a statement: its text, its tree, or an object that has its text."""
    if isinstance(value, (str, *NODES)):
        return not isinstance(value, str) or MARK in value
    own = type(value).__module__.startswith("wjoin.") and hasattr(value, "__dict__")
    return own and any(isinstance(each, str) and MARK in each for each in vars(value).values())
