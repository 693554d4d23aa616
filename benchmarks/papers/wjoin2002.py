"""The experiments of W-join 2002 with wjoin's own kernels, in process, without Spark.

Prints tables and which of the paper's claims held, draws plots and, without --quick, fills the
tables into the document beside them. Data is the same in every run. Service time is processor
time for each arriving tuple, over micro-batches of 100 ms of event time, because the kernels work
on many rows at once: medians over repetitions, with the joins run by turns. Fails when joins
differ in their results.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from report import Figure, claims_table, draw, fill_in
from service import DisagreementError
from wjoin2002_figures import FIGURES
from wjoin2002_joins import FULL, QUICK

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "papers" / "wjoin2002.md"


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="fewer tuples, no repetitions, no plots")
    add("--parts", nargs="+", choices=FIGURES, default=list(FIGURES), help="what to measure; all by default")
    add("--plots", type=Path, metavar="FOLDER", help="where plots go; without --quick beside the document")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; 1 when joins disagree."""
    chosen = options(arguments)
    figures: list[Figure] = []
    for part in chosen.parts:
        print(f"measuring {part} ...", file=sys.stderr, flush=True)
        try:
            figure = FIGURES[part](QUICK if chosen.quick else FULL)
        except DisagreementError as error:
            print(f"DIFFERENT RESULTS: {error}", file=sys.stderr)
            return 1
        print("\n\n".join(table.text() for table in figure.tables) + "\n", flush=True)
        figures.append(figure)
    claims = [claim for figure in figures for claim in figure.claims]
    print("What the paper reports\n" + "\n".join(claim.printed() for claim in claims))
    folder = chosen.plots or (None if chosen.quick else DOCUMENT.parent)
    if folder:
        _draw_all(figures, folder)
    if not chosen.quick:
        tables = [table for figure in figures for table in figure.tables]
        fill_in(DOCUMENT, [*tables, claims_table(claims)] if len(figures) == len(FIGURES) else tables)
    return 0


def _draw_all(figures: Sequence[Figure], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for figure in figures:
        for name, panels in figure.plots.items():
            draw(panels, folder / f"wjoin2002-{name}.svg")


if __name__ == "__main__":
    sys.exit(main())
