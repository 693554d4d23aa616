"""What a run measured, worked out from Spark's progress of every micro-batch."""

import datetime
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kit_path  # noqa: F401 (finds tests.kit)
from streams import Load
from systems import SYSTEMS
from turns import Stops, running

from tests.kit.processes import Usage
from wjoin.measured.layers import LAYERS
from wjoin.progress import read as read_counts

_PARTS = ("latestOffset", "walCommit", "getBatch", "queryPlanning", "addBatch", "commitOffsets")

FRESH = slice(2, 10)
"""The micro-batches of a fresh process that count: the third to the tenth."""


@dataclass(frozen=True)
class Outcome:
    """One system over one load, fresh or practised; medians over the measured micro-batches.

    ``parts`` are the milliseconds of a micro-batch by Spark's names for its steps; ``layers`` those of
    the tasks of a join, summed over the tasks that run side by side; ``state_commit`` those of
    writing state, within addBatch. ``processor`` is in seconds, sizes are in bytes. ``results`` are
    all that were made; ``peak`` memory is that of the process's whole life, ``anonymous`` what of
    it belongs to no file.
    """

    part: str
    system: str
    when: str
    load: Load
    results: int
    seconds: float
    processor: float
    peak: int
    anonymous: int
    state_rows: int
    state_bytes: int
    state_commit: float
    parts: dict[str, float]
    layers: dict[str, float]

    @property
    def rows_per_second(self) -> float:
        """Rows of all streams in a second, by the median micro-batch."""
        return self.load.batch_rows / self.seconds

    @property
    def layers_text(self) -> str:
        """The layers in words for a table."""
        return ", ".join(f"{name} {value:.0f}" for name, value in self.layers.items()) or "-"


def outcomes(
    part: str,
    system: str,
    load: Load,
    filling: int,
    report: Path,
    usage: Usage,
    stops: Stops,
    *,
    whole_rows: bool = True,
) -> list[Outcome]:
    """Read the report of a process; of practised runs the first ``filling`` micro-batches do not count.

    ``whole_rows``: whether Spark's sources give all rows, and not only word of them.
    The time in ``stops`` is none of a micro-batch; what its steps took is read of those without any.

    Raises RuntimeError where a micro-batch did not read the rows that it should have, or two runs have not
    given the same number of results.
    """
    found = []
    for when, runs in json.loads(report.read_text()).items():
        counting = FRESH if when == "fresh" else slice(filling, None)
        parts = [_of_the_load(system, load, each["progress"], whole_rows)[counting] for each in runs]
        results = {each["results"] for each in runs}
        if len(results) > 1:
            raise RuntimeError(f"{system}: runs over {load.title} gave {sorted(results)} results")
        measured = [each for progress in parts for each in progress]
        times = [_span(each) for each in measured]
        processor = sum(usage.processor_between(_span(each[0])[0], _span(each[-1])[1]) for each in parts)
        seconds = [running(*span, stops) for span in times]
        # A micro-batch that takes longer than a turn is never without a stop.
        told = [
            each for each, span, own in zip(measured, times, seconds, strict=True) if own == span[1] - span[0]
        ] or measured
        states = [_state(system, each) for each in measured]
        one = Outcome(
            part,
            system,
            when,
            load,
            results.pop(),
            statistics.median(seconds),
            processor / len(measured),
            usage.peak.resident,
            usage.peak.anonymous,
            int(statistics.median(rows for rows, _ in states)),
            int(statistics.median(size for _, size in states)),
            statistics.median(sum(op["commitTimeMs"] for op in each["stateOperators"]) for each in told),
            {name: statistics.median(each["durationMs"].get(name, 0) for each in told) for name in _PARTS},
            _layers(told),
        )
        found.append(one)
    return found


def disagreements(found: Sequence[Outcome]) -> list[str]:
    """Return a sentence for each load on which systems, or runs, gave different numbers of results."""
    results: dict[Load, set[int]] = {}
    for each in found:
        if SYSTEMS[each.system].joins:
            results.setdefault(each.load, set()).add(each.results)
        elif SYSTEMS[each.system].passes and each.results != each.load.batch_rows * each.load.batches:
            raise RuntimeError(f"{each.system} has read {each.results:,} rows of {each.load.title}")
    return [f"{load.title}: {sorted(counts)}" for load, counts in results.items() if len(counts) > 1]


def _of_the_load(
    system: str, load: Load, progress: Sequence[dict[str, Any]], whole_rows: bool
) -> list[dict[str, Any]]:
    # A last micro-batch without data only evicts.
    batches = [each for each in progress if each["numInputRows"] > 0]
    others = [each for each in batches if whole_rows and each["numInputRows"] != _rows(load)]
    if len(batches) != load.batches or others:
        raise RuntimeError(f"{system}: the micro-batches are not those of the load")
    return batches


def _rows(load: Load) -> int:
    return load.batch_rows // load.streams * load.streams


def _span(progress: Mapping[str, Any]) -> tuple[float, float]:
    start = datetime.datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00")).timestamp()
    return start, start + progress["durationMs"]["triggerExecution"] / 1000


def _state(system: str, progress: Mapping[str, Any]) -> tuple[int, int]:
    """Return rows and bytes of state: Spark counts wjoin's blocks as rows, wjoin counts what is in them."""
    if system.startswith("wjoin"):
        counts = read_counts(progress)
        return sum(counts.state_rows.values()), counts.state_bytes
    operators = progress["stateOperators"]
    rows = sum(each["numRowsTotal"] for each in operators)
    size = sum(
        each["customMetrics"].get("rocksdbSstFileSize") or each["memoryUsedBytes"] for each in operators
    )
    return rows, size


def _layers(told: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the milliseconds of the layers of a join in the median micro-batch."""
    found = [read_counts(each).layers for each in told]
    names = [name for name in LAYERS if any(name in each for each in found)]
    return {name: statistics.median(each.get(name, 0) for each in found) / 1000 for name in names}
