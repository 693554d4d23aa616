"""What is remembered of the joins over sites is bounded, and has all that running queries use."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from wjoin.executor.sites.stream import SiteStream
from wjoin.measured.followed import Followed
from wjoin.measured.progress import Progress, read
from wjoin.measured.reports import MicroBatchReport
from wjoin.planner.planning import PlannedSelect
from wjoin.planner.windows.bounds import Windows
from wjoin.queries.compiled import REMEMBERED
from wjoin.sites.failures import SiteError
from wjoin.sites.protocol import SiteAddress
from wjoin.sources import site_leases
from wjoin.sources.site_leases import AtSites, Leases
from wjoin.sources.site_ways import Revising

SITE = SiteStream((SiteAddress("grpc://there:1"),), "rows", ("line",))


def query(name: str, body: Mapping[str, Any] | None) -> Followed:
    """Return a query that runs, and what Spark last told of it."""
    report = None if body is None else MicroBatchReport(cast(Any, body), read(body))
    return cast(Followed, SimpleNamespace(id=name, micro_batch=report, ended=None))


@dataclass
class Site:
    """Takes what it is told, or fails."""

    fails: bool = False
    told: list[tuple[str, int]] = field(default_factory=list)
    kept: dict[str, int | None] = field(default_factory=dict)
    meanwhile: Callable[[], None] = lambda: None

    def consumer(self, stream: str, lineage: str, name: str, read: int, floor: int | None) -> None:
        if self.fails:
            raise SiteError("unreachable", "nobody answers")
        assert (stream, lineage) == ("rows", "line")
        self.told.append((name, read))
        self.kept[name] = floor

    def status(self) -> dict[str, Any]:
        consumers = {name: {"behind": 50 - read, "floor": self.kept[name]} for name, read in self.told}
        self.meanwhile()
        return {"streams": [{"stream": "rows", "next": 50, "consumers": consumers}]}


def of_query(join: int, batch: int, read: int) -> dict[str, Any]:
    """Return what Spark tells of a micro-batch of a query with a join of A, at a site, and B."""
    return {
        "id": "q",
        "batchId": batch,
        "sources": [{"numInputRows": 1, "endOffset": {"sites": [{"lineage": "line", "next": read}]}}],
        "observedMetrics": {f"wjoin:{join}:0": {"counts": {"seen:A": batch, "delay:A": 0}}},
    }


class Unrevised(Revising):
    """Takes what is measured, and revises nothing."""

    def add(self, progress: Progress) -> None:
        pass


def join(number: int, folder: Path) -> AtSites:
    """Return a join, the other way of whose stream was told."""
    plan = SimpleNamespace(
        streams=(SimpleNamespace(alias="A"), SimpleNamespace(alias="B")),
        counted=(),
        staged=(0, 1),
        stages=(),
        windows=Windows.of([[0, 5], [5, 0]]),
    )
    file = folder / str(number)
    file.write_text("full")
    planned = cast(PlannedSelect, SimpleNamespace(physical=plan))
    return AtSites({0: SITE}, Unrevised(number, planned, {0: file}))


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Site:
    found = Site()
    monkeypatch.setattr(site_leases, "client_of", lambda _: found)
    return found


def test_old_joins_are_forgotten_but_for_those_in_use(site: Site, tmp_path: Path) -> None:
    leases, running = Leases(), [query("q", of_query(1, 0, 10))]
    for number in range(REMEMBERED + 50):
        leases.add(number, join(number, tmp_path))
    leases.look(running)
    kept = {1, *range(51, REMEMBERED + 50)}
    assert set(leases.joins) == kept
    assert {int(each.name) for each in tmp_path.iterdir()} == kept
    assert site.told == [("q/A", 10)]
    running = []
    leases.add(1000, join(1000, tmp_path))
    leases.look(running)
    assert 1 not in leases.joins
    assert len(leases.joins) == REMEMBERED


def test_none_is_forgotten_while_a_query_has_told_nothing_yet(site: Site, tmp_path: Path) -> None:
    leases, running = Leases(), [query("q", None)]
    for number in range(REMEMBERED + 1):
        leases.add(number, join(number, tmp_path))
    leases.look(running)
    assert len(leases.joins) == REMEMBERED + 1
    running = [query("q", of_query(0, 0, 10))]
    leases.look(running)
    assert set(leases.joins) == {0, *range(2, REMEMBERED + 1)}


def test_a_site_is_told_what_is_new_and_now_and_then_the_same(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases, running = Leases(), [query("q", of_query(1, 0, 10))]
    leases.add(1, join(1, tmp_path))
    for reached in (10, 10, 20):
        running = [query("q", of_query(1, 0, reached))]
        leases.look(running)
    assert site.told == [("q/A", 10), ("q/A", 20)]
    monkeypatch.setattr(site_leases, "AGAIN_SECONDS", 0.0)
    leases.look(running)
    assert site.told[2:] == [("q/A", 20)]


def test_what_an_ended_query_needed_is_forgotten(site: Site, tmp_path: Path) -> None:
    body = of_query(1, 0, 10)
    leases, running = Leases(), [query("q", body), query("r", body)]
    leases.add(1, join(1, tmp_path))
    leases.look(running)
    assert len(leases._told) == 2
    del running[1]
    leases.look(running)
    assert [*leases._told] == [("q/A", "line")]


def test_a_site_that_fails_is_told_again_and_logged_once(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site.fails = True
    leases, running = Leases(), [query("q", of_query(1, 0, 10))]
    leases.add(1, join(1, tmp_path))
    for _ in range(3):
        leases.look(running)
    assert caplog.text.count("could not be notified") == 1
    site.fails = False
    leases.look(running)
    assert site.told == [("q/A", 10)]


def test_a_new_query_needs_all_until_it_has_told_more(site: Site, tmp_path: Path) -> None:
    leases, running = Leases(), []
    leases.add(1, join(1, tmp_path))
    leases.begin("q", [1, 2])
    assert (site.told, site.kept) == ([("q/A", 0)], {"q/A": None})
    leases.begin("q", [1])
    assert site.told == [("q/A", 0)]
    running = [query("q", of_query(1, 0, 10))]
    leases.look(running)
    assert site.told == [("q/A", 0), ("q/A", 10)]


def test_a_query_that_was_followed_before_it_began_needs_what_it_has_told(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first micro-batch may end before all sites have answered whether they know it."""
    leases = Leases()
    leases.add(1, join(1, tmp_path))
    site.meanwhile = lambda: leases.look([query("q", of_query(1, 0, 10))])
    leases.begin("q", [1])
    assert site.told == [("q/A", 10)]
    monkeypatch.setattr(site_leases, "AGAIN_SECONDS", 0.0)
    leases.look([query("q", of_query(1, 0, 10))])
    assert set(site.told) == {("q/A", 10)}


def test_a_query_that_waits_after_a_restart_still_needs_what_its_site_knows(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.consumer("rows", "line", "q/A", 20, 7)
    leases = Leases()
    leases.add(1, join(1, tmp_path))
    leases.begin("q", [1])
    monkeypatch.setattr(site_leases, "AGAIN_SECONDS", 0.0)
    leases.look([query("q", None)])
    assert site.told == [("q/A", 20)] * 3
    assert site.kept == {"q/A": 7}


def test_two_joins_with_the_same_aliases_need_what_each_needs(site: Site, tmp_path: Path) -> None:
    """Their streams are at other times: what one has seen is nothing to the other."""
    counts = {
        "wjoin:1:0": {"counts": {"seen:A": 100, "delay:A": 0, "seen:B": 90, "delay:B": 0}},
        "wjoin:2:0": {"counts": {"seen:A": 100, "delay:A": 0, "seen:B": 20, "delay:B": 0}},
    }
    leases, running = Leases(), [query("q", {**of_query(1, 0, 10), "observedMetrics": counts})]
    for number in (1, 2):
        leases.add(number, join(number, tmp_path))
    leases.look(running)
    assert site.kept == {"q/A": 85, "q/A/2": 15}


def test_a_site_is_told_an_event_time_whatever_rows_were_ahead(site: Site, tmp_path: Path) -> None:
    """Rows too far ahead are not among those seen, and the site has them."""
    report = of_query(1, 0, 10)
    counts = report["observedMetrics"]["wjoin:1:0"]["counts"]
    leases, running = Leases(), [query("q", report)]
    leases.add(1, join(1, tmp_path))
    leases.look(running)
    assert site.kept == {"q/A": None}
    counts |= {"seen:A": 100, "seen:B": 90, "delay:B": 20, "ahead:A": 1, "furthest:A": 1 << 60}
    leases.look(running)
    assert site.kept == {"q/A": 65}
    counts |= {"seen:B": 92}
    leases.look(running)
    assert site.kept == {"q/A": 67}


def test_a_site_with_another_event_time_keeps_all_rows(site: Site, tmp_path: Path) -> None:
    """What the query may still ask for is told by its own event time, which is none of the site's."""
    report = of_query(1, 0, 10)
    report["observedMetrics"]["wjoin:1:0"]["counts"] |= {"seen:B": 90, "delay:B": 0}
    leases, running = Leases(), [query("q", report)]
    leases.add(1, replace(join(1, tmp_path), undated=frozenset([0])))
    leases.look(running)
    assert (site.told, site.kept) == ([("q/A", 10)], {"q/A": None})
