"""SELECT … FROM STATE OF QUERY q: the rows that a query keeps, and for what each waits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from wjoin.context import Asked, Context
from wjoin.executor.spark.moved_state import ENTRIES_AT_ONCE, stored_manifests
from wjoin.executor.spark.state_rows import OWN, Place, filed_rows, stored_rows
from wjoin.executor.state.kept_columns import KeptJoin
from wjoin.executor.state.starting import STATE
from wjoin.executor.state.worker_files import stage_folder
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.plain import typed
from wjoin.grammar.spans import Span
from wjoin.grammar.statement_kinds import StateRead, StateSelect
from wjoin.grammar.syntax import Identifier
from wjoin.measured.beside import UNREACHABLE
from wjoin.measured.kept import Kept
from wjoin.planner.plan.physical import Method
from wjoin.spark.cluster import setting
from wjoin.spark.hadoop_files import Files
from wjoin.statements.inserts import explained_checkpoint
from wjoin.statements.queries import find_query

_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"

_ATTEMPTS = 3
"""How often the state of a running query is read, which may remove what is being read."""


def select_state(asked: Asked, statement: StateSelect, directory: str | None = None) -> DataFrame:
    """Return the rows of a SELECT over the states of queries, as they are after their last micro-batches.

    ``directory``: where the checkpoints of a script are. Raises WJoinError.
    """
    frames: dict[str, DataFrame] = {}
    text, end = "", statement.span.start
    for number, read in enumerate(statement.reads):
        name = f"__wjoin_state_{number}"
        frames[name] = _state(asked, _folder(asked, read, directory), read.span)
        text += _escaped(asked.text[end : read.span.start]) + f"{{{name}}}"
        end = read.span.end
    text += _escaped(asked.text[end : statement.span.end])
    given: dict[str, Any] = {"args": asked.params} if asked.params else {}
    return asked.engine.run(text, **given, **frames)


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _folder(asked: Asked, read: StateRead, directory: str | None) -> str:
    """Return the checkpoint that is meant. Raises WJoinError WJ602 and WJ606."""
    if read.query is None:
        return str(read.checkpoint)
    known = [each for each in asked.queries.known if read.query.matches(each.name)]
    if not known:
        folder = checkpoint_of(asked, read.query, directory)
        if folder is not None and Files.of(asked.engine.spark).exists(f"{folder}/metadata"):
            return folder
    elsewhere = "for another session's, name the folder of its checkpoint: STATE OF QUERY 'folder'"
    running = find_query(asked.queries, read.query, elsewhere)
    if running.checkpoint is None:
        message, help = f"{running.name} has no checkpoint", "insert its results into a sink: INSERT INTO …"
        raise WJoinError("WJ606", message, span=read.span, help=help)
    return running.checkpoint


def checkpoint_of(context: Context, name: Identifier, directory: str | None) -> str | None:
    """Return the folder where a query of a name has its checkpoint if it has one, None if none is known."""
    asked = directory or context.settings.get("wjoin.checkpoint")
    return explained_checkpoint(context, (name,)) if asked is None else f"{asked.rstrip('/')}/{name.name}"


@dataclass(frozen=True)
class _Stage:
    """A stage of a join with state: the numbers of both, and the name that its state has."""

    join: int
    number: int
    plan: str
    workers: int


def _state(asked: Asked, folder: str, span: Span) -> DataFrame:
    """Return the rows of the state of a checkpoint. Raises WJoinError WJ606, WJ710 and WJ719."""
    spark, folder = asked.engine.spark, folder.rstrip("/")
    for attempt in range(_ATTEMPTS):
        kept = Kept(spark, folder)
        number = kept.last_commit
        if number < 0:
            raise WJoinError("WJ710", f"the checkpoint {folder} has no micro-batch yet", span=span)
        try:
            with setting(spark, _BATCH, str(ENTRIES_AT_ONCE)):
                # Read at once: what is read later may be gone, and all workers are to be of one micro-batch.
                return _rows(spark, folder, kept, number, span).localCheckpoint()
        except (WJoinError, *UNREACHABLE):
            if attempt == _ATTEMPTS - 1 or Kept(spark, folder).last_commit == number:
                raise
    raise AssertionError("the last attempt returns or raises")


def _rows(spark: SparkSession, folder: str, kept: Kept, number: int, span: Span) -> DataFrame:
    joins, stages = _told(kept, folder, span)
    filed = kept.home.checkpoint
    frames: list[DataFrame] = []
    if filed is not None:
        for join, told in joins.items():
            root = filed / STATE / str(join)
            places = [
                Place(each.number, str(stage_folder(root, each.number)), each.workers)
                for each in stages
                if each.join == join
            ]
            frames.append(_of_join(filed_rows(spark, places, number, told), join))
    else:
        left = list(stages)
        for operator in Files.of(spark).numbers(f"{folder}/state"):
            plans = {each.plan for each in stored_manifests(spark, folder, operator)}
            stage = next((each for each in left if each.plan in plans), None)
            if stage is not None:
                left.remove(stage)
                place = Place(stage.number, folder, operator=operator)
                frames.append(_of_join(stored_rows(spark, place, number, joins[stage.join]), stage.join))
    if not frames:
        raise WJoinError("WJ710", f"the query of the checkpoint {folder} keeps no rows", span=span)
    return _together(frames)


def _of_join(rows: DataFrame, join: int) -> DataFrame:
    return rows.select(F.lit(join + 1).alias("join"), "*")


def _told(kept: Kept, folder: str, span: Span) -> tuple[Mapping[int, KeptJoin], Sequence[_Stage]]:
    """Return the joins that keep state by their numbers, and their stages. Raises WJoinError WJ606."""
    joins: dict[int, KeptJoin] = {}
    stages: list[_Stage] = []
    for number, each in enumerate(kept.joins):
        if each["method"] != Method.MULTIWAY.value:
            continue
        if each.get("kept") is None:
            message = f"{folder} does not say what its state holds: an earlier version began it"
            raise WJoinError("WJ606", message, span=span, help="start its query with a new checkpoint")
        joins[number] = typed(KeptJoin, each["kept"])
        stages += [
            _Stage(number, place, own["plan"], own["workers"]) for place, own in enumerate(each["stages"])
        ]
    return joins, stages


def _together(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of several joins; where a stream has other columns than one before, under a name of its
    own."""
    first, *others = frames
    for each in others:
        first = first.unionByName(_renamed(each, first), allowMissingColumns=True)
    return first


def _renamed(rows: DataFrame, others: DataFrame) -> DataFrame:
    types = {field.name.lower(): field.dataType for field in others.schema}
    for name, kind in _streams(rows):
        known = types.get(name.lower())
        if known is not None and known != kind:
            number = next(n for n in range(2, len(types) + 3) if f"{name.lower()}_{n}" not in types)
            rows = rows.withColumnRenamed(name, f"{name}_{number}")
    return rows


def _streams(rows: DataFrame) -> Iterator[tuple[str, Any]]:
    return ((field.name, field.dataType) for field in rows.schema if field.name not in ("join", *OWN))
