"""Run the core of the tests on several versions of Spark and Python, each pair in an environment of its own.

An environment has the packages of requirements.lock, but for its Spark. They lie in .matrix/ and are kept. A
Python that this machine does not have is left out, which the last lines say.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENTS = ROOT / ".matrix"

SPARKS = ("4.0.0", "4.0.5", "4.1.0", "4.1.4", "4.2.0", "4.2.1", "4.3.0")
"""Of each minor version the first and the newest release."""

PYTHONS = ("3.11", "3.12", "3.13")

_SIDE_BY_SIDE = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")

_SPARKS_OWN = ("-W", "default::pytest.PytestUnraisableExceptionWarning")
"""Clients of Spark 4.0 leave sockets to the garbage collector."""

_OTHER = {"pyspark", "py4j"}
"""Packages that each Spark has versions of its own of."""


@dataclass(frozen=True)
class Cell:
    """A Spark on a Python; ``interpreter`` is None where the machine does not have that Python."""

    spark: str
    python: str
    interpreter: str | None

    def __str__(self) -> str:
        return f"Spark {self.spark}, Python {self.python}"

    @property
    def environment(self) -> Path:
        """The folder of its environment."""
        return ENVIRONMENTS / f"spark-{self.spark}-python-{self.python}"


def find_python(version: str) -> str | None:
    """Return the path of a Python, from PATH or pyenv; None where there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [shutil.which(f"python{version}"), *map(str, sorted(pyenv.glob(f"{version}.*/bin/python")))]
    script = f"import ssl, sys; sys.exit('%d.%d' % sys.version_info[:2] != '{version}')"
    for path in filter(None, candidates):
        if subprocess.run([path, "-c", script], capture_output=True, check=False).returncode == 0:
            return path
    return None


def requirements(spark: str) -> str:
    """Return the locked versions with another Spark."""
    lock = (ROOT / "requirements.lock").read_text().splitlines()
    kept = [line for line in lock if line.partition("==")[0].strip() not in _OTHER]
    return "\n".join([*kept, f"pyspark=={spark}", ""])


def prepare(cell: Cell) -> Path:
    """Make the environment of a cell where it is not there as it should be; return its Python."""
    python, wanted = cell.environment / "bin" / "python", requirements(cell.spark)
    installed = cell.environment / "requirements.txt"
    if not installed.exists() or installed.read_text() != wanted:
        shutil.rmtree(cell.environment, ignore_errors=True)
        uv = [sys.executable, "-m", "uv", "--quiet"]
        subprocess.run([*uv, "venv", "--python", str(cell.interpreter), str(cell.environment)], check=True)
        missing = cell.environment / "requirements.in"
        missing.write_text(wanted)
        install = [*uv, "pip", "install", "--python", str(python)]
        subprocess.run([*install, "--requirement", str(missing)], check=True)
        editable = ["--no-deps", "--no-build-isolation", "--editable", str(ROOT)]
        subprocess.run([*install, *editable], check=True)
        missing.rename(installed)
    return python


def run(cell: Cell, marks: str, arguments: list[str]) -> str:
    """Run the tests that have such marks on one cell; return how that went, in some words."""
    if cell.interpreter is None:
        return f"not tested: this machine has no Python {cell.python}"
    begun = time.monotonic()
    python = prepare(cell)
    ready = time.monotonic()
    print(f"== {cell}: the environment took {ready - begun:.0f} s", flush=True)
    command = [python, "-m", "pytest", "-m", marks, *_SIDE_BY_SIDE, *_SPARKS_OWN, *arguments]
    done = subprocess.run(command, cwd=ROOT, check=False)
    went = "passed" if done.returncode == 0 else f"FAILED with status {done.returncode}"
    return f"{went} in {time.monotonic() - ready:.0f} s"


def cells(sparks: list[str], pythons: list[str], *, ends: bool) -> list[Cell]:
    """Return every Spark on the oldest Python, and the oldest and newest Spark on every Python.

    With ``ends`` only the oldest of both: on the newest Spark all other tests run.
    """
    found = {version: find_python(version) for version in pythons}
    here = [version for version in pythons if found[version] is not None] or pythons
    if ends:
        pairs = [(sparks[0], here[0])]
    else:
        last = (sparks[0], sparks[-1])
        pairs = [(spark, each) for spark in sparks for each in pythons if each == here[0] or spark in last]
    return [Cell(spark, python, found[python]) for spark, python in pairs]


def main() -> int:
    """Run every cell; return 1 where one has failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sparks", default=",".join(SPARKS), help="versions, the oldest first")
    parser.add_argument("--pythons", default=",".join(PYTHONS), help="versions, the oldest first")
    parser.add_argument("--ends", action="store_true", help="only the oldest of both")
    given, arguments = parser.parse_known_args()
    marks = "core" if given.ends else "core or sparks"
    results = {}
    for cell in cells(given.sparks.split(","), given.pythons.split(","), ends=given.ends):
        results[cell] = run(cell, marks, arguments)
    for cell, result in results.items():
        print(f"{cell}: {result}")
    return any("FAILED" in result for result in results.values())


if __name__ == "__main__":
    sys.exit(main())
