"""Packages of Maven's for the Spark that the tests run on."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pyspark
import pytest

from tests.packages import ROOT


def jars_for_spark(what: str, packages: Mapping[str, str]) -> str:
    """Return the paths of a package's jars, with commas between them; else skip.

    ``packages`` are by minor version of Spark, ``what`` says in the reason for a skip what they are.
    """
    minor = ".".join(pyspark.__version__.split(".")[:2])
    if minor not in packages:
        pytest.skip(f"no {what} is published for Spark {minor}: `make matrix` tests it on others")
    command = [str(ROOT / "scripts" / "fetch_jars.sh"), packages[minor]]
    fetched = subprocess.run(command, capture_output=True, text=True, check=False)
    if fetched.returncode != 0:
        pytest.skip(f"{packages[minor]} cannot be fetched: {fetched.stderr[-500:]}")
    return ",".join(map(str, sorted(Path(fetched.stdout.strip()).glob("*.jar"))))
