"""Figures 3 to 6: bounds under worst and skewed data; what x[n] means; what an inverse transform rebuilds."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from dft_loads import ALPHA, SETS
from dft_simulation import World, asked, at_messages, summarised
from report import Table, Verdict
from s2j_parts import Judged, Part, panel, percent, table, told

from wjoin.parts.summaries.dftt import DfttSummary, rebuilt
from wjoin.parts.summaries.series import SlidingTransform
from wjoin.parts.summaries.summary import Form
from wjoin.parts.summaries.theorem_errors import uniform_error, zipf_error

Floats = npt.NDArray[np.float64]


def bounds(*, quick: bool) -> Part:
    """Figures 3 and 4: the error at T = 1 and log2 N, by theorems 1 to 3 and as it is."""
    nodes = (2, 8) if quick else (2, 4, 8, 12, 16, 20)
    window = 1 << 13 if quick else 1 << 15
    lines: dict[str, list[float]] = {}
    for name, bound in (("UNI", uniform_error), ("ZIPF", zipf_error)):
        for many in nodes:
            case = asked(World.of(SETS[name], many, window, 2000), "dft", window // 2)
            for words, messages in (("T = 1", 1.0), ("T = log N", math.log2(many))):
                lines.setdefault(f"{name}, {words}, theorem", []).append(bound(many, messages, ALPHA))
                error = at_messages(case, max(messages, 1.0)).error
                lines.setdefault(f"{name}, {words}, measured", []).append(error)
        told(name)
    shown = {name: [percent(each) for each in errors] for name, errors in lines.items()}
    tables = [table("bounds", "Figures 3 and 4: ε by theorem, and measured with DFT", "nodes", nodes, shown)]
    panels = [
        panel(name, "nodes", nodes, _starting(name + ", ", lines), "ε, %", 100) for name in ("UNI", "ZIPF")
    ]
    return Part(tables, panels, _bound_claims(lines))


def _starting(start: str, lines: Mapping[str, list[float]]) -> dict[str, list[float]]:
    return {key.removeprefix(start): each for key, each in lines.items() if key.startswith(start)}


def _bound_claims(lines: Mapping[str, list[float]]) -> list[Judged]:
    off = max(
        abs(measured - bound)
        for words in ("T = 1", "T = log N")
        for measured, bound in zip(
            lines[f"UNI, {words}, measured"], lines[f"UNI, {words}, theorem"], strict=True
        )
    )
    limit = zipf_error(1 << 40, 40.0, ALPHA)
    here = lines["ZIPF, T = log N, measured"][-1]
    return [
        Judged(
            "theorems 1 and 2",
            "the error on uniform data is 1 - (1 + T) / N",
            Verdict(off < 0.03, f"off by {percent(off, 1)} at most"),
        ),
        Judged(
            "theorem 3, figure 4",
            "at log N messages the error on skewed data tends to 0 as nodes are added",
            Verdict(
                limit < 0.01, f"the theorem itself tends to {percent(limit)}; measured last {percent(here)}"
            ),
        ),
    ]


def readings(*, quick: bool) -> Part:
    """Equations 4 to 8 by each reading of x[n]: how they go with the matches of pairs of nodes."""
    nodes, window = (4, 1 << 12) if quick else (8, 1 << 15)
    size = 8 * window // 16
    found: dict[str, dict[str, float]] = {}
    for name, load in SETS.items():
        world = World.of(load, nodes, window, 500)
        matches = _matches_of_pairs(world)
        found[name] = {
            "values in their order": _correlation(_series_similarity(world, size // 8), matches),
            "counts, keys by hash": _correlation(_count_similarity(world, size, ordered=False), matches),
        }
        if load.domain is not None:
            ordered = _count_similarity(world, size, ordered=True)
            found[name]["counts, keys in order"] = _correlation(ordered, matches)
        told(name)
    lines = [
        [reading, *(f"{found[name][reading]:.2f}" if reading in found[name] else "" for name in SETS)]
        for reading in found["UNI"]
    ]
    title = "Correlation of equation 4 with the matches of pairs of nodes"
    tables = [Table("readings", title, ["x[n]", *SETS], lines), _constructed(window)]
    claims = [
        _reading_claim(
            "how values move in their order says how much two windows join", found, "values in their order"
        ),
        _reading_claim("how counts of keys go together does", found, "counts, keys by hash"),
    ]
    return Part(tables, [], claims)


def _reading_claim(text: str, found: Mapping[str, Mapping[str, float]], reading: str) -> Judged:
    by_set = {name: found[name][reading] for name in SETS if name != "UNI"}
    words = ", ".join(f"{name} {each:.2f}" for name, each in by_set.items())
    return Judged("equations 4 and 5", text, Verdict(min(by_set.values()) > 0.8, words))


def _matches_of_pairs(world: World) -> Floats:
    """Return the matches of each window of R with each of S (float64[N, N])."""
    found = np.zeros((world.nodes, world.nodes))
    for i, window in enumerate(world.windows[0]):
        codes, counts = np.unique(window, return_counts=True)
        for j, other in enumerate(world.windows[1]):
            theirs, many = np.unique(other, return_counts=True)
            _, mine, yours = np.intersect1d(codes, theirs, assume_unique=True, return_indices=True)
            found[i, j] = counts[mine] @ many[yours]
    return found


def _series_similarity(world: World, many: int) -> Floats:
    sides = [
        [SlidingTransform.of(each.astype(np.float64), many) for each in stream] for stream in world.windows
    ]
    return np.array([[mine.similarity(other) for other in sides[1]] for mine in sides[0]])


def _count_similarity(world: World, size: int, *, ordered: bool) -> Floats:
    _, views = summarised(world, "dft", size, ordered=ordered)
    return np.array([[mine.similarity(other) for other in views[1]] for mine in views[0]])


def _correlation(similarity: Floats, matches: Floats) -> float:
    return float(np.corrcoef(similarity.ravel(), matches.ravel())[0, 1])


def _constructed(window: int) -> Table:
    """Return the correlations of windows that tell the readings apart: all rows join, or none does."""
    random = np.random.default_rng(3)
    walk = np.rint(2000 + random.normal(0, 3, window).cumsum()).astype(np.int64) * 2
    pairs = {
        "the same rows in another order": random.permutation(walk),
        "the same walk, without one equal value": walk + 1,
    }
    form, many = Form(8 * window // 16, 0, window), window // 16
    kind, lines = DfttSummary, []
    for name, other in pairs.items():
        first, second = (SlidingTransform.of(each.astype(np.float64), many) for each in (walk, other))
        mine, theirs = (kind.view(form, kind.empty(form).add(each).to_bytes()) for each in (walk, other))
        matches = int(np.isin(walk, other).sum())
        by = first.similarity(second), mine.similarity(theirs)
        lines.append([name, f"{matches:,}", *(f"{each:.2f}" for each in by)])
    head = ["two windows", "rows that join", "values in their order", "counts of keys"]
    return Table("constructed", "Equation 4 of two windows", head, lines)


def rebuilding(*, quick: bool) -> Part:
    """Figures 5 and 6: what the first W/κ coefficients rebuild, of prices in their order and of counts."""
    kappas = (4, 64, 256) if quick else (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
    window = 1 << 13 if quick else 80_000
    prices = {f"prices, {100 * moves:g} % move": _prices(window, moves, 0) for moves in (0.0005, 0.01, 0.2)}
    prices["prices at bid or ask"] = _prices(window, 0.01, 1)
    found = {name: _rebuilt_prices(values, kappas) for name, values in prices.items()}
    for name in ("UNI", "ZIPF", "NWRK"):
        codes = World.of(SETS[name], 4, 1 << 16, 1).windows[0][0]
        found[f"counts, {name}"] = _rebuilt_counts(codes, kappas)
    shown = {
        name: [f"{error:.3g} ({percent(share)})" for error, share in each] for name, each in found.items()
    }
    title = "Figures 5 and 6: mean square error, and the share that is rebuilt right"
    panels = [
        panel(
            title,
            "κ",
            kappas,
            {name: [error for error, _ in each] for name, each in found.items() if name.startswith(start)},
            "mean square error",
        )
        for title, start in (("x[n]: a price in its order", "prices"), ("x[n]: rows of a key", "counts"))
    ]
    at = {name: each[kappas.index(256)] for name, each in found.items()}
    return Part([table("rebuilding", title, "κ", kappas, shown)], panels, _rebuilding_claims(at))


def _rebuilding_claims(at: Mapping[str, tuple[float, float]]) -> list[Judged]:
    prices = {name: each for name, each in at.items() if name.startswith("prices")}
    counts = {name: each for name, each in at.items() if name.startswith("counts")}
    passed = {name: each for name, each in at.items() if each[0] < 0.25}
    errors = "; ".join(f"{name} {error:.3g}" for name, (error, _) in prices.items())
    rights = "; ".join(f"{name} {percent(share, 1)}" for name, (_, share) in passed.items())
    keys = "; ".join(f"{name} {percent(share)}" for name, (_, share) in counts.items())
    return [
        Judged(
            "figure 6, section 8",
            "prices: at κ = 256 the mean square error is below 0.25",
            Verdict(len(passed.keys() & prices.keys()) == len(prices), errors),
        ),
        Judged(
            "section 5.3",
            "a mean square error below 0.25 loses nothing",
            Verdict(all(share > 0.999 for _, share in passed.values()), rights),
        ),
        Judged(
            "section 5.3",
            "at κ = 256 four of five keys have the count that is rebuilt",
            Verdict(all(share >= 0.8 for _, share in counts.values()), keys),
        ),
    ]


def _rebuilt_prices(values: Floats, kappas: Sequence[int]) -> list[tuple[float, float]]:
    """Return the mean square error and the share that rounding makes right, by κ."""
    found = []
    for kappa in kappas:
        many = len(values) // kappa + (1 if kappa == 2 else 0)
        series = rebuilt(SlidingTransform.of(values, many).coefficients, len(values))
        found.append((float(((values - series) ** 2).mean()), float((np.rint(series) == values).mean())))
    return found


def _rebuilt_counts(codes: npt.NDArray[np.int64], kappas: Sequence[int]) -> list[tuple[float, float]]:
    found = []
    distinct, counts = np.unique(codes, return_counts=True)
    for kappa in kappas:
        form = Form(8 * (len(codes) // kappa + 1), 0, len(codes))
        summary = DfttSummary.empty(form).add(codes)
        told_counts = summary.view(form, summary.to_bytes()).expected(distinct)
        found.append((summary.mean_square_error(codes), float((told_counts == counts).mean())))
    return found


def _prices(many: int, moves: float, bounce: int) -> Floats:
    """Return prices in ticks: a share of the trades moves by one; each is at bid or ask (Roll 1984)."""
    random = np.random.default_rng(5)
    steps = np.where(random.random(many) < moves, np.where(random.random(many) < 0.5, 1, -1), 0)
    return 5000.0 + steps.cumsum() + np.where(random.random(many) < 0.5, bounce, -bounce)
