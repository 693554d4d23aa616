"""The live page of real queries: of statements, of DataFrames, of Spark alone; ended and failed ones."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import wjoin
from tests.browser import chromium
from tests.session.test_computed_columns import write_json
from tests.web.shown import asked
from wjoin.testing.waiting import until
from wjoin.web.page_server import Web

pytestmark = [pytest.mark.thorough, pytest.mark.spark, pytest.mark.timeout(900)]

JOIN = "SELECT {hint} A.id, B.id AS other FROM a A, b B WINDOW (A, B) = '1 second' WHERE A.id = B.id"
BEGAN_MS = 1_700_000_000_000


def rows(first: int, late: int = 0) -> list[dict[str, object]]:
    return [{"id": number, "ms": BEGAN_MS + 1000 * number + late} for number in range(first, first + 10)]


@pytest.fixture
def declared(session: wjoin.Session, tmp_path: Path) -> Iterator[wjoin.Session]:
    """A session with two streams of the same ten rows, a quarter of a second apart, and a sink."""
    for name, late in (("a", 0), ("b", 250)):
        folder = write_json(tmp_path / name, rows(0, late))
        session.sql(
            f"CREATE STREAM {name} (id BIGINT, ms BIGINT, ts AS timestamp_millis(ms)) USING json "
            f"OPTIONS (path '{folder}') WATERMARK ts DELAY OF '2 seconds'"
        )
    session.sql("CREATE SINK nothing USING noop")
    session.sql(f"SET wjoin.checkpoint = {tmp_path}/checkpoints")
    yield session
    session.serve_web().close()


def more(folder: Path, name: str, new: list[dict[str, object]]) -> None:
    """Add a file to a folder that a query reads, whole at once."""
    hidden = folder / f".{name}"
    hidden.write_text("".join(json.dumps(row) + "\n" for row in new))
    hidden.rename(folder / f"{name}.json")


def told(web: Web, name: str) -> dict[str, Any]:
    """Return all that is told of the newest query of a name, nothing where there is none."""
    queries = json.loads(asked(web, "/api/queries").text)["queries"]
    runs = [each["run"] for each in queries if each["name"] == name]
    found: dict[str, Any] = json.loads(asked(web, f"/api/queries/{runs[-1]}").text) if runs else {}
    return found


def with_batches(web: Web, name: str) -> dict[str, Any]:
    """Return what is told of a query once it has done a micro-batch."""

    def known() -> dict[str, Any]:
        found = told(web, name)
        return found if found and found["numbers"]["micro_batches"] else {}

    found: dict[str, Any] = until(known)
    return found


def names_of(web: Web) -> set[str]:
    """Return the names of all queries that there are numbers of: also of earlier ones on the same Spark."""
    found = {each.name: each for each in text_string_to_metric_families(asked(web, "/metrics").text)}
    return {each.labels["query"] for each in found["wjoin_query_up"].samples}


def test_queries_however_they_were_started(declared: wjoin.Session, tmp_path: Path) -> None:
    declared.sql(f"INSERT INTO nothing {JOIN.format(hint='')}")
    web = declared.serve_web(port=0)
    assert declared.serve_web() is web
    earlier = names_of(web)
    # Rows so old that both streams drop them, rows that are joined, and one whose time nobody knows.
    with_batches(web, "nothing")
    for name, late in (("a", 0), ("b", 250)):
        undated: list[dict[str, object]] = [{"id": 1, "ms": None}]
        more(tmp_path / name, "3", [*rows(-900, late), *rows(10, late), *undated])
    until(lambda: told(web, "nothing")["numbers"]["rows"] == {"A": 31, "B": 31})
    found = told(web, "nothing")
    assert found["numbers"]["late"] == {"A": 10, "B": 10}
    assert found["numbers"]["null_times"] == {"A": 1, "B": 1}
    assert found["numbers"]["results"] == 20
    assert sum(found["numbers"]["comparisons"].values()) >= 20
    assert found["numbers"]["lag_seconds"]["A"] > 1e6
    assert found["statement"].startswith("INSERT INTO nothing SELECT")
    assert found["sink"] == "nothing"
    assert {"addBatch", "queryPlanning", "walCommit"} <= {
        name for each in found["charts"] if each["key"] == "parts" for name in each["series"]
    }
    assert "comparisons a row" in [each[0] for each in found["compared"]["rows"]]

    # DataFrames that the user starts: of a statement, of one that Spark joins, and of Spark alone.
    frames = {
        "mine": declared.sql(JOIN.format(hint="")),
        "natively": declared.sql(JOIN.format(hint="/*+ PLAN(NATIVE) */")),
        "plain": declared.readStream.format("rate").load(),
    }
    for name, frame in frames.items():
        frame.writeStream.format("noop").queryName(name).start()
    mine = with_batches(web, "mine")
    # In its first micro-batch nothing is late.
    assert mine["numbers"]["results"] == 30
    assert len(mine["joins"]) == 1
    assert mine["plans"][0]
    plan = json.loads(asked(web, f"/api/queries/{mine['run']}/plan").text)
    assert f'data-live="{mine["joins"][0]}:rows:A"' in plan["pictures"]
    assert mine["live"][f"{mine['joins'][0]}:matched:0"].endswith("matches/s")
    natively = with_batches(web, "natively")
    assert natively["plans"] == ["native"]
    assert natively["numbers"]["comparisons"] == {}
    assert natively["live"][f"{natively['joins'][0]}:lost:A"] == "1 dropped"
    assert natively["numbers"]["spark_state_rows"] > 0
    plain = with_batches(web, "plain")
    assert plain["joins"] == []
    assert list(plain["numbers"]["rows"]) == ["all sources"]
    assert names_of(web) == earlier | {"nothing", *frames}

    # Queries end and fail; they stay, with the error.
    declared.sql("STOP QUERY nothing")
    until(lambda: told(web, "nothing")["state"] == "stopped")
    failing = declared.sql(f"SELECT raise_error('not today') FROM ({JOIN.format(hint='')})")
    failing.writeStream.format("noop").queryName("failing").start()
    failed = until(lambda: (each := told(web, "failing")) and each["state"] == "failed" and each)
    assert "not today" in failed["error"]
    # Another statement, so another checkpoint.
    declared.sql(f"SET wjoin.checkpoint = {tmp_path}/failing")
    declared.sql(
        f"INSERT INTO nothing SELECT raise_error('nor tomorrow') AS id FROM ({JOIN.format(hint='')})"
    )
    failed = until(lambda: (each := told(web, "nothing")) and each["state"] == "failed" and each)
    assert "error[WJ704]: the query into nothing failed" in failed["error"]
    assert "nor tomorrow" in failed["error"]

    # What looks at queries does not hurt them, and they go on without it.
    asking = [threading.Thread(target=lambda: [told(web, "mine") for _ in range(10)]) for _ in range(6)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    web.close()
    assert {each.name for each in declared.streams.active} == set(frames)


@pytest.mark.long
def test_the_page_of_a_real_query(declared: wjoin.Session, tmp_path: Path) -> None:
    declared.sql(f"INSERT INTO nothing {JOIN.format(hint='')}")
    web = declared.serve_web(port=0)
    browser = chromium(tmp_path / "chromium")
    ended = threading.Event()

    def write() -> None:
        for number in range(10_000):
            if ended.wait(0.5):
                return
            for name, late in (("a", 0), ("b", 250)):
                more(tmp_path / name, f"more-{number}", rows(10 * number + 10, late))

    writing = threading.Thread(target=write)
    writing.start()
    try:
        browser.get(web.url_of(declared.running[-1]))
        places = "return [...document.querySelectorAll('[data-live]')].map(e => e.textContent)"
        until(lambda: (found := browser.execute_script(places)) and "–" not in found)
        path = "return document.querySelector('[data-chart=rows] svg path').getAttribute('d')"
        drawn = until(lambda: browser.execute_script(path))
        tile = "return document.querySelector('#tiles .tile span').textContent"
        before = browser.execute_script(tile)
        until(lambda: browser.execute_script(tile) != before)
        until(lambda: len(browser.execute_script(path)) > len(drawn))
        declared.sql("STOP QUERY nothing")
        until(
            lambda: browser.execute_script("return document.getElementById('state').textContent") == "stopped"
        )
        assert browser.get_log("browser") == []
    finally:
        ended.set()
        writing.join()
        browser.quit()
