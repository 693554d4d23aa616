"""Tells sites which rows running queries may still ask for, so that they keep these.

A site drops rows by its own window. A query may be behind, or wait for a slower stream: what it needs follows
from its progress (``horizon``), and is told to the sites under the query's id, which outlives a restart.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from wjoin.executor.sites.fetching import client_of
from wjoin.executor.sites.stream import SiteStream
from wjoin.executor.spark.observe import PREFIX
from wjoin.measured.followed import Followed, follower_of
from wjoin.measured.progress import Progress, offsets_of, read
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.queries.compiled import REMEMBERED
from wjoin.sites.failures import SiteError
from wjoin.sites.protocol import SiteAddress
from wjoin.sources.site_ways import Revising
from wjoin.spark.session_things import held

AGAIN_SECONDS = 30.0
"""After which a site is told the same again: it forgets queries that it does not hear of."""

_PATIENCE_SECONDS = 2.0
"""How long a site is waited for: it is told again soon."""

_log = logging.getLogger("wjoin")


@dataclass(frozen=True)
class AtSites:
    """A join with streams at sites: these by their numbers, and what revises how they travel.

    ``undated``: those with another event time than the one by which their sites keep rows.
    """

    sites: Mapping[int, SiteStream]
    revising: Revising
    undated: frozenset[int] = frozenset()

    @property
    def plan(self) -> PhysicalPlan:
        """The plan of the join."""
        return self.revising.planned.physical


def keep_rows(spark: SparkSession, number: int, join: AtSites) -> None:
    """Have the sites of a join keep the rows that its queries need; ``number``: as which it is compiled."""
    known = held(spark).get(Leases, Leases)
    known.add(number, join)
    follower_of(spark).each_round(known.look)


def keep_all(spark: SparkSession, query: str, numbers: Iterable[int]) -> None:
    """Have sites keep all rows of the joins of a query that has just been started, until it has told more.

    Its first micro-batch may take long, and begins with the rows that are the next to leave the window.
    ``numbers``: as which its joins are compiled. A site that knows the query already is told nothing.
    """
    leases = held(spark).known(Leases)
    if leases is not None:
        leases.begin(query, numbers)


def horizon(plan: PhysicalPlan, stream: int, watermarks: Mapping[str, int]) -> int | None:
    """Return the least event time of the rows of a stream that may still be in a result, None for all.

    A row is kept until the watermark of each other stream has passed what its window to that allows.
    """
    found = []
    for other in plan.staged:
        if other == stream:
            continue
        bound, passed = plan.windows.between(stream, other), watermarks.get(plan.streams[other].alias)
        if bound is None or passed is None:
            return None
        found.append(passed - bound)
    return min(found, default=None)


@dataclass(frozen=True)
class _Need:
    """What a site was told at ``at``, in seconds: what is read, and from which event time rows are needed."""

    read: int
    floor: int | None
    at: float


class Leases:
    """Tells the sites of one session's queries what these need.

    It remembers the joins that were compiled lately, and each that a running query uses.
    """

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._told: dict[tuple[str, str], _Need] = {}
        self._failed: set[str] = set()
        self._joins: dict[int, AtSites] = {}

    @property
    def joins(self) -> Mapping[int, AtSites]:
        """The joins that are remembered, by the numbers as which they are compiled, the oldest first."""
        with self._changing:
            return dict(self._joins)

    def add(self, number: int, join: AtSites) -> None:
        """Remember a join; older ones are forgotten with the next look."""
        with self._changing:
            self._joins[number] = join

    def begin(self, query: str, numbers: Iterable[int]) -> None:
        """Have sites keep all rows for a query that they do not know yet."""
        known = self.joins
        told: dict[SiteAddress, dict[str, Any]] = {}
        for place, number in enumerate(sorted(known.keys() & numbers)):
            for stream, site in known[number].sites.items():
                name = _consumer(query, place, known[number].plan.streams[stream].alias)
                for address, lineage in zip(site.addresses, site.lineages, strict=True):
                    with self._logged(address):
                        client = client_of(replace(address, patience=_PATIENCE_SECONDS))
                        if address not in told:
                            told[address] = client.status()
                        if name not in _consumers(told[address], site.stream):
                            client.consumer(site.stream, lineage, name, 0, None)

    def look(self, followed: Sequence[Followed]) -> None:
        """Tell sites what is new of the queries that run."""
        known = self.joins
        reports = {each.id: each.last for each in followed if each.ended is None}
        used: set[int] = set()
        for query, report in reports.items():
            if report is None:
                continue
            own, reached = sorted(known.keys() & report.progress.joins), dict(_reached(report.body))
            used.update(own)
            for place, number in enumerate(own):
                # Aliases of several joins may be the same.
                progress = read(_of_join(report.body, number))
                known[number].revising.add(progress)
                self._tell((query, place), known[number], progress, reached)
        self._told = {key: need for key, need in self._told.items() if key[0].partition("/")[0] in reports}
        if None not in reports.values():
            # A query that has reported nothing yet may use any of them.
            self._forget([number for number in known if number not in used])

    def _forget(self, unused: Sequence[int]) -> None:
        """Forget the oldest of some joins, as long as there are too many of all."""
        with self._changing:
            for number in unused[: max(0, len(self._joins) - REMEMBERED)]:
                self._joins.pop(number).revising.forget()

    def _tell(
        self, who: tuple[str, int], join: AtSites, progress: Progress, reached: Mapping[str, int]
    ) -> None:
        """Tell the sites of a join, ``who`` by its query and its place there, what it needs."""
        for stream, site in join.sites.items():
            alias = join.plan.streams[stream].alias
            floor = None if stream in join.undated else horizon(join.plan, stream, progress.watermarks)
            for address, lineage in zip(site.addresses, site.lineages, strict=True):
                if lineage in reached:
                    need = _Need(reached[lineage], floor, time.monotonic())
                    self._tell_one(address, site.stream, (_consumer(*who, alias), lineage), need)

    def _tell_one(self, address: SiteAddress, stream: str, key: tuple[str, str], need: _Need) -> None:
        """Tell one site what a consumer needs of a lineage, which are ``key``, if that is news."""
        told, (name, lineage) = self._told.get(key), key
        if told is not None and need.at - told.at < AGAIN_SECONDS and replace(told, at=need.at) == need:
            return
        with self._logged(address):
            client = client_of(replace(address, patience=_PATIENCE_SECONDS))
            client.consumer(stream, lineage, name, need.read, need.floor)
            self._told[key] = need

    @contextlib.contextmanager
    def _logged(self, address: SiteAddress) -> Iterator[None]:
        """Log where a site cannot be told, the first of several failures."""
        try:
            yield
        except SiteError as error:
            if address.url not in self._failed:
                self._failed.add(address.url)
                _log.warning("%s could not be notified of what queries need: %s", address.url, error)
        else:
            self._failed.discard(address.url)


def _consumer(query: str, place: int, alias: str) -> str:
    """Return the name of a consumer, which outlives a restart: ``place`` is that of its join in the query."""
    return f"{query}/{alias}" if place == 0 else f"{query}/{alias}/{place + 1}"


def _of_join(report: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return a report of Spark with what one join has observed, and no other one."""
    observed = report["observedMetrics"].items()
    own = {name: row for name, row in observed if name.startswith(f"{PREFIX}:{number}:")}
    return {**report, "observedMetrics": own}


def _consumers(status: Mapping[str, Any], stream: str) -> Collection[str]:
    """Return the names of those that a stream is known to be read by, from the status of its site."""
    return next((each.get("consumers", {}) for each in status["streams"] if each["stream"] == stream), ())


def _reached(report: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the lineages that a query reads, and up to which number it has read each."""
    least: dict[str, int] = {}
    for source in report.get("sources", ()):
        told = offsets_of(source.get("endOffset"))
        for each in told.get("sites", ()):
            least[each["lineage"]] = min(each["next"], least.get(each["lineage"], each["next"]))
    yield from least.items()
