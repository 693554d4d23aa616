"""The experiments of W-join 2002, sections 4.3 and 5.3, each with its tables, plots and claims."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from loads import SECOND, rates_between
from report import Claim, Curve, Figure, Panel, Table, Verdict, number, times_range
from service import Service, measure
from wjoin2002_joins import (
    FAST,
    PATH_WIDTHS,
    SLOW,
    WINDOW,
    Scale,
    bare_joins,
    bound_joins,
    five_joins,
    in_turns,
    one_changing,
    path_joins,
    timely,
)

from wjoin.planner.plan.stage_kinds import Bounds

_KERNELS = ("NLW", "MW", "HW")

Services = dict[str, Service]
Metric = Callable[[Service], float]


def _claim(figure: str, text: str, judge: Callable[[Metric], Verdict]) -> Claim:
    """Judge a claim by service time and by comparisons."""
    return Claim(
        figure, text, judge(lambda each: each.microseconds), judge(lambda each: max(each.compared, 1e-9))
    )


def _times_less(
    figure: str, text: str, measured: Mapping[int, Services], less: str, more: str, factor: float
) -> Claim:
    """Claim that on each load ``more`` takes more than so many times what ``less`` does."""

    def judge(metric: Metric) -> Verdict:
        ratios = [metric(services[more]) / metric(services[less]) for services in measured.values()]
        return Verdict(min(ratios) > factor, f"{more} to {less} {times_range(ratios)}")

    return _claim(figure, text, judge)


# Figures 7, 8, 9(a) and 9(b)


@dataclass(frozen=True)
class _Rates:
    """What five joins take, by the number of streams: comparable rates, variable ones read in either way."""

    comparable: dict[int, Services]
    variable: dict[int, Services]
    turns: dict[int, Services]

    @property
    def few(self) -> dict[int, Services]:
        """The numbers of streams in figures 7 and 8."""
        return {count: self.comparable[count] for count in (2, 3, 4)}


def rates(scale: Scale) -> Figure:
    """Measure two to six streams of comparable and of variable rates."""
    measured = _measure_rates(scale)
    tables = (
        _by_load("fig7-8", "Figures 7 and 8: 2, 3 and 4 streams of 1000 tuples/s", "streams", measured.few),
        _by_load("fig9a", "Figure 9(a): variable rates, in order of time", "streams", measured.variable),
        _by_load(
            "fig9a-turns", "Figure 9(a): variable rates, streams read in turns", "streams", measured.turns
        ),
        _by_load("fig9b", "Figure 9(b): comparable rates", "streams", measured.comparable),
    )
    few = measured.few.items()
    plots = {
        "fig7": [_series(f"{count} streams", each, ("ripple", "NLW", "MW")) for count, each in few],
        "fig8": [_series(f"{count} streams", each, ("XJoin", "HW")) for count, each in few],
        "fig9": [
            _against("streams", "variable rates, in order of time", measured.variable),
            _against("streams", "variable rates, read in turns", measured.turns),
            _against("streams", "comparable rates", measured.comparable),
        ],
    }
    return Figure("rates", tables, plots, _claims_on_rates(measured))


def _measure_rates(scale: Scale) -> _Rates:
    measured = _Rates({}, {}, {})
    for count in range(2, 7):
        joins, spread = five_joins(count), rates_between(FAST, SLOW, count)
        loads = (
            (measured.comparable, timely([FAST] * count, scale.tuples, WINDOW, (9, 0, count))),
            (measured.variable, timely(spread, scale.tuples, WINDOW, (9, 1, count))),
            (measured.turns, in_turns(spread, scale.tuples, (9, 2, count))),
        )
        for found, load in loads:
            found[count] = measure(joins, load, scale.repetitions)
    return measured


def _claims_on_rates(measured: _Rates) -> tuple[Claim, ...]:
    few, variable, turns = measured.few, measured.variable, measured.turns
    ten = "MW takes ten times less than NLW on variable rates, read in"
    return (
        _times_less("Figure 7", "NLW takes less than the ripple join", few, "NLW", "ripple", 1),
        _times_less("Figure 7", "MW takes almost ten times less than NLW", few, "MW", "NLW", 8),
        _times_less("Figure 8", "HW takes less than XJoin", few, "HW", "XJoin", 1),
        _times_less("Figure 9(a)", f"{ten} order of time", variable, "MW", "NLW", 10),
        _times_less("Figure 9(a)", f"{ten} turns", turns, "MW", "NLW", 10),
        _converging(measured.comparable),
        _best("variable rates in order of time", variable),
        _best("variable rates read in turns", turns),
        _best("comparable rates", measured.comparable),
    )


def _by_load(name: str, title: str, numbers: str, measured: dict[int, Services]) -> Table:
    """Return what each join takes, by what the loads are numbered by."""
    names = list(next(iter(measured.values())))
    head = [numbers, *(f"{each} µs" for each in names), *(f"{each} comp." for each in names), "results"]
    lines = []
    for place, services in measured.items():
        took = [number(services[each].microseconds) for each in names]
        compared = [number(services[each].compared) for each in names]
        lines.append([str(place), *took, *compared, f"{services['HW'].found.count:,}"])
    return Table(name, title, head, lines)


def _series(title: str, services: Services, names: Sequence[str], logarithmic: bool = False) -> Panel:
    curves = [Curve(name, *services[name].series()) for name in names]
    return Panel(title, "tuples arrived", curves, logarithmic)


def _against(places: str, title: str, measured: dict[int, Services]) -> Panel:
    """Return the service times of each join against what the loads are numbered by."""
    at = np.array(list(measured), np.float64)
    curves = []
    for name in next(iter(measured.values())):
        took = np.array([services[name].microseconds for services in measured.values()])
        curves.append(Curve(name, at, took))
    return Panel(title, places, curves, logarithmic=True)


def _converging(measured: Mapping[int, Services]) -> Claim:
    def judge(metric: Metric) -> Verdict:
        ratios = [metric(services["NLW"]) / metric(services["MW"]) for services in measured.values()]
        shown = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        return Verdict(ratios[-1] < 0.9 * ratios[0], f"NLW to MW by streams {shown}")

    return _claim("Figure 9(b)", "NLW comes closer to MW on comparable rates as streams are added", judge)


def _best(title: str, measured: Mapping[int, Services]) -> Claim:
    def judge(metric: Metric) -> Verdict:
        # The paper leaves ripple join and XJoin out of figure 9.
        least = [min(_KERNELS, key=lambda name: metric(each[name])) for each in measured.values()]
        return Verdict(set(least) == {"HW"}, f"least by streams {', '.join(least)}")

    return _claim("Figure 9", f"HW takes the least of the kernels, {title}", judge)


# Figure 9(c)


def sensitivity(scale: Scale) -> Figure:
    """Measure four streams, one of which changes its rate."""
    joins = {name: make for name, make in five_joins(4).items() if name in _KERNELS}
    constant = measure(joins, timely([FAST] * 4, scale.tuples, WINDOW, (9, 3)), scale.repetitions)
    # Longer, because a slow phase takes ten seconds.
    changing = measure(joins, one_changing(3 * scale.tuples, (9, 4)), scale.repetitions)
    panels = [
        _series("all at 1000 tuples/s", constant, _KERNELS, logarithmic=True),
        _series("one between 10 and 1000 tuples/s", changing, _KERNELS, logarithmic=True),
    ]
    claims = (
        _gains("MW gains greatly from a slow stream", {"MW"}, constant, changing, (2, np.inf)),
        _gains("NLW and HW change little with one stream", {"NLW", "HW"}, constant, changing, (0.5, 2)),
    )
    return Figure("sensitivity", (_by_kernel(constant, changing),), {"fig9c": panels}, claims)


def _by_kernel(constant: Services, changing: Services) -> Table:
    lines = []
    for name, before in constant.items():
        after = changing[name]
        values = [before.microseconds, after.microseconds, before.microseconds / after.microseconds]
        values += [before.compared, after.compared, before.compared / after.compared]
        lines.append([name, *map(number, values)])
    head = ["kernel", "constant µs", "changing µs", "ratio", "constant comp.", "changing comp.", "ratio"]
    return Table("fig9c", "Figure 9(c): one of four streams between 10 and 1000 tuples/s", head, lines)


def _gains(
    text: str, names: set[str], constant: Services, changing: Services, between: tuple[float, float]
) -> Claim:
    """Claim that what some kernels take at constant rates is between so many times what they take else."""

    def judge(metric: Metric) -> Verdict:
        gains = {name: metric(constant[name]) / metric(changing[name]) for name in constant}
        shown = ", ".join(f"{name} {number(gain)}" for name, gain in gains.items())
        held = all(between[0] <= gains[name] <= between[1] for name in names)
        return Verdict(held, f"constant to changing {shown}")

    return _claim("Figure 9(c)", text, judge)


# Figure 13


def bounds(scale: Scale) -> Figure:
    """Measure GCA, LCA and EXACT on windows of 0.8 s and 0.1 s, with one pair at 1 s."""
    load = timely([FAST] * 4, scale.tuples, SECOND, (13,))
    kernels = ("mw", "nlw", "hw")
    cases = {
        "0.8 s": bound_joins(kernels, SECOND * 8 // 10, as_written=True),
        "0.1 s, as written": bound_joins(kernels, SECOND // 10, as_written=True),
        "0.1 s, tightened": bound_joins(kernels, SECOND // 10, as_written=False),
    }
    measured = {title: measure(joins, load, scale.repetitions) for title, joins in cases.items()}
    choices = [f"MW {each.name}" for each in _BOUNDS]
    panels = [_series(f"windows {title}", each, choices) for title, each in measured.items()]
    claims = tuple(
        _times_less("Figure 13", f"LCA takes less than GCA at {title}", {0: each}, "MW LCA", "MW GCA", 1)
        for title, each in measured.items()
        if "tightened" not in title
    )
    return Figure("bounds", (_by_bounds(kernels, measured),), {"fig13": panels}, claims)


_BOUNDS = (Bounds.GCA, Bounds.LCA, Bounds.EXACT)


def _by_bounds(kernels: Sequence[str], measured: Mapping[str, Services]) -> Table:
    lines = []
    for title, services in measured.items():
        for kernel in kernels:
            row = [services[f"{kernel.upper()} {each.name}"] for each in _BOUNDS]
            took = [number(each.microseconds) for each in row]
            lines.append([title, kernel.upper(), *took, *(number(each.compared) for each in row)])
    head = ["windows", "kernel", *(f"{each.name} µs" for each in _BOUNDS)]
    head += [f"{each.name} comp." for each in _BOUNDS]
    return Table("fig13", "Figure 13: four streams of 1000 tuples/s, one pair at 1 s", head, lines)


# Figure 14

VARIATIONS = (1, 10, 100)
"""How many times faster the fastest stream is than the slowest."""


def paths(scale: Scale) -> Figure:
    """Measure a path through four streams in either direction, by passes and by one pass in the hull."""
    joins, fill = path_joins(), sum(PATH_WIDTHS)
    timed, turned = {}, {}
    for variation in VARIATIONS:
        spread = rates_between(FAST, FAST / variation, 4)
        load = timely(spread, scale.tuples, fill, (14, 0, variation))
        timed[variation] = measure(joins, load, scale.repetitions)
        load = in_turns(spread, scale.tuples, (14, 1, variation))
        turned[variation] = measure(joins, load, scale.repetitions)
    title = "Figure 14: paths through four streams"
    labels = {variation: f"1 : {variation}" for variation in VARIATIONS}
    tables = [
        *_two_tables("fig14", f"{title}, in order of time", labels, timed),
        *_two_tables("fig14-turns", f"{title}, read in turns", labels, turned),
    ]
    panels = [
        _against("fastest rate to slowest", "in order of time", timed),
        _against("fastest rate to slowest", "read in turns", turned),
    ]
    pair = ("NLW passes", "MW LCA")
    claims = (
        _times_less(
            "Figure 14", "NLW passes take less than LCA on comparable rates", {1: timed[1]}, *pair, 1
        ),
        _crossing("in order of time", timed),
        _crossing("read in turns", turned),
    )
    return Figure("paths", tables, {"fig14": panels}, claims)


def _crossing(title: str, measured: dict[int, Services]) -> Claim:
    def judge(metric: Metric) -> Verdict:
        ratios = [metric(each["NLW passes"]) / metric(each["MW LCA"]) for each in measured.values()]
        shown = ", ".join(
            f"{ratio:.2f} at 1 : {variation}" for variation, ratio in zip(measured, ratios, strict=True)
        )
        return Verdict(ratios[0] < 1 < ratios[-1], f"NLW passes to MW LCA {shown}")

    return _claim("Figure 14", f"NLW passes and LCA cross over as rates vary more, {title}", judge)


# What the paper does not have: the cost of a micro-batch

STEPS = (SECOND // 10, SECOND // 2, 2 * SECOND)


def batches(scale: Scale) -> Figure:
    """Measure four streams of 1000 tuples/s in micro-batches of different length."""
    joins, measured = {**five_joins(4), **bare_joins(4)}, {}
    for step in STEPS:
        load = timely([FAST] * 4, scale.tuples, 2 * SECOND, (0,), step)
        measured[step // 1000] = measure(joins, load, scale.repetitions)
    title = "Four streams of 1000 tuples/s in longer micro-batches"
    labels = {step: f"{step} ms" for step in measured}
    claims = (
        _times_less("Figure 8", "HW over XJoin's buffers takes less", measured, "HW bare", "XJoin", 1),
        _times_less("Figure 7", "MW over the same buffers takes less", measured, "MW bare", "NLW bare", 1),
    )
    return Figure("batches", _two_tables("batches", title, labels, measured), {}, claims)


def _two_tables(
    name: str, title: str, labels: Mapping[int, str], measured: Mapping[int, Services]
) -> list[Table]:
    """Return times and comparisons in a table each, for many joins."""
    names = list(next(iter(measured.values())))
    took, compared = [], []
    for place, services in measured.items():
        took.append([labels[place], *(number(services[each].microseconds) for each in names)])
        compared.append([labels[place], *(number(services[each].compared) for each in names)])
    return [
        Table(name, f"{title}: µs for a tuple", ["", *names], took),
        Table(f"{name}-compared", f"{title}: comparisons for a tuple", ["", *names], compared),
    ]


FIGURES: dict[str, Callable[[Scale], Figure]] = {
    "rates": rates,
    "sensitivity": sensitivity,
    "bounds": bounds,
    "paths": paths,
    "batches": batches,
}
