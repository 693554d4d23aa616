"""What the page and its JSON tell of a query: numbers, and the same in words."""

from collections.abc import Iterator
from typing import Any

from wjoin.grammar.plurals import counted
from wjoin.measured.kept_streams import kept_streams, longer_windows
from wjoin.measured.progress import behind, time_text
from wjoin.measured.site_choices import SITES_HEAD, site_rows
from wjoin.measured.visits import NODE_HEAD, brought_share, node_rows, visits_of_a_row
from wjoin.planner.explain.kept_state import kept_words
from wjoin.planner.figures import figure, seconds, size
from wjoin.web.charts import history, rows_of
from wjoin.web.estimates import estimates, factor_text, is_far
from wjoin.web.moving_texts import places
from wjoin.web.present import QueryState, a_second


def line(at: QueryState) -> dict[str, Any]:
    """Return what the list of queries tells of one."""
    return {
        "run": at.run,
        "name": at.name,
        "state": at.state,
        "failed": at.state == "failed",
        "rows_per_second": at.rate(at.recent.rows_read),
        "matches_per_second": at.rate(at.recent.matches),
        "told": f"{a_second(at.rate(at.recent.rows_read))} rows/s",
    }


def detail(at: QueryState, since: float | None, width: float | None) -> dict[str, Any]:
    """Return all that is told of a query.

    Of its last hour only what is new to whoever knows the points up to that which begins at ``since``, where
    they have the same ``width``.
    """
    total = at.hour.total
    comparisons = list(estimates(at))
    return {
        **line(at),
        "error": at.error,
        "note": at.note,
        "started": at.started,
        "clock": at.clock,
        "reported": total.ends if total.batches else None,
        "id": at.id,
        "sink": at.sink,
        "checkpoint": at.checkpoint,
        "statement": at.statement,
        "joins": list(at.plans),
        "plans": [each.chosen.plan for each in at.documents.values()],
        "numbers": numbers(at),
        "tiles": [list(each) for each in _tiles(at)],
        "streams": {"head": _STREAM_HEAD, "rows": [_stream_row(at, name) for name in total.rows_in]},
        "state_by_stream": {"head": _STATE_HEAD, "rows": list(_state_rows(at))},
        "nodes": {"head": list(NODE_HEAD), "rows": [list(each) for each in node_rows(total)]},
        "sites": {"head": SITES_HEAD, "rows": [*site_rows(total.sites)]},
        "compared": {
            "head": ["", "estimated", "actual", "actual / estimated"],
            "rows": [[*each.texts, factor_text(each)] for each in comparisons],
            "far": [number for number, each in enumerate(comparisons) if is_far(each)],
        },
        "live": dict(places(at)),
        **history(at, since, width),
    }


def numbers(at: QueryState) -> dict[str, Any]:
    """Return the numbers of a query by themselves: since its start, at present, and how things stand."""
    total, recent = at.hour.total, at.recent
    per_second = {
        name: {stage: at.rate(count) for stage, count in recent.by_stage(name).items()}
        for name in ("comparisons", "matches")
    }
    return {
        "micro_batches": total.batches,
        "seconds": round(total.seconds, 3),
        "rows": dict(rows_of(total)),
        "rows_per_second": {name: at.rate(count) for name, count in rows_of(recent).items()},
        "lag_seconds": at.lag,
        **total.some(_NUMBERS),
        **{name: total.by_stage(name) for name in ("comparisons", "matches")},
        "comparisons_per_second": per_second["comparisons"],
        "matches_per_second_by_stage": per_second["matches"],
        "results": total.matches,
        "parts_ms": {name: each / recent.batches for name, each in recent.parts.items()},
        "layers_ms": {name: each / recent.batches / 1000 for name, each in recent.layers.items()},
    }


_NUMBERS = (
    *("late", "null_times", "ahead", "dropped_by_spark", "state_rows", "state_bytes", "kept_bytes"),
    "spark_state_rows",
    *("spark_state_bytes", "watermarks", "seen", "visits", "trials", "summary_bytes"),
    *("partial_visits", "partial_results"),
    *("rows_by_node", "visits_by_node", "summary_bytes_by_node", "choices", "sites"),
)


def _tiles(at: QueryState) -> Iterator[tuple[str, str]]:
    """Yield the numbers at the top of the page, each with what it is."""
    total, recent = at.hour.total, at.recent
    yield a_second(at.rate(recent.rows_read)), f"rows/s; {figure(total.rows_read)} in all"
    if at.plans or total.stages:
        yield (
            a_second(at.rate(recent.matches)),
            f"results of the join/s; {figure(total.matches)} in all",
        )
    if lag := at.lag:
        name = max(lag, key=lambda each: lag[each])
        yield behind(lag[name]), f"behind the clock: {name}"
    if total.state_rows or total.spark_state_rows:
        yield figure(total.rows_of_state), f"rows of state, {size(total.bytes_of_state)}"
    yield figure(total.lost), "rows dropped: late, no time, too far ahead, shed"
    if any(total.shed.values()):
        lost, least, most = total.results_lost
        yield (
            f"{100 * lost:.1f} %",
            f"of the results lost to shedding, {100 * least:.1f} to {100 * most:.1f} %",
        )
    if total.approximate:
        lost, least, most = total.results_lost
        yield (
            f"{100 * lost:.1f} %",
            f"of the results lost: approximate join, {100 * least:.1f} to {100 * most:.1f} %",
        )
    if total.visits:
        yield figure(visits_of_a_row(total)), "visits of a row to other nodes"
    if total.sites:
        yield f"{100 * brought_share(total):.1f} %", "of the rows at sites fetched"
    if total.batches:
        newest = next(each for each in reversed(at.hour.points) if each.batches)
        batches = counted(total.batches, "micro-batch")
        yield seconds(newest.seconds / newest.batches), f"for the last micro-batch; {batches}"


_STREAM_HEAD = [
    "stream",
    "rows/s",
    "rows in all",
    "behind the clock",
    "newest row (UTC)",
    "watermark (UTC)",
    "rows kept",
    "late",
    "no time",
    "too far ahead",
    "shed",
]


def _stream_row(at: QueryState, name: str) -> list[str]:
    total = at.hour.total
    lag = at.lag.get(name)
    return [
        name,
        a_second(at.rate(at.recent.rows_in.get(name, 0))),
        f"{total.rows_in[name]:,}",
        "–" if lag is None else behind(lag),
        _time(total.seen.get(name)),
        _time(total.watermarks.get(name)),
        f"{total.state_rows[name]:,}" if name in total.state_rows else "–",
        *(f"{counts.get(name, 0):,}" for counts in total.losses.values()),
    ]


_STATE_HEAD = ["state", "bytes", "kept", "to come"]


def _state_rows(at: QueryState) -> Iterator[list[str]]:
    """Yield what W-joins keep of each stream, and what a second more of a window would add."""
    for planned in at.plans.values():
        found = kept_streams(planned, at.hour.total)
        for each in found:
            to_come = "–" if each.to_come is None else size(each.to_come)
            yield [each.alias, size(each.bytes), kept_words(planned, each.kept), to_come]
        for line in longer_windows(planned, found):
            window, _, added = line.rpartition(": ")
            yield [window, f"+ {added}", "", ""]


def _time(value: int | None) -> str:
    return "–" if value is None else time_text(value).partition(".")[0]
