"""How long a first run takes in a fresh process, beside Spark's own start.

    python benchmarks/cold_start.py --runs 5

The first session of a machine leaves `wjoin prepare` to a process of the lowest priority: a user who does
nothing has ``script`` once, and ``prepared`` from then on.
"""

import argparse
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

EXAMPLE = Path(__file__).parent.parent / "examples" / "12_streams.sql"

_ARGUMENTS = (EXAMPLE.name, "--once", "--checkpoint", "checkpoints")
_ARCHIVE_SECONDS = 1800

_BARE = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
print("|", spark.sql("SELECT 1 AS one").collect()[0].one, flush=True)
spark.stop()
"""

# What the example does besides joining: three tables written, three streams read into a sink, which is read.
_SAME_WORK = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
spark.conf.set("spark.sql.shuffle.partitions", 2)
streams = []
for name in ("camera1", "camera2", "camera3"):
    rows = "SELECT id AS obj_id, timestamp_seconds(1714564800 + id) AS ts FROM range(100)"
    spark.sql(f"INSERT OVERWRITE DIRECTORY 'data/{name}' USING parquet {rows}")
    stream = spark.readStream.schema("obj_id BIGINT, ts TIMESTAMP").parquet(f"data/{name}")
    streams.append(stream.withWatermark("ts", "2 minutes"))
rows = streams[0].union(streams[1]).union(streams[2])
writing = rows.writeStream.format("parquet").option("path", "out").option("checkpointLocation", "checkpoints")
writing.trigger(availableNow=True).start().awaitTermination()
print("|", spark.sql("SELECT count(*) AS number FROM parquet.`out`").collect()[0].number, flush=True)
spark.stop()
"""


@dataclass(frozen=True)
class Run:
    """Seconds from a process's start to its first row, and those of processors until its end."""

    seconds: float
    processor: float


@dataclass(frozen=True)
class ColdStart:
    """Medians of runs.

    ``script``: an example's script; ``prepared``: the same, once Java's classes have been kept;
    ``bare``: Spark alone, which selects a number; ``same_work``: Spark alone, which does all that the example
    does but the join.
    """

    script: Run
    prepared: Run
    bare: Run
    same_work: Run


def cold_start(runs: int, scratch: str | None) -> ColdStart:
    """Run all in turn, each in a process and folder of its own. Raises RuntimeError where one fails."""
    wjoin = [sys.executable, "-m", "wjoin.cli", "run", *_ARGUMENTS]
    script, prepared, bare, same_work = [], [], [], []
    with (
        tempfile.TemporaryDirectory(prefix="wjoin-cache-", dir=scratch) as cache,
        tempfile.TemporaryDirectory(prefix="wjoin-no-cache-", dir=scratch) as nothing,
    ):
        _run(wjoin, scratch, cache, "on")
        _wait_for_the_archive(Path(cache))
        for _ in range(runs):
            bare.append(_run([sys.executable, "-c", _BARE], scratch, nothing))
            same_work.append(_run([sys.executable, "-c", _SAME_WORK], scratch, nothing))
            script.append(_run(wjoin, scratch, nothing))
            prepared.append(_run(wjoin, scratch, cache))
    return ColdStart(_median(script), _median(prepared), _median(bare), _median(same_work))


def _median(runs: Sequence[Run]) -> Run:
    return Run(
        statistics.median(each.seconds for each in runs), statistics.median(each.processor for each in runs)
    )


def _run(command: Sequence[str], scratch: str | None, cache: str, prepare: str = "off") -> Run:
    """Run a command that prints rows."""
    with tempfile.TemporaryDirectory(prefix="wjoin-start-", dir=scratch) as folder:
        shutil.copy(EXAMPLE, folder)
        environment = os.environ | {"XDG_CACHE_HOME": cache, "WJOIN_PREPARE": prepare}
        began, said, seconds = time.monotonic(), "", 0.0
        with (
            tempfile.TemporaryFile("w+") as errors,
            subprocess.Popen(
                command,
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
                start_new_session=True,
            ) as process,
            Watched(process.pid) as watched,
        ):
            assert process.stdout is not None
            for line in process.stdout:
                said += line
                if line.startswith("|") and not seconds:
                    seconds = time.monotonic() - began
            process.wait()
            errors.seek(0)
            said += errors.read()
    if process.returncode or not seconds:
        raise RuntimeError(f"{' '.join(command)} failed:\n{said[-4000:]}")
    return Run(seconds, watched.processor)


class Watched(threading.Thread):
    """Adds up the processor time of all processes of a session, but for those that end at once."""

    def __init__(self, session: int) -> None:
        super().__init__(daemon=True)
        self._session = session
        self._ticks: dict[int, int] = {}
        self._ended = threading.Event()

    def __enter__(self) -> "Watched":
        self.start()
        return self

    def __exit__(self, *ignored: object) -> None:
        self._ended.set()
        self.join()

    @property
    def processor(self) -> float:
        """The seconds so far."""
        return sum(self._ticks.values()) / os.sysconf("SC_CLK_TCK")

    def run(self) -> None:
        """Look until the end."""
        while not self._ended.wait(0.25):
            for each in Path("/proc").glob("[0-9]*/stat"):
                with contextlib.suppress(OSError):
                    fields = each.read_text().rpartition(")")[2].split()
                    if int(fields[3]) == self._session:
                        self._ticks[int(each.parent.name)] = int(fields[11]) + int(fields[12])


def _wait_for_the_archive(cache: Path) -> None:
    """Wait for the process in the background that the first session has left. Raises RuntimeError."""
    deadline = time.monotonic() + _ARCHIVE_SECONDS
    while not list(cache.glob("wjoin/*.jsa")):
        if time.monotonic() > deadline:
            raise RuntimeError("the process in the background has not kept Java's classes")
        time.sleep(1)
    # Its last steps would be measured, too.
    time.sleep(5)


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3, help="how often each (%(default)s)")
    parser.add_argument("--scratch", help="where data are kept while it runs")
    given = parser.parse_args()
    found = cold_start(given.runs, given.scratch)
    print(f"Seconds to the first result, medians of {given.runs}, and processor time of all processes:")
    for name, run in (
        ("Spark alone", found.bare),
        ("Spark, the same work", found.same_work),
        ("wjoin, first session", found.script),
        ("wjoin, later sessions", found.prepared),
    ):
        times = run.seconds / found.bare.seconds
        print(f"  {name:22} {run.seconds:6.1f} s = {times:4.2f} x   processor {run.processor:6.1f} s")


if __name__ == "__main__":
    main()
