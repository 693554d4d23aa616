"""Results of a join for each comparison (S2J, equation 1 and appendix D): with an index, and pair by pair."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from loads import Load
from report import Curve, Panel, Table, Verdict
from s2j_parts import Judged, Part, told
from s2j_tasks import SECOND
from service import DisagreementError, KernelJoin, serve

from tests.kit.planned import block_of, plan_over, stream_of
from wjoin.executor.arrivals import Arrivals
from wjoin.executor.report import Report
from wjoin.parts.routes.route import Role
from wjoin.planner.plan.physical import PhysicalPlan

SPREAD = 1 << 30
"""Values of the column of a band: whole numbers from 0 to below that."""


@dataclass(frozen=True)
class Pair:
    """Two streams and their join: rows a second of each, seconds of the window and of all rows.

    ``selectivity``: the share of the pairs inside the window that are results. ``equality``: whether two
    values are to be equal, else near each other.
    """

    selectivity: float
    equality: bool
    rate: int = 200
    window: int = 20
    seconds: int = 40

    def plan(self, kernel: str) -> PhysicalPlan:
        """Return the plan of the join with a kernel, on one worker."""
        width = round(self.selectivity * SPREAD / 2)
        where = "C.value = H.value" if self.equality else f"abs(C.value - H.value) <= {width}"
        text = (
            f"SELECT /*+ ALGORITHM({kernel}) */ C.ts, H.ts FROM c C, h H WINDOW = {self.window} SECONDS "
            f"WHERE {where}"
        )
        return plan_over(text, [stream_of({"value": "bigint"})] * 2).physical

    def load(self, plan: PhysicalPlan) -> Load:
        """Return the rows of the streams, a second in a micro-batch."""
        random = np.random.default_rng(11)
        values = round(1 / self.selectivity) if self.equality else SPREAD
        batches = []
        for second in range(self.seconds):
            arrivals = Arrivals([[], []])
            for stream in range(2):
                rows = {
                    "ts": pa.array(np.sort(random.integers(0, SECOND, self.rate)) + second * SECOND),
                    "value": pa.array(random.integers(0, values, self.rate)),
                }
                arrivals.blocks[stream].append((Role.BOTH, block_of(plan, stream, rows)))
                arrivals.seen[stream] = (second + 1) * SECOND - 1
            batches.append(arrivals)
        return Load(tuple(batches), 0)


class Searched(KernelJoin):
    """Counts, beside the pairs that are compared, what it takes to find them: comparisons of halvings.

    Each new row is searched for in all runs of the other stream, whose rows are sorted. ``searches``: of an
    index as the paper has it, one for each new row. An upper bound: runs of another time are left out.
    """

    def __init__(self, plan: PhysicalPlan, ranges: int) -> None:
        super().__init__(plan)
        self.ranges = ranges
        self.halvings = self.searches = 0

    def batch(self, arrivals: Arrivals, counted: Report) -> Iterator[pa.RecordBatch]:
        """Yield the results of a micro-batch."""
        new = [sum(block.num_rows for _, block in group) for group in arrivals.blocks]
        for stream, rows in enumerate(new):
            runs = [each.rows for each in self._manifest.slices[1 - stream]]
            # The later stream meets what the first one has just brought, too.
            runs += [new[0]] if stream else []
            self.searches += rows
            self.halvings += rows * sum(self.ranges * each.bit_length() for each in runs)
        yield from super().batch(arrivals, counted)


@dataclass(frozen=True)
class Efficiency:
    """What a kernel did: results, pairs compared, comparisons of its searches, searches of an index."""

    results: int
    pairs: int
    halvings: int
    searches: int

    @property
    def counted(self) -> float:
        """Results for each comparison, those of searching among them."""
        return self.results / (self.pairs + self.halvings)

    @property
    def of_pairs(self) -> float:
        """Results for each pair that is compared."""
        return self.results / self.pairs

    def by_paper(self, pair: Pair) -> float:
        """Return what appendix D calls the efficiency: results for each O(1), or O(log n), of a search."""
        held = pair.rate * pair.window
        return self.results / (self.searches * (1 if pair.equality else held.bit_length()))


KERNELS = {True: ("NLW", "HW"), False: ("NLW", "ORDERED")}
"""Pair by pair and with an index: for an equality, and for a band."""


def measured(pair: Pair) -> dict[str, Efficiency]:
    """Return what both kernels did. Raises DisagreementError where their results differ."""
    found, results = {}, set()
    for kernel in KERNELS[pair.equality]:
        plan = pair.plan(kernel)
        # The key and both ends of its times; without a key, both ends of the band.
        ranges = {"NLW": 0, "HW": 3, "ORDERED": 2}[kernel]
        join = Searched(plan, ranges)
        service = serve(join, pair.load(plan))
        results.add(service.found)
        pairs = int(service.comparisons.sum())
        found[kernel] = Efficiency(service.found.count, pairs, join.halvings, join.searches)
    if len(results) > 1:
        raise DisagreementError(f"{pair}: {results}")
    return found


def efficiency(*, quick: bool) -> Part:
    """Results for each comparison."""
    shares = (0.01, 0.001) if quick else (0.1, 0.01, 0.001, 0.0001)
    lines, ratios, curves = [], {}, []
    for equality, (nested, index) in KERNELS.items():
        pair = Pair(shares[0], equality, seconds=24 if quick else 40)
        name = "equality" if equality else "band"
        values = []
        for share in shares:
            at = replace(pair, selectivity=share)
            found = measured(at)
            pairwise, indexed = found[nested], found[index]
            ratios[name, share] = (
                indexed.of_pairs / pairwise.of_pairs,
                indexed.counted / pairwise.counted,
                indexed.by_paper(at) / pairwise.of_pairs,
            )
            cells = (pairwise.of_pairs, indexed.of_pairs, indexed.counted, indexed.by_paper(at))
            times = (f"{each:,.0f}" for each in ratios[name, share])
            lines.append([f"{name}, {share:g}", *(f"{each:.5f}" for each in cells), *times])
            values.append((pairwise.of_pairs, indexed.of_pairs, indexed.counted))
        for place, kind in enumerate((nested, index, f"{index}, with its searches")):
            curves.append(Curve(kind, np.array(shares), np.array([each[place] for each in values])))
        told(name)
    head = [
        "join, share of pairs",
        "NLW",
        "index: pairs",
        "and searches",
        "by the paper",
        "times as many: pairs",
        "and searches",
        "by the paper",
    ]
    panels = [
        Panel(
            name,
            "share of pairs that are results",
            curves[begin : begin + 3],
            True,
            "results a comparison",
            True,
        )
        for name, begin in (("equality", 0), ("band", 3))
    ]
    usual = [ratio for (_, share), ratio in ratios.items() if share <= 0.01]
    pairs, searched = [each[0] for each in usual], [each[1] for each in usual]
    return Part(
        [Table("efficiency", "Results for each comparison", head, lines)],
        panels,
        [
            Judged(
                "§3.4, §4.2",
                "an index saves two to three orders of magnitude of the joins of pairs",
                Verdict(min(pairs) > 90, f"{min(pairs):,.0f} to {max(pairs):,.0f} times fewer pairs"),
            ),
            Judged(
                "app. D",
                "and as many of all comparisons, those of its searches among them",
                Verdict(min(searched) > 90, f"{min(searched):,.0f} to {max(searched):,.0f} times fewer"),
            ),
        ],
    )
