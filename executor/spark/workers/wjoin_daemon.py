"""The daemon of Spark's Python workers, with what they need imported before it forks them.

Spark runs it as ``python -m wjoin_daemon WORKER_MODULE`` (``spark.python.daemon.module``). It is PySpark's
own, which forks as many workers as there are tasks at a time; but each of those would import PySpark, pandas,
pyarrow and wjoin for itself. What cannot be imported here is left to the workers.
"""

import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Iterable
from importlib.machinery import PathFinder
from pathlib import Path

PRELOADED = (
    "wjoin.executor.spark.pack",
    "wjoin.executor.spark.operator",
    "wjoin.executor.spark.processor",
    "wjoin.executor.spark.unpack",
    # What a worker of Spark imports when its first task comes.
    "pyarrow.pandas_compat",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.streaming.stateful_processor_api_client",
)
"""Modules that import what workers need. No thread of theirs runs when workers are forked, but for one of
jemalloc, which takes care of forks itself."""

_ZIPPED = ("pyspark.zip", "py4j-")


def main() -> None:
    """Import what workers need, then be PySpark's daemon; returns when Spark has closed its input."""
    # Spark reads from standard output where the daemon listens.
    with contextlib.redirect_stdout(sys.stderr):
        sys.path[:] = installed_first(sys.path)
        preload([*sys.argv[1:2], *PRELOADED])
        if os.environ.get("PYTHON_UNIX_DOMAIN_ENABLED", "").lower() != "true":
            # By its name on the workers' path: there may be no wjoin.
            tcp = importlib.import_module("wjoin_tcp")
            for name in sys.modules.keys() & sys.argv[1:2]:
                tcp.acknowledge_at_once(sys.modules[name])
    # Workers collect garbage after each task: what is shared by all of them should not be looked at.
    gc.collect()
    gc.freeze()
    from pyspark.daemon import manager

    manager()


def installed_first(path: list[str]) -> list[str]:
    """Return a search path with Spark's archives last where PySpark is installed beside them, in folders.

    Archives have no compiled files: each process would compile PySpark anew.
    """
    archives = [each for each in path if each.endswith(".zip") and Path(each).name.startswith(_ZIPPED)]
    others = [each for each in path if each not in archives]
    found = PathFinder.find_spec("pyspark", others)
    homes = {Path(each).resolve().parents[2] for each in archives}
    if found is None or found.origin is None or homes != {Path(found.origin).resolve().parent}:
        return path
    return others + archives


def preload(names: Iterable[str]) -> None:
    """Import modules; say on standard error which ones could not be."""
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 (a worker that needs it raises it, to whom it concerns)
            print(f"wjoin: {name} is left to the workers: {error!r}", file=sys.stderr)


if __name__ == "__main__":
    main()
