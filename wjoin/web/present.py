"""A query at a moment: what is known of it, what it does then, how far it is behind, and how that is said."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from wjoin.measured.points import Hour, Point
from wjoin.measured.progress import lags
from wjoin.planner.explain.document import Document
from wjoin.planner.figures import figure
from wjoin.planner.planning import PlannedSelect

ENDINGS = ("ended", "stopped", "failed")
"""The states of a query that does not run any more."""


@dataclass(frozen=True)
class QueryState:
    """What is known of a query at a moment, its ``clock`` in seconds since 1970.

    ``run`` is Spark's name of this run of it, ``id`` that of all its runs, ``name`` its own among those that
    are shown. ``note`` tells of rows that wait. ``called`` is the name that it has also where others had it
    before. ``started`` is in seconds since 1970. ``plans`` are its W-joins by the numbers under which they
    were compiled, as far as they are known, ``documents`` what EXPLAIN tells of them.
    """

    run: str
    id: str
    name: str
    called: str
    state: str
    started: float
    hour: Hour
    error: str | None = None
    note: str = ""
    sink: str | None = None
    checkpoint: str | None = None
    statement: str | None = None
    plans: Mapping[int, PlannedSelect] = field(default_factory=dict)
    documents: Mapping[int, Document] = field(default_factory=dict)
    clock: float = field(default_factory=time.time)

    @property
    def active(self) -> bool:
        """Whether it runs, as far as is known."""
        return self.state not in ENDINGS

    @cached_property
    def recent(self) -> Point:
        """What it does at present: nothing, where it does not run."""
        recent = self.hour.present(self.clock, rests=self.state == "idle")
        return recent if self.active else Point(begins=recent.begins, ends=recent.ends)

    @property
    def lag(self) -> dict[str, float]:
        """Seconds by which the newest row of each stream is behind the clock, of a query that runs."""
        total = self.hour.total
        return lags(total.seen, self.clock) if self.active else total.lag

    def rate(self, count: float) -> float:
        """Return how often a second something happens at present that ``recent`` has counted."""
        return self.recent.rate(count)


def joins_of(at: QueryState) -> list[int]:
    """Return the numbers under which the W-joins of a query were compiled, innermost first."""
    told = (int(key.partition(".")[0]) for key in at.hour.total.stages)
    return sorted({*at.plans, *told})


def stage_name(at: QueryState, join: int, stage: int) -> str:
    """Return how a stage is called, counted from 1; with its W-join where there are several."""
    joins = joins_of(at)
    before = f"join {joins.index(join) + 1}, " if len(joins) > 1 else ""
    return f"{before}stage {stage + 1}"


def a_second(rate: float) -> str:
    """Return how often a second something happens, as people read it."""
    return figure(round(rate, 1) if rate >= 1 else float(f"{rate:.2g}"))
