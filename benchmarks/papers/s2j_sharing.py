"""Tasks together and apart: maximum rates, bytes, and what is compared (S2J, section 4.1)."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from report import Verdict
from s2j_parts import Judged, Part, panel, percent, table, told
from s2j_tasks import (
    Load,
    Work,
    as_set,
    duplicated,
    one_column,
    own_bands,
    own_conditions,
    own_windows,
    sustained,
)
from service import DisagreementError

FEW, MANY = Load(), Load(rate=2000, keys=4000)
"""Streams of which hardly a row has a partner, and whose rows have two at that rate."""

WAYS: Mapping[str, Callable[[Sequence[str], Load, int], Work]] = {"a set": as_set, "apart": duplicated}
"""How tasks run."""


def tasks(*, quick: bool) -> Part:
    """Maximum rate by the number of tasks and of workers."""
    counts, workers = ((1, 5), (2, 4)) if quick else ((1, 2, 5, 10, 15, 20), (2, 4, 6, 8))
    rates: dict[str, list[float]] = {}
    for many in workers:
        for n in counts:
            found = {work(own_windows(n), FEW, many).found for work in WAYS.values()}
            if len(found) > 1:
                raise DisagreementError(f"{n} tasks on {many} workers: {found}")
        for name, work in WAYS.items():
            rates[f"{many} workers, {name}"] = [_rate(work, name, own_windows(n), FEW, many) for n in counts]
        told(f"{many} workers")
    shared, apart = ([rates[f"{many} workers, {name}"] for many in workers] for name in WAYS)
    falls = [1 - each[-1] / each[0] for each in shared]
    steps = [-np.diff(each) / np.diff(counts) for each in shared]
    gains = [each[-1] / other[-1] for each, other in zip(shared, apart, strict=True)]
    grows = [each[-1] > before[-1] for before, each in pairwise(shared)]
    return Part(
        [table("tasks", "Rows a second, in thousands", "tasks", counts, rates, 1e-3)],
        [panel(f"as {name}", "tasks", counts, _of(rates, name), "thousand rows/s", 1e-3) for name in WAYS],
        [
            Judged(
                "§4.1.3",
                "the maximum rate falls less than in proportion to the tasks, and less with each one more",
                Verdict(
                    all(fall < 1 - 1 / counts[-1] for fall in falls)
                    and all((s[1:] <= s[:-1]).all() for s in steps),
                    f"by {percent(min(falls))} to {percent(max(falls))} from 1 to {counts[-1]} tasks",
                ),
            ),
            Judged(
                "§4.1.3",
                "more workers make up for it",
                Verdict(
                    all(grows),
                    f"{shared[-1][-1] / shared[0][-1]:.1f} times the rate with {workers[-1]} "
                    f"workers as with {workers[0]}",
                ),
            ),
            Judged(
                "§1",
                "streams of its own for each task are no way to run many",
                Verdict(
                    min(gains) > 1,
                    f"a set of {counts[-1]} sustains {min(gains):.1f} to {max(gains):.1f} times their rate",
                ),
            ),
        ],
    )


def kinds(*, quick: bool) -> Part:
    """Maximum rate by what the tasks have in common."""
    counts = (1, 5) if quick else (1, 2, 5, 10, 20)
    of = {
        "own windows, few results": (own_windows, FEW),
        "own conditions, few results": (own_conditions, FEW),
        "own windows, many results": (own_windows, MANY),
        "own conditions, many results": (own_conditions, MANY),
    }
    rates: dict[str, list[float]] = {}
    for kind, (made, load) in of.items():
        for name, work in WAYS.items():
            rates[f"{kind}: {name}"] = [_rate(work, name, made(n), load, 4) for n in counts]
        told(kind)
    ratios = {kind: rates[f"{kind}: a set"][-1] / rates[f"{kind}: apart"][-1] for kind in of}
    rows = table("kinds", "Rows a second on 4 workers, in thousands", "tasks", counts, rates, 1e-3)
    panels = [
        panel(
            kind, "tasks", counts, {name: rates[f"{kind}: {name}"] for name in WAYS}, "thousand rows/s", 1e-3
        )
        for kind in of
    ]
    worst = min(ratios, key=lambda each: ratios[each])
    claim = Judged(
        "(wjoin's)",
        "a set sustains no less than its tasks apart, whatever these are",
        Verdict(min(ratios.values()) >= 1, f"{ratios[worst]:.2f} times their rate with {worst}"),
    )
    return Part([rows], panels, [claim])


def bands(*, quick: bool) -> Part:
    """What tasks without a key compare."""
    counts = (1, 2) if quick else (1, 2, 5, 10)
    load = Load(rate=200, keys=1000)
    works = {name: [work(own_bands(n), load, 4) for n in counts] for name, work in WAYS.items()}
    lines = {
        **{f"{name}: comparisons": [each.compared / each.seconds for each in works[name]] for name in WAYS},
        **{
            f"{name}: rows handed to tasks": [each.found / each.seconds for each in works[name]]
            for name in WAYS
        },
    }
    told("bands")
    times = works["a set"][-1].compared / works["apart"][-1].compared
    claim = Judged(
        "(wjoin's)",
        "tasks with inequalities of their own, as queries 1 and 2 of figure 1, compare no more in a set",
        Verdict(times <= 1, f"{counts[-1]} of them compare {times:,.0f} times as many pairs as apart"),
    )
    return Part([table("bands", "A second of two streams of 200 rows", "tasks", counts, lines)], [], [claim])


def shuffled(*, quick: bool) -> Part:
    """Bytes shuffled by the number of tasks."""
    counts = (1, 5) if quick else (1, 2, 5, 10, 15, 20)
    works = {
        "a set, the same columns": [as_set(one_column(n), FEW, 4) for n in counts],
        "a set, other columns": [as_set(own_windows(n), FEW, 4) for n in counts],
        "apart": [duplicated(own_windows(n), FEW, 4) for n in counts],
    }
    lines = {}
    for name, group in works.items():
        lines[f"{name}: MB"] = [each.sent.size / each.seconds / 1e6 for each in group]
        lines[f"{name}: MB as LZ4"] = [each.sent.packed / each.seconds / 1e6 for each in group]
    told("bytes")
    same, other, apart = ([each.sent.size for each in group] for group in works.values())
    return Part(
        [table("bytes", "MB a second, 4 workers", "tasks", counts, lines)],
        [
            panel(
                "two streams of 10,000 rows/s", "tasks", counts, {n: lines[f"{n}: MB"] for n in works}, "MB/s"
            )
        ],
        [
            Judged(
                "§4.1.3",
                "the number of tasks nearly has no effect on the bandwidth",
                Verdict(
                    same[-1] == same[0] and other[-1] == other[min(2, len(other) - 1)],
                    f"{same[-1] / same[0]:.2f} times the bytes of one task where all read the same columns, "
                    f"{other[-1] / other[0]:.2f} times where they read five",
                ),
            ),
            Judged(
                "§4.1.3",
                "duplicated streams need more with each task",
                Verdict(
                    apart[-1] / apart[0] > 0.95 * counts[-1],
                    f"{apart[-1] / apart[0]:.1f} times for {counts[-1]}",
                ),
            ),
        ],
    )


def _rate(
    work: Callable[[Sequence[str], Load, int], Work], name: str, made: Sequence[str], load: Load, workers: int
) -> float:
    queries = 1 if name == "a set" else len(made)
    return sustained(work(made, load, workers), load, workers, queries)


def _of(rates: Mapping[str, Sequence[float]], name: str) -> dict[str, Sequence[float]]:
    return {key.removesuffix(f", {name}"): each for key, each in rates.items() if key.endswith(f", {name}")}
