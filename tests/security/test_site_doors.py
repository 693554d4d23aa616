"""The metrics' port of a site, its files, its sources, and what it says of names."""

import contextlib
import json
import socket
import ssl
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from tests.packages import ROOT
from tests.sites.processes import SCHEMA, Process, Sites, put, rows_of, stream_of, wait_for, wait_for_rows
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.shown import shown
from wjoin.sites.access import parse_listen
from wjoin.sites.begin import init
from wjoin.sites.config import read_config
from wjoin.sites.exposition import Metric, exposition
from wjoin.sites.failures import SiteError, unpacked

pytestmark = pytest.mark.slow


@pytest.fixture
def metered(tmp_path: Path):
    """A site with metrics; its port is found by asking."""
    started: list[Process] = []
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    site = Sites(tmp_path, started).start(
        stream_of(tmp_path / "in"), head=f'metrics = "127.0.0.1:{port}"\nmemory = "256 MB"\n'
    )
    put(rows_of(0, 100), tmp_path / "in" / "a.parquet")
    yield site, port
    for each in started:
        each.end()
        print(each.log())


def asked(port: int, *, scheme: str = "http", host: str = "localhost", **more) -> tuple[int, str]:
    """Return status and text of /metrics."""
    context = more.pop("context", None)
    request = urllib.request.Request(f"{scheme}://127.0.0.1:{port}/metrics", headers={"Host": host}, **more)
    try:
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.mark.long
def test_slow_callers_do_not_shut_the_metrics(metered) -> None:
    _, port = metered
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(64)]
        times = []
        until = time.monotonic() + 6
        while time.monotonic() < until:
            for each in slow:
                with contextlib.suppress(OSError):
                    each.sendall(b"G")
            began = time.monotonic()
            assert asked(port)[0] == 200
            times.append(time.monotonic() - began)
            time.sleep(0.5)
        assert sorted(times)[int(0.9 * len(times))] < 1
        wait_for(lambda: all(_ended(each) for each in slow), 15)


def _ended(where: socket.socket) -> bool:
    where.setblocking(False)
    try:
        return where.recv(1000) is not None
    except BlockingIOError:
        return False
    except OSError:
        return True


@pytest.mark.thorough
def test_metrics_answer_under_this_machines_names_and_to_known_methods_only(metered) -> None:
    site, port = metered
    assert asked(port)[0] == 200
    assert asked(port, host="attacker.example")[0] == 403
    for method in ("POST", "PUT", "TRACE", "PROPFIND", "x\x1b"):
        with socket.create_connection(("127.0.0.1", port)) as where:
            where.sendall(f"{method} /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            answer = where.recv(10_000).decode()
            assert answer.startswith("HTTP/1.0 501 ")
            assert "<" not in answer and "\x1b" not in answer
    assert "Traceback" not in site.log()


@pytest.mark.thorough
def test_metrics_elsewhere_are_encrypted_and_have_a_token(tmp_path: Path) -> None:
    init(tmp_path, parse_listen("0.0.0.0:0"))
    (tmp_path / "metrics-token").write_text("a-token-for-metrics-alone")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = (tmp_path / "site.toml").read_text("utf-8").partition("[streams.")[0]
    own = f'"0.0.0.0:{port}"\nmetrics_token_file = "metrics-token"'
    config = config.replace('"127.0.0.1:7778"', own)
    started: list[Process] = []
    try:
        Sites(tmp_path, started).start(config + stream_of(tmp_path / "in"))
        context = ssl.create_default_context(cafile=str(tmp_path / "certificate.pem"))
        token = (tmp_path / "token").read_text().strip()
        for given, status in ((None, 401), (token, 401), ("a-token-for-metrics-alone", 200)):
            headers = {} if given is None else {"Authorization": f"Bearer {given}"}
            request = urllib.request.Request(f"https://localhost:{port}/metrics", headers=headers)
            try:
                with urllib.request.urlopen(request, timeout=10, context=context) as answer:
                    found = answer.status
            except urllib.error.HTTPError as error:
                error.close()
                found = error.code
            assert found == status
        with socket.create_connection(("127.0.0.1", port)) as plain:
            plain.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"wjoin_site" not in plain.recv(10_000)
    finally:
        for each in started:
            each.end()


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ("", "WJ902"),
        ('token_file = "t"', "WJ902"),
        ('metrics_token_file = "t"', None),
        ('token_file = "t"\ncertificate = "c"\nkey = "k"', None),
    ],
)
def test_the_sites_own_token_does_not_travel_in_clear(tmp_path: Path, more: str, code: str | None) -> None:
    file = tmp_path / "site.toml"
    file.write_text(f'[site]\nmetrics = "0.0.0.0:1"\n{more}\n{stream_of(tmp_path / "in")}')
    if code is None:
        assert read_config(file).metrics is not None
        return
    with pytest.raises(WJoinError) as caught:
        read_config(file)
    assert caught.value.code == code


@pytest.mark.parametrize("name", ["../x", "a/b", "..", ".lock", "a\\u001b[2J", "x\\n"])
def test_names_of_streams_stay_in_the_data_folder(tmp_path: Path, name: str) -> None:
    file = tmp_path / "site.toml"
    text = stream_of(tmp_path / "in").replace("[streams.a]", f'[streams."{name}"]')
    file.write_text(text)
    with pytest.raises(WJoinError, match="WJ901") as caught:
        read_config(file)
    assert "\x1b" not in str(caught.value)


@pytest.mark.thorough
def test_what_a_site_keeps_is_its_users_alone(tmp_path: Path) -> None:
    started: list[Process] = []
    sites = Sites(tmp_path, started)
    kept = tmp_path / "site-data"
    (kept / "a").mkdir(parents=True)
    (kept / "a" / "old.part").write_text("of an earlier version")
    for each in (kept, kept / "a"):
        each.chmod(0o755)
    try:
        site = sites.start(stream_of(tmp_path / "in"), head='segment_bytes = "100 kB"')
        put(rows_of(0, 20_000), tmp_path / "in" / "a.parquet")
        client = site.client()
        lineage = wait_for_rows(client, "a", 20_000)
        client.consumer("a", lineage, "query", 5, None)
        for each in (kept, *kept.rglob("*")):
            assert stat.S_IMODE(each.stat().st_mode) & 0o077 == 0, each
        assert {"consumers.json", "stream.json"} <= {each.name for each in (kept / "a").iterdir()}
        second = subprocess.run(
            [sys.executable, "-m", "wjoin.cli", "site", "serve", "--config", tmp_path / "site.toml"],
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=60,
        )
        assert second.returncode != 0
        assert "WJ906" in second.stderr
        assert "Traceback" not in second.stderr
        assert client.next("a", lineage) == 20_000
        site.kill()
        # Who was killed holds nothing.
        again = sites.start(stream_of(tmp_path / "in"))
        assert again.client().consumer("a", lineage, "query", 6, None) is None
    finally:
        for each in started:
            each.end()


@pytest.mark.thorough
def test_consumers_of_before_whose_names_do_not_print_are_forgotten(tmp_path: Path) -> None:
    started: list[Process] = []
    sites = Sites(tmp_path, started)
    try:
        site = sites.start(stream_of(tmp_path / "in"))
        put(rows_of(0, 10), tmp_path / "in" / "a.parquet")
        lineage = wait_for_rows(site.client(), "a", 10)
        site.client().consumer("a", lineage, "good", 1, None)
        site.end()
        file = tmp_path / "site-data" / "a" / "consumers.json"
        known = json.loads(file.read_text("utf-8"))
        known += [{**known[0], "name": name} for name in ("\ud800", "a\x1b[2J")]
        file.write_text(json.dumps(known), "utf-8")
        again = sites.start(stream_of(tmp_path / "in"))
        wait_for_rows(again.client(), "a", 10)
        assert [*again.client().status()["streams"][0]["consumers"]] == ["good"]
    finally:
        for each in started:
            each.end()


def test_what_a_site_says_reaches_a_terminal_escaped() -> None:
    told = json.dumps({"kind": "gone", "message": "a\x1b]0;x\x07\nb", "help": "\x1b[2J"}).encode()
    error = unpacked(told, "grpc://x")
    assert isinstance(error, SiteError)
    assert str(error) == "site grpc://x: a\\x1b]0;x\\x07\\nb\nhelp: \\x1b[2J"
    assert unpacked(json.dumps({"kind": "gone"}).encode(), "x") is None
    assert shown("\ud800\x9b") == "\\ud800\\x9b"
    text = exposition(iter([Metric("m", "gauge", "h", (({"stream": 'a"\n\ud800'}, 1.0),))]), shown)
    assert text.encode("utf-8").endswith(b'm{stream="a\\"\\\\n\\\\ud800"} 1.0\n')


@pytest.mark.thorough
def test_records_without_an_end_take_no_memory(tmp_path: Path) -> None:
    started: list[Process] = []
    config = f'[streams.a]\nsource = "-"\ntime = "ts"\nwindow_rows = 1000\nschema = "{SCHEMA}"\n'
    site = Sites(tmp_path, started).start(config, head='memory = "256 MB"', stdin=True)
    pipe = site.process.stdin
    assert pipe is not None
    try:
        good = b'{"id": 1, "ts": "2026-01-01T00:00:00Z", "name": "x", "price": 1}\n'
        pipe.write(good)
        for _ in range(400):
            pipe.write(b"x" * 1_000_000)
        pipe.write(b"\n" + good)
        pipe.write(b'{"id": 1, "x": ' + b"[" * 5_000_000 + b"\n")
        pipe.write(b'{"id": 1, "x": [' + b"[]," * 5_000_000 + b"1]}\n" + good)
        for _ in range(20):
            pipe.write(b'{"id": 1, "ts": "2026-01-01T00:00:00Z", "name": "' + b"y" * 15_000_000 + b'"}\n')
        pipe.write(b'{"id": "\\ud800", "ts": "\\u001b"}\n' + good)
        pipe.flush()
        client = site.client(patience=60.0)
        lineage = client.describe("a").lineage
        wait_for(lambda: client.next("a", lineage) >= 24, 120)
        told = client.status()["streams"][0]
        assert (told["next"], told["broken"]) == (24, 4)
        rows = client.full("a", lineage, np.array([0, 23]), ["name"])
        assert rows.column(0).to_pylist() == ["x", "x"]
        lines = Path(f"/proc/{site.process.pid}/status").read_text("ascii").splitlines()
        assert next(int(each.split()[1]) for each in lines if each.startswith("VmHWM")) < 700_000
        assert "Traceback" not in site.log()
        assert "\x1b" not in site.log()
    finally:
        for each in started:
            each.end()
