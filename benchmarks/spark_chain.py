"""wjoin against hand-written chains of Spark's stream-stream joins.

Three streams of 10,000 rows a second each, joined on a key inside a window of 5 seconds, 0.23
results a row. Every system reads the same Parquet files in the same micro-batches and writes
the same Parquet sink, each in a process of its own, one after the other, on two cores and two
shuffle partitions, after as many seconds of practice. The chain runs with Spark's settings as
they come, but for its state store; wjoin with those of ``wjoin.connect()``. Fails when they
differ in the number of results. Linux only.
"""

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import Sampler
from outcomes import Outcome, outcome
from streams import Load, write_streams
from systems import SYSTEMS

WINDOW = 5
LONG_WINDOW = 100
PRACTICE = 2
"""Micro-batches that a system repeats before it is measured."""

PARTS = ["300k", "1500k", "window"]


@dataclasses.dataclass(frozen=True)
class Section:
    """Loads that are compared: the systems that run them, and the micro-batches that only fill the state."""

    title: str
    loads: tuple[Load, ...]
    systems: tuple[str, ...]
    filling: int


def sections(arguments: argparse.Namespace) -> list[Section]:
    """Return what is to be run."""
    chosen = tuple(arguments.systems)
    found = []
    if "300k" in arguments.parts:
        found.append(Section("300,000 rows a micro-batch", (Load(WINDOW, 300_000, 13),), chosen, 3))
    if "1500k" in arguments.parts:
        found.append(Section("1,500,000 rows a micro-batch", (Load(WINDOW, 1_500_000, 4),), chosen, 1))
    if "window" in arguments.parts and "wjoin" in chosen:
        # The longer window must be full of rows before its cost can be measured.
        loads = tuple(Load(window, 300_000, 24) for window in (WINDOW, LONG_WINDOW))
        title = f"A window {LONG_WINDOW // WINDOW} times longer, as many matches a row"
        found.append(Section(title, loads, ("wjoin",), 14))
    return found


def run(system: str, load: Load, filling: int, data: Path, arguments: argparse.Namespace) -> Outcome:
    """Run a system in a process of its own; raise RuntimeError with its last words if it fails."""
    print(f"  {SYSTEMS[system].title}, window {load.window} s ...", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="wjoin-bench-", dir=arguments.scratch) as folder:
        scratch = Path(folder)
        clock = scratch / "clock"
        task = {
            "system": system,
            "window": load.window,
            "data": str(data / "load"),
            "practice": str(data / "practice"),
            "scratch": folder,
            "report": str(scratch / "report"),
            "memory": arguments.memory,
            "warm_up": arguments.warm_up,
            "settings": dict(each.split("=", 1) for each in arguments.set),
        }
        command = [sys.executable, str(Path(__file__).with_name("run_system.py")), json.dumps(task)]
        with (scratch / "log").open("w") as log:
            process = subprocess.Popen(
                command, env=os.environ | {"WJOIN_CLOCK": str(clock)}, stdout=log, stderr=log
            )
            with Sampler(process.pid) as usage:
                status = process.wait()
        if status:
            raise RuntimeError(f"{system} failed:\n{(scratch / 'log').read_text()[-4000:]}")
        return outcome(system, load, filling, scratch / "report", usage, clock)


def table(outcomes: list[Outcome]) -> str:
    """Return the outcomes of a section as a table; ratios are the first one's speed over the others'."""
    first = outcomes[0]
    head = ["", "rows/s", "ratio", "batch s", "CPU s", "peak MB", "state rows", "state MB", "results"]
    lines = [head]
    for each in outcomes:
        title = SYSTEMS[each.system].title
        lines.append(
            [
                f"{title}, {each.load.window} s",
                f"{each.rows_per_second:,.0f}",
                f"{first.rows_per_second / each.rows_per_second:.2f}",
                f"{each.seconds:.2f}",
                f"{each.processor:.2f}",
                f"{each.peak / 1e6:,.0f}",
                f"{each.state_rows:,}",
                f"{each.state_bytes / 1e6:,.1f}",
                f"{each.results:,}",
            ]
        )
    text = [_aligned(lines), "", "  where the milliseconds of a micro-batch go"]
    parts = [["", *first.parts, "of it: state commit", "Python, all tasks"]]
    for each in outcomes:
        phases = ", ".join(f"{name} {value:.0f}" for name, value in sorted(each.phases.items()))
        values = [f"{value:.0f}" for value in (*each.parts.values(), each.state_commit)]
        parts.append([f"{SYSTEMS[each.system].title}, {each.load.window} s", *values, phases or "-"])
    return "\n".join([*text, _aligned(parts)])


def _aligned(lines: list[list[str]]) -> str:
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    text = []
    for line in lines:
        cells = [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        text.append("  " + "  ".join([line[0].ljust(widths[0]), *cells]))
    return "\n".join(text)


def disagreements(outcomes: list[Outcome]) -> list[str]:
    """Return a sentence for each load on which systems gave different numbers of results."""
    found: dict[Load, set[int]] = {}
    for each in outcomes:
        found.setdefault(each.load, set()).add(each.results)
    return [f"window {load.window} s: {sorted(counts)}" for load, counts in found.items() if len(counts) > 1]


def options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="only 300k, and 20 seconds of practice")
    add("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS), help="which to run; all by default")
    add("--parts", nargs="+", choices=PARTS, help="what to measure; all by default, 300k with --quick")
    add("--warm-up", type=int, metavar="SECONDS", help="practice of each system; 60 by default")
    add("--memory", default="4g", help="heap of each system's JVM (%(default)s)")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="a Spark setting for all systems")
    add("--scratch", help="where data and checkpoints are kept while it runs")
    add("--json", type=Path, help="write the outcomes to this file, too")
    arguments = parser.parse_args()
    if arguments.warm_up is None:
        arguments.warm_up = 20 if arguments.quick else 60
    arguments.parts = arguments.parts or (["300k"] if arguments.quick else PARTS)
    return arguments


def main() -> int:
    """Run what the command line asks for; 1 when systems disagree."""
    arguments = options()
    everything: list[Outcome] = []
    for section in sections(arguments):
        print(section.title, flush=True)
        outcomes = []
        for load in section.loads:
            with tempfile.TemporaryDirectory(prefix="wjoin-data-", dir=arguments.scratch) as folder:
                write_streams(load, Path(folder) / "load")
                write_streams(dataclasses.replace(load, batches=PRACTICE), Path(folder) / "practice")
                outcomes += [
                    run(each, load, section.filling, Path(folder), arguments) for each in section.systems
                ]
        print(table(outcomes) + "\n", flush=True)
        everything += outcomes
    if arguments.json:
        arguments.json.write_text(json.dumps([dataclasses.asdict(each) for each in everything], indent=1))
    wrong = disagreements(everything)
    for each in wrong:
        print(f"DIFFERENT NUMBERS OF RESULTS: {each}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
