"""What is joined without a key: rows of two or three streams, and the conditions on their pairs."""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from streams import DISORDER, START, Load, write_files

SAMPLES = 1024
"""Numbers of a signal."""

SIGNALS = 1000
"""Different signals. A row has one of them, shifted and with noise: one pair of a thousand is alike."""

ALIKE = 0.8
"""How alike two signals are at the least in a result."""

SLOWLY = 72
"""How often ``alike`` is called for a condition that shall take about a millisecond a pair."""

_MILLION = 1_000_000
_PRACTICE_BATCHES = 2


@dataclass(frozen=True)
class Condition:
    """A condition without an equality, its parts that AND links; wjoin, Spark and DuckDB read the same text.

    ``signals``: whether rows have one. ``in_duckdb`` stands for a predicate that an expression can do.
    """

    title: str
    parts: tuple[str, ...]
    signals: bool = False

    @property
    def text(self) -> str:
        """The whole condition."""
        return " AND ".join(self.parts)

    def within(self, streams: str) -> list[str]:
        """Return the parts on no other streams than these, and on the last of them, with columns as a_x."""
        found = [part for part in self.parts if set(_names(part)) <= set(streams)]
        return [_prefixed(part) for part in found if streams[-1] in _names(part)]


CONDITIONS: Mapping[str, Condition] = {
    "inequalities": Condition("two inequalities", ("A.x > B.x", "A.y < B.y - 0.95")),
    "arithmetic": Condition("arithmetic", ("A.x + B.y * 1000 > 1900", "A.y * B.y > 0.5")),
    "band": Condition("a band", ("abs(A.x - B.x) <= 0.5",)),
    "predicate": Condition("a costly predicate", (f"alike(A.signal, B.signal) > {ALIKE}",), signals=True),
    "three": Condition(
        "inequalities of three streams",
        ("A.x > B.x", "A.y < B.y - 0.95", "A.x > C.x", "A.y < C.y - 0.95"),
    ),
    "overhead": Condition("a predicate that costs nothing", ("chosen(A.n, B.n)",)),
    "cores": Condition(
        "a predicate of a millisecond", (f"slow(A.signal, B.signal) > {ALIKE}",), signals=True
    ),
    "waiting": Condition("a predicate that waits a millisecond", ("answered(A.n, B.n)",)),
}


@dataclass(frozen=True)
class ThetaLoad(Load):
    """Streams to join on a condition, each micro-batch ``seconds`` long in event time."""

    condition: str = "inequalities"
    seconds: int = 10

    @property
    def rate(self) -> float:
        """Rows that each stream sends in a second of event time."""
        return self.batch_rows / self.streams / self.seconds

    @property
    def joined(self) -> Condition:
        """The condition."""
        return CONDITIONS[self.condition]

    @property
    def practice(self) -> "ThetaLoad":
        """The micro-batches that a system repeats before it is measured."""
        batches = min(self.batches, _PRACTICE_BATCHES)
        return ThetaLoad(
            self.window, self.batch_rows, batches, self.streams, self.stages, self.condition, self.seconds
        )

    @property
    def title(self) -> str:
        """What is joined, in a few words."""
        rows = f"{self.rate:,.0f} rows/s a stream, window {self.window} s"
        return f"{self.streams} streams, {self.joined.title}, {rows}"

    @property
    def pairs_of_batch(self) -> float:
        """Pairs of two streams that come inside the window with the rows of a micro-batch."""
        return self.rate**2 * 2 * self.window * self.seconds

    @cached_property
    def pairs(self) -> float:
        """Pairs of two streams inside the window, of all rows."""
        span = self.seconds * self.batches
        return self.rate**2 * (2 * self.window * span - self.window**2)

    @property
    def schema(self) -> str:
        """The columns, as Spark writes them."""
        signal = ", signal ARRAY<DOUBLE>" if self.joined.signals else ""
        return f"ts TIMESTAMP, x DOUBLE, y DOUBLE, n BIGINT{signal}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a join returns of each stream, and reads: signals are read only."""
        return ("ts", "x", "y", "n")


def write_theta(load: ThetaLoad, folder: Path) -> None:
    """Write every stream of a load below ``folder``, files named in the order of their micro-batch."""
    random = np.random.default_rng(2009)
    signals = random.normal(size=(SIGNALS, SAMPLES))
    write_files(load, folder, lambda _, batch: _rows(random, load, batch, signals))


def _rows(random: np.random.Generator, load: ThetaLoad, batch: int, signals: Any) -> pa.Table:
    count = load.batch_rows // load.streams
    sent = START + ((batch * count + np.arange(count)) * (_MILLION / load.rate)).astype(np.int64)
    columns = {
        "ts": pa.array(sent - random.integers(0, DISORDER, count)).cast(pa.timestamp("us", tz="UTC")),
        "x": random.random(count) * 1000,
        "y": random.random(count),
        "n": random.integers(0, 10_000, count),
    }
    if load.joined.signals:
        chosen, shifts = random.integers(0, SIGNALS, count), random.integers(0, SAMPLES, count)
        shifted = [np.roll(signals[one], shift) for one, shift in zip(chosen, shifts, strict=True)]
        noisy = np.array(shifted) + random.normal(scale=0.2, size=(count, SAMPLES))
        columns["signal"] = pa.FixedSizeListArray.from_arrays(noisy.ravel(), SAMPLES).cast(
            pa.list_(pa.float64())
        )
    return pa.table(columns)


def predicates() -> Mapping[str, Callable[[Any, Any], Any]]:
    """Return the functions of the conditions: of two matrices, or of two arrays, to an array."""

    # Defined here, so that Spark sends them to its workers whole.
    def alike(left: Any, right: Any) -> Any:
        """How alike two signals are at the shift that makes them most alike: 1 for the same."""
        spectrum = np.fft.rfft(left) * np.conj(np.fft.rfft(right))
        peaks = np.fft.irfft(spectrum, left.shape[1]).max(axis=1)
        return peaks / np.sqrt((left * left).sum(axis=1) * (right * right).sum(axis=1))

    def slow(left: Any, right: Any) -> Any:
        """The same, in a millisecond."""
        for _ in range(SLOWLY - 1):
            alike(left, right)
        return alike(left, right)

    def chosen(left: Any, right: Any) -> Any:
        """One pair in a hundred."""
        return (left * 7 + right) % 100 == 0

    def answered(left: Any, right: Any) -> Any:
        """One pair in a hundred, after a millisecond for each: as a server of models answers elsewhere."""
        time.sleep(len(left) / 1000)
        return chosen(left, right)

    return {"alike": alike, "slow": slow, "chosen": chosen, "answered": answered}


def called(load: ThetaLoad) -> str | None:
    """Return the name of the predicate that a load's condition calls, None where it calls none."""
    return next((name for name in predicates() if f"{name}(" in load.joined.text), None)


def _names(part: str) -> list[str]:
    return [name.lower() for name in re.findall(r"\b([A-C])\.", part)]


def _prefixed(part: str) -> str:
    return re.sub(r"\b([A-C])\.", lambda found: f"{found[1].lower()}_", part)
