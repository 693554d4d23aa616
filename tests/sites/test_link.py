"""A client measures the link to a site, in a time that a slow link allows."""

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.kit.slow_link import Address, SlowLink, port_of
from tests.tiers import tiers
from wjoin.sites.client import SiteClient
from wjoin.sites.protocol import SiteAddress
from wjoin.testing.site import Site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    folder: Path = tmp_path_factory.mktemp("link")
    rows = folder / "rows"
    rows.mkdir()
    pq.write_table(pa.table({"n": [1, 2]}), rows / "rows.parquet")
    stream = f'[streams.a]\nsource = "{rows}"\ntime = "n"\nwindow_rows = 10'
    with Site(folder / "site", stream) as found:
        yield port_of(found.url)


def test_a_greeting_that_takes_longer_than_a_second_is_waited_for(site: Address) -> None:
    with SlowLink(site, latency=0.6) as link:
        host, port = link.address
        with SiteClient(SiteAddress(f"grpc://{host}:{port}", patience=1.0)) as client:
            assert client.streams() == ("a",)


@pytest.mark.parametrize(
    ("rate", "latency"), tiers([(100_000.0, 0.005), (2e6, 0.02)], long=[(100_000.0, 0.005)])
)
def test_rate_and_latency_are_about_those_of_the_link(site: Address, rate: float, latency: float) -> None:
    with SlowLink(site, bytes_per_second=rate, latency=latency) as link:
        host, port = link.address
        with SiteClient(SiteAddress(f"grpc://{host}:{port}")) as client:
            start = time.monotonic()
            found = client.link()
            took = time.monotonic() - start
    assert found.latency == pytest.approx(2 * latency, rel=0.3, abs=0.01)
    assert found.bytes_per_second == pytest.approx(rate, rel=0.25)
    # 4 MB would take 40 s of the first link.
    assert took < 5
