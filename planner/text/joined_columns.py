"""The columns of the joins of a FROM list: what each ON sees, and what USING and NATURAL make one."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.join_kinds import JoinKind
from wjoin.grammar.plurals import listed
from wjoin.grammar.spans import Span
from wjoin.grammar.suggestions import nearest
from wjoin.grammar.syntax import Identifier, UsingColumns
from wjoin.grammar.tokens import scan
from wjoin.planner.text.scope import ScopeItem, StreamColumn, Visible, find_column


@dataclass(frozen=True)
class UsingPair:
    """Columns that a USING or NATURAL JOIN makes equal, its place, and the item in whose ON that would stand.

    ``left`` are several, of which the first that is not NULL counts, where a FULL JOIN has made them one.
    """

    left: tuple[StreamColumn, ...]
    right: StreamColumn
    span: Span
    natural: bool
    on: int


def visible_columns(
    text: str, sources: Sequence[ScopeItem], using: Collection[UsingColumns], start: int = 0
) -> tuple[tuple[Visible, ...], tuple[UsingPair, ...]]:
    """Return what the ON of each source's join sees, what all see, and the pairs that USING and NATURAL make.

    Of the sources from the one with the number ``start`` on.

    As in Spark, the columns of a USING come first, once, taken from the left side, in a RIGHT JOIN from the
    right one and in a FULL JOIN from that which is not NULL, and a join binds closer than a comma. Raises
    WJ107, WJ202 and WJ203.
    """
    columns = _Columns(text, sources, using)
    whole = columns.joined(start, len(sources))
    merged = tuple(columns.merged.values())
    seen = (columns.seen[each.number] for each in sources[start:])
    return tuple(Visible(tuple(each), merged) for each in (*seen, whole)), tuple(columns.pairs)


@dataclass
class _Columns:
    """The columns of joins: ``seen`` by each ON, ``merged`` and ``pairs`` as in ``visible_columns``."""

    text: str
    sources: Sequence[ScopeItem]
    using: Collection[UsingColumns]
    seen: dict[int, list[StreamColumn]] = field(default_factory=dict)
    pairs: list[UsingPair] = field(default_factory=list)
    merged: dict[tuple[int, str], tuple[StreamColumn, ...]] = field(default_factory=dict)

    def joined(self, start: int, stop: int) -> list[StreamColumn]:
        """Return the columns of the joins of some sources that follow each other, in order."""
        before: list[StreamColumn] = []
        group = list(self.sources[start].columns)
        self.seen.setdefault(start, group)
        place = start + 1
        while place < stop:
            source = self.sources[place]
            right = self.joined(place, place + source.item.joined)
            if comma_between(self.text, self.sources[place - 1], source):
                before, group = before + group, []
            group = self._together(source, group, right)
            self.seen[place] = before + group
            if source.item.kind.one_sided:
                group = [each for each in group if each not in right]
            place += source.item.joined
        return before + group

    def _together(
        self, source: ScopeItem, left: Sequence[StreamColumn], right: Sequence[StreamColumn]
    ) -> list[StreamColumn]:
        """Return the columns of two sides of the join that a source begins the right one of."""
        shared, lost = [], []
        for name, natural in _shared_names(source, left, right, self.using):
            second = self._of_right(source, name, right, natural=natural)
            first = _of_name(name, natural, left, self.sources, "no stream before the join has a column")
            if second.identity in self.merged:
                both = listed([self.sources[each.stream].name for each in self.merged[second.identity]])
                message = f"a column that a FULL JOIN takes from {both} is compared by another join"
                raise WJoinError("WJ107", message, span=name.span, help="compare one of them in ON")
            parts = self.merged.get(first.identity, (first,))
            self.pairs.append(UsingPair(parts, second, name.span, natural, source.number))
            lost += [first, second]
            shared.append(second if source.item.kind is JoinKind.RIGHT else first)
            if source.item.kind is JoinKind.FULL:
                self.merged[first.identity] = (*parts, second)
        return [*shared, *(each for each in (*left, *right) if each not in lost)]

    def _of_right(
        self, source: ScopeItem, name: Identifier, right: Sequence[StreamColumn], *, natural: bool
    ) -> StreamColumn:
        if source.item.joined == 1:
            return StreamColumn(source.number, find_column(source, name))
        return _of_name(name, natural, right, self.sources, "no stream of the right side has a column")


def _shared_names(
    source: ScopeItem,
    left: Sequence[StreamColumn],
    right: Sequence[StreamColumn],
    using: Collection[UsingColumns],
) -> Iterator[tuple[Identifier, bool]]:
    """Yield the names of columns that the join of a source makes equal, and whether by NATURAL."""
    for clause in using:
        if clause.right == source.number:
            if clause.columns is not None:
                yield from ((name, False) for name in clause.columns)
                continue
            known = {each.column.name.lower() for each in right}
            for name in dict.fromkeys(each.column.name for each in left):
                if name.lower() in known:
                    yield Identifier(name, span=clause.span), True


def comma_between(text: str, first: ScopeItem, second: ScopeItem) -> bool:
    """Return whether a comma stands between two items of FROM that follow each other."""
    depth = 0
    for token in scan(text[first.item.span.end : second.item.span.start]):
        depth += (token.text == "(") - (token.text == ")")
        # What parentheses before the first item have opened may close between them.
        if token.text == "," and depth <= 0:
            return True
    return False


def _of_name(
    name: Identifier,
    natural: bool,
    visible: Sequence[StreamColumn],
    sources: Sequence[ScopeItem],
    unknown: str,
) -> StreamColumn:
    found = [each for each in visible if name.matches(each.column.name)]
    if len(found) == 1:
        return found[0]
    if found:
        owners = [sources[each.stream].name for each in found]
        message = f"the column {name.name} of {'NATURAL JOIN' if natural else 'USING'} is in {listed(owners)}"
        raise WJoinError("WJ203", message, span=name.span, help="write the join condition with ON")
    near = nearest(name.name, [each.column.name for each in visible])
    help = f"did you mean {near}?" if near else ""
    raise WJoinError("WJ202", f"{unknown} {name.name}", span=name.span, help=help)
