"""The streaming W-joins that this process has compiled lately, by the numbers that Spark tells of them.

A query that somebody starts from a DataFrame does not say what it was made of, but its progress has these
numbers (``executor.spark.observe``).
"""

import threading
from collections import OrderedDict

from wjoin.planner.planning import PlannedSelect

REMEMBERED = 256
"""Plans that are remembered; whoever watches a query keeps its plans for as long."""

_plans: OrderedDict[int, PlannedSelect] = OrderedDict()
_changing = threading.Lock()


def remember(number: int, planned: PlannedSelect) -> None:
    """Remember a streaming W-join under its number; the oldest beyond 256 is forgotten."""
    with _changing:
        _plans[number] = planned
        while len(_plans) > REMEMBERED:
            _plans.popitem(last=False)


def compiled(number: int) -> PlannedSelect | None:
    """Return the W-join that was compiled under a number, None where it is forgotten or another process's."""
    with _changing:
        return _plans.get(number)
