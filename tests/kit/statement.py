"""A W-join in neutral form, and its text in W-join SQL.

Nothing here comes from the grammar or the planner: the oracles read these classes, the
product reads the text. Times are microseconds, or the column's own unit where event time
is integral.
"""

from dataclasses import dataclass

from tests.kit.expressions import Expression, Field, sql

# Window conditions ----------------------------------------------------------


@dataclass(frozen=True)
class Within:
    """``WINDOW = w``: every pair of streams."""

    width: int


@dataclass(frozen=True)
class Pair:
    """``WINDOW (A, B) = w``, or ``DWINDOW (A, B) = w`` when directed."""

    first: str
    second: str
    width: int
    directed: bool = False


@dataclass(frozen=True)
class Between:
    """``WINDOW (A, B) BETWEEN l AND u``."""

    first: str
    second: str
    low: int
    high: int


@dataclass(frozen=True)
class Trailing:
    """``WINDOW A = w``: the latest timestamp of the tuple minus a is at most w."""

    stream: str
    width: int


@dataclass(frozen=True)
class Path:
    """``PATH (A, B, C) WITHIN (w1, w2) [BIDIRECTIONAL]``."""

    streams: tuple[str, ...]
    widths: tuple[int, ...]
    bidirectional: bool = False


@dataclass(frozen=True)
class Both:
    """Terms joined by AND."""

    terms: tuple["Condition", ...]


@dataclass(frozen=True)
class Either:
    """Terms joined by OR."""

    terms: tuple["Condition", ...]


Condition = Within | Pair | Between | Trailing | Path | Both | Either

# Statements -----------------------------------------------------------------


@dataclass(frozen=True)
class Match:
    """``MATCH_TIME()``, ``MATCH_START()`` or ``MATCH_SPAN()``, by its second word in lower case."""

    function: str


@dataclass(frozen=True)
class Output:
    """One column of the select list."""

    expression: Expression | Match
    name: str


@dataclass(frozen=True)
class Input:
    """One stream of FROM: its alias, the relation's name, event time and allowed disorder."""

    alias: str
    relation: str
    event_time: str = "ts"
    delay: int = 0


@dataclass(frozen=True)
class Statement:
    """A SELECT with a window clause. ``integral``: event time is a number, not a timestamp."""

    inputs: tuple[Input, ...]
    window: Condition
    where: tuple[Expression, ...]
    select: tuple[Output, ...]
    integral: bool = False

    @property
    def aliases(self) -> tuple[str, ...]:
        """The streams' names in FROM order."""
        return tuple(each.alias for each in self.inputs)


@dataclass(frozen=True)
class Style:
    """How a statement is written and run: choices that must not change what it means.

    ``hints`` are hints as written, for example ``ALGORITHM(MW)``.
    """

    lower_case: bool = False
    quoted: bool = False
    window_last: bool = False
    joins: bool = False
    duration: str = "plain"
    hints: tuple[str, ...] = ()


def columns(alias: str, *names: str) -> tuple[Output, ...]:
    """Return select-list entries for columns of one stream, named ``alias_column``."""
    return tuple(Output(Field(alias, name), f"{alias}_{name}".lower()) for name in names)


_UNITS = (
    ("HOUR", 3_600_000_000),
    ("MINUTE", 60_000_000),
    ("SECOND", 1_000_000),
    ("MILLISECOND", 1_000),
    ("MICROSECOND", 1),
)


def duration(value: int, integral: bool, style: str = "plain") -> str:
    """Return a duration as text: ``plain``, ``interval``, ``quoted`` or ``fraction``.

    >>> duration(90_000_000, integral=False), duration(-5, integral=True)
    ('90 SECONDS', '-5')
    >>> duration(1_500_001, integral=False, style="fraction")
    '1.500001 SECONDS'
    """
    if integral:
        return str(value)
    if style == "fraction":
        whole, rest = divmod(abs(value), 1_000_000)
        return f"{'-' if value < 0 else ''}{whole}.{rest:06d} SECONDS"
    unit, size = next((unit, size) for unit, size in _UNITS if value % size == 0)
    if style == "interval":
        return f"INTERVAL {value // size} {unit}S"
    if style == "quoted":
        return f"INTERVAL '{value // size}' {unit}"
    return f"{value // size} {unit}S"


def text(statement: Statement, style: Style) -> str:
    """Return the statement in W-join SQL."""
    words = _Words(statement.integral, style)
    window = words.condition(statement.window)
    where = [sql(each, style.quoted) for each in statement.where]
    items = [words.item(each) for each in statement.inputs]
    select = ", ".join(words.output(each) for each in statement.select)
    conditions: str
    if style.joins and where:
        source = f" {words.word('JOIN')} ".join(items) + f" {words.word('ON')} {where[0]}"
        conditions = words.where(where[1:])
    else:
        source = ", ".join(items)
        conditions = words.where(where)
    clauses = [conditions, window] if style.window_last else [window, conditions]
    hints = f" /*+ {', '.join(style.hints)} */" if style.hints else ""
    parts = [f"{words.word('SELECT')}{hints} {select}", f"{words.word('FROM')} {source}", *clauses]
    return "\n".join(part for part in parts if part)


@dataclass(frozen=True)
class _Words:
    integral: bool
    style: Style

    def word(self, keyword: str) -> str:
        return keyword.lower() if self.style.lower_case else keyword

    def name(self, identifier: str) -> str:
        return f"`{identifier}`" if self.style.quoted else identifier

    def time(self, value: int) -> str:
        return self.word(duration(value, self.integral, self.style.duration))

    def item(self, item: Input) -> str:
        return f"{item.relation} {self.word('AS')} {self.name(item.alias)}"

    def where(self, conjuncts: list[str]) -> str:
        joined = f" {self.word('AND')} ".join(conjuncts)
        return f"{self.word('WHERE')} {joined}" if conjuncts else ""

    def output(self, output: Output) -> str:
        expression = output.expression
        if isinstance(expression, Match):
            value = f"MATCH_{expression.function.upper()}()"
        else:
            value = sql(expression, self.style.quoted)
        return f"{value} {self.word('AS')} {output.name}"

    def condition(self, condition: Condition) -> str:
        match condition:
            case Within(width):
                return f"{self.word('WINDOW')} = {self.time(width)}"
            case Pair(first, second, width, directed):
                keyword = self.word("DWINDOW" if directed else "WINDOW")
                return f"{keyword} ({self.name(first)}, {self.name(second)}) = {self.time(width)}"
            case Between(first, second, low, high):
                names = f"({self.name(first)}, {self.name(second)})"
                between = f"{self.word('BETWEEN')} {self.time(low)} {self.word('AND')} {self.time(high)}"
                return f"{self.word('WINDOW')} {names} {between}"
            case Trailing(stream, width):
                return f"{self.word('WINDOW')} {self.name(stream)} = {self.time(width)}"
            case Path(streams, widths, bidirectional):
                names = ", ".join(self.name(each) for each in streams)
                times = ", ".join(self.time(each) for each in widths)
                both = f" {self.word('BIDIRECTIONAL')}" if bidirectional else ""
                return f"{self.word('PATH')} ({names}) {self.word('WITHIN')} ({times}){both}"
            case Both(terms):
                return f" {self.word('AND')} ".join(self._inner(each) for each in terms)
            case Either(terms):
                return f" {self.word('OR')} ".join(self.condition(each) for each in terms)

    def _inner(self, condition: Condition) -> str:
        rendered = self.condition(condition)
        return f"({rendered})" if isinstance(condition, Either) else rendered
