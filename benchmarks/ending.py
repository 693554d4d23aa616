"""How a benchmark of several systems tells what it has measured, and what went wrong."""

import dataclasses
import json
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from running import Failure
from targets import Target, summary


def end_with_all() -> None:
    """Let the benchmark, ended from outside, end what it has started, too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def tell(found: Sequence[Any], failed: Sequence[Failure], table: Callable[[Sequence[Any]], str]) -> None:
    """Print what has failed of a section, and a table of what has not."""
    for each in failed:
        print(f"{each.what} failed:\n{each.words}", file=sys.stderr, flush=True)
    if found:
        print(table(found) + "\n", flush=True)


def ended(
    outcomes: Sequence[Any],
    lines: Sequence[Target],
    disagreements: Callable[[Sequence[Any]], list[str]],
    failures: Sequence[Failure],
    path: Path | None,
) -> int:
    """Print the summary, and write it with the outcomes as JSON where there is a path.

    Returns 1 where systems disagree or one has failed. ``disagreements`` tells where they do, in sentences.
    """
    print(summary(lines), flush=True)
    if path:
        body = {
            "outcomes": [dataclasses.asdict(each) for each in outcomes],
            "summary": [dataclasses.asdict(each) | {"reached": each.reached} for each in lines],
        }
        path.write_text(json.dumps(body, indent=1))
    wrong = disagreements(outcomes)
    for each in wrong:
        print(f"DIFFERENT NUMBERS OF RESULTS: {each}", file=sys.stderr)
    for failure in failures:
        print(f"FAILED (see above): {failure.what}", file=sys.stderr)
    return 1 if wrong or failures else 0
