"""How long a first run takes in a fresh process, beside Spark's own start."""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

EXAMPLE = Path(__file__).parent.parent / "examples" / "12_streams.sql"

_ARGUMENTS = (EXAMPLE.name, "--once", "--checkpoint", "checkpoints")

_BARE = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
assert spark.sql("SELECT 1 AS one").collect()[0].one == 1
spark.stop()
"""


@dataclass(frozen=True)
class ColdStart:
    """Medians of seconds, from the start of a process to its end.

    ``script``: an example's script; ``prepared``: the same, after ``wjoin prepare``; ``bare``: Spark alone.
    """

    script: float
    prepared: float
    bare: float
    runs: int


def cold_start(runs: int, scratch: str | None) -> ColdStart:
    """Run all in turn, each in a process and folder of its own. Raises RuntimeError where one fails."""
    wjoin = [sys.executable, "-m", "wjoin.cli"]
    script, prepared, bare = [], [], []
    with (
        tempfile.TemporaryDirectory(prefix="wjoin-cache-", dir=scratch) as cache,
        tempfile.TemporaryDirectory(prefix="wjoin-no-cache-", dir=scratch) as nothing,
    ):
        _seconds([*wjoin, "prepare"], scratch, cache)
        for _ in range(runs):
            bare.append(_seconds([sys.executable, "-c", _BARE], scratch, nothing))
            script.append(_seconds([*wjoin, "run", *_ARGUMENTS], scratch, nothing))
            prepared.append(_seconds([*wjoin, "run", *_ARGUMENTS], scratch, cache))
    return ColdStart(*map(statistics.median, (script, prepared, bare)), runs)


def _seconds(command: Sequence[str], scratch: str | None, cache: str) -> float:
    with tempfile.TemporaryDirectory(prefix="wjoin-start-", dir=scratch) as folder:
        shutil.copy(EXAMPLE, folder)
        began = time.monotonic()
        environment = os.environ | {"XDG_CACHE_HOME": cache}
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, env=environment
        )
        seconds = time.monotonic() - began
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return seconds
