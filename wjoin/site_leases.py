"""Tells sites which rows running queries may still ask for, so that they keep these.

A site drops rows by its own window. A query may be behind, or wait for a slower stream: what it needs follows
from its progress (``horizon``), and is told to the sites under the query's id, which outlives a restart.
"""

import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from wjoin.compiled import REMEMBERED
from wjoin.executor.sites.fetching import client_of
from wjoin.executor.sites.stream import SiteStream
from wjoin.measured.beside import UNREACHABLE, stopped
from wjoin.measured.progress import Progress, offsets_of, read
from wjoin.measured.reports import last_report
from wjoin.planner.physical import PhysicalPlan
from wjoin.site_ways import Revising
from wjoin.sites.failures import SiteError
from wjoin.sites.protocol import SiteAddress

SECONDS = 1.0
"""How often queries are looked at; a row is needed no longer than its site has been told."""

AGAIN_SECONDS = 30.0
"""After which a site is told the same again: it forgets queries that it does not hear of."""

FOREVER = 1 << 62
"""Longer than any event time is behind another: all rows are kept."""

_PATIENCE_SECONDS = 2.0
"""How long a site is waited for: it is told again soon."""

_MOST_FAILURES = 60
"""Looks that fail one after the other until the session is taken to have ended."""

_log = logging.getLogger("wjoin")
_threads: "WeakKeyDictionary[SparkSession, Leases]" = WeakKeyDictionary()


@dataclass(frozen=True)
class AtSites:
    """A join with streams at sites: these by their numbers, and what revises how they travel."""

    sites: Mapping[int, SiteStream]
    revising: Revising

    @property
    def plan(self) -> PhysicalPlan:
        """The plan of the join."""
        return self.revising.planned.physical


def keep_rows(spark: SparkSession, number: int, join: AtSites) -> None:
    """Have the sites of a join keep the rows that its queries need; ``number``: as which it is compiled."""
    known = _threads.get(spark)
    if known is None or not known.is_alive():
        known = _threads[spark] = Leases(spark)
        known.start()
    known.add(number, join)


def horizon(plan: PhysicalPlan, stream: int, watermarks: Mapping[str, int]) -> int | None:
    """Return the least event time of the rows of a stream that may still be in a result, None for all.

    A row is kept until the watermark of each other stream has passed what its window to that allows.
    """
    found = []
    for other in plan.staged:
        if other == stream:
            continue
        upper, passed = plan.upper[stream][other], watermarks.get(plan.streams[other].alias)
        if upper is None or passed is None:
            return None
        found.append(passed - upper)
    return min(found, default=None)


@dataclass(frozen=True)
class _Need:
    """What a site was told at ``at``, in seconds: what is read, and how far behind that rows are needed."""

    read: int
    behind: int
    at: float


class Leases(threading.Thread):
    """Tells the sites of one session's queries what these need, until the session has ended.

    It remembers the joins that were compiled lately, and each that a running query uses.
    """

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(name="wjoin-site-leases", daemon=True)
        self._spark = spark
        self._ended = threading.Event()
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

    def run(self) -> None:
        """Look at the queries, again and again."""
        failures = 0
        while failures < _MOST_FAILURES and not self._ended.wait(SECONDS):
            try:
                self.look()
                failures = 0
            except UNREACHABLE as error:
                failures = _MOST_FAILURES if stopped(self._spark) else failures + 1
                _log.debug("what queries need of sites cannot be read: %s", error)

    def look(self) -> None:
        """Look at the queries once."""
        known = self.joins
        reports = {str(query.id): last_report(query) for query in self._spark.streams.active}
        used: set[int] = set()
        for query, report in reports.items():
            if report is None:
                continue
            progress, reached = read(report), dict(_reached(report))
            used |= known.keys() & progress.joins
            for number in known.keys() & progress.joins:
                known[number].revising.add(progress)
                self._tell(query, known[number], progress, reached)
        self._told = {key: need for key, need in self._told.items() if key[0] in reports}
        if None not in reports.values():
            # A query that has reported nothing yet may use any of them.
            self._forget([number for number in known if number not in used])

    def _forget(self, unused: Sequence[int]) -> None:
        """Forget the oldest of some joins, as long as there are too many of all."""
        with self._changing:
            for number in unused[: max(0, len(self._joins) - REMEMBERED)]:
                self._joins.pop(number).revising.forget()

    def _tell(self, query: str, join: AtSites, progress: Progress, reached: Mapping[str, int]) -> None:
        for stream, site in join.sites.items():
            alias = join.plan.streams[stream].alias
            needed, seen = horizon(join.plan, stream, progress.watermarks), progress.seen.get(alias)
            behind = FOREVER if needed is None or seen is None else max(0, seen - needed)
            for address, lineage in zip(site.addresses, site.lineages, strict=True):
                if lineage not in reached:
                    continue
                need = _Need(reached[lineage], behind, time.monotonic())
                if self._is_news((query, f"{alias} {lineage}"), need):
                    self._tell_one(address, site.stream, lineage, (query, alias), need)

    def _is_news(self, key: tuple[str, str], need: _Need) -> bool:
        told = self._told.get(key)
        return told is None or replace(told, at=need.at) != need or need.at - told.at >= AGAIN_SECONDS

    def _tell_one(
        self, address: SiteAddress, stream: str, lineage: str, who: tuple[str, str], need: _Need
    ) -> None:
        """Tell one site what an alias of a query, ``who``, needs; log the first of several failures."""
        query, alias = who
        client = client_of(replace(address, patience=_PATIENCE_SECONDS))
        try:
            client.consumer(stream, lineage, f"{query}/{alias}", need.read, need.behind)
        except SiteError as error:
            if address.url not in self._failed:
                self._failed.add(address.url)
                _log.warning("%s was not told what queries need: %s", address.url, error)
        else:
            self._told[query, f"{alias} {lineage}"] = need
            self._failed.discard(address.url)


def _reached(report: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the lineages that a query reads, and up to which number it has read each."""
    least: dict[str, int] = {}
    for source in report.get("sources", ()):
        told = offsets_of(source.get("endOffset"))
        for each in told.get("sites", ()):
            least[each["lineage"]] = min(each["next"], least.get(each["lineage"], each["next"]))
    yield from least.items()
