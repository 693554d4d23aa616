"""Figure 2 of Semijoin streams: what SPJ and SMJ cost, as the model, as a simulation, and over sockets.

Each of the five sweeps of section 5.2 in three ways. The model is equations 1 and 2. The simulation runs both
algorithms tuple by tuple; processing is done and measured, transmission simulated. Then the same in blocks
over real sockets, between a site and a client, through a link limited in rate and latency; beside what the
planner expects of them. Fails where results differ, or where the cross-over that the planner predicts, by the
number of distinct values or the ratio of tuple sizes, is more than 20 % off the one that is measured.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from report import Curve, Panel, Table, draw, fill_in, number
from semijoin_settings import SWEEPS, Sweep, semijoin_seconds, simple_seconds
from semijoin_sockets import Rig, measure, predicted, rig
from semijoin_tuples import simulate, steady_semijoin_seconds

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "papers" / "semijoin.md"

SIMULATED_SECONDS = 20.0
"""Seconds of the streams that are simulated at each point, after the windows are full."""

TOLERANCE = 0.2
"""By how much, as a share, a predicted cross-over may be off."""

FINELY = 60
"""Points between which the planner's cross-over is looked for."""

_UNIT = "seconds for a second of the streams"

Series = dict[str, list[float]]


class DifferentResultsError(Exception):
    """The two algorithms differ in their results."""


@dataclass(frozen=True)
class Crossing:
    """Where SPJ and SMJ cost the same along a sweep, as predicted and as measured; None where nowhere."""

    sweep: Sweep
    predicted: float | None
    measured: float | None

    @property
    def off(self) -> float | None:
        """By how much, as a share, the prediction is off."""
        if self.predicted is None or self.measured is None:
            return None
        return self.predicted / self.measured - 1

    @property
    def held(self) -> bool:
        """Whether it is as near as it must be."""
        return self.off is not None and abs(self.off) <= TOLERANCE

    def cells(self) -> list[str]:
        """Return its line."""
        places = ["none" if each is None else _place(each) for each in (self.predicted, self.measured)]
        off = "" if self.off is None else f"{100 * self.off:+.0f} %"
        verdict = "" if not self.sweep.judged else "within 20 %" if self.held else "NOT within 20 %"
        return [self.sweep.title, *places, off, verdict]


def _place(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def simulated(sweep: Sweep, seconds: float) -> Series:
    """Return the model's and the simulation's curves."""
    found: Series = {}

    def add(name: str, value: float) -> None:
        found.setdefault(name, []).append(value)

    for setting in map(sweep.at, sweep.values):
        add("SPJ, equation 1", simple_seconds(setting.sides, setting.link))
        add("SMJ, equation 2", semijoin_seconds(setting.sides, setting.link))
        add("SMJ, its steps", steady_semijoin_seconds(setting))
        spj, smj = (simulate(each, setting, seconds) for each in ("SPJ", "SMJ"))
        if spj.pairs != smj.pairs:
            raise DifferentResultsError(f"simulated, {setting}: {spj.pairs}, {smj.pairs}")
        add("SPJ, simulated", spj.seconds)
        add("SMJ, simulated", smj.seconds)
        add("processing of SPJ, ms", 1e3 * spj.processing)
        add("processing of SMJ, ms", 1e3 * smj.processing)
    return found


def measured(sweep: Sweep, place: Rig) -> Series:
    """Return the curves over sockets, and what the planner expects."""
    found: Series = {}
    for setting in map(sweep.at, sweep.values):
        runs = {name: measure(place, setting, name) for name in ("SPJ", "SMJ")}
        if runs["SPJ"].found != runs["SMJ"].found:
            raise DifferentResultsError(f"over sockets, {setting}: {runs}")
        expected = predicted(place.facts, setting)
        for name, each in runs.items():
            cells = {
                f"{name}, measured": each.seconds,
                f"{name}, planned": expected[name].seconds,
                f"{name}: kB on the wire, measured": each.size / 1e3,
                f"{name}: kB on the wire, planned": expected[name].size / 1e3,
            }
            for title, value in cells.items():
                found.setdefault(title, []).append(value)
    return found


def crossing(sweep: Sweep, curves: Series, place: Rig) -> Crossing:
    """Return where the two ways cost the same."""
    spj, smj = (np.array(curves[f"{name}, measured"]) for name in ("SPJ", "SMJ"))
    # As finely as no point has to be measured for it.
    finely = np.geomspace(sweep.values[0], sweep.values[-1], FINELY).tolist()
    expected = [predicted(place.facts, sweep.at(value)) for value in finely]
    ratios = [each["SMJ"].seconds / each["SPJ"].seconds for each in expected]
    return Crossing(sweep, crossed(finely, np.log(ratios)), crossed(sweep.values, np.log(smj / spj)))


def crossed(places: Sequence[float], differences: npt.NDArray[np.float64]) -> float | None:
    """Return where a curve first passes 0, on a straight line between its points by the logarithm of places.

    >>> crossed([1, 10, 100], np.array([2.0, 1.0, -1.0])) == 10 ** 1.5
    True
    """
    changes = np.flatnonzero(np.signbit(differences[:-1]) != np.signbit(differences[1:]))
    if not len(changes):
        return None
    first = changes[0]
    (low, high), (before, after) = np.log(places[first : first + 2]), differences[first : first + 2]
    return float(np.exp(low + (high - low) * before / (before - after)))


def _table(name: str, sweep: Sweep, curves: Series) -> Table:
    head = [sweep.label, *(f"{value:,g}" for value in sweep.values)]
    return Table(
        name, f"{sweep.title}: {_UNIT}", head, [[key, *map(number, each)] for key, each in curves.items()]
    )


def _panel(sweep: Sweep, title: str, curves: Series, names: Sequence[str]) -> Panel:
    places = np.array(sweep.values, float)
    drawn = [Curve(name, places, np.array(curves[name])) for name in names]
    return Panel(title, sweep.label, drawn, values=_UNIT, logarithmic_places=sweep.logarithmic)


def run(part: str, place: Rig, seconds: float) -> tuple[list[Table], list[Panel], Crossing]:
    """Return the tables, the plots and the cross-over of a sweep."""
    sweep = SWEEPS[part]
    model, sockets = simulated(sweep, seconds), measured(sweep, place)
    tables = [_table(f"{part}-tuples", sweep, model), _table(f"{part}-blocks", sweep, sockets)]
    panels = [
        _panel(
            sweep, "tuple by tuple: model and simulation", model, [each for each in model if "ms" not in each]
        ),
        _panel(sweep, "blocks, over sockets", sockets, [each for each in sockets if "kB" not in each]),
    ]
    return tables, panels, crossing(sweep, sockets, place)


def crossings_table(crossings: Sequence[Crossing]) -> Table:
    """Return where the two ways cost the same, sweep by sweep."""
    head = ["SPJ and SMJ in blocks cost the same at", "predicted", "measured", "off", "verdict"]
    return Table("crossings", "Cross-overs", head, [each.cells() for each in crossings])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; 1 where results differ or a cross-over is too far off."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="less time for each point; printed only")
    parser.add_argument("--parts", nargs="+", choices=SWEEPS, default=list(SWEEPS))
    chosen = parser.parse_args(arguments)
    settings = [
        sweep.at(value) for part in chosen.parts for sweep in [SWEEPS[part]] for value in sweep.values
    ]
    crossings = []
    with (
        tempfile.TemporaryDirectory(prefix="wjoin-semijoin-") as folder,
        rig(Path(folder), settings) as place,
    ):
        for part in chosen.parts:
            print(f"measuring {part} ...", file=sys.stderr, flush=True)
            try:
                tables, panels, crossed_at = run(part, place, 2.0 if chosen.quick else SIMULATED_SECONDS)
            except DifferentResultsError as error:
                print(f"DIFFERENT RESULTS: {error}", file=sys.stderr)
                return 1
            crossings.append(crossed_at)
            print("\n\n".join(table.text() for table in tables) + "\n", flush=True)
            if not chosen.quick:
                draw(panels, DOCUMENT.parent / f"semijoin-{part}.svg")
                fill_in(DOCUMENT, tables)
    summary = crossings_table(crossings)
    print(summary.text(), flush=True)
    if not chosen.quick and chosen.parts == list(SWEEPS):
        fill_in(DOCUMENT, [summary])
    return 0 if all(each.held for each in crossings if each.sweep.judged) else 1


if __name__ == "__main__":
    sys.exit(main())
