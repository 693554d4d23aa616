"""Programs that tests run in processes of their own, as users do."""

import os
import subprocess
import sys
from pathlib import Path

from tests.packages import ROOT


def find_jars(*options: str) -> Path | None:
    """Return the folder with the jars of a Kafka broker and its connector, None where they cannot be had."""
    found = subprocess.run([ROOT / "scripts" / "find_kafka.sh", *options], capture_output=True, text=True)
    return Path(found.stdout.strip()) if found.returncode == 0 else None


def run_python(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run this Python in a folder, with the checkout on its path; return what it said."""
    search = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": search, **environment},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
