"""The figures of S2J with wjoin's statement sets, kernels, routes and blocks, in simulated time.

wjoin's own code plans, routes, packs and joins rows in this process, without Spark. What that counts, such as
comparisons, results and bytes of blocks, becomes time by the constants of the cost model. So one version of
wjoin gives the same figures on every machine. It fails where two ways of a join differ in their results.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from s2j_case import case, keys
from s2j_efficiency import efficiency
from s2j_messages import batches, blocks, false_shedding
from s2j_parts import Part, run_parts
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
    try:
        run_parts(__doc__, DOCUMENT, PARTS, arguments)
    except DisagreementError as error:
        print(f"DIFFERENT RESULTS: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
