"""How long a worker takes for a large micro-batch, by the bytes that it joins at once (``wjoin.stretch``).

    python -m benchmarks.stretches [--rows N]

Two streams of 1 : 15 rows with a key, in a window of a second of ten. Processor time of the executor's own
logic of one worker in this process, without Spark; of three repetitions the best.
"""

import argparse
import resource

import numpy as np
import pyarrow as pa

from tests.kit.local import LocalWorkers
from tests.kit.planned import block_of, plan_over, stream_of
from wjoin.executor.counts import Counts

RATE, OF_A_KEY, KEYS, FEWER, SECOND = 150_000, 46, 100, 15, 1_000_000
SQL = "SELECT A.x, B.x AS y FROM a A, b B WINDOW (A, B) = 1 SECONDS WHERE A.k = B.k"


def rows(count: int, batch: int, seed: int) -> pa.RecordBatch:
    """Return the rows of a micro-batch, in the order of their times."""
    random, numbers = np.random.default_rng(seed), np.arange(count)
    times = (batch * count + numbers) * SECOND // RATE
    keys = numbers // OF_A_KEY + random.integers(0, KEYS, count)
    return pa.record_batch({"ts": times, "k": keys, "x": random.random(count)})


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_500_000, help="of a micro-batch (%(default)s)")
    given = parser.parse_args()
    plan = plan_over(SQL, [stream_of({"k": "bigint", "x": "double"})] * 2).physical
    for shift in range(19, 27):
        taken = []
        for _ in range(3):
            workers = LocalWorkers(plan, 1, 1 << shift)
            for batch in range(3):
                few = rows(given.rows, batch, 2 * batch).filter(pa.array(np.arange(given.rows) % FEWER == 0))
                both = few, rows(given.rows, batch, 2 * batch + 1)
                blocks = {number: block_of(plan, number, each) for number, each in enumerate(both)}
                before = resource.getrusage(resource.RUSAGE_SELF)
                found = sum(each.num_rows for each in workers.run(blocks, Counts()))
                after = resource.getrusage(resource.RUSAGE_SELF)
            taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        print(f"{2.0 ** (shift - 20):5} MiB: {min(taken):.2f} s, {found:,} results", flush=True)


if __name__ == "__main__":
    main()
