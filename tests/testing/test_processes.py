"""The sampler sees what a process and its children take, and kills them at their limit. Others are paused."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.kit.processes import Sampler, Usage, kill_tree, pause, resume

pytestmark = pytest.mark.long

CHILD = "kept = bytearray(60_000_000); kept[::4096] = b'x' * len(kept[::4096]); input()"
PARENT = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdin=subprocess.PIPE)
print("ready", flush=True)
input()
child.communicate(b"end")
"""
GROWING = """
kept = []
while True:
    kept.append(bytearray(1_000_000))
    kept[-1][::4096] = b"x" * len(kept[-1][::4096])
"""


@pytest.mark.timeout(60)
def test_memory_of_children_counts_and_files_are_told_apart():
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with Sampler(process.pid, interval=0.02, proportional=True) as usage:
        wait_until(usage, 60_000_000)
        process.communicate("end\n")
    peak = usage.peak
    assert 60_000_000 < peak.anonymous < peak.resident < 200_000_000
    assert not usage.killed
    assert all(sample.java.resident == 0 for sample in usage.samples)


@pytest.mark.timeout(60)
def test_processes_that_pass_their_limit_are_killed():
    process = subprocess.Popen([sys.executable, "-c", GROWING])
    with Sampler(process.pid, interval=0.02, limit=200_000_000) as usage:
        status = process.wait()
    assert status == -signal.SIGKILL
    assert usage.killed


def wait_until(usage: Usage, size: int) -> None:
    while usage.peak.anonymous < size:
        time.sleep(0.01)


@pytest.mark.timeout(60)
def test_what_a_process_has_started_is_paused_with_it():
    # In a process group of its own, as Spark's daemon of Python workers.
    child = "import os; os.setpgid(0, 0); print(os.getpid(), flush=True)\nwhile True: pass"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        busy = int(process.stdout.readline())
        try:
            pause(process.pid)
            assert spent(busy, 0.5) == 0
            resume(process.pid)
            assert spent(busy, 0.5) > 0
        finally:
            kill_tree(process.pid)


def spent(process: int, seconds: float) -> int:
    """The ticks of processor time that a process takes in some seconds."""

    def ticks() -> int:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    time.sleep(0.1)
    before = ticks()
    time.sleep(seconds)
    return ticks() - before
