"""The settings of the local Spark that ``connect()`` starts."""

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pyspark

from wjoin.executor.spark.sockets import socket_folder
from wjoin.spark.class_archive import reading_options
from wjoin.spark.doors import door_settings
from wjoin.spark.extensions import EXTENSIONS
from wjoin.spark.java_classes import CLASS_PATHS, PLUGINS, class_settings
from wjoin.spark.redacting import REDACTING
from wjoin.spark.worker_daemon import WORKERS_PATH, daemon_settings
from wjoin.spark.worker_sockets import socket_settings

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    # The shuffle of a local Spark crosses no network.
    "spark.shuffle.compress": "false",
    # Blocks wait for their worker on disk, not in as much of the heap as there is.
    "spark.shuffle.spill.maxSizeInBytesForSpillThreshold": "128m",
}

JAVA_SETTING = "spark.driver.extraJavaOptions"

# Throughput counts here; on few cores the concurrent threads of G1 compete with the tasks.
JAVA_OPTIONS = "-XX:+UseParallelGC"

_CHECKPOINT_MANAGER = "FileSystemBasedCheckpointFileManager"


def embedded_settings(given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the settings of the Spark that ``connect()`` starts: wjoin's, and over them those ``given``.

    They depend on the version of Spark, and on whether its workers run on this machine.
    """
    given = given or {}
    settings = {**_SETTINGS, **REDACTING, JAVA_SETTING: JAVA_OPTIONS, "spark.driver.memory": _driver_memory()}
    settings.update(_checkpoint_settings())
    settings.update(door_settings(given))
    if not given.get("spark.master", "local").startswith("local"):
        return {**settings, **given}
    settings.update(socket_settings(pyspark.__version__))
    settings.update(daemon_settings(given))
    settings.update(class_settings(given))
    if JAVA_SETTING not in given:
        settings[JAVA_SETTING] = " ".join(filter(None, (JAVA_OPTIONS, reading_options(), _own_files())))
    # These name what is the user's, too.
    both = (WORKERS_PATH, PLUGINS, EXTENSIONS, *CLASS_PATHS)
    joined = {name: value for name, value in settings.items() if name in both}
    return {**settings, **given, **joined}


def _checkpoint_settings() -> dict[str, str]:
    """Return by which class Spark writes the files of a checkpoint; its versions have it at different places.

    Hadoop starts a process for every permission that it sets on a local file, far fewer by its
    FileSystem than by its FileContext, Spark's first choice; both rename files atomically. By its
    FileSystem, what a first attempt wrote of a version of the state is kept when the attempt is
    repeated: slices therefore have the same names in both (see ``executor.state.manifest``).
    """
    for jar in (Path(pyspark.__file__).parent / "jars").glob("spark-sql_*.jar"):
        with zipfile.ZipFile(jar) as classes:
            for name in classes.namelist():
                if name.endswith(f"/{_CHECKPOINT_MANAGER}.class"):
                    manager = name.removesuffix(".class").replace("/", ".")
                    return {"spark.sql.streaming.checkpointFileManagerClass": manager}
    return {}


def _own_files() -> str:
    """Return the option with which temporary files of Java, Spark's blocks too, are this user's alone."""
    folder = socket_folder()
    return "" if folder is None else f'-Djava.io.tmpdir="{folder}"'


def _driver_memory() -> str:
    """Return the memory of an embedded driver: a sixteenth of the machine's, 1 to 4 GiB.

    What joins hold is in Python's workers and in RocksDB, outside of it.
    """
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{max(1, min(4, total // 16 // 1024**3))}g"
