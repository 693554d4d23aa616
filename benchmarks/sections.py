"""What the benchmark runs: loads, and the systems that are compared over each."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from streams import Load

WINDOW = 5
LONG_WINDOW = 100


@dataclass(frozen=True)
class Section:
    """Loads that are compared, the systems that run them, and those of these that are measured fresh, too.

    The first three of them take turns, then the next ones: what a target compares stands together.

    The first ``filling`` micro-batches of a practised run only fill the state.
    """

    title: str
    loads: tuple[Load, ...]
    systems: tuple[str, ...]
    filling: int
    fresh: tuple[str, ...] = ()


SECTIONS: Mapping[str, Section] = {
    "3k": Section(
        title="3,000 rows a micro-batch",
        loads=(Load(WINDOW, 3_000, 120),),
        systems=("wjoin", "drop", "bare", "mapped", "shuffled", "store"),
        filling=60,
        fresh=("wjoin", "store", "drop", "bare"),
    ),
    "300k": Section(
        title="300,000 rows a micro-batch",
        loads=(Load(WINDOW, 300_000, 13),),
        systems=(
            "wjoin",
            "drop",
            "bare",
            "mapped",
            "shuffled",
            "store",
            "hdfs",
            "native",
            "rocksdb",
            "tuned",
        ),
        filling=3,
        fresh=("wjoin", "store", "drop", "hdfs"),
    ),
    "1500k": Section(
        title="1,500,000 rows a micro-batch",
        loads=(Load(WINDOW, 1_500_000, 6),),
        systems=("wjoin", "drop", "bare", "hdfs"),
        filling=2,
        fresh=("wjoin", "drop"),
    ),
    "streams": Section(
        title="8 streams on one key",
        loads=(Load(WINDOW, 300_000, 13, streams=8),),
        systems=("wjoin", "drop", "bare"),
        filling=4,
        fresh=("wjoin",),
    ),
    "stages": Section(
        title="Two stages: a.id = b.id AND b.other = c.other",
        loads=(Load(WINDOW, 300_000, 13), Load(WINDOW, 300_000, 13, stages=2)),
        systems=("wjoin",),
        filling=3,
        fresh=("wjoin",),
    ),
    # The longer window must be full of rows before its cost can be measured.
    "window": Section(
        title=f"A window {LONG_WINDOW // WINDOW} times longer, as many matches a row",
        loads=tuple(Load(window, 300_000, 24) for window in (WINDOW, LONG_WINDOW)),
        systems=("wjoin",),
        filling=14,
    ),
}

QUICK = ("3k", "300k")
"""The sections of a quick run."""


def quick(section: Section) -> Section:
    """Return what a quick run measures of a section: fewer systems beside wjoin, fewer micro-batches."""
    few = tuple(dataclasses.replace(load, batches=min(load.batches, 60)) for load in section.loads)
    systems = tuple(each for each in section.systems if each in ("wjoin", "drop", "bare", "hdfs"))
    if "hdfs" in systems:
        systems = ("wjoin", "hdfs")
    return dataclasses.replace(section, loads=few, systems=systems, filling=min(section.filling, 30))
