"""What the processes of all systems share: their arguments, what they print, and Spark's settings."""

import argparse
import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from queries import QUERIES, Query, query


@dataclass(frozen=True)
class Asked:
    """A query over the streams below a folder.

    ``results``: where its rows go, None to drop them; ``live``: for how many seconds it waits for files, 0 to
    work off those that there are, ``together`` of each stream in a micro-batch; ``count``: whether Flink
    counts its results instead.
    """

    folder: Path
    query: Query
    results: Path | None
    live: float
    together: int
    count: bool
    scratch: Path


def asked() -> Asked:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("query", choices=[each.name for each in QUERIES])
    parser.add_argument("--results", type=Path)
    parser.add_argument("--live", type=float, default=0)
    parser.add_argument("--together", type=int, default=1)
    parser.add_argument("--count", action="store_true")
    given = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="wjoin-nexmark-", dir=given.folder.parent))
    return Asked(
        given.folder, query(given.query), given.results, given.live, given.together, given.count, scratch
    )


def report(began: float, **told: float) -> None:
    """Print how long a query took, and what else is told of it."""
    print(json.dumps({"seconds": time.monotonic() - began, **told}), flush=True)


def spark_settings(scratch: Path) -> dict[str, str]:
    """Return the settings of Spark and of wjoin on it."""
    return {
        "spark.master": "local[2]",
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }
