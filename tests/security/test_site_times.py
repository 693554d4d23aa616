"""How long callers of a site may take: who is slower is cut, and nobody else."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.security.attacks import begin, connected, ended, frame, message, part
from tests.sites.processes import stream_of
from tests.tiers import tiers
from wjoin.sites import front
from wjoin.sites.client import SiteClient
from wjoin.sites.config import read_config
from wjoin.sites.protocol import SiteAddress
from wjoin.sites.server import SiteServer
from wjoin.sites.site import Site

TOKEN = "a token that a site has"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[[str | None], SiteServer]]:
    """Serves a site in this process, so that limits can be given."""
    (tmp_path / "in").mkdir()
    config = tmp_path / "site.toml"
    head = '[site]\nlisten = "127.0.0.1:0"\n'
    config.write_text(f'{head}{stream_of(tmp_path / "in")}schema = "id BIGINT, ts TIMESTAMP"\n', "utf-8")
    site = Site(read_config(config))
    started: list[SiteServer] = []

    def serve(token: str | None) -> SiteServer:
        started.append(SiteServer(site, token))
        return started[0]

    yield serve
    for each in started:
        each.front.stop()
    site.stop()


@pytest.mark.parametrize("seconds", tiers([1.0, 60.0], thorough=[60.0]))
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.timeout(120)
def test_a_request_that_does_not_come_to_its_end_is_cut(
    served: Callable[[str | None], SiteServer], monkeypatch: pytest.MonkeyPatch, seconds: float, known: bool
) -> None:
    longest = front.REQUEST_SECONDS
    if not known and seconds == longest:
        seconds = front.STRANGER_SECONDS
    other = 5.0
    if seconds < other:
        monkeypatch.setattr(front, "REQUEST_SECONDS", seconds if known else other)
        monkeypatch.setattr(front, "STRANGER_SECONDS", other if known else seconds)
    server = served(TOKEN)
    url = f"grpc://127.0.0.1:{server.front.port}"
    with SiteClient(SiteAddress(url, token=TOKEN)) as client, connected(url) as where:
        began = time.monotonic()
        # A byte now and then does not help. A stranger is answered once there are headers.
        first, more = (begin(token=TOKEN) + part(1, message(1_000)), part(1, b"x"))
        if not known:
            first, more = frame(1, 0, 1, begin()[9:30]), frame(9, 0, 1, b"x")
        where.sendall(first)
        while not ended(where) and time.monotonic() < began + 2 * seconds:
            where.sendall(more)
            time.sleep(0.1)
        took = time.monotonic() - began
        assert client.streams()
    print(f"cut after {took:.1f} s")
    assert seconds <= took < seconds + 1
    assert server.front.cut == 1
