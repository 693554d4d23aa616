"""Tells sites which rows running queries may still ask for, so that they keep these.

A site drops rows by its own window. A query may be behind, or wait for a slower stream: what it needs follows
from its progress (``horizon``), and is told to the sites under the query's id, which outlives a restart.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from wjoin.executor.sites.fetching import client_of
from wjoin.executor.sites.stream import SiteStream
from wjoin.executor.spark.observe import PREFIX
from wjoin.measured.followed import Followed, follower_of
from wjoin.measured.offsets import offsets_of
from wjoin.measured.progress import Progress, read
from wjoin.planner.plan.physical import PhysicalPlan
from wjoin.planner.plan.stage_kinds import Join
from wjoin.planner.plan.to_come import earliest
from wjoin.queries.compiled import REMEMBERED
from wjoin.sites.client import SiteClient
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


def horizon(
    plan: PhysicalPlan, stream: int, watermarks: Mapping[str, int], kept_from: Mapping[str, int]
) -> int | None:
    """Return the least event time of the rows of a stream that may still be in a result, None for all.

    A row is kept until the watermark of each other stream has passed what its window to that allows. What
    windows of rows count waits until the watermarks of their streams have passed it, with all its rows.
    Where no window in time ends that, ``kept_from`` says which rows those have: as ``Progress`` does.
    """
    ended = _ended(plan, stream, watermarks)
    return kept_from.get(plan.streams[stream].alias) if ended is None else ended


def _ended(plan: PhysicalPlan, stream: int, watermarks: Mapping[str, int]) -> int | None:
    """Return before which time windows in time have ended for rows of a stream, None where they have not."""
    counted = [watermarks.get(plan.streams[each.stream].alias) for each in plan.counted]
    known = [mark for mark in counted if mark is not None]
    if len(known) < len(counted):
        return None
    watermarks = {alias: min(mark, *known) for alias, mark in watermarks.items()} if known else watermarks
    found: list[int | None] = [*known]
    for other in plan.staged:
        if other == stream:
            continue
        bound, passed = plan.windows.between(stream, other), watermarks.get(plan.streams[other].alias)
        if bound is None or passed is None:
            return None
        found.append(passed - bound)
    floors = [*found, *_waits(plan, stream, watermarks)]
    return None if None in floors else min((each for each in floors if each is not None), default=None)


def _waits(plan: PhysicalPlan, stream: int, watermarks: Mapping[str, int]) -> Iterator[int | None]:
    """Yield from which event time on rows of a stream wait in a tree of joins or an ASOF JOIN; None for all.

    What an earlier join decides late, the next ones still wait for.
    """
    marks = {each: watermarks.get(plan.streams[each].alias) for each in plan.staged}
    for number, stage in enumerate(plan.stages):
        if not isinstance(stage, Join) or not (stage.asked or stage.kind.asof):
            continue
        passed = earliest(plan, number, marks)
        for rule in (rule for each in stage.inputs if stream in each.members for rule in each.retention):
            # What the join asks for is there, and tells how late it may be with the row.
            far = [
                later + distance
                for member, distance in rule.distances
                if distance is not None and (member == stream or member in stage.asked)
                if (later := plan.windows.between(stream, member)) is not None
            ]
            mark = passed[rule.stream]
            yield None if mark is None or not far else mark - min(far)


@dataclass(frozen=True)
class _Need:
    """What a consumer has read of a stream at a site, and from which event time it needs rows."""

    address: SiteAddress
    stream: str
    read: int
    floor: int | None


class Leases:
    """Tells the sites of one session's queries what these need.

    It remembers the joins that were compiled lately, and each that a running query uses.
    """

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._joins: dict[int, AtSites] = {}
        # By the name of a consumer and the lineage that it reads. A query is begun beside the one who looks.
        self._needs: dict[tuple[str, str], _Need] = {}
        self._told: dict[tuple[str, str], tuple[_Need, float]] = {}
        self._telling = threading.Lock()
        self._failed: set[str] = set()

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
        """Have sites keep all rows for a query that they do not know yet, else what they know."""
        known = self.joins
        told: dict[SiteAddress, dict[str, Any]] = {}
        for place, number in enumerate(sorted(known.keys() & numbers)):
            for stream, site in known[number].sites.items():
                name = _consumer(query, place, known[number].plan.streams[stream].alias)
                for address, lineage in zip(site.addresses, site.lineages, strict=True):
                    with self._logged(address):
                        if address not in told:
                            told[address] = _client(address).status()
                        read, floor = _known(told[address], site.stream, name) or (0, None)
                        with self._telling:
                            self._needs.setdefault((name, lineage), _Need(address, site.stream, read, floor))
                        self._tell((name, lineage))

    def look(self, followed: Sequence[Followed]) -> None:
        """Tell sites what is new of the queries that run, and now and then what is not."""
        known = self.joins
        running = {each.id: each.micro_batch for each in followed if each.ended is None}
        used: set[int] = set()
        for query, report in running.items():
            if report is None:
                continue
            own, reached = sorted(known.keys() & report.progress.joins), dict(_reached(report.body))
            used.update(own)
            for place, number in enumerate(own):
                # Aliases of several joins may be the same.
                progress = read(_of_join(report.body, number))
                known[number].revising.add(progress)
                with self._telling:
                    self._needs |= _needs((query, place), known[number], progress, reached)
        with self._telling:
            for ended in [key for key in self._needs if key[0].partition("/")[0] not in running]:
                del self._needs[ended]
                self._told.pop(ended, None)
            needed = [*self._needs]
        for key in needed:
            self._tell(key)
        if None not in running.values():
            # A query that has had no micro-batch yet may use any of them.
            self._forget([number for number in known if number not in used])

    def _forget(self, unused: Sequence[int]) -> None:
        """Forget the oldest of some joins, as long as there are too many of all."""
        with self._changing:
            for number in unused[: max(0, len(self._joins) - REMEMBERED)]:
                self._joins.pop(number).revising.forget()

    def _tell(self, key: tuple[str, str]) -> None:
        """Tell a site what a consumer needs of a lineage, which are ``key``, if that is news or long ago."""
        with self._telling:
            need, now = self._needs.get(key), time.monotonic()
            told, at = self._told.get(key, (None, now))
            if need is None or (need == told and now - at < AGAIN_SECONDS):
                return
            with self._logged(need.address):
                name, lineage = key
                _client(need.address).consumer(need.stream, lineage, name, need.read, need.floor)
                self._told[key] = need, now

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


def _known(status: Mapping[str, Any], stream: str, name: str) -> tuple[int, int | None] | None:
    """Return what a site knows of a consumer: what it has read of a stream, and what it needs."""
    for each in status["streams"]:
        if each["stream"] == stream and name in each.get("consumers", {}):
            known = each["consumers"][name]
            return max(0, each["next"] - known["behind"]), known["floor"]
    return None


def _needs(
    who: tuple[str, int], join: AtSites, progress: Progress, reached: Mapping[str, int]
) -> dict[tuple[str, str], _Need]:
    """Return what a join, ``who`` by its query and its place there, needs of its sites."""
    found = {}
    for stream, site in join.sites.items():
        name = _consumer(*who, join.plan.streams[stream].alias)
        floor = (
            None
            if stream in join.undated
            else horizon(join.plan, stream, progress.watermarks, progress.kept_from)
        )
        for address, lineage in zip(site.addresses, site.lineages, strict=True):
            if lineage in reached:
                found[name, lineage] = _Need(address, site.stream, reached[lineage], floor)
    return found


def _client(address: SiteAddress) -> SiteClient:
    """Return a client that does not wait for long."""
    return client_of(replace(address, patience=_PATIENCE_SECONDS))


def _reached(report: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the lineages that a query reads, and up to which number it has read each."""
    least: dict[str, int] = {}
    for source in report.get("sources", ()):
        told = offsets_of(source.get("endOffset"))
        for each in told.get("sites", ()):
            least[each["lineage"]] = min(each["next"], least.get(each["lineage"], each["next"]))
    yield from least.items()
