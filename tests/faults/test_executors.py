"""Executors follow the load on a cluster of Spark's own, and results stay as they are."""

import json
import subprocess
import sys

import pytest

from tests.packages import ROOT


@pytest.mark.long
@pytest.mark.timeout(900)
def test_executors_go_while_a_query_rests_and_come_when_it_works() -> None:
    """The query begins with four executors; two are left while it rests, and four come back for its rows."""
    script, scaling = str(ROOT / "benchmarks" / "executors.py"), "2 4 2 4"
    command = [sys.executable, script, "follow", "--range", scaling, "--rates", "0", "15000", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=850, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    *told, last = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    assert [(each["executors"], each["then"]) for each in told] == [(4, 2), (2, 4), (4, 2)]
    assert last["right"] and last["results"] > 1000
    assert "warning[WJ822]: 2 executors asked for in place of 4: the utilization is 0.00" in done.stderr
    assert "4 executors asked for in place of 2: the utilization is " in done.stderr
