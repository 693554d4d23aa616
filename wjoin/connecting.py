"""A session on a Spark that runs, or on an embedded one: it starts while what a session needs is imported."""

import threading
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from pyspark import SparkContext
from pyspark.sql import SparkSession

from wjoin.doors import behind_doors
from wjoin.embedded import embedded_settings
from wjoin.executor.spark.warm import end_with
from wjoin.grammar.errors import WJoinError
from wjoin.options import configure, prepare
from wjoin.spark_process import logged
from wjoin.worker_daemon import DAEMON, DAEMON_MODULE, start_daemon, start_warm, warm_settings

if TYPE_CHECKING:
    from wjoin.session import Session


def connect(spark: SparkSession | None = None, **conf: str) -> "Session":
    """Return a Session on ``spark``, or on an embedded local Spark tuned for streaming on this machine.

    ``conf`` are Spark settings (``connect(**{"spark.driver.memory": "8g"})``); on a running
    session only those that it can still change take effect. Names that begin with ``wjoin.`` are
    settings of the session, as SET takes them, and ``wjoin.log``: the file of the embedded Spark's log,
    or ``stderr`` (see ``Session.spark_log``).
    """
    log = conf.pop("wjoin.log", None)
    own = {name: value for name, value in conf.items() if name.lower().startswith("wjoin.")}
    conf = {name: value for name, value in conf.items() if name not in own}
    spark = _started(conf, log) if spark is None else _prepared(spark, conf, log)
    from wjoin.session import Session

    session = Session(spark)
    for name, value in own.items():
        session.context.settings.set(name, value)
    return session


def _started(conf: Mapping[str, str], log: str | None) -> SparkSession:
    # Java takes its time, and needs nothing of this process.
    threading.Thread(target=import_module, args=["wjoin.session"], name="wjoin-imports", daemon=True).start()
    with logged(log), behind_doors(conf):
        started = _embedded(embedded_settings(conf))
    start_daemon(started)
    return started


def _prepared(spark: SparkSession, conf: Mapping[str, str], log: str | None) -> SparkSession:
    if log is not None:
        raise WJoinError("WJ603", "wjoin.log is for the Spark that connect() starts, and this one runs")
    prepare(spark)
    for name, value in conf.items():
        spark.conf.set(name, value)
    return spark


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
