"""What is known of a link is measured once for a while, not for each stream that is declared."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wjoin
from tests.kit.slow_link import SlowLink, port_of
from wjoin.sites.client import SiteClient
from wjoin.sites.failures import SiteError
from wjoin.sites.protocol import MeasuredLink, SiteAddress
from wjoin.sources import site_links
from wjoin.sources.site_links import KEPT_SECONDS, link_to
from wjoin.testing.site import Site

pytestmark = pytest.mark.thorough

NEAR, FAR = SiteAddress("grpc://near:1"), SiteAddress("grpc://far:1")


@dataclass
class Measuring:
    """Measures links, or fails, and counts how often; ``now`` is the time."""

    now: float = 5.0
    fails: bool = False
    asked: list[str] = field(default_factory=list)

    def link(self, client: SiteClient) -> MeasuredLink:
        self.asked.append(client._caller.address.url)
        if self.fails:
            raise SiteError("unreachable", "nobody answers")
        return MeasuredLink(len(self.asked), 1e6)


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch) -> Measuring:
    found = Measuring()
    monkeypatch.setattr(SiteClient, "link", lambda client: found.link(client))
    monkeypatch.setattr("wjoin.sources.site_links.time", SimpleNamespace(monotonic=lambda: found.now))
    monkeypatch.setattr("wjoin.sources.site_links._known", {})
    return found


def test_a_link_is_measured_once_until_that_is_old(measuring: Measuring) -> None:
    assert [link_to(each).latency for each in (NEAR, NEAR, FAR, NEAR)] == [1, 1, 2, 1]
    measuring.now += KEPT_SECONDS
    assert link_to(NEAR).latency == 3
    assert measuring.asked == [NEAR.url, FAR.url, NEAR.url]


def test_a_failure_is_not_kept(measuring: Measuring) -> None:
    measuring.fails = True
    with pytest.raises(SiteError):
        link_to(NEAR)
    measuring.fails = False
    assert link_to(NEAR).latency == 2


@pytest.mark.spark
def test_ten_streams_of_one_site_cost_one_measurement(session: wjoin.Session, tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    rows.mkdir()
    pq.write_table(pa.table({"n": [1, 2]}), rows / "rows.parquet")
    streams = "".join(f'[streams.s{n}]\nsource = "{rows}"\ntime = "n"\nwindow_rows = 10\n' for n in range(10))
    with (
        Site(tmp_path / "site", streams) as site,
        SlowLink(port_of(site.url), bytes_per_second=1e6, latency=0.001) as link,
    ):
        host, port = link.address
        for number in range(10):
            site.wait_for(f"s{number}", 2)
            session.sql(f"CREATE STREAM s{number} AT SITE 'grpc://{host}:{port}' WATERMARK n DELAY OF 1")
            if number == 0:
                once = link.passed.to_client
        assert f"grpc://{host}:{port}" in site_links._known
        # The noise of a measurement is 64 kB or more.
        assert once > 64_000
        assert link.passed.to_client - once < 64_000
