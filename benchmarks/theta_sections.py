"""What the comparison without a key runs: loads, and the systems that join each, on streams and on tables."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from theta_loads import ThetaLoad

WINDOW = 5


@dataclass(frozen=True)
class ThetaSection:
    """A load, and the systems over it as streams and as tables: those of one kind take turns, all of them."""

    load: ThetaLoad
    on_streams: tuple[str, ...]
    on_tables: tuple[str, ...] = ()

    def systems(self, *, tables: bool) -> tuple[str, ...]:
        """The systems over tables, or over streams."""
        return self.on_tables if tables else self.on_streams


_PLANS = ("wjoin", "wjoin-psp", "wjoin-atr")
_ON_SPARK = (*_PLANS, "buckets")
_OTHERS = ("duckdb", "polars", "polars-streaming")


def _load(condition: str, rate: int, batches: int = 4, streams: int = 2) -> ThetaLoad:
    return ThetaLoad(WINDOW, rate * streams * 10, batches, streams, condition=condition)


SECTIONS: Mapping[str, ThetaSection] = {
    "inequalities": ThetaSection(_load("inequalities", 400), _ON_SPARK, (*_ON_SPARK, *_OTHERS)),
    "arithmetic": ThetaSection(_load("arithmetic", 400), _ON_SPARK, (*_ON_SPARK, *_OTHERS)),
    "band": ThetaSection(_load("band", 400), _ON_SPARK, (*_ON_SPARK, *_OTHERS)),
    # Polars has no functions over the pairs of a join.
    "predicate": ThetaSection(_load("predicate", 30), _ON_SPARK, (*_ON_SPARK, "duckdb")),
    "three": ThetaSection(_load("three", 150, streams=3), _ON_SPARK, (*_ON_SPARK, *_OTHERS)),
    "overhead": ThetaSection(_load("overhead", 400), _PLANS, _PLANS),
    "cores": ThetaSection(
        _load("cores", 10, batches=3),
        ("wjoin-psp", "wjoin-psp-1", "wjoin-atr", "wjoin-atr-1"),
        ("wjoin-psp", "wjoin-psp-1", "wjoin-atr", "wjoin-atr-1"),
    ),
}


def quick(section: ThetaSection) -> ThetaSection:
    """Return what a quick run measures of a section."""
    load = section.load
    return replace(section, load=replace(load, batch_rows=load.batch_rows // 4))
