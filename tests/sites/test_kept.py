"""A site keeps rows beyond its window for a query that waits for a slower stream, and no longer than that."""

import time
from pathlib import Path
from typing import Any

import pytest

import wjoin
from tests.sites.test_joins import expected, found_in, frames, put
from wjoin.sites.client import SiteClient
from wjoin.sites.protocol import SiteAddress
from wjoin.testing.site import Site
from wjoin.testing.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.thorough]

ROWS = 600
"""A row each 50 ms: half a minute of event time."""

FILES = 24

STREAM = """
[streams.{name}]
source = "{folder}"
time = "ts"
window = "5 seconds"
key = ["obj_id"]
poll = "100 ms"
"""

QUERY = """SELECT /*+ PLAN(SEMIJOIN) */ A.obj_id, A.ts AS a, B.ts AS b, A.frame, A.label, B.note
FROM camera A, slow B WINDOW = 10 SECONDS WHERE A.obj_id = B.obj_id"""

ORACLE = """SELECT a.obj_id, a.ts AS a, b.ts AS b, a.frame, a.label, b.note
FROM read_parquet('{root}/camera/*') a, read_parquet('{root}/slow/*') b
WHERE a.obj_id = b.obj_id AND abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 10000000"""

OUTER = """SELECT /*+ PLAN(SEMIJOIN) */ A.obj_id, A.ts AS a, B.ts AS b, A.frame, A.label, B.note
FROM camera A LEFT JOIN slow B ON A.obj_id = B.obj_id WINDOW (A, B) BETWEEN 9 SECONDS AND 10 SECONDS"""

DECIDED = """SELECT a.obj_id, a.ts AS a, b.ts AS b, a.frame, a.label, b.note
FROM read_parquet('{root}/camera/*') a LEFT JOIN read_parquet('{root}/slow/*') b
ON a.obj_id = b.obj_id AND epoch_us(b.ts) - epoch_us(a.ts) BETWEEN 9000000 AND 10000000
WHERE b.ts IS NOT NULL
OR epoch_us(a.ts) + 12000000 < (SELECT max(epoch_us(ts)) FROM read_parquet('{root}/slow/*'))"""


def status(client: SiteClient) -> dict[str, dict[str, Any]]:
    return {each["stream"]: each for each in client.status()["streams"]}


def consumed(client: SiteClient) -> dict[str, int]:
    """Return the consumers of the stream that a query reads, and how many rows they are behind."""
    return {name: told["behind"] for name, told in status(client)["camera"]["consumers"].items()}


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("text", "oracle"), [(QUERY, ORACLE), (OUTER, DECIDED)], ids=["inner", "outer"])
def test_rows_are_kept_as_long_as_a_query_may_ask_for_them(
    session: wjoin.Session, tmp_path: Path, text: str, oracle: str
) -> None:
    rows, camera, slow = tmp_path / "rows", frames(1, ROWS), frames(2, ROWS)
    rows.mkdir()
    size = ROWS // FILES

    def more(part: int) -> None:
        put(camera.slice(part * size, size), rows / "camera", part)
        site.wait_for("camera", (part + 1) * size)
        site.wait_for("unread", (part + 1) * size)

    (rows / "camera").mkdir()
    # The same rows, which nobody reads: what the site keeps of itself.
    streams = "".join(STREAM.format(name=name, folder=rows / "camera") for name in ("camera", "unread"))
    schema = 'schema = "obj_id BIGINT, ts TIMESTAMP, frame BINARY, note STRING, label STRING"\n'
    streams = streams.replace('time = "ts"\n', f'time = "ts"\n{schema}')
    with (
        Site(tmp_path / "site", streams, 'segment_bytes = "4 kB"') as site,
        SiteClient(SiteAddress(site.url)) as client,
    ):
        put(slow.slice(0, 100), rows / "slow", 0)
        more(0)
        session.sql(
            f"CREATE OR REPLACE STREAM camera AT SITE '{site.url}' WATERMARK ts DELAY OF INTERVAL 2 SECONDS"
        )
        session.sql(f"""
            CREATE OR REPLACE STREAM slow
            (obj_id BIGINT, ts TIMESTAMP, frame BINARY, note STRING, label STRING)
            USING parquet OPTIONS (path '{rows}/slow') WATERMARK ts DELAY OF INTERVAL 2 SECONDS""")
        session.sql(f"""
            CREATE OR REPLACE SINK found USING parquet
            OPTIONS (path '{tmp_path}/found', checkpointLocation '{tmp_path}/checkpoint')""")
        session.sql(f"INSERT INTO found {text}")
        (query,) = session.queries
        # Before its first micro-batch, which begins with the rows that are the next to leave the window.
        assert query.lastProgress is None
        consumer = f"{query.id}/A"
        assert [*consumed(client)] == [consumer]

        # The slow stream is at 5 s: rows from 0 s on may be in results, while those of 30 s come.
        for part in range(1, FILES - 3):
            more(part)
        until(lambda: consumed(client)[consumer] == 0, "all rows are read")
        query.processAllAvailable()
        time.sleep(2)
        more(FILES - 3)
        kept = status(client)
        assert kept["camera"]["first"] == 0
        assert kept["unread"]["first"] > ROWS // 2

        # It comes to 30 s, and has results with rows that have left the site's window.
        before = kept["unread"]["first"]
        put(slow.slice(100), rows / "slow", 1)
        query.processAllAvailable()
        late = found_in(session, tmp_path)
        assert sum(late.values()) > 100
        assert sum(_number(row, camera.column("ts").to_pylist()) < before for row in late.elements()) > 50

        # What it has passed goes when the site takes rows in, and what it may still ask for stays.
        time.sleep(3)
        more(FILES - 2)
        until(lambda: status(client)["camera"]["first"] > 0, "rows are let go", patience_seconds=20)
        kept = status(client)
        assert 0 < kept["camera"]["first"] < kept["unread"]["first"]
        more(FILES - 1)
        query.processAllAvailable()
        query.stop()
    assert found_in(session, tmp_path) == expected(rows, oracle)


def _number(row: tuple[object, ...], times: list[Any]) -> int:
    return next(n for n, each in enumerate(times) if each.timestamp() == row[1])
