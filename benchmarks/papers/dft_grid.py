"""Figures 8 to 11: messages, bytes and throughput by nodes, and the error by compression, of all
summaries."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from dft_loads import SETS
from dft_simulation import Outcome, World, asked, at_error, at_messages, summarised
from report import Panel, Table, Verdict, number
from s2j_parts import Judged, Part, panel, percent, table, told

KINDS = ("base", "dft", "dftt", "bloom", "skch", "digest")
PAPERS = KINDS[:-1]
ORDERED = "dftt, keys in order"
"""DFTT whose cells are in the order of the keys, where these have one."""

ERROR = 0.15
TUPLE = 100
"""Bytes of a message with a tuple."""

PERIODS = 16
"""Changes of a summary are told each time so large a part of a window is new."""

LINK = 90_000 / 8
"""Bytes a second that a node may send (section 6: 90 kbit/s)."""


@dataclass(frozen=True)
class Scale:
    """How much is run: numbers of nodes, the window, new rows a node and stream, κ."""

    nodes: Sequence[int]
    window: int
    new: int
    kappas: Sequence[int]
    widest: int


FULL = Scale((2, 5, 10, 15, 20), 1 << 16, 1000, (2, 8, 32, 128, 256, 1024), 1 << 19)
QUICK = Scale((2, 8), 1 << 15, 500, (4, 64), 1 << 14)
KAPPA = 256


@dataclass(frozen=True)
class Point:
    """A kind on a set and a number of nodes: at a fixed error, at log N messages, and its bytes a row."""

    fixed: Outcome
    budget: Outcome
    told: float

    @property
    def share(self) -> float:
        """Bytes of summaries, of all bytes that are sent."""
        return self.told / max(self.told + TUPLE * self.fixed.per_row, 1e-9)

    @property
    def throughput(self) -> float:
        """Results a second that all nodes report, each sending as much as its link takes."""
        rows = LINK / (self.told + TUPLE * self.fixed.per_row)
        return rows * self.fixed.flow.nodes * self.fixed.found / self.fixed.rows


Grid = Mapping[str, Mapping[int, Mapping[str, Point]]]


def measured(scale: Scale, kappa: int) -> Grid:
    """Run every kind on every set and number of nodes."""
    grid: dict[str, dict[int, dict[str, Point]]] = {}
    for name, load in SETS.items():
        grid[name] = {}
        for nodes in scale.nodes:
            world = World.of(load, nodes, scale.window, scale.new)
            kinds = (*KINDS, ORDERED) if load.domain else KINDS
            grid[name][nodes] = {kind: _point(world, kind, 8 * scale.window // kappa) for kind in kinds}
            told(f"{name} on {nodes} nodes")
    return grid


def _point(world: World, kind: str, size: int) -> Point:
    case = asked(world, kind.partition(",")[0], size, ordered=kind == ORDERED)
    fixed = at_error(case, 0.0 if kind == "base" else ERROR)
    log = max(math.log2(world.nodes), 1.0)
    return Point(fixed, at_messages(case, log), _told_bytes(world, kind, size))


def _told_bytes(world: World, kind: str, size: int) -> float:
    """Return what a node tells all others of its windows, for each row that comes to it: by one of them."""
    if kind == "base":
        return 0.0
    window = world.windows[0][0]
    new = len(window) // PERIODS
    rows = world.load.draw(np.random.default_rng((9, 9)), 0, world.nodes, new)
    first = World(world.load, ([window], [window]), ([rows], [rows]))
    name = kind.partition(",")[0]
    summary = summarised(first, name, size, ordered=kind == ORDERED)[0][0][0]
    later = summary.remove(window[:new]).add(rows)
    return len(later.changes(summary.to_bytes())) * (world.nodes - 1) / new


def _label(kind: str) -> str:
    """Return how a kind is told: the name in capitals, and what stands after it.

    >>> _label("dftt, keys in order")
    'DFTT, keys in order'
    """
    name, comma, rest = kind.partition(",")
    return name.upper() + comma + rest


def _by_set(
    grid: Grid, value: Callable[[Point], float], name: str, title: str, show: Callable[[float], str]
) -> list[Table]:
    tables = []
    for load, by_nodes in grid.items():
        lines = {
            _label(kind): [show(value(points[kind])) for points in by_nodes.values()]
            for kind in (*KINDS, ORDERED)
            if kind in next(iter(by_nodes.values()))
        }
        tables.append(table(f"{name}-{load.lower()}", f"{title}, {load}", "nodes", list(by_nodes), lines))
    return tables


def _panels(
    grid: Grid, value: Callable[[Point], float], values: str, unit: float = 1.0, leave: Sequence[str] = ()
) -> list[Panel]:
    return [
        panel(
            load,
            "nodes",
            list(by_nodes),
            {_label(k): [value(points[k]) for points in by_nodes.values()] for k in KINDS if k not in leave},
            values,
            unit,
        )
        for load, by_nodes in grid.items()
    ]


def precise(value: float) -> str:
    """Return a number to three digits.

    >>> precise(0.01234), precise(12.3456)
    ('0.0123', '12.3')
    """
    if value == 0:
        return "0"
    digits = max(2 - math.floor(math.log10(abs(value))), 0)
    return f"{value:,.{digits}f}"


def messages(*, quick: bool) -> Part:
    """Figures 8, 9, 10 (b) and 11: by the number of nodes."""
    scale = QUICK if quick else FULL
    grid = measured(scale, KAPPA)
    tables = [
        *_by_set(
            grid,
            lambda each: each.fixed.per_result,
            "fig9",
            "Figure 9: messages for each result at ε = 15 %",
            precise,
        ),
        *_by_set(
            grid, lambda each: each.budget.error, "fig10b", "Figure 10 (b): ε at log2 N messages", percent
        ),
        *_by_set(
            grid,
            lambda each: each.share,
            "fig8",
            "Figure 8: bytes of summaries, of all",
            lambda each: percent(each, 2),
        ),
        *_by_set(
            grid, lambda each: each.throughput, "fig11", "Figure 11: results a second at ε = 15 %", number
        ),
    ]
    panels = _panels(grid, lambda each: each.fixed.per_result, "messages for each result", leave=("base",))
    return Part(tables, panels, _claims(grid))


def _ratios(grid: Grid, better: str, worse: str, sets: Sequence[str]) -> list[float]:
    return [
        points[worse].fixed.per_result / points[better].fixed.per_result
        for name in sets
        for nodes, points in grid[name].items()
        if nodes > 2
    ]


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


def _claims(grid: Grid) -> list[Judged]:
    skewed = [name for name in grid if name != "UNI"]
    uniform = [
        points[kind].fixed.per_result / points["dft"].fixed.per_result
        for nodes, points in grid["UNI"].items()
        for kind in ("dftt", "bloom", "skch")
        if nodes > 2
    ]
    against = {kind: _ratios(grid, "dftt", kind, skewed) for kind in ("dft", "bloom", "skch")}
    dft = _ratios(grid, "dft", "bloom", skewed)
    by_order = [name for name in skewed if ORDERED in next(iter(grid[name].values()))]
    ordered = {kind: _ratios(grid, ORDERED, kind, by_order) for kind in ("dft", "bloom", "skch")}
    ordered_words = ", ".join(f"{kind.upper()} to it {_range(each)}" for kind, each in ordered.items())
    digest = [
        min(each.fixed.per_result for kind, each in points.items() if kind != "digest")
        / points["digest"].fixed.per_result
        for by_nodes in grid.values()
        for points in by_nodes.values()
    ]
    last = [by_nodes[max(by_nodes)] for name, by_nodes in grid.items() if name != "UNI"]
    most = [min(points[k].fixed.per_row for k in PAPERS) / (points["base"].fixed.per_row) for points in last]
    words = ", ".join(f"{kind.upper()} to DFTT {_range(each)}" for kind, each in against.items())
    rates = [
        points["digest"].throughput
        / max(each.throughput for kind, each in points.items() if kind != "digest")
        for by_nodes in grid.values()
        for points in by_nodes.values()
    ]
    return [
        Judged(
            "Figure 9",
            "on uniform data all are alike (within a tenth)",
            Verdict(max(uniform) < 1.1 and min(uniform) > 0.9, f"to DFT {_range(uniform)}"),
        ),
        Judged(
            "Figure 9",
            "DFTT needs 1.6 to 2 times fewer messages than any other on skewed data",
            Verdict(min(min(each) for each in against.values()) >= 1.6, words),
        ),
        Judged(
            "Figure 9",
            "so does DFTT with keys in order",
            Verdict(min(min(each) for each in ordered.values()) >= 1.6, ordered_words),
        ),
        Judged(
            "Figure 9",
            "DFT needs more than BLOOM on skewed data",
            Verdict(max(dft) < 1, f"BLOOM to DFT {_range(dft)}"),
        ),
        Judged(
            "Section 8",
            "messages grow less than the nodes on skewed data (at 20 nodes, half of BASE's at most)",
            Verdict(max(most) < 0.5, f"best of the paper's to BASE {_range(most)}"),
        ),
        Judged(
            "here",
            "DIGEST needs the fewest messages, on every set and number of nodes",
            Verdict(min(digest) >= 0.999, f"best of the others to DIGEST {_range(digest)}"),
        ),
        Judged(
            "here",
            "DIGEST has the highest throughput (within 2 %)",
            Verdict(min(rates) >= 0.98, f"DIGEST to the best of the others {_range(rates)}"),
        ),
    ]


def compression(*, quick: bool) -> Part:
    """Figure 10 (a): the error at log N messages, by κ, in the widest window."""
    scale = QUICK if quick else FULL
    nodes = 4 if quick else 8
    world = World.of(SETS["ZIPF"], nodes, scale.widest, scale.new)
    found: dict[str, list[float]] = {kind: [] for kind in KINDS if kind != "base"}
    found |= {"dft, keys in order": [], ORDERED: []}
    for kappa in scale.kappas:
        size = 8 * scale.widest // kappa
        for kind, errors in found.items():
            name, _, ordered = kind.partition(",")
            case = asked(world, name, size, ordered=bool(ordered))
            errors.append(at_messages(case, math.log2(nodes)).error)
        told(f"κ = {kappa}")
    lines = {_label(kind): each for kind, each in found.items()}
    shown = {name: [percent(each, 1) for each in errors] for name, errors in lines.items()}
    tables = [table("fig10a", "Figure 10 (a): ε at log2 N messages, by κ", "κ", list(scale.kappas), shown)]
    panels = [
        Panel(
            "ZIPF",
            "κ",
            panel("", "", list(scale.kappas), lines, "", 100).curves,
            values="ε, %",
            logarithmic_places=True,
        )
    ]
    at = list(scale.kappas).index(KAPPA) if KAPPA in scale.kappas else -1
    others = min(found[kind][at] for kind in ("dft", "bloom", "skch"))
    best = all(
        found["digest"][place] <= min(found[kind][place] for kind in ("dft", "dftt", "bloom", "skch")) + 0.002
        for place in range(len(scale.kappas))
    )
    claims = [
        Judged(
            "Figure 10 (a)",
            "DFTT has the lowest error of the paper's at κ = 256, 1.6 times lower",
            Verdict(
                others > 1.6 * found["dftt"][at],
                f"DFTT {percent(found['dftt'][at], 1)}, best of the others {percent(others, 1)}",
            ),
        ),
        Judged(
            "Figure 10 (a)",
            "so has DFTT with keys in order",
            Verdict(others > 1.6 * found[ORDERED][at], f"DFTT {percent(found[ORDERED][at], 1)}"),
        ),
        Judged(
            "Figure 10 (a)",
            "BLOOM has the highest",
            Verdict(
                found["bloom"][at] == max(found[k][at] for k in ("dft", "dftt", "bloom", "skch")),
                ", ".join(
                    f"{k.upper()} {percent(found[k][at], 1)}" for k in ("dft", "dftt", "bloom", "skch")
                ),
            ),
        ),
        Judged(
            "here",
            "DIGEST has the lowest at every κ",
            Verdict(best, ", ".join(percent(each, 1) for each in found["digest"])),
        ),
    ]
    return Part(tables, panels, claims)
