"""The ways of a benchmark, each measured in a process of its own."""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import kit_path  # noqa: F401 (finds tests.kit)

from tests.kit.processes import Sampler


def add_ways(parser: argparse.ArgumentParser, ways: Sequence[str]) -> None:
    """Add the options that choose ways; ``--way`` and ``--folder`` are those of the process of one."""
    parser.add_argument("--ways", nargs="+", choices=ways, default=ways)
    parser.add_argument("--way", choices=ways, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)


def in_a_process(way: str, folder: Path) -> dict[str, Any]:
    """Return what the running script prints of a way as JSON, and the ``memory`` of its processes in bytes.

    Raises SystemExit if it fails.
    """
    print(f"  {way} ...", file=sys.stderr, flush=True)
    command = [sys.executable, *sys.argv, "--way", way, "--folder", str(folder)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
        Sampler(process.pid) as usage,
    ):
        printed, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"{way} has failed")
    found: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return {**found, "memory": usage.peak.anonymous}
