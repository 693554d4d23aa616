"""INSERT INTO: a query into a sink, compared with its checkpoint before it starts."""

import datetime
import re
import time
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter

from wjoin.context import Asked, Context
from wjoin.executor.spark.beginning import begin
from wjoin.executor.state.identity import Whole, identity
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.grammar.statement_kinds import InsertInto, Query, SparkStatement
from wjoin.grammar.syntax import Identifier
from wjoin.homes.handed import TWICE, analyzed, reads_twice
from wjoin.homes.homes import FILES, SPARK, state_workers
from wjoin.joins.changed_joins import begun_alone, changed_parts
from wjoin.joins.late_refusals import WITHOUT_LATE_ROWS
from wjoin.joins.planned_joins import Joins
from wjoin.joins.rewrite import joined_rows
from wjoin.joins.set_joins import SetJoin, SetStatement
from wjoin.measured.begun import Begun
from wjoin.measured.beside import UNREACHABLE
from wjoin.measured.followed import follower_of, settle
from wjoin.measured.kept import Kept
from wjoin.measured.load import Load, following
from wjoin.measured.utilization import UtilizationRules
from wjoin.planner.bind.lineage import reads
from wjoin.planner.plan.block_columns import quoted
from wjoin.queries.run_once import given_whole
from wjoin.queries.running import Running
from wjoin.results.results_keeper import ResultsKeeper, keepers
from wjoin.sources.catalog import Catalog, SinkDeclaration, find
from wjoin.sources.format_options import own_option
from wjoin.sources.late_rows import refuse_late_sink
from wjoin.sources.record_formats import writing_options
from wjoin.sources.site_leases import keep_all
from wjoin.spark.cluster import partitions
from wjoin.spark.hadoop_files import Files
from wjoin.spark.refused import refused_start
from wjoin.spark.spark_failures import RAISED_BY_SPARK, first_line, located
from wjoin.statements.late_sinks import RowsAndLate, late_for, with_late_rows
from wjoin.statements.result_folders import refuse_folder
from wjoin.statements.set_sinks import SetSinks
from wjoin.statements.sink_columns import columns_of, refuse_columns
from wjoin.statements.sinks import rows_for
from wjoin.statements.spark import send


def insert(
    asked: Asked,
    statement: InsertInto,
    *,
    once: bool,
    checkpoint: str | None,
    trigger: str | None = None,
    ending: str | None = None,
) -> Running | None:
    """Run an INSERT INTO: start a query where its rows stream into a sink, else write them (None).

    ``trigger`` says how often micro-batches start, whatever the sink and the session say. ``checkpoint`` is
    the folder of all checkpoints, ``ending`` that of its own where only the micro-batch shall run with which
    all streams end. One that is left of a run that crashed is run before all else.
    """
    sink = target_sink(asked.catalog, statement)
    if sink is None:
        _into_table(asked, statement)
        return None
    planned = plan_insert(asked, statement, sink, checkpoint, ending)
    if ending is None and planned.ending:
        left = insert(asked, statement, once=True, checkpoint=None, ending=planned.folder)
        if left is not None:
            left.wait()
        planned = plan_insert(asked, statement, sink, checkpoint, planned.folder)
    if planned.frame.isStreaming:
        every = asked.settings.trigger(trigger or own_option(sink.options, "trigger"))
        return _start(asked, statement, planned, sink, once=once, every=every)
    if sink.retain is not None:
        message = f"the sink {sink.name} has RETAIN, and no query commits these rows: they do not stream"
        help = "write them to a sink without it, or read them in a query whose rows stream"
        raise WJoinError("WJ606", message, span=statement.target[-1].span, help=help)
    if sink.write is not None:
        sink.write(planned.frame, 0)
        return None
    batch = planned.frame.write.format(sink.provider).options(**writing_options(sink)).mode("append")
    if sink.partitioned_by:
        batch = batch.partitionBy(*sink.partitioned_by)
    with asked.placed(statement.span):
        batch.save()
    return None


def _into_table(asked: Asked, statement: InsertInto) -> None:
    """Run an INSERT INTO a table of Spark's."""
    refuse_unknown_sink(asked, statement)
    if isinstance(statement.body, SparkStatement):
        send(asked, statement)
    else:
        # The whole statement goes to Spark, with the W-joins of its query cut out.
        joined_rows(asked, Query(statement.body.blocks, span=statement.span))


@dataclass(frozen=True)
class PlannedInsert:
    """An INSERT INTO a sink before it runs; ``joins`` is None where it has no W-join.

    ``changed``: whether it goes on with the state of another statement. ``late`` has its rows with late rows
    that go to sinks of their own, None where none do.
    """

    frame: DataFrame
    joins: Joins | None
    folder: str | None
    kept: Kept
    changed: bool = False
    late: RowsAndLate | None = None

    def written(self, sink: SinkDeclaration) -> list[tuple[SinkDeclaration, DataFrame]]:
        """Return its rows for each sink, first for its own."""
        return [(sink, self.frame)] if self.late is None else self.late.sinks

    @property
    def ending(self) -> bool:
        """Whether its next micro-batch is one with which all streams end."""
        return self.joins is not None and self.kept.ending is not None


def plan_insert(
    asked: Asked,
    statement: InsertInto,
    sink: SinkDeclaration,
    checkpoint: str | None,
    folder: str | None = None,
) -> PlannedInsert:
    """Plan an INSERT INTO a sink, and compare it with what its checkpoint holds; nothing is written."""
    spark = asked.engine.spark
    settle()
    folder = folder or _checkpoint(asked, sink, checkpoint)
    home = asked.settings.home()
    kept = Kept(spark, folder, home)
    frame, joins = inserted_rows(asked, statement, kept, apart=True)
    if frame.isStreaming and kept.state(0) is not None and reads_twice(analyzed(frame)):
        if kept.begun or home == FILES:
            raise WJoinError("WJ720", TWICE, span=statement.span)
        kept = Kept(spark, folder, SPARK)
        frame, joins = inserted_rows(asked, statement, kept, apart=True)
    planned = PlannedInsert(rows_for(sink, frame, statement), joins, folder, kept)
    if planned.frame.isStreaming and folder is not None:
        with located(statement.target[-1].span):
            if joins is not None and joins.telling:
                query = late_for(sink.name, folder)
                rows = planned.frame
                late = with_late_rows(asked, SetStatement(statement, sink), rows, joins, kept, query)
                planned = replace(planned, late=late)
            for each, _ in planned.written(sink):
                refuse_folder(spark, each, folder, begun=kept.begun, committed=kept.committed)
            return _on_checkpoint(asked, statement, planned, sink, f"the checkpoint {folder} of {sink.name}")
    return planned


def _on_checkpoint(
    asked: Asked, statement: InsertInto, planned: PlannedInsert, sink: SinkDeclaration, checkpoint: str
) -> PlannedInsert:
    """Return an INSERT INTO as it goes on with the state of its checkpoint.

    Raises WJoinError WJ701 to WJ703 where it cannot.
    """
    try:
        planned.kept.refuse_other(identity_of(asked.engine.spark, planned.joins), checkpoint)
    except WJoinError as error:
        if error.code != "WJ702":
            raise
        parts = _changed(asked, SetStatement(statement, sink), planned.kept, checkpoint, error.message)
        if parts is None:
            raise
        (part,) = parts
        (taker,) = part.takers
        rows = part.rows(taker, part.made)
        frame = rows_for(sink, rows, statement)
        refuse_columns(sink, frame, planned.kept)
        return replace(planned, frame=frame, joins=part.rewriting.joins, changed=True)
    return planned


def _changed(
    asked: Asked, statement: SetStatement, kept: Kept, checkpoint: str, other: str
) -> tuple[SetJoin, ...] | None:
    """Return the join of a checkpoint for another statement (``changed_parts``), None where it has none."""
    body = statement.insert.body
    if not isinstance(body, Query) or body.only_block is None:
        return None
    try:
        return changed_parts(asked, [statement], kept, checkpoint, other)
    except WJoinError as error:
        if error.code == "WJ606":
            return None
        raise


def explained_checkpoint(context: Context, target: tuple[Identifier, ...]) -> str | None:
    """Return the folder of the first query into a sink, whether it runs or not; None where none is known."""
    sink = context.catalog.sinks.get(target[0].name.lower()) if len(target) == 1 else None
    directory = context.settings.get("wjoin.checkpoint")
    if sink is None:
        return None
    if directory is None:
        return own_option(sink.options, "checkpointLocation")
    return f"{directory.rstrip('/')}/{sink.name}"


def target_sink(catalog: Catalog, statement: InsertInto) -> SinkDeclaration | None:
    """Return the sink of an INSERT INTO, None where its target is not one.

    Raises WJoinError WJ612 and WJ623.
    """
    if len(statement.target) != 1:
        return None
    sink = catalog.sinks.get(statement.target[0].name.lower())
    if sink is None:
        _refuse_stream(catalog, statement)
    else:
        refuse_late_sink(catalog, sink, statement.target[0].span)
    return sink


def _refuse_stream(catalog: Catalog, statement: InsertInto) -> None:
    """Refuse rows for a stream or a view over streams."""
    target = statement.target[0]
    stream = catalog.stream(target.name)
    if stream is not None:
        raise WJoinError(
            "WJ612",
            f"{stream.name} is a {'view over streams' if stream.source == 'view' else 'stream'}, not a sink",
            span=target.span,
            help="CREATE SINK name USING parquet OPTIONS (path '…'), and INSERT INTO name",
        )


def refuse_unknown_sink(asked: Asked, statement: InsertInto) -> None:
    """Refuse streaming rows for a target that is no sink: Spark's INSERT INTO is for batches only."""
    if _is_table(asked, statement.target):
        return
    body = statement.body
    streams = isinstance(body, Query) or reads(body.written(asked.text), asked.catalog.delays)
    if streams and inserted_rows(asked, statement, None)[0].isStreaming:
        find_target(asked, statement.target)


def find_target(context: Context, target: tuple[Identifier, ...]) -> None:
    """Refuse a target of streaming rows that there is not. Raises WJoinError WJ602 with the nearest sink."""
    if not _is_table(context, target):
        find(context.catalog.sinks, "sink", target[-1].name, target[-1].span)


def _is_table(context: Context, target: tuple[Identifier, ...]) -> bool:
    """Return whether a target is a table of Spark's, which gets no streams where sinks are declared."""
    return not context.catalog.sinks and context.engine.exists(".".join(quoted(each.name) for each in target))


def _remedy(joins: Joins | None) -> str | None:
    """Return what may be the matter where Spark refuses a query of these W-joins."""
    if joins is None:
        return None
    outputs = [output for plan in joins.plans.values() for output in plan.outputs]
    undated = [each.undated for each in outputs if each.undated and "time" in each.match]
    return f"MATCH_TIME() has no watermark here: {undated[0]}" if undated else None


def inserted_rows(
    asked: Asked, statement: InsertInto, kept: Kept | None, *, apart: bool = False
) -> tuple[DataFrame, Joins | None]:
    """Return what an INSERT INTO writes, and its W-joins, None where it has none.

    ``apart``: whether late rows that go to sinks are read apart from them.
    """
    body = statement.body
    if isinstance(body, Query):
        return joined_rows(asked, body, kept, apart=apart)
    return send(asked, body), None


def _start(
    asked: Asked,
    statement: InsertInto,
    planned: PlannedInsert,
    sink: SinkDeclaration,
    *,
    once: bool,
    every: str | None,
) -> Running:
    joins, folder = planned.joins, planned.folder
    columns = columns_of(planned.frame)
    begun = begun_alone(asked, SetStatement(statement, sink), columns)
    prepare(asked, statement.span, folder, planned.kept, joins, begun)
    written = planned.written(sink)
    planned.kept.keep_sinks({each.name: columns_of(rows) for each, rows in written}, lambda _: None)
    options = writing_options(sink)
    mode = own_option(sink.options, "outputMode") or "append"
    if folder is not None:
        options["checkpointLocation"] = folder
    elif sink.provider.lower() not in ("console", "memory", "noop") or (joins and joins.telling):
        raise no_checkpoint(
            f"the query into {sink.name}", statement.target[-1].span, ", or the sink's checkpointLocation"
        )
    writer = _writer(planned, sink, options).outputMode(mode)
    name = asked.queries.free_name(sink.name)
    spans = statement.target[-1].span, statement.span
    with located(statement.target[-1].span):
        kept = tuple(keepers(asked.engine.spark, [(each, rows.schema) for each, rows in written]))
    starting = Starting(
        name, sink.name, spans, folder, planned.kept, joins, once=once, every=every, keepers=kept
    )
    try:
        running = started(asked, writer, starting)
    except RAISED_BY_SPARK as error:
        raise refused_start(asked.text, statement, error, _remedy(joins), folder) from error
    running.append = mode == "append"
    return running


def _writer(planned: PlannedInsert, sink: SinkDeclaration, options: dict[str, str]) -> DataStreamWriter:
    """Return what writes an INSERT INTO into its sink, and its late rows into theirs.

    Raises WJoinError WJ623 for a sink that has no late rows beside it.
    """
    late = planned.late
    if late is None:
        stream = planned.frame.writeStream
        writer = (
            stream.format(sink.provider)
            if sink.write is None
            else stream.foreachBatch(given_whole(sink.write))
        )
        writer = writer.options(**options)
        return writer.partitionBy(*sink.partitioned_by) if sink.partitioned_by else writer
    sinks = SetSinks(late.shape, len(late.sinks), f"{planned.folder}/wjoin/waiting", 0)
    try:
        for each, rows in late.sinks:
            sinks.add(each, rows)
    except WJoinError as error:
        message = f"late rows go to another sink of the query, but {error.message}"
        raise WJoinError("WJ623", message, help=WITHOUT_LATE_ROWS) from error
    return sinks.of(late.made).option("checkpointLocation", str(planned.folder))


def no_checkpoint(subject: str, span: Span, or_else: str = "") -> WJoinError:
    """Return the error for a query that needs a checkpoint folder; ``or_else``: what else may name it."""
    return WJoinError(
        "WJ606",
        f"{subject} needs a checkpoint folder",
        span=span,
        help=f"SET wjoin.checkpoint = DIR, or give --checkpoint DIR{or_else}",
    )


@dataclass(frozen=True)
class Starting:
    """A query that is about to start: its name, its sinks, what errors of it are about, and its statement.

    ``once``: it ends when its sources are read; ``every``: how often micro-batches start. ``keepers`` are
    those of its sinks.
    """

    name: str
    sinks: str
    spans: tuple[Span, Span]
    folder: str | None
    kept: Kept
    joins: Joins | None
    once: bool
    every: str | None
    keepers: tuple[ResultsKeeper, ...] = ()


def prepare(
    asked: Asked,
    span: Span,
    folder: str | None,
    kept: Kept,
    joins: Joins | None,
    begun: Begun | None = None,
    *,
    together: bool = False,
) -> None:
    """Make the checkpoint folder of a query, and keep beside it what must stay the same.

    ``begun`` and ``together``: what is kept of its statements (``Kept.keep``).
    """
    spark = asked.engine.spark
    if folder is not None and hasattr(spark, "_jsparkSession"):
        # A server of Spark Connect makes it as its own Spark is set.
        with asked.placed(span):
            Files.of(spark).make_own(folder)
    if joins is not None:
        _keep(spark, span, kept, joins, begun, together=together)


def started(asked: Asked, writer: DataStreamWriter, starting: Starting) -> Running:
    """Start a query and follow it. Raises what Spark raises."""
    spark, joins = asked.engine.spark, starting.joins
    writer = writer.queryName(re.sub(r"\W", "_", starting.name))
    if joins is not None and starting.kept.ending is not None:
        writer = writer.trigger(once=True)
    elif starting.once:
        writer = writer.trigger(availableNow=True)
    elif starting.every is not None:
        writer = writer.trigger(processingTime=starting.every)
    began, at = time.monotonic(), datetime.datetime.now(datetime.UTC)
    followed = follower_of(spark).follow(begin(spark, writer.start, f"the query into {starting.name}"))
    if joins is not None:
        recorder = starting.kept.recorder(starting.name, joins.plans, _rules(asked, starting.kept, joins))
        if recorder is not None:
            followed.observe(recorder)
        keep_all(spark, followed.id, joins.plans)
    for keeper in starting.keepers:
        followed.observe(keeper)
    load = None if joins is None else _load(asked, followed.run)
    if load is not None:
        followed.observe(load)
    running = Running(
        followed,
        asked.text,
        *starting.spans,
        starting.name,
        starting.sinks,
        starting.folder,
        began=began,
        started=at,
        load=load,
    )
    if joins is not None:
        running.planned, running.compiled = joins.planned, tuple(joins.plans)
    asked.queries.add(running)
    return running


def _rules(asked: Asked, kept: Kept, joins: Joins) -> UtilizationRules:
    """Return by what it is measured how busy a query is."""
    rules, constants = asked.settings.shedding(), asked.settings.costs().constants
    workers = [state_workers(asked.engine.spark, plan) for plan in joins.plans.values()]
    fixed = (constants.in_files() if kept.home.files else constants).fixed(workers)
    return UtilizationRules(fixed, rules.interval, rules.memory)


def _load(asked: Asked, run: str) -> Load | None:
    """Return what follows the load of a run of a query, None where executors do not follow it."""
    scaling, rules = asked.settings.scaling(), asked.settings.shedding()
    asking = following(asked.engine.spark)
    if scaling is None or not asking.begin(scaling, rules.thresholds):
        return None
    return Load(run, rules.interval, asking)


def _keep(
    spark: SparkSession, span: Span, kept: Kept, joins: Joins, begun: Begun | None, *, together: bool
) -> None:
    """Keep the chosen layouts of state before there is any state, and see that what there is is whole.

    Raises WJoinError WJ607, WJ718 and WJ719.
    """
    kept.prepare_state(joins.plans.values())
    try:
        layouts = [planned.layout for planned in joins.planned]
        kept.keep(layouts, identity_of(spark, joins), begun, together=together)
    except UNREACHABLE as error:
        message = f"Spark cannot write to the checkpoint: {first_line(error)}"
        raise WJoinError("WJ607", message, span=span) from error


def identity_of(spark: SparkSession, joins: Joins | None) -> dict[str, Any]:
    """Return what a checkpoint of these W-joins belongs to."""
    plans, whole = ([], Whole()) if joins is None else (list(joins.plans.values()), joins.whole)
    return identity(plans, partitions(spark), whole)


def _checkpoint(context: Context, sink: SinkDeclaration, directory: str | None) -> str | None:
    """Return the checkpoint folder of the next query into a sink, None where it is given none."""
    directory = directory or context.settings.get("wjoin.checkpoint")
    if directory is None:
        return own_option(sink.options, "checkpointLocation")
    return context.queries.name_folder(directory, sink.name)
