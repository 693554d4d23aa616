"""The streams, sinks and views that a session has declared."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

from pyspark.sql import DataFrame

from wjoin.grammar.durations import from_pairs
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.grammar.syntax import CreateSink, CreateStream
from wjoin.grammar.tokens import Kind, scan
from wjoin.planner.catalog import Estimate, Origin
from wjoin.planner.names import suggestion

Declared = TypeVar("Declared")


@dataclass(frozen=True)
class StreamDeclaration:
    """What a session knows of a named stream beyond its schema.

    ``event_time`` is None where the relation's only timestamp column is meant; ``delay`` is in
    microseconds (the column's own unit when integral), None where no bound is known. ``frame``
    holds the stream where it could be given no name in Spark, ``streaming`` whether it streams,
    None where Spark can be asked. ``statement`` is what declared it, None for a view or a DataFrame.
    """

    name: str
    event_time: str | None
    delay: int | None
    source: str
    frame: DataFrame | None = None
    streaming: bool | None = None
    statement: CreateStream | None = None


@dataclass(frozen=True)
class SinkDeclaration:
    """Where an INSERT INTO writes: Spark's format, options and partition columns."""

    name: str
    provider: str
    options: dict[str, str]
    partitioned_by: tuple[str, ...]
    statement: CreateSink | None = None


@dataclass
class Declarations:
    """Streams (views over streams among them) and sinks by name, case ignored."""

    streams: dict[str, StreamDeclaration] = field(default_factory=dict)
    sinks: dict[str, SinkDeclaration] = field(default_factory=dict)
    statistics: dict[str, dict[Origin, dict[str, float]]] = field(default_factory=dict)

    def stream(self, name: str) -> StreamDeclaration | None:
        """Return the declaration of a stream, None when there is none."""
        return self.streams.get(name.lower())

    def add_stream(self, declaration: StreamDeclaration) -> None:
        """Declare a stream, in place of one of the same name."""
        self.streams[declaration.name.lower()] = declaration

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

    def named_in(self, text: str) -> list[StreamDeclaration]:
        """Return the declared streams whose names stand in a piece of SQL."""
        names = {
            token.text.strip("`").replace("``", "`").lower()
            for token in scan(text)
            if token.kind in (Kind.WORD, Kind.QUOTED)
        }
        return [declaration for name, declaration in self.streams.items() if name in names]

    def derived(self, name: str, text: str) -> StreamDeclaration | None:
        """Return a declaration for a relation that reads declared streams, None when it reads none.

        Its rows may be out of order by as much as those of any stream that it reads.
        """
        sources = self.named_in(text)
        if not sources:
            return None
        delays = [source.delay for source in sources]
        known = [delay for delay in delays if delay is not None]
        return StreamDeclaration(name, None, max(known) if len(known) == len(delays) else None, "view")


def find(declared: dict[str, Declared], kind: str, name: str, span: Span, text: str) -> Declared:
    """Return a declaration by name. Raises WJoinError WJ602 with the nearest name."""
    if name.lower() in declared:
        return declared[name.lower()]
    help = suggestion(name, declared)
    raise WJoinError("WJ602", f"there is no {kind} {name}", span=span, text=text, help=help)


def microseconds(delay: str | timedelta | int) -> int:
    """Return an allowed disorder in microseconds; a whole number stands for an integral event time's unit."""
    if isinstance(delay, timedelta):
        return delay // timedelta(microseconds=1)
    return delay if isinstance(delay, int) else from_pairs(delay, Span(0, len(delay)))
