"""What the comparison without a key runs: loads, and the systems that join each, on streams and on tables."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from theta_loads import ThetaLoad

WINDOW = 5


@dataclass(frozen=True)
class ThetaSection:
    """A load as streams and one as tables, and the systems over each.

    Tables have more rows: a query over them takes a second before it begins. Systems take turns, or else run
    one after the other: a predicate that waits goes on waiting while its process is stopped.
    """

    streams: ThetaLoad
    tables: ThetaLoad
    on_streams: tuple[str, ...]
    on_tables: tuple[str, ...]
    in_turns: bool = True

    def load(self, *, tables: bool) -> ThetaLoad:
        """The rows of the tables, or of the streams."""
        return self.tables if tables else self.streams

    def systems(self, *, tables: bool) -> tuple[str, ...]:
        """The systems over tables, or over streams."""
        return self.on_tables if tables else self.on_streams


def _section(
    condition: str,
    rate: int,
    on_streams: tuple[str, ...],
    on_tables: tuple[str, ...],
    streams: int = 2,
    batches: tuple[int, int] = (4, 8),
) -> ThetaSection:
    on_stream, on_table = (
        ThetaLoad(WINDOW, rate * streams * 10, count, streams, condition=condition) for count in batches
    )
    return ThetaSection(on_stream, on_table, on_streams, on_tables)


_PLANS = ("wjoin", "wjoin-psp", "wjoin-atr")
_ON_SPARK = (*_PLANS, "buckets")
_OTHERS = ("duckdb", "polars", "polars-streaming")
_ONE_AND_TWO = ("wjoin-psp", "wjoin-psp-1", "wjoin-atr", "wjoin-atr-1")

SECTIONS: Mapping[str, ThetaSection] = {
    "inequalities": _section("inequalities", 400, _ON_SPARK, (*_ON_SPARK, *_OTHERS)),
    "arithmetic": _section("arithmetic", 400, _ON_SPARK, (*_ON_SPARK, *_OTHERS)),
    "band": _section("band", 400, _ON_SPARK, (*_ON_SPARK, *_OTHERS)),
    # Polars has no functions over the pairs of a join.
    "predicate": _section("predicate", 120, _ON_SPARK, (*_ON_SPARK, "duckdb")),
    "three": _section("three", 150, _ON_SPARK, (*_ON_SPARK, *_OTHERS), streams=3),
    "overhead": _section("overhead", 400, _PLANS, _PLANS),
    "cores": _section("cores", 20, _ONE_AND_TWO, (*_ONE_AND_TWO, "function", "function-1"), batches=(2, 1)),
    "waiting": replace(_section("waiting", 20, _ONE_AND_TWO, _ONE_AND_TWO, batches=(2, 1)), in_turns=False),
}


def quick(section: ThetaSection) -> ThetaSection:
    """Return what a quick run measures of a section."""
    return _with_batches(section, lambda load: load.batch_rows // 4)


def at_rate(section: ThetaSection, rate: int) -> ThetaSection:
    """Return a section whose streams have this many rows per second of event time each."""
    return _with_batches(section, lambda load: rate * load.streams * load.seconds)


def _with_batches(section: ThetaSection, rows: Callable[[ThetaLoad], int]) -> ThetaSection:
    streams, tables = (replace(load, batch_rows=rows(load)) for load in (section.streams, section.tables))
    return replace(section, streams=streams, tables=tables)
