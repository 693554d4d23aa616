"""A query of NEXMark by Flink: python by_flink.py FOLDER QUERY [--results FOLDER] [--live SECONDS].

With the Python of an environment that has apache-flink. Its state is in memory, with a checkpoint every
second, as each micro-batch of the others is one. --count counts the results of a stream, and drops none.
"""

import os
import threading
import time
from pathlib import Path

from engines import Asked, asked, report
from pyflink.table import EnvironmentSettings, TableEnvironment
from queries import COLUMNS, DELAY

STREAM = """CREATE TABLE {0} ({1}, ts AS TO_TIMESTAMP_LTZ(millis, 3){2},
WATERMARK FOR ts AS ts - INTERVAL '{3}' SECOND) WITH ('connector' = 'filesystem', 'path' = '{4}/{0}',
'format' = 'csv'{5})"""


def _tables(given: Asked, *, batch: bool) -> TableEnvironment:
    settings = EnvironmentSettings.in_batch_mode() if batch else EnvironmentSettings.in_streaming_mode()
    tables = TableEnvironment.create(settings)
    config = tables.get_config()
    config.set("parallelism.default", str(os.cpu_count()))
    config.set("table.local-time-zone", "UTC")
    config.set("pipeline.object-reuse", "true")
    if not batch:
        config.set("execution.checkpointing.interval", "1 s")
        config.set("execution.checkpointing.dir", f"file://{given.scratch / 'checkpoints'}")
    monitored = ", 'source.monitor-interval' = '100 ms'" if given.live else ""
    for stream, columns in COLUMNS.items():
        expires = ", expires AS TO_TIMESTAMP_LTZ(ends, 3)" if stream == "auction" else ""
        tables.execute_sql(STREAM.format(stream, columns, expires, DELAY, given.folder, monitored))
    return tables


class _Checkpoints:
    """Sees how large checkpoints are, from ``with`` to its end: Flink removes them."""

    def __init__(self, folder: Path) -> None:
        self.largest = 0
        self._folder, self._ended = folder, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "_Checkpoints":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(0.2):
            for each in self._folder.glob("*/chk-*"):
                files = [file for file in each.glob("*") if file.exists()]
                try:
                    self.largest = max(self.largest, sum(file.stat().st_size for file in files))
                except FileNotFoundError:
                    continue


def _count(tables: TableEnvironment, text: str) -> int:
    """Return how many results a stream has. Each second has a batch of them, as each changes the count."""
    config = tables.get_config()
    config.set("table.exec.mini-batch.enabled", "true")
    config.set("table.exec.mini-batch.allow-latency", "1 s")
    config.set("table.exec.mini-batch.size", "1000000")
    with tables.execute_sql(f"SELECT COUNT(*) FROM ({text}) AS q").collect() as changes:
        *_, (count,) = changes
    return int(count)


def main(given: Asked) -> None:
    """Run a query over the files that there are, or over those that come.

    Results of files that there are come from a batch: a stream's sink of files ends with its last checkpoint.
    """
    tables = _tables(given, batch=given.results is not None and not given.live)
    text = given.query.plain
    if given.count:
        began = time.monotonic()
        report(began, results=_count(tables, text))
        return
    if given.live:
        text = f"SELECT *, CAST(CURRENT_ROW_TIMESTAMP() AS STRING) AS told FROM ({text}) AS q"
    schema = tables.sql_query(text).get_schema()
    typed = zip(schema.get_field_names(), schema.get_field_data_types(), strict=True)
    columns = ", ".join(f"{name} {kind}".replace(" NOT NULL", "") for name, kind in typed)
    to = "'connector' = 'blackhole'"
    if given.results is not None:
        to = f"'connector' = 'filesystem', 'path' = '{given.results}', 'format' = 'csv'"
    tables.execute_sql(f"CREATE TABLE made ({columns}) WITH ({to})")
    began = time.monotonic()
    with _Checkpoints(given.scratch / "checkpoints") as checkpoints:
        job = tables.execute_sql(f"INSERT INTO made {text}")
        if given.live:
            time.sleep(given.live)
            job.get_job_client().cancel().result()
        else:
            job.wait()
    report(began, state=checkpoints.largest)


if __name__ == "__main__":
    main(asked())
