"""Approximate joins over four sites with both streams each: a part of what DuckDB finds, and most of it."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import wjoin
from tests.sites.test_joins import START, commits, expected, found_in, put, ran
from tests.sites.test_killed import start
from wjoin.testing.site import Site
from wjoin.testing.waiting import until

pytestmark = [pytest.mark.thorough, pytest.mark.spark]

SITES = 4
STREAMS = ("orders", "payments")

STREAM = """
[streams.{name}]
source = "{folder}"
time = "ts"
window = "1 hour"
key = ["item"]
poll = "50 ms"
"""

QUERY = """
SELECT {hint} O.item, O.ts AS ordered, P.ts AS paid, O.note, P.note AS reference
FROM orders O, payments P WINDOW (O, P) BETWEEN -1 SECONDS AND 2 SECONDS WHERE O.item = P.item
"""

ORACLE = """
SELECT o.item, o.ts AS ordered, p.ts AS paid, o.note, p.note AS reference
FROM read_parquet('{root}/*/orders/*') o, read_parquet('{root}/*/payments/*') p
WHERE o.item = p.item AND epoch_us(p.ts) - epoch_us(o.ts) BETWEEN -1000000 AND 2000000
"""


def rows_of(seed: int, site: int, part: int, rows: int) -> pa.Table:
    """Return a second of rows of a stream at a site: some items of its own are frequent, most come once."""
    random = np.random.default_rng([seed, site, part])
    frequent = np.minimum(random.zipf(1.6, rows), 1000) + 1000 * site
    once = random.integers(10_000, 1 << 40, rows)
    numbers = np.where(random.random(rows) < 0.3, frequent, once)
    times = START + part * 1_000_000 + np.sort(random.integers(0, 1_000_000, rows))
    return pa.table(
        {
            "item": pa.array([f"item {each}" for each in numbers]),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "note": [f"{seed}-{site}-{part}-{number}" for number in range(rows)],
        }
    )


@contextmanager
def four_sites(root: Path) -> Iterator[list[Site]]:
    """Run sites with both streams, each with a share of their rows."""
    with ExitStack() as stack:
        found = []
        for site in range(SITES):
            folders = [(name, root / "rows" / str(site) / name) for name in STREAMS]
            for _, folder in folders:
                folder.mkdir(parents=True)
            streams = "".join(STREAM.format(name=name, folder=folder) for name, folder in folders)
            found.append(stack.enter_context(Site(root / f"site{site}", streams)))
        yield found


def sent(root: Path, sites: list[Site], parts: range, rows: int) -> None:
    """Have the sites take some seconds of rows in."""
    for number, site in enumerate(sites):
        for seed, name in enumerate(STREAMS):
            for part in parts:
                put(rows_of(seed, number, part, rows), root / "rows" / str(number) / name, part)
            site.wait_for(name, parts.stop * rows)


def declare(session: wjoin.Session, sites: list[Site], options: str = "") -> None:
    urls = ", ".join(f"'{each.url}'" for each in sites)
    for name in STREAMS:
        session.sql(
            f"CREATE OR REPLACE STREAM {name} AT SITES ({urls}) {options} "
            "WATERMARK ts DELAY OF INTERVAL 1 SECOND"
        )


def test_most_results_come_once_and_no_others(session: wjoin.Session, tmp_path: Path) -> None:
    """Also where a query is stopped and goes on with its checkpoint."""
    query = QUERY.format(hint="/*+ APPROXIMATE(error = 0.1) */")
    with four_sites(tmp_path) as sites:
        for parts in pairwise((0, 3, 5)):
            sent(tmp_path, sites, range(*parts), 150)
            declare(session, sites, "OPTIONS (maxRowsPerTrigger '600')")
            found = ran(session, query, tmp_path)
    most_of(found, tmp_path)


def test_explain_analyze_tells_what_is_lost_and_what_each_site_was_asked(
    session: wjoin.Session, tmp_path: Path
) -> None:
    with four_sites(tmp_path) as sites:
        sent(tmp_path, sites, range(3), 150)
        declare(session, sites, "OPTIONS (maxRowsPerTrigger '600')")
        query = QUERY.format(hint="/*+ APPROXIMATE(messages = 0.3), PLAN(DIGEST) */")
        text = session.explain(f"EXPLAIN ANALYZE {query}")
    assert " % of the rows fetched, " in text
    assert " % of the results lost, " in text
    assert all(each.url in text for each in sites)


def most_of(found: Counter[tuple[object, ...]], root: Path) -> None:
    """Check that some rows are most of the results, once each."""
    exact = expected(root / "rows", ORACLE)
    assert not found - exact
    assert 0.8 * sum(exact.values()) < sum(found.values()) < sum(exact.values())


SCRIPT = """
CREATE STREAM orders AT SITES ({urls}) OPTIONS (maxRowsPerTrigger '400')
  WATERMARK ts DELAY OF INTERVAL 1 SECOND;
CREATE STREAM payments AT SITES ({urls}) OPTIONS (maxRowsPerTrigger '400')
  WATERMARK ts DELAY OF INTERVAL 1 SECOND;
CREATE SINK found USING parquet OPTIONS (path '{root}/found');
INSERT INTO found {query};
"""


@pytest.mark.timeout(900)
def test_query_and_site_killed_together(session: wjoin.Session, tmp_path: Path) -> None:
    """No result comes twice; results are lost only because their rows are not worth it."""

    def said() -> str:
        return (tmp_path / "run.log").read_text(errors="replace")[-3000:]

    with four_sites(tmp_path) as sites:
        sent(tmp_path, sites, range(5), 150)
        urls = ", ".join(f"'{each.url}'" for each in sites)
        query = QUERY.format(hint="/*+ APPROXIMATE(error = 0.1) */")
        (tmp_path / "script.sql").write_text(SCRIPT.format(urls=urls, root=tmp_path, query=query))
        for kill in range(2):
            wanted = commits(tmp_path) + 1 + kill
            run = start(tmp_path)
            until(lambda: commits(tmp_path) >= wanted, "commits", process=run, said=said)  # noqa: B023 (it waits at once)
            sites[kill].kill()
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
            sites[kill].start()
        run = start(tmp_path)
        assert run.wait(400) == 0, said()
    most_of(found_in(session, tmp_path), tmp_path)
