"""The first session of a machine leaves ``wjoin prepare`` to a process of the lowest priority."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from wjoin.grammar.errors import WJoinError
from wjoin.spark.class_archive import archive_folder, archive_name, reading_options

SETTING, VARIABLE = "wjoin.prepare", "WJOIN_PREPARE"
"""The setting of ``connect``, and the variable of the environment, that say ``off`` against it."""

_SAID = (
    "wjoin: preparing faster starts in the background, once on this machine (like wjoin prepare); "
    f"set {SETTING}=off to prevent it"
)
_LOWEST = 19
_ROOT = Path(__file__).resolve().parents[2]


def leave_preparing(wanted: str | None) -> None:
    """Start ``wjoin prepare`` in the background and say so, the first time, where nobody has said ``off``.

    Raises WJoinError WJ603 for another word than ``on`` and ``off``.
    """
    word = (wanted or os.environ.get(VARIABLE) or "on").lower()
    if word not in ("on", "off"):
        raise WJoinError("WJ603", f"{SETTING} is {word}", help="known: on, off")
    if word == "on" and not reading_options() and _first():
        print(_SAID, file=sys.stderr, flush=True)
        _start()


def _first() -> bool:
    """Return whether this is the first time, and note it: what fails is not tried again."""
    name = archive_name()
    if name is None:
        return False
    with contextlib.suppress(OSError):
        archive_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        begun_file(name).touch(exist_ok=False)
        return True
    return False


def begun_file(name: str) -> Path:
    """Return the file that says that an archive of a name has been begun."""
    return archive_folder() / f"{name}.begun"


def _start() -> None:
    """Start it, on a terminal that nobody closes, in the time that others leave."""
    command = [sys.executable, "-P", "-m", "wjoin.cli", "prepare"]
    nowhere = subprocess.DEVNULL
    search = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    process = subprocess.Popen(
        command,
        stdin=nowhere,
        stdout=nowhere,
        stderr=nowhere,
        cwd=Path.home(),
        env={**os.environ, "PYTHONPATH": search, VARIABLE: "off"},
        start_new_session=True,
    )
    # Before it starts Java, which is then of the same priority.
    os.setpriority(os.PRIO_PROCESS, process.pid, _LOWEST)
    if sys.platform == "linux":
        os.sched_setscheduler(process.pid, os.SCHED_IDLE, os.sched_param(0))
    # It outlives this process.
    process.returncode = 0
