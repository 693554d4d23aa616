"""What a run without a key measured, what is to be reached, and both as tables."""

import itertools
import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import kit_path  # noqa: F401 (finds tests.kit)
from outcomes import outcomes
from tables import Cell, outcome_lines
from targets import Target
from theta_loads import ThetaLoad
from theta_systems import CORES, ON_STREAMS, ON_TABLES
from turns import Stops, running

from tests.kit.processes import Usage

FILLING = 1
"""The first micro-batch finds no rows of earlier ones."""

PLAIN = ("inequalities", "arithmetic", "band")
"""The loads of two streams with a condition on plain columns."""


@dataclass(frozen=True)
class ThetaOutcome:
    """One system over one load, as streams or as tables, fresh or practised; medians.

    ``rows`` and ``pairs`` inside the window are those of ``seconds``: of a micro-batch, or of whole tables.
    ``processor`` is in seconds of all cores, ``anonymous`` memory in bytes.
    """

    part: str
    tables: bool
    system: str
    when: str
    load: ThetaLoad
    results: int
    rows: int
    pairs: float
    seconds: float
    processor: float
    anonymous: int
    state_rows: int

    @property
    def rows_per_second(self) -> float:
        """Rows of all streams in a second."""
        return self.rows / self.seconds

    @property
    def title(self) -> str:
        """The name of the system."""
        return (ON_TABLES if self.tables else ON_STREAMS)[self.system].title


def read_outcomes(
    part: str,
    system: str,
    load: ThetaLoad,
    report: Path,
    usage: Usage,
    stops: Stops,
    *,
    tables: bool,
) -> list[ThetaOutcome]:
    """Read the report of a process. Raises RuntimeError where two of its runs gave different results."""
    if tables:
        return list(_over_tables(part, system, load, report, usage, stops))
    found = outcomes(part, system, load, FILLING, report, usage, stops)
    return [
        ThetaOutcome(
            part,
            False,
            system,
            each.when,
            load,
            each.results,
            load.batch_rows,
            load.pairs_of_batch,
            each.seconds,
            each.processor,
            each.anonymous,
            each.state_rows,
        )
        for each in found
    ]


def _over_tables(
    part: str, system: str, load: ThetaLoad, report: Path, usage: Usage, stops: Stops
) -> Iterator[ThetaOutcome]:
    for when, runs in json.loads(report.read_text()).items():
        results = {each["results"] for each in runs}
        if len(results) > 1:
            raise RuntimeError(f"{system}: runs over {load.title} gave {sorted(results)} results")
        spans = [tuple(each["span"]) for each in runs]
        processor = usage.processor_between(spans[0][0], spans[-1][1]) / len(runs)
        seconds = statistics.median(running(start, end, stops) for start, end in spans)
        rows, peak = load.batch_rows * load.batches, usage.peak.anonymous
        yield ThetaOutcome(
            part, True, system, when, load, results.pop(), rows, load.pairs, seconds, processor, peak, 0
        )


def disagreements(found: Sequence[ThetaOutcome]) -> list[str]:
    """Return a sentence for each load on which systems gave different numbers of results."""
    results: dict[ThetaLoad, set[int]] = {}
    for each in found:
        results.setdefault(each.load, set()).add(each.results)
    return [f"{load.title}: {sorted(counts)}" for load, counts in results.items() if len(counts) > 1]


_COLUMNS: Sequence[tuple[str, Cell]] = (
    ("rows/s", lambda each, _: f"{each.rows_per_second:,.0f}"),
    ("ratio", lambda each, first: f"{first.rows_per_second / each.rows_per_second:.2f}"),
    ("seconds", lambda each, _: f"{each.seconds:.3f}"),
    (
        "ns a pair",
        lambda each, _: f"{each.seconds / each.pairs * 1e9:,.1f}" if each.load.streams == 2 else "-",
    ),
    ("CPU s", lambda each, _: f"{each.processor:.2f}"),
    ("ratio", lambda each, first: f"{each.processor / first.processor:.2f}"),
    ("anon MB", lambda each, _: f"{each.anonymous / 1e6:,.0f}"),
    ("state rows", lambda each, _: "-" if each.tables else f"{each.state_rows:,}"),
    ("results", lambda each, _: f"{each.results:,}"),
)


def outcome_table(found: Sequence[ThetaOutcome]) -> str:
    """Return outcomes as a table; ratios are the first one's speed over theirs, and theirs
    of processor time over its.
    """
    return outcome_lines(found, lambda each: (each.title, each.when), _COLUMNS)


def theta_targets(found: Sequence[ThetaOutcome]) -> list[Target]:
    """Return a line for everything of which both sides were measured, in practised processes."""
    lines: list[Target] = []
    practised = [each for each in found if each.when == "practised"]
    for tables in (False, True):
        place = "tables" if tables else "streams"
        here = {(each.part, each.system): each for each in practised if each.tables is tables}
        lines += _against_others(here, place)
        lines += _costs(here, place)
        lines += _cores(here, place)
    return lines


_Here = dict[tuple[str, str], ThetaOutcome]


def _against_others(here: _Here, place: str) -> Iterator[Target]:
    for (part, system), theirs in here.items():
        own = [each for (one, name), each in here.items() if one == part and name in _PLANS]
        if system not in _PLANS and own and part not in _ON_ONE_AND_TWO:
            best = max(own, key=lambda each: each.rows_per_second)
            wanted = 5.0 if system == "buckets" else None
            default = here.get((part, "wjoin"))
            what = f"{theirs.load.joined.title}, {place}: rate / of {theirs.title}"
            if default is not None:
                ratio = default.rows_per_second / theirs.rows_per_second
                yield Target(f"{what}, no hint", ratio, "×", wanted, most=False)
            if best is not default:
                ratio = best.rows_per_second / theirs.rows_per_second
                hint = best.title.partition(", ")[2]
                yield Target(f"{what}, {hint}", ratio, "×", wanted, most=False)


_PLANS = ("wjoin", "wjoin-psp", "wjoin-atr")

_ON_ONE_AND_TWO = ("cores", "waiting")
"""The parts that compare two cores with one."""


def _costs(here: _Here, place: str) -> Iterator[Target]:
    for (part, _), each in here.items():
        what = f"{each.load.joined.title}, {place}, {each.title}"
        if part == "overhead":
            yield Target(
                f"{what}: processor time a pair", each.processor / each.pairs * 1e6, "µs", wanted=1.0
            )
        elif part in PLAIN and each.tables:
            wanted = 15.0 if each.system in _PLANS else None
            cost = each.seconds / each.pairs * 1e9
            yield Target(f"{what}: time a pair on {CORES} cores", cost, "ns", wanted)


def _cores(here: _Here, place: str) -> Iterator[Target]:
    for part, plan in itertools.product(_ON_ONE_AND_TWO, ("wjoin-psp", "wjoin-atr", "function")):
        two, one = here.get((part, plan)), here.get((part, f"{plan}-1"))
        if two is not None and one is not None:
            what = f"{two.load.joined.title}, {place}, {two.title}: rate of two cores / of one"
            wanted = 1.85 if plan in _PLANS else None
            yield Target(what, two.rows_per_second / one.rows_per_second, "×", wanted, most=False)
