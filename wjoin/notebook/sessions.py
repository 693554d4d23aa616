"""Which Spark the cells use: the notebook's own where it has one, else one that wjoin starts."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from wjoin.connecting import connect
from wjoin.measured.beside import stopped
from wjoin.notebook.screen import CellOutputs
from wjoin.session import Session

_NAMES = ("session", "spark")
"""Variables of a notebook that may hold its Spark, the first that does counts."""


class Sessions:
    """Finds the session of a notebook, anew for every cell, as its Spark may be stopped and started."""

    def __init__(self, screen: CellOutputs) -> None:
        self._screen = screen
        self._session: Session | None = None

    def session(self, variables: Mapping[str, Any]) -> Session:
        """Return the session of a notebook with these variables; starts a Spark where there is none.

        On one Spark it stays the same, whose queries it knows, whatever the variables become.
        """
        found: Session | SparkSession | None = None
        for name in _NAMES:
            found = found or _running(variables.get(name))
        known = self._session
        same = found is None or (known and known.spark is getattr(found, "spark", found))
        if known is not None and same and not stopped(known.spark):
            return known
        found = found or SparkSession.getActiveSession()
        self._session = self._started() if found is None else _on(found)
        return self._session

    def _started(self) -> Session:
        told = self._screen.show_living("Starting Spark on this machine …")
        session = connect()
        log = f"; its log: {session.spark_log}" if session.spark_log else ""
        self._screen.replace(told, f"Started Spark {session.spark.version} on this machine{log}", last=True)
        return session


def _on(spark: Session | SparkSession) -> Session:
    """Return the session on a Spark: that of ``enable`` where it has been called."""
    if isinstance(spark, Session):
        return spark
    enabled = getattr(spark.sql, "__self__", None)
    return enabled if isinstance(enabled, Session) else connect(spark)


def _running(value: Any) -> Session | SparkSession | None:
    """Return a variable's value where it is a session that has not been stopped."""
    if isinstance(value, Session):
        return None if stopped(value.spark) else value
    # Classic or Connect, whose class cannot be imported everywhere.
    is_spark = type(value).__name__ == "SparkSession" and type(value).__module__.startswith("pyspark.sql.")
    return value if is_spark and not stopped(value) else None
