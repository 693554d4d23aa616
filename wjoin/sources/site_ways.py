"""Whether a stream shall travel in another way than it does, by what its query has measured while it runs.

Rows say themselves how they have come, so that a query may go on in another way with any micro-batch. The
driver writes the way into a file, at which the reader of the stream looks (``executor.spark.site_source``).
"""

import logging
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from wjoin.grammar.join_kinds import JoinKind
from wjoin.measured.progress import Progress
from wjoin.planner.plan.physical import Shipping
from wjoin.planner.planning import PlannedSelect

LEAST_BATCHES = 5
LEAST_ROWS = 100.0
"""Micro-batches, and rows of a stream, after which what is measured counts."""

FADING = 0.9
"""What counts of a micro-batch when the next one has come: the last ten or so count."""

_log = logging.getLogger("wjoin")


def way_file(place: str) -> Path:
    """Return the file that says how a stream travels, once that is another way than was planned."""
    return Path(_folder().name) / place


def likely_folder(place: str) -> Path:
    """Return the folder in which the readers of two streams tell which of their rows probably match."""
    folder = Path(_folder().name) / place
    folder.mkdir(exist_ok=True)
    return folder


@cache
def _folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="wjoin-ways-")


def matched_now(planned: float, expected: float, measured: float) -> float:
    """Return the share of a stream's rows that are in results, from the one that was planned with.

    ``expected`` and ``measured`` are results for each of its rows: what is in results grows with them.

    >>> matched_now(0.01, 0.02, 0.2), matched_now(0.5, 1.0, 4.0)
    (0.1, 1.0)
    """
    if expected <= 0:
        return min(1.0, measured)
    return min(1.0, planned * measured / expected)


@dataclass
class Revising:
    """Revises how the streams of one running join travel; ``files``: by the streams that may be revised."""

    number: int
    planned: PlannedSelect
    files: dict[int, Path]
    ways: dict[int, Shipping] = field(default_factory=dict)
    batches: int = 0
    newest: int = -1
    results: float = 0.0
    rows: dict[str, float] = field(default_factory=dict)

    def add(self, progress: Progress) -> None:
        """Take what a micro-batch has measured; have streams travel in another way where that costs less."""
        if progress.batch <= self.newest or progress.idle:
            return
        self.newest, self.batches = progress.batch, self.batches + 1
        last = len(self.planned.physical.stages) - 1
        made = progress.stages.get(f"{self.number}.{last}", {}).get("matches", 0)
        self.results = FADING * self.results + made
        for alias, count in progress.rows_in.items():
            self.rows[alias] = FADING * self.rows.get(alias, 0.0) + count
        if self.batches >= LEAST_BATCHES:
            for stream in self.files:
                self._revise(stream)

    def forget(self) -> None:
        """Remove what was written: from now on the streams travel as they were planned."""
        for file in self.files.values():
            file.unlink(missing_ok=True)

    def _revise(self, stream: int) -> None:
        alias = self.planned.physical.streams[stream].alias
        known = next(each for each in self.planned.shipments if each.stream == stream)
        rows = self.rows.get(alias, 0.0) * known.shipped.kept
        if self.rows.get(alias, 0.0) < LEAST_ROWS:
            return
        estimated = self.planned.candidates[0].estimated.stages
        kept = self.planned.statistics[stream].kept_rate
        expected = estimated[-1].results / kept if estimated and kept else 0.0
        if self.planned.physical.kind is not JoinKind.INNER:
            # Of a SEMI or ANTI JOIN each result is a row of its first stream.
            expected = 0.0
        matched = matched_now(known.matched.value, expected, self.results / rows if rows else 0.0)
        best = known.shipped.ways(matched)[0].shipping
        if best is not self.ways.get(stream, known.chosen):
            self.ways[stream] = best
            unfinished = self.files[stream].with_suffix(".unfinished")
            unfinished.write_text(best.value, encoding="utf-8")
            unfinished.replace(self.files[stream])
            _log.info("%s is now shipped %s: %.3g of its rows are in results", alias, best.value, matched)
