"""A stream with another event time than its site: all rows are kept for its query, and that is told once."""

import json
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import wjoin
from tests.sites.test_joins import STREAM, frames, write
from wjoin.grammar.spans import Span
from wjoin.planner.catalog import Estimate, SiteFacts
from wjoin.sources.site_streams import kept_whole
from wjoin.testing.site import Site
from wjoin.testing.waiting import until

pytestmark = [pytest.mark.thorough, pytest.mark.spark]

ROWS = 200

JOIN = "SELECT A.obj_id, A.{time} AS a FROM camera1 A, camera2 B WINDOW = 5 SECONDS WHERE A.obj_id = B.obj_id"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    root = tmp_path_factory.mktemp("cameras")
    for number in (1, 2):
        write(frames(number, ROWS), root / f"camera{number}", range(2), 2)
    streams = "".join(STREAM.format(name=f"camera{n}", folder=root / f"camera{n}") for n in (1, 2))
    with Site(tmp_path_factory.mktemp("site"), streams) as running:
        for number in (1, 2):
            running.wait_for(f"camera{number}", ROWS)
        yield running


def declare(session: wjoin.Session, site: Site, columns: str = "", time: str = "ts") -> None:
    for name, more, own in (("camera1", columns, time), ("camera2", "", "ts")):
        session.sql(f"""
            CREATE OR REPLACE STREAM {name} {more} AT SITE '{site.url}'
            WATERMARK {own} DELAY OF INTERVAL 2 SECONDS""")


@pytest.mark.parametrize(
    ("columns", "time"),
    [
        ("(later AS ts + INTERVAL 1 DAY)", "later"),
        ("(obj_id BIGINT, ts STRING, at AS to_timestamp(ts))", "at"),
    ],
)
def test_another_event_time_is_told_once(session: wjoin.Session, site: Site, columns: str, time: str) -> None:
    declare(session, site, columns, time)
    query = JOIN.format(time=time)
    with pytest.warns(wjoin.WJoinWarning, match=f"the event time of camera1 is {time}") as told:
        session.explain(query)
        session.explain(query)
    assert [each.message.code for each in told] == ["WJ811"]
    assert "compute the event time before" in told[0].message.help


def test_a_link_that_cannot_keep_up_is_told_once(session: wjoin.Session, site: Site) -> None:
    for name in ("camera1", "camera2"):
        session.sql(f"""
            CREATE OR REPLACE STREAM {name} AT SITE '{site.url}' OPTIONS (bandwidth '10', latency '0.001')
            WATERMARK ts DELAY OF INTERVAL 2 SECONDS""")
        session.sql(f"ALTER STREAM {name} SET STATISTICS (rate = 1000)")
    with pytest.warns(wjoin.WJoinWarning, match="is too slow") as told:
        shown = str(session.explain(JOIN.format(time="ts")))
        session.explain(JOIN.format(time="ts"))
    assert [each.message.code for each in told].count("WJ815") == 2
    assert shown.count("the link is too slow") == 2


def test_what_to_do_follows_from_the_column() -> None:
    link, none = Estimate(1.0), Span(0, 1)
    facts = SiteFacts({}, link, link, "ts", frozenset(["ts", "sent"]))
    assert facts.dated_by("TS")
    assert not facts.dated_by("sent")
    assert "with time = 'sent'" in kept_whole("a", "sent", facts, none).help
    retyped = replace(facts, plain=frozenset(["sent"]))
    assert not retyped.dated_by("ts")
    assert "read ts with the type" in kept_whole("a", "ts", retyped, none).help
    several = replace(facts, time="")
    assert not several.dated_by("ts")
    assert "by different columns" in str(kept_whole("a", "ts", several, none))


def test_the_site_keeps_all_rows_for_such_a_query(session: wjoin.Session, site: Site, tmp_path: Path) -> None:
    file = site.configuration.parent / "kept/camera{}/consumers.json"

    def floors(number: int) -> dict[str, int | None]:
        told = json.loads(Path(str(file).format(number)).read_text())
        return {each["name"]: each["floor"] for each in told if each["read"] == ROWS}

    declare(session, site, "(later AS ts + INTERVAL 1 DAY)", "later")
    session.sql(
        f"CREATE SINK found USING parquet OPTIONS (path '{tmp_path}/f', checkpointLocation '{tmp_path}/c')"
    )
    with pytest.warns(wjoin.WJoinWarning, match="it keeps all rows"):
        session.sql(f"INSERT INTO found {JOIN.format(time='later')}")
    (query,) = session.queries
    try:
        query.processAllAvailable()
        consumers = [f"{query.id}/{alias}" for alias in "AB"]
        until(lambda: consumers[0] in floors(1), "all rows are read")
        assert floors(1)[consumers[0]] is None
        until(lambda: floors(2).get(consumers[1]) is not None, "what is needed is told")
    finally:
        query.stop()


def test_the_event_time_of_the_site_needs_no_warning(session: wjoin.Session, site: Site) -> None:
    declare(session, site)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session.explain(JOIN.format(time="ts"))
        declare(session, site, "(more AS obj_id + 1)")
        session.explain(JOIN.format(time="TS"))
