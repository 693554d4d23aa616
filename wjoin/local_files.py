"""Files of this machine, as the embedded Spark writes them: without a process for each one's permissions."""

import os
from collections.abc import Mapping
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext

JAR = Path(__file__).parent / "jars" / "wjoin.jar"
"""The compiled classes of java/."""

FILE_SYSTEM = "wjoin.files.CheckedFiles"
"""Hadoop's own file system for file: paths, but for how it sets permissions."""

CLASS_PATHS = ("spark.driver.extraClassPath", "spark.executor.extraClassPath")
"""The settings by which Spark finds the jar."""

_SETTING = "spark.hadoop.fs.file.impl"


def file_settings(given: Mapping[str, str]) -> Mapping[str, str]:
    """Return the settings by which Spark sets the permissions of local files itself.

    Without its native library Hadoop starts a process for each permission, and several for each file of a
    checkpoint. ``given`` are the settings of the user, whose class paths stay. Nothing is set where they name
    another file system, or a Java process already runs that does not have the class.
    """
    if _SETTING in given or not JAR.is_file() or not _has_class():
        return {}
    paths = {name: os.pathsep.join(filter(None, (given.get(name), str(JAR)))) for name in CLASS_PATHS}
    return {_SETTING: FILE_SYSTEM, **paths}


def _has_class() -> bool:
    """Return whether the Java process of this one has the class, or will have it."""
    if SparkContext._gateway is None:
        # Who started this process may have started that one, too.
        return "PYSPARK_GATEWAY_PORT" not in os.environ
    try:
        SparkContext._gateway.jvm.java.lang.Class.forName(FILE_SYSTEM)
    except Py4JJavaError:
        return False
    return True
