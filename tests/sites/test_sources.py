"""Every source of a site, in a process of its own."""

import datetime
import json

import pyarrow as pa
import pyarrow.csv
import pytest

from tests.sites.processes import BEGIN, SCHEMA, put, rows_of, stream_of, wait_for, wait_for_rows
from wjoin.sites.protocol import ROW

pytestmark = [pytest.mark.long, pytest.mark.slow]

COLUMNS = ["id", "ts", "name", "price"]


def everything(client, lineage: str, count: int) -> pa.Table:
    found = pa.Table.from_batches(client.rows("a", lineage, 0, count, COLUMNS))
    assert found[ROW].to_pylist() == list(range(count))
    return found.select(COLUMNS)


def test_parquet_files_that_appear_one_after_the_other(sites, tmp_path):
    folder = tmp_path / "in"
    site = sites.start(stream_of(folder))
    client = site.client()
    put(rows_of(0, 5000), folder / "b.parquet")
    lineage = wait_for_rows(client, "a", 5000)
    put(rows_of(5000, 5001), folder / "a.parquet")
    put(rows_of(0, 0), folder / "empty.parquet")
    wait_for_rows(client, "a", 5001)
    facts = client.describe("a")
    assert facts.schema == rows_of(0, 1).schema
    assert (facts.first, facts.next, facts.latest) == (0, 5001, BEGIN + 5_000_000)
    assert facts.span == 5_000_000
    assert facts.window == 864_000_000_000
    assert 990 < facts.rate < 1010
    assert 900 < facts.distinct["id"] < 1100
    assert everything(client, lineage, 5001) == rows_of(0, 5001)
    assert client.streams() == ("a",)


def test_types_that_spark_does_not_read_become_others(sites, tmp_path):
    folder = tmp_path / "in"
    site = sites.start(stream_of(folder))
    odd = rows_of(0, 10).append_column("small", pa.array(range(10), pa.uint8()))
    odd = odd.set_column(1, "ts", odd["ts"].cast(pa.timestamp("ns", tz="Europe/Berlin")))
    odd = odd.set_column(2, "name", odd["name"].dictionary_encode())
    put(odd, folder / "a.parquet")
    client = site.client()
    wait_for_rows(client, "a", 10)
    kinds = {each.name: each.type for each in client.describe("a").schema}
    assert kinds["small"] == pa.int16()
    assert kinds["ts"] == pa.timestamp("us", tz="UTC")
    assert kinds["name"] == pa.string()


def as_json(row: dict, time: str) -> str:
    at = row["ts"]
    times = {
        "iso": at.isoformat(),
        "Z": at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "seconds": at.timestamp(),
        "milliseconds": round(at.timestamp() * 1000),
    }
    return json.dumps({**row, "ts": times[time], "unknown": [1]})


@pytest.mark.parametrize("time", ["iso", "Z", "seconds", "milliseconds"])
def test_json_lines_with_broken_ones_between(sites, tmp_path, time):
    folder = tmp_path / "in"
    epoch = "milliseconds" if time == "milliseconds" else "seconds"
    more = f'format = "json"\nschema = "{SCHEMA}"\nepoch = "{epoch}"'
    site = sites.start(stream_of(folder, more), head='metrics = "127.0.0.1:0"')
    lines = [as_json(row, time) for row in rows_of(0, 300).to_pylist()]
    (folder / ".x").write_text("\n".join(lines[:200]) + "\n", "utf-8")
    (folder / ".x").rename(folder / "x.json")
    client = site.client()
    lineage = wait_for_rows(client, "a", 200)
    broken = [
        '{"id": "no number", "ts": 1}',
        "{",
        '["a"]',
        '{"id": 5}',
        "\ufffd",
        '{"id": 99999999999999999999}',
    ]
    (folder / ".y").write_text("\n".join([broken[0], *lines[200:250], *broken[1:], *lines[250:]]), "utf-8")
    (folder / ".y").rename(folder / "y.json")
    wait_for_rows(client, "a", 300)
    assert everything(client, lineage, 300) == rows_of(0, 300)
    assert client.status()["streams"][0]["broken"] == len(broken)
    assert "stream a: 200 new rows taken in, 200 since the start" in site.log()
    assert "5 broken records, such as" in site.log()
    assert "1 row without event time" in site.log()


def test_csv_files_with_broken_lines(sites, tmp_path):
    folder = tmp_path / "in"
    site = sites.start(stream_of(folder, f'format = "csv"\nschema = "{SCHEMA}"'))
    table = rows_of(0, 500)
    table = table.set_column(2, "name", pa.array([f'quoted, "{at}"\nline' for at in range(500)]))
    pa.csv.write_csv(table, folder / ".x")
    text = (folder / ".x").read_text("utf-8")
    (folder / ".x").write_text(
        text + '1,2023-11-14 22:13:20Z,"x",nothing\n5,6\n,2023-11-14T22:13:20Z,,\n', "utf-8"
    )
    (folder / ".x").rename(folder / "x.csv")
    client = site.client()
    lineage = wait_for_rows(client, "a", 501)
    found = everything(client, lineage, 501)
    assert found.slice(0, 500) == table
    begin = datetime.datetime(2023, 11, 14, 22, 13, 20, tzinfo=datetime.UTC)
    last = found.slice(500).to_pylist()[0]
    assert last["ts"] == begin
    assert (last["id"], last["name"], last["price"]) == (None, None, None)
    assert client.status()["streams"][0]["broken"] == 2


def test_json_lines_on_standard_input(sites):
    config = f'[streams.a]\nsource = "-"\nschema = "{SCHEMA}"\ntime = "ts"\nwindow_rows = 100000\n'
    site = sites.start(config, stdin=True)
    client = site.client()
    lines = [as_json(row, "iso") + "\n" for row in rows_of(0, 20_000).to_pylist()]
    site.process.stdin.write("".join(lines[:10]).encode())
    site.process.stdin.flush()
    lineage = wait_for_rows(client, "a", 10)
    site.process.stdin.write("".join(lines[10:]).encode())
    site.process.stdin.close()
    wait_for_rows(client, "a", 20_000)
    assert everything(client, lineage, 20_000) == rows_of(0, 20_000)
    wait_for(lambda: client.status()["streams"][0]["state"] == "source has ended")


def test_kafka_without_its_client_says_what_to_install(sites, tmp_path):
    import importlib.util
    import subprocess
    import sys

    config = tmp_path / "site.toml"
    config.write_text(
        f'[streams.a]\nsource = "kafka://127.0.0.1:1/topic"\nschema = "{SCHEMA}"\n'
        'time = "ts"\nwindow_rows = 5\n'
    )
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    # A module of that name that cannot be imported, also where the client is installed.
    (hidden / "confluent_kafka.py").write_text("raise ImportError\n", "utf-8")
    code = (
        f"import sys; sys.path.insert(0, {str(hidden)!r})\n"
        f"from wjoin.cli import main; sys.exit(main(['site', 'serve', '--config', {str(config)!r}]))"
    )
    assert importlib.util.find_spec("wjoin.sites.source_kafka")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert "WJ905" in done.stderr
    assert "pip install 'wjoin[kafka]'" in done.stderr
