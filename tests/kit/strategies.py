"""Hypothesis strategies for random W-joins with data, arrival order and micro-batches.

Cases are small, with few distinct keys and times on a coarse grid, so that results are
common and bounds are hit exactly. Every condition admits at least the witness that it was
drawn around, so no statement contradicts itself, and every branch connects all streams.
"""

import datetime
import decimal
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tests.kit.expressions import (
    AnyOf,
    Call,
    Compare,
    Expression,
    Field,
    IsNull,
    Literal,
    equal,
    streams_of,
)
from tests.kit.oracle import combinations
from tests.kit.statement import (
    Between,
    Both,
    Condition,
    Either,
    Input,
    Match,
    Output,
    Pair,
    Path,
    Statement,
    Style,
    Trailing,
    Within,
)

SECOND = 1_000_000

NAMES = ("A", "B", "C", "D", "E")

START = datetime.datetime(2026, 3, 29, 0, 59, 50, tzinfo=datetime.UTC)
"""Event times start here, close to a change of summer time in Europe."""


@dataclass(frozen=True)
class KeyKind:
    """A kind of join key: the Arrow types that its streams take in turn, and its few values."""

    name: str
    types: tuple[pa.DataType, ...]
    values: tuple[Any, ...]
    function: str | None = None


_D = decimal.Decimal

KEY_KINDS = (
    KeyKind("bigint", (pa.int64(),), (1, -(2**62))),
    KeyKind("integers", (pa.int32(), pa.int64(), pa.int16(), pa.int8()), (0, -1)),
    KeyKind("string", (pa.string(),), ("", "Zoë")),
    KeyKind("double", (pa.float64(),), (0.0, -0.0, float("nan"))),
    KeyKind("floats", (pa.float32(), pa.float64()), (-0.0, float("nan"), 1.5)),
    KeyKind("decimal", (pa.decimal128(10, 2),), (_D("1.00"), _D("-2.50"))),
    KeyKind("decimals", (pa.decimal128(10, 2), pa.decimal128(20, 4)), (_D("1"), _D("2.5"))),
    KeyKind("date", (pa.date32(),), (datetime.date(1969, 12, 31), datetime.date(2024, 2, 29))),
    KeyKind("timestamp", (pa.timestamp("us", "UTC"),), (START, START + datetime.timedelta(microseconds=1))),
    KeyKind("ntz", (pa.timestamp("us"),), (datetime.datetime(1900, 1, 1), datetime.datetime(2026, 3, 29))),
    KeyKind("boolean", (pa.bool_(),), (True, False)),
    KeyKind("binary", (pa.binary(),), (b"\x00", b"\xff\x00")),
    KeyKind("upper", (pa.string(),), ("a", "A"), "upper"),
    KeyKind("absolute", (pa.int64(),), (1, -1, 2), "abs"),
    KeyKind(
        "negative decimals",
        (pa.decimal128(10, 2), pa.decimal128(20, 4)),
        (_D("1.25"), _D("-2.5"), _D("0")),
        "-",
    ),
    KeyKind("array", (pa.list_(pa.int64()),), ([1], [1, 2])),
)


@dataclass(frozen=True)
class Case:
    """A statement, how it is written, and the rows of every micro-batch by alias."""

    statement: Statement
    style: Style
    batches: tuple[Mapping[str, pa.Table], ...]

    @property
    def tables(self) -> dict[str, pa.Table]:
        """All rows of every stream."""
        aliases = self.statement.aliases
        return {alias: pa.concat_tables(batch[alias] for batch in self.batches) for alias in aliases}


@st.composite
def cases(
    draw: st.DrawFn,
    min_streams: int = 2,
    max_streams: int = 5,
    max_rows: int = 16,
    min_batches: int = 1,
    max_batches: int = 1,
    disorder: bool = True,
    keys: Sequence[KeyKind] = KEY_KINDS,
) -> Case:
    """Return random cases with numbers of streams and of micro-batches between the given ones."""
    count = draw(st.integers(min_streams, max_streams))
    names = NAMES[:count]
    kind = draw(st.sampled_from(["timestamp", "timestamp", "ntz", "integral"]))
    unit = 1 if kind == "integral" else SECOND
    kinds = [draw(st.sampled_from(list(keys))) for _ in range(2)]
    window = draw(windows(names, unit))
    where = draw(_predicates(names, kinds))
    inputs = tuple(
        Input(name, f"s_{name.lower()}", delay=draw(st.sampled_from([0, 0, 2, 5])) * unit) for name in names
    )
    statement = Statement(inputs, window, where, draw(_selects(names)), kind == "integral")
    batch_count = draw(st.integers(min_batches, max_batches))
    rows = min(max_rows, {2: 16, 3: 12, 4: 8, 5: 6}[count])
    streams = {
        item.alias: draw(_streams(number, item, kind, kinds, rows, batch_count, disorder))
        for number, item in enumerate(inputs)
    }
    batches = tuple({name: streams[name][number] for name in names} for number in range(batch_count))
    banded = any(isinstance(each, Compare) and _is_band(each) for each in where)
    return Case(statement, draw(styles(banded)), batches)


def fruitful_cases(**options: Any) -> st.SearchStrategy[Case]:
    """Return cases as ``cases(**options)`` does, nearly all of them with results."""
    fruitful = cases(**options).filter(lambda case: bool(combinations(case.statement, case.tables)))
    return st.integers(0, 4).flatmap(lambda n: cases(**options) if n == 4 else fruitful)


def styles(banded: bool = False) -> st.SearchStrategy[Style]:
    """Return ways to write a statement, one with a band on two streams' columns where ``banded``."""
    durations = st.sampled_from(["plain", "interval", "quoted", "fraction"])
    hints = st.sampled_from([(), ("ALGORITHM(MW)",), ("ALGORITHM(NLW)",)])
    if banded:
        hints = st.sampled_from([("ALGORITHM(ORDERED)",), ("ALGORITHM(ORDERED)",), ()])
    return st.builds(Style, st.booleans(), st.booleans(), st.booleans(), st.booleans(), durations, hints)


def _is_band(each: Compare) -> bool:
    """Return whether a comparison bounds the difference of two streams' columns: neither has a factor."""
    terms = each.left.arguments if isinstance(each.left, Call) else ()
    factor = any(isinstance(term, Call) and term.function == "*" for term in terms)
    return each.operator not in ("=", "<>") and len(streams_of(each)) == 2 and not factor


# Windows --------------------------------------------------------------------


def windows(names: Sequence[str], unit: int) -> st.SearchStrategy[Condition]:
    """Return window conditions of every form over the named streams."""
    single = _conjunctions(names, unit)
    return st.one_of(
        single,
        single,
        st.builds(Within, _widths(unit)),
        st.lists(single, min_size=2, max_size=3).map(lambda terms: Either(tuple(terms))),
        _paths(names, unit),
        _nested(names, unit),
        st.tuples(_paths(names, unit), single).map(Either),
    )


def _widths(unit: int) -> st.SearchStrategy[int]:
    whole = st.sampled_from([8, 0, 1, 2, 3, 5, 12, 20, 30]).map(lambda n: n * unit)
    return whole if unit == 1 else st.builds(int.__add__, whole, st.sampled_from([0, 0, 0, 1, 1000]))


@st.composite
def _conjunctions(draw: st.DrawFn, names: Sequence[str], unit: int) -> Condition:
    """Terms around witness times: a spanning tree of the streams, and sometimes more edges."""
    witness = {name: draw(st.sampled_from([0, 0, 0, 1, 3])) * unit for name in names}
    order = draw(st.permutations(names))
    edges = [(order[draw(st.integers(0, i - 1))], order[i]) for i in range(1, len(order))]
    spare = list(itertools.combinations(names, 2))
    edges += draw(st.lists(st.sampled_from(spare), max_size=2))
    terms: list[Condition] = [draw(_edge(a, b, witness, unit)) for a, b in edges]
    if draw(st.integers(0, 4)) == 4:
        stream = draw(st.sampled_from(list(names)))
        least = max(witness.values()) - witness[stream]
        terms.append(Trailing(stream, least + draw(_widths(unit))))
    if draw(st.integers(0, 6)) == 6:
        latest = max(witness.values())
        terms = [Trailing(name, latest - witness[name] + draw(_widths(unit))) for name in names]
    return terms[0] if len(terms) == 1 else Both(tuple(terms))


@st.composite
def _edge(draw: st.DrawFn, first: str, second: str, witness: Mapping[str, int], unit: int) -> Condition:
    if draw(st.booleans()):
        first, second = second, first
    gap = witness[second] - witness[first]
    width = draw(_widths(unit))
    form = draw(st.sampled_from(["pair", "directed", "between"]))
    if form == "directed" and gap >= 0:
        return Pair(first, second, gap + width, directed=True)
    if form == "between":
        return Between(first, second, gap - draw(_widths(unit)), gap + width)
    return Pair(first, second, abs(gap) + width)


@st.composite
def _paths(draw: st.DrawFn, names: Sequence[str], unit: int) -> Condition:
    order = tuple(draw(st.permutations(names)))
    widths = tuple(draw(st.sampled_from([5, 2, 8, 20])) * unit for _ in order[1:])
    return Path(order, widths, draw(st.booleans()))


@st.composite
def _nested(draw: st.DrawFn, names: Sequence[str], unit: int) -> Condition:
    """A disjunction inside a conjunction; all its terms admit equal times."""
    inner: list[Condition] = []
    for _ in range(2):
        first, second = draw(st.permutations(names))[:2]
        inner.append(draw(_edge(first, second, dict.fromkeys(names, 0), unit)))
    order = draw(st.permutations(names))
    outer = [draw(_edge(a, b, dict.fromkeys(names, 0), unit)) for a, b in itertools.pairwise(order)]
    return Both((*outer, Either(tuple(inner))))


# Predicates and select list -------------------------------------------------


@st.composite
def _predicates(draw: st.DrawFn, names: Sequence[str], kinds: Sequence[KeyKind]) -> tuple[Expression, ...]:
    shape = draw(st.sampled_from(["one", "one", "one", "two", "tree", "triangle", "composite", "none"]))
    pairs = list(itertools.pairwise(draw(st.permutations(names))))
    where: list[Expression] = []
    match shape:
        case "one":
            where = [_key(a, b, 1, kinds) for a, b in pairs]
        case "two":
            where = [_key(a, b, min(1 + number, 2), kinds) for number, (a, b) in enumerate(pairs)]
        case "tree":
            where = [_key(a, b, draw(st.integers(1, 2)), kinds) for a, b in pairs]
        case "triangle":
            cycle = [*pairs, (pairs[-1][1], pairs[0][0])]
            where = [_key(a, b, 1 + number % 2, kinds) for number, (a, b) in enumerate(cycle)]
        case "composite":
            where = [_key(a, b, column, kinds) for a, b in pairs for column in (1, 2)]
    if len(names) > 2 and draw(st.integers(0, 5)) == 5:
        where = where[1:]
    where += draw(st.lists(_residuals(names), max_size=1))
    if kinds[1].name in _NUMBERS and draw(st.integers(0, 3)) == 3:
        first, second = (Field(name, "k2") for name in draw(st.permutations(names))[:2])
        where.append(draw(st.sampled_from(_near(first, second))))
    where += draw(st.lists(_filters(names), max_size=1))
    return tuple(draw(st.permutations(where)))


def _key(first: str, second: str, column: int, kinds: Sequence[KeyKind]) -> Expression:
    function = kinds[column - 1].function
    sides: list[Expression] = [Field(each, f"k{column}") for each in (first, second)]
    if function is not None:
        sides = [Call(function, (side,)) for side in sides]
    return equal(*sides)


@st.composite
def _residuals(draw: st.DrawFn, names: Sequence[str]) -> Expression:
    first, second = (Field(name, "v") for name in draw(st.permutations(names))[:2])
    operator = draw(st.sampled_from(["<", "<=", ">", ">=", "<>"]))
    choices: list[Expression] = [
        Compare(first, operator, second),
        *_near(first, second),
        AnyOf((Compare(first, operator, second), IsNull(second))),
        AnyOf((Compare(first, operator, second), Compare(Call("-", (second, first)), "=", Literal(1)))),
        Compare(Call("+", (first, Call("*", (second, Literal(2))))), operator, Literal(3)),
        Compare(Field(first.stream, "ts"), operator, Field(second.stream, "ts")),
    ]
    return draw(st.sampled_from(choices))


_NUMBERS = frozenset({"integers", "double", "floats", "decimal", "decimals"})


def _near(first: Field, second: Field) -> list[Expression]:
    """Return conditions that bound the difference of two columns of numbers."""
    difference = Call("-", (first, second))
    return [
        Compare(Call("abs", (difference,)), "<=", Literal(1)),
        Compare(difference, "<", Literal(2)),
        Compare(first, ">=", Call("-", (second, Literal(1)))),
        Compare(Call("+", (first, Literal(1))), ">", second),
    ]


@st.composite
def _filters(draw: st.DrawFn, names: Sequence[str]) -> Expression:
    field = Field(draw(st.sampled_from(list(names))), "v")
    choices: list[Expression] = [
        Compare(field, ">", Literal(0)),
        IsNull(field, negated=True),
        Compare(field, "<>", Literal(2)),
    ]
    return draw(st.sampled_from(choices))


@st.composite
def _selects(draw: st.DrawFn, names: Sequence[str]) -> tuple[Output, ...]:
    chosen = draw(st.sampled_from(["ids", "ids", "ids", "keys", "few"]))
    columns = {"ids": ("id",), "keys": ("id", "k1"), "few": ("v",)}[chosen]
    used = names[:1] if chosen == "few" else names
    outputs = [Output(Field(name, column), f"{column}_{name.lower()}") for name in used for column in columns]
    functions = draw(st.sets(st.sampled_from(["time", "start", "span"]), max_size=3))
    return (*outputs, *(Output(Match(each), f"match_{each}") for each in sorted(functions)))


# Rows -----------------------------------------------------------------------


@st.composite
def _streams(
    draw: st.DrawFn,
    number: int,
    item: Input,
    kind: str,
    kinds: Sequence[KeyKind],
    max_rows: int,
    batch_count: int,
    disorder: bool,
) -> list[pa.Table]:
    """The rows of one stream in order of arrival, cut into micro-batches."""
    count = draw(st.integers(0 if draw(st.integers(0, 9)) == 9 else max_rows // 2, max_rows))
    unit = 1 if kind == "integral" else SECOND
    rough = item.delay // unit + (draw(st.sampled_from([6, 0])) if disorder else 0)
    rows = [
        _Row(
            row_id=100 * (number + 1) + place,
            time=draw(_times(place, rough, unit)),
            keys=tuple(
                draw(_nullable(st.sampled_from((each.values[0], *each.values)), 12)) for each in kinds
            ),
            value=draw(_nullable(st.integers(0, 3), 8)),
        )
        for place in range(count)
    ]
    if rows and draw(st.integers(0, 3)) == 3:
        place = draw(st.integers(0, len(rows) - 1))
        rows.insert(place, rows[place])
    cuts = [0, *sorted(draw(st.integers(0, len(rows))) for _ in range(batch_count - 1)), len(rows)]
    table = _table(rows, number, kind, kinds)
    return [table.slice(first, last - first) for first, last in itertools.pairwise(cuts)]


@dataclass(frozen=True)
class _Row:
    row_id: int
    time: int | None
    keys: tuple[Any, ...]
    value: int | None


def _nullable(values: st.SearchStrategy[Any], one_in: int) -> st.SearchStrategy[Any]:
    return st.integers(1, one_in).flatmap(lambda n: st.none() if n == one_in else values)


@st.composite
def _times(draw: st.DrawFn, place: int, rough: int, unit: int) -> int | None:
    if draw(st.integers(0, 24)) == 24:
        return None
    step = 2 * place - draw(st.integers(0, rough)) + draw(st.sampled_from([0, 0, 0, 1]))
    fine = draw(st.sampled_from([0, 0, 0, 0, 1, -1])) if unit > 1 else 0
    return step * unit + fine


def _table(rows: Sequence[_Row], number: int, kind: str, kinds: Sequence[KeyKind]) -> pa.Table:
    start = 0 if kind == "integral" else int(START.timestamp()) * SECOND
    times = pa.array([None if row.time is None else start + row.time for row in rows], pa.int64())
    zones = {"timestamp": pa.timestamp("us", "UTC"), "ntz": pa.timestamp("us"), "integral": pa.int64()}
    columns = {
        "id": pa.array([row.row_id for row in rows], pa.int64()),
        "ts": times.cast(zones[kind]),
        "v": pa.array([row.value for row in rows], pa.int32()),
    }
    for place, each in enumerate(kinds):
        type_ = each.types[number % len(each.types)]
        columns[f"k{place + 1}"] = pa.array([row.keys[place] for row in rows], type_)
    return pa.table(columns)
