"""The script of a folder, run as a user runs it and stopped as a user stops it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_PATIENCE = 60
OUTPUT, ERRORS = "output", "errors"


@contextmanager
def running(
    root: Path, settings: Mapping[str, str], environment: Mapping[str, str] | None = None
) -> "Iterator[subprocess.Popen[bytes]]":
    """Run join.sql of a folder until the end of ``with``; its output and errors are files there.

    The checkpoint is in the same folder. Raises RuntimeError with its last words where it ended before, or
    could not be stopped well.
    """
    given = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    command = [sys.executable, "-m", "wjoin.cli", "run", str(root / "join.sql"), "--json"]
    command += ["--checkpoint", str(root / "checkpoints"), *given]
    with (root / OUTPUT).open("w") as out, (root / ERRORS).open("w") as errors:
        process = subprocess.Popen(
            command, stdout=out, stderr=errors, env=os.environ | dict(environment or {})
        )
    try:
        yield process
    finally:
        early = process.poll() is not None
        _stop(process)
    if early or process.returncode:
        words = (root / OUTPUT).read_text()[-2000:] + (root / ERRORS).read_text()[-4000:]
        raise RuntimeError(f"wjoin run has ended with {process.returncode}:\n{words}")


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """Stop a command as a user does; kill it where it has not ended after a minute."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
