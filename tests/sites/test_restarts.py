"""Sites that are killed and started again: the same numbers, the same rows, none lost and none twice."""

import random
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.sites.processes import Process, put, rows_of, stream_of, wait_for, wait_for_rows
from tests.tiers import tiers
from wjoin.sites.failures import SiteError
from wjoin.sites.protocol import ROW

pytestmark = [pytest.mark.thorough, pytest.mark.slow]

COLUMNS = ["id", "ts", "name", "price"]


def whole(client, lineage: str, count: int) -> pa.Table:
    return pa.Table.from_batches(client.rows("a", lineage, 0, count, COLUMNS))


@pytest.mark.parametrize("format", tiers(["parquet", "json", "csv"], long=["json"]))
def test_killed_while_it_takes_rows_in(sites, tmp_path, format):
    folder, count = tmp_path / "in", 0
    more = f'format = "{format}"\nschema = "id BIGINT, ts TIMESTAMP, name STRING, price DOUBLE"'
    config = stream_of(folder, more)
    head = 'segment_bytes = "200 kB"'
    site = sites.start(config, head=head)
    lineage = site.client().describe("a").lineage
    amid = 0
    for _ in range(2):
        client = site.client()
        starts = range(count, count + 100_000, 10_000)
        for file in [written(rows_of(at, at + 10_000), folder, at, format) for at in starts]:
            file.rename(file.with_name(file.name[1:]))
        before, count = count, count + 100_000
        # Killed by progress, not by the clock: some rows are new, others are on their way.
        wait_for(lambda client=client, before=before: client.next("a", lineage) > before)
        time.sleep(random.uniform(0, 0.02))
        last = client.next("a", lineage)
        client.close()
        site.kill()
        amid += last < count
        site = sites.start(config, head=head)
        assert site.client().next("a", lineage) >= last
        wait_for_rows(site.client(), "a", count)
    assert amid, "no kill has fallen into the middle"
    client = site.client()
    wait_for_rows(client, "a", count)
    found = whole(client, lineage, count)
    assert found[ROW].to_pylist() == list(range(count))
    assert found.select(COLUMNS).sort_by("ts") == rows_of(0, count)
    assert len([*(tmp_path / "site-data" / "a").glob("*.arrow")]) > 5


def written(table: pa.Table, folder: Path, number: int, format: str) -> Path:
    """Write a file whose name begins with a dot: it is not seen yet."""
    file = folder / f".{number:08}.{format}"
    if format == "parquet":
        pq.write_table(table, file)
    elif format == "csv":
        pa.csv.write_csv(table, file)
    else:
        frame = table.to_pandas()
        frame["ts"] = frame["ts"].dt.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        frame.to_json(file, orient="records", lines=True)
    return file


def test_restarted_while_a_client_reads(sites, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    put(rows_of(0, 200_000), folder / "a.parquet")
    config = stream_of(folder)
    site = sites.start(config)
    client = site.client(patience=60.0)
    lineage = wait_for_rows(client, "a", 200_000)
    port = int(site.url.rpartition(":")[2])
    client._block_bytes = 20_000
    found: list[pa.RecordBatch] = []
    numbers = np.random.default_rng(1).integers(0, 200_000, 2000)
    fetched: list[pa.RecordBatch] = []

    def read() -> None:
        for block in client.rows("a", lineage, 0, 200_000, COLUMNS):
            found.append(block)
            time.sleep(0.002)

    def fetch() -> None:
        fetched.extend(client.full("a", lineage, numbers, COLUMNS) for _ in range(100))

    threads = [threading.Thread(target=each) for each in (read, fetch)]
    for each in threads:
        each.start()
    for stop in (Process.kill, Process.end):
        before = len(found)
        wait_for(lambda before=before: len(found) > before + 20)
        assert threads[0].is_alive(), "the reader was done before the restart"
        if stop is Process.end:
            site.clients.clear()
        stop(site)
        site = sites.start(config, port=port)
    for each in threads:
        each.join(60)
    assert pa.Table.from_batches(found)[ROW].to_pylist() == list(range(200_000))
    assert pa.Table.from_batches(found).select(COLUMNS) == rows_of(0, 200_000)
    expected = rows_of(0, 200_000).take(pa.array(numbers))
    assert all(pa.Table.from_batches([each]) == expected for each in fetched)
    assert len(fetched) == 100
    client.close()


def test_a_site_that_stays_away_is_named_when_patience_is_over(sites, tmp_path):
    site = sites.start(stream_of(tmp_path / "in"))
    client = site.client(patience=1.0)
    assert client.streams() == ("a",)
    site.kill()
    began = time.monotonic()
    with pytest.raises(SiteError) as caught:
        client.next("a", None)
    assert caught.value.kind == "unreachable"
    assert caught.value.site == site.url
    assert 0.9 < time.monotonic() - began < 10


def test_a_data_folder_made_anew_is_another_lineage(sites, tmp_path):
    import shutil

    folder = tmp_path / "in"
    config = stream_of(folder)
    site = sites.start(config)
    put(rows_of(0, 10), folder / "a.parquet")
    client = site.client()
    lineage = wait_for_rows(client, "a", 10)
    site.end()
    shutil.rmtree(tmp_path / "site-data")
    client = sites.start(config).client()
    wait_for(lambda: client.describe("a").lineage != lineage)
    for call in (
        lambda: client.next("a", lineage),
        lambda: [*client.rows("a", lineage, 0, 5, ["id"])],
        lambda: client.full("a", lineage, np.array([1]), ["id"]),
        lambda: client.consumer("a", lineage, "q", 0, 0),
    ):
        with pytest.raises(SiteError) as caught:
            call()
        assert caught.value.kind == "lineage"
