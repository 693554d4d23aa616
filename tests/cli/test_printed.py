"""Rows that are printed: all of them, however many, and none twice."""

import datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wjoin import printed


def lines(text: str) -> list[list[str]]:
    rows = (line.strip("|").split("|") for line in text.splitlines() if line.startswith("|"))
    return [[cell.strip() for cell in row] for row in rows]


@pytest.mark.parametrize("most", [11, 100, 1000])
def test_many_rows_are_printed_in_pages(session: Any, capsys: pytest.CaptureFixture[str], most: int) -> None:
    rows = session.spark.range(0, 100, 1, 3).selectExpr("id", "id * 2 AS id")
    with patch.object(printed, "PAGE_ROWS", 10):
        printed.print_rows(rows, most)
    out = capsys.readouterr().out
    found = [row for row in lines(out) if row != ["id", "id"]]
    assert found == [[str(n), str(2 * n)] for n in range(min(most, 100))]
    assert ("only showing top" in out) == (most < 100)


def test_no_rows_are_an_empty_table(session: Any, capsys: pytest.CaptureFixture[str]) -> None:
    printed.print_rows(session.spark.range(0), 10**9)
    assert lines(capsys.readouterr().out) == [["id"]]


@pytest.mark.parametrize("most", [3, 1000])
def test_a_stream_is_printed_once(
    session: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], most: int
) -> None:
    moments = [datetime.datetime(2026, 1, 1, second=n, tzinfo=datetime.UTC) for n in range(6)]
    for number in range(3):
        table = pa.table({"n": [2 * number, 2 * number + 1], "ts": moments[2 * number : 2 * number + 2]})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    frame = session.spark.readStream.schema("n BIGINT, ts TIMESTAMP").option("maxFilesPerTrigger", 1)
    session.stream("ticks", frame.parquet(str(tmp_path)), "ts", "1 hour")
    joined = session.sql("SELECT A.n, B.n FROM ticks A, ticks B WINDOW = 1 SECOND WHERE A.n = B.n")
    with patch.object(printed, "PAGE_ROWS", 4):
        printed.print_once(joined, most)
    out = capsys.readouterr().out
    found = [row for row in lines(out) if row != ["n", "n"]]
    assert len(found) == min(most, 6)
    assert {tuple(row) for row in found} <= {(str(n), str(n)) for n in range(6)}
    assert ("only showing top 3 rows" in out) == (most == 3)
