"""A checkpoint for another number of shuffle partitions or workers, written from one that is left as it is.

What lies in memory of a query is in its state alone, between two micro-batches. So the rows of the state are
brought to the new workers as new rows would be, and all else of the checkpoint is copied.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from wjoin.checkpoints.spark_log import (
    PARTITIONS,
    LastBatch,
    adopt_state,
    last_batch,
    set_partitions,
)
from wjoin.context import Asked, Context
from wjoin.executor.faults import fault_point
from wjoin.executor.routing import worker_count
from wjoin.executor.spark.moved_state import (
    ENTRIES_AT_ONCE,
    STATE_OPERATOR,
    Held,
    filed_manifests,
    greatest,
    send_filed_rows,
    send_rows,
    send_times,
    stored_manifests,
    write_files,
    write_state,
)
from wjoin.executor.state.identity import Whole, fingerprint, identity
from wjoin.executor.state.manifest import Manifest
from wjoin.executor.state.moving import StageMove
from wjoin.executor.state.starting import STATE, begin
from wjoin.executor.state.worker_files import stage_folder
from wjoin.executor.workers import worker_ids
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_script
from wjoin.grammar.plain import plain
from wjoin.grammar.spans import Span
from wjoin.grammar.statement_kinds import AnalyzeStream, InsertInto, Query, Statement, StatementSet
from wjoin.homes.handed import folder_of
from wjoin.homes.homes import AUTO, FILES, keeps_state, state_workers
from wjoin.joins.planned_joins import Joins
from wjoin.joins.rewrite import joined_rows
from wjoin.joins.set_joins import joins_of
from wjoin.measured.beside import Beside
from wjoin.measured.kept import IDENTITY, LAYOUTS, Kept
from wjoin.planner.choose.layouts import Layout, laid_out
from wjoin.planner.plan.physical import Method, PhysicalPlan
from wjoin.settings.options import prepare
from wjoin.spark.cluster import setting
from wjoin.spark.hadoop_files import Files
from wjoin.spark.spark_failures import located
from wjoin.spark.state_operators import operators
from wjoin.statements.checking import check
from wjoin.statements.dispatch import execute
from wjoin.statements.inserts import inserted_rows, target_sink
from wjoin.statements.sharing import in_sets
from wjoin.statements.statement_sets import plan_set, set_of_one

UNFINISHED = ".unfinished"
"""What the name of the folder ends with in which a new checkpoint is made; no query takes it for one."""

_WRITING = {
    # The files of one whole state, without those that tell how it came about.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "false",
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "1",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.parquet.columnarReaderBatchSize": "16",
}
"""Settings under which Spark writes state that is moved afterwards."""


@dataclass(frozen=True)
class Repartitioned:
    """A checkpoint that has been written anew: whose it is, its folder, the last micro-batch that it counts
    as done, and the numbers of shuffle partitions before and now."""

    name: str
    folder: str
    batch: int
    before: int
    after: int


@dataclass(frozen=True)
class _Task:
    """The checkpoint of one query, and the W-joins of its statement before and after.

    ``place`` is its folder below those of all, empty where it is the only one. ``whole`` and ``layouts`` are
    what is kept beside it, ``layouts`` None where a query keeps nothing. ``files``: the checkpoint where its
    state is in files, which the new one's will be as ``to_files`` says.
    """

    statement: Statement
    name: str
    folder: str
    place: str
    last: LastBatch
    before: tuple[PhysicalPlan, ...]
    after: tuple[PhysicalPlan, ...]
    whole: Whole
    layouts: Sequence[Layout] | None
    files: Path | None
    to_files: bool

    def join_folder(self, join: int, plan: PhysicalPlan) -> str:
        """Return the name of the folder of a join's state in files."""
        return folder_of(plan) if isinstance(self.statement, Query) else str(join)

    def below(self, folder: str) -> str:
        """Return the place of the checkpoint below a folder."""
        return f"{folder}/{self.place}" if self.place else folder


def repartition(
    asked: Asked, old: str, new: str, partitions: int, name: str = "<script>"
) -> list[Repartitioned]:
    """Write the checkpoints below a folder anew for another number of shuffle partitions.

    ``old`` is the folder of the checkpoints of a script, or the checkpoint of its one query; ``new``, which
    is not there yet, appears when all is written. The text is the script with which the queries go on: its
    hints say on how many workers. Raises WJoinError WJ701 and WJ702 for the checkpoint of another statement,
    and WJ708 to WJ711.
    """
    spark, old, new = asked.engine.spark, old.rstrip("/"), new.rstrip("/")
    files = Files.of(spark)
    if partitions < 1:
        raise WJoinError("WJ603", f"{partitions} is not a number of partitions", help="give 1 or more")
    if files.exists(new):
        raise WJoinError("WJ709", f"{new} exists already")
    with setting(spark, PARTITIONS, str(partitions)):
        single = files.exists(f"{old}/metadata")
        tasks = _Script(asked, files, old, single).tasks(name)
    unfinished = new + UNFINISHED
    files.remove(unfinished)
    try:
        for number, task in enumerate(tasks):
            with asked.placed(task.statement.span):
                own = f"{unfinished}/{number}"
                made, session = task.below(f"{unfinished}/checkpoint"), _session(spark, task.last, partitions)
                _Writing(asked, files, session, task, partitions, own, made, task.below(new)).write()
        for task in tasks:
            if last_batch(files, task.folder).number != task.last.number:
                raise WJoinError("WJ708", f"a query is running on the checkpoint {task.folder}")
        fault_point("before-checkpoint-appears")
        files.rename(f"{unfinished}/checkpoint", new)
    finally:
        files.remove(unfinished)
    return [
        Repartitioned(each.name, each.below(new), each.last.number, each.last.partitions, partitions)
        for each in tasks
    ]


@dataclass(frozen=True)
class _Script:
    """A script and the folder ``old`` of its checkpoints; ``single`` where that is the one of its query."""

    asked: Asked
    files: Files
    old: str
    single: bool

    def tasks(self, name: str) -> list[_Task]:
        """Return what there is to write anew, all of it compared with its statements."""
        statements = parse_script(self.asked.text, name)
        queries = sum(isinstance(each, InsertInto | Query | StatementSet) for each in statements)
        if self.single and queries > 1:
            raise WJoinError(
                "WJ710",
                f"{self.old} is the checkpoint of one query, and {name} has {queries}",
                help="give the folder of all of them, or the statements of that query alone",
            )
        self.asked.queries.begin_script()
        found: list[_Task] = []
        for statement in in_sets(self.asked, statements):
            with self.asked.placed(statement.span):
                match statement:
                    case InsertInto():
                        found += self._of_insert(statement)
                    case StatementSet():
                        found += self._of_set(statement)
                    case Query():
                        found += self._of_select(statement) if self.single else ()
                    case AnalyzeStream():
                        # It tells which key is the most frequent one.
                        execute(self.asked, statement)
                    case _:
                        check(self.asked, statement, None)
        self.asked.queries.begin_script()
        if not found:
            raise WJoinError("WJ710", f"{self.old} holds no checkpoint of a query of {name}")
        return found

    def _of_insert(self, statement: InsertInto) -> Iterator[_Task]:
        """Yield what is to be done for an INSERT INTO, if its query streams and has begun."""
        queries, target = self.asked.queries, statement.target[-1]
        sink = target_sink(self.asked.catalog, statement)
        if sink is None:
            return
        alone = set_of_one(self.asked, statement)
        if alone is not None:
            yield from self._of_set(alone)
            return
        self._refuse_running(sink.name, target.span)
        folder = self.old if self.single else queries.name_folder(self.old, sink.name)
        kept = Kept(self.asked.engine.spark, folder, moving=True)
        rows, joins = inserted_rows(self.asked, statement, kept, apart=True)
        if not rows.isStreaming:
            return
        queries.named(folder)
        if kept.begun:
            with located(target.span):
                yield self._task(kept, statement, target.name, folder, joins)

    def _of_set(self, statement: StatementSet) -> Iterator[_Task]:
        """Yield what is to be done for a statement set, if its query has begun."""
        own = self.old if self.single else None
        planned = plan_set(self.asked, statement, self.old, own, moving=True)
        folder = planned.folder
        if folder is None:
            raise AssertionError("a set has a checkpoint below the folder of all")
        self._refuse_running(planned.name, statement.span)
        self.asked.queries.named(folder)
        if planned.kept.begun:
            with located(statement.span):
                task = self._task(planned.kept, statement, planned.name, folder, joins_of(planned.parts))
                if planned.kept.together and not task.to_files:
                    message = f"the joins of {planned.name} read their streams together, with state in files"
                    raise WJoinError("WJ711", message, help="leave wjoin.state at auto or files")
                yield task

    def _refuse_running(self, name: str, span: Span) -> None:
        """Refuse the checkpoint of a query of that name that runs: WJoinError WJ708."""
        for folder in (self.old, f"{self.old}/{name}"):
            if self.asked.queries.runs_on(folder):
                raise WJoinError("WJ708", f"a query is running on the checkpoint {folder}", span=span)

    def _of_select(self, statement: Query) -> Iterator[_Task]:
        """Yield what is to be done for a SELECT that somebody has started."""
        kept = Kept(self.asked.engine.spark, self.old, moving=True)
        _, joins = joined_rows(self.asked, statement, kept)
        with located(statement.span):
            yield self._task(kept, statement, "the SELECT", self.old, joins)

    def _task(
        self,
        kept: Kept,
        statement: Statement,
        name: str,
        folder: str,
        joins: Joins | None,
    ) -> _Task:
        place = "" if self.single else folder.removeprefix(f"{self.old}/")
        wanted, filed = self.asked.settings.home(), kept.home.checkpoint
        to_files = filed is not None if wanted == AUTO else wanted == FILES
        last = last_batch(self.files, folder)
        if self.files.escaped(folder):
            # Spark looks for the state in a folder that has them as in an address.
            raise WJoinError(
                "WJ711",
                f"Spark cannot find the state below {folder}, because of special characters in the path",
                help="copy the checkpoint to a path of letters, digits, - and _, and repartition the copy",
            )
        planned = () if joins is None else joins.planned
        after = tuple(each.physical for each in planned)
        if any(each.approximate is not None for each in after):
            # What visits a node is known of those that are there, and a row's home is no part of its state.
            message = f"{name} is an approximate join, whose rows live on the nodes that there are"
            raise WJoinError("WJ711", message, help="start it with a new checkpoint")
        if joins is not None and joins.telling and not to_files:
            message = f"late rows of {name} are told by a state of their own in Spark's store, which stays"
            raise WJoinError("WJ711", message, help="SET wjoin.state = files, or start with a new checkpoint")
        before = tuple(
            laid_out(each.physical, kept.layout(number).placements(each.layout.stages))
            for number, each in enumerate(planned)
        )
        whole = Whole() if joins is None else joins.whole
        kept.refuse_other(identity(before, last.partitions, whole))
        keeps = joins is not None and not isinstance(statement, Query)
        layouts = [each.layout for each in planned] if keeps else None
        return _Task(statement, name, folder, place, last, before, after, whole, layouts, filed, to_files)


@dataclass(frozen=True)
class _Writing:
    """Writes the checkpoint of a task anew as ``made``, later ``final``; ``own`` is a folder to work in."""

    context: Context
    files: Files
    spark: SparkSession
    task: _Task
    partitions: int
    own: str
    made: str
    final: str

    def write(self) -> None:
        """Write all of it: the state of each stage, and what is beside it."""
        files, task, made = self.files, self.task, self.made
        files.make_own(made)
        for name in files.names(task.folder):
            if name != "state":
                files.copy(f"{task.folder}/{name}", f"{made}/{name}")
        files.remove(f"{made}/{STATE}")
        set_partitions(files, made, task.last.number, self.partitions)
        self._state()
        for name in (IDENTITY, LAYOUTS):
            files.remove(f"{made}/wjoin/{name}")
        if task.layouts is not None:
            beside = Beside(self.spark, made)
            beside.write(IDENTITY, 1, identity(task.after, self.partitions, task.whole))
            beside.write(LAYOUTS, 1, plain(task.layouts))

    def _state(self) -> None:
        if self.task.to_files:
            begin(self._made_folder(), self._workers())
        for number, kind in operators(self.files, self.task.folder).items():
            if kind != STATE_OPERATOR:
                where = f"{self.task.name} keeps state of Spark operators ({kind}) in {self.task.folder}"
                raise WJoinError("WJ711", where)
            self._of_operator(number)
        if self.task.files is not None:
            for join, plan in enumerate(self.task.before):
                for stage in range(len(plan.stages) if keeps_state(plan) else 0):
                    self._of_files(join, stage)

    def _workers(self) -> dict[str, list[int]]:
        with setting(self.spark, PARTITIONS, str(self.partitions)):
            return {
                self.task.join_folder(number, plan): state_workers(self.spark, plan)
                for number, plan in enumerate(self.task.after)
            }

    def _of_operator(self, operator: int) -> None:
        """Write the state that an operator has in Spark's store."""
        folder = self.task.folder
        manifests = stored_manifests(self.spark, folder, operator)
        joins = range(len(self.task.before))
        self._stage(operator, joins, manifests, partial(send_rows, self.spark, folder, operator))

    def _of_files(self, join: int, stage: int) -> None:
        """Write the state that a stage has in files."""
        task, before = self.task, self.task.before[join]
        count = worker_count(before.stages[stage], task.last.partitions)
        folder = stage_folder(Path(str(task.files)) / STATE / task.join_folder(join, before), stage)
        manifests = filed_manifests(folder, task.last.number, count)
        send = partial(send_filed_rows, self.spark, folder, task.last.number)
        self._stage(self._operator(join, stage), [join], manifests, send)

    def _operator(self, join: int, stage: int) -> int:
        """Return the number that Spark gives an operator: it counts from the last one back."""
        counts = [len(plan.stages) for plan in self.task.before if keeps_state(plan)]
        if len(counts) > 1 and not self.task.to_files:
            raise WJoinError(
                "WJ711",
                f"{self.task.name} has several window joins: their state cannot move to Spark's state store",
            )
        later = [plan for plan in self.task.before[join:] if keeps_state(plan)]
        return sum(len(plan.stages) for plan in later) - 1 - stage

    def _stage(
        self,
        operator: int,
        joins: Sequence[int],
        manifests: Sequence[Manifest],
        send: Callable[[StageMove, str], None],
    ) -> None:
        """Write the state of a stage whose workers have some manifests; ``send`` writes their rows.

        ``joins``: the numbers of those that it may be of.
        """
        sent = f"{self.own}/{operator}/rows"
        if not manifests:
            if not self.task.to_files:
                send_times(self.spark, worker_ids(self.partitions), {}, {}, sent)
                self._to_spark(operator, sent, None, ())
            return
        # All workers of a stage have been told the same of what is at sites.
        begun, *_ = manifests
        join, move = _move(self.task, joins, begun.plan, begun.workers, self.partitions)
        send(move, sent)
        held = begun.held
        seen, came = greatest(each.seen for each in manifests), greatest(each.came for each in manifests)
        send_times(self.spark, move.new_workers, seen, came, sent)
        if not self.task.to_files:
            self._to_spark(operator, sent, move, held)
            return
        own = self.task.join_folder(join, move.after)
        folder = stage_folder(self._made_folder() / STATE / own, move.number)
        write_files(
            self.spark, sent, move, self.context.settings.stretch(), folder, self.task.last.number, held
        )

    def _to_spark(self, operator: int, sent: str, move: StageMove | None, held: Held) -> None:
        checkpoint = f"{self.own}/{operator}/checkpoint"
        write_state(self.spark, sent, move, self.context.settings.stretch(), checkpoint, held)
        adopt_state(
            self.files,
            f"{checkpoint}/state/0",
            f"{self.made}/state/{operator}",
            operator=operator,
            final=f"{self.final}/state/{operator}",
            batch=self.task.last.number,
            partitions=self.partitions,
        )

    def _made_folder(self) -> Path:
        folder = self.files.local(self.made)
        if folder is None:
            raise WJoinError("WJ720", f"wjoin.state is files, and {self.made} is not on a local file system")
        return folder


def _move(task: _Task, joins: Sequence[int], told: str, count: int, partitions: int) -> tuple[int, StageMove]:
    """Return the join, one of some, and the stage whose state has the fingerprint ``told``.

    It has ``count`` workers. Raises WJoinError WJ702 where the statement has none, and WJ711 where several
    joins look alike.
    """
    found = [
        (join, number)
        for join in joins
        if task.before[join].method is Method.MULTIWAY
        for number, stage in enumerate(task.before[join].stages)
        if fingerprint(task.before[join], stage) == told
    ]
    if not found:
        raise WJoinError(
            "WJ702", f"the state of {task.folder} belongs to another statement, or to another plan of it"
        )
    if len(found) > 1 and task.to_files:
        # Each has a folder of its own there.
        raise WJoinError("WJ711", f"{task.name} has several window joins with the same kind of state")
    (join, number), *_ = found
    before, after = task.before[join], task.after[join]
    new = worker_count(after.stages[number], partitions)
    old_workers = _ids(count, task.last.partitions, filed=task.files is not None)
    new_workers = _ids(new, partitions, filed=task.to_files)
    return join, StageMove(before, after, number, old_workers, new_workers)


def _ids(count: int, partitions: int, *, filed: bool) -> tuple[int, ...]:
    """Return the workers of a stage: with state in files it has a partition for each of them."""
    return worker_ids(count) if filed else worker_ids(partitions)[:count]


def _session(spark: SparkSession, last: LastBatch, partitions: int) -> SparkSession:
    """Return a session in which state is read and written as the checkpoint has it."""
    session = spark.newSession()
    prepare(session)
    reading = {"spark.sql.execution.arrow.maxRecordsPerBatch": str(ENTRIES_AT_ONCE)}
    for name, value in {**last.settings, **_WRITING, **reading, PARTITIONS: str(partitions)}.items():
        session.conf.set(name, value)
    return session
