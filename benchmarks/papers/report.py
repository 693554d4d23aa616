"""What an experiment gives: tables, plots, and what became of the paper's claims."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """A table of text."""

    name: str
    title: str
    head: Sequence[str]
    lines: Sequence[Sequence[str]]
    of_text: bool = False

    def text(self) -> str:
        """Return it in columns, for a terminal."""
        lines = [self.head, *self.lines]
        widths = [max(len(line[place]) for line in lines) for place in range(len(self.head))]
        rows = [
            "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in lines
        ]
        return "\n".join([self.title, *(f"  {row}" for row in rows)])

    def markdown(self) -> str:
        """Return it for a document."""
        rule = ["---", *["---" if self.of_text else "---:"] * (len(self.head) - 1)]
        return "\n".join(f"| {' | '.join(line)} |" for line in [self.head, rule, *self.lines])


@dataclass(frozen=True)
class Curve:
    """A named line of a plot."""

    name: str
    places: FloatArray
    values: FloatArray


@dataclass(frozen=True)
class Panel:
    """One plot."""

    title: str
    places: str
    curves: Sequence[Curve]
    logarithmic: bool = False
    values: str = "service time of a tuple, µs"
    logarithmic_places: bool = False


@dataclass(frozen=True)
class Verdict:
    """Whether a claim held by one measure, and what was measured."""

    held: bool
    evidence: str

    @property
    def words(self) -> str:
        """The verdict as it is printed."""
        return "held" if self.held else "did not hold here"


@dataclass(frozen=True)
class Claim:
    """Something that the paper reports, judged by service time and by comparisons."""

    figure: str
    text: str
    time: Verdict
    comparisons: Verdict

    def printed(self) -> str:
        """Return it for a terminal."""
        judged = {"time": self.time, "comparisons": self.comparisons}
        lines = [f"    {name}: {each.words} ({each.evidence})" for name, each in judged.items()]
        return "\n".join([f"  {self.figure}: {self.text}", *lines])


@dataclass(frozen=True)
class Figure:
    """What an experiment gives; each plot is a row of panels, by the name of its file."""

    name: str
    tables: Sequence[Table]
    plots: Mapping[str, Sequence[Panel]]
    claims: Sequence[Claim]


def number(value: float) -> str:
    """Return a measured value to three digits or so.

    >>> number(0.123), number(4.567), number(45.67), number(45678.9)
    ('0.12', '4.6', '46', '45,679')
    """
    if value < 1:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def times_range(ratios: Sequence[float]) -> str:
    """Return the least and the greatest of some ratios."""
    least, greatest = (f"{each:.2f}" for each in (min(ratios), max(ratios)))
    return least if least == greatest else f"{least} to {greatest}"


def claims_table(claims: Sequence[Claim]) -> Table:
    """Return the verdicts for a document."""
    lines = []
    for each in claims:
        judged = [
            part for verdict in (each.time, each.comparisons) for part in (verdict.words, verdict.evidence)
        ]
        lines.append([each.figure, each.text, *judged])
    head = ["figure", "claim", "in service time", "measured", "in comparisons", "measured"]
    return Table("claims", "What the paper reports", head, lines, of_text=True)


def fill_in(document: Path, tables: Sequence[Table]) -> None:
    """Put tables into a document, between the comments that name them."""
    text = document.read_text("utf-8")
    for each in tables:
        marks = re.compile(rf"(<!-- table {re.escape(each.name)} -->\n).*?(<!-- end -->)", re.DOTALL)
        # A backslash in a replacement would begin an escape.
        body = each.markdown().replace("\\", r"\\")
        text = marks.sub(rf"\1\n{body}\n\n\2", text)
    document.write_text(text, "utf-8")


def draw(panels: Sequence[Panel], path: Path) -> None:
    """Write a row of panels as SVG."""
    import matplotlib as mpl
    from matplotlib.figure import Figure as Drawing

    # The same measurements give the same file.
    mpl.rcParams.update({"svg.hashsalt": "wjoin", "font.size": 8, "svg.fonttype": "none"})
    drawing = Drawing(figsize=(3.4 * len(panels), 2.8), layout="constrained")
    axes = drawing.subplots(1, len(panels), squeeze=False)[0]
    for axis, panel in zip(axes, panels, strict=True):
        for curve in panel.curves:
            marker = "o" if len(curve.places) <= 10 else None
            axis.plot(curve.places, curve.values, label=curve.name, marker=marker, markersize=3, linewidth=1)
        axis.set(title=panel.title, xlabel=panel.places, ylabel=panel.values)
        if panel.logarithmic:
            axis.set_yscale("log")
        else:
            axis.set_ylim(bottom=0)
        if panel.logarithmic_places:
            axis.set_xscale("log")
        axis.grid(visible=True, linewidth=0.3)
    told: list[list[str]] = []
    for axis, panel in zip(axes, panels, strict=True):
        names = [curve.name for curve in panel.curves]
        if names not in told:
            axis.legend(frameon=False)
            told.append(names)
    drawing.savefig(path, metadata={"Date": None})
