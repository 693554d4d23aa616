"""What is being waited for, on a terminal."""

import os
import pty
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys, time
from wjoin.spark.process import logged
from wjoin.commands.waiting_note import waiting
with waiting("Starting Spark", lambda: "3 of 4 tasks"), logged(sys.argv[1]):
    time.sleep(1.8)
print("over")
"""


def test_the_terminal_is_drawn_on_while_standard_error_is_the_log_of_java(tmp_path: Path) -> None:
    near, far = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "log")],
        stdin=far,
        stdout=far,
        stderr=far,
        env={**os.environ, "TERM": "xterm"},
    ) as process:
        os.close(far)
        said = b""
        # The system tells of the other end of a terminal that is gone by an error.
        while True:
            try:
                said += os.read(near, 4096)
            except OSError:
                break
        process.wait()
    os.close(near)
    assert b"Starting Spark, 3 of 4 tasks ... 1 s" in said
    assert said.endswith(b"over\r\n")
    assert (tmp_path / "log").read_text() == ""


def test_elsewhere_it_is_said_once() -> None:
    program = (
        "import time; from wjoin.commands.waiting_note import waiting\nwith waiting('This'): time.sleep(0.7)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "This ...\n")


def test_spark_starts_before_what_a_session_needs_is_imported() -> None:
    """Each of these takes a second or so, while Java needs nothing of them."""
    program = (
        "import sys, wjoin.cli, wjoin.commands.spark_start, wjoin.connecting, wjoin.commands.waiting_note\n"
        "names = ('pandas', 'pyarrow', 'numpy', 'sqlglot', 'wjoin.planner.planning', 'wjoin.session')\n"
        "print([name for name in names if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
