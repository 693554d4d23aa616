"""Trials of predicates that do not declare what they cost: on the first rows of what is to be joined.

They are made once in a session, when a statement first runs: EXPLAIN calls no function, and plans with what
is known.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from wjoin.executor.pair_calls import PairFailedError
from wjoin.executor.predicate_trials import SampleColumn, trial
from wjoin.executor.spark.sample import sample
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.plurals import counted
from wjoin.grammar.statement_kinds import CreateStream
from wjoin.planner.conditions.predicate_calls import ReadCall, Trial
from wjoin.planner.figures import figure
from wjoin.planner.text.scope import StreamColumn
from wjoin.sources.catalog import OWN_OPTIONS, StreamDeclaration
from wjoin.sources.computed import with_computed
from wjoin.sources.format_options import without
from wjoin.spark.session_things import held
from wjoin.spark.spark_failures import first_line
from wjoin.udfs.predicate import Predicate

_FILES = frozenset({"parquet", "orc", "json", "csv", "text"})
"""Sources of streams whose rows can be read as a table, too, without taking them from the stream."""

_TYPED = frozenset({"parquet", "orc"})
"""Those that tell their columns without being read."""

Key = tuple[object, ...]


@dataclass
class Tried:
    """The trials of a session, by what was tried on which rows; the predicates are kept with them."""

    found: dict[Key, tuple[Predicate, Trial]] = field(default_factory=dict)

    def latest(self, predicate: Predicate) -> Trial | None:
        """Return the latest trial of a predicate, None where there was none."""
        own = [each for known, each in self.found.values() if known is predicate]
        return own[-1] if own else None


def tried_in(spark: SparkSession) -> Tried:
    """Return the trials of a SparkSession."""
    return held(spark).get(Tried, Tried)


@dataclass(frozen=True)
class SampleTrials:
    """Trials on the rows of a FROM list (planner.conditions.predicate_calls.Trials).

    ``frames`` tell what samples are taken of, None where none can be; ``names`` are the aliases. Unless the
    statement ``runs``, nothing is called: what was tried before is told.
    """

    spark: SparkSession
    names: Sequence[str]
    frames: Sequence[Callable[[], DataFrame | None]]
    runs: bool = True

    def of(self, call: ReadCall) -> Trial:
        """Return what a call does on a sample.

        What fails here is told, and the statement is planned without it.
        """
        frames = {}
        for number in sorted(call.streams):
            frame = self.frames[number]()
            if frame is None:
                return _not_tried(f"the rows of {self.names[number]} exist only while the query runs")
            frames[number] = frame
        hashes = {number: frame.semanticHash() for number, frame in frames.items()}
        key, known = _key(call, hashes), tried_in(self.spark)
        if key not in known.found:
            if not self.runs:
                return _not_tried("EXPLAIN calls no function; EXPLAIN ANALYZE and the run of a query do")
            same = [(n, m) for n in hashes for m in hashes if n < m and hashes[n] == hashes[m]]
            known.found[key] = call.predicate, self._tried(call, frames, same)
        return known.found[key][1]

    def _tried(self, call: ReadCall, frames: dict[int, DataFrame], same: Sequence[tuple[int, int]]) -> Trial:
        rows: dict[int, dict[str, pa.Array]] = {}
        for number, frame in frames.items():
            columns = [each.column.name for each in _columns(call) if each.stream == number]
            try:
                rows[number] = sample(frame, list(dict.fromkeys(columns)))
            except Exception as error:  # noqa: BLE001 (a statement that runs shall be planned)
                return _not_tried(f"no rows of {self.names[number]} could be read: {first_line(error)}")
        arguments = [
            SampleColumn(each.stream, rows[each.stream][each.column.name])
            if isinstance(each, StreamColumn)
            else each
            for each in call.arguments
        ]
        try:
            found = trial(call.predicate, arguments, call.asked, same)
        except (PairFailedError, WJoinError) as error:
            why = error.message if isinstance(error, WJoinError) else str(error)
            return _not_tried(f"a call for sampled rows failed: {' '.join(why.split())}")
        if found is None:
            return _not_tried("no rows to try it on")
        counts = (
            f"{len(next(iter(each.values())))} of {self.names[number]}" for number, each in rows.items()
        )
        words = f"tried on {counted(figure(found.pairs), 'pair')} of the first rows, {' and '.join(counts)}"
        return Trial(found.cost_us, found.share, words)


def _not_tried(why: str) -> Trial:
    return Trial(None, None, f"not measured: {why}")


def _columns(call: ReadCall) -> list[StreamColumn]:
    return [each for each in call.arguments if isinstance(each, StreamColumn)]


def _key(call: ReadCall, hashes: Mapping[int, int]) -> Key:
    """Return what a trial depends on: the function, the rows, the columns and what is asked."""
    arguments = [
        (hashes[each.stream], each.column.name.lower()) if isinstance(each, StreamColumn) else repr(each)
        for each in call.arguments
    ]
    return id(call.predicate), *arguments, repr(call.asked)


def sampled(frame: DataFrame, declared: StreamDeclaration | None) -> DataFrame | None:
    """Return what a sample of a FROM item is taken of, None where its rows can only be streamed.

    Files of a stream are read as a table.
    """
    if not frame.isStreaming:
        return frame
    statement = None if declared is None else declared.statement
    return None if statement is None else _table(frame.sparkSession, statement)


def _table(spark: SparkSession, statement: CreateStream) -> DataFrame | None:
    provider = statement.provider.name.lower()
    if provider not in _FILES or (statement.columns is None and provider not in _TYPED):
        return None
    reader = spark.read.format(provider).options(**without(dict(statement.options), *OWN_OPTIONS))
    if statement.columns is not None:
        reader = reader.schema(statement.columns)
    try:
        return with_computed(reader.load(), statement)
    except Exception:  # noqa: BLE001 (the stream itself says what is wrong with its source)
        return None
