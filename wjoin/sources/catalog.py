"""The catalog of a session: the streams, sinks and views over streams that it has declared."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession

from wjoin.grammar.durations import from_pairs
from wjoin.grammar.errors import WJoinError, WJoinWarning
from wjoin.grammar.shown import shown
from wjoin.grammar.spans import Span
from wjoin.grammar.statement_kinds import CommitWhen, CreateSink, CreateStream
from wjoin.grammar.suggestions import suggestion
from wjoin.grammar.syntax import Identifier
from wjoin.planner.bind.event_time import time_kind
from wjoin.planner.catalog import UNDECLARED, Delay, Delays, Estimate, Origin
from wjoin.planner.cost.shed_share import MODELS
from wjoin.planner.plan.physical import TimeKind
from wjoin.sources.sink_retention import Retention
from wjoin.sources.site_streams import StreamAtSites
from wjoin.spark.notices import warn
from wjoin.spark.session_things import held

Declared = TypeVar("Declared")

DATAFRAME = "dataframe"
"""The source of a stream that was registered from Python."""

FUNCTION = "foreachBatch"
"""The format of a sink that is a function in Python."""

AHEAD = "wjoin.ahead"
"""The option of a stream that says how much later than its micro-batch a row may be."""

SHEDDING = "wjoin.shedding"
"""The option of a stream, and the setting, that say how rows are shed when a join is overloaded."""

OWN_OPTIONS = (AHEAD, SHEDDING)
"""The options of a stream that its source does not know."""


MOST_NAME = 200
"""Bytes in the name of a stream or a sink at the most."""


def check_name(kind: str, name: str, span: Span | None = None) -> None:
    """Refuse the name of a stream or a sink that cannot be shown. Raises WJoinError WJ106.

    That of a sink is one of a folder, too: of its checkpoint.
    """
    message = None
    if shown(name) != name or not 0 < len(name.encode("utf-8", "replace")) <= MOST_NAME:
        message = f"the name of a {kind} has 1 to {MOST_NAME} bytes, and all of its signs print"
    elif kind == "sink" and ("/" in name or "\\" in name or name in (".", "..")):
        message = "the name of a sink is that of a folder, too: / and \\ are not in it"
    if message is not None:
        raise WJoinError("WJ106", message, span=span, help="take another name")


@dataclass(frozen=True)
class StreamDeclaration:
    """What a session knows of a named stream beyond its schema.

    ``event_time`` is None where the relation's only timestamp column is meant; ``delays`` are those
    of the columns that may be it. ``derived``: it is a view over streams, so that no other column has
    a delay that could be assumed. ``frame`` holds the stream where it could be given no name in Spark,
    ``streaming`` whether it streams, None where Spark can be asked. ``rows`` are those of the source,
    with what it tells of each row in columns that are hidden behind a name; None where the source does
    not keep to an order. ``statement`` is what declared it, None for a view or a DataFrame. ``site``: where
    it is read from sites. ``late_into``: the sink that its late rows go to, empty for none. ``home``: the
    column that says at which node a row lives, empty where none does.
    """

    name: str
    event_time: str | None
    delays: Delays
    source: str
    derived: bool = False
    frame: DataFrame | None = None
    streaming: bool | None = None
    rows: DataFrame | None = None
    statement: CreateStream | None = None
    site: StreamAtSites | None = None
    late_into: str = ""
    home: str = ""


@dataclass(frozen=True)
class SinkDeclaration:
    """Where an INSERT INTO writes: Spark's format, options and partition columns.

    ``retain`` is None where results are kept for good. ``write`` is the function of a sink of Python's, which
    is given the rows of each micro-batch and its number.
    """

    name: str
    provider: str
    options: dict[str, str] = field(repr=False)
    partitioned_by: tuple[str, ...]
    statement: CreateSink | None = None
    retain: Retention | None = None
    write: Callable[[DataFrame, int], None] | None = field(default=None, repr=False)

    @property
    def commit_when(self) -> CommitWhen | None:
        """What commits its results, None where each micro-batch does."""
        return None if self.statement is None else self.statement.commit_when


@dataclass
class Catalog:
    """Streams (views over streams among them) and sinks by name, case ignored; statistics of the streams."""

    streams: dict[str, StreamDeclaration] = field(default_factory=dict)
    sinks: dict[str, SinkDeclaration] = field(default_factory=dict)
    statistics: dict[str, dict[Origin, dict[str, float]]] = field(default_factory=dict)
    warned: set[str] = field(default_factory=set)

    def stream(self, name: str) -> StreamDeclaration | None:
        """Return the declaration of a stream, None when there is none."""
        return self.streams.get(name.lower())

    def add_stream(self, declaration: StreamDeclaration) -> None:
        """Declare a stream, in place of one of the same name."""
        name = declaration.name.lower()
        self.warned = {key for key in self.warned if not key.startswith(f"{name}.")}
        self.streams[declaration.name.lower()] = declaration

    def note_view(self, name: str, delays: Delays | None) -> None:
        """Remember a view over streams with the delays of its columns; None: it reads none.

        A name that was a stream's is then another's.
        """
        if delays is None:
            self.streams.pop(name.lower(), None)
        else:
            self.add_stream(StreamDeclaration(name, None, delays, "view", derived=True))

    def rename_view(self, name: str, new: str | None) -> None:
        """Remember that a view has another name, or None any more."""
        declared = self.streams.pop(name.lower(), None)
        if new is not None:
            self.note_view(new, declared.delays if declared else None)

    def learn(self, name: str, origin: Origin, values: dict[str, float]) -> None:
        """Take statistics of a stream from one source, in place of what it told before by their names."""
        self.statistics.setdefault(name.lower(), {}).setdefault(origin, {}).update(values)

    def known(self, name: str) -> dict[str, Estimate]:
        """Return the statistics of a stream by name, each from the first source that has it."""
        sources = self.statistics.get(name.lower(), {})
        known: dict[str, Estimate] = {}
        for origin in reversed(Origin):
            known |= {each: Estimate(value, origin) for each, value in sources.get(origin, {}).items()}
        return known

    @property
    def delays(self) -> dict[str, Delays]:
        """The delays of the streams' columns, by the names of the streams in lower case."""
        return {name: declared.delays for name, declared in self.streams.items()}

    def warn_once(self, key: str, warning: WJoinWarning) -> None:
        """Warn of something about a relation, once in a session."""
        if key not in self.warned:
            self.warned.add(key)
            warn(warning)


def catalog_of(spark: SparkSession) -> Catalog:
    """Return what is declared on a SparkSession: it has the names of the streams, whoever declared them."""
    return held(spark).get(Catalog, Catalog)


def forget(spark: SparkSession) -> None:
    """Forget what is declared on a SparkSession: by its DataFrames a catalog keeps the session itself."""
    held(spark).drop(Catalog)


def find(declared: dict[str, Declared], kind: str, name: str, span: Span) -> Declared:
    """Return a declaration by name. Raises WJoinError WJ602 with the nearest name."""
    if name.lower() in declared:
        return declared[name.lower()]
    help = suggestion(name, declared)
    raise WJoinError("WJ602", f"no {kind} is named {name}", span=span, help=help)


def find_stream(catalog: Catalog, name: Identifier, instead: str) -> StreamDeclaration:
    """Return a stream by name. Raises WJoinError WJ602; of a sink it says to write ``instead``."""
    _refuse_other(catalog.streams, catalog.sinks, name, ("a sink", "a stream"), instead)
    return find(catalog.streams, "stream", name.name, name.span)


def find_sink(catalog: Catalog, name: Identifier, instead: str) -> SinkDeclaration:
    """Return a sink by name; as ``find_stream``."""
    streams = {key: each for key, each in catalog.streams.items() if each.source != "view"}
    _refuse_other(catalog.sinks, streams, name, ("a stream", "a sink"), instead)
    return find(catalog.sinks, "sink", name.name, name.span)


def _refuse_other(
    meant: Mapping[str, object],
    other: Mapping[str, object],
    name: Identifier,
    kinds: tuple[str, str],
    instead: str,
) -> None:
    if name.name.lower() in meant or name.name.lower() not in other:
        return
    message = f"{name.name} is {kinds[0]}, not {kinds[1]}"
    help = f"write {instead.format(name.name)}"
    raise WJoinError("WJ602", message, span=name.span, help=help)


def declared_delays(
    event_time: str | None,
    delay: int | None,
    columns: Mapping[str, str],
    ahead: int | None = None,
    shedding: str | None = None,
    idle_after: int | None = None,
) -> dict[str, Delay]:
    """Return the delays of the columns that may be a stream's event time, from what was declared.

    ``delay`` and all after ``columns``, Spark types by name, are None where nobody has told them.
    """
    known = UNDECLARED if delay is None else Delay(delay)
    known = replace(known, ahead=ahead, shedding=shedding, idle_after=idle_after)
    if event_time is not None:
        return {event_time.lower(): known}
    timestamps = (TimeKind.TIMESTAMP, TimeKind.TIMESTAMP_NTZ)
    return {name.lower(): known for name, kind in columns.items() if time_kind(kind) in timestamps}


def declared_ahead(ahead: int, event_time: str | None, columns: Mapping[str, str]) -> int:
    """Return how many microseconds later than its micro-batch a row of a stream may be.

    Raises WJoinError WJ110 for a negative number, and WJ305 where no clock shows the event time.
    """
    if ahead < 0:
        raise WJoinError("WJ110", "a limit for times ahead cannot be negative", help="give 0 or more")
    kinds = {name.lower(): kind for name, kind in columns.items()}
    if event_time is not None and time_kind(kinds[event_time.lower()]) is TimeKind.INTEGRAL:
        message = f"a limit for times ahead has a unit, but the event time {event_time} is integral"
        raise WJoinError("WJ305", message, help="leave it out, or convert the event time to a timestamp")
    return ahead


def declared_idle(idle_after: int) -> int:
    """Return the microseconds after which a stream is silent. Raises WJoinError WJ110 below a millisecond."""
    if idle_after < 1000:
        help = "write one such as 1 MINUTE"
        raise WJoinError("WJ110", "a stream is silent after a millisecond or more", help=help)
    return idle_after


def declared_shedding(model: str) -> str:
    """Return the model by which a stream is shed. Raises WJoinError WJ603 for one that there is not."""
    if model.lower() not in MODELS:
        raise WJoinError("WJ603", f"{SHEDDING} has no value {model}", help=f"known: {', '.join(MODELS)}")
    return model.lower()


def microseconds(delay: str | timedelta | int) -> int:
    """Return an allowed disorder in microseconds; a whole number stands for an integral event time's unit."""
    if isinstance(delay, timedelta):
        return delay // timedelta(microseconds=1)
    return delay if isinstance(delay, int) else from_pairs(delay, Span(0, len(delay)))
