"""The select list and the clauses after the join: the columns they read and the edits they need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.nesting import pair
from wjoin.grammar.spans import Span
from wjoin.grammar.tokens import scan_piece
from wjoin.planner.conditions.conjuncts import column_of
from wjoin.planner.plan.block_columns import MATCH_COLUMNS, quoted
from wjoin.planner.text.edits import Edit
from wjoin.planner.text.pieces import (
    AnalysedText,
    ColumnName,
    ListItem,
    StarName,
    read_select_list,
    read_tail,
)
from wjoin.planner.text.scope import Reference, Scope, StreamColumn, first_of

_ORDERING = ("order", "sort", "cluster", "distribute")


@dataclass(frozen=True)
class ResultColumn:
    """A column of the result: its name (None where Spark invents one) and the stream's column it repeats.

    ``unnamed`` is the place of an expression over the joined rows for which Spark invents a name: over
    the joined rows that would be another than over the streams.
    """

    name: str | None
    column: StreamColumn | None
    unnamed: Span | None = None


@dataclass(frozen=True)
class Reads:
    """What a piece of the statement takes from the join; ``collapsed``: whether it groups or aggregates."""

    columns: tuple[StreamColumn, ...]
    matches: frozenset[str]
    edits: tuple[Edit, ...]
    collapsed: bool = False


def bind_select_list(text: str, span: Span, scope: Scope) -> tuple[Reads, tuple[ResultColumn, ...]]:
    """Bind the select list; raises WJ201, WJ202, WJ203 and WJ210.

    Stars become the list of their columns; a name without its stream gets it.
    """
    piece = read_select_list(text, span)
    excluded = {name.span for star in piece.stars for name in star.excluded}
    defined = [name for item in piece.items if item.aliased for name in item.names]
    references = _references(piece, scope, excluded, defined)
    generated = {star.span: _generated(star, scope) for star in piece.stars}
    expanded = {star.span: _expand(star, scope) for star in piece.stars if not _is_lateral(star, scope)}
    bare = {item.match.span for item in piece.items if item.match is not None}
    edits = [each.joined for each in references.values() if each.joined is not None]
    edits += [_named(each, references) for each in piece.items if _is_made(each, references)]
    for star in piece.stars:
        listed = [
            *_star_texts(star, expanded.get(star.span, ()), scope),
            *(shown for _, shown in generated[star.span]),
        ]
        edits.append(Edit(star.span.start, star.span.end, ", ".join(listed)))
    for call in piece.matches:
        shown = MATCH_COLUMNS[call.what] + (f" AS match_{call.what}" if call.span in bare else "")
        edits.append(Edit(call.span.start, call.span.end, shown))
    outputs: list[ResultColumn] = []
    read = [*references, *(call.span for call in piece.matches)]
    for item, place in zip(piece.items, _item_places(text, span), strict=False):
        if item.star is not None:
            outputs += [
                ResultColumn(each.column.name, each if len(_parts(item.star, each, scope)) == 1 else None)
                for each in expanded.get(item.star.span, ())
            ]
            outputs += [ResultColumn(name, None) for name, _ in generated[item.star.span]]
        elif item.column is not None:
            reference = references.get(item.column.span)
            whole = reference.column if reference is not None and reference.plain else None
            outputs.append(ResultColumn(item.names[0], whole))
        else:
            reads = any(place.start <= each.start < place.end for each in read)
            invented = ResultColumn(None, None, place if reads else None)
            outputs += [ResultColumn(name, None) for name in item.names] or [invented]
    columns = [column for each in references.values() for column in each.columns]
    columns += [
        column
        for star in piece.stars
        for each in expanded.get(star.span, ())
        for column in _parts(star, each, scope)
    ]
    return _reads(columns, piece, edits), tuple(outputs)


def _is_made(item: ListItem, references: Mapping[Span, Reference]) -> bool:
    """Return whether an item is a column with CHAR in it, or one of several streams, without an alias."""
    reference = references.get(item.column.span) if item.column is not None and not item.aliased else None
    if reference is None:
        return False
    return bool(reference.others) or (reference.whole and reference.column.column.declared is not None)


def _named(item: ListItem, references: Mapping[Span, Reference]) -> Edit:
    if item.column is None:
        raise AssertionError("an item that is not a column")
    return Edit(item.column.span.end, item.column.span.end, f" AS {quoted(item.names[0])}")


def _item_places(text: str, span: Span) -> list[Span]:
    """Return the places of the items of a select list."""
    code = pair(text, scan_piece(text, span))
    commas = [place for place in code.level(0, len(code.tokens)) if code.mark(place) == ","]
    edges = [-1, *commas, len(code.tokens)]
    return [code.span(before + 1, after) for before, after in pairwise(edges)]


def bind_tail(
    text: str, span: Span, scope: Scope, outputs: Sequence[ResultColumn], *, distinct: bool
) -> Reads:
    """Bind GROUP BY, HAVING, ORDER BY and what else follows the join; errors as for the select list.

    ORDER BY and HAVING see the names of the select list first, as in Spark. After DISTINCT or
    GROUP BY, ORDER BY gets the name of the output instead of the column: Spark does not find a
    field of the joined row there.
    """
    piece = read_tail(text, span)
    names = [output.name for output in outputs if output.name is not None]
    edits: list[Edit] = []
    columns: list[StreamColumn] = []
    collapsed = distinct or bool(piece.tree.args.get("group"))
    for name in piece.columns:
        if _is_output(name, outputs):
            continue
        reference = column_of(scope, name, names)
        if reference is None:
            continue
        columns += reference.columns
        edit = _repeated(reference, outputs) if collapsed and name.clause in _ORDERING else None
        if (edit := edit or reference.joined) is not None:
            edits.append(edit)
    edits += [Edit(call.span.start, call.span.end, MATCH_COLUMNS[call.what]) for call in piece.matches]
    return _reads(columns, piece, edits)


def _reads(columns: Sequence[StreamColumn], piece: AnalysedText, edits: Sequence[Edit]) -> Reads:
    collapsed = piece.is_aggregate or bool(piece.tree.args.get("group"))
    matches = frozenset(call.what for call in piece.matches)
    return Reads(tuple(columns), matches, tuple(sorted(edits)), collapsed)


def _references(
    piece: AnalysedText, scope: Scope, excluded: set[Span], defined: Sequence[str]
) -> dict[Span, Reference]:
    references = {}
    for name in piece.columns:
        if name.span not in excluded and (reference := column_of(scope, name, defined)) is not None:
            references[name.span] = reference
    return references


def _expand(star: StarName, scope: Scope) -> list[StreamColumn]:
    columns = list(scope.visible)
    if star.qualifier:
        source = scope.source(star.qualifier)
        columns = [StreamColumn(source.number, column) for column in source.relation.columns]
    for name in star.excluded:
        if scope.is_generated(name):
            continue
        removed = _excluded(name, columns, scope)
        columns = [each for each in columns if not each.same(removed)]
    if not columns:
        raise WJoinError("WJ210", "the star leaves no column", span=star.span, help="leave fewer columns out")
    return columns


def _excluded(name: ColumnName, columns: Sequence[StreamColumn], scope: Scope) -> StreamColumn:
    visible = Scope(scope.sources, tuple(columns))
    reference = visible.resolve(name)
    if reference is None:
        raise visible.unknown(name)
    if not reference.whole:
        message = "EXCEPT of a field inside a column is not supported with a window clause"
        raise WJoinError("WJ210", message, span=name.span, help="leave the whole column out")
    return reference.column


def _parts(star: StarName, column: StreamColumn, scope: Scope) -> tuple[StreamColumn, ...]:
    """Return the columns of which a star has the first that is not NULL."""
    return (column,) if star.qualifier else scope.parts(column)


def _star_texts(star: StarName, columns: Sequence[StreamColumn], scope: Scope) -> list[str]:
    found = []
    for each in columns:
        parts = _parts(star, each, scope)
        named = len(parts) > 1 or each.column.declared is not None
        found.append(first_of(parts, scope.sources) + (f" AS {quoted(each.column.name)}" if named else ""))
    return found


def _is_lateral(star: StarName, scope: Scope) -> bool:
    """Return whether a star is that of a LATERAL VIEW."""
    return len(star.qualifier) == 1 and any(
        star.qualifier[0].matches(view.name.name) for view in scope.laterals
    )


def _generated(star: StarName, scope: Scope) -> list[tuple[str, str]]:
    """Return the columns of LATERAL VIEWs that a star has: each name, and how it is written."""
    return [
        (column.name, f"{quoted(view.name.name)}.{quoted(column.name)}")
        for view in scope.laterals
        if not star.qualifier or star.qualifier[0].matches(view.name.name)
        for column in view.columns
        if not any(name.parts[-1].matches(column.name) for name in star.excluded)
    ]


def _is_output(name: ColumnName, outputs: Sequence[ResultColumn]) -> bool:
    """Return whether a name of the tail means an output of the select list; raises WJ203."""
    if len(name.parts) > 1 or name.in_aggregate or name.hidden_by is not None:
        return False
    if name.clause not in (*_ORDERING, "having"):
        return False
    found = [each for each in outputs if each.name is not None and name.parts[0].matches(each.name)]
    if len(found) > 1 and not all(_repeats(each, found[0]) for each in found):
        message = f"the select list has {len(found)} columns named {found[0].name}"
        raise WJoinError("WJ203", message, span=name.span, help="give one another name with AS")
    return bool(found)


def _repeats(first: ResultColumn, second: ResultColumn) -> bool:
    return first.column is not None and second.column is not None and first.column.same(second.column)


def _repeated(reference: Reference, outputs: Sequence[ResultColumn]) -> Edit | None:
    """Return the edit that names the output that repeats a column, None when none does under its own name."""
    name = reference.name
    if not reference.plain or name.in_aggregate or name.hidden_by is not None:
        return None
    names = [each.name.lower() for each in outputs if each.name is not None]
    for output in outputs:
        if output.name is None or output.column is None or not output.column.same(reference.column):
            continue
        if names.count(output.name.lower()) == 1:
            return Edit(name.span.start, name.span.end, quoted(output.name))
    return None
