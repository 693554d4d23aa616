"""The daemon of the embedded Spark's Python workers: how Spark finds it, and that it starts early."""

import logging
import os
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from wjoin.executor.spark import warm
from wjoin.executor.spark.workers.wjoin_daemon import PRELOADED

if TYPE_CHECKING:
    import pyarrow as pa

DAEMON = "wjoin_daemon"
"""The module of the daemon, as Spark finds it in the folder that it has on its workers' path."""

WORKERS_PATH = "spark.executorEnv.PYTHONPATH"
"""The setting by which workers find the module."""

DAEMON_MODULE = "spark.python.daemon.module"
"""The setting that names the daemon of the workers."""

_LOG = logging.getLogger(__name__)
_ENVIRONMENT = "spark.executorEnv."


def daemon_settings(given: Mapping[str, str]) -> Mapping[str, str]:
    """Return the settings with which workers on this machine come from wjoin's daemon.

    It imports once what each worker would import for itself. ``given`` are the settings of the user, whose
    path of the workers stays. Nothing is set where they name another daemon, or wjoin is no folder.
    """
    if DAEMON_MODULE in given or not (warm.FOLDER / f"{DAEMON}.py").is_file():
        return {}
    return {
        DAEMON_MODULE: DAEMON,
        WORKERS_PATH: os.pathsep.join(filter(None, (given.get(WORKERS_PATH), str(warm.FOLDER)))),
        # Spark keeps a daemon for each environment that it gives to workers, and gives this variable
        # to those of functions over rows, not to those of operators with state.
        "spark.executorEnv.SPARK_SIMPLIFIED_TRACEBACK": "1",
    }


def start_warm(settings: Mapping[str, str]) -> warm.Warm | None:
    """Start the Python of which the daemon and others are forked, while Java starts; None where it cannot be.

    ``settings`` are those of the Spark, with wjoin's daemon.
    """
    environment = {
        "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"),
        # What Spark sets for its workers.
        "OMP_NUM_THREADS": settings.get("spark.task.cpus", "1"),
        **{
            name.removeprefix(_ENVIRONMENT): value
            for name, value in settings.items()
            if name.startswith(_ENVIRONMENT)
        },
    }
    return warm.start(os.environ["PYSPARK_PYTHON"], ("pyspark.worker", *PRELOADED), environment)


def warm_settings(started: warm.Warm) -> Mapping[str, str]:
    """Return the settings by which Spark's Pythons find the one of which they are forked."""
    return {f"{_ENVIRONMENT}{warm.VARIABLE}": str(started.path)}


def start_daemon(spark: SparkSession) -> threading.Thread:
    """Have Spark start its daemon and first workers, in a thread, before a statement needs them."""
    thread = threading.Thread(target=_use_workers, args=(spark,), name="wjoin-start", daemon=True)
    thread.start()
    return thread


def _use_workers(spark: SparkSession) -> None:
    """Run a function without effect in as many workers as there are cores."""

    def unchanged(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        # Not sent by its name: it would be there only where wjoin can be imported.
        yield from batches

    cores = os.cpu_count() or 2
    try:
        rows = spark.range(0, cores, 1, cores).mapInArrow(unchanged, "id BIGINT")
        rows.write.format("noop").mode("append").save()
    except Exception:  # noqa: BLE001 (Spark has been stopped, in whatever state that finds it)
        # Or there is no Python for workers: then whoever uses them is told.
        _LOG.debug("Spark's Python workers did not start early", exc_info=True)
