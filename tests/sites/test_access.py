"""Who is kept out: no token, a wrong one, another certificate, a plain client, thousands of connections."""

import contextlib
import resource
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pyarrow.flight as flight
import pytest

from tests.sites.processes import Process, Sites, put, rows_of, stream_of, wait_for, wait_for_rows
from wjoin.sites.access import parse_listen
from wjoin.sites.begin import init
from wjoin.sites.client import SiteClient
from wjoin.sites.failures import SiteError
from wjoin.sites.protocol import SiteAddress

pytestmark = [pytest.mark.thorough, pytest.mark.slow]


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """A site with TLS and a token, as `wjoin site init` makes them; with the folder."""
    folder = tmp_path_factory.mktemp("secured")
    init(folder, parse_listen("0.0.0.0:0"))
    config = folder / "site.toml"
    text = config.read_text("utf-8").partition("[streams.")[0].replace("127.0.0.1:7778", "127.0.0.1:0")
    started: list[Process] = []
    site = Sites(folder, started).start(text + stream_of(folder / "in"))
    site.url = site.url.replace("0.0.0.0", "localhost")
    put(rows_of(0, 100), folder / "in" / "a.parquet")
    yield site, folder
    for each in started:
        each.end()
        print(each.log())


def address(secured, **other) -> SiteAddress:
    site, folder = secured
    given = {
        "token": (folder / "token").read_text().strip(),
        "certificate": (folder / "certificate.pem").read_text(),
        "patience": 2.0,
        "call_timeout": 5.0,
    }
    return SiteAddress(**{"url": site.url, **given, **other})


@pytest.mark.long
def test_with_token_and_certificate(secured):
    with SiteClient(address(secured, patience=20.0)) as client:
        lineage = wait_for_rows(client, "a", 100)
        assert client.full("a", lineage, np.array([5, 3]), ["name"]).to_pylist() == [
            {"name": "row 5"},
            {"name": "row 3"},
        ]


@pytest.mark.parametrize("token", [None, "wrong", "", "é" * 20])
@pytest.mark.long
def test_without_the_token_nothing_is_answered(secured, token):
    site, folder = secured
    with SiteClient(address(secured, token=token)) as client:
        for call in (client.streams, lambda: client.full("a", "x", np.array([1]), ["id"]), client.status):
            with pytest.raises(SiteError) as caught:
                call()
            assert caught.value.kind == "refused"
            assert "token" in caught.value.message
    good = (folder / "token").read_text().strip()
    options = flight.FlightCallOptions(headers=[(b"authorization", good.encode())])
    pem = (folder / "certificate.pem").read_bytes()
    with flight.FlightClient(site.url, tls_root_certs=pem) as plain:
        for call in (plain.list_actions, plain.list_flights):
            with pytest.raises(flight.FlightUnauthenticatedError):
                list(call(options=options))
        with pytest.raises(flight.FlightError):
            plain.do_put(flight.FlightDescriptor.for_path("a"), rows_of(0, 1).schema, options)[0].close()
    assert good not in site.log()


def test_another_certificate_is_refused_at_once(secured, tmp_path):
    init(tmp_path / "other", parse_listen("0.0.0.0:0"))
    other = (tmp_path / "other" / "certificate.pem").read_text()
    began = time.monotonic()
    given = address(secured, certificate=other, patience=60.0)
    with SiteClient(given) as client, pytest.raises(SiteError) as caught:
        client.streams()
    assert caught.value.kind == "refused"
    assert "TLS" in caught.value.message
    assert time.monotonic() - began < 20


def test_a_plain_client_gets_no_answer(secured):
    site, _ = secured
    given = address(secured, url=site.url.replace("grpc+tls", "grpc"))
    with SiteClient(given) as client, pytest.raises(SiteError) as caught:
        client.streams()
    assert caught.value.kind == "unreachable"
    assert "grpc+tls://" in caught.value.help


def test_a_secret_is_shown_nowhere(secured):
    shown = address(secured)
    assert shown.token not in repr(shown)
    assert "PRIVATE" not in repr(shown) and "CERTIFICATE" not in repr(shown)


@pytest.fixture
def many_files():
    """Let this process have all the files that the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("count", [2000, pytest.param(10_000, marks=pytest.mark.thorough)])
def test_thousands_of_connections_do_not_bring_it_down(sites, tmp_path, many_files, count):
    folder = tmp_path / "in"
    site = sites.start(stream_of(folder), head="[site.limits]\nmax_connections = 100\n")
    put(rows_of(0, 1000), folder / "a.parquet")
    client = site.client(patience=60.0)
    lineage = wait_for_rows(client, "a", 1000)
    where = ("127.0.0.1", int(site.url.rpartition(":")[2]))
    with contextlib.ExitStack() as stack:
        callers = []
        for at in range(count):
            caller = stack.enter_context(socket.create_connection(where, timeout=30))
            if at % 2:
                caller.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            callers.append(caller)
            if at % 500 == 0:
                found = client.full("a", lineage, np.array([at % 1000]), ["name"])
                assert found.to_pylist() == [{"name": f"row {at % 1000}"}]
        wait_for(lambda: sum(map(_ended, callers)) >= count - 100)
        assert client.next("a", lineage) == 1000


def _ended(caller: socket.socket) -> bool:
    caller.setblocking(False)
    try:
        # Until the greeting of HTTP/2 has been read, there is more than its end.
        while caller.recv(4096):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def test_a_request_that_goes_on_and_on_is_cut_off(sites, tmp_path):
    site = sites.start(stream_of(tmp_path / "in"), head="[site.limits]\nmax_request_bytes = '1 MB'\n")
    with flight.FlightClient(site.url) as client, pytest.raises(flight.FlightError):
        # gRPC sends it anew where it was cut off, until its time is over.
        options = flight.FlightCallOptions(timeout=8)
        client.do_get(flight.Ticket(bytes(400_000_000)), options).read_all()
    assert site.client().streams() == ("a",)
    # A site without rows takes 150 MB; of the 400 MB some come before the connection is seen and cut.
    assert peak_bytes(site) < 500_000_000


def peak_bytes(site: Process) -> int:
    lines = Path(f"/proc/{site.process.pid}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def test_metrics_elsewhere_need_the_token(tmp_path):
    from wjoin.sites.access import Listen
    from wjoin.sites.metrics import MetricsServer

    server = MetricsServer(Listen("127.0.0.1", 0), "a token of sixteen", None, lambda: "x 1\n")
    server.start("site-metrics")
    url = f"http://127.0.0.1:{server.server_address[1]}/metrics"
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(url, timeout=10)
    caught.value.close()
    assert caught.value.code == 401
    asked = urllib.request.Request(url, headers={"Authorization": "Bearer a token of sixteen"})
    with urllib.request.urlopen(asked, timeout=10) as answer:
        assert answer.read() == b"x 1\n"
    server.shutdown()
    server.server_close()
