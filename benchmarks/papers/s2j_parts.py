"""What each experiment on S2J gives, and the tables and plots of it."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from report import Curve, Panel, Table, Verdict, draw, fill_in, number


@dataclass(frozen=True)
class Judged:
    """A claim of the paper, or one of this project's, and what became of it."""

    where: str
    text: str
    verdict: Verdict


@dataclass(frozen=True)
class Part:
    """What one experiment gives; the plots are a row of panels."""

    tables: Sequence[Table]
    panels: Sequence[Panel]
    claims: Sequence[Judged]


def table(
    name: str,
    title: str,
    label: str,
    places: Sequence[float],
    lines: Mapping[str, Sequence[float] | Sequence[str]],
    unit: float = 1.0,
) -> Table:
    """Return a table with a line for each of some series, times ``unit`` where they are numbers."""
    cells = (
        [key, *(each if isinstance(each, str) else number(each * unit) for each in line)]
        for key, line in lines.items()
    )
    return Table(name, title, [label, *(f"{each:,}" for each in places)], list(cells))


def panel(
    title: str,
    label: str,
    places: Sequence[float],
    lines: Mapping[str, Sequence[float]],
    values: str,
    unit: float = 1.0,
) -> Panel:
    """Return a plot with a curve for each of some series, times ``unit``."""
    curves = [Curve(name, np.array(places, float), unit * np.array(line)) for name, line in lines.items()]
    return Panel(title, label, curves, values=values)


def percent(share: float, digits: int = 0) -> str:
    """Return a share as words."""
    return f"{100 * share:,.{digits}f} %"


def told(what: str) -> None:
    """Say what has been done."""
    print(f"  {what}", file=sys.stderr, flush=True)


def claims_table(part: str, claims: Sequence[Judged]) -> Table:
    """Return the verdicts of a part for a document."""
    lines = [[each.where, each.text, each.verdict.words, each.verdict.evidence] for each in claims]
    head = ["in the paper", "claim", "", "measured"]
    return Table(f"{part}-claims", "Claims", head, lines, of_text=True)


def run_parts(
    description: str | None,
    document: Path,
    parts: Mapping[str, Callable[..., Part]],
    arguments: Sequence[str] | None,
) -> None:
    """Run the parts that a command line asks for, all without one; print and fill in what they give."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few points; printed only")
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts))
    chosen = parser.parse_args(arguments)
    for name in chosen.parts:
        part = parts[name](quick=chosen.quick)
        found = [*part.tables, claims_table(name, part.claims)]
        print("\n\n".join(each.text() for each in found) + "\n", flush=True)
        if not chosen.quick:
            if part.panels:
                draw(part.panels, document.with_name(f"{document.stem}-{name}.svg"))
            fill_in(document, found)
