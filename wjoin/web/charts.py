"""The last hour of a query as lines: the drawings that there are, and their values."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from wjoin.measured.layers import LAYERS, WHOLE
from wjoin.measured.points import Point
from wjoin.web.present import QueryState, stage_name

ALL = "all sources"
"""The name of the rows of a query without a W-join: Spark tells of its sources together."""


@dataclass(frozen=True)
class Chart:
    """A drawing of the last hour: a line for each of its ``series``, or areas one on the other.

    ``series`` are by key, each with its name in the drawing. ``value`` gives the value of a key at a point,
    None where there is none.
    """

    key: str
    title: str
    unit: str
    series: Mapping[str, str]
    value: Callable[[Point, str], float | None]
    stacked: bool = False


def charts(at: QueryState) -> list[Chart]:
    """Return the drawings of a query's last hour: those for which it has numbers."""
    total = at.hour.total
    stages = {key: stage_name(at, *map(int, key.split("."))) for key in total.stages}
    of_spark = [_SPARK] if any(each.spark_state_rows for each in at.hour.points) else []
    parts = sorted(total.parts, key=total.parts.__getitem__, reverse=True)
    parts = [each for each in parts if each != WHOLE]
    layers = {name: words for name, words in LAYERS.items() if total.layers.get(name)}
    sizes = [*([_OWN] if total.state_rows else []), *of_spark]
    found = [
        Chart("rows", "Rows read", "rows/s", _same(rows_of(total)), _rows),
        Chart("lag", "Behind the clock", "s", _same(total.lag), lambda p, s: p.lag.get(s)),
        Chart(
            "compared", "Comparisons", "a second", stages, lambda p, s: p.rate(p.of_stage(s, "comparisons"))
        ),
        Chart("matched", "Matches", "a second", stages, lambda p, s: p.rate(p.of_stage(s, "matches"))),
        Chart("kept", "Rows of state", "", _same([*total.state_rows, *of_spark]), _kept),
        Chart("bytes", "Size of the state", "bytes", _same(sizes), _size),
        Chart(
            "lost",
            "Rows dropped",
            "rows/s",
            _same([*total.losses, _BY_SPARK]),
            lambda p, s: p.rate(_lost(p, s)),
        ),
        Chart("parts", "Time per micro-batch", "s", _same([*parts, _REST]), _part, stacked=True),
        Chart("layers", "Time of tasks per micro-batch", "s", layers, _layer, stacked=True),
    ]
    return [each for each in found if each.series]


_BY_SPARK = "by Spark"
_REST = "the rest"
_OWN, _SPARK = "window joins", "Spark's own operators"


def _same(keys: Iterable[str]) -> dict[str, str]:
    """Return series that are named as their keys."""
    return {key: key for key in keys}


def _rows(point: Point, name: str) -> float:
    return point.rate(rows_of(point).get(name, 0))


def _lost(point: Point, reason: str) -> int:
    return point.dropped_by_spark if reason == _BY_SPARK else sum(point.losses[reason].values())


def _kept(point: Point, name: str) -> float | None:
    return point.spark_state_rows if name == _SPARK else point.state_rows.get(name)


def _size(point: Point, name: str) -> float:
    return point.state_bytes if name == _OWN else point.spark_state_bytes


def _part(point: Point, name: str) -> float | None:
    """Return the seconds of a part of a micro-batch, None where there was none."""
    if not point.batches:
        return None
    took = point.parts.get(name, 0)
    if name == _REST:
        took = point.parts.get(WHOLE, 0) - sum(each for part, each in point.parts.items() if part != WHOLE)
    return max(0, took) / point.batches / 1000


def _layer(point: Point, name: str) -> float | None:
    return point.layers.get(name, 0) / point.batches / 1e6 if point.batches else None


def history(at: QueryState, since: float | None, width: float | None) -> dict[str, Any]:
    """Return the drawings and their values, column by column."""
    known = since is not None and width == at.hour.width
    points = [each for each in at.hour.points if not known or since is None or each.begins >= since]
    found = charts(at)
    return {
        "charts": [
            {name: getattr(each, name) for name in ("key", "title", "unit", "stacked")}
            | {"series": list(each.series.values())}
            for each in found
        ],
        "history": {
            "whole": not known,
            "width": at.hour.width,
            "begins": [round(each.begins, 3) for each in points],
            "ends": [round(each.ends, 3) for each in points],
            "values": {
                each.key: [[_rounded(each.value(point, name)) for point in points] for name in each.series]
                for each in found
            },
        },
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def rows_of(point: Point) -> Mapping[str, int]:
    """Return the rows read by stream; of all sources together where there is no W-join."""
    return point.rows_in or {ALL: point.source_rows}
