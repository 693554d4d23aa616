"""Does a query that runs on stay as it is? Memory, state, files and micro-batches of an hour.

Three streams of 5,000 rows a second, a window of a minute, files that appear in real time: `wjoin run`
joins them into a sink of Parquet files, and is stopped at the end as a user does. Sources delete
the files that were read, and the sink's log forgets what is old, as in a query that is to run for long;
what the sink wrote is removed here after some minutes. Curves are printed as text. Each is level
when the median of its last third is not above that of its middle third by more than its tolerance; the first
third is for it to settle. Fails when one grows.

``--silent SECONDS``: a LEFT JOIN of two streams, the second of which sends nothing more after so long. With
``--idle '1 MINUTE'`` it goes on by IDLE AFTER and all is level; without, rows wait, and the state grows.

Spark keeps old files of its logs for ten minutes: below half an hour, a rise of their number says
nothing. Its source of files writes down the name of every file that it has ever read: these logs are shown,
and not judged. Linux only.
"""

import argparse
import dataclasses
import datetime
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kit_path  # noqa: F401 (finds tests.kit)
from command import ERRORS, OUTPUT, running
from disk import Files, files_below
from feed import Feed, Offered, script
from levels import Curve, level, verdicts
from plots import plot
from tables import aligned

from tests.kit.processes import Sample, Sampler

_EVERY = 5.0
_KEPT_SECONDS = 180.0
_HEAP = "1g"


@dataclass(frozen=True)
class Disk:
    """What lay on disk at a moment: the checkpoint, of it the sources' logs, and temporary folders.

    Among the temporary folders is the cache of state.
    """

    moment: float
    checkpoint: Files
    sources: Files
    temporary: Files


def soak(root: Path, offered: Offered, seconds: float, settings: dict[str, str]) -> list[Curve]:
    """Run a query for so long after its first micro-batch; return what was measured.

    Raises RuntimeError where it ends before.
    """
    (root / "join.sql").write_text(script(offered, root, tidy=True))
    (root / "tmp").mkdir()
    temporary = {"TMPDIR": str(root / "tmp"), "SPARK_LOCAL_DIRS": str(root / "tmp")}
    # RocksDB's library and other files of the JVM would lie elsewhere.
    temporary["JAVA_TOOL_OPTIONS"] = f"-Djava.io.tmpdir={root / 'tmp'}"
    # The heap is there as a whole from the start: Java else touches its pages one after the other for hours,
    # which looks as if something grew.
    own = os.environ.get("SPARK_SUBMIT_OPTS", "")
    temporary["SPARK_SUBMIT_OPTS"] = f"-Xms{_HEAP} -XX:+AlwaysPreTouch {own}".strip()
    settings = {"spark.driver.memory": _HEAP, **settings}
    disk: list[Disk] = []
    with running(root, settings, temporary) as process, Feed(offered, root):
        begun = root / "checkpoints" / "joined" / "commits" / "0"
        while not begun.exists() and process.poll() is None:
            time.sleep(_EVERY)
        with Sampler(process.pid, interval=_EVERY) as usage:
            end = time.time() + seconds
            while time.time() < end and process.poll() is None:
                time.sleep(_EVERY)
                disk.append(_disk(root))
                _consume(root / "joined")
    said = (root / ERRORS).read_text().splitlines()
    print(*(line for line in said if line.startswith("warning")), sep="\n", flush=True)
    return [*_of_memory(usage.samples), *_of_disk(disk), *_of_reports(_reports(root / OUTPUT))]


def _disk(root: Path) -> Disk:
    sources = files_below(root / "checkpoints" / "joined" / "sources")
    return Disk(time.time(), files_below(root / "checkpoints"), sources, files_below(root / "tmp"))


def _consume(sink: Path) -> None:
    """Remove what the sink wrote some minutes ago, as whoever reads it might do."""
    for path in sink.glob("*.parquet"):
        if path.stat().st_mtime < time.time() - _KEPT_SECONDS:
            path.unlink()


def _reports(path: Path) -> list[dict[str, Any]]:
    """Return what wjoin run --json wrote of each micro-batch; its first lines may be words."""
    lines = (line for line in path.read_text().splitlines() if line.startswith("{"))
    return [report for report in map(json.loads, lines) if not report["idle"]]


def _of_memory(samples: Sequence[Sample]) -> list[Curve]:
    moments = tuple(each.moment for each in samples)
    values = {
        "memory, anonymous, JVM": [each.java.anonymous for each in samples],
        "memory, anonymous, Python": [each.python.anonymous for each in samples],
        "memory, resident, JVM": [each.java.resident for each in samples],
        "memory, resident, Python": [each.python.resident for each in samples],
    }
    return [_megabytes(title, moments, found, 0.05, 20) for title, found in values.items()]


def _of_disk(disk: Sequence[Disk]) -> list[Curve]:
    moments = tuple(each.moment for each in disk)
    curves = []
    for title, found, judged in (
        ("checkpoint", [each.checkpoint - each.sources for each in disk], True),
        ("checkpoint: names of files read", [each.sources for each in disk], False),
        ("cache and temporary folders", [each.temporary for each in disk], True),
    ):
        counts = tuple(float(each.count) for each in found)
        sizes = _megabytes(f"size, {title}", moments, [each.size for each in found], 0.1, 5)
        curves.append(Curve(f"files, {title}", "files", 0.1, 20, moments, counts, judged))
        curves.append(dataclasses.replace(sizes, judged=judged))
    return curves


def _of_reports(reports: Sequence[dict[str, Any]]) -> list[Curve]:
    moments = tuple(_moment(each["started"]) for each in reports)
    rows = tuple(float(sum(each["state_rows"].values())) for each in reports)
    seconds = tuple(1000.0 * each["seconds"] for each in reports)
    return [
        Curve("rows in state", "rows", 0.05, 1000, moments, rows),
        _megabytes("state", moments, [each["state_bytes"] for each in reports], 0.05, 1),
        Curve("time of a micro-batch", "ms", 0.1, 20, moments, seconds),
    ]


def _moment(started: str) -> float:
    return datetime.datetime.fromisoformat(started.replace("Z", "+00:00")).timestamp()


def _megabytes(
    title: str, moments: tuple[float, ...], sizes: Sequence[int], tolerance: float, slack: float
) -> Curve:
    return Curve(title, "MB", tolerance, slack, moments, tuple(size / 1e6 for size in sizes))


def options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--minutes", type=float, default=60, help="how long (%(default)s)")
    add("--rate", type=int, default=5_000, help="rows a second of each stream (%(default)s)")
    add("--window", type=int, default=60, metavar="SECONDS", help="of the join (%(default)s)")
    add("--silent", type=int, metavar="SECONDS", help="a LEFT JOIN whose second stream then falls silent")
    add("--idle", default="", metavar="INTERVAL", help="IDLE AFTER of all streams, such as '1 MINUTE'")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting for wjoin run")
    add("--scratch", help="where data and checkpoints are kept while it runs")
    add("--json", type=Path, help="write the curves to this file, too")
    return parser.parse_args()


def main() -> int:
    """Run what the command line asks for; 1 when something grows."""
    arguments = options()
    offered = Offered(arguments.rate, 1, arguments.window, arguments.silent, arguments.idle)
    settings = dict(each.split("=", 1) for each in arguments.set)
    with tempfile.TemporaryDirectory(prefix="wjoin-soak-", dir=arguments.scratch) as folder:
        curves = soak(Path(folder), offered, 60 * arguments.minutes, settings)
    for curve in curves:
        print(plot(f"{curve.title}, {curve.unit}", curve.values, arguments.minutes) + "\n")
    levels = [level(curve) for curve in curves]
    print(aligned(verdicts(levels)), flush=True)
    if arguments.json:
        body = [{"title": each.title, "moments": each.moments, "values": each.values} for each in curves]
        arguments.json.write_text(json.dumps(body))
    return 1 if any(each.grows for each in levels) else 0


if __name__ == "__main__":
    sys.exit(main())
