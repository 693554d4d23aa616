"""The demo's oracle: DuckDB over the same files, with SQL of its own."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


@dataclass(frozen=True)
class Verdict:
    """How many rows the oracle finds, and how many rows one side has and the other has not."""

    rows: int
    missing: int
    surplus: int

    @property
    def confirmed(self) -> bool:
        """Whether both sides are the same bag of rows."""
        return not self.missing and not self.surplus


def read_streams(connection: "duckdb.DuckDBPyConnection", folder: Path) -> None:
    """Make a table of each stream's files, with every row's number and its event time in whole minutes."""
    for stream in sorted(folder.iterdir()):
        event_time = "observed" if stream.name.endswith("_weather") else "departed"
        connection.execute(
            f"CREATE TABLE {stream.name} AS"
            f" SELECT *, row_number() OVER () AS number, epoch_us({event_time}) // 60000000 AS minute"
            f" FROM read_parquet('{stream}/*.parquet') WHERE {event_time} IS NOT NULL"
        )


def judge(connection: "duckdb.DuckDBPyConnection", query: str, results: "pa.Table") -> Verdict:
    """Compare the rows of a result, as a bag, with those of the oracle's query."""
    connection.register("results", results)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE expected AS {query}")
    columns = ", ".join(f'"{name}"' for name in results.column_names)
    ours, theirs = f"SELECT {columns} FROM results", f"SELECT {columns} FROM expected"
    return Verdict(
        rows=_count(connection, theirs),
        missing=_count(connection, f"{theirs} EXCEPT ALL {ours}"),
        surplus=_count(connection, f"{ours} EXCEPT ALL {theirs}"),
    )


def _count(connection: "duckdb.DuckDBPyConnection", query: str) -> int:
    # fetchall, because DuckDB 2 refuses a new statement while rows of the last may be left.
    ((count,),) = connection.execute(f"SELECT count(*) FROM ({query})").fetchall()
    return int(count)
