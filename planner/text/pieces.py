"""Pieces of Spark SQL text, analysed: the names, stars and calls in them, each with its place.

sqlglot reads a copy of the piece in which everything keeps its place: function names are
masked, so that every function keeps all its arguments as written. The text itself is never
written anew.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokens import TokenType

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.nesting import too_deep
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import Identifier
from wjoin.grammar.tokens import Kind, Token, scan, scan_piece
from wjoin.planner.text.trees import parse

MATCH_FUNCTIONS = {"match_time": "time", "match_start": "start", "match_span": "span"}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_VOLATILE_WORDS = _words("current_date current_time current_timestamp localtimestamp")
_VOLATILE_CALLS = _VOLATILE_WORDS | _words("""
    rand randn random randstr uniform uuid monotonically_increasing_id spark_partition_id shuffle now curdate
    input_file_name input_file_block_start input_file_block_length
""")
_VOLATILE_BARE = _words("unix_timestamp to_unix_timestamp")
"""What tells the time of now where it has no argument."""
_AGGREGATES = _words("""
    any any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or bit_xor bool_and
    bool_or collect_list collect_set corr count count_if count_min_sketch covar_pop covar_samp every first
    first_value grouping grouping_id histogram_numeric kurtosis last last_value listagg max max_by mean
    median min min_by mode percentile percentile_approx regr_avgx regr_avgy regr_count regr_intercept regr_r2
    regr_slope regr_sxx regr_sxy regr_syy skewness some std stddev stddev_pop stddev_samp string_agg sum
    try_avg try_sum var_pop var_samp variance
""")
_OWN_SYNTAX = _words("""
    CAST TRY_CAST SAFE_CAST EXTRACT TRIM POSITION SUBSTRING SUBSTR OVERLAY TIMESTAMPADD TIMESTAMPDIFF
    DATEADD DATEDIFF DATE_ADD DATE_DIFF BY GROUP SETS CUBE ROLLUP PLACING FOR ALL
""")
"""Words before a parenthesis whose arguments are not a plain list of expressions."""


@dataclass(frozen=True)
class ColumnName:
    """A dotted name where an expression has a column.

    ``clause`` is the clause it stands in (``list``, ``condition``, ``group``, ``having``,
    ``order``, …). ``hidden_by`` are the relation names (lower case) of the subqueries around
    it, None outside subqueries.
    """

    parts: tuple[Identifier, ...]
    span: Span
    clause: str
    in_aggregate: bool
    hidden_by: frozenset[str] | None


@dataclass(frozen=True)
class StarName:
    """``*`` or ``a.*``, with its EXCEPT list inside the span."""

    qualifier: tuple[Identifier, ...]
    excluded: tuple[ColumnName, ...]
    span: Span


@dataclass(frozen=True)
class MatchCall:
    """A call of a match function; ``what`` as PhysicalPlan.match names it."""

    what: str
    span: Span


@dataclass(frozen=True)
class ListItem:
    """One item of a select list.

    ``names`` are its output names (empty where Spark invents one), given by an alias or not.
    ``column`` is set when the item is nothing but that, with or without an alias; ``star`` and
    ``match`` when it is that and has no alias.
    """

    names: tuple[str, ...]
    aliased: bool
    column: ColumnName | None = None
    star: StarName | None = None
    match: MatchCall | None = None


@dataclass(frozen=True)
class AnalysedText:
    """An analysed piece of text.

    ``tree`` is sqlglot's, for its shape only: function names in it are masked. ``items`` is
    set for a select list. ``parameters`` are the named parameters in the text.
    """

    span: Span
    tree: exp.Expr
    items: tuple[ListItem, ...]
    columns: tuple[ColumnName, ...]
    stars: tuple[StarName, ...]
    matches: tuple[MatchCall, ...]
    parameters: tuple[Token, ...]
    has_subquery: bool
    is_volatile: bool
    is_aggregate: bool


_SELECT = "SELECT "
"""What stands before a piece that sqlglot reads as an item of a select list."""


def function_name(text: str, piece: AnalysedText, call: exp.Anonymous) -> str:
    """Return the name of a call in a condition as it was written, in lower case."""
    shift = piece.span.start - len(_SELECT)
    return text[call.meta["start"] + shift : call.meta["end"] + 1 + shift].lower() if call.meta else ""


def read_condition(text: str, span: Span) -> AnalysedText:
    """Analyse one expression; raises WJ210 where it cannot be read, and WJ114 where it is too deep."""
    select = _parse(text, span, _SELECT, "the condition")
    items = select.expressions
    extra = [key for key, value in select.args.items() if value and key != "expressions"]
    if len(items) != 1 or extra or isinstance(items[0], (exp.Alias, exp.Aliases)):
        raise WJoinError("WJ210", "the condition cannot be read", span=span)
    return _piece(text, span, _SELECT, items[0], (("condition", items[0]),))


def read_select_list(text: str, span: Span) -> AnalysedText:
    """Analyse a select list; raises WJ210 where it cannot be read, and WJ114 where it is too deep."""
    select = _parse(text, span, _SELECT, "the select list")
    if not select.expressions:
        raise WJoinError("WJ210", "the select list is empty", span=span)
    return _piece(text, span, _SELECT, select, tuple(("list", item) for item in select.expressions))


def read_tail(text: str, span: Span) -> AnalysedText:
    """Analyse what follows FROM, WINDOW and WHERE: GROUP BY to the end; raises WJ210 and WJ114."""
    prefix = "SELECT 1 FROM p "
    select = _parse(text, span, prefix, "the clauses after the join")
    parts = [(key, value) for key, value in select.args.items() if key not in ("expressions", "from_")]
    trees = [
        (key, tree)
        for key, value in parts
        for tree in (value if isinstance(value, list) else [value])
        if isinstance(tree, exp.Expr)
    ]
    return _piece(text, span, prefix, select, tuple(trees))


# Parsing --------------------------------------------------------------------


def _parse(text: str, span: Span, prefix: str, what: str) -> exp.Select:
    masked = prefix + _masked(text, span)
    try:
        tree = parse(masked)
    except WJoinError as error:
        deep = error.span or Span(0, len(masked))
        shift = span.start - len(prefix)
        raise too_deep(Span(max(deep.start + shift, span.start), deep.end + shift)) from None
    except ParseError as error:
        place = _error_place(masked, error)
        raise _unreadable(text, span, what, place - len(prefix) + span.start) from None
    except SqlglotError:
        raise _unreadable(text, span, what, span.start) from None
    if not isinstance(tree, exp.Select):
        raise _unreadable(text, span, what, span.start)
    return tree


def _unreadable(text: str, span: Span, what: str, place: int) -> WJoinError:
    place = min(max(place, span.start), max(span.end - 1, span.start))
    token = next((each for each in scan(text[span.start : span.end]) if each.end > place - span.start), None)
    if token is None:
        return WJoinError("WJ210", f"{what} cannot be read", span=span)
    shown = Span(token.start + span.start, token.end + span.start)
    near = token.text if token.kind is not Kind.UNCLOSED else token.text[0]
    return WJoinError("WJ210", f"{what} cannot be read near {near}", span=shown)


def _error_place(masked: str, error: ParseError) -> int:
    found = error.errors[0] if error.errors else {}
    line, column = found.get("line"), found.get("col")
    if not isinstance(line, int) or not isinstance(column, int):
        return 0
    start = sum(len(each) for each in masked.split("\n")[: line - 1]) + line - 1
    return start + column - len(found.get("highlight") or "")


def _masked(text: str, span: Span) -> str:
    """Return the piece with hints blanked and function names made unknown to sqlglot."""
    letters = list(text[span.start : span.end])
    tokens = scan("".join(letters))
    for token, following in pairwise(tokens):
        if token.kind is Kind.WORD and following.text == "(" and _is_plain_function(token.word):
            letters[token.start] = "_"
    for token in tokens:
        if token.kind is Kind.HINT:
            letters[token.start : token.end] = " " * (token.end - token.start)
    return "".join(letters)


@cache
def _is_plain_function(word: str) -> bool:
    if word in _OWN_SYNTAX or word[0].isdigit():
        return False
    if word == "WINDOW":  # after GROUP BY sqlglot takes the function for the WINDOW clause
        return True
    tokens = Dialect.get_or_raise("spark").tokenize(word)
    return len(tokens) == 1 and tokens[0].token_type is TokenType.VAR


# Collecting -----------------------------------------------------------------


@dataclass(frozen=True)
class _Place:
    clause: str
    in_aggregate: bool = False
    hidden_by: frozenset[str] | None = None


def _piece(
    text: str, span: Span, prefix: str, tree: exp.Expr, roots: Sequence[tuple[str, exp.Expr]]
) -> AnalysedText:
    tokens = scan_piece(text, span)
    collector = _Collector(text, span.start - len(prefix), tokens)
    items = [collector.item(clause, root) for clause, root in roots]
    calls = {first.text.lower() for first, second in pairwise(tokens) if second.text == "("}
    empty = zip(tokens, tokens[1:], tokens[2:], strict=False)
    now = {first.text.lower() for first, second, third in empty if second.text + third.text == "()"}
    words = {
        token.text.lower()
        for before, token in zip([None, *tokens], tokens, strict=False)
        if token.kind is Kind.WORD and (before is None or before.text != ".")
    }
    return AnalysedText(
        span=span,
        tree=tree,
        items=tuple(items),
        columns=_in_order(collector.columns),
        stars=tuple(sorted(collector.stars, key=lambda star: star.span.start)),
        matches=tuple(sorted(collector.matches, key=lambda call: call.span.start)),
        parameters=tuple(token for token in tokens if token.kind is Kind.PARAMETER),
        has_subquery=collector.has_subquery or "select" in words,
        is_volatile=bool(calls & _VOLATILE_CALLS or now & _VOLATILE_BARE or words & _VOLATILE_WORDS),
        is_aggregate=collector.is_aggregate,
    )


def _in_order(columns: Sequence[ColumnName]) -> tuple[ColumnName, ...]:
    once = {column.span: column for column in columns}
    return tuple(sorted(once.values(), key=lambda column: column.span.start))


class _Collector:
    """Walks a sqlglot tree and keeps what names the block's columns."""

    def __init__(self, text: str, shift: int, tokens: Sequence[Token]) -> None:
        self.text = text
        self.shift = shift
        self.tokens = tokens
        self.columns: list[ColumnName] = []
        self.stars: list[StarName] = []
        self.matches: list[MatchCall] = []
        self.has_subquery = False
        self.is_aggregate = False

    def item(self, clause: str, root: exp.Expr) -> ListItem:
        """Collect what one item holds, and return what it is as an item of a select list."""
        columns, stars, matches = len(self.columns), len(self.stars), len(self.matches)
        self.visit(root, _Place(clause))
        match root:
            case exp.Alias():
                plain = isinstance(root.this, exp.Column) and len(self.columns) > columns
                return ListItem((root.alias,), True, column=self.columns[columns] if plain else None)
            case exp.Aliases():
                return ListItem(tuple(each.name for each in root.expressions), True)
            case exp.Column() | exp.Star() if len(self.stars) > stars:
                return ListItem((), False, star=self.stars[stars])
            case exp.Column():
                return ListItem((root.name,), False, column=self.columns[columns])
            case exp.Anonymous() if len(self.matches) > matches and self.matches[matches].span.start == (
                root.meta["start"] + self.shift
            ):
                return ListItem((f"match_{self.matches[matches].what}",), False, match=self.matches[matches])
            case exp.Dot():
                return ListItem((root.expression.name,), False)
        return ListItem((), False)

    def visit(self, root: exp.Expr, place: _Place) -> None:
        """Collect what ``root`` and the nodes below it hold."""
        waiting = [(root, place)]
        while waiting:
            node, place = waiting.pop()
            inside = self._visit(node, place)
            if inside is not None:
                waiting += [(child, inside) for child in reversed(list(node.iter_expressions()))]

    def _visit(self, node: exp.Expr, place: _Place) -> _Place | None:
        """Collect what one node holds, and return where the nodes below it stand, None to leave them out."""
        match node:
            case exp.Column():
                self._column(node, place)
                return None
            case exp.Star():
                self._star(node, (), place)
                return None
            case exp.Anonymous():
                place = self._call(node, place)
                if self._is_count_star(node):
                    return None
            case exp.AggFunc():
                self.is_aggregate = self.is_aggregate or place.hidden_by is None
                place = _Place(place.clause, True, place.hidden_by)
            case exp.Window():
                self.is_aggregate = self.is_aggregate or place.hidden_by is None
            case exp.Select():
                self.has_subquery = True
                hidden = (place.hidden_by or frozenset()) | frozenset(_relation_names(node))
                place = _Place(place.clause, False, hidden)
            case exp.SetOperation():
                self.has_subquery = True
        return place

    def _column(self, node: exp.Column, place: _Place) -> None:
        if isinstance(node.this, exp.Star):
            qualifier = tuple(self._identifier(part) for part in node.parts[:-1])
            self._star(node.this, qualifier, place)
            return
        parts = tuple(self._identifier(part) for part in node.parts)
        self.columns.append(self._name(parts, place))

    def _name(self, parts: tuple[Identifier, ...], place: _Place) -> ColumnName:
        span = parts[0].span.cover(parts[-1].span)
        return ColumnName(parts, span, place.clause, place.in_aggregate, place.hidden_by)

    def _star(self, node: exp.Star, qualifier: tuple[Identifier, ...], place: _Place) -> None:
        if place.hidden_by is not None:
            return
        span = self._span(node)
        excluded = []
        for part in node.args.get("except_") or ():
            column = part if isinstance(part, exp.Column) else exp.Column(this=part)
            excluded.append(self._name(tuple(self._identifier(each) for each in column.parts), place))
        if excluded:
            span = Span(span.start, self._closing(excluded[-1].span.end))
        if qualifier:
            span = qualifier[0].span.cover(span)
        self.stars.append(StarName(qualifier, tuple(excluded), span))

    def _call(self, node: exp.Anonymous, place: _Place) -> _Place:
        start = node.meta.get("start")
        if start is None:
            return place
        span = self._span(node)
        name = span.of(self.text).lower()
        if name in MATCH_FUNCTIONS:
            if node.expressions:
                shown = name.upper()
                raise WJoinError("WJ213", f"{shown} takes no arguments", span=span, help=f"write {shown}()")
            self.matches.append(MatchCall(MATCH_FUNCTIONS[name], Span(span.start, self._closing(span.end))))
        if name in _AGGREGATES:
            self.is_aggregate = self.is_aggregate or place.hidden_by is None
            return _Place(place.clause, True, place.hidden_by)
        return place

    def _is_count_star(self, node: exp.Anonymous) -> bool:
        if len(node.expressions) != 1 or not isinstance(node.expressions[0], exp.Star):
            return False
        return self._span(node).of(self.text).lower() == "count"

    def _closing(self, start: int) -> int:
        """Return the end of the first closing parenthesis from ``start`` on."""
        return next(token.end for token in self.tokens if token.start >= start and token.text == ")")

    def _identifier(self, node: exp.Expr) -> Identifier:
        if "start" not in node.meta:
            whole = Span(self.tokens[0].start, self.tokens[-1].end)
            raise WJoinError("WJ210", f"the name {node.name} cannot be placed in the text", span=whole)
        return Identifier(node.name, span=self._span(node))

    def _span(self, node: exp.Expr) -> Span:
        return Span(node.meta["start"] + self.shift, node.meta["end"] + 1 + self.shift)


def _relation_names(select: exp.Select) -> Iterator[str]:
    """Yield the lower-case names that a subquery's own FROM, JOINs and LATERAL VIEWs define."""
    sources: list[exp.Expr] = []
    if isinstance(begin := select.args.get("from_"), exp.Expr):
        sources.append(begin.this)
    sources += [join.this for join in select.args.get("joins") or ()]
    sources += select.args.get("laterals") or ()
    for source in sources:
        yield source.alias_or_name.lower()
        yield from (join.this.alias_or_name.lower() for join in source.args.get("joins") or ())
