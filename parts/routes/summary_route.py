"""Routes of approximate joins (DFT joins, sections 2 and 3): a row lives at its home, and visits other nodes.

A worker is a node. Rows of one node meet exactly; which other nodes a row visits follows from what is known
of their windows (``parts.summaries``), so that some results are not made.
"""

from collections.abc import Iterator

import numpy as np

from wjoin.parts.kernels.runs import Int64Array
from wjoin.parts.routes.route import Codes, Role, Route, RowSlices, Share, Visits, by_worker
from wjoin.parts.summaries.summary import Summary


class SummaryRoute(Route):
    """A row is stored at its home, and visits the nodes that ``Visits`` tell."""

    meant_for = "two or more streams that meet on a key, and have homes (HOME BY)"
    visits = True
    pairs = True
    hops = True
    approximate = True

    def __init__(self, summary: type[Summary]) -> None:
        self.name = summary.name
        self.summary = summary
        self.meaning = f"each row is stored at its home and visits other nodes: {summary.meaning}"

    def applies(self, *, keyed: bool, inputs: int, near: bool) -> bool:
        """Summaries are of keys."""
        return keyed and inputs == 2

    def shares(self, codes: Codes, times: Int64Array, workers: int, slices: RowSlices) -> Iterator[Share]:
        """Yield the rows that live at a node, and those that visit it."""
        if not isinstance(slices, Visits):
            raise ValueError("an approximate route needs to know what visits what")
        yield from visiting(slices, workers)


def visiting(visits: Visits, workers: int) -> Iterator[Share]:
    """Yield the rows that live at each of some nodes, then those that visit it, by choice or as a trial."""
    if visits.begun is not None:
        for worker, rows in by_worker(visits.home, workers):
            yield Share(worker, rows, visits.begun)
    for worker in range(workers):
        here = visits.chosen[:, worker]
        away = visits.home != worker if visits.begun is not None else True
        for chosen, role in ((here, Role.VISIT), (~here & visits.tried, Role.TRIAL)):
            rows = np.flatnonzero(chosen & away)
            if len(rows):
                yield Share(worker, rows, role)
