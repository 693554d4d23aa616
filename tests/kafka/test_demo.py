"""``make demo-kafka``: a broker starts, topics are joined, DuckDB agrees, and the broker ends."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.packages import ROOT

pytestmark = pytest.mark.thorough


@pytest.mark.timeout(900)
def test_demo_confirms_its_results(jars: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "kafka" / "demo.py"), str(jars)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stderr
    assert "confirmed: the topic planes has 406 results, DuckDB finds 406" in done.stdout
    assert "308,641 records of months 1 to 11 written" in done.stdout
    assert "planes: 28,135 rows in" in done.stdout
