"""Names of columns to columns of streams, by Spark's rules, with the edits that make them explicit."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.plurals import listed
from wjoin.grammar.suggestions import nearest, suggestion
from wjoin.grammar.syntax import FromItem, Identifier, LateralView
from wjoin.planner.catalog import Column, Relation
from wjoin.planner.plan.block_columns import quoted
from wjoin.planner.text.edits import Edit
from wjoin.planner.text.pieces import ColumnName

_SHOWN = 12
"""Columns that an error names; of more it says so."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TO_QUOTE = frozenset(
    """
    all and any anti array as between both by case cast cross current_date current_time current_timestamp
    current_user date distinct else end escape except exists extract false filter for from full group having
    if in inner intersect interval is join lateral leading left like limit localtimestamp map minus natural
    not null offset on or order outer over overlay position right select semi session_user set some struct
    substring table then timestamp timestamp_ltz timestamp_ntz to trailing trim true try_cast union unique
    user using values when where window with
    """.split()
)


def quoted_if_needed(name: str) -> str:
    """Return a name as Spark reads it in an expression.

    >>> quoted_if_needed("obj_id"), quoted_if_needed("a b"), quoted_if_needed("Case")
    ('obj_id', '`a b`', '`Case`')
    """
    if _PLAIN.fullmatch(name) and name.lower() not in _TO_QUOTE:
        return name
    return quoted(name)


@dataclass(frozen=True)
class StreamColumn:
    """A column of FROM item ``stream``."""

    stream: int
    column: Column

    @property
    def identity(self) -> tuple[int, str]:
        """The same of one column, however it is written: names are compared as Spark does."""
        return self.stream, self.column.name.lower()

    def same(self, other: "StreamColumn") -> bool:
        """Return whether both are one column."""
        return self.identity == other.identity

    @property
    def read(self) -> tuple["StreamColumn", ...]:
        """The columns of the relation that it is made of: itself."""
        return (self,)


@dataclass(frozen=True)
class ComputedValue(StreamColumn):
    """A value of FROM item ``stream``, an expression over its alias that stands in the place of a name.

    ``made_of`` are the columns in it.
    """

    made_of: tuple[StreamColumn, ...]

    @property
    def read(self) -> tuple[StreamColumn, ...]:
        """The columns of the relation that it is made of."""
        return self.made_of


@dataclass(frozen=True)
class ScopeItem:
    """One FROM item with its name in expressions and its relation."""

    number: int
    name: str
    item: FromItem
    relation: Relation

    def expression(self, column: str) -> str:
        """Return the Spark expression of a column over the alias."""
        return f"{quoted_if_needed(self.name)}.{quoted_if_needed(column)}"

    def value(self, column: StreamColumn) -> str:
        """Return the Spark expression of a column, or of a computed value, over the alias."""
        made = isinstance(column, ComputedValue)
        return column.column.name if made else self.expression(column.column.name)

    def joined(self, column: Column) -> str:
        """Return the expression of a column over the joined rows.

        Spark fills up CHAR, also inside a STRUCT or ARRAY, where it compares a column as a whole, no field of
        a struct: so that is both there.
        """
        if column.declared is not None:
            return quoted(f"{self.name}.{column.name}")
        return f"{quoted(self.name)}.{quoted(column.name)}"

    @property
    def columns(self) -> tuple[StreamColumn, ...]:
        """Its columns."""
        return tuple(StreamColumn(self.number, column) for column in self.relation.columns)

    def columns_named(self, name: str) -> list[StreamColumn]:
        """Return the columns of that name, case ignored."""
        return self._columns.get(name.lower(), [])

    @cached_property
    def _columns(self) -> dict[str, list[StreamColumn]]:
        return _by_name(self.columns)

    def qualifier_length(self, parts: Sequence[Identifier]) -> int:
        """Return how many leading parts of a name (not the last one) name this item, 0 when none do."""
        if self.item.alias is not None or not self.item.parts:
            names: tuple[tuple[str, ...], ...] = ((self.name.lower(),),)
        else:
            whole = tuple(part.name.lower() for part in self.item.parts)
            names = tuple(whole[start:] for start in range(len(whole)))
        for name in names:
            if len(parts) > len(name) and tuple(part.name.lower() for part in parts[: len(name)]) == name:
                return len(name)
        return 0


def _by_name(columns: Iterable[StreamColumn]) -> dict[str, list[StreamColumn]]:
    found: dict[str, list[StreamColumn]] = {}
    for column in columns:
        found.setdefault(column.column.name.lower(), []).append(column)
    return found


@dataclass(frozen=True)
class Reference:
    """A name resolved to a column. ``whole`` is False for a field inside the column.

    ``edit`` is that of the name over its stream, ``joined`` over the joined rows. It means the first of the
    column and ``others`` that is not NULL.
    """

    column: StreamColumn
    whole: bool
    name: ColumnName
    edit: Edit | None
    joined: Edit | None
    others: tuple[StreamColumn, ...] = ()

    @property
    def columns(self) -> tuple[StreamColumn, ...]:
        """All that it reads."""
        return self.column, *self.others

    @property
    def plain(self) -> bool:
        """Whether it is nothing but a column of a stream."""
        return self.whole and not self.others


@dataclass(frozen=True)
class Visible:
    """What ``*`` and unqualified names see in order, and what of it is ``merged`` (see Scope)."""

    columns: tuple[StreamColumn, ...]
    merged: tuple[tuple[StreamColumn, ...], ...]


@dataclass(frozen=True)
class Scope:
    """The names of a block: its sources and what ``*`` and unqualified names see, in order.

    ``laterals`` are its LATERAL VIEWs, whose columns Spark adds to the joined rows. ``hidden`` are the
    numbers of sources that cannot be named. ``merged``: unqualified, a column that is the first of some
    means the first of them that is not NULL. ``outer``: the names around a subquery, after its own.
    """

    sources: tuple[ScopeItem, ...]
    visible: tuple[StreamColumn, ...]
    laterals: tuple[LateralView, ...] = ()
    hidden: frozenset[int] = frozenset()
    merged: tuple[tuple[StreamColumn, ...], ...] = ()
    outer: "Scope | None" = None

    @property
    def named(self) -> tuple[ScopeItem, ...]:
        """The sources that can be named."""
        return tuple(each for each in self.sources if each.number not in self.hidden)

    def without(self, hidden: Collection[int]) -> "Scope":
        """Return the same names without those of some sources."""
        shown = tuple(each for each in self.visible if each.stream not in hidden)
        return replace(self, visible=shown, hidden=frozenset(hidden))

    def inside(self, first: int, seen: Visible) -> "Scope":
        """Return the names in an EXISTS, whose ``first`` relation is given: what is ``seen``, then these."""
        own = range(first, first + self.sources[first].item.joined)
        hidden = frozenset(each.number for each in self.sources).difference(own)
        return Scope(self.sources, seen.columns, hidden=hidden, merged=seen.merged, outer=self)

    def parts(self, column: StreamColumn) -> tuple[StreamColumn, ...]:
        """Return the columns of which an unqualified name of a visible column means the first not NULL."""
        return next((each for each in self.merged if each[0].same(column)), (column,))

    def is_generated(self, name: ColumnName) -> bool:
        """Return whether a name means a column of a LATERAL VIEW. Raises WJ202 and WJ203."""
        first = name.parts[0]
        for view in self.laterals:
            if first.matches(view.name.name) and len(name.parts) > 1:
                if any(name.parts[1].matches(each.name) for each in view.columns):
                    return True
                known = [each.name for each in view.columns]
                help = suggestion(name.parts[1].name, known) or f"its columns are {_shortened(known)}"
                message = f"the LATERAL VIEW {view.name.name} has no column {name.parts[1].name}"
                raise WJoinError("WJ202", message, span=name.parts[1].span, help=help)
        if len(name.parts) > 1 and any(each.qualifier_length(name.parts) for each in self.named):
            return False
        owners = [
            view.name.name for view in self.laterals for each in view.columns if first.matches(each.name)
        ]
        streams = [each for each in self.visible if first.matches(each.column.name)] if owners else []
        if len(owners) + len(streams) > 1:
            known = [self.sources[each.stream].name for each in streams] + owners
            choice = " or ".join(f"{quoted_if_needed(each)}.{first.name}" for each in known[:2])
            message = f"the column {first.name} is in {listed(known)}"
            raise WJoinError("WJ203", message, span=name.span, help=f"write {choice}")
        return bool(owners)

    @cached_property
    def _visible(self) -> dict[str, list[StreamColumn]]:
        return _by_name(self.visible)

    def resolve(self, name: ColumnName) -> Reference | None:
        """Return the column that a name means, None when it is no column of the block.

        Raises WJ202 for an unknown column of a known stream, WJ203 for an ambiguous name, and WJ107 for a
        column of a LATERAL VIEW around a subquery.
        """
        found = self._resolve(name)
        if found is not None or self.outer is None:
            return found
        if name.hidden_by is None and self.outer.is_generated(name):
            message = "an EXISTS with a window clause cannot read a column of a LATERAL VIEW"
            raise WJoinError("WJ107", message, span=name.span, help="test it in a SELECT around this one")
        return self.outer.resolve(name)

    def _resolve(self, name: ColumnName) -> Reference | None:
        qualified = self._qualified(name)
        if qualified is not None or name.hidden_by is not None:
            return qualified
        found = self._visible.get(name.parts[0].name.lower(), [])
        if not found:
            return None
        if len(found) > 1:
            raise self._ambiguous(name, found)
        parts = self.parts(found[0])
        if len(parts) > 1:
            place = name.parts[0].span
            edit = Edit(place.start, place.end, first_of(parts, self.sources))
            return Reference(found[0], len(name.parts) == 1, name, edit, edit, parts[1:])
        prefix = f"{quoted_if_needed(self.sources[found[0].stream].name)}."
        edit = Edit(name.span.start, name.span.start, prefix)
        return self._reference(found[0], len(name.parts) == 1, name, edit)

    def _qualified(self, name: ColumnName) -> Reference | None:
        for source in sorted(self.named, key=lambda each: -each.qualifier_length(name.parts)):
            length = source.qualifier_length(name.parts)
            if not length or name.parts[length - 1].name.lower() in (name.hidden_by or ()):
                continue
            wanted = name.parts[length]
            found = source.columns_named(wanted.name)
            if not found:
                if name.parts[0].name.lower() in self._visible:
                    continue
                raise _no_column(source, wanted)
            if len(found) > 1:
                raise self._ambiguous(name, found)
            edit = None
            if length > 1:
                place = name.parts[0].span.cover(name.parts[length - 1].span)
                edit = Edit(place.start, place.end, quoted_if_needed(source.name))
            return self._reference(found[0], len(name.parts) == length + 1, name, edit)
        return None

    def _reference(self, column: StreamColumn, whole: bool, name: ColumnName, edit: Edit | None) -> Reference:
        joined = edit
        if whole and column.column.declared is not None:
            shown = self.sources[column.stream].joined(column.column)
            joined = Edit(name.span.start, name.span.end, shown)
        return Reference(column, whole, name, edit, joined)

    def _ambiguous(self, name: ColumnName, found: Sequence[StreamColumn]) -> WJoinError:
        owners = list(dict.fromkeys(self.sources[each.stream].name for each in found))
        column = found[0].column.name
        if len(owners) == 1:
            message = f"the stream {owners[0]} has {len(found)} columns named {column}"
            return WJoinError("WJ203", message, span=name.span, help="rename one in a subquery")
        message = f"the column {column} is in {listed(owners)}"
        choice = " or ".join(self.sources[each.stream].expression(each.column.name) for each in found[:2])
        return WJoinError("WJ203", message, span=name.span, help=f"write {choice}")

    def unknown(self, name: ColumnName, also: Iterable[str] = ()) -> WJoinError:
        """Return the error for a name that nothing defines; ``also`` are further names to suggest."""
        if self.outer is not None:
            visible, hidden = self.visible + self.outer.visible, self.hidden & self.outer.hidden
            return Scope(self.sources, visible, hidden=hidden).unknown(name, also)
        first = name.parts[0]
        if len(name.parts) > 1:
            names = [source.name for source in self.named]
            help = suggestion(first.name, names) or f"the streams are {', '.join(names)}"
            return WJoinError("WJ201", f"{first.name} is not a stream of FROM", span=first.span, help=help)
        columns = [each.column.name for each in self.visible]
        also = [*also, *(each.name for view in self.laterals for each in view.columns)]
        near = nearest(first.name, [*columns, *also])
        owner = next((each for each in self.visible if each.column.name == near), None)
        if near is None:
            help = "the columns are " + _shortened(dict.fromkeys(columns))
        else:
            help = f"did you mean {self.sources[owner.stream].expression(near) if owner else near}?"
        message = f"no stream has a column {first.name}"
        return WJoinError("WJ202", message, span=name.span, help=help)

    def source(self, qualifier: Sequence[Identifier]) -> ScopeItem:
        """Return the source that a star's qualifier names; raises WJ201 when none does."""
        last = Identifier("*", span=qualifier[-1].span)
        for source in self.named:
            if source.qualifier_length((*qualifier, last)) == len(qualifier):
                return source
        names = [source.name for source in self.named]
        help = suggestion(qualifier[-1].name, names) or f"the streams are {', '.join(names)}"
        span = qualifier[0].span.cover(qualifier[-1].span)
        raise WJoinError("WJ201", f"{qualifier[-1].name} is not a stream of FROM", span=span, help=help)


def find_column(source: ScopeItem, name: Identifier) -> Column:
    """Return the column of a source that an unqualified name means; raises WJ202 or WJ203."""
    found = source.columns_named(name.name)
    if not found:
        raise _no_column(source, name)
    if len(found) > 1:
        message = f"the stream {source.name} has {len(found)} columns named {name.name}"
        raise WJoinError("WJ203", message, span=name.span, help="rename one in a subquery")
    return found[0].column


def first_of(columns: Sequence[StreamColumn], sources: Sequence[ScopeItem]) -> str:
    """Return the expression, over the joined rows, of the first of some columns that is not NULL."""
    shown = [sources[each.stream].joined(each.column) for each in columns]
    return shown[0] if len(shown) == 1 else f"coalesce({', '.join(shown)})"


def _no_column(source: ScopeItem, wanted: Identifier) -> WJoinError:
    names = [column.name for column in source.relation.columns]
    help = suggestion(wanted.name, names) or f"the columns of {source.name} are {_shortened(names)}"
    if wanted.name.upper() == "ROWTIME" and source.relation.event_time is not None:
        time = source.relation.event_time
        help = f"the event time of {source.name} is {time}, that of a result MATCH_TIME()"
    message = f"the stream {source.name} has no column {wanted.name}"
    return WJoinError("WJ202", message, span=wanted.span, help=help)


def _shortened(names: Iterable[str]) -> str:
    every = list(names)
    return ", ".join(every[:_SHOWN]) + (", …" if len(every) > _SHOWN else "")
