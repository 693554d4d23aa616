"""What a running query's W-joins did in a micro-batch, read from Spark's progress."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np

from wjoin.executor.report import NOTHING_FIRST, NOTHING_SEEN
from wjoin.executor.spark.observe import BY_NODE, COUNTS, PREFIX
from wjoin.measured.layers import LAYERS
from wjoin.measured.offsets import offsets_of
from wjoin.measured.site_choices import choices
from wjoin.planner.cost.shed_share import ExpectedResults, estimated
from wjoin.planner.plan.ahead import GREATEST_NUMBER

BROKEN = "wjoin-broken:"
"""With what the name begins under which a stream's dropped broken records are observed, before its own."""

BELOW = "wjoin-below:"
"""With what the name begins under which rows are observed that a stream drops before a join reads it."""

LOSABLE = "wjoin-losable:"
"""With what the name begins under which the topics of a stream are observed that may lose records."""

LEAST_TIMESTAMP = 10**14
"""Event times below it (March 1973, in microseconds) are taken to be of a unit of their own."""

_MINUTE, _HOUR, _DAY, _YEAR = 60.0, 3600.0, 86_400.0, 31_557_600.0

_AGGREGATES = frozenset({"stateStoreSave", "sessionWindowStateStoreSave", "sessionWindowStateStoreSaveExec"})
"""The names of Spark's operators whose state is groups: in append mode all that have not come out."""

_JOIN_OPERATOR = "transformWithState"
"""With what the names of Spark's operators begin in which W-joins run."""


_SHED = frozenset({"utilization", "lost", "lost_most"})
"""What is told of a join's shedding by each of its streams."""

_OF_RESULTS = ("matches", "squares", "missing", "missing_least", "missing_most")

_VISITS = ("visits", "trials", "summary_bytes")

_GREATEST = frozenset({"seen", "delay", "furthest", *_SHED})

_LEAST = frozenset({"kept_from", "oldest"})

_MILLION = 1_000_000

Counts = Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Done:
    """What micro-batches of one query did, and how things stood after the last of them.

    By stream alias where it is per stream. ``rows_in``: rows read. ``late``, ``null_times`` and ``ahead``:
    rows dropped as older than their stream's watermark, without event time, or too far ahead. ``broken``:
    records that could not be read and were dropped, by the name of their stream. ``missing``: places in
    topics of Kafka that had no record, by topic. ``shed``: rows shed because the query was overloaded; if
    none had been, the W-joins would have had ``results_expected``, between ``results_least`` and
    ``results_most``, but for ``results_unknown`` micro-batches in which all may have been shed.
    In an approximate join the same are lost because rows do not visit all nodes: ``visits`` are those that
    they make, ``trials`` of them to measure only, ``summary_bytes`` what nodes have told of their windows;
    and by the number of the node, from 1, ``rows_by_node`` that live there, ``visits_by_node`` of rows that
    it has had, and ``summary_bytes_by_node`` that it has told. Of more than two streams ``partial_results``
    are made, too, which go on to the next stream: ``partial_visits`` of the ``visits`` are theirs.
    Of streams at sites, ``choices`` tell the results that are ``found`` and ``missing`` as the sites' counts
    have them (``least`` to ``most`` of the latter, and ``late`` rows), and ``sites`` what each was asked, by
    address: its ``rows``, ``messages`` and ``summary_bytes``.
    ``dropped_by_spark``: rows that Spark's own operators have
    dropped as older than their watermark. ``source_rows``: rows that Spark counts at its sources, also of a
    query without W-joins. ``comparisons`` of a combination with a row, in all stages; ``matches`` are the
    results of the W-joins. ``stages`` has each stage of each W-join by ``join.stage``, as they were compiled,
    with its ``comparisons`` and ``matches``. ``seconds`` is the length of the micro-batches, ``parts`` that
    of their parts in milliseconds, in Spark's words, ``layers`` the microseconds of tasks in each layer of
    the W-joins (``measured.layers``).

    After the last one: ``state_rows`` are kept (those of an input of several streams at its first), with
    ``kept_bytes`` and the least event time ``oldest``, all of them with ``state_bytes``;
    ``spark_state_rows`` and ``spark_state_bytes`` are in the state of Spark's own operators. ``watermarks``
    and ``seen``, the greatest event time: microseconds, or the event time's own unit; a stream that has sent
    nothing has none. ``kept_from`` is the least event time of the rows that windows of rows still have of a
    stream, where no window in time ends that.
    """

    seconds: float = 0.0
    rows_in: Counts = field(default_factory=dict)
    late: Counts = field(default_factory=dict)
    null_times: Counts = field(default_factory=dict)
    ahead: Counts = field(default_factory=dict)
    broken: Counts = field(default_factory=dict)
    missing: Counts = field(default_factory=dict)
    shed: Counts = field(default_factory=dict)
    results_expected: float = 0.0
    results_least: float = 0.0
    results_most: float = 0.0
    results_unknown: int = 0
    visits: int = 0
    partial_visits: int = 0
    partial_results: int = 0
    trials: int = 0
    summary_bytes: int = 0
    rows_by_node: Counts = field(default_factory=dict)
    visits_by_node: Counts = field(default_factory=dict)
    summary_bytes_by_node: Counts = field(default_factory=dict)
    choices: Mapping[str, float] = field(default_factory=dict)
    sites: Mapping[str, Counts] = field(default_factory=dict)
    dropped_by_spark: int = 0
    source_rows: int = 0
    comparisons: int = 0
    matches: int = 0
    stages: Mapping[str, Counts] = field(default_factory=dict)
    parts: Counts = field(default_factory=dict)
    layers: Counts = field(default_factory=dict)
    state_rows: Counts = field(default_factory=dict)
    state_bytes: int = 0
    kept_bytes: Counts = field(default_factory=dict)
    oldest: Counts = field(default_factory=dict)
    spark_state_rows: int = 0
    spark_state_bytes: int = 0
    watermarks: Counts = field(default_factory=dict)
    seen: Counts = field(default_factory=dict)
    kept_from: Counts = field(default_factory=dict)

    @property
    def results_lost(self) -> tuple[float, float, float]:
        """The share of the results that is lost, ε, with the least and the most it may be."""
        if self.choices:
            found = self.choices["found"]
            missing = (max(0.0, self.choices[name]) for name in ("missing", "least", "most"))
            share, low, high = (each / (each + found) if each else 0.0 for each in missing)
            return share, low, high
        most = None if self.results_unknown else self.results_most
        return ExpectedResults(self.results_expected, self.results_least, most).lost(self.matches)

    @property
    def approximate(self) -> bool:
        """Whether it has W-joins that may lose results because that was asked for."""
        return self.visits > 0 or bool(self.choices)

    def some(self, names: Iterable[str]) -> dict[str, Any]:
        """Return some of what is told, by name."""
        return {name: getattr(self, name) for name in names}


OF_JOINS = ("state_rows", "state_bytes", "kept_bytes", "oldest", "watermarks", "seen", "kept_from")
"""What W-joins tell of how things stand."""


@dataclass(frozen=True, kw_only=True)
class Progress(Done):
    """The counts of one micro-batch of one query.

    ``started`` is when it began (ISO 8601, UTC). ``furthest`` is the greatest event time of the rows dropped
    as too far ``ahead``. ``joins`` are the numbers under which the W-joins were compiled. ``groups`` are in
    the state of Spark's aggregates: in append mode they wait until the query's ``watermark`` (UTC, empty
    where it has none yet) has passed them. An ``idle`` report is of no micro-batch: it has the number of the
    next one. ``utilization`` is τ, by which was decided what to shed; 0 where nothing would be.
    """

    query: str
    batch: int
    started: str = ""
    idle: bool = False
    furthest: Counts = field(default_factory=dict)
    joins: tuple[int, ...] = ()
    groups: int = 0
    watermark: str = ""
    utilization: float = 0.0

    @property
    def rows_per_second(self) -> float:
        """Rows read per second of processing."""
        return sum(self.rows_in.values()) / self.seconds if self.seconds else 0.0

    def after(self, before: "Progress | None") -> "Progress":
        """Return the same with what W-joins kept and had seen ``before``, where it tells nothing of that.

        In a micro-batch without rows, as Spark makes one to close groups, no worker of a W-join reports.
        """
        if before is None or self.idle or self.state_rows or not before.state_rows:
            return self
        return replace(self, **before.some(OF_JOINS))

    @property
    def lag(self) -> dict[str, float]:
        """How far the newest row of each stream was behind the clock at the end, in seconds."""
        return {} if self.ended is None else lags(self.seen, self.ended)

    @property
    def ended(self) -> float | None:
        """When what it tells of ended, in seconds since 1970; None where it does not say."""
        if not self.started:
            return None
        return datetime.fromisoformat(self.started).timestamp() + self.seconds

    @property
    def complete_until(self) -> int | None:
        """The event time by which results are complete, the least watermark; None where a stream has none."""
        if not self.watermarks or self.rows_in.keys() - self.watermarks.keys():
            return None
        return min(self.watermarks.values())

    def as_json(self) -> str:
        """Return the counts as one line of JSON."""
        first = self.some(("query", "batch"))
        return json.dumps({**first, **self.__dict__, "rows_per_second": round(self.rows_per_second, 1)})


def lags(seen: Mapping[str, int], clock: float) -> dict[str, float]:
    """Return the seconds by which a clock is ahead of each stream's newest row, where its time is one."""
    return {alias: clock - time / 1e6 for alias, time in seen.items() if time >= LEAST_TIMESTAMP}


def time_text(time: int) -> str:
    """Return an event time as a time in UTC, or as the number it is where its unit is another.

    >>> time_text(1_714_557_600_250 * 1_000_000)  # milliseconds that were read as seconds
    '56302-03-03 16:04:10'
    """
    if not LEAST_TIMESTAMP <= time <= GREATEST_NUMBER:
        return str(time)
    # Years of five digits are none of datetime's.
    whole, rest = divmod(time, 1_000_000)
    return str(np.datetime64(whole, "s")).replace("T", " ") + (f".{rest:06}" if rest else "")


def behind(lag: float) -> str:
    """Return a lag as people say it.

    >>> behind(2.34), behind(-90), behind(7200), behind(4e8)
    ('2.3 s', '-1.5 min', '2 h', '12.7 years')
    """
    long = abs(lag)
    for least, unit, word in ((2 * _YEAR, _YEAR, "years"), (2 * _DAY, _DAY, "d"), (_HOUR, _HOUR, "h")):
        if long >= least:
            return f"{lag / unit:.1f}".removesuffix(".0") + f" {word}"
    if long >= _MINUTE:
        return f"{lag / _MINUTE:.1f}".removesuffix(".0") + " min"
    return f"{lag:.1f} s"


def read(progress: Any) -> Progress:
    """Return the counts in a StreamingQueryProgress (object, its JSON, or a mapping).

    A query with several W-joins has their counts added up; aliases that repeat are added, too.
    """
    body = _body(progress)
    totals: dict[str, dict[str, int]] = {}
    matches: dict[int, tuple[int, int]] = {}
    stages: dict[str, dict[str, int]] = {}
    joins: set[int] = set()
    of_joins: dict[int, dict[str, int]] = {}
    visits: Counter[str] = Counter()
    by_node: dict[str, Counter[str]] = {name: Counter() for name in BY_NODE}
    layers: Counter[str] = Counter()
    for query, stage, values in observations(body):
        joins.add(query)
        if "comparisons" in values:
            # Else it is what Spark's own operators read of a stream.
            counts = {name: values.get(name) or 0 for name in ("comparisons", "matches")}
            stages[f"{query}.{stage}"] = counts
            matches[query] = max(matches.get(query, (-1, 0)), (stage, counts["matches"]))
            visits.update({name: values.get(name) or 0 for name in _VISITS})
            visits["partial_visits"] += (values.get("visits") or 0) if stage else 0
            of_join = of_joins.setdefault(query, {})
            # The observations of a join come in any order, and its results are those of the last stage.
            if stage == matches[query][0]:
                of_join |= {name: max(0, values.get(name) or 0) for name in _OF_RESULTS}
        for name, value in values.items():
            of_nodes, _, node = name.partition("@")
            # Rows visit nodes in the first stage, partial results in the others.
            if node and of_nodes in by_node and not (stage and of_nodes != "summary_bytes"):
                by_node[of_nodes][str(int(node) + 1)] += value or 0
            counter = name.partition(":")[0]
            layers[counter] += value or 0
            if counter in _SHED and value is not None:
                known = of_joins.setdefault(query, {})
                known[counter] = max(value, known.get(counter, 0))
        _add(totals, values)
    for name, row in body.get("observedMetrics", {}).items():
        if name.startswith(BELOW):
            counted = _values(row)
            # Without such rows nothing is said of the stream: the join tells of it by its alias.
            if counted.get(f"rows:{name.removeprefix(BELOW)}"):
                _add(totals, counted)
    operators = body.get("stateOperators", [])
    # The values in the state of a W-join are no rows.
    own = [each for each in operators if not each["operatorName"].startswith(_JOIN_OPERATOR)]
    seen, furthest = (_known(totals.get(name, {})) for name in ("seen", "furthest"))
    kept_from = {alias: time for alias, time in totals.get("kept_from", {}).items() if time < NOTHING_FIRST}
    found = [_estimate(each) for each in of_joins.values()]
    results = sum(count for _, count in matches.values())
    partial = sum(counts["matches"] for counts in stages.values()) - results if visits["visits"] else 0
    chosen, sites = choices(body)
    return Progress(
        query=body.get("name") or str(body.get("id")),
        batch=body["batchId"],
        seconds=body.get("batchDuration", 0) / 1000,
        rows_in=totals.get("rows", {}),
        late=totals.get("late", {}),
        null_times=totals.get("undated", {}),
        matches=results,
        comparisons=sum(counts["comparisons"] for counts in stages.values()),
        state_rows=totals.get("kept", {}),
        state_bytes=sum(totals.get("kept_bytes", {}).values()),
        kept_bytes=totals.get("kept_bytes", {}),
        oldest={alias: time for alias, time in totals.get("oldest", {}).items() if time < NOTHING_FIRST},
        watermarks={alias: time - totals["delay"].get(alias, 0) for alias, time in seen.items()},
        source_rows=_source_rows(body),
        started=str(body.get("timestamp", "")),
        # Spark measures how long a micro-batch took to be written only where there was one.
        idle="addBatch" not in body.get("durationMs", {"addBatch": 0}),
        ahead=totals.get("ahead", {}),
        furthest=furthest,
        seen=seen,
        kept_from=_known(kept_from),
        stages=dict(sorted(stages.items())),
        parts=dict(body.get("durationMs", {})),
        layers={name: layers[name] for name in LAYERS if layers[name]},
        spark_state_rows=sum(each["numRowsTotal"] for each in own),
        spark_state_bytes=sum(each["memoryUsedBytes"] for each in own),
        dropped_by_spark=sum(each["numRowsDroppedByWatermark"] for each in operators),
        joins=tuple(sorted(joins)),
        broken=_broken(body),
        missing=_missing(body),
        shed=totals.get("shed", {}),
        results_expected=sum(each.expected for each in found),
        results_least=sum(each.least for each in found),
        results_most=sum(each.most or 0.0 for each in found),
        results_unknown=int(any(each.most is None for each in found)),
        choices=chosen,
        sites=sites,
        **{name: visits[name] for name in (*_VISITS, "partial_visits")},
        partial_results=partial,
        rows_by_node=dict(by_node["homed"]),
        visits_by_node=dict(by_node["visits"]),
        summary_bytes_by_node=dict(by_node["summary_bytes"]),
        utilization=max((each.get("utilization", 0) for each in of_joins.values()), default=0) / _MILLION,
        groups=sum(each["numRowsTotal"] for each in own if each["operatorName"] in _AGGREGATES),
        watermark=_watermark(body),
    )


def _estimate(counts: Mapping[str, int]) -> ExpectedResults:
    """Return how many results a W-join would have had if nothing had been shed."""
    names = ("missing", "missing_least", "missing_most")
    share, least, most = (min(counts.get(name, 0), _MILLION) / _MILLION for name in names)
    if most > 0:
        return ExpectedResults.of_lost(counts.get("matches", 0), share, least, most)
    lost, lost_most = (counts.get(name, 0) / _MILLION for name in ("lost", "lost_most"))
    return estimated(counts.get("matches", 0), counts.get("squares", 0), lost, lost_most)


def _add(totals: dict[str, dict[str, int]], values: Mapping[str, int | None]) -> None:
    """Add counts by stream, ``count:stream``, to those that there are."""
    for key, value in values.items():
        count, _, alias = key.partition(":")
        if alias and value is not None:
            by_alias = totals.setdefault(count, {})
            if count in _LEAST:
                by_alias[alias] = min(value, by_alias.get(alias, value))
            elif count in _GREATEST:
                by_alias[alias] = max(value, by_alias.get(alias, value))
            else:
                by_alias[alias] = by_alias.get(alias, 0) + value


def _watermark(body: Mapping[str, Any]) -> str:
    told = str(body.get("eventTime", {}).get("watermark", ""))
    # Spark begins with time 0.
    return "" if told.startswith("1970-01-01T00:00:00.000") else told.replace("T", " ").removesuffix("Z")


def _source_rows(body: Mapping[str, Any]) -> int:
    known = body.get("numInputRows")
    if known is None:
        # Spark Connect leaves the sum to its clients.
        known = sum(each["numInputRows"] for each in body.get("sources", []))
    return int(known)


def _known(times: Mapping[str, int]) -> dict[str, int]:
    return {alias: time for alias, time in times.items() if time > NOTHING_SEEN}


def _broken(body: Mapping[str, Any]) -> dict[str, int]:
    observed = body.get("observedMetrics", {}).items()
    counts = {name: _values(row) for name, row in observed if name.startswith(BROKEN)}
    return {name.removeprefix(BROKEN): values.get("broken") or 0 for name, values in counts.items()}


def _missing(body: Mapping[str, Any]) -> dict[str, int]:
    """Return how many more places the offsets of a source span than rows were read of it."""
    missing: dict[str, int] = {}
    for source in body.get("sources", ()):
        if not str(source.get("description")).startswith("KafkaV2["):
            continue
        start, end = (offsets_of(source.get(name)) for name in ("startOffset", "endOffset"))
        if not start:
            # Nothing tells where the first micro-batch began.
            continue
        places = sum(
            last - start.get(topic, {}).get(partition, last)
            for topic, partitions in end.items()
            for partition, last in partitions.items()
        )
        if places > source["numInputRows"]:
            missing[", ".join(sorted(end))] = places - source["numInputRows"]
    return missing


def losable(progress: Any) -> set[str]:
    """Return the topics of which a stream says that they may lose records (``failOnDataLoss``)."""
    observed = _body(progress).get("observedMetrics", {}).items()
    return {
        topic
        for name, row in observed
        if name.startswith(LOSABLE)
        for topic in _values(row).get("topics") or ()
    }


def observations(progress: Any) -> Iterator[tuple[int, int, Mapping[str, int | None]]]:
    """Yield what each stage of each W-join observed: number of the compiled plan, stage, counts by name."""
    for name, row in _body(progress).get("observedMetrics", {}).items():
        if name.startswith(f"{PREFIX}:"):
            _, query, stage = name.split(":")
            yield int(query), int(stage), _values(row)


def _values(row: Any) -> Mapping[str, Any]:
    values = row.asDict() if hasattr(row, "asDict") else row
    if set(values) == {"values", "schema"}:
        # Spark Connect gives the observed row and its schema apart.
        names = (field["name"] for field in values["schema"]["fields"])
        values = dict(zip(names, values["values"], strict=True))
    # A map comes out of Spark in any order.
    return dict(sorted(values.get(COUNTS, values).items()))


def _body(progress: Any) -> Mapping[str, Any]:
    if isinstance(progress, Mapping):
        return progress
    body: dict[str, Any] = json.loads(progress if isinstance(progress, str) else progress.json)
    return body
