"""Counts of a join over tables, observed while a statement runs: what EXPLAIN ANALYZE compares."""

import itertools
import time
from collections.abc import Iterable, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, Observation, is_remote
from pyspark.sql import functions as F

_PATIENCE_SECONDS, _POLL_SECONDS = 10.0, 0.02

_numbers = itertools.count()


class Meter:
    """Observes DataFrames of one batch statement, each as a part with a name of its own.

    One meter serves one run: a second action on the same DataFrames is not counted.
    """

    def __init__(self) -> None:
        self._number = next(_numbers)
        self._observations: dict[str, Observation] = {}

    def watch(self, part: str, rows: DataFrame, counts: Iterable[str]) -> DataFrame:
        """Return rows whose ``counts``, aggregates with a name each, are observed as ``part``."""
        observation = Observation(self._name(part))
        self._observations[part] = observation
        return rows.observe(observation, *map(F.expr, counts))

    def counts(self, ended: DataFrame) -> dict[str, Mapping[str, int]]:
        """Return what was observed, by part, once an action on ``ended`` has ended.

        A part that Spark has optimized away, as under ``LIMIT 0``, is missing.
        """
        if is_remote():
            # A statement of SQL over observed DataFrames does not hand on what they observed.
            info = ended.executionInfo
            found: dict[str, Mapping[str, int]] = {} if info is None else dict(info.flows)
        else:
            found = {self._name(part): _read(each) for part, each in self._observations.items()}
        return {part: found[name] for part in self._observations if found.get(name := self._name(part))}

    def _name(self, part: str) -> str:
        return f"wjoin-tables:{self._number}:{part}"


def _read(observation: Observation) -> Mapping[str, int]:
    """Return what was observed in an action that has ended, nothing of a part that was optimized away."""
    if not _is_told(observation):
        return {}
    try:
        return observation.get
    except Py4JJavaError as error:
        # How Spark says that nothing was observed: it cannot hand an empty row to Python.
        if "java.lang.AssertionError" not in str(error):
            raise
        return {}


def _is_told(observation: Observation) -> bool:
    """Return whether Spark tells of a part, after some seconds at the most.

    It tells of all parts of an action a moment after its end. Of one that it has optimized away Spark 4.0
    never does, and whoever asks waits forever; later versions tell that there is nothing.
    """
    observed: Any = observation._jo
    future = observed.future()
    last = time.monotonic() + _PATIENCE_SECONDS
    while not future.isCompleted():
        if time.monotonic() > last:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def rows_part(stream: int) -> str:
    """Return the part that counts the ``rows`` of a relation that its filters keep."""
    return f"rows:{stream}"


def stage_part(stage: int) -> str:
    """Return the part that counts the ``matches`` and ``comparisons`` of one of wjoin's own stages."""
    return f"stage:{stage}"


RESULTS = "results"
"""The part that counts the ``matches`` of a chain of Spark's own joins."""
