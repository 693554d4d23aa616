"""A query of NEXMark by wjoin: python by_wjoin.py FOLDER QUERY [--results FOLDER] [--live SECONDS]."""

import sys
import time
from pathlib import Path

from engines import Asked, asked, report, spark_settings
from queries import declared

import wjoin


def main(given: Asked) -> None:
    """Run a query over the files that there are, or over those that come."""
    session = wjoin.connect(**spark_settings(given.scratch))
    session.spark.sparkContext.setLogLevel("ERROR")
    session.run_script(declared(given.folder, 0 if given.live else given.together))
    sink = "noop" if given.results is None else f"parquet OPTIONS (path '{given.results}')"
    session.sql(f"CREATE SINK out USING {sink}")
    insert = f"INSERT INTO out {given.query.wjoin}"
    began = time.monotonic()
    if given.live:
        session.run_script(insert, once=False, checkpoint=str(given.scratch / "checkpoint"))
        time.sleep(given.live)
        for each in session.running:
            each.stop()
        report(began)
        return
    session.run_script(insert, once=True, complete=True, checkpoint=str(given.scratch / "checkpoint"))
    totals = session.running[-1].totals.total
    # The rows that are complete at the end come from a query of their own.
    results = sum(row["matches"] for row in session.sql("SHOW QUERIES").collect())
    report(began, state=totals.bytes_of_state, results=results)
    if given.results is not None and given.query.after:
        session.spark.read.parquet(str(given.results)).createOrReplaceTempView("joined")
        session.spark.sql(given.query.after).write.parquet(f"{given.results}-after")


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parent))
    main(asked())
