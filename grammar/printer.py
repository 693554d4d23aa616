"""Declarations back to text: reading what is printed gives the same nodes."""

import re

from wjoin.grammar import statement_kinds, syntax
from wjoin.grammar.clauses import keywords, split_columns
from wjoin.grammar.durations import spell

_PLAIN = re.compile(r"[^\W\d]\w*", re.ASCII)
_RESERVED = frozenset(
    """
    ALL AND ANTI AS CASE CROSS DISTINCT DISTRIBUTE EXCEPT FROM FULL GROUP HAVING INNER INTERSECT JOIN LATERAL
    LEFT LIMIT MINUS NATURAL NOT OFFSET ON OR ORDER QUALIFY RIGHT SELECT SEMI SORT UNION USING WHERE WITH
    """.split()
)


def print_name(name: str) -> str:
    """Return a name as it is written: plain where that is safe, else in backticks.

    >>> print_name("camera1"), print_name("a b"), print_name("window")
    ('camera1', '`a b`', '`window`')
    """
    if _PLAIN.fullmatch(name) and name.upper() not in _RESERVED | keywords():
        return name
    return "`" + name.replace("`", "``") + "`"


def print_duration(duration: syntax.Duration) -> str:
    """Return a duration as it is written, in the largest unit that divides it."""
    match duration:
        case syntax.TimeDuration(value):
            return spell(value)
        case syntax.BareNumber(value):
            return str(value)
        case syntax.Parameter(name, negative):
            return f"{'-' if negative else ''}:{name}"


def _names(names: tuple[syntax.Identifier, ...]) -> str:
    return ", ".join(print_name(name.name) for name in names)


def print_watermark(watermark: syntax.Watermark) -> str:
    """Return a watermark clause in Spark's words."""
    delay = "" if watermark.delay is None else f" DELAY OF {print_duration(watermark.delay)}"
    return f"WATERMARK {print_name(watermark.column.name)}{delay}"


def print_declaration(statement: statement_kinds.CreateStream | statement_kinds.CreateSink) -> str:
    """Return a declaration as a statement."""
    match statement:
        case statement_kinds.CreateStream():
            columns = _columns(statement)
            mark = "" if statement.watermark is None else f" {print_watermark(statement.watermark)}"
            once = f" DROP DUPLICATES ON ({_names(statement.unique)})" if statement.unique else ""
            idle = f" IDLE AFTER {print_duration(statement.idle_after)}" if statement.idle_after else ""
            late = (
                ""
                if statement.late_rows is None
                else f" LATE ROWS INTO {print_name(statement.late_rows.name)}"
            )
            home = "" if statement.home is None else f" HOME BY {print_name(statement.home.name)}"
            source = f"{_source(statement)}{_format(statement)}"
            return f"{_head('STREAM', statement)}{columns}{source}{mark}{idle}{once}{late}{home}"
        case statement_kinds.CreateSink():
            folders = statement.partitioned_by
            partitioned = f" PARTITIONED BY ({_names(folders)})" if folders else ""
            key = "" if statement.key is None else f" KEY ({print_name(statement.key.name)})"
            source = f"{_source(statement)}{_format(statement)}{key}{partitioned}"
            return f"{_head('SINK', statement)}{source}{_times(statement)}"


def _head(noun: str, statement: statement_kinds.CreateStream | statement_kinds.CreateSink) -> str:
    replaced = "OR REPLACE " if statement.or_replace else ""
    guarded = "IF NOT EXISTS " if statement.if_not_exists else ""
    return f"CREATE {replaced}{noun} {guarded}{print_name(statement.name.name)}"


def _columns(statement: statement_kinds.CreateStream) -> str:
    """Return the column list; each computed column stands in its place among the others."""
    listed = [] if statement.columns is None else split_columns(statement.columns)
    for column in statement.computed:
        listed.insert(column.place, f"{print_name(column.name.name)} AS {column.expression}")
    return f" ({', '.join(listed)})" if listed else ""


def _source(statement: statement_kinds.CreateStream | statement_kinds.CreateSink) -> str:
    site = statement.site if isinstance(statement, statement_kinds.CreateStream) else None
    origin = _site(site) if site is not None else _provider(statement.provider.name)
    pairs = [f"{print_string(key)} {print_string(value)}" for key, value in statement.options]
    pairs += [f"{print_string(key)} {_composed(value)}" for key, value in statement.composed]
    return f" {origin}" + (f" OPTIONS ({', '.join(pairs)})" if pairs else "")


def _composed(value: statement_kinds.Composed) -> str:
    return " || ".join(
        print_string(part) if isinstance(part, str) else f":{part.name}" for part in value.parts
    )


def _provider(name: str) -> str:
    return f"USING {'.'.join(map(print_name, name.split('.')))}"


def _site(site: statement_kinds.AtSite) -> str:
    addresses = [*map(print_string, site.addresses), *(f":{each.name}" for each in site.given)]
    listed = ", ".join(addresses)
    where = f"AT SITE {listed}" if len(addresses) == 1 else f"AT SITES ({listed})"
    return where if site.stream is None else f"{where} STREAM {print_name(site.stream.name)}"


def _format(statement: statement_kinds.CreateStream | statement_kinds.CreateSink) -> str:
    written = statement.record_format
    return "" if written is None else f" FORMAT {written.name.upper()}"


def _times(sink: statement_kinds.CreateSink) -> str:
    """Return how long a sink keeps its results, and how often it commits them."""
    kept = every = ""
    if sink.retain is not None:
        kept = f" RETAIN {print_duration(sink.retain.time)}"
        if sink.retain.grace is not None:
            kept += f" GRACE {print_duration(sink.retain.grace)}"
    if sink.commit_every is not None:
        every = f" COMMIT EVERY {print_duration(sink.commit_every)}"
    if sink.commit_when is not None:
        every = f" COMMIT WHEN {print_name(sink.commit_when.stream.name)} ({sink.commit_when.condition})"
    return f"{kept}{every}"


def print_string(value: str) -> str:
    """Return a string literal of Spark SQL."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
