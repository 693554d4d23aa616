"""The conjuncts of WHERE and ON, sorted: filters of one stream, equalities, comparisons, the rest."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from wjoin.grammar import syntax
from wjoin.grammar.canonical import canonical
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.join_kinds import JoinKind
from wjoin.grammar.join_tree import JoinTree
from wjoin.grammar.spans import Span
from wjoin.grammar.statement_kinds import NOTHING
from wjoin.grammar.tokens import Token, scan_piece
from wjoin.planner.catalog import WHOLE
from wjoin.planner.conditions.column_bands import ColumnBand, column_band
from wjoin.planner.conditions.meaning import Meaning
from wjoin.planner.conditions.predicate_calls import ReadCall, check_calls, read_call
from wjoin.planner.conditions.readable import COMPARISONS, ReadCondition, Unread, read_condition_tree
from wjoin.planner.conditions.time_bounds import TimeBounds, time_bounds
from wjoin.planner.conditions.time_values import EventClock
from wjoin.planner.plan.block_columns import MATCH_COLUMNS
from wjoin.planner.text.edits import Edit, apply_edits
from wjoin.planner.text.joined_columns import UsingPair
from wjoin.planner.text.literals import literal
from wjoin.planner.text.pieces import AnalysedText, ColumnName, function_name, read_condition
from wjoin.planner.text.scope import Reference, Scope, ScopeItem, StreamColumn, first_of
from wjoin.udfs.predicate import Predicate

SPECIAL_WORDS = frozenset(
    """
    current_catalog current_database current_date current_schema current_time current_timestamp current_user
    grouping__id localtimestamp session_user user
    """.split()
)
OF_TABLE = "a condition of ON of a static relation, which Spark joins"
"""What keeps the join of the streams from testing a condition of ON that Spark's own join decides."""

OF_LATERAL = "a column of a LATERAL VIEW, which runs after the join"
"""What keeps the join from testing a condition that Spark tests after it."""

_OPERATORS = {kind: each for kind, each in COMPARISONS.items() if each not in ("=", "<=>")}


@dataclass(frozen=True)
class Side:
    """One side of an equality: an expression over one stream's alias.

    ``identity`` is equal for two spellings of one expression. ``plain`` is the column when
    the expression is nothing else; ``columns`` are all that it reads.
    """

    stream: int
    text: str
    identity: str
    plain: StreamColumn | None
    columns: tuple[StreamColumn, ...]
    span: Span


@dataclass(frozen=True, kw_only=True)
class _Said:
    """A condition of WHERE, or of ON or USING of the FROM item ``on``; to inner joins that is the same.

    ``times``: what it says of event times, None for nothing; it stands at ``place``, and reads ``shown``.
    """

    on: int | None = field(default=None, compare=False)
    times: TimeBounds | None = field(default=None, compare=False)
    place: Span = field(default=NOTHING, compare=False)
    shown: str = field(default="", compare=False)


@dataclass(frozen=True)
class Filter(_Said):
    """A condition on one stream."""

    stream: int
    text: str


@dataclass(frozen=True)
class Equality(_Said):
    """``left = right`` over two streams."""

    left: Side
    right: Side
    span: Span


@dataclass(frozen=True)
class ColumnComparison(_Said):
    """``left operator right`` over columns of two streams that share one integral or time type."""

    left: StreamColumn
    operator: str
    right: StreamColumn
    text: str
    band: ColumnBand | None = None

    @property
    def streams(self) -> set[int]:
        """The streams whose rows it is about."""
        return {self.left.stream, self.right.stream}


@dataclass(frozen=True)
class Residual(_Said):
    """A condition that Spark evaluates on the joined rows; it implies ``band`` where there is one.

    ``read`` is how the join can test it before, or what stands in the way.
    """

    text: str
    columns: tuple[StreamColumn, ...]
    matches: frozenset[str]
    read: ReadCondition | Unread
    band: ColumnBand | None = None


@dataclass(frozen=True)
class PredicateCall(_Said):
    """A condition on a predicate of several streams, which the join decides."""

    text: str
    read: ReadCall


Conjunct = Filter | Equality | ColumnComparison | PredicateCall | Residual


def streams_of(conjunct: Conjunct) -> set[int]:
    """Return the streams whose columns a conjunct reads."""
    match conjunct:
        case Filter(stream):
            return {stream}
        case Equality(left, right) | ColumnComparison(left, _, right):
            return {left.stream, right.stream}
        case PredicateCall(_, read):
            return set(read.streams)
        case Residual(_, columns):
            return {each.stream for each in columns}


@dataclass(frozen=True)
class Surroundings:
    """What a condition is bound by: the names that it sees, parameters, predicates, and the joins around it.

    ``static`` are the relations that come after the streams of ``tree``. Where there is no ``clock``, nothing
    is asked of event times.
    """

    scope: Scope
    parameters: Mapping[str, object]
    predicates: Mapping[str, Predicate]
    static: Collection[int]
    tree: JoinTree
    clock: EventClock | None = None


def bind_conjunct(text: str, written: syntax.Conjunct, around: Surroundings) -> Conjunct:
    """Return what one conjunct is to the join; raises WJ201, WJ202, WJ203, WJ210 and WJ217."""
    piece, scope, clock = read_condition(text, written.span), around.scope, around.clock
    if clock is not None:
        _refuse_streams(piece, scope, clock)
    references = [reference for name in piece.columns if (reference := column_of(scope, name)) is not None]
    meaning = _meaning(text, piece, references, around.parameters)
    found = _sorted(text, written, around, piece, references, meaning)
    said = None if isinstance(found, Filter) or clock is None else time_bounds(piece.tree, meaning, clock)
    if said is None:
        return found
    shown = " ".join(written.span.of(text).split())
    if clock is not None and said != time_bounds(piece.tree, meaning, replace(clock, zone="UTC")):
        shown += f" by the clocks of {clock.zone}"
    return replace(found, times=said, place=written.span, shown=shown)


def _refuse_streams(piece: AnalysedText, scope: Scope, clock: EventClock) -> None:
    """Raise WJ309 for DATEDIFF(minute, A, B) of streams, which Azure Stream Analytics has."""
    for call in piece.tree.find_all(exp.DateDiff, exp.TimestampDiff):
        sides = [
            side.this if isinstance(side, exp.TsOrDsToDate) else side for side in (call.expression, call.this)
        ]
        names = [each.name.lower() for each in sides if isinstance(each, exp.Column) and not each.table]
        items = [each for name in names for each in scope.sources if each.name.lower() == name]
        times = [time for each in items if (time := clock.times[each.number]) is not None]
        columns = {each.column.name.lower() for each in scope.visible}
        if len(times) != len(sides) or not columns.isdisjoint(names):
            continue
        first, second = (each.name for each in items)
        shown = " and ".join(
            f"{each.name}.{time.column.name}" for each, time in zip(items, times, strict=True)
        )
        window = f"WINDOW ({first}, {second}) BETWEEN 0 MINUTES AND 10 MINUTES"
        message = f"{first} and {second} are streams, not times"
        help = f"write {shown} in their places, or a window clause after FROM: {window}"
        raise WJoinError("WJ309", message, span=piece.span, help=help)


def _sorted(
    text: str,
    written: syntax.Conjunct,
    around: Surroundings,
    piece: AnalysedText,
    references: Sequence[Reference],
    meaning: Meaning,
) -> Conjunct:
    """Return a conjunct as one of the kinds."""
    span, scope, predicates, tree = written.span, around.scope, around.predicates, around.tree
    edits = [reference.edit for reference in references if reference.edit is not None]
    edits += [Edit(call.span.start, call.span.end, MATCH_COLUMNS[call.what]) for call in piece.matches]
    values = _literals(piece.parameters, around.parameters)
    columns = tuple(column for reference in references for column in reference.columns)
    streams = {each.stream for each in columns}
    written = _as_tested(written, streams, tree)
    lateral = _after_join(piece, scope)
    after = lateral or _after_outer(tree, written, streams)
    runs = _runs_apart(piece) and values is not None
    apart = runs and not after
    check_calls(piece.tree, meaning, predicates, span)
    of_table = runs and written.on in tree.static and not lateral
    if (apart and len(streams) == 1) or (of_table and streams == {written.on}):
        return Filter(streams.pop(), apply_edits(text, [*edits, *(values or ())], span), on=written.on)
    if apart and not streams and written.on is not None and tree.number_of(written.on) >= 0:
        # What ON says of no row it says of each row of its item.
        item = tree.joins[tree.number_of(written.on)].item
        return Filter(item, apply_edits(text, values or (), span), on=written.on)
    # What comes after the join reads CHAR columns in another way.
    turned = [each.edit for each in references]
    joined = [reference.joined for reference in references if reference.joined is not None]
    shown = apply_edits(text, [*joined, *(each for each in edits if each not in turned)], span)
    if apart and len(streams) > 1 and streams.isdisjoint(around.static):
        call = read_call(piece.tree, meaning, predicates)
        if call is not None:
            return PredicateCall(shown, call, on=written.on)
    if (apart or of_table) and isinstance(piece.tree, exp.EQ) and len(streams) == 2:
        equality = _equality(text, piece, references, [*edits, *(values or ())], scope.sources)
        if equality is not None:
            return replace(equality, on=written.on)
    operator = _OPERATORS.get(type(piece.tree))
    band = column_band(piece.tree, meaning) if apart and len(streams) == 2 else None
    if operator is not None and apart and len(streams) == 2:
        comparison = _comparison(piece.tree, references, operator, shown, band)
        if comparison is not None:
            return replace(comparison, on=written.on)
    matches = frozenset(call.what for call in piece.matches)
    if written.on in tree.static and not lateral:
        called = any(meaning.function(call) in predicates for call in piece.tree.find_all(exp.Anonymous))
        after = after if of_table and not called else "a predicate" if called else _not_apart(piece)
    if after:
        return Residual(shown, columns, matches, Unread(after), on=written.on)
    read = _read(text[span.start : span.end], piece, meaning, apart=apart, streams=len(streams))
    return Residual(shown, columns, matches, read, band, on=written.on)


def _after_join(piece: AnalysedText, scope: Scope) -> str:
    """Return why a condition can be tested after the join only; empty where it can be before."""
    if any(scope.is_generated(name) for name in piece.columns):
        return OF_LATERAL
    return ""


def _as_tested(written: syntax.Conjunct, streams: Collection[int], tree: JoinTree) -> syntax.Conjunct:
    """Return a condition of ON of an inner join as one of WHERE where a static relation is in it.

    That is joined after the streams, and only to LEFT, SEMI and ANTI JOINs of theirs that do not ask for it.
    """
    if written.on is None or tree.static.isdisjoint({written.on, *streams}):
        return written
    return replace(written, on=None) if tree.kind_of(written.on) is JoinKind.INNER else written


def _after_outer(tree: JoinTree, written: syntax.Conjunct, streams: Collection[int]) -> str:
    """Return why a condition can be tested in or after an outer join only; empty where it can be before.

    One of WHERE on streams that all results have rows of says which of these rows take part.
    """
    if written.on in tree.static:
        return OF_TABLE
    inner = tree.kind is JoinKind.INNER
    if inner or written.on is not None or (streams and tree.decides(streams)):
        return ""
    return f"a condition of WHERE, after {tree.kind.words}"


def _meaning(
    text: str, piece: AnalysedText, references: Sequence[Reference], parameters: Mapping[str, object]
) -> Meaning:
    columns = {_name(reference.name): reference.column for reference in references if reference.plain}

    def column(node: exp.Column) -> StreamColumn | None:
        return columns.get(tuple(part.name.lower() for part in node.parts))

    return Meaning(column, lambda call: function_name(text, piece, call), parameters)


def _read(
    text: str, piece: AnalysedText, meaning: Meaning, *, apart: bool, streams: int
) -> ReadCondition | Unread:
    """Return a condition on so many streams, whose text is given, as the join can test it."""
    if not apart:
        return Unread(_not_apart(piece))
    if streams < 2:
        return Unread("columns of fewer than two streams")
    if "\\" in text:
        # What it means in a string is for a setting to say.
        return Unread("a backslash")
    return read_condition_tree(piece.tree, meaning)


def _not_apart(piece: AnalysedText) -> str:
    """Return why a condition cannot be evaluated apart from the statement."""
    if piece.matches:
        return "a match function"
    if piece.has_subquery:
        return "a subquery"
    if piece.is_volatile:
        return "a nondeterministic function"
    if piece.is_aggregate:
        return "an aggregate"
    return "a parameter that is not a number, boolean, date or string"


def _name(name: ColumnName) -> tuple[str, ...]:
    return tuple(part.name.lower() for part in name.parts)


def column_of(scope: Scope, name: ColumnName, defined: Iterable[str] = ()) -> Reference | None:
    """Return the column that a name means; None where Spark, a subquery or ``defined`` gives it meaning.

    Raises WJ201, WJ202 or WJ203.
    """
    if scope.is_generated(name):
        return None
    reference = scope.resolve(name)
    if reference is not None or name.hidden_by is not None:
        return reference
    known = list(defined)
    first = name.parts[0].name.lower()
    if first in (each.lower() for each in known) or (len(name.parts) == 1 and first in SPECIAL_WORDS):
        return None
    raise scope.unknown(name, known)


def using_equality(pair: UsingPair, sources: Sequence[ScopeItem]) -> Equality | Residual:
    """Return the equality that one column of a USING stands for."""
    on = pair.on
    why = "a column that a FULL JOIN takes from both sides"
    if len(pair.left) == 1:
        sides = _filled_up(*(_plain_side(each, sources, pair.span) for each in (*pair.left, pair.right)))
        if sides is not None:
            return Equality(*sides, pair.span, on=on)
        why = "CHAR inside of other types"
    *left, right = columns = (*pair.left, pair.right)
    shown = f"{first_of(left, sources)} = {first_of([right], sources)}"
    return Residual(shown, columns, frozenset(), Unread(why), on=on)


def _runs_apart(piece: AnalysedText) -> bool:
    return not (piece.has_subquery or piece.is_volatile or piece.is_aggregate or piece.matches)


def _literals(tokens: Sequence[Token], parameters: Mapping[str, object]) -> list[Edit] | None:
    edits = []
    for token in tokens:
        value = literal(parameters[token.text[1:]]) if token.text[1:] in parameters else None
        if value is None:
            return None
        edits.append(Edit(token.start, token.end, value))
    return edits


def _equality(
    text: str,
    piece: AnalysedText,
    references: Sequence[Reference],
    edits: Sequence[Edit],
    sources: Sequence[ScopeItem],
) -> Equality | None:
    parts = piece.tree.this, piece.tree.expression
    if any(isinstance(part, (exp.Predicate, exp.Connector, exp.Not)) for part in parts):
        return None
    spans = _sides(text, piece.span)
    if spans is None:
        return None
    sides = []
    for part, span in zip(parts, spans, strict=True):
        inside = [each for each in references if span.start <= each.name.span.start < span.end]
        streams = {column.stream for each in inside for column in each.columns}
        if len(streams) != 1:
            return None
        if isinstance(part, exp.Column) and inside[0].plain:
            sides.append(_plain_side(inside[0].column, sources, span))
            continue
        shown = apply_edits(text, edits, span)
        columns = tuple(each.column for each in inside)
        sides.append(Side(streams.pop(), shown, canonical(shown), None, columns, span))
    filled = _filled_up(*sides)
    return Equality(*filled, piece.span) if filled and filled[0].stream != filled[1].stream else None


def _filled_up(left: Side, right: Side) -> tuple[Side, Side] | None:
    """Return two sides that are equal where they are to Spark: of two CHAR the shorter one is filled up.

    None of columns with CHARs of other lengths inside a STRUCT or ARRAY: these Spark alone fills up.
    """
    declared = [each.plain.column.declared if each.plain else None for each in (left, right)]
    if None in declared or declared[0] == declared[1]:
        return left, right
    lengths = [each.plain.column.length if each.plain else None for each in (left, right)]
    if lengths[0] is None or lengths[1] is None:
        return None
    longest = max(lengths[0], lengths[1])
    made = [
        each if length == longest else _expression_side(each, f"rpad({each.text}, {longest}, ' ')")
        for each, length in zip((left, right), lengths, strict=True)
    ]
    return made[0], made[1]


def _expression_side(side: Side, shown: str) -> Side:
    return replace(side, text=shown, identity=canonical(shown), plain=None)


def _plain_side(column: StreamColumn, sources: Sequence[ScopeItem], span: Span) -> Side:
    shown = sources[column.stream].expression(column.column.name)
    return Side(column.stream, shown, canonical(shown), column, (column,), span)


def _sides(text: str, span: Span) -> tuple[Span, Span] | None:
    """Return the places of both sides of the last ``=`` that is not inside brackets or CASE."""
    depth = 0
    found = None
    tokens = scan_piece(text, span)
    for number, token in enumerate(tokens):
        word = "" if number and tokens[number - 1].text == "." else token.word
        if token.text in ("(", "[") or word == "CASE":
            depth += 1
        elif token.text in (")", "]") or word == "END":
            depth -= 1
        elif depth == 0 and token.text in ("=", "=="):
            found = number
    if found is None or found in (0, len(tokens) - 1):
        return None
    return tokens[0].span.cover(tokens[found - 1].span), tokens[found + 1].span.cover(tokens[-1].span)


def _comparison(
    tree: exp.Expr, references: Sequence[Reference], operator: str, text: str, band: ColumnBand | None
) -> ColumnComparison | None:
    if not all(isinstance(side, exp.Column) for side in (tree.this, tree.expression)):
        return None
    left, right = references
    if not (left.plain and right.plain):
        return None
    if not comparable(left.column, right.column):
        return None
    return ColumnComparison(left.column, operator, right.column, text, band)


def comparable(left: StreamColumn, right: StreamColumn) -> bool:
    """Return whether the operator can compare two columns as whole numbers."""
    return left.column.type == right.column.type and left.column.type.lower() in WHOLE
