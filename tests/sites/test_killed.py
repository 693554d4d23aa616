"""A query over sites is killed, and a site with it: nothing is lost, and nothing comes twice."""

import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import wjoin
from tests.sites.test_joins import ORACLE, STREAM, THREE, commits, expected, found_in, frames, write
from wjoin.testing.site import Site
from wjoin.testing.waiting import until

pytestmark = [pytest.mark.thorough, pytest.mark.spark]

ROWS = 600
KILLS = 2

SCRIPT = """
CREATE STREAM camera1 AT SITE '{one}' {options} WATERMARK ts DELAY OF INTERVAL 2 SECONDS;
CREATE STREAM camera2 AT SITE '{one}' {options} WATERMARK ts DELAY OF INTERVAL 2 SECONDS;
CREATE STREAM camera3 AT SITE '{other}' {options} WATERMARK ts DELAY OF INTERVAL 2 SECONDS;
CREATE SINK found USING parquet OPTIONS (path '{root}/found');
INSERT INTO found {query};
"""


def start(root: Path) -> subprocess.Popen[bytes]:
    settings = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g"}
    sets = [each for name, value in settings.items() for each in ("--set", f"{name}={value}")]
    command = [sys.executable, "-m", "wjoin.cli", "run", str(root / "script.sql"), "--once"]
    with (root / "run.log").open("ab") as log:
        return subprocess.Popen(
            [*command, "--checkpoint", str(root / "checkpoints"), *sets],
            start_new_session=True,
            stdout=log,
            stderr=log,
        )


def _has(root: Path, wanted: int) -> bool:
    return commits(root) >= wanted


OUTER = """
SELECT /*+ PLAN(SEMIJOIN) */ A.obj_id, A.ts AS a, C.ts AS c, A.frame AS one, A.label, C.frame AS three
FROM camera1 A LEFT JOIN camera3 C ON A.obj_id = C.obj_id AND A.note IS NOT NULL WINDOW (A, C) = 1 SECOND
"""

DECIDED = """
SELECT a.obj_id, a.ts AS a, c.ts AS c, a.frame AS one, a.label, c.frame AS three
FROM read_parquet('{root}/camera1/*') a LEFT JOIN read_parquet('{root}/camera3/*') c
ON a.obj_id = c.obj_id AND a.note IS NOT NULL AND abs(epoch_us(a.ts) - epoch_us(c.ts)) <= 1000000
WHERE c.ts IS NOT NULL OR a.note IS NULL
OR epoch_us(a.ts) + 3000000 < (SELECT max(epoch_us(ts)) FROM read_parquet('{root}/camera3/*'))
"""
"""What the join has told at the end: a row without a partner waits for the watermark, 2 seconds behind."""

QUERIES = {
    "partial": (THREE.format(hint="/*+ PLAN(SEMIJOIN) */"), ORACLE),
    "held": (THREE.format(hint="/*+ SHIP(A = PARTIAL, C = HELD) */"), ORACLE),
    "outer": (OUTER, DECIDED),
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("query", QUERIES)
def test_query_and_site_killed_together(session: wjoin.Session, tmp_path: Path, query: str) -> None:
    chance, rows = random.Random(14), tmp_path / "rows"
    rows.mkdir()
    for number in (1, 2, 3):
        write(frames(number, ROWS), rows / f"camera{number}", range(4), 4)
    sites = [
        Site(
            tmp_path / f"site{n}",
            "".join(STREAM.format(name=f"camera{n}", folder=rows / f"camera{n}") for n in own),
        )
        for n, own in enumerate(([1, 2], [3]))
    ]
    text = SCRIPT.format(
        one=sites[0].url,
        other=sites[1].url,
        options="OPTIONS (maxRowsPerTrigger '60')",
        root=tmp_path,
        query=QUERIES[query][0],
    )
    (tmp_path / "script.sql").write_text(text)

    def said() -> str:
        return (tmp_path / "run.log").read_text(errors="replace")[-3000:]

    try:
        for site in sites:
            site.start()
        for number in (1, 2, 3):
            sites[number > 2].wait_for(f"camera{number}", ROWS)
        for _ in range(KILLS):
            wanted = commits(tmp_path) + chance.randint(1, 3)
            run = start(tmp_path)
            until(partial(_has, tmp_path, wanted), "commits", process=run, said=said)
            time.sleep(chance.uniform(0, 0.8))
            victim = chance.choice(sites)
            victim.kill()
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
            victim.start()
        run = start(tmp_path)
        # In the middle of the last run a site goes away, and comes back.
        until(partial(_has, tmp_path, commits(tmp_path) + 1), "a commit", process=run, said=said)
        sites[0].kill()
        time.sleep(2)
        sites[0].start()
        assert run.wait(400) == 0, said()
    finally:
        for site in sites:
            site.kill()
    found = found_in(session, tmp_path)
    assert commits(tmp_path) > KILLS + 5
    assert found == expected(rows, QUERIES[query][1])
    assert pq.read_table(tmp_path / "rows" / "camera1").num_rows == ROWS
