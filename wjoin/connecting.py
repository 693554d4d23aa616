"""A session on a Spark that runs, or on an embedded one: it starts while what a session needs is imported."""

import threading
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from pyspark import SparkContext
from pyspark.sql import SparkSession

from wjoin.executor.spark.warm import end_with
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.tokens import HALF_PAIR
from wjoin.settings.options import configure, prepare
from wjoin.spark.doors import behind_doors
from wjoin.spark.embedded import JAVA_SETTING, embedded_settings
from wjoin.spark.preparing import SETTING, leave_preparing
from wjoin.spark.process import logged
from wjoin.spark.worker_daemon import DAEMON, DAEMON_MODULE, start_daemon, start_warm, warm_settings

if TYPE_CHECKING:
    from wjoin.session import Session


def connect(spark: SparkSession | None = None, **conf: str) -> "Session":
    """Return a Session on ``spark``, or on an embedded local Spark tuned for streaming on this machine.

    ``conf`` are Spark settings (``connect(**{"spark.driver.memory": "8g"})``); on a running
    session only those that it can still change take effect. Names that begin with ``wjoin.`` are
    settings of the session, as SET takes them, and ``wjoin.log``: the file of the embedded Spark's log,
    or ``stderr`` (see ``Session.spark_log``), and ``wjoin.prepare``: ``off`` where the first session of a
    machine shall not leave it to a process in the background that later ones start sooner.
    Raises WJoinError WJ115 for a setting that cannot be sent to Spark.
    """
    _check(conf)
    log, preparing = conf.pop("wjoin.log", None), conf.pop("wjoin.prepare", None)
    own = {name: value for name, value in conf.items() if name.lower().startswith("wjoin.")}
    conf = {name: value for name, value in conf.items() if name not in own}
    if spark is None:
        spark = _started(conf, log)
        if JAVA_SETTING not in conf:
            leave_preparing(preparing)
    else:
        _on(spark, conf, {"wjoin.log": log, SETTING: preparing})
    from wjoin.session import Session

    session = Session(spark)
    for name, value in own.items():
        session.context.settings.set(name, value)
    return session


def _check(conf: Mapping[str, str]) -> None:
    for name, value in conf.items():
        if half := HALF_PAIR.search(f"{name}={value}"):
            raise WJoinError(
                "WJ115", f"the setting {name} has half of a surrogate pair, U+{ord(half[0]):04X}"
            )


def _started(conf: Mapping[str, str], log: str | None) -> SparkSession:
    # Java takes its time, and needs nothing of this process.
    threading.Thread(target=import_module, args=["wjoin.session"], name="wjoin-imports", daemon=True).start()
    with logged(log), behind_doors(conf):
        started = _embedded(embedded_settings(conf))
    start_daemon(started)
    return started


def _on(spark: SparkSession, conf: Mapping[str, str], only_started: Mapping[str, str | None]) -> None:
    for name, value in only_started.items():
        if value is not None:
            raise WJoinError(
                "WJ603",
                f"{name} applies only to a Spark that connect() starts, and this one is running already",
            )
    prepare(spark)
    for name, value in conf.items():
        spark.conf.set(name, value)


def _embedded(settings: Mapping[str, str]) -> SparkSession:
    """Start the embedded Spark, or return the one that runs."""
    builder = configure(SparkSession.builder.master("local[*]").appName("wjoin"))
    runs = SparkContext._active_spark_context is not None
    warm = None if runs or settings.get(DAEMON_MODULE) != DAEMON else start_warm(settings)
    for name, value in {**settings, **({} if warm is None else warm_settings(warm))}.items():
        builder = builder.config(name, value)
    started = builder.getOrCreate()
    if warm is not None:
        end_with(started.sparkContext, warm)
    return started
