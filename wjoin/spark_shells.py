"""Spark's own shells with W-join SQL in them."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pyspark

from wjoin.java_classes import JAR

EXTENSIONS = "wjoin.sql.Extensions"
"""The value of ``spark.sql.extensions`` with which a session understands W-join SQL."""


def extension_settings() -> dict[str, str]:
    """Return the settings with which any Spark understands W-join SQL, planned by this Python."""
    return {
        "spark.jars": str(JAR),
        "spark.sql.extensions": EXTENSIONS,
        "spark.wjoin.python": sys.executable,
        # Its workers need wjoin as well.
        "spark.pyspark.python": sys.executable,
    }


def replace_by(shell: str, arguments: Sequence[str]) -> NoReturn:
    """Go on as a shell of the installed PySpark, with further options of its own."""
    home = Path(pyspark.__file__).parent
    program = str(home / "bin" / shell)
    options = [f"--conf={name}={value}" for name, value in extension_settings().items()]
    os.execve(program, [program, *options, *arguments], {**os.environ, "SPARK_HOME": str(home)})
