"""Clauses and statements back to text, for tests: reading what is printed gives the same nodes."""

from wjoin.grammar import statement_kinds, syntax
from wjoin.grammar.printer import print_declaration, print_duration, print_name, print_string

Declaration = (
    statement_kinds.CreateStream
    | statement_kinds.CreateSink
    | statement_kinds.DropStream
    | statement_kinds.DescribeStream
    | statement_kinds.ShowStreams
    | statement_kinds.ShowCreateStream
    | statement_kinds.ShowSinks
    | statement_kinds.ShowPredicates
    | statement_kinds.ShowQueries
    | statement_kinds.DescribeQuery
    | statement_kinds.StopQuery
    | statement_kinds.DescribeSink
    | statement_kinds.DropSink
    | statement_kinds.ShowCreateSink
    | statement_kinds.AlterStream
    | statement_kinds.AnalyzeStream
    | statement_kinds.SetOption
)


def print_condition(condition: syntax.WindowCondition) -> str:
    """Return a window condition as a clause."""
    match condition:
        case syntax.WindowAll(width):
            return f"WINDOW = {print_duration(width)}"
        case syntax.WindowPair(first, second, width, directed):
            word = "DWINDOW" if directed else "WINDOW"
            return f"{word} ({_listed((first, second))}) = {print_duration(width)}"
        case syntax.WindowBetween(first, second, low, high):
            bounds = f"{print_duration(low)} AND {print_duration(high)}"
            return f"WINDOW ({_listed((first, second))}) BETWEEN {bounds}"
        case syntax.WindowStream(stream, width):
            return f"WINDOW {print_name(stream.name)} = {print_duration(width)}"
        case syntax.WindowRows(stream, rows, per):
            return f"WINDOW {print_name(stream.name)} = {rows} ROWS{per.clause}"
        case syntax.WindowSince(stream, condition):
            return f"WINDOW {print_name(stream.name)} SINCE ({condition})"
        case syntax.WindowPath(streams, widths, bidirectional, absent):
            ends = [each.width for each in absent if each.width is not None]
            steps = ", ".join(map(print_duration, (*widths, *ends)))
            names = []
            for place, stream in enumerate(streams):
                names.append(print_name(stream.name))
                names += [f"NOT {print_name(each.stream.name)}" for each in absent if each.after == place]
            both = " BIDIRECTIONAL" if bidirectional else ""
            return f"PATH ({', '.join(names)}) WITHIN ({steps}){both}"
        case syntax.WindowAnd(terms):
            return " AND ".join(_term(term, (syntax.WindowAnd, syntax.WindowOr)) for term in terms)
        case syntax.WindowOr(terms):
            return " OR ".join(_term(term, (syntax.WindowOr,)) for term in terms)


def _term(term: syntax.WindowCondition, grouped: tuple[type, ...]) -> str:
    text = print_condition(term)
    return f"({text})" if isinstance(term, grouped) else text


def _listed(names: tuple[syntax.Identifier, ...]) -> str:
    return ", ".join(print_name(name.name) for name in names)


def print_statement(statement: Declaration) -> str:
    """Return a declaration as a statement."""
    match statement:
        case statement_kinds.CreateStream() | statement_kinds.CreateSink():
            return print_declaration(statement)
        case statement_kinds.DropStream(if_exists, name):
            return f"DROP STREAM {'IF EXISTS ' if if_exists else ''}{print_name(name.name)}"
        case statement_kinds.DescribeStream(name):
            return f"DESCRIBE STREAM {print_name(name.name)}"
        case statement_kinds.ShowStreams():
            return "SHOW STREAMS"
        case statement_kinds.ShowCreateStream(name):
            return f"SHOW CREATE STREAM {print_name(name.name)}"
        case statement_kinds.ShowSinks():
            return "SHOW SINKS"
        case statement_kinds.ShowPredicates():
            return "SHOW PREDICATES"
        case statement_kinds.ShowQueries():
            return "SHOW QUERIES"
        case statement_kinds.DescribeQuery(name):
            return f"DESCRIBE QUERY {print_name(name.name)}"
        case statement_kinds.StopQuery(name):
            return f"STOP QUERY {print_name(name.name)}"
        case statement_kinds.DescribeSink(name):
            return f"DESCRIBE SINK {print_name(name.name)}"
        case statement_kinds.DropSink(if_exists, name):
            return f"DROP SINK {'IF EXISTS ' if if_exists else ''}{print_name(name.name)}"
        case statement_kinds.ShowCreateSink(name):
            return f"SHOW CREATE SINK {print_name(name.name)}"
        case statement_kinds.AlterStream(name, None):
            return f"ALTER STREAM {print_name(name.name)} RESET STATISTICS"
        case statement_kinds.AlterStream(name, statistics):
            entries = ", ".join(map(print_statistic, statistics or ()))
            return f"ALTER STREAM {print_name(name.name)} SET STATISTICS ({entries})"
        case statement_kinds.AnalyzeStream(name, sample):
            rows = "" if sample is None else f" SAMPLE {sample} ROWS"
            return f"ANALYZE STREAM {print_name(name.name)}{rows}"
        case statement_kinds.SetOption(key, value):
            return f"SET {key} = {print_string(value)}"


def print_statistic(entry: statement_kinds.StatisticEntry) -> str:
    """Return a statistic as ALTER STREAM takes it."""
    key = ".".join((entry.name, *(print_name(part.name) for part in entry.column)))
    value = entry.value
    return f"{key} = {_number(value) if isinstance(value, float) else print_duration(value)}"


def _number(value: float) -> str:
    """Return the shortest exact spelling of a number, for example ``1000`` or ``0.1``."""
    return repr(value).removesuffix(".0")
