"""Processes that take turns: one runs while the others are stopped, and all end."""

import subprocess
import sys
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from turns import Player, running, take_turns

pytestmark = pytest.mark.long

WORKING = """
import sys, time
with open(sys.argv[1], "w") as said:
    spent, last = 0.0, time.time()
    while spent < float(sys.argv[2]):
        time.sleep(0.005)
        now = time.time()
        spent += min(now - last, 0.01)
        last = now
        print(now, file=said, flush=True)
"""


def begun(moments: Path, seconds: float) -> Player:
    """A process that writes down when it runs, and may be stopped once it has."""
    process = subprocess.Popen([sys.executable, "-c", WORKING, str(moments), str(seconds)])
    return Player(process, lambda: moments.exists() and moments.stat().st_size > 0)


@pytest.mark.timeout(60)
def test_one_runs_while_the_others_are_stopped(tmp_path: Path):
    worked = [0.2, 0.8, 1.2]
    files = [tmp_path / str(number) for number in range(len(worked))]
    stops = take_turns(
        [partial(begun, file, seconds) for file, seconds in zip(files, worked, strict=True)], turn=0.3
    )
    lines = [(line, number) for number, file in enumerate(files) for line in file.read_text().split()]
    told = sorted((float(line), number) for line, number in lines)
    assert {number for _, number in told} == {0, 1, 2}
    # Who runs changes with each turn, and not with each moment, as it does where nobody is stopped.
    changes = sum(one != other for (_, one), (_, other) in pairwise(told))
    assert 4 <= changes <= 12
    for (moment, number), stopped in zip(told, (stops[number] for _, number in told), strict=True):
        assert not any(since + 0.05 < moment < until for since, until in stopped), number


@pytest.mark.timeout(60)
def test_what_may_not_be_stopped_any_more_goes_on(tmp_path: Path):
    """Between the question and the stop it may have begun what waits with a limit."""
    states: list[str] = []

    def asked() -> bool:
        state = Path(f"/proc/{player.process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        states.append("stopped" if state == "T" else "running")
        # The first time only until it is stopped.
        return len(states) != 2

    player = Player(begun(tmp_path / "first", 0.4).process, asked)
    second = partial(begun, tmp_path / "second", 0.2)
    take_turns([lambda: player, second], turn=0.1)
    assert states[:4] == ["running", "stopped", "running", "stopped"]
    assert player.process.returncode == 0


def test_the_time_that_a_process_is_stopped_counts_for_nothing():
    stops = [(1.0, 2.0), (4.0, 7.0)]
    assert running(0.0, 10.0, stops) == 6.0
    assert running(1.5, 5.0, stops) == 2.0
    assert running(4.5, 6.0, stops) == 0.0
