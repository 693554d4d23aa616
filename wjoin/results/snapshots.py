"""Sinks in the FROM of a statement: what they have committed, as of a time."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.result_reads import ResultRead, find_reads
from wjoin.grammar.tokens import first_word
from wjoin.planner.plan.block_columns import quoted
from wjoin.results.commit_log import CommitLog
from wjoin.results.commits import Commit, Results, path_of
from wjoin.sources.catalog import Catalog, SinkDeclaration, find
from wjoin.sources.format_options import FILE_FORMATS, own_option, without
from wjoin.sources.late_rows import LATE_FOR, in_folder
from wjoin.sources.record_formats import writing_options
from wjoin.spark.process import resolved
from wjoin.spark.spark_failures import RAISED_BY_SPARK, first_line

_KNOW_COLUMNS = frozenset({"parquet", "orc", "avro"})
"""Formats whose files say which columns they have."""

_GLOB = re.compile(r"([\[\]{}*?\\])")
"""Signs that Spark reads as a pattern in a path."""

Run = Callable[..., DataFrame]


def reading(spark: SparkSession, catalog: Catalog, run: Run) -> Run:
    """Return what runs a statement of Spark's with ``run``, and reads sinks where it names them.

    It raises what ``result_rows`` raises, and WJoinError WJ602 for a commit time of what is no sink.
    """

    def read(text: str, args: Any = None, **frames: Any) -> DataFrame:
        given = {} if args is None else {"args": args}
        found: dict[str, DataFrame] = {}
        reads = []
        try:
            for each in find_reads(text, catalog.sinks):
                sink = find(catalog.sinks, "sink", each.name.name, each.name.span)
                if each.last is not None or _is_read(spark, sink):
                    times = _times(lambda asked: run(asked, **given), each)
                    found[f"__wjoin_results_{len(found)}"] = result_rows(spark, sink, *times)
                    reads.append(each)
                    _refuse_view(text, each)
        except WJoinError as error:
            raise error.at(error.span or each.span, text) from error.__cause__
        return run(_edited(text, reads, found, bool(frames)) if found else text, **given, **frames, **found)

    return read


def result_rows(
    spark: SparkSession, sink: SinkDeclaration, first: int | None = None, last: int | None = None
) -> DataFrame:
    """Return what a sink has committed from ``first`` to ``last``, in microseconds; None: no bound.

    Raises WJoinError WJ606 for a sink that keeps no commits by time, and WJ622 where some of them are gone.
    """
    found, *others = (_result_rows(spark, each, first, last) for each in _folders(spark, sink))
    for each in others:
        found = found.unionByName(each, allowMissingColumns=True)
    return found


def _folders(spark: SparkSession, sink: SinkDeclaration) -> list[SinkDeclaration]:
    """Return a sink as it is read: one of late rows has a folder for each query."""
    log = CommitLog.of(spark, sink)
    if log is None or log.last >= 0:
        return [sink]
    late = (in_folder(sink, name) for name in log.files.names(log.folder) if name.startswith(f"{LATE_FOR}="))
    begun = [each for each in late if (own := CommitLog.of(spark, each)) is not None and own.last >= 0]
    return begun or [sink]


def _result_rows(
    spark: SparkSession, sink: SinkDeclaration, first: int | None, last: int | None
) -> DataFrame:
    log = CommitLog.of(spark, sink)
    results = None if log is None else log.results()
    if results is None and last is None:
        options = without(writing_options(sink), "path")
        return spark.read.format(sink.provider).options(**options).load(_folder(sink))
    if results is None:
        raise _keeps_none(spark, sink)
    commits = results.selected(first, last)
    if commits is None:
        message = f"results of {sink.name} that were committed then are gone: {_oldest(spark, results)}"
        raise WJoinError("WJ622", message)
    return _snapshot(spark, sink, StructType.fromJson(json.loads(results.kept.schema)), commits)


def _snapshot(
    spark: SparkSession, sink: SinkDeclaration, schema: StructType, commits: Sequence[Commit]
) -> DataFrame:
    files = [_GLOB.sub(r"\\\1", path_of(line)) for commit in commits for line in commit.lines]
    if not files:
        return spark.createDataFrame([], schema)
    options = {**without(writing_options(sink), "path", "retention"), "basePath": _folder(sink)}
    rows = spark.read.format(sink.provider).options(**options).schema(schema).load(files)
    return rows.select(*map(quoted, schema.names))


def _is_read(spark: SparkSession, sink: SinkDeclaration) -> bool:
    """Return whether the name of a sink stands for its results: there are some, and no table has the name."""
    if spark.catalog.tableExists(quoted(sink.name)):
        return False
    logs = (CommitLog.of(spark, each) for each in _folders(spark, sink))
    known = sink.provider.lower() in _KNOW_COLUMNS
    return any(log is not None and (log.kept is not None or (known and log.last >= 0)) for log in logs)


def _folder(sink: SinkDeclaration) -> str:
    return resolved(own_option(sink.options, "path") or "").rstrip("/")


def _keeps_none(spark: SparkSession, sink: SinkDeclaration) -> WJoinError:
    message = f"the sink {sink.name} does not keep its results by the time of their commit"
    if not hasattr(spark, "_jsparkSession"):
        message = f"a session of Spark Connect cannot read {sink.name} by the time of commits"
        return WJoinError("WJ606", message, help="run it where Spark's driver runs")
    remedy = "declare it with RETAIN, and start its query again: CREATE OR REPLACE SINK … RETAIN 1 DAY"
    if sink.provider.lower() not in FILE_FORMATS:
        remedy = f"only a sink of files does; {sink.provider} may have time travel of its own"
    return WJoinError("WJ606", message, help=remedy)


def _refuse_view(text: str, each: ResultRead) -> None:
    """Refuse a view over a sink, of which Spark would keep the text."""
    if first_word(text) == "CREATE" and "VIEW" in text[: each.span.start].upper().split()[:6]:
        message = f"a view cannot read the sink {each.name.name}"
        raise WJoinError("WJ606", message, help="read the sink in the statement that reads the view")


def _oldest(spark: SparkSession, results: Results) -> str:
    """Return since when results are kept, in the session's time zone."""
    oldest = next((each.at for each in results.retained if each.whole), None)
    if oldest is None:
        return "none is kept yet whose time is known"
    time = f"date_format(timestamp_millis({oldest}), 'yyyy-MM-dd HH:mm:ss.SSS')"
    return f"the oldest that it keeps are of {spark.range(1).selectExpr(time).collect()[0][0]}"


def _times(run: Run, each: ResultRead) -> tuple[int | None, int | None]:
    """Return the commit times that are asked for, in microseconds; Spark reads them in its time zone.

    Raises WJoinError WJ106 for what is no time.
    """
    told = [time for time in (each.first, each.last) if time is not None]
    if not told:
        return None, None
    listed = ", ".join(f"unix_micros(CAST({time} AS TIMESTAMP))" for time in told)
    remedy = "write TIMESTAMP '2026-01-31 12:00:00', in the session's time zone"
    try:
        *first, last = run(f"SELECT {listed}").first() or (None,)
    except RAISED_BY_SPARK as error:
        message = f"a commit time cannot be read: {first_line(error)}"
        raise WJoinError("WJ106", message, help=remedy) from error
    if last is None or None in first:
        raise WJoinError("WJ106", "a commit time is NULL", help=remedy)
    return (first[0] if first else None), last


def _edited(text: str, reads: Sequence[ResultRead], names: Iterable[str], formatted: bool) -> str:
    """Return a statement with a name in braces in the place of each sink, for Spark to fill in.

    ``formatted``: it has such names already; else its braces are its own.
    """

    def own(piece: str) -> str:
        return piece if formatted else piece.replace("{", "{{").replace("}", "}}")

    pieces, done = [], 0
    for each, name in zip(reads, names, strict=True):
        alias = "" if each.aliased else f" AS {own(quoted(each.name.name))}"
        pieces += [own(text[done : each.span.start]), f"{{{name}}}", alias]
        done = each.span.end
    return "".join([*pieces, own(text[done:])])
