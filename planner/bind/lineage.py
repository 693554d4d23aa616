"""Which columns of a query are, untouched, the event time of a declared stream: only these have its delay.

What it cannot prove it denies: an expression, a union, an aggregate or a join of streams leaves no column
of which the delay is known.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.tokens import Kind, Token, is_name, names_in, scan, string_value
from wjoin.planner.catalog import Delay, Delays
from wjoin.planner.text.edits import Edit, apply_edits
from wjoin.planner.text.trees import parse
from wjoin.planner.windows.proposals import proposed_window

_SESSION = (["session"], ["system", "session"])
"""Qualifiers of what lives in the session, as temporary views do."""

_BEFORE_QUERY = frozenset({"ALL", "DISTINCT", "EXCEPT", "INTERSECT", "MINUS", "SETMINUS", "UNION"})

IsStream = Callable[[str], bool]
"""Tells whether a relation, by its name as it stands in the query, streams though nothing declares it."""


@dataclass(frozen=True)
class _Scope:
    declared: Mapping[str, Delays]
    tables: Mapping[str, Delays | None]
    is_stream: IsStream


@dataclass(frozen=True)
class _Source:
    """A relation of a FROM: its name in the query, and the delays of its columns, None for no stream."""

    name: str
    delays: Delays | None
    tree: exp.Expr


def query_delays(query: str, declared: Mapping[str, Delays], is_stream: IsStream) -> Delays | None:
    """Return the delays of a query's columns; None where no declared stream is seen in it.

    ``declared`` has the streams by their names in lower case. Syntax that is not understood here, and a
    view that the session does not know, may hide one: whoever can ask Spark must (``wjoin.joins.delays``).
    """
    tree = _tree(query)
    if tree is None:
        return {} if names_in(query) & declared.keys() else None
    return _query(tree, _Scope(declared, {}, is_stream))


def reads(query: str, declared: Mapping[str, Delays]) -> bool:
    """Return whether a query reads a declared stream."""
    return query_delays(query, declared, lambda _: True) is not None


@dataclass(frozen=True)
class JoinedStreams:
    """The names that streams have in a SELECT, and the window clause that its conditions say, if any."""

    names: tuple[str, ...]
    window: str | None


def joined_streams(query: str, declared: Mapping[str, Delays]) -> list[JoinedStreams]:
    """Return for each SELECT of a query that joins declared streams what it joins."""
    if not names_in(query) & declared.keys():
        return []
    tree = _tree(query)
    if tree is None:
        return []
    found = []
    for select in tree.find_all(exp.Select):
        tables = [each for each in _relations(select) if isinstance(each, exp.Table)]
        scope = _Scope(
            declared, {each.alias.lower(): None for each in tree.find_all(exp.CTE)}, lambda _: False
        )
        delays = {each.alias_or_name: _table(each, scope) for each in tables}
        times = {name: set(each) for name, each in delays.items() if each is not None}
        if len(times) > 1:
            found.append(JoinedStreams(tuple(times), proposed_window(select, times)))
    return found


def session_name(parts: Sequence[str]) -> str | None:
    """Return the name, lower case, that a dotted name has in the session; None where it is a catalog's.

    >>> session_name(["Clicks"]), session_name(["SESSION", "clicks"]), session_name(["default", "clicks"])
    ('clicks', 'clicks', None)
    """
    *qualifier, name = (part.lower() for part in parts)
    return name if not qualifier or qualifier in _SESSION else None


def _tree(query: str) -> exp.Expr | None:
    """Return the tree of a query, None where it cannot be read."""
    try:
        return parse(apply_edits(query, _respelt(query)))
    except (SqlglotError, WJoinError):
        return None


def _respelt(query: str) -> list[Edit]:
    """Return edits that spell TABLE name, STREAM name and IDENTIFIER('name') in words that sqlglot knows."""
    tokens = scan(query)
    edits = []
    for place, token in enumerate(tokens):
        following = tokens[place + 1] if place + 1 < len(tokens) else None
        if following is None or (place and tokens[place - 1].text == "."):
            continue
        before = tokens[place - 1] if place else None
        named = is_name(following) and following.word != "AS"
        if token.word == "TABLE" and named and _may_begin_query(before):
            edits.append(Edit(token.start, token.end, "SELECT * FROM"))
        elif token.word == "STREAM" and named and before is not None and before.word in ("FROM", "JOIN"):
            edits.append(Edit(token.start, token.end, ""))
        elif token.word == "IDENTIFIER" and following.text == "(" and place + 3 < len(tokens):
            name, closing = tokens[place + 2], tokens[place + 3]
            if name.kind is Kind.STRING and closing.text == ")":
                edits.append(Edit(token.start, closing.end, string_value(name.text, name.span)))
    return edits


def _may_begin_query(before: Token | None) -> bool:
    """Return whether a query can begin behind a token."""
    return before is None or before.text in ("(", ")") or before.word in _BEFORE_QUERY


def _query(tree: exp.Expr, scope: _Scope) -> Delays | None:
    scope = _with_tables(tree, scope)
    match tree:
        case exp.Subquery():
            return _query(tree.this, scope)
        case exp.Select():
            return _select(tree, scope)
    return {} if _reads(tree, scope) else None


def _with_tables(tree: exp.Expr, scope: _Scope) -> _Scope:
    """Return the scope with the common tables of a query; each sees those before it."""
    clause = tree.args.get("with_")
    for table in clause.expressions if clause is not None else ():
        delays = _query(table.this, scope)
        if table.args["alias"].args.get("columns") and delays is not None:
            delays = {}
        scope = _Scope(scope.declared, {**scope.tables, table.alias.lower(): delays}, scope.is_stream)
    return scope


def _reads(tree: exp.Expr, scope: _Scope) -> bool:
    """Return whether a declared stream is read anywhere in a tree."""
    return any(_table(table, scope) is not None for table in tree.find_all(exp.Table))


def _table(table: exp.Table, scope: _Scope) -> Delays | None:
    parts = [part.name for part in table.parts]
    name = session_name(parts)
    if name is None:
        return None
    return scope.tables[name] if len(parts) == 1 and name in scope.tables else scope.declared.get(name)


def _select(select: exp.Select, scope: _Scope) -> Delays | None:
    sources = [_source(each, scope) for each in _relations(select)]
    streams = [each for each in sources if each.delays is not None]
    if not streams:
        return {} if _reads(select, scope) else None
    stream = streams[0]
    alone = len(streams) == 1 and not any(_streams(each, scope) for each in sources if each is not stream)
    plain = not any(select.args.get(part) for part in ("group", "having", "laterals", "pivots", "distinct"))
    outside = [each for part, each in _parts(select) if part not in ("from_", "joins", "with_")]
    if not alone or not plain or any(_reads(each, scope) for each in outside):
        return {}
    return _listed(select, stream)


def _relations(select: exp.Select) -> Iterator[exp.Expr]:
    if (clause := select.args.get("from_")) is not None:
        yield clause.this
    for join in select.args.get("joins") or ():
        yield join.this


def _parts(select: exp.Select) -> Iterator[tuple[str, exp.Expr]]:
    for part, value in select.args.items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, exp.Expr):
                yield part, each


def _source(tree: exp.Expr, scope: _Scope) -> _Source:
    delays = _table(tree, scope) if isinstance(tree, exp.Table) else None
    if isinstance(tree, exp.Subquery):
        delays = _query(tree, scope)
    elif not isinstance(tree, exp.Table):
        delays = {} if _reads(tree, scope) else None
    alias = tree.args.get("alias")
    renamed = alias is not None and alias.args.get("columns")
    if delays is not None and (renamed or tree.args.get("pivots") or tree.args.get("joins")):
        delays = {}
    return _Source(tree.alias_or_name.lower(), delays, tree)


def _streams(source: _Source, scope: _Scope) -> bool:
    """Return whether a relation that is no declared stream streams."""
    tables = [source.tree] if isinstance(source.tree, exp.Table) else source.tree.find_all(exp.Table)
    return any(
        table.name.lower() not in scope.tables and scope.is_stream(table.sql(dialect="spark"))
        for each in tables
        for table in [exp.Table(**{part: each.args.get(part) for part in ("this", "db", "catalog")})]
        if table.name or isinstance(table.this, exp.Func)
    )


def _listed(select: exp.Select, stream: _Source) -> Delays:
    """Return the delays of the columns of a select list; a name that stands twice has none."""
    found: dict[str, Delay] = {}
    taken: set[str] = set()
    for item in select.expressions:
        for name, delay in _item(item, stream):
            if name in taken:
                found.pop(name, None)
            elif delay is not None:
                found[name] = delay
            taken.add(name)
    return found


def _item(item: exp.Expr, stream: _Source) -> Iterator[tuple[str, Delay | None]]:
    """Yield the columns of an item of the select list, each with its delay, None where that is not known."""
    delays = stream.delays or {}
    value = item.this if isinstance(item, exp.Alias) else item
    star = value.this if isinstance(value, exp.Column) else value
    if isinstance(star, exp.Star):
        if star.args.get("replace") or star.args.get("rename"):
            return
        if not isinstance(value, exp.Column) or value.table.lower() == stream.name:
            left_out = {each.name.lower() for each in star.args.get("except_") or ()}
            yield from ((name, delay) for name, delay in delays.items() if name not in left_out)
        return
    name = item.alias_or_name.lower()
    if not isinstance(value, exp.Column):
        yield name, None
        return
    parts = [part.name.lower() for part in value.parts]
    if len(parts) > 1 and parts[0] == stream.name and ".".join(parts) not in delays:
        parts = parts[1:]
    yield name, delays.get(".".join(parts))
