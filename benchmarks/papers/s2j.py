"""The figures of S2J with wjoin's statement sets, kernels, routes and blocks, in simulated time.

wjoin's own code plans, routes, packs and joins rows in this process, without Spark. What that counts, such as
comparisons, results and bytes of blocks, becomes time by the constants of the cost model. So one version of
wjoin gives the same figures on every machine. It fails where two ways of a join differ in their results.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from report import draw, fill_in
from s2j_case import case, keys
from s2j_efficiency import efficiency
from s2j_messages import batches, blocks, false_shedding
from s2j_parts import Part, claims_table
from s2j_sharing import bands, kinds, shuffled, tasks
from service import DisagreementError

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "papers" / "s2j.md"

PARTS: Mapping[str, Callable[..., Part]] = {
    "tasks": tasks,
    "kinds": kinds,
    "bands": bands,
    "bytes": shuffled,
    "efficiency": efficiency,
    "blocks": blocks,
    "batches": batches,
    "false": false_shedding,
    "case": case,
    "keys": keys,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; 1 where two ways of one join differ in their results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few points; printed only")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    chosen = parser.parse_args(arguments)
    for name in chosen.parts:
        try:
            part = PARTS[name](quick=chosen.quick)
        except DisagreementError as error:
            print(f"DIFFERENT RESULTS: {error}", file=sys.stderr)
            return 1
        found = [*part.tables, claims_table(name, part.claims)]
        print("\n\n".join(each.text() for each in found) + "\n", flush=True)
        if not chosen.quick:
            if part.panels:
                draw(part.panels, DOCUMENT.parent / f"s2j-{name}.svg")
            fill_in(DOCUMENT, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
