"""The three streams of NEXMark: persons, auctions and bids, 1 : 3 : 46, the same for the same seed.

    python benchmarks/nexmark/generator.py FOLDER [--rate N] [--events N] [--files N] [--paced]
    python benchmarks/nexmark/generator.py --kafka SERVERS [--prefix nexmark-] [--rate N] ... [--paced]

The model is that of the published benchmark (Tucker, Tufte, Papadimos, Maier: NEXMark, 2008, and the
generators of Beam's and Flink's editions): three of four auctions are a hot seller's, half of the bids are
for a hot auction, the others for one of the last hundred or one that is still to come; prices are spread
over six powers of ten, and an auction is open while about a hundred others begin. Their texts are a column
of as many bytes here. Files are CSV without a first line of names, which Spark and Flink both read; times
are whole milliseconds. ``came`` is when a file appeared, 0 where all are there at the beginning.

With ``--kafka`` the rows of a file are records of the topics nexmark-person, nexmark-auction and nexmark-bid
instead: an object of JSON each, by the person or auction that it is of.
"""

import argparse
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

PERSONS, AUCTIONS, BIDS = 1, 3, 46
EVENTS = PERSONS + AUCTIONS + BIDS
START = 1_700_000_000_000
"""The time of the first event, in milliseconds since the epoch."""

FIRST_ID = 1000
FIRST_CATEGORY, CATEGORIES = 10, 5
ACTIVE, IN_FLIGHT, LEAD = 1000, 100, 10
"""Persons that sell and bid, auctions that are open, and how many of either are named before they come."""

HOT = 100
"""One person, and one auction, of so many is hot."""

_SIZES = {"person": 140, "auction": 400, "bid": 60}
_CITIES = ["Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Seattle", "Cheyenne"]
_STATES = ["AZ", "CA", "ID", "OR", "WA", "WY"]
_NAMES = [f"{first} {last}" for first in ("Paul", "Kate", "Saul", "Vicky") for last in ("Smith", "Noris")]
_CHANNELS = ["Google", "Facebook", "Baidu", "Apple", *(f"channel-{number}" for number in range(1000))]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Load:
    """``rate`` events a second of event time, in ``files`` of each stream with ``events`` together each."""

    rate: int = 10_000
    files: int = 10
    events: int = 100_000
    seed: int = 2002


def tables(load: Load, file: int, came: int = 0) -> Mapping[str, pa.Table]:
    """Return the rows of a file of each stream."""
    random = np.random.default_rng([load.seed, file])
    numbers = file * load.events + np.arange(load.events, dtype=np.int64)
    epochs, places = numbers // EVENTS, numbers % EVENTS
    millis = START + numbers * 1000 // load.rate
    chosen = {
        "person": places < PERSONS,
        "auction": (places >= PERSONS) & (places < PERSONS + AUCTIONS),
        "bid": places >= PERSONS + AUCTIONS,
    }

    def taken(values: list[str], count: int) -> pa.Array:
        return pa.array(values).take(pa.array(random.integers(0, len(values), count)))

    def rows(stream: str, columns: Mapping[str, object]) -> pa.Table:
        count = int(chosen[stream].sum())
        fillers = ["".join(each) for each in random.choice(list("abcdefghij"), (64, _SIZES[stream]))]
        extra = taken(fillers, count)
        times = {"millis": millis[chosen[stream]], "came": np.full(count, came, np.int64)}
        return pa.table({**columns, **times, "extra": extra})

    persons, sold, offered = (epochs[chosen[stream]] for stream in chosen)
    count = len(persons)
    texts = {"name": _NAMES, "city": _CITIES, "state": _STATES}
    person = {"id": persons + FIRST_ID, **{name: taken(values, count) for name, values in texts.items()}}
    count = len(sold)
    open_for = 1 + random.integers(0, max(1, 2 * (IN_FLIGHT * EVENTS // AUCTIONS) * 1000 // load.rate), count)
    first = _prices(random, count)
    auction = {
        "id": sold * AUCTIONS + places[chosen["auction"]] - PERSONS + FIRST_ID,
        "first_bid": first,
        "reserve": first + _prices(random, count),
        "ends": millis[chosen["auction"]] + open_for,
        "seller": _persons(random, sold, hot=0),
        "category": FIRST_CATEGORY + random.integers(0, CATEGORIES, count),
    }
    count = len(offered)
    bid = {
        "auction": _auctions(random, offered * AUCTIONS + AUCTIONS - 1),
        "bidder": _persons(random, offered, hot=1),
        "price": _prices(random, count),
        "channel": taken(_CHANNELS, count),
    }
    found = {"person": person, "auction": auction, "bid": bid}
    return {stream: rows(stream, columns) for stream, columns in found.items()}


def _prices(random: np.random.Generator, count: int) -> Ints:
    return np.rint(10 ** (6 * random.random(count)) * 100).astype(np.int64)


def _persons(random: np.random.Generator, last: Ints, hot: int) -> Ints:
    """Return persons, three of four of them hot ones, given the last one who has come."""
    active = np.minimum(last + 1, ACTIVE)
    some = last + 1 - active + random.integers(0, active + LEAD)
    return np.where(random.random(len(last)) < 0.75, last // HOT * HOT + hot, some) + FIRST_ID


def _auctions(random: np.random.Generator, last: Ints) -> Ints:
    """Return auctions, half of them hot ones, given the last one that has begun."""
    first = np.maximum(last - IN_FLIGHT, 0)
    some = first + random.integers(0, last - first + 1 + LEAD)
    return np.where(random.random(len(last)) < 0.5, last // HOT * HOT, some) + FIRST_ID


def write(load: Load, folder: Path, file: int, came: int = 0) -> None:
    """Write a file of each stream below a folder; each appears as a whole."""
    for stream, table in tables(load, file, came).items():
        (folder / stream).mkdir(parents=True, exist_ok=True)
        path = folder / stream / f"{file:05}.csv"
        hidden = path.with_name(f".{path.name}")
        written = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
        pyarrow.csv.write_csv(table, hidden, written)
        hidden.rename(path)


KEYS = {"person": "id", "auction": "id", "bid": "auction"}
"""The column of a stream by which its records go to partitions."""


def records(load: Load, file: int, came: int = 0) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield the stream, key and value of the rows of a file of each stream: objects of JSON."""
    for stream, table in tables(load, file, came).items():
        for row in table.to_pylist():
            yield stream, str(row[KEYS[stream]]).encode(), json.dumps(row, separators=(",", ":")).encode()


def send(load: Load, producer: Any, prefix: str, file: int, came: int = 0) -> None:
    """Write the rows of a file of each stream to topics, and return when the broker has them.

    ``producer`` is one of confluent-kafka. Raises SystemExit with what the client says of a record that did
    not arrive.
    """
    lost: list[str] = []

    def delivered(error: object, _: object) -> None:
        if error is not None:
            lost.append(str(error))

    for stream, key, value in records(load, file, came):
        while True:
            try:
                producer.produce(f"{prefix}{stream}", value, key, on_delivery=delivered)
                break
            except BufferError:  # as many wait as the client holds
                producer.poll(0.1)
        producer.poll(0)
    producer.flush()
    if lost:
        raise SystemExit(f"{len(lost)} records did not arrive: {lost[0]}")


def producer_for(servers: str) -> Any:
    """Return a producer for a cluster. Raises SystemExit where its package is missing."""
    try:
        from confluent_kafka import Producer
    except ImportError:
        raise SystemExit("--kafka needs a package: pip install 'wjoin[kafka]'") from None
    return Producer({"bootstrap.servers": servers, "linger.ms": 50, "message.timeout.ms": 120_000})


def feed(load: Load, put: Callable[[int, int], None], ended: threading.Event) -> None:
    """Have a file of each stream appear whenever its events are due, the first one at once.

    ``put`` takes the number of the file, and the time in milliseconds.
    """
    began = time.time()
    for file in range(load.files):
        if ended.wait(max(0.0, began + file * load.events / load.rate - time.time())):
            return
        put(file, int(time.time() * 1000))


def main() -> None:
    """Write the files or records, all at once or as their events are due."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--kafka", metavar="SERVERS", help="write to topics of this cluster")
    parser.add_argument("--prefix", default="nexmark-", help="what the names of the topics begin with")
    parser.add_argument("--paced", action="store_true", help="each file when its events are due")
    for name, default in asdict(Load()).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    given = vars(parser.parse_args())
    folder, servers, prefix, paced = (given.pop(name) for name in ("folder", "kafka", "prefix", "paced"))
    if (folder is None) == (servers is None):
        parser.error("name a folder, or --kafka SERVERS")
    load = Load(**given)
    put = (
        partial(write, load, folder)
        if servers is None
        else partial(send, load, producer_for(servers), prefix)
    )
    if paced:
        feed(load, put, threading.Event())
        return
    for file in range(load.files):
        put(file, 0)


if __name__ == "__main__":
    main()
