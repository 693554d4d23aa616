"""Errors of the language: stable code, place in the statement, remedy."""

import unicodedata
from dataclasses import dataclass
from typing import Any, Self

from wjoin.grammar.shown import redacted, redacted_at, shown, shown_lines
from wjoin.grammar.spans import Span, line_and_column


@dataclass(frozen=True)
class ErrorCode:
    """One entry of the catalogue: what the code means and how it is mended."""

    code: str
    title: str
    remedy: str


_START_ANEW = "start from a new checkpoint folder, and a new folder for the results"

_ENTRIES = (
    # 1xx: the text
    ErrorCode("WJ101", "the window clause cannot be read", "compare it with the forms in docs/language.md"),
    ErrorCode("WJ102", "a duration has no unit", "write a unit, for example 5 SECONDS"),
    ErrorCode("WJ103", "a duration cannot be read", "write a number and a unit, for example 1.5 HOURS"),
    ErrorCode("WJ104", "a SELECT has more than one window clause", "join the clauses with AND"),
    ErrorCode("WJ105", "a window clause is outside a SELECT … FROM", "put it after FROM or after WHERE"),
    ErrorCode("WJ106", "a declaration cannot be read", "compare it with docs/language.md, section Streams"),
    ErrorCode(
        "WJ107",
        "a kind of join is not supported with a window clause",
        "list the streams with commas or use JOIN … ON",
    ),
    ErrorCode(
        "WJ108", "a FROM item cannot be read as a stream", "use a table, a view or a subquery with an alias"
    ),
    ErrorCode("WJ109", "a path has the wrong number of widths", "give one width fewer than streams"),
    ErrorCode(
        "WJ110",
        "a window is negative or empty",
        "give a width of zero or more, and a lower bound not above the upper",
    ),
    ErrorCode("WJ111", "a string, quoted name, comment or parenthesis is not closed", "close it"),
    ErrorCode("WJ112", "a hint cannot be read", "see docs/language.md, section Hints"),
    ErrorCode(
        "WJ113",
        "a statistic is unknown, given twice, or has an invalid value",
        "see docs/language.md, section Statistics",
    ),
    ErrorCode(
        "WJ114",
        "an expression is nested too deeply: more than 100 parentheses, CASE or NOT",
        "flatten it, or compute a part in a subquery; a chain of AND, OR or + can have any length",
    ),
    # 2xx: names and expressions
    ErrorCode("WJ201", "a stream name is not in FROM", "use an alias of the FROM list"),
    ErrorCode("WJ202", "a column is not in the stream", "check the spelling"),
    ErrorCode("WJ203", "a column name is ambiguous", "put the stream's alias before it"),
    ErrorCode("WJ204", "two FROM items have the same name", "give each its own alias"),
    ErrorCode("WJ205", "a relation has no event-time column", "declare one with WATERMARK … DELAY OF …"),
    ErrorCode(
        "WJ206",
        "a relation has several columns that may be event time",
        "name one with WATERMARK … DELAY OF …",
    ),
    ErrorCode(
        "WJ207",
        "the event-time column has a type that is not a time",
        "use TIMESTAMP, TIMESTAMP_NTZ or an integral column",
    ),
    ErrorCode(
        "WJ208",
        "the streams have different kinds of event time",
        "declare both with one type (docs/event-time.md), or cast one of them in a subquery",
    ),
    ErrorCode("WJ209", "a join has one stream only", "name two or more streams in FROM"),
    ErrorCode("WJ210", "the SELECT cannot be read", "check the expression at the mark"),
    ErrorCode("WJ211", "key columns have types that cannot be compared", "cast one side"),
    ErrorCode("WJ212", "a parameter has no value", "pass it to sql() or with --param"),
    ErrorCode(
        "WJ213",
        "a match function is used outside a window join",
        "use it in the SELECT that has the window clause",
    ),
    ErrorCode("WJ214", "a relation is unknown", "check the spelling, or create it first"),
    ErrorCode(
        "WJ215",
        "the delay of a relation is unknown",
        "declare it in FROM: … WATERMARK column DELAY OF INTERVAL n SECONDS AS alias",
    ),
    ErrorCode(
        "WJ216",
        "a column of a stream cannot be computed",
        "use Spark functions over columns of the source; a computed column cannot read another one",
    ),
    ErrorCode(
        "WJ217",
        "a predicate is called with the wrong number of arguments, or its result is not a condition",
        "SHOW PREDICATES lists the arguments of each predicate",
    ),
    ErrorCode(
        "WJ218",
        "a column of a stream has a type that cannot be joined",
        "cast it in a subquery, or leave it out",
    ),
    ErrorCode(
        "WJ220",
        "duplicates of a stream cannot be dropped",
        "declare its event time, a TIMESTAMP, and the delay: WATERMARK column DELAY OF INTERVAL n SECONDS",
    ),
    ErrorCode(
        "WJ221",
        "no condition joins a table without event time to the streams",
        "add an equality, such as A.id = T.id, or write CROSS JOIN",
    ),
    ErrorCode("WJ222", "a LATERAL VIEW does not name its columns", "write AS and a name for each column"),
    # 3xx: the window graph
    ErrorCode("WJ301", "the windows do not connect all streams", "add a window between the parts"),
    ErrorCode("WJ302", "the windows contradict each other", "widen one window of the cycle"),
    ErrorCode("WJ303", "a window joins a stream to itself", "name two different streams"),
    ErrorCode(
        "WJ304",
        "a bare number is used on a timestamp",
        "write a unit: microseconds, milliseconds, seconds, minutes, hours, days or weeks",
    ),
    ErrorCode(
        "WJ305",
        "a duration with a unit is used on an integral event time",
        "write a bare number in the column's own unit",
    ),
    ErrorCode("WJ306", "the window condition has too many alternatives", "write it with fewer ORs"),
    # 5xx: not available, or not here
    ErrorCode("WJ501", "ROWS windows are not available yet", "use a window of time"),
    ErrorCode("WJ503", "an EXPLAIN mode is not available", "use EXPLAIN COST, ANALYZE or FORMATTED"),
    ErrorCode("WJ504", "a hint or setting cannot apply to this statement", "see the reason in the message"),
    # 6xx: the session
    ErrorCode("WJ601", "a stream, sink or view exists already", "use OR REPLACE, or another name"),
    ErrorCode("WJ602", "a stream, sink or query is unknown", "create it first, or check the spelling"),
    ErrorCode("WJ603", "a setting is unknown or has a bad value", "see docs/language.md, section Settings"),
    ErrorCode("WJ604", "a stream cannot be opened", "check its format, options and columns"),
    ErrorCode(
        "WJ605",
        "the Spark session lacks a setting that wjoin needs",
        "build it with wjoin.configure(builder), or set the value",
    ),
    ErrorCode("WJ606", "the statement cannot run here", "see the message"),
    ErrorCode("WJ607", "Spark refused the statement", "see Spark's message"),
    ErrorCode("WJ608", "a file cannot be read", "check the path"),
    ErrorCode(
        "WJ609",
        "the sink's folder holds the output of another query",
        "write to a new folder, or continue with the checkpoint of that query",
    ),
    ErrorCode("WJ610", "the costs of this machine cannot be read", "run wjoin calibrate again"),
    ErrorCode(
        "WJ611",
        "the sink's folder is missing, but the checkpoint of its query exists",
        "restore the folder, or delete the checkpoint as well to write everything again",
    ),
    ErrorCode("WJ612", "a stream cannot be inserted into", "create a sink, and insert into that"),
    ErrorCode("WJ613", "rows for a sink have two columns of the same name", "rename one of them with AS"),
    ErrorCode("WJ614", "the class archive cannot be written", "see the message"),
    ErrorCode(
        "WJ615",
        "a Spark that Python did not start (spark-sql, JDBC, Scala) finds no Python with wjoin",
        "set spark.wjoin.python to a Python that has the jar's version of wjoin",
    ),
    ErrorCode(
        "WJ616",
        "Spark's Kafka or Avro package is not on the class path",
        "start Spark with spark.jars.packages, see docs/kafka.md",
    ),
    ErrorCode(
        "WJ617",
        "no Kafka broker answers, or a topic does not exist",
        "check kafka.bootstrap.servers, the brokers' listeners and the topic name",
    ),
    ErrorCode(
        "WJ618",
        "the live page cannot be served",
        "give an address of this machine and a free port, such as 127.0.0.1:4950",
    ),
    ErrorCode(
        "WJ619",
        "a wjoin.toml cannot be read, or has an unknown entry",
        "its tables are [settings], [parameters] and [profiles.NAME.…], see docs/running.md",
    ),
    ErrorCode("WJ620", "wjoin.toml has no such profile", "see docs/running.md, section Profiles"),
    ErrorCode(
        "WJ621",
        "a SELECT over streams never ends, so not all of its rows can be fetched",
        "start a query that writes them: INSERT INTO a sink, or writeStream",
    ),
    # 7xx: while running
    ErrorCode(
        "WJ701",
        "the checkpoint was written with another state format",
        _START_ANEW,
    ),
    ErrorCode(
        "WJ702",
        "the checkpoint belongs to another statement",
        _START_ANEW,
    ),
    ErrorCode(
        "WJ703",
        "the checkpoint was written with another number of workers",
        "set spark.sql.shuffle.partitions to the number in the message, or rewrite the checkpoint: "
        "wjoin checkpoint repartition",
    ),
    ErrorCode("WJ704", "a statement failed while it ran", "see Spark's message"),
    ErrorCode(
        "WJ705",
        "the rows of a micro-batch fit neither into memory nor onto local disk",
        "point spark.local.dir at a disk with more room, or let the source read less per micro-batch",
    ),
    ErrorCode(
        "WJ706",
        "a predicate failed for a pair of rows",
        "fix the function, or filter such rows out before it",
    ),
    ErrorCode(
        "WJ707",
        "a predicate returned an invalid result",
        "return one value per pair: booleans, or numbers if it is declared with returns='double'",
    ),
    ErrorCode(
        "WJ708",
        "a checkpoint ends inside a micro-batch, or its query is running",
        "start the query once more as it was (wjoin run … --once), let it finish, and try again",
    ),
    ErrorCode("WJ709", "the folder for a new checkpoint exists already", "name a folder that does not exist"),
    ErrorCode(
        "WJ710",
        "there is no checkpoint to repartition",
        "give the folder that --checkpoint names, and the script of its queries",
    ),
    ErrorCode(
        "WJ711",
        "a checkpoint has state that cannot be repartitioned",
        "keep its number of partitions, or start from a new checkpoint folder",
    ),
    ErrorCode(
        "WJ712",
        "a record cannot be read, and its stream has the mode FAILFAST",
        "fix the record, or choose another mode: docs/kafka.md, section Broken records",
    ),
    ErrorCode(
        "WJ713",
        "a site cannot be reached, or refused a request",
        "check that it runs (wjoin site status), then start the query again: it resumes from its checkpoint",
    ),
    ErrorCode(
        "WJ714",
        "a row left its site's window before the query asked for it",
        "let the site keep rows longer: window in its configuration, see docs/sites.md",
    ),
    ErrorCode(
        "WJ715",
        "a site is not the one that the checkpoint has read, or its columns have changed",
        _START_ANEW,
    ),
    ErrorCode(
        "WJ716",
        "the log of a sink's folder, _spark_metadata, has missing or unreadable entries",
        "restore the file from a copy; without it nobody can tell which files these micro-batches wrote: "
        "write the results again, with a new checkpoint folder and a new folder",
    ),
    ErrorCode(
        "WJ717",
        "a query did not start: the machine was too busy to start a Python worker in Spark's ten seconds",
        "start it again when the machine is less busy: it resumes from its checkpoint",
    ),
    # 8xx: warnings
    ErrorCode(
        "WJ801",
        "a stream has no declared delay, so every row out of order may be late",
        "declare one: WATERMARK column DELAY OF INTERVAL n SECONDS",
    ),
    ErrorCode(
        "WJ802", "streams are joined without a window clause", "add one, for example WINDOW = 10 SECONDS"
    ),
    ErrorCode(
        "WJ803",
        "late rows were dropped",
        "declare a longer delay: a row is late when it is older than its stream's watermark",
    ),
    ErrorCode(
        "WJ804",
        "rows without an event time were dropped",
        "see docs/broken-records.md: the records are broken, or their time cannot be read",
    ),
    ErrorCode(
        "WJ805",
        "Spark's own operators dropped rows",
        "give their watermarks a longer delay; PLAN(MULTIWAY) has one watermark per stream",
    ),
    ErrorCode(
        "WJ806",
        "no row of a stream could be joined",
        "compare its column names (in CSV: their order) with the source; columns that do not match are NULL",
    ),
    ErrorCode(
        "WJ807",
        "rows too far in the future were dropped, because they would make all later rows late",
        "fix the source, or the unit of its numbers (docs/event-time.md); the stream's option wjoin.ahead "
        "sets how far ahead of the clock a row may be",
    ),
    ErrorCode(
        "WJ809",
        "unreadable records were dropped (mode DROPMALFORMED)",
        "to look at them, see docs/kafka.md, section Broken records",
    ),
    ErrorCode(
        "WJ810",
        "Kafka records were gone before they were read, and failOnDataLoss is false",
        "keep them longer: the topic's retention.ms must cover the longest pause of the query",
    ),
    ErrorCode(
        "WJ811",
        "a stream uses another event time than its site, so the site keeps all its rows while the query runs",
        "use the site's event time (docs/sites.md, section What is kept), or limit its disk with max_bytes",
    ),
    ErrorCode(
        "WJ812",
        "a Spark session that Python did not start has ended, and its queries with it",
        "run the statements again: they resume from their checkpoints; or run a script with wjoin run",
    ),
    ErrorCode(
        "WJ813",
        "a query has read everything there is, and some of its groups wait for later rows",
        "they come once all streams have passed them: run it again on its checkpoint, with more rows",
    ),
    ErrorCode(
        "WJ814",
        "a query is started again, because no Python worker started within Spark's ten seconds",
        "nothing is lost; if it happens often, start fewer queries at a time",
    ),
    ErrorCode(
        "WJ815",
        "the link of a site is too slow: rows arrive faster than it sends them",
        "read fewer columns, filter or join on values that few rows share, or use a faster link",
    ),
    # 9xx: sites
    ErrorCode(
        "WJ901",
        "an entry of a site's configuration is unknown, missing or wrong",
        "see docs/sites.md, section Configuration",
    ),
    ErrorCode(
        "WJ902",
        "a site would be open to everybody, or its token or certificate is unusable",
        "create a token and a certificate: wjoin site init FOLDER --listen HOST:PORT; or listen at 127.0.0.1",
    ),
    ErrorCode("WJ903", "a site cannot be set up or served", "see the message"),
    ErrorCode(
        "WJ904",
        "columns of a site's stream cannot be read, or have a type that Spark cannot read",
        "declare them in the stream's schema: id BIGINT, at TIMESTAMP, name STRING",
    ),
    ErrorCode(
        "WJ905",
        "a package that a site's source needs is not installed",
        "pip install 'wjoin[site-kafka]'",
    ),
    ErrorCode(
        "WJ906",
        "another site uses the data folder",
        "stop it, or give this site a data folder of its own",
    ),
)

CATALOGUE = {entry.code: entry for entry in _ENTRIES}


class _Diagnostic(Exception):  # noqa: N818 (an error or a warning)
    """What an error and a warning have in common: code, message, place and remedy.

    ``text`` is the whole source, ``span`` the marked piece of it (both may be absent where
    there is no place in a text). ``help`` is the remedy for this very case; the
    catalogue's general remedy stands in where it is empty.
    """

    severity = "error"

    def __init__(
        self,
        code: str,
        message: str,
        *,
        span: Span | None = None,
        text: str | None = None,
        help: str | None = None,
        source_name: str = "<sql>",
    ) -> None:
        self.code = CATALOGUE[code].code
        self.message = message
        self.span = span
        self.text = text
        self.help = help or CATALOGUE[code].remedy
        self.source_name = source_name
        super().__init__(self.render())

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.code, self.message, self._place())

    def _place(self) -> dict[str, Any]:
        return {"span": self.span, "text": self.text, "help": self.help, "source_name": self.source_name}

    def within(self, text: str, source_name: str | None = None) -> Self:
        """Return the same placed in ``text``, which its span indexes."""
        place = {**self._place(), "text": text, "source_name": source_name or self.source_name}
        return type(self)(self.code, self.message, **place)

    def at(self, span: Span, text: str, source_name: str | None = None) -> Self:
        """Return the same at a place of ``text``."""
        placed = type(self)(self.code, self.message, span=span, help=self.help)
        return placed.within(text, source_name or self.source_name)

    def render(self) -> str:
        """Return what the command line prints, with the marked line and a caret."""
        lines = [f"{self.severity}[{self.code}]: {shown(redacted(self.message))}"]
        if self.span is not None and self.text is not None:
            text, span = redacted_at(self.text, self.span)
            line, column = line_and_column(text, span.start)
            whole = text.split("\n")[line - 1].rstrip("\r")
            width = max(1, min(span.end, span.start + len(whole) - column + 1) - span.start)
            before, marked = shown_lines(whole[: column - 1]), shown_lines(whole[column - 1 :][:width])
            gutter = " " * len(str(line))
            lines += [
                f"{gutter}--> {shown(self.source_name)}:{line}:{column}",
                f"{gutter} |",
                f"{line} | {before}{marked}{shown_lines(whole[column - 1 + width :])}",
                f"{gutter} | {_blank(before)}{'^' * _cells(marked or ' ')}",
            ]
        lines.append(f"help: {shown(redacted(self.help))}")
        return "\n".join(lines)


def _cells(text: str) -> int:
    """Return how many places of a terminal a text takes: signs of Chinese, Japanese and Korean take two."""
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return len(text) + wide - sum(unicodedata.combining(sign) > 0 for sign in text)


def _blank(text: str) -> str:
    """Return what leaves a text's room free, tabs as they are."""
    return "".join("\t" if sign == "\t" else " " * _cells(sign) for sign in text)


class WJoinError(_Diagnostic):
    """A statement or session error with a stable code."""


class WJoinWarning(_Diagnostic, UserWarning):
    """Something that costs rows or memory in a statement that runs nevertheless, with a stable code.

    It reaches users by Python's ``warnings``; the command line prints it to standard error.
    """

    severity = "warning"


def _rebuild(kind: type[_Diagnostic], code: str, message: str, place: dict[str, Any]) -> _Diagnostic:
    return kind(code, message, **place)
