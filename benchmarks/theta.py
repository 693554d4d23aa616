"""Joins without a key: wjoin beside what a user would do without it.

Streams are joined inside a window of 5 seconds on inequalities, on arithmetic, on a band of values, and on a
costly function in Python. On Spark the same is done by *buckets of time*: buckets as long as the window, the
rows of all streams but the first one copied into the buckets beside theirs, an equality of buckets, and
the exact conditions after it; as a stream-stream join with watermarks, and over tables. Over tables DuckDB
and Polars join the same files as well; DuckDB calls the function as one of its own over Arrow's arrays.

Systems have a process each and drop their results, as in bench.py. They take turns, but where a predicate
waits: there each runs to its end before the next. *Fresh* is the first run of a process over tables,
*practised* are those after some practice; figures are medians. Ratios are of rates, and of processor time.
*ns a pair* are of the clock, for a pair of rows inside the window. Polars is left out where it is not
installed; where it takes more memory than is allowed, that is told. Fails when systems differ in the number
of results, or another one fails. Linux only.
"""

import argparse
import contextlib
import dataclasses
import sys
import tempfile
from pathlib import Path

from ending import end_with_all, ended, tell
from run_system import COMMITS
from run_theta import BEGUN, ThetaTask
from running import Failure
from theta_loads import write_theta
from theta_outcomes import ThetaOutcome, disagreements, outcome_table, read_outcomes, theta_targets
from theta_sections import SECTIONS, ThetaSection, at_rate, quick
from theta_systems import ON_STREAMS, ON_TABLES
from turns import TURN, take_turns
from watched import REPORT, Watched, places

PLACES = ("streams", "tables")

STOPPED = 8.0
"""Seconds that a process is stopped for at a time, at the most: Spark waits ten for some things."""


def options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="a quarter of the rows, and little practice")
    add("--parts", nargs="+", choices=SECTIONS, default=list(SECTIONS), help="what to join; all by default")
    add("--rate", type=int, help="rows a second of each stream, in place of what a part has")
    add("--on", nargs="+", choices=PLACES, default=PLACES, help="streams, tables, or both (%(default)s)")
    add("--systems", nargs="+", choices={**ON_STREAMS, **ON_TABLES}, help="which of those that a part has")
    add("--warm-up", type=float, metavar="SECONDS", help="practice of each system; 20 by default")
    add("--measured", type=float, default=10, help="seconds that it is measured then (%(default)s)")
    add("--memory", default="3g", help="heap of each system's JVM (%(default)s)")
    add("--limit-gb", type=float, default=8, help="anonymous memory that ends a system (%(default)s)")
    add("--scratch", help="where data and checkpoints are kept while it runs")
    add("--json", type=Path, help="write the outcomes to this file, too")
    arguments = parser.parse_args()
    if arguments.warm_up is None:
        arguments.warm_up = 5 if arguments.quick else 20
    return arguments


def measure(
    part: str, section: ThetaSection, arguments: argparse.Namespace, *, tables: bool
) -> tuple[list[ThetaOutcome], list[Failure]]:
    """Run the systems of a section in turns; one that fails hinders no other."""
    registry, load = (ON_TABLES if tables else ON_STREAMS), section.load(tables=tables)
    systems = []
    for name in section.systems(tables=tables):
        if registry[name].missing:
            print(f"  {registry[name].title}: not installed, left out", file=sys.stderr, flush=True)
        elif name in (arguments.systems or registry):
            systems.append(name)
    found: list[ThetaOutcome] = []
    failed: list[Failure] = []
    with contextlib.ExitStack() as stack:
        data = Path(stack.enter_context(tempfile.TemporaryDirectory("-data", "wjoin-", arguments.scratch)))
        write_theta(load, data / "load")
        write_theta(load.practice, data / "practice")
        prepared = [_watched(name, section, data, arguments, stack, tables=tables) for name in systems]
        turn = min(TURN, STOPPED / max(1, len(systems) - 1))
        starts = [each.start for each in prepared]
        groups = [starts] if section.in_turns else [[start] for start in starts]
        stops = [stopped for group in groups for stopped in take_turns(group, turn)]
        for name, each, stopped in zip(systems, prepared, stops, strict=True):
            if each.usage.killed:
                words = f"more than {arguments.limit_gb:g} GB of memory"
                print(f"  {registry[name].title}: {words}, ended", flush=True)
                if registry[name].needs is None:
                    failed.append(Failure(f"{part}: {name}", words))
            elif each.words is not None:
                failed.append(Failure(f"{part}: {name}", each.words))
            else:
                told = (each.scratch / REPORT, each.usage, stopped)
                found += read_outcomes(part, name, load, *told, tables=tables)
    return found, failed


def _watched(
    name: str,
    section: ThetaSection,
    data: Path,
    arguments: argparse.Namespace,
    stack: contextlib.ExitStack,
    *,
    tables: bool,
) -> Watched:
    def task(folder: Path) -> ThetaTask:
        return ThetaTask(
            system=name,
            load=dataclasses.asdict(section.load(tables=tables)),
            sink="noop",
            memory=arguments.memory,
            warm_up=arguments.warm_up,
            fresh=tables,
            settings={},
            measured=arguments.measured,
            tables=tables,
            **places(data, folder),
        )

    limit = int(arguments.limit_gb * 1e9)
    return Watched("run_theta.py", task, BEGUN if tables else COMMITS, arguments.scratch, stack, limit)


def main() -> int:
    """Run what the command line asks for; 1 when systems disagree, or one has failed."""
    arguments = options()
    end_with_all()
    outcomes: list[ThetaOutcome] = []
    failures: list[Failure] = []
    sections = {part: SECTIONS[part] for part in arguments.parts}
    if arguments.rate:
        sections = {part: at_rate(section, arguments.rate) for part, section in sections.items()}
    if arguments.quick:
        sections = {part: quick(section) for part, section in sections.items()}
    for part, section in sections.items():
        for place in arguments.on:
            tables = place == "tables"
            print(f"{section.load(tables=tables).title}: {place}", flush=True)
            found, failed = measure(part, section, arguments, tables=tables)
            tell(found, failed, outcome_table)
            outcomes += found
            failures += failed
    lines = theta_targets(outcomes)
    return ended(outcomes, lines, disagreements, failures, arguments.json)


if __name__ == "__main__":
    sys.exit(main())
