"""Rows that are printed: all of them, however many, and none twice."""

import csv
import datetime
import io
import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.tiers import tiers
from wjoin.commands import printed
from wjoin.commands.row_lines import csv_record, different_names

VALUES = """SELECT * FROM VALUES
    (1, TIMESTAMP '2026-01-02 03:04:05.000006', TIMESTAMP_NTZ '2026-01-02 03:04:05', DATE '2026-01-02',
     1.10BD, double('NaN'), -0.0D, X'00ff', true, 'a, "b"\nc', named_struct('x', 1, 'y', NULL),
     array(double('Infinity'), NULL), map('k', TIMESTAMP '2026-01-02 03:04:05'), INTERVAL '3' MINUTE),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, NULL, NULL)
    AS (n, at, local, day, price, nothing, zero, bytes, yes, text, pair, list, map, wait)"""
SHOWN: dict[str, Any] = {
    "n": 1,
    "at": "2026-01-02T03:04:05.000006Z",
    "local": "2026-01-02T03:04:05.000000",
    "day": "2026-01-02",
    "price": 1.10,
    "nothing": "NaN",
    "zero": -0.0,
    "bytes": "AP8=",
    "yes": True,
    "text": 'a, "b"\nc',
    "pair": {"x": 1, "y": None},
    "list": ["Infinity", None],
    "map": {"k": "2026-01-02T03:04:05.000000Z"},
    "wait": "INTERVAL '03' MINUTE",
}


def lines(text: str) -> list[list[str]]:
    rows = (line.strip("|").split("|") for line in text.splitlines() if line.startswith("|"))
    return [[cell.strip() for cell in row] for row in rows]


@pytest.mark.parametrize("most", tiers([11, 100, 1000], long=[1000], thorough=[100]))
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
@pytest.mark.thorough
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


def test_rows_as_lines_of_json(session: Any, capsys: pytest.CaptureFixture[str]) -> None:
    printed.print_rows(session.spark.sql(VALUES), None, "json")
    first, second = capsys.readouterr().out.splitlines()
    assert json.loads(first) == SHOWN
    assert '"price":1.10,' in first
    assert '"zero":-0.0,' in first
    assert json.loads(second) == dict.fromkeys(SHOWN) | {"text": ""}


def test_rows_as_csv_have_the_same_values(session: Any, capsys: pytest.CaptureFixture[str]) -> None:
    printed.print_rows(session.spark.sql(VALUES), None, "csv")
    out = capsys.readouterr().out
    header, first, second = csv.reader(io.StringIO(out))
    assert header == list(SHOWN)
    for name, value in zip(header, first, strict=True):
        is_text = isinstance(SHOWN[name], str)
        assert (value if is_text else json.loads(value)) == SHOWN[name], name
    assert second == [""] * len(SHOWN)
    # NULL and an empty text are told apart, as DuckDB and PostgreSQL do.
    assert out.splitlines()[-1] == 9 * "," + '""' + 4 * ","


@pytest.mark.parametrize("form", ["csv", "json"])
def test_all_rows_are_printed_as_lines_unless_fewer_are_asked_for(
    session: Any, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    rows = session.spark.range(0, 50, 1, 3).selectExpr("id", "id AS ID", "id + 1 AS id_2")
    printed.print_rows(rows, None, form)
    printed.print_rows(rows, 7, form)
    printed.print_rows(rows.limit(0), None, form)
    out, said = capsys.readouterr()
    heads = 3 if form == "csv" else 0
    assert len(out.splitlines()) == 50 + 7 + heads
    assert said == "only the first 7 rows printed (--rows)\n"
    head = "id,ID_3,id_2" if form == "csv" else '{"id":0,"ID_3":0,"id_2":1}'
    assert out.splitlines()[0] == head


@pytest.mark.parametrize(
    ("form", "once"),
    tiers([("csv", True), ("json", False)], long=[("csv", True)], thorough=[("json", False)]),
)
def test_a_stream_as_lines(
    session: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str], form: str, once: bool
) -> None:
    for number in range(3):
        pq.write_table(pa.table({"n": [number]}), tmp_path / f"{number}.parquet")
    rows = session.spark.readStream.schema("n BIGINT").option("maxFilesPerTrigger", 1).parquet(str(tmp_path))
    if once:
        printed.print_once(rows, None, form)
    else:
        query = printed.start_printing(rows, None, None, form)
        query.processAllAvailable()
        query.stop()
    out, said = capfd.readouterr()
    found = sorted(out.splitlines())
    assert found == (["0", "1", "2", "n"] if form == "csv" else [f'{{"n":{n}}}' for n in range(3)])
    assert ("micro-batch 2: 1 new row" in said) is not once


@pytest.mark.parametrize(
    ("values", "record"),
    [
        ([None], '""'),
        ([""], '""'),
        ([None, ""], ',""'),
        (["a", 'b"', "c,", "d\r", " e", "f g"], 'a,"b""","c,","d\r"," e",f g'),
    ],
)
def test_records_of_csv(values: list[str | None], record: str) -> None:
    assert csv_record(values) == record


def test_columns_get_different_names() -> None:
    assert different_names(["a", "A", "b", "a_2", "a"]) == ["a", "A_3", "b", "a_2", "a_4"]
