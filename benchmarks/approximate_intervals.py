"""In how many runs the ε of an approximate join lies in the interval that is told: of sites, and of nodes.

Many small runs, each with other rows and other frequent keys, in this process: sites in memory
(tests/kit/memory_sites.py), and nodes as in benchmarks.approximate_nodes. Honest intervals hold it in 95 %.

    python -m benchmarks.approximate_intervals
    python -m benchmarks.approximate_intervals DIGEST BLOOM --runs 100 --skew 0 1.2
"""

import argparse
import math
import tempfile
from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks import approximate_nodes
from tests.kit.local import LocalWorkers
from tests.kit.memory_sites import Memory, Rows, reached
from tests.kit.planned import block_of
from wjoin.executor.counts import Counts
from wjoin.executor.sites.likely import Chooser
from wjoin.executor.sites.likely_offsets import Likely, LikelySide
from wjoin.executor.sites.missed import Missing, pairs_by_key
from wjoin.sites.value_filter import ValueFilter

SECOND = 1_000_000
STREAMS = ("r", "s")
SITES, WINDOW, SECONDS, ROWS, DOMAIN, LOCAL = 4, 4, 12, 500, 13_107, 0.8
NODES = argparse.Namespace(rows=4000, batches=8, nodes=8, keys=3000, size=4096)

Run = tuple[float, float, float, float]
"""The share of the results that is lost, as it is told, and between what it is with 95 %."""


def of_sites(seed: int, skew: float, error: float) -> Run:
    """Join both streams of sites second by second: keys of a site have an order of their own in each run."""
    bits = math.ceil(math.log2(64 * ROWS * SITES * 2 * WINDOW))
    weights = np.cumsum(np.arange(1, DOMAIN + 1) ** -skew)
    mix = int(np.random.default_rng([seed, 1]).integers(1, 1 << 40)) | 1
    sites = [Memory() for _ in range(SITES)]
    came: list[list[Rows]] = [[], []]

    def put(site: int, stream: int, second: int) -> None:
        random = np.random.default_rng([seed, site, stream, second])
        ranks = np.searchsorted(weights / weights[-1], random.random(ROWS))
        home = np.where(random.random(ROWS) < LOCAL, site, random.integers(0, SITES, ROWS))
        times = SECOND * (1000 + second) + np.sort(random.integers(0, SECOND, ROWS))
        sites[site].put(STREAMS[stream], (ranks * SITES + home) * mix % (1 << 40), times)

    with reached(sites) as addresses, tempfile.TemporaryDirectory("-told", "wjoin-") as folder:
        one, other = (LikelySide(addresses, name, "k", 0, 212.0) for name in STREAMS)
        span = WINDOW * SECOND
        likely = Likely((one, other), span, span, 1 << 62, error, bits, 32, folder)
        choosers = [Chooser(likely, 0), Chooser(likely, 1)]
        places = [each.begin(latest=False) for each in choosers]
        for second in range(SECONDS):
            for stream in (0, 1):
                for site in range(SITES):
                    put(site, stream, second)
            for stream, chooser in enumerate(choosers):
                end = chooser.after(places[stream], [ROWS * (second + 1)] * SITES)
                for part in chooser.parts(places[stream], end):
                    rows = sites[part.site].rows[STREAMS[stream]]
                    numbers = sites[part.site].reduced(
                        STREAMS[stream], part.ranges, ValueFilter.decode(part.filter)
                    )
                    came[stream].append((rows[0][numbers], rows[1][numbers]))
                places[stream] = end
    everything = [[each.rows[name] for each in sites] for name in STREAMS]
    exact, found = (
        pairs_by_key(*(tuple(map(np.concatenate, zip(*own, strict=True))) for own in rows), span, span)[
            1
        ].sum()
        for rows in (everything, came)
    )
    told = places[0].told
    middle, _, most = Missing(told.missing, told.most - told.missing).error(told.found)
    _, least, _ = Missing(told.missing, told.missing - told.least).error(told.found)
    return float(1 - found / exact), middle, least, most


def of_nodes(name: str, seed: int, skew: float, error: float) -> Run:
    """Join both streams over nodes by a summary, micro-batch by micro-batch."""
    given = argparse.Namespace(**vars(NODES), seed=seed, skew=skew, error=error)
    plan, batches = approximate_nodes.plan_of(name, given), approximate_nodes.drawn(given)
    local, found = LocalWorkers(plan, given.nodes), 0
    for batch in batches:
        blocks = {number: block_of(plan, number, rows) for number, rows in enumerate(batch)}
        found += sum(rows.num_rows for rows in local.run(blocks, Counts()))
    chooser = local.chooser(0)
    if chooser is None:
        raise ValueError(f"{name} is not approximate")
    told = chooser.estimate
    return 1 - found / approximate_nodes.results(batches, given.keys), told.error, told.low, told.high


def main() -> None:
    """Print in how many runs of each kind the interval holds the lost share."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--skew", type=float, nargs="+", default=[0, 0.4, 0.8, 1.0, 1.2])
    parser.add_argument("--error", type=float, default=0.1)
    parser.add_argument("kinds", nargs="*", default=["SITES", "DIGEST", "BLOOM", "DFTT"])
    given = parser.parse_args()
    for kind in given.kinds:
        run: Callable[..., Run] = of_sites if kind == "SITES" else partial(of_nodes, kind)
        for skew in given.skew:
            lost, told, low, high = np.array([run(seed, skew, given.error) for seed in range(given.runs)]).T
            inside, widths = ((low <= lost) & (lost <= high)).mean(), np.quantile(high - low, [0.5, 0.9])
            off = np.sqrt(((told - lost) ** 2).mean())
            print(
                f"{kind:12} skew {skew:g}: inside in {inside:.1%} of {given.runs} runs; "
                f"lost {lost.mean():.2%}, told {told.mean():.2%}, off by {off:.2%} (root of mean square), "
                f"half of the intervals narrower than {widths[0]:.2%}, nine tenths than {widths[1]:.2%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
