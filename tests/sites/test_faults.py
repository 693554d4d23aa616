"""Sites that lose connections, begin anew, or have dropped what is asked for: exact results, or an error."""

import random
import shutil
import threading
from pathlib import Path

import pyarrow as pa
import pytest

import wjoin
from tests.kit.slow_link import SlowLink, port_of
from tests.sites.test_joins import STREAM, THREE, declare, expected, frames, put, ran, write
from tests.tiers import tiers
from wjoin.grammar.errors import WJoinError
from wjoin.testing.site import Site

pytestmark = [pytest.mark.thorough, pytest.mark.spark]

ROWS = 300


def three(folder: Path) -> Site:
    """Write three cameras' rows; return a site that is to serve them."""
    rows = folder / "rows"
    rows.mkdir()
    for number in (1, 2, 3):
        write(frames(number, ROWS), rows / f"camera{number}", range(2), 2)
    streams = "".join(STREAM.format(name=f"camera{n}", folder=rows / f"camera{n}") for n in (1, 2, 3))
    return Site(folder / "site", streams)


def cutting(link: SlowLink, ended: threading.Event) -> None:
    chance = random.Random(3)
    while not ended.wait(chance.uniform(0.5, 3)):
        link.cut()


@pytest.mark.parametrize(
    "hint",
    tiers(
        ["PLAN(SIMPLE)", "PLAN(SEMIJOIN)", "SHIP(A = PARTIAL, C = HELD)"],
        long=["SHIP(A = PARTIAL, C = HELD)"],
    ),
)
def test_connections_are_cut_at_random(session: wjoin.Session, tmp_path: Path, hint: str) -> None:
    with three(tmp_path) as site, SlowLink(port_of(site.url), bytes_per_second=200_000, latency=0.01) as link:
        for number in (1, 2, 3):
            site.wait_for(f"camera{number}", ROWS)
        site.url = "grpc://{}:{}".format(*link.address)
        declare(session, [site, site], "OPTIONS (maxRowsPerTrigger '60')")
        ended = threading.Event()
        thread = threading.Thread(target=cutting, args=[link, ended])
        thread.start()
        try:
            found = ran(session, THREE.format(hint=f"/*+ {hint} */"), tmp_path)
        finally:
            ended.set()
            thread.join()
        assert link.passed.connections > 5
    assert sum(found.values()) > 50
    assert found == expected(tmp_path / "rows")


def test_a_stream_that_has_begun_anew_is_another_one(session: wjoin.Session, tmp_path: Path) -> None:
    site = three(tmp_path)
    query = THREE.format(hint="/*+ PLAN(SEMIJOIN) */")
    with site:
        for number in (1, 2, 3):
            site.wait_for(f"camera{number}", ROWS)
        declare(session, [site, site])
        found = ran(session, query, tmp_path)
        site.stop()
        shutil.rmtree(tmp_path / "site" / "kept")
        site.start()
        for number in (1, 2, 3):
            site.wait_for(f"camera{number}", ROWS)
        declare(session, [site, site])
        with pytest.raises(WJoinError, match=r"WJ715.*were restarted"):
            ran(session, query, tmp_path)
    assert found == expected(tmp_path / "rows")


TWO = """SELECT /*+ PLAN(SEMIJOIN) */ A.obj_id, A.frame FROM camera1 A, camera2 B
WINDOW = 1 HOUR WHERE A.obj_id = B.obj_id"""


def test_a_row_that_has_gone_is_an_error_and_no_lost_result(session: wjoin.Session, tmp_path: Path) -> None:
    """A row waits in the state for a partner, which comes when max_bytes has taken the row."""
    rows = tmp_path / "rows"
    rows.mkdir()
    first = frames(1, ROWS)
    put(first, rows / "camera1", 0)
    (rows / "camera2").mkdir()
    streams = "".join(
        STREAM.format(name=f"camera{n}", folder=rows / f"camera{n}")
        + 'schema = "obj_id BIGINT, ts TIMESTAMP, frame BINARY, note STRING, label STRING"\n'
        + 'max_bytes = "100 kB"\n'
        for n in (1, 2)
    )
    with Site(tmp_path / "site", streams, 'segment_bytes = "20 kB"') as site:
        site.wait_for("camera1", ROWS)
        for number in (1, 2):
            session.sql(f"""
                CREATE OR REPLACE STREAM camera{number} AT SITE '{site.url}'
                WATERMARK ts DELAY OF INTERVAL 2 SECONDS
            """)
        run = "CREATE OR REPLACE SINK found USING parquet OPTIONS (path '{0}/found'); INSERT INTO found {1}"
        run = run.format(tmp_path, TWO)
        session.run_script(run, once=True, checkpoint=f"{tmp_path}/checkpoints")
        others = first.set_column(0, "obj_id", pa.array(range(10**6, 10**6 + ROWS), pa.int64()))
        for part in range(1, 9):
            put(others, rows / "camera1", part)
            site.wait_for("camera1", (part + 1) * ROWS)
        put(first, rows / "camera2", 0)
        site.wait_for("camera2", ROWS)
        with pytest.raises(WJoinError, match=r"WJ714") as caught:
            session.run_script(run, once=True, checkpoint=f"{tmp_path}/checkpoints")
        assert "max_bytes" in str(caught.value) or "window" in str(caught.value)
