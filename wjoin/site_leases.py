"""Tells sites which rows running queries may still ask for, so that they keep these.

A site drops rows by its own window. A query may be behind, or wait for a slower stream: what it needs follows
from its progress (``horizon``), and is told to the sites under the query's id, which outlives a restart.
"""

import contextlib
import logging
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from wjoin.executor.sites.fetching import client_of
from wjoin.executor.sites.stream import SiteStream
from wjoin.measured.beside import UNREACHABLE
from wjoin.measured.progress import Progress, offsets_of, read
from wjoin.measured.reports import last_report
from wjoin.planner.physical import PhysicalPlan
from wjoin.site_ways import Revising
from wjoin.sites.failures import SiteError

SECONDS = 1.0
"""How often queries are looked at; a row is needed no longer than its site has been told."""

FOREVER = 1 << 62
"""Longer than any event time is behind another: all rows are kept."""

_PATIENCE_SECONDS = 2.0
"""How long a site is waited for: it is told again soon."""

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
    known.joins[number] = join


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


class Leases(threading.Thread):
    """Tells the sites of one session's queries what these need, until the session has ended."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(name="wjoin-site-leases", daemon=True)
        self._spark = spark
        self._ended = threading.Event()
        self._told: dict[tuple[str, str], tuple[int | None, int]] = {}
        self._failed: set[str] = set()
        self.joins: dict[int, AtSites] = {}

    def run(self) -> None:
        """Look at the queries, again and again."""
        with contextlib.suppress(*UNREACHABLE):
            while not self._ended.wait(SECONDS):
                self.look()

    def look(self) -> None:
        """Look at the queries once."""
        for query in self._spark.streams.active:
            report = last_report(query)
            if report is None:
                continue
            progress, reached = read(report), dict(_reached(report))
            for number in progress.joins:
                if number in self.joins:
                    self.joins[number].revising.add(progress)
                    self._tell(str(query.id), self.joins[number], progress, reached)

    def _tell(self, query: str, join: AtSites, progress: Progress, reached: Mapping[str, int]) -> None:
        for stream, site in join.sites.items():
            alias = join.plan.streams[stream].alias
            needed, seen = horizon(join.plan, stream, progress.watermarks), progress.seen.get(alias)
            behind = FOREVER if needed is None or seen is None else max(0, seen - needed)
            for address, lineage in zip(site.addresses, site.lineages, strict=True):
                told = (reached.get(lineage), behind)
                if told[0] is None or self._told.get((query, f"{alias} {lineage}")) == told:
                    continue
                try:
                    client = client_of(replace(address, patience=_PATIENCE_SECONDS))
                    client.consumer(site.stream, lineage, f"{query}/{alias}", told[0], behind)
                    self._told[query, f"{alias} {lineage}"] = told
                except SiteError as error:
                    if address.url not in self._failed:
                        self._failed.add(address.url)
                        _log.warning("%s was not told what queries need: %s", address.url, error)


def _reached(report: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the lineages that a query reads, and up to which number it has read each."""
    least: dict[str, int] = {}
    for source in report.get("sources", ()):
        told = offsets_of(source.get("endOffset"))
        for each in told.get("sites", ()):
            least[each["lineage"]] = min(each["next"], least.get(each["lineage"], each["next"]))
    yield from least.items()
