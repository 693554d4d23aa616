"""The figures of "Approximate Data Stream Joins in Distributed Systems" with wjoin's summaries and flow.

Nodes and links are simulated in this process; what they tell each other, where rows go and what is estimated
is wjoin's own code (parts/summaries/). All but the table of costs is the same on every machine.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from dft_costs import costs
from dft_estimates import estimates
from dft_grid import compression, messages
from dft_readings import bounds, readings, rebuilding
from s2j_parts import Part, run_parts

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
    run_parts(__doc__, DOCUMENT, PARTS, arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
