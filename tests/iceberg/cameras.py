"""Tables of Iceberg for a query that tests kill: makes those of its streams and sinks, or reads its sinks.

Run by test_exactly_once.py: ``prepare`` or ``results``, a folder, and the settings of Spark.
"""

import sys
from pathlib import Path

import wjoin
from tests.faults.child import CAMERAS, SETTINGS, TABLES
from wjoin import Session

SINKS = {"tracked": "abc", "near": "bac", "pairs": "ab"}
"""The sinks of a query, also of one that is a set, and their columns."""


def prepare(session: Session, root: Path) -> None:
    """Append each file of a stream on its own: a micro-batch reads one."""
    for camera in CAMERAS:
        made = False
        for path in sorted((root / camera).glob("*.parquet")):
            rows = session.spark.read.parquet(str(path)).coalesce(1).writeTo(f"{TABLES}{camera}")
            rows.append() if made else rows.using("iceberg").create()
            made = True
    for sink, columns in SINKS.items():
        listed = ", ".join(f"{column} BIGINT" for column in columns)
        session.sql(f"CREATE TABLE {TABLES}{sink} ({listed}) USING iceberg")


def results(session: Session, root: Path) -> None:
    """Write what the sinks hold as Parquet."""
    for sink in SINKS:
        session.sql(f"SELECT * FROM {TABLES}{sink}").write.parquet(str(root / "results" / sink))


def main() -> None:
    """Do what the command line asks for."""
    work, root, *settings = sys.argv[1:]
    session = wjoin.connect(**SETTINGS, **dict(pair.split("=", 1) for pair in settings))
    {"prepare": prepare, "results": results}[work](session, Path(root))
    session.spark.stop()


if __name__ == "__main__":
    main()
