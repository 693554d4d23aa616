"""What a run measured, worked out from Spark's progress of every micro-batch."""

import datetime
import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import Usage
from streams import Load

from wjoin.progress import read as read_counts

_PARTS = ("latestOffset", "walCommit", "getBatch", "queryPlanning", "addBatch", "commitOffsets")


@dataclass(frozen=True)
class Outcome:
    """One system over one load; all but ``results`` and ``peak`` are medians over the measured micro-batches.

    ``parts`` are the milliseconds of a micro-batch by Spark's names for its steps; ``phases``
    those inside Python, summed over the tasks that run side by side; ``state_commit`` those of
    writing state, within addBatch. ``processor`` is in seconds, sizes are in bytes.
    """

    system: str
    load: Load
    results: int
    seconds: float
    processor: float
    peak: int
    state_rows: int
    state_bytes: int
    state_commit: float
    parts: dict[str, float]
    phases: dict[str, float]

    @property
    def rows_per_second(self) -> float:
        """Rows of all streams in a second, by the median micro-batch."""
        return self.load.batch_rows / self.seconds


def outcome(system: str, load: Load, filling: int, report: Path, usage: Usage, clock: Path) -> Outcome:
    """Read the report of a run; the first ``filling`` micro-batches do not count.

    Raises RuntimeError where a micro-batch did not read the rows that it should have.
    """
    body = json.loads(report.read_text())
    # A last micro-batch without data only evicts.
    batches = [each for each in body["progress"] if each["numInputRows"] > 0]
    if len(batches) != load.batches or any(each["numInputRows"] != load.batch_rows for each in batches):
        raise RuntimeError(f"{system}: the micro-batches are not those of the load")
    measured = batches[filling:]
    times = [_span(each) for each in measured]
    states = [_state(system, each) for each in measured]
    return Outcome(
        system,
        load,
        body["results"],
        statistics.median(end - start for start, end in times),
        usage.processor_between(times[0][0], times[-1][1]) / len(measured),
        usage.peak,
        int(statistics.median(rows for rows, _ in states)),
        int(statistics.median(size for _, size in states)),
        statistics.median(sum(op["commitTimeMs"] for op in each["stateOperators"]) for each in measured),
        {part: statistics.median(each["durationMs"].get(part, 0) for each in measured) for part in _PARTS},
        _phases(clock, times),
    )


def _span(progress: dict[str, Any]) -> tuple[float, float]:
    start = datetime.datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00")).timestamp()
    return start, start + progress["durationMs"]["triggerExecution"] / 1000


def _state(system: str, progress: dict[str, Any]) -> tuple[int, int]:
    """Return rows and bytes of state: Spark counts wjoin's blocks as rows, wjoin counts what is in them."""
    if system == "wjoin":
        counts = read_counts(progress)
        return sum(counts.state_rows.values()), counts.state_bytes
    operators = progress["stateOperators"]
    rows = sum(each["numRowsTotal"] for each in operators)
    size = sum(
        each["customMetrics"].get("rocksdbSstFileSize") or each["memoryUsedBytes"] for each in operators
    )
    return rows, size


def _phases(clock: Path, times: list[tuple[float, float]]) -> dict[str, float]:
    if not clock.exists():
        return {}
    lines = [json.loads(line) for line in clock.read_text().splitlines()]
    names = dict.fromkeys(line["phase"] for line in lines)
    return {name: _phase([line for line in lines if line["phase"] == name], times) for name in names}


def _phase(lines: list[dict[str, Any]], times: list[tuple[float, float]]) -> float:
    """Return the milliseconds that the tasks of a phase took in the median micro-batch."""
    return 1000 * statistics.median(
        sum(line["seconds"] for line in lines if start <= line["ended"] <= end) for start, end in times
    )
