"""EXECUTE STATEMENT SET: several INSERT INTO that run as one query, with one checkpoint.

Each sink gets the rows of a micro-batch once. One that comes again, as its query was stopped between two
sinks, goes to those that do not have it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from wjoin.context import Asked
from wjoin.executor.spark.operator import PART
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.statement_kinds import InsertInto, StatementSet
from wjoin.grammar.syntax import Identifier
from wjoin.homes.homes import AUTO
from wjoin.joins.changed_joins import begun_with, changed_parts
from wjoin.joins.late_refusals import WITHOUT_LATE_ROWS
from wjoin.joins.set_joins import (
    SetJoin,
    SetStatement,
    all_made,
    joins_of,
    parts_of,
    rows_of,
    run_together,
    without_rows,
)
from wjoin.measured.followed import settle
from wjoin.measured.kept import Kept
from wjoin.queries.running import Running
from wjoin.queries.running_set import RunningSet, ToldWaiting
from wjoin.results.commit_log import last_logged
from wjoin.results.results_keeper import keepers
from wjoin.sources.catalog import SinkDeclaration, find
from wjoin.sources.format_options import own_option
from wjoin.spark.hadoop_files import Files
from wjoin.spark.process import resolved
from wjoin.spark.refused import refused_start
from wjoin.spark.spark_failures import RAISED_BY_SPARK, located
from wjoin.statements.inserts import (
    Starting,
    identity_of,
    insert,
    no_checkpoint,
    prepare,
    started,
    target_sink,
)
from wjoin.statements.late_sinks import late_for, late_rows, tells_late_rows
from wjoin.statements.result_folders import refuse_folder
from wjoin.statements.set_commits import commit_rows, committing, has_commits, refuse_other_commits
from wjoin.statements.set_sinks import SetSinks, folder_name
from wjoin.statements.sink_columns import columns_of, refuse_columns
from wjoin.statements.sinks import rows_for

_AT_ONCE = 8
"""Sinks that are written at once: of a small one the driver's work takes longer than the task."""


@dataclass(frozen=True)
class PlannedSet:
    """A statement set before it runs; ``folder`` is that of its checkpoint, None where it is given none.

    ``changed``: whether it goes on with the state of another set. ``histories``: see ``plan_set``.
    """

    name: str
    statements: tuple[SetStatement, ...]
    parts: tuple[SetJoin, ...]
    written: "WrittenSet"
    folder: str | None
    kept: Kept
    changed: bool = False
    histories: frozenset[str] = frozenset()

    @property
    def written_sinks(self) -> list[SetStatement]:
        """Its statements, and what stands for one where late rows go to a sink."""
        return [each for each, _ in self.written.rows]

    @property
    def sinks(self) -> str:
        """The names of its sinks."""
        return ", ".join(each.sink.name for each in self.statements)


@dataclass(frozen=True)
class WrittenSet:
    """The rows that each statement writes, over a ``shape`` that stands for what the set has ``made``.

    ``commits`` are the numbers of the rows that commit the results of some of their sinks.
    """

    made: DataFrame
    shape: DataFrame
    rows: tuple[tuple[SetStatement, DataFrame], ...]
    commits: Mapping[str, int]

    @classmethod
    def of(
        cls, parts: Sequence[SetJoin], kept: Kept, statements: Sequence[SetStatement], query: str
    ) -> "WrittenSet":
        """Return what the statements of joins write, and late rows of their streams (``late_rows``).

        Raises WJoinError WJ606 for what a set cannot run, and what ``late_rows`` raises.
        """
        asked, numbers = parts[0].rewriting.asked, dict(committing(parts))
        made = all_made(parts, kept, [commit_rows(asked, each, number) for number, each in numbers.items()])
        shape = without_rows(asked.engine.spark, made.schema)
        late = late_rows(asked, parts, shape, query, statements[0].insert)
        found = (
            (statement, rows_for(statement.sink, rows, statement.insert))
            for statement, rows in (*rows_of(parts, shape), *late)
        )
        return cls(made, shape, tuple(found), {each.sink.name: number for number, each in numbers.items()})

    def sinks(
        self, skipped: Mapping[str, int], last: Callable[[SinkDeclaration], int], waiting: str, most: int
    ) -> SetSinks:
        """Return what writes them; by names of sinks, how many micro-batches were not for them.

        ``last`` tells the last number that a sink with COMMIT WHEN has, ``waiting`` and ``most`` where rows
        wait for a sink that fails, and their bytes (``SetSinks``).
        Raises WJoinError WJ606 for a sink that cannot be written a micro-batch at a time.
        """
        sinks = SetSinks(self.shape, _AT_ONCE, waiting, most)
        for statement, rows in self.rows:
            with located(statement.insert.target[-1].span):
                sink = statement.sink
                number = self.commits.get(sink.name)
                ends = None if number is None else (self.shape.filter(F.col(PART) == number), last(sink))
                sinks.add(sink, rows, skipped.get(sink.name.lower(), 0), ends)
        return sinks


def plan_set(
    asked: Asked,
    statement: StatementSet,
    checkpoint: str | None,
    folder: str | None = None,
    histories: frozenset[str] = frozenset(),
    *,
    moving: bool = False,
) -> PlannedSet:
    """Plan a statement set, and compare it with what its checkpoint holds; nothing is written.

    ``folder`` is that of the checkpoint where it is known, ``checkpoint`` the one of all checkpoints.
    ``histories`` are the new sinks, in lower case, that get the results among the rows of the state. Nothing
    is compared where the state is about to move. Raises WJoinError WJ602 for an unknown sink and WJ606 for
    what a set cannot run.
    """
    spark = asked.engine.spark
    if not hasattr(spark, "_jsparkSession"):
        remedy = "run each INSERT INTO by itself"
        raise WJoinError(
            "WJ606", "a statement set cannot run under Spark Connect", span=statement.span, help=remedy
        )
    settle()
    statements = tuple(SetStatement(each, _sink(asked, each)) for each in statement.inserts)
    _refuse_shared_sinks(statements)
    name = set_name(asked, statement)
    directory = checkpoint or asked.settings.get("wjoin.checkpoint")
    if folder is None and directory is not None:
        folder = asked.queries.name_folder(directory, name)
    kept = Kept(spark, folder, AUTO if moving else asked.settings.home(), moving=moving)
    parts = parts_of(asked, statements, kept)
    written = WrittenSet.of(parts, kept, statements, late_for(name, folder))
    planned = PlannedSet(name, statements, parts, written, folder, kept, histories=histories)
    if folder is not None and not moving:
        waiting = _waiting_rows(spark, folder)
        with located(statement.span):
            _refuse_waiting(waiting, _waiting(folder), planned.written_sinks)
            planned = _on_checkpoint(asked, planned, f"the checkpoint {folder} of {name}")
        for each in planned.written_sinks:
            sink, begun, committed = each.sink, kept.begun, kept.committed
            if kept.begun_with is not None:
                begun, committed = kept.begun_with.sink(sink.name) is not None, kept.wrote(sink.name)
            names = waiting.get(folder_name(sink.name), ())
            refuse_other_commits(names, each)
            if sink.commit_when is not None:
                committed = has_commits(names)
            if _has_rows(names):
                # Its folder may be empty as all its rows wait.
                committed = False
            with located(each.insert.target[-1].span):
                refuse_folder(spark, sink, folder, begun=begun, committed=committed)
    return planned


def _on_checkpoint(asked: Asked, planned: PlannedSet, checkpoint: str) -> PlannedSet:
    """Return a set as it goes on with the state of its checkpoint.

    Raises WJoinError WJ701 to WJ703 where it cannot.
    """
    try:
        planned.kept.refuse_other(identity_of(asked.engine.spark, joins_of(planned.parts)), checkpoint)
    except WJoinError as error:
        if error.code != "WJ702":
            raise
        told = checkpoint, error.message
        parts = changed_parts(asked, planned.statements, planned.kept, *told, planned.histories)
        if parts is None:
            raise
        written = WrittenSet.of(
            parts, planned.kept, planned.statements, late_for(planned.name, planned.folder)
        )
        for statement, rows in written.rows:
            with located(statement.insert.target[-1].span):
                refuse_columns(statement.sink, rows, planned.kept)
        return replace(planned, parts=parts, written=written, changed=True)
    return planned


def execute_set(
    asked: Asked,
    statement: StatementSet,
    *,
    once: bool,
    checkpoint: str | None,
    trigger: str | None = None,
    ending: str | None = None,
) -> Running:
    """Start the query of a statement set (see ``inserts.insert``)."""
    planned = plan_set(asked, statement, checkpoint, ending)
    return _started(asked, statement, planned, once=once, trigger=trigger, ending=ending)


def _started(
    asked: Asked,
    statement: StatementSet,
    planned: PlannedSet,
    *,
    once: bool,
    trigger: str | None,
    ending: str | None,
) -> Running:
    if ending is None and planned.kept.ending is not None:
        execute_set(asked, statement, once=True, checkpoint=None, ending=planned.folder).wait()
        planned = plan_set(asked, statement, None, planned.folder)
    every = asked.settings.trigger(trigger or _trigger(planned.statements))
    return start_set(asked, statement, planned, once=once, every=every)


def run_insert(
    asked: Asked,
    statement: InsertInto,
    *,
    once: bool,
    checkpoint: str | None,
    trigger: str | None = None,
    ending: str | None = None,
) -> Running | None:
    """Run an INSERT INTO (see ``inserts.insert``), or start it as a set of one."""
    alone = set_of_one(asked, statement)
    if alone is None:
        return insert(asked, statement, once=once, checkpoint=checkpoint, trigger=trigger, ending=ending)
    planned = plan_alone(asked, alone, checkpoint, ending)
    return _started(asked, alone, planned, once=once, trigger=trigger, ending=ending)


def set_of_one(asked: Asked, statement: InsertInto) -> StatementSet | None:
    """Return an INSERT INTO as a set where it must be one, None for any other.

    That is so of a sink with COMMIT WHEN, and where late rows go to a sink, too.
    """
    sink = target_sink(asked.catalog, statement)
    if sink is None or (sink.commit_when is None and not tells_late_rows(asked, statement, sink)):
        return None
    return StatementSet(Identifier(sink.name, span=statement.span), (statement,), span=statement.span)


def plan_alone(
    asked: Asked, alone: StatementSet, checkpoint: str | None, ending: str | None = None
) -> PlannedSet:
    """Plan a set of one (see ``plan_set``), on the checkpoint ``ending`` where that is known.

    Raises WJoinError WJ623 where late rows do not let it run.
    """
    sink = _sink(asked, alone.inserts[0])
    given = checkpoint or asked.settings.get("wjoin.checkpoint")
    folder = ending or (None if given else own_option(sink.options, "checkpointLocation"))
    try:
        return plan_set(asked, alone, checkpoint, folder)
    except WJoinError as error:
        if error.code != "WJ606" or sink.commit_when is not None:
            raise
        message = f"late rows go to another sink of the query, but {error.message}"
        span = error.span or alone.span
        raise WJoinError("WJ623", message, span=span, help=WITHOUT_LATE_ROWS) from error


def start_set(
    asked: Asked, statement: StatementSet, planned: PlannedSet, *, once: bool, every: str | None
) -> Running:
    """Start the query of a planned statement set. ``every``: how often micro-batches start."""
    folder = planned.folder
    if folder is None:
        raise no_checkpoint(f"the statement set {planned.name}", statement.span)
    joins = joins_of(planned.parts)
    columns = {statement.sink.name: columns_of(rows) for statement, rows in planned.written.rows}
    begun = begun_with(asked, planned.parts, columns)
    together = bool(run_together(planned.parts, planned.kept))
    prepare(asked, statement.span, folder, planned.kept, joins, begun, together=together)
    declared = {each.sink.name: each.sink for each in planned.written_sinks}
    known = planned.kept.keep_sinks(
        columns, lambda name: last_logged(asked.engine.spark, declared[name]), planned.histories
    )
    skipped = {name: each.skipped for name, each in known.items()}
    with located(statement.span):
        schemas = [(each.sink, rows.schema) for each, rows in planned.written.rows]
        kept = tuple(keepers(asked.engine.spark, schemas))
    most = asked.settings.waiting()

    def last(sink: SinkDeclaration) -> int:
        logged = last_logged(asked.engine.spark, sink)
        return planned.kept.last_commit if logged is None else logged

    sinks = planned.written.sinks(skipped, last, _waiting(folder), most if statement.keep_others else 0)
    inserts = tuple(each.span.of(asked.text) for each in statement.inserts)
    of_set = RunningSet(
        planned.name, inserts, asked.params, once, every, sinks.shut, sinks.waiting, statement.keep_others
    )
    writer = sinks.of(planned.written.made).option("checkpointLocation", folder)
    name = asked.queries.free_name(planned.name)
    spans = statement.span, statement.span
    starting = Starting(
        name, planned.sinks, spans, folder, planned.kept, joins, once=once, every=every, keepers=kept
    )
    try:
        running = started(asked, writer, starting)
    except RAISED_BY_SPARK as error:
        raise refused_start(asked.text, statement.inserts[0], error, None, folder) from error
    running.of_set = of_set
    if statement.keep_others or planned.written.commits:
        running.followed.observe(ToldWaiting(of_set, most))
    return running


def _waiting(checkpoint: str) -> str:
    """Return the folder where rows wait for sinks that fail."""
    return f"{checkpoint}/wjoin/waiting"


def _waiting_rows(spark: SparkSession, checkpoint: str) -> Mapping[str, Sequence[str]]:
    """Return what is in the folder of each sink for which rows wait or have waited, by its name."""
    files, folder = Files.of(spark), _waiting(checkpoint)
    return {name: files.names(f"{folder}/{name}") for name in files.names(folder)}


def _has_rows(names: Sequence[str]) -> bool:
    """Return whether rows of a micro-batch are among what is in a folder."""
    return any(name.isdigit() for name in names)


def _refuse_waiting(
    waiting: Mapping[str, Sequence[str]], folder: str, statements: Sequence[SetStatement]
) -> None:
    """Refuse a set that lacks a sink for which rows wait: WJoinError WJ606."""
    own = {folder_name(each.sink.name) for each in statements}
    for name, names in waiting.items():
        if name not in own and _has_rows(names):
            raise WJoinError(
                "WJ606",
                f"rows wait for the sink {unquote(name)}, which the set no longer has",
                help=f"start the set with its statement until they are written, or delete {folder}/{name}",
            )


def set_name(asked: Asked, statement: StatementSet) -> str:
    """Return the name of a statement set: its own, or that of its first sink. Raises WJoinError WJ602."""
    return f"set_{_sink(asked, statement.inserts[0]).name}" if statement.name is None else statement.name.name


def _sink(asked: Asked, insert: InsertInto) -> SinkDeclaration:
    """Return the sink of a statement. Raises WJoinError WJ602 where there is none of its name, and WJ612."""
    target = insert.target[-1]
    return target_sink(asked.catalog, insert) or find(asked.catalog.sinks, "sink", target.name, target.span)


def _refuse_shared_sinks(statements: Sequence[SetStatement]) -> None:
    """Refuse a sink or a folder that two statements write to: it takes a micro-batch once."""
    known: dict[str, SinkDeclaration] = {}
    for each in statements:
        path = own_option(each.sink.options, "path")
        for what in (each.sink.name.lower(), *([f"path {resolved(path).rstrip('/')}"] if path else [])):
            if what in known:
                raise WJoinError(
                    "WJ606",
                    f"two statements of the set write to {each.sink.name}"
                    if known[what] is each.sink
                    else f"the sinks {known[what].name} and {each.sink.name} of the set have one folder",
                    span=each.insert.target[-1].span,
                    help="give each a sink of its own, with its own path",
                )
            known[what] = each.sink


def _trigger(statements: Sequence[SetStatement]) -> str | None:
    """Return how often the sinks of a set want micro-batches. Raises WJoinError WJ606 where they differ."""
    found = {each.sink.name: own_option(each.sink.options, "trigger") for each in statements}
    if len(set(found.values())) > 1:
        told = ", ".join(f"{name} has {every or 'none'}" for name, every in found.items())
        message = f"the sinks of a statement set have one trigger: {told}"
        raise WJoinError("WJ606", message, span=statements[0].insert.span, help="give all the same trigger")
    return next(iter(found.values()))
