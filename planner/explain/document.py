"""EXPLAIN as a document: plain data that can be written as JSON, drawn, or read by programs."""

from collections.abc import Iterator, Mapping
from typing import Any

from wjoin.parts.kernels.registry import name_of
from wjoin.planner.candidates import Candidate, shared_terms
from wjoin.planner.catalog import Estimate
from wjoin.planner.explain.bands import band_words
from wjoin.planner.explain.cost import agreement_lines, plain_words, plan_words, unknown_names
from wjoin.planner.explain.text import origin
from wjoin.planner.physical import Band, PhysicalPlan, Stage, StreamScan
from wjoin.planner.plan import PlannedSelect
from wjoin.planner.probes import chosen_orders
from wjoin.planner.statistics import StreamStatistics, units_per_second
from wjoin.planner.window_graph import Branch, WindowGraph

DOCUMENT_FORMAT = 1
"""Raised whenever a program that reads an older document could misread a newer one."""


def document(planned: PlannedSelect) -> dict[str, Any]:
    """Return the plan of a block as a document.

    Times are microseconds (units of the column where event time is integral), None where there
    is no bound; costs are seconds of one core per second of event time.
    """
    logical, physical = planned.logical, planned.physical
    graph = logical.graph
    return {
        "format": DOCUMENT_FORMAT,
        "time": graph.kind.value,
        "streams": [
            {
                "alias": scan.alias,
                "relation": relation,
                "event_time": scan.event_time,
                "delay": scan.delay,
                "streaming": scan.streaming,
                "columns": [column.output for column in scan.columns if column.output is not None],
                "filters": list(scan.filters),
            }
            for scan, relation in zip(physical.streams, logical.relations, strict=True)
        ],
        "constraints": {
            "given": [each for n, branch in enumerate(graph.branches) for each in _given(graph, branch, n)],
            "completed": [
                each for n, branch in enumerate(graph.branches) for each in _completed(graph, branch, n)
            ],
            "contradictory_alternatives": graph.contradictory,
        },
        "equality_classes": [
            {"type": each.type, "parts": [part.text for part in each.parts]} for each in logical.classes
        ],
        "residual": list(logical.residual),
        "statistics": [
            {"alias": scan.alias, **_statistics(scan, known, units_per_second(graph.kind))}
            for scan, known in zip(physical.streams, planned.statistics, strict=True)
        ],
        "chosen": _candidate(planned.candidates[0]),
        "candidates": [_candidate(each) for each in planned.candidates],
        "shared": shared_terms(planned.candidates),
        "unknown": unknown_names(planned),
        "assumptions": list(agreement_lines(planned)),
        "stages": list(_stages(physical, planned.shares)),
        "match_delay": physical.outputs[0].match_delay,
    }


def _given(graph: WindowGraph, branch: Branch, number: int) -> Iterator[dict[str, Any]]:
    for first, second in _pairs(len(graph.names)):
        high, back = branch.given[first][second], branch.given[second][first]
        if high is not None or back is not None:
            yield _interval(graph, first, second, high, back, number)


def _completed(graph: WindowGraph, branch: Branch, number: int) -> Iterator[dict[str, Any]]:
    for first, second in _pairs(len(graph.names)):
        high, back = branch.upper[first][second], branch.upper[second][first]
        found = _interval(graph, first, second, high, back, number)
        yield {**found, "origin": origin(branch, graph, first, second)}


def _pairs(size: int) -> Iterator[tuple[int, int]]:
    return ((first, second) for first in range(size) for second in range(first + 1, size))


def _interval(
    graph: WindowGraph, first: int, second: int, high: int | None, back: int | None, number: int
) -> dict[str, Any]:
    """Return the bounds of t_second - t_first; ``number`` is that of the alternative."""
    return {
        "from": graph.names[first],
        "to": graph.names[second],
        "lo": None if back is None else -back,
        "hi": high,
        "alternative": number + 1,
    }


def _statistics(scan: StreamScan, known: StreamStatistics, unit: int) -> dict[str, Any]:
    return {
        "rate": _estimate(Estimate(known.rate.value * unit, known.rate.origin)),
        "width": _estimate(known.width),
        "disorder": _estimate(known.disorder),
        "selectivity": _estimate(known.selectivity),
        "keys": [
            {
                "expressions": list(code.expressions),
                "distinct": _estimate(key.distinct),
                "heaviest": _estimate(key.heaviest),
            }
            for code, key in zip(scan.codes, known.keys, strict=True)
        ],
    }


def _estimate(each: Estimate) -> dict[str, Any]:
    return {"value": each.value, "source": each.origin.value}


def _candidate(each: Candidate) -> dict[str, Any]:
    plan, cost = each.plan, each.estimated.cost
    return {
        "plan": plan_words(plan),
        "words": plain_words(plan),
        "ranked": each.ranked,
        "method": plan.method.value,
        "bounds": _of_stages(stage.bounds.value for stage in plan.stages),
        "route": _of_stages(stage.route for stage in plan.stages),
        "kernel": _of_stages(name_of(stage.kernels) for stage in plan.stages),
        "shipping": _of_stages(stage.shipping.value for stage in plan.stages),
        "passes": plan.passes.value,
        "order": [_orders(plan, stage) for stage in plan.stages],
        "cost": cost.seconds,
        "terms": dict(cost.terms),
        "comparisons": cost.comparisons,
        "results": cost.results,
        "shuffled_bytes": cost.shuffled_bytes,
        "state_rows": cost.state_rows,
        "state_bytes": cost.state_bytes,
        "lost": each.lost,
    }


def _of_stages(values: Iterator[str]) -> str | list[str] | None:
    """Return the value that all stages have, or those of each; None without stages."""
    found = list(values)
    if len(set(found)) > 1:
        return found
    return found[0] if found else None


def _orders(plan: PhysicalPlan, stage: Stage) -> list[list[str]]:
    """Return for each input whose rows begin results the inputs that they meet, itself first.

    Empty where that is not fixed.
    """
    names = ["+".join(plan.streams[member].alias for member in each.members) for each in stage.inputs]
    orders = chosen_orders(stage) or {}
    return [[names[first], *(names[n] for n in order)] for first, order in orders.items()]


def _stages(plan: PhysicalPlan, shares: Mapping[Band, Estimate]) -> Iterator[dict[str, Any]]:
    for stage in plan.stages:
        yield {
            "inputs": [
                {
                    "members": [plan.streams[member].alias for member in each.members],
                    "stage": None if each.stage is None else each.stage + 1,
                    "key": []
                    if each.key is None
                    else list(plan.streams[each.key[0]].codes[each.key[1]].expressions),
                    "kept_for": {
                        plan.streams[kept.stream].alias: kept.distances[0][1] for kept in each.retention
                    },
                }
                for each in stage.inputs
            ],
            "bounds": stage.bounds.value,
            "route": stage.route,
            "kernel": name_of(stage.kernels),
            "shipping": stage.shipping.value,
            "order": _orders(plan, stage),
            "bands": [
                {
                    "condition": band_words(band, plan.streams),
                    "lo": band.low,
                    "hi": band.high,
                    "keeps": _estimate(shares[band]),
                }
                for band in stage.bands
            ],
        }
