"""The classes of java/ in the embedded Spark: how it writes local files, sends Python rows, and ends."""

import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from wjoin.spark.extensions import COLUMNS, EXTENSIONS

JAR = Path(__file__).parents[1] / "jars" / "wjoin.jar"
"""The compiled classes of java/."""

FILE_SYSTEM = "wjoin.files.CheckedFiles"
"""Hadoop's own file system for file: paths, but for how it sets permissions."""

STORES_CLOSED = "wjoin.state.StoresClosed"
"""A plugin of Spark that closes the state of queries with the application."""

CLASS_PATHS = ("spark.driver.extraClassPath", "spark.executor.extraClassPath")
"""The settings by which Spark finds the jar."""

PLUGINS = "spark.plugins"
"""The setting that names plugins, with commas."""

_FILE_SYSTEM_SETTING = "spark.hadoop.fs.file.impl"


def class_settings(given: Mapping[str, str]) -> Mapping[str, str]:
    """Return the settings by which Spark finds the classes and uses them.

    Without its native library Hadoop starts a process for each permission, and several for each file of a
    checkpoint. Left open, RocksDB may keep the Java process from ending. ``given`` are the settings of the
    user: class paths, plugins, extensions and another file system stay. Nothing is set where a Java process
    already runs that does not have the classes.
    """
    if not JAR.is_file() or not _has_classes():
        return {}
    settings = {name: os.pathsep.join(filter(None, (given.get(name), str(JAR)))) for name in CLASS_PATHS}
    for name, value in ((PLUGINS, STORES_CLOSED), (EXTENSIONS, COLUMNS)):
        settings[name] = ",".join(filter(None, (given.get(name), value)))
    if _FILE_SYSTEM_SETTING not in given:
        settings[_FILE_SYSTEM_SETTING] = FILE_SYSTEM
    return settings


def _has_classes() -> bool:
    """Return whether the Java process of this one has the classes, or will have them."""
    if SparkContext._gateway is None:
        # Who started this process may have started that one, too.
        return "PYSPARK_GATEWAY_PORT" not in os.environ
    for_name = SparkContext._gateway.jvm.java.lang.Class.forName
    try:
        for each in (FILE_SYSTEM, STORES_CLOSED):
            for_name(each)
    except Py4JJavaError:
        return False
    return True


def java_class(spark: SparkSession, name: str) -> Callable[..., Any]:
    """Return what makes an object of a class of java/ in the driver, whose Spark need not have the jar."""
    session: Any = spark
    gateway = session._sc._gateway
    (constructor,) = _loader(gateway).loadClass(name).getConstructors()

    def made(*given: object) -> Any:
        # Py4J converts what a method is given, and not what an array is.
        values = gateway.jvm.java.util.ArrayList()
        for each in given:
            values.add(each)
        return constructor.newInstance(values.toArray())

    return made


@functools.lru_cache(maxsize=1)
def _loader(gateway: Any) -> Any:
    """Return what loads the classes of a Java process, of which Py4J takes those of one name for the same."""
    jvm = gateway.jvm
    addresses = gateway.new_array(jvm.java.net.URL, 1)
    addresses[0] = jvm.java.io.File(str(JAR)).toURI().toURL()
    # One that Spark has itself comes first.
    return jvm.java.net.URLClassLoader(
        addresses, jvm.java.lang.Thread.currentThread().getContextClassLoader()
    )
