"""What a site says of the bytes that columns take once packed is what travels."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.kit.slow_link import SlowLink, port_of
from wjoin.sites.client import SiteClient
from wjoin.sites.protocol import SiteAddress
from wjoin.testing.site import Site

ROWS = 5000


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("packed")
    rows, random = folder / "rows", np.random.default_rng(5)
    rows.mkdir()
    columns = {
        "n": pa.array(np.arange(ROWS)),
        "same": pa.array(["a word that is always the same"] * ROWS),
        "noise": pa.array([random.bytes(80) for _ in range(ROWS)], pa.binary()),
        "few": pa.array(random.integers(0, 100, ROWS)),
    }
    pq.write_table(pa.table(columns), rows / "rows.parquet")
    stream = f'[streams.a]\nsource = "{rows}"\ntime = "n"\nwindow_rows = {ROWS}\npoll = "50 milliseconds"'
    with Site(folder / "site", stream) as found:
        found.wait_for("a", ROWS)
        yield found


def test_packed_widths_are_those_on_the_wire(site: Site) -> None:
    with SlowLink(port_of(site.url)) as link:
        host, port = link.address
        with SiteClient(SiteAddress(f"grpc://{host}:{port}")) as client:
            facts = client.describe("a")
            for name in ("same", "noise", "few"):
                before = link.passed
                blocks = list(client.rows("a", facts.lineage, 0, ROWS, [name]))
                travelled = link.passed.since(before).size / sum(each.num_rows for each in blocks)
                # A number has about a byte, and a call some hundreds; longer blocks have longer offsets.
                assert facts.packed[name] == pytest.approx(travelled - 1, rel=0.05, abs=1.0), name
    assert facts.packed["noise"] > 80
    assert facts.packed["same"] < 4 < 30 < facts.widths["same"]
