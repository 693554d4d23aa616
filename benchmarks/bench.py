"""What a micro-batch of wjoin costs, beside hand-written chains of Spark's joins and beside reading alone.

Streams of 10,000 rows per second of event time each, joined inside a window of 5 seconds, 0.23
results a row. Every system reads the same Parquet files in the same micro-batches into
the same sink, each in a process of its own, in turns (``turns``), on two cores and two
shuffle partitions. *Fresh* are the micro-batches 3 to 10 of a process that has run nothing
before, *practised* those of twenty seconds or more after a minute of practice; figures are
medians. The chain runs with Spark's settings as they come, but for its state store; wjoin with
those of ``wjoin.connect()``. *Reading and dropping* is one query over the union of the streams,
without a shuffle or state, with the same settings as wjoin: no engine on Spark that reads these files
takes less. *Spark's engine, no join* goes the way of a join through the same operators of Spark, and
does nothing in them: what is more than that is wjoin's own. By default all drop their results, so
that the time of a sink hides no difference; ``--sink parquet`` writes them.
Fails when systems differ in the number of results, or one fails. Linux only.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from cold_start import ColdStart, cold_start
from ending import end_with_all, ended, tell
from latency import Latency, latency
from outcomes import Outcome, disagreements
from run_system import SINKS
from running import Failure, How, run_section
from sections import QUICK, SECTIONS, quick
from systems import SYSTEMS
from tables import section_table
from targets import targets

Measured = TypeVar("Measured", ColdStart, Latency)

START, LATENCY = "start", "latency"
PARTS = (*SECTIONS, START, LATENCY)


def options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="the small parts, fewer systems, 20 seconds of practice")
    add("--parts", nargs="+", choices=PARTS, help="what to measure; all by default")
    add("--systems", nargs="+", choices=SYSTEMS, help="which to run in each part, of those that it has")
    add("--warm-up", type=float, metavar="SECONDS", help="practice of each system; 60 by default")
    add("--sink", choices=SINKS, default=SINKS[0], help="where results go (%(default)s)")
    add("--memory", default="4g", help="heap of each system's JVM (%(default)s)")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="a Spark setting for all systems")
    add("--scratch", help="where data and checkpoints are kept while it runs")
    add("--json", type=Path, help="write the outcomes to this file, too")
    arguments = parser.parse_args()
    if arguments.warm_up is None:
        arguments.warm_up = 20 if arguments.quick else 60
    arguments.parts = arguments.parts or ([*QUICK, START, LATENCY] if arguments.quick else PARTS)
    return arguments


def measure_sections(arguments: argparse.Namespace) -> tuple[list[Outcome], list[Failure]]:
    """Run the sections that the command line asks for, and print a table of each; tell what has failed."""
    settings = dict(each.split("=", 1) for each in arguments.set)
    how = How(arguments.warm_up, arguments.sink, arguments.memory, settings, arguments.scratch)
    everything: list[Outcome] = []
    failures: list[Failure] = []
    for part in (part for part in SECTIONS if part in arguments.parts):
        section = quick(SECTIONS[part]) if arguments.quick else SECTIONS[part]
        systems = tuple(each for each in section.systems if each in (arguments.systems or SYSTEMS))
        if systems:
            print(section.title, flush=True)
            found, failed = run_section(part, section, systems, how)
            tell(found, failed, section_table)
            everything += found
            failures += failed
    return everything, failures


def measure_start(arguments: argparse.Namespace) -> ColdStart | None:
    """Start fresh processes where the command line asks for it."""
    if START not in arguments.parts:
        return None
    runs = 1 if arguments.quick else 3
    print(f"  a script in a fresh process, {runs} × ...", file=sys.stderr, flush=True)
    return cold_start(runs, arguments.scratch)


def measure_latency(arguments: argparse.Namespace) -> Latency | None:
    """Measure how long rows wait where the command line asks for it."""
    if LATENCY not in arguments.parts:
        return None
    print("  files that appear in real time ...", file=sys.stderr, flush=True)
    settings = dict(each.split("=", 1) for each in arguments.set)
    seconds = 30 if arguments.quick else 60
    found = latency(arguments.warm_up, seconds, settings, arguments.scratch)
    print(f"Latency: {found.results:,} results in {found.batches} micro-batches\n", flush=True)
    return found


def attempt(
    measure: Callable[[argparse.Namespace], Measured | None],
    arguments: argparse.Namespace,
    failures: list[Failure],
) -> Measured | None:
    """Return what is measured; None, and one failure more, where that fails."""
    try:
        return measure(arguments)
    except RuntimeError as error:
        print(error, file=sys.stderr, flush=True)
        failures.append(Failure(measure.__name__, str(error)))
        return None


def main() -> int:
    """Run what the command line asks for; 1 when systems disagree, or one has failed."""
    arguments = options()
    end_with_all()
    outcomes, failures = measure_sections(arguments)
    started = attempt(measure_start, arguments, failures)
    waited = attempt(measure_latency, arguments, failures)
    lines = targets(outcomes, started, waited)
    return ended(outcomes, lines, disagreements, failures, arguments.json)


if __name__ == "__main__":
    sys.exit(main())
