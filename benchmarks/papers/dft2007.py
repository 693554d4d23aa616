"""The figures of "Approximate Data Stream Joins in Distributed Systems" with wjoin's summaries and flow.

Nodes and links are simulated in this process; what they tell each other, where rows go and what is estimated
is wjoin's own code (parts/summaries/). All but the table of costs is the same on every machine.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from dft_costs import costs
from dft_estimates import estimates
from dft_grid import compression, messages
from dft_readings import bounds, readings, rebuilding
from report import draw, fill_in
from s2j_parts import Part, claims_table

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "papers" / "dft2007.md"

PARTS: Mapping[str, Callable[..., Part]] = {
    "bounds": bounds,
    "readings": readings,
    "rebuilding": rebuilding,
    "messages": messages,
    "compression": compression,
    "estimates": estimates,
    "costs": costs,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few points; printed only")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    chosen = parser.parse_args(arguments)
    for name in chosen.parts:
        part = PARTS[name](quick=chosen.quick)
        found = [*part.tables, claims_table(name, part.claims)]
        print("\n\n".join(each.text() for each in found) + "\n", flush=True)
        if not chosen.quick:
            if part.panels:
                draw(part.panels, DOCUMENT.parent / f"dft2007-{name}.svg")
            fill_in(DOCUMENT, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
