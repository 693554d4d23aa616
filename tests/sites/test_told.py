"""What a site tells of itself: metrics, status, and the command line around it."""

import re
import stat
import subprocess
import sys
import urllib.request

import numpy as np
import pyarrow as pa
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.packages import ROOT
from tests.sites.processes import put, rows_of, stream_of, wait_for, wait_for_rows
from wjoin.sites.held import HeldRange
from wjoin.sites.status import _cells
from wjoin.sites.value_filter import ValueFilter

pytestmark = [pytest.mark.long, pytest.mark.slow]


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "wjoin.cli", "site", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )


def told_with(port: int, line: str) -> str | None:
    """Return the metrics once a line is among them: connections are counted a few times a second."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return text if line in text.splitlines() else None


def free_port() -> int:
    import socket

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def test_metrics_and_status(sites, tmp_path):
    folder, port = tmp_path / "in", free_port()
    site = sites.start(stream_of(folder), head=f'metrics = "127.0.0.1:{port}"')
    put(rows_of(0, 5000), folder / "a.parquet")
    client = site.client()
    lineage = wait_for_rows(client, "a", 5000)
    client.full("a", lineage, np.arange(10), ["name"])
    assert len([*client.rows("a", lineage, 0, 100, ["id"])]) == 1
    ranges, keys = [HeldRange(0, 5000)], ValueFilter.of(pa.array([7919 * 3 % 1000]))
    held = client.reduced("a", lineage, ranges, "id", ["id"], filter=None, keys=keys, high=None)
    assert sum(each.num_rows for each in held) == 5
    assert client.extent("a", lineage, 0, 5000, ceiling=0).ahead == 5000
    client.consumer("a", lineage, 'odd "name"', 4000, 0)
    client.consumer("a", lineage, "4711/A", 5000, None)
    text = wait_for(lambda: told_with(port, "wjoin_site_connections{} 1.0"))
    found = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found["wjoin_site_rows_total", ("stream", "a")] == 5000
    assert found["wjoin_site_kept_rows", ("stream", "a")] == 5000
    assert found["wjoin_site_kept_bytes", ("stream", "a")] > 100_000
    assert found["wjoin_site_sent_rows_total", ("kind", "full"), ("stream", "a")] == 10
    assert found["wjoin_site_sent_rows_total", ("kind", "rows"), ("stream", "a")] == 100
    assert found["wjoin_site_requests_total", ("kind", "rows"), ("stream", "a")] == 1
    assert found["wjoin_site_sent_rows_total", ("kind", "reduced"), ("stream", "a")] == 5
    assert found["wjoin_site_requests_total", ("kind", "extent"), ("stream", "a")] == 1
    assert found["wjoin_site_filter_bytes",] == 0
    assert found["wjoin_site_consumer_lag_rows", ("consumer", 'odd "name"'), ("stream", "a")] == 1000
    assert found["wjoin_site_broken_records_total", ("reason", "no_time"), ("stream", "a")] == 0
    done = command("status", site.url)
    assert done.returncode == 0, done.stderr
    head, line = done.stdout.splitlines()
    assert head.split()[:4] == ["stream", "state", "first", "next"]
    assert re.match(
        r'a +takes rows +0 +5,000 +5,000 +[\d.]+ kB +0 +odd "name" \(1,000\), 4711/A \(0, needs all\)', line
    )
    done = command("release", site.url, "4711")
    assert (done.returncode, done.stdout) == (0, "a: released 4711/A\n")
    done = command("release", site.url, "4711")
    assert done.returncode == 1
    assert done.stderr == 'wjoin: the site has no consumer 4711; it has odd "name"\n'


def test_a_consumer_that_is_silent_is_shown_as_such():
    told = {"q/A": {"behind": 5, "floor": None, "silent": 7200.4}}
    numbers = {"first": 0, "next": 5, "bytes": 10, "broken": 0}
    cells = _cells({"stream": "a", "state": "takes rows", **numbers, "consumers": told})
    assert cells[-1] == "q/A (5, needs all, silent for 7,200 s)"


def test_status_of_a_site_that_does_not_run(tmp_path):
    file = tmp_path / "site.toml"
    file.write_text(f'[site]\nlisten = "127.0.0.1:{free_port()}"\n{stream_of(tmp_path / "in")}', "utf-8")
    done = command("status", "--config", file)
    assert done.returncode == 1
    assert "cannot be reached" in done.stderr
    assert "Traceback" not in done.stderr


def test_init_makes_what_serve_needs(tmp_path):
    folder = tmp_path / "new"
    done = command("init", folder, "--listen", "0.0.0.0:7777")
    assert done.returncode == 0, done.stderr
    assert "wjoin site serve --config" in done.stdout
    for name in ("token", "key.pem"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    assert (folder / "token").read_text().strip() not in done.stdout
    again = command("init", folder)
    assert again.returncode == 2
    assert "exists already" in again.stderr
    (folder / "site.toml").write_text('[site]\nlisten = "0.0.0.0:7777"\n', "utf-8")
    wrong = command("serve", "--config", folder / "site.toml")
    assert wrong.returncode == 2
    assert "WJ901" in wrong.stderr


def test_an_address_that_is_taken_and_a_folder_that_is_not_there(sites, tmp_path):
    config = stream_of(tmp_path / "in")
    site = sites.start(config)
    other = tmp_path / "other.toml"
    other.write_text(f'[site]\nlisten = "{site.url.partition("//")[2]}"\ndata = "else"\n{config}', "utf-8")
    done = command("serve", "--config", other)
    assert done.returncode == 2
    assert "WJ903" in done.stderr
    other.write_text(
        '[site]\ndata = "else"\n[streams.a]\nsource = "nowhere"\ntime = "ts"\nwindow_rows = 5\n', "utf-8"
    )
    done = command("serve", "--config", other)
    assert "is not a folder" in done.stderr
