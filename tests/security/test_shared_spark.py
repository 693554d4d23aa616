"""A Spark that users share by JDBC: whose files they may have sent away, and who sees their secrets."""

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import urlopen

import pytest

import wjoin
from tests.compat.shells import beeline, thrift_server
from tests.security.test_planted import plant
from tests.sites.processes import Process, Sites, put, rows_of, stream_of

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

TOKEN = "s3cr3t-0f-Alice-0123456789"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Process]:
    """A site on this machine that asks for the token."""
    started: list[Process] = []
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    head = f'[site]\nlisten = "127.0.0.1:0"\ntoken_file = "{tmp_path / "token"}"\n'
    running = Sites(tmp_path, started).start(head + stream_of(tmp_path / "in"))
    put(rows_of(0, 100), tmp_path / "in" / "a.parquet")
    yield running
    for each in started:
        each.end()


@pytest.fixture
def stolen() -> Iterator[tuple[str, list[bytes]]]:
    """The address of somebody who takes whatever comes, and what has come."""
    taken: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def take() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.settimeout(2)
                    try:
                        while more := connection.recv(65_536):
                            taken.append(more)
                    except OSError:
                        continue

        threading.Thread(target=take, daemon=True).start()
        yield f"grpc://127.0.0.1:{server.getsockname()[1]}", taken


def declared(url: str, options: str, name: str = "here") -> str:
    return f"CREATE STREAM {name} AT SITE '{url}' STREAM a OPTIONS ({options}, patience '2', timeout '2')"


def test_users_of_one_server(tmp_path: Path, site: Process, stolen: tuple[str, list[bytes]]) -> None:
    """Sessions one after the other and at once; files of tokens; and that no secret is seen."""
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (allowed / "token").write_text(f"{TOKEN}\n")
    private = tmp_path / "private"
    private.write_text("a-line-that-nobody-may-have\n")
    (allowed / "link").symlink_to(private)
    (allowed / "lines").write_text("first-line-of-a-file\nsecond-line-of-a-file\n")
    events = tmp_path / "events"
    events.mkdir()
    settings = {
        "spark.wjoin.tokenFolders": str(allowed),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
    }
    told = tmp_path / "told"
    told.mkdir()
    plant(tmp_path, told)
    with thrift_server(tmp_path, **settings) as port:

        def user(name: str, *statements: str) -> str:
            arguments = ("--outputformat=csv2", "--force=true")
            return beeline(tmp_path, port, name, statements, *arguments, merged=True).stdout

        _sessions_have_streams_at_sites(user, site.url, allowed / "token")
        refused = _files_that_are_refused(user, stolen[0], allowed, private)
        seen = _secrets_that_are_seen(user, site.url, tmp_path)
    kept = [each for each in (tmp_path / "checkpoints").rglob("*") if each.is_file()]
    assert kept and not [each for each in kept if TOKEN.encode() in each.read_bytes()]
    assert not list(told.iterdir()), "what is planted in the folder of a server is not run"
    for content in ("nobody-may-have", "first-line"):
        assert content.encode() not in b"".join(stolen[1])
        assert content not in refused
    logs = [tmp_path / "server.log", *events.rglob("events_*")]
    assert len(logs) > 1
    written = {each.name: each.read_text("utf-8") for each in logs}
    for where, text in {"beeline": seen, **written}.items():
        lines = [line for line in text.splitlines() if TOKEN in line]
        assert not lines, (where, len(lines), lines[0][:2000])
        assert "*********(redacted)" in text, where


def _sessions_have_streams_at_sites(user: Callable[..., str], url: str, token: Path) -> None:
    def declare(number: int) -> str:
        return user(f"u{number}", declared(url, f"tokenFile '{token}'"), "SHOW STREAMS")

    with ThreadPoolExecutor(2) as pool:
        said = [*map(declare, range(2)), *pool.map(declare, range(2, 4))]
    for each in said:
        assert "here,wjoin_site," in each, each


def _files_that_are_refused(user: Callable[..., str], thief: str, allowed: Path, private: Path) -> str:
    files = (
        private,
        allowed / ".." / private.name,
        allowed / "link",
        allowed / "lines",
        allowed / "none",
        allowed,
    )
    declare = [declared(thief, f"tokenFile '{file}'", f"s{number}") for number, file in enumerate(files)]
    # Spark's own statement, which knows the format once a stream has been declared.
    own = f"OPTIONS (site '{thief}', stream 'a', tokenFile '{private}')"
    said = user(
        "thief",
        "SET spark.wjoin.tokenFolders = /",
        *declare,
        declared(thief, f"certificate '{private}', token '{TOKEN}'", "certified"),
        f"CREATE TEMPORARY VIEW v USING wjoin_site {own}",
        "SELECT * FROM v",
        "SHOW STREAMS",
    )
    for file in files[:3]:
        assert f"statements may not name {file} as" in said, said
    assert said.count(f"statements may not name {private} as") >= 3
    for words in ("error[WJ902]", "none cannot be read", f"{allowed} cannot be read: Is a directory"):
        assert words in said, said
    assert "wjoin_site," not in said
    return said


def _secrets_that_are_seen(user: Callable[..., str], url: str, folder: Path) -> str:
    good = declared(url, f"token '{TOKEN}'")
    return user(
        "secret",
        good,
        good.replace("STREAM a OPTIONS", "STREAM a OPTION"),
        good.replace("patience", "patince").replace("STREAM here", "STREAM there"),
        good.replace("STREAM here", "STREAM gone").replace(url, "grpc://127.0.0.1:1"),
        good,
        "SHOW CREATE STREAM here",
        "DESCRIBE STREAM here",
        "SHOW STREAMS",
        "SELECT A.id FROM here A, here B WINDOW = 1 SECOND WHERE A.id = B.nothing",
        "EXPLAIN EXTENDED SELECT * FROM here",
        f"CREATE SINK out USING parquet OPTIONS (path '{folder / 'out'}')",
        f"SET wjoin.checkpoint = {folder / 'checkpoints'}",
        "INSERT INTO out SELECT id, name FROM STREAM here",
        "SHOW QUERIES",
        "DESCRIBE QUERY out",
    )


@pytest.mark.spark
def test_a_session_of_ones_own_shows_no_secret(
    tmp_path: Path, site: Process, session: wjoin.Session, capfd: pytest.CaptureFixture[str]
):
    session.sql(declared(site.url, f"token '{TOKEN}'", "own"))
    session.sql(f"CREATE SINK written USING parquet OPTIONS (path '{tmp_path / 'written'}')")
    insert = "INSERT INTO written SELECT id FROM STREAM own"
    web = session.serve_web(port=0)
    try:
        (query,) = session.run_script(insert, once=False, checkpoint=str(tmp_path / "own"))
        query.processAllAvailable()
        page = [urlopen(f"{web.url}{path}").read().decode() for path in ("api/queries", "metrics")]
        page.append(urlopen(f"{web.url}api/queries/{query.runId}").read().decode())
    finally:
        web.close()
    (running,) = [each for each in session.running if each.sink == "written"]
    running.stop()
    streams = session.context.catalog.streams
    results = session.spark.read.parquet(str(tmp_path / "written"))
    assert results.count() == 100
    shown = [
        *page,
        *map(repr, (running, streams, session.context.catalog.sinks, query.lastProgress)),
        *(str(session.sql(each).collect()) for each in ("SHOW CREATE STREAM own", "DESCRIBE STREAM own")),
        str(session.sql("DESCRIBE QUERY written").collect()),
        session.sql("SELECT * FROM own")._jdf.queryExecution().toString(),
        *(each.read_text("utf-8", "replace") for each in (tmp_path / "own").rglob("*") if each.is_file()),
        *capfd.readouterr(),
        session.spark_log.read_text("utf-8") if session.spark_log is not None else "",
    ]
    assert not [each[:2000] for each in shown if TOKEN in each]
    assert any("*********(redacted)" in each for each in shown)
