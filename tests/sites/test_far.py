"""Which event times no clock shows: a site and the joins of its rows agree, and the site tells of them."""

import pyarrow as pa
import pytest

from tests.sites.processes import put, rows_of, stream_of, wait_for, wait_for_rows
from wjoin.planner.plan import ahead
from wjoin.planner.plan.physical import TimeKind
from wjoin.sites import far


@pytest.mark.parametrize(
    ("kind", "type"),
    [
        (TimeKind.TIMESTAMP, pa.timestamp("us", "UTC")),
        (TimeKind.TIMESTAMP_NTZ, pa.timestamp("us")),
        (TimeKind.INTEGRAL, pa.int64()),
        (TimeKind.INTEGRAL, pa.int32()),
    ],
)
def test_sites_and_joins_agree(kind: TimeKind, type: pa.DataType) -> None:
    assert far.greatest_time(type) == ahead.greatest_time(kind)


@pytest.mark.long
@pytest.mark.slow
def test_one_row_of_the_far_future_costs_no_window(sites, tmp_path):
    folder = tmp_path / "in"
    site = sites.start(stream_of(folder, window='window = "1 second"'), head='segment_bytes = "20 kB"')
    rows = rows_of(0, 5000)
    client = site.client()
    for at in range(0, 4000, 500):
        put(rows.slice(at, 500), folder / f"a{at:04}.parquet")
        wait_for_rows(client, "a", at + 500)
    once = rows.slice(0, 1).set_column(
        1, "ts", pa.array([far.GREATEST_TIMESTAMP + 1], pa.timestamp("us", tz="UTC"))
    )
    put(once, folder / "b.parquet")
    put(rows.slice(4000), folder / "c.parquet")
    lineage = wait_for_rows(client, "a", 5001)
    wait_for(lambda: 3000 <= client.describe("a").first <= 4000)
    assert client.describe("a").latest == rows["ts"][-1].value
    assert sum(each.num_rows for each in client.rows("a", lineage, 4001, 5001, ["id"])) == 1000
    wait_for(lambda: "stream a: 1 row of the far future" in site.log())
