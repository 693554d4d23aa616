"""A join that gets more rows than it can work off: how far it lags, without shedding and with it.

    python benchmarks/overload.py --minutes 10

First it looks for the rate at which the join is just busy, on rows that wait. Then rows come at twice that
rate (``--times``), as they would from live sources: a file of each stream a second, with the event times of
that second. Printed are the lag, the utilization and what is shed every ten seconds, and in the end how many
results there are in the same rows, against what was estimated. Without shedding a run ends when the query
says that it falls behind.
"""

import argparse
import os
import tempfile
import threading
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.streaming import StreamingQuery

import wjoin
from wjoin.grammar.errors import WJoinWarning
from wjoin.measured.followed import Followed, follower_of
from wjoin.measured.points import Point

WINDOW = 10
"""Seconds of the window."""

KEYS = 2000
SECOND = 1_000_000
STREAMS = ("a", "b")

SCRIPT = """
CREATE OR REPLACE STREAM a (k BIGINT, ts TIMESTAMP) USING parquet OPTIONS (path '{root}/a'{limit})
WATERMARK ts DELAY OF INTERVAL 0 SECONDS;
CREATE OR REPLACE STREAM b (k BIGINT, ts TIMESTAMP) USING parquet OPTIONS (path '{root}/b'{limit})
WATERMARK ts DELAY OF INTERVAL 0 SECONDS;
CREATE OR REPLACE SINK dropped USING noop;
SET wjoin.shedding = {shedding};
SET wjoin.checkpoint = {root}/checkpoints;
INSERT INTO dropped SELECT A.k, A.ts AS at_a, B.ts AS at_b FROM a A, b B
WINDOW (A, B) = {window} SECONDS WHERE A.k = B.k;
"""

_KEY_BITS = 51
"""Bits of a time in a number that orders rows by key, then time."""


def results_in(root: Path) -> int:
    """Return how many results there are in all rows, by two searches for each row of one stream."""
    a, b = (_ordered(root / name) for name in STREAMS)
    near = WINDOW * SECOND
    return int((np.searchsorted(b, a + near, "right") - np.searchsorted(b, a - near, "left")).sum())


def _ordered(folder: Path) -> npt.NDArray[np.int64]:
    """Return a number for each row, ascending: rows of one key are as far apart as their times."""
    rows = pq.read_table(folder)
    times = rows.column("ts").cast(pa.int64()).to_numpy()
    numbers: npt.NDArray[np.int64] = np.sort((rows.column("k").to_numpy() << _KEY_BITS) + times)
    return numbers


def write(root: Path, second: int, rate: int, chance: np.random.Generator) -> None:
    """Write the rows of one second of both streams, each as a file that is there at once."""
    for name in STREAMS:
        times = second * SECOND + np.sort(chance.integers(0, SECOND, rate))
        columns = {"k": chance.integers(0, KEYS, rate), "ts": pa.array(times, pa.timestamp("us", tz="UTC"))}
        folder = root / name
        folder.mkdir(exist_ok=True)
        unfinished = root / f"{name}.{second}"
        pq.write_table(pa.table(columns), unfinished)
        os.utime(unfinished, (second, second))
        unfinished.rename(folder / f"{second}.parquet")


def start(
    session: wjoin.Session, root: Path, shedding: str, *, limit: str = "", once: bool = False
) -> Followed:
    script = SCRIPT.format(root=root, shedding=shedding, limit=limit, window=WINDOW)
    *_, query = session.run_script(script, once=once)
    assert isinstance(query, StreamingQuery)
    return follower_of(session.spark).follow(query)


def busy_share(session: wjoin.Session, rate: int) -> float:
    """Return how many seconds the join takes for the rows of a second, once its windows are full."""
    with tempfile.TemporaryDirectory() as folder:
        root, chance = Path(folder), np.random.default_rng(1)
        for second in range(6 * WINDOW):
            write(root, 1_700_000_000 + second, rate, chance)
        running = start(session, root, "off", limit=f", maxFilesPerTrigger '{WINDOW // 2}'", once=True)
        points = [each for each in running.totals.hour().points if each.batches]
        return sum(each.seconds for each in points[-4:]) / (
            sum(each.batches for each in points[-4:]) * WINDOW / 2
        )


def sustainable(session: wjoin.Session, rate: int, rounds: int) -> int:
    """Return about how many rows a second of each stream keep the join just busy."""
    for _ in range(rounds):
        share = busy_share(session, rate)
        print(f"  {rate:,} rows/s of each stream: busy for {share:.2f} of the time", flush=True)
        # Pairs grow with the square of the rate, rows with the rate.
        rate = max(100, round(rate * share ** (-2 / 3)))
    return rate


@dataclass(frozen=True)
class Outcome:
    """What a run at too high a rate came to."""

    total: Point
    most_lag: float
    last_lag: float


def overloaded(session: wjoin.Session, root: Path, rate: int, minutes: float, shedding: str) -> Outcome:
    """Send rows at a rate for some minutes, and have them worked off.

    Without shedding the query is stopped as soon as it says that it falls behind.
    """
    stopped, chance = threading.Event(), np.random.default_rng(2)
    write(root, int(time.time()) - 1, rate, chance)
    running = start(session, root, shedding)
    while running.totals.newest is None and running.error is None:
        time.sleep(0.5)
    first = int(time.time())

    def feed() -> None:
        for second in range(first, first + round(60 * minutes)):
            stopped.wait(max(0.0, second + 1 - time.time()))
            if stopped.is_set():
                return
            write(root, second, rate, chance)

    feeding = threading.Thread(target=feed)
    feeding.start()
    lags = []
    end = first + 60 * minutes
    while time.time() < end + 5 and not (shedding == "off" and running.backlog.words):
        time.sleep(10 if shedding != "off" else 1)
        if running.error is not None:
            raise running.error
        newest = running.totals.newest
        if newest is not None and newest.lag:
            lags.append(min(newest.lag.values()))
            total = running.totals.total
            share = sum(newest.shed.values()) / max(1, sum(newest.rows_in.values()))
            print(
                f"  {time.time() - first:5.0f} s: micro-batch {newest.batch} of {newest.seconds:.1f} s, "
                f"{lags[-1]:.1f} s behind, utilization {newest.utilization:.2f}, sheds {100 * share:.0f} % "
                f"({sum(total.shed.values()):,} rows in all)",
                flush=True,
            )
    stopped.set()
    feeding.join()
    if shedding != "off":
        running.query.processAllAvailable()
    else:
        batches = running.totals.total.batches
        print(f"  in its {batches}th micro-batch, {time.time() - first:.0f} s: {running.backlog.words}")
    running.query.stop()
    running.settle()
    return Outcome(running.totals.total, max(lags), lags[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--times", type=float, default=2.0, help="how many times the sustainable rate")
    parser.add_argument("--rate", type=int, help="rows a second of each stream, in place of that")
    parser.add_argument("--first", type=int, default=20_000, help="the rate with which the search begins")
    parser.add_argument("--rounds", type=int, default=4, help="of that search")
    parser.add_argument("--models", nargs="+", default=["off", "linear"])
    given = parser.parse_args()
    warnings.simplefilter("always", WJoinWarning)
    session = wjoin.connect()
    rate = given.rate
    if rate is None:
        print("The sustainable rate", flush=True)
        rate = round(given.times * sustainable(session, given.first, given.rounds))
    for model in given.models:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            print(f"{rate:,} rows/s of each stream, shedding {model}", flush=True)
            outcome = overloaded(session, root, rate, given.minutes, model)
            print(f"  at most {outcome.most_lag:.1f} s behind, in the end {outcome.last_lag:.1f} s")
            if model != "off":
                lost, least, most = outcome.total.results_lost
                whole = results_in(root)
                truth = 1 - outcome.total.matches / whole
                print(
                    f"  results lost: {100 * lost:.2f} % estimated, {100 * least:.2f} to {100 * most:.2f} %; "
                    f"{100 * truth:.2f} % in truth ({outcome.total.matches:,} of {whole:,})",
                    flush=True,
                )


if __name__ == "__main__":
    main()
