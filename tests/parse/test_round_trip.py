"""parse(print(x)) == x, and the clause is found wherever a SELECT can hold it."""

from hypothesis import given
from hypothesis import strategies as st

from tests.parse.printed import Declaration, print_condition, print_statement
from wjoin.grammar import statement_kinds, syntax
from wjoin.grammar.clauses import split_columns
from wjoin.grammar.parser import parse_statement
from wjoin.grammar.spans import Span

ANY = Span(0, 0)
PLAIN = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
WORDS = st.sampled_from(
    ["window", "PATH", "and", "or", "within", "rows", "interval", "between", "Select", "to", "5", "a b"]
)
ANYTHING = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
NAMES = st.builds(syntax.Identifier, st.one_of(PLAIN, WORDS, ANYTHING), span=st.just(ANY))


def durations(low: int) -> st.SearchStrategy[syntax.Duration]:
    units = st.sampled_from([1, 1000, 10**6, 6 * 10**7, 36 * 10**8, 864 * 10**8])
    times = st.builds(lambda number, unit: max(number * unit, -(2**63) + 1), st.integers(low, 10**6), units)
    return st.one_of(
        st.builds(syntax.TimeDuration, times, span=st.just(ANY)),
        st.builds(syntax.BareNumber, st.integers(low, 2**63 - 1), span=st.just(ANY)),
        st.builds(syntax.Parameter, PLAIN, st.booleans(), span=st.just(ANY)),
    )


WIDTHS = durations(0)
TIMES = durations(1).filter(lambda each: not isinstance(each, syntax.BareNumber))
SIGNED = durations(-(10**6))


@st.composite
def betweens(draw: st.DrawFn) -> syntax.WindowBetween:
    low, high = draw(SIGNED), draw(SIGNED)
    match low, high:
        case syntax.TimeDuration(first), syntax.TimeDuration(second):
            low, high = (low, high) if first <= second else (high, low)
        case syntax.BareNumber(first), syntax.BareNumber(second):
            low, high = (low, high) if first <= second else (high, low)
        case (syntax.TimeDuration(), syntax.BareNumber()) | (syntax.BareNumber(), syntax.TimeDuration()):
            high = syntax.Parameter("h", False, span=ANY)
    return syntax.WindowBetween(draw(NAMES), draw(NAMES), low, high, span=ANY)


@st.composite
def paths(draw: st.DrawFn) -> syntax.WindowPath:
    streams = draw(st.lists(NAMES, min_size=2, max_size=4))
    widths = draw(st.lists(WIDTHS, min_size=len(streams) - 1, max_size=len(streams) - 1))
    absent = []
    for place in range(len(streams)):
        width = draw(WIDTHS) if place == len(streams) - 1 else None
        for name in draw(st.lists(NAMES, max_size=1)):
            absent.append(syntax.Absent(name, place, width, span=ANY))
    both = not absent and draw(st.booleans())
    return syntax.WindowPath(tuple(streams), tuple(widths), both, tuple(absent), span=ANY)


TERMS = st.one_of(
    st.builds(syntax.WindowAll, WIDTHS, span=st.just(ANY)),
    st.builds(syntax.WindowPair, NAMES, NAMES, WIDTHS, st.booleans(), span=st.just(ANY)),
    betweens(),
    st.builds(syntax.WindowStream, NAMES, WIDTHS, span=st.just(ANY)),
    st.builds(
        syntax.WindowRows, NAMES, st.integers(1, 10**9), st.sampled_from(syntax.Per), span=st.just(ANY)
    ),
    st.builds(
        syntax.WindowSince,
        NAMES,
        st.sampled_from(["x", "A.x = ')' OR (y)", "since", "WINDOW A = 5 AND SINCE (x)"]),
        st.just(ANY),
        span=st.just(ANY),
    ),
    paths(),
)


def _combined(inner: st.SearchStrategy[syntax.WindowCondition]) -> st.SearchStrategy[syntax.WindowCondition]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(syntax.WindowAnd, several, span=st.just(ANY)),
        st.builds(syntax.WindowOr, several, span=st.just(ANY)),
    )


CONDITIONS = st.recursive(TERMS, _combined, max_leaves=8)
SHAPES = st.sampled_from(
    [
        "SELECT * FROM A, B {}",
        "SELECT * FROM A, B {} WHERE A.x = B.x",
        "SELECT * FROM s1 A JOIN `s 2` AS B ON A.x = B.x AND A.y BETWEEN 1 AND 2 {}",
        "SELECT * FROM A, (SELECT 1) B WHERE A.x = B.x OR f(A.y, 1) {} GROUP BY window(ts, '1 day') LIMIT 5",
        "SELECT * FROM A, B WHERE CASE WHEN a THEN b END {} UNION ALL SELECT 1",
        "WITH c AS (SELECT window FROM path) SELECT * FROM c, B WATERMARK ts DELAY OF 1 DAY {} -- end",
        "SELECT x FROM (SELECT * FROM A a, B window {} WINDOW w AS (ORDER BY x)) path WHERE window = 5",
    ]
)


@given(SHAPES, CONDITIONS)
def test_window_clause(shape: str, condition: syntax.WindowCondition) -> None:
    text = print_condition(condition)
    statement = parse_statement(shape.replace("{}", text))
    assert isinstance(statement, statement_kinds.Query)
    (block,) = statement.blocks
    assert block.window == condition
    assert block.window_span.of(shape.replace("{}", text)) == text


OPTIONS = st.dictionaries(
    st.one_of(PLAIN, ANYTHING).map(str.lower),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    max_size=3,
).map(lambda found: tuple(found.items()))
PROVIDED = st.lists(PLAIN, min_size=1, max_size=3).map(".".join)
PROVIDERS = st.builds(syntax.Identifier, PROVIDED, span=st.just(ANY))
COLUMNS = st.lists(
    st.sampled_from(
        ["a INT", "`b c` MAP<STRING, DECIMAL(10,2)>", "ts TIMESTAMP COMMENT 'x, y)'", "window INT"]
    ),
    min_size=1,
    max_size=3,
).map(", ".join)
EXPRESSIONS = st.sampled_from(
    ["timestamp_millis(a)", "a < 3", "CAST(`a, b` AS MAP<STRING, INT>)", "concat('), (', a)", "a -- b\n > 2"]
)


@st.composite
def computed(draw: st.DrawFn, most: int) -> tuple[statement_kinds.ComputedColumn, ...]:
    """Up to three computed columns among ``most`` others."""
    number = draw(st.integers(0 if most else 1, 3))
    places = st.lists(st.integers(0, most + number - 1), min_size=number, max_size=number, unique=True)
    return tuple(
        statement_kinds.ComputedColumn(draw(NAMES), draw(EXPRESSIONS), place, span=ANY, expression_span=ANY)
        for place in sorted(draw(places))
    )


@st.composite
def create_streams(draw: st.DrawFn) -> statement_kinds.CreateStream:
    columns = draw(st.one_of(st.none(), COLUMNS))
    listed = [] if columns is None else split_columns(columns)
    return statement_kinds.CreateStream(
        draw(NAMES),
        draw(st.booleans()),
        draw(st.booleans()),
        columns,
        draw(PROVIDERS),
        draw(OPTIONS),
        draw(st.one_of(st.none(), WATERMARKS)),
        span=ANY,
        computed=draw(computed(len(listed))) if draw(st.booleans()) else (),
        record_format=draw(FORMATS),
        unique=draw(NO_COLUMN | COLUMN_NAMES),
        idle_after=draw(st.none() | TIMES),
        late_rows=draw(st.none() | NAMES),
        home=draw(st.none() | NAMES),
    )


FORMATS = st.one_of(
    st.none(), st.sampled_from([syntax.Identifier(n, span=ANY) for n in ("json", "csv", "avro")])
)
WATERMARKS = st.builds(syntax.Watermark, NAMES, st.one_of(st.none(), WIDTHS), span=st.just(ANY))
NUMBERS = st.floats(0, exclude_min=True, allow_infinity=False)
SHARES = st.floats(0, 1)
NO_COLUMN: st.SearchStrategy[tuple[syntax.Identifier, ...]] = st.just(())
COLUMN_NAMES = st.lists(NAMES, min_size=1, max_size=3).map(tuple)


def statistics(
    name: str,
    values: st.SearchStrategy[float] | st.SearchStrategy[syntax.Duration],
    columns: st.SearchStrategy[tuple[syntax.Identifier, ...]] = NO_COLUMN,
) -> st.SearchStrategy[statement_kinds.StatisticEntry]:
    return st.builds(statement_kinds.StatisticEntry, st.just(name), columns, values, span=st.just(ANY))


def _key(entry: statement_kinds.StatisticEntry) -> tuple[str, ...]:
    return entry.name, *(part.name.lower() for part in entry.column)


STATISTICS = st.lists(
    st.one_of(
        statistics("rate", NUMBERS),
        statistics("width", NUMBERS),
        statistics("disorder", WIDTHS),
        statistics("selectivity", SHARES),
        statistics("distinct", NUMBERS, COLUMN_NAMES),
        statistics("heaviest", SHARES, COLUMN_NAMES),
        statistics("local", SHARES, COLUMN_NAMES),
    ),
    min_size=1,
    max_size=5,
    unique_by=_key,
).map(tuple)
VALUES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
DECLARATIONS = st.one_of(
    create_streams(),
    st.builds(
        statement_kinds.CreateSink,
        NAMES,
        st.booleans(),
        st.booleans(),
        PROVIDERS,
        OPTIONS,
        st.lists(NAMES, max_size=3).map(tuple),
        span=st.just(ANY),
        record_format=FORMATS,
        key=st.one_of(st.none(), NAMES),
        retain=st.none() | st.builds(statement_kinds.Retain, TIMES, st.none() | TIMES, span=st.just(ANY)),
        commit_every=st.none() | TIMES,
    ),
    st.builds(statement_kinds.ShowStreams, span=st.just(ANY)),
    st.builds(statement_kinds.DescribeStream, NAMES, span=st.just(ANY)),
    st.builds(statement_kinds.DropStream, st.booleans(), NAMES, span=st.just(ANY)),
    st.builds(statement_kinds.ShowCreateStream, NAMES, span=st.just(ANY)),
    st.builds(statement_kinds.ShowSinks, span=st.just(ANY)),
    st.builds(statement_kinds.ShowQueries, span=st.just(ANY)),
    st.builds(statement_kinds.DescribeQuery, NAMES, span=st.just(ANY)),
    st.builds(statement_kinds.StopQuery, NAMES, span=st.just(ANY)),
    st.builds(statement_kinds.DescribeSink, NAMES, span=st.just(ANY)),
    st.builds(statement_kinds.DropSink, st.booleans(), NAMES, span=st.just(ANY)),
    st.builds(statement_kinds.ShowCreateSink, NAMES, span=st.just(ANY)),
    st.builds(statement_kinds.AlterStream, NAMES, st.one_of(st.none(), STATISTICS), span=st.just(ANY)),
    st.builds(statement_kinds.AnalyzeStream, NAMES, st.none() | st.integers(1, 2**63 - 1), span=st.just(ANY)),
    st.builds(statement_kinds.SetOption, PLAIN.map("wjoin.{}".format), VALUES, span=st.just(ANY)),
)


@given(DECLARATIONS)
def test_declaration(declaration: Declaration) -> None:
    assert parse_statement(print_statement(declaration)) == declaration
