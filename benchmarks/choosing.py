"""What the benchmarks of the planner's choices share: what they run, and whether the choices are good."""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

GOOD, BAD, SHARE = 1.25, 3.0, 0.9
"""The chosen plan is good up to so many times the fastest; no one may be as bad; what share is to be good."""


def command_line(description: str | None, every: str) -> argparse.ArgumentParser:
    """Return a parser with ``--quick``, which runs ``every`` so-manieth workload only, and ``--only``."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help=f"every {every} workload only")
    parser.add_argument("--only", default="", help="workloads whose name has this text")
    return parser


def run_all(
    loads: Iterable[Any], step: int, run: Callable[[Any], Any], line: Callable[[Any], str], only: str = ""
) -> list[Any]:
    """Run every ``step``-th workload of those whose name has the text ``only``.

    Print the line of each one, and on stderr which one is running.
    """
    chosen = [load for load in loads if only in load.name][::step]
    found = []
    for number, load in enumerate(chosen, start=1):
        print(f"{number}/{len(chosen)} {load.name}", file=sys.stderr)
        found.append(run(load))
        print(line(found[-1]), flush=True)
    return found


def good_choices(ratios: Sequence[float], ran: str) -> bool:
    """Print how often the chosen plan is about the fastest, and return whether that is often enough.

    ``ratios``: of each workload, how many times slower it is; ``ran``: what has been run of them, in words.
    """
    good = sum(ratio <= GOOD for ratio in ratios) / len(ratios)
    print(f"\n{len(ratios)} workloads, {ran}")
    print(f"within {GOOD} of the fastest: {good:.1%}; the worst: {max(ratios):.2f}")
    return good >= SHARE and max(ratios) <= BAD
