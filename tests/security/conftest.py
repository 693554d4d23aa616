"""Sites that are attacked: one without a token, one with a token and TLS."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.sites.processes import Process, Sites, put, rows_of, stream_of, wait_for_rows
from wjoin.sites.access import parse_listen
from wjoin.sites.begin import init
from wjoin.sites.client import SiteClient
from wjoin.sites.protocol import SiteAddress

ROWS = 100_000


@dataclass(frozen=True)
class Attacked:
    """A site with `memory` 256 MB and rows 0 to 99,999; what a good caller knows of it, and its lineage."""

    site: Process
    folder: Path
    address: SiteAddress
    lineage: str

    @property
    def url(self) -> str:
        return self.site.url


def _started(folder: Path, config: str, address: dict[str, str]) -> Iterator[Attacked]:
    started: list[Process] = []
    site = Sites(folder, started).start(config + stream_of(folder / "in"))
    site.url = site.url.replace("0.0.0.0", "localhost")
    put(rows_of(0, ROWS), folder / "in" / "a.parquet")
    given = SiteAddress(site.url, patience=20.0, call_timeout=20.0, **address)
    with SiteClient(given) as client:
        lineage = wait_for_rows(client, "a", ROWS)
    yield Attacked(site, folder, given, lineage)
    for each in started:
        each.end()
        print(each.log())


@pytest.fixture
def open_site(tmp_path: Path) -> Iterator[Attacked]:
    """A site on loopback, without a token."""
    yield from _started(tmp_path, '[site]\nlisten = "127.0.0.1:0"\nmemory = "256 MB"\n', {})


@pytest.fixture
def closed_site(tmp_path: Path) -> Iterator[Attacked]:
    """A site with TLS and a token."""
    init(tmp_path, parse_listen("0.0.0.0:0"))
    config = (tmp_path / "site.toml").read_text("utf-8").partition("[streams.")[0]
    config = config.replace("127.0.0.1:7778", "127.0.0.1:0").replace('"1 GB"', '"256 MB"')
    token, certificate = (tmp_path / name for name in ("token", "certificate.pem"))
    given = {"token": token.read_text().strip(), "certificate": certificate.read_text()}
    yield from _started(tmp_path, config, given)


@pytest.fixture(params=["open", "stranger", "known"])
def attacked(request: pytest.FixtureRequest) -> Attacked:
    """A site and who attacks it: a caller of an open one, and of a closed one without and with the token."""
    name = "open_site" if request.param == "open" else "closed_site"
    found: Attacked = request.getfixturevalue(name)
    return found


@pytest.fixture
def token(request: pytest.FixtureRequest, attacked: Attacked) -> str | None:
    """The token that the attacker of ``attacked`` has."""
    return attacked.address.token if "known" in request.node.name else None
