"""The queries of benchmarks/nexmark give the rows that DuckDB has, with the group or rank on top."""

import filecmp
import json
from pathlib import Path

import pytest

import wjoin
from benchmarks.nexmark.generator import KEYS, Load, records, tables, write
from benchmarks.nexmark.nexmark import check, oracle
from benchmarks.nexmark.queries import COLUMNS, QUERIES, Query, declared
from tests.tiers import tiers

LOAD = Load(rate=1000, files=3, events=2000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for file in range(LOAD.files):
        write(LOAD, tmp_path / "data", file)
    return tmp_path


@pytest.mark.parametrize("asked", tiers(QUERIES, long=[each for each in QUERIES if each.name != "q9"]))
def test_results(session: wjoin.Session, folder: Path, asked: Query) -> None:
    results = folder / "results"
    session.run_script(declared(folder / "data", together=1))
    session.sql(f"CREATE SINK out USING parquet OPTIONS (path '{results}')")
    session.run_script(f"INSERT INTO out {asked.wjoin}", complete=True, checkpoint=str(folder / "checkpoint"))
    if asked.after:
        session.spark.read.parquet(str(results)).createOrReplaceTempView("joined")
        session.spark.sql(asked.after).write.parquet(f"{results}-after")
    assert check(asked, results, oracle(folder / "data")) > 10


def test_the_same_seed_makes_the_same_rows_in_the_published_proportions(folder: Path) -> None:
    made = tables(LOAD, 0)
    assert [table.num_rows for table in made.values()] == [40, 120, 1840]
    write(LOAD, folder / "again", 1)
    for stream in COLUMNS:
        first, again = (folder / each / stream / "00001.csv" for each in ("data", "again"))
        assert filecmp.cmp(first, again, shallow=False)
    assert {*made["auction"]["id"].to_pylist()} == set(range(1000, 1120))
    lives = made["auction"]["ends"].to_numpy() - made["auction"]["millis"].to_numpy()
    assert lives.min() > 0 and lives.max() <= 2 * 1667


def test_records_are_the_rows_of_the_files() -> None:
    made = tables(LOAD, 1, came=7)
    sent = [(stream, key, json.loads(value)) for stream, key, value in records(LOAD, 1, came=7)]
    for stream, table in made.items():
        rows = table.to_pylist()
        assert [(stream, str(row[KEYS[stream]]).encode(), row) for row in rows] == [
            each for each in sent if each[0] == stream
        ]
    assert len(sent) == LOAD.events
