"""Queries come up on a machine that has no time."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.packages import ROOT

pytestmark = pytest.mark.thorough


@pytest.mark.timeout(1800)
def test_scripts_of_three_queries_that_start_at_once_beside_busy_processes(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "starts.py"), "--rounds", "1"]
    done = subprocess.run(
        [*command, "--patience", "1500", "--scratch", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "in all: 4 of 4 scripts came up" in done.stdout
