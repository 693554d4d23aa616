"""A demo of sites: a join of two routers' packets, of which few match, and a picture of the bytes saved.

``make demo-sites`` runs it. The sites are two processes on loopback, and end with the demo. DuckDB checks the
results. The picture has what the sites have sent over time, and what whole rows would have taken.
"""

import argparse
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import duckdb
import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.streaming import StreamingQuery

import wjoin
from wjoin.testing.site import Site
from wjoin.testing.waiting import free_ports

SCRIPT = Path(__file__).with_name("packets.sql")
WRITTEN_AS = ("grpc://127.0.0.1:7771", "grpc://127.0.0.1:7772")
"""The addresses of the sites in the script."""

START = 1_700_000_000_000_000
SECONDS = 40
"""How long the routers send."""

REST = 10
"""For how many seconds the query must have had nothing to do at the end."""

BEFORE = 5
"""How many of these seconds are over when the query begins."""

RATE = 1000
"""Packets a second of each router."""

DESTINATIONS = 1_000_000
"""Different addresses of each router's packets; one packet in a hundred has one of those that both have."""

PACKET_BYTES = 1400

ORACLE = """
SELECT count(*) FROM read_parquet('{0}/router1/*') a, read_parquet('{0}/router2/*') b
WHERE a.destination = b.destination AND abs(epoch_us(a.at) - epoch_us(b.at)) <= 10000000
"""


def packets(router: int, second: int) -> pa.Table:
    """Return what a router passes on in a second."""
    chance = np.random.default_rng([router, second])
    own = chance.integers(0, DESTINATIONS, RATE) * 4 + router
    both = chance.integers(0, RATE // 10, RATE) * 4 + 3
    times = START + second * 1_000_000 + np.sort(chance.integers(0, 1_000_000, RATE))
    return pa.table(
        {
            "destination": np.where(chance.random(RATE) < 0.01, both, own),
            "at": pa.array(times).cast(pa.timestamp("us", "UTC")),
            "packet": [chance.bytes(PACKET_BYTES) for _ in range(RATE)],
        }
    )


def send(folder: Path) -> None:
    """Write a file for each router and second, as time passes."""
    began = time.monotonic()
    for second in range(BEFORE, SECONDS):
        for router in (1, 2):
            unfinished = folder / f".router{router}"
            pq.write_table(packets(router, second), unfinished)
            unfinished.rename(folder / f"router{router}" / f"{second:03}.parquet")
        time.sleep(max(0.0, began + second - BEFORE + 1 - time.monotonic()))


@dataclass(frozen=True)
class Sent:
    """What the sites have sent after some seconds: bytes, and those of whole rows in their place."""

    seconds: float
    size: float
    whole: float


def counted(metrics: list[str], seconds: float) -> Sent:
    """Ask the sites what they have sent."""
    size = rows = 0.0
    for url in metrics:
        with urllib.request.urlopen(url) as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith("wjoin_site_sent_bytes_total"):
                    size += float(line.rsplit(" ", 1)[1])
                if line.startswith("wjoin_site_sent_rows_total") and 'kind="rows"' in line:
                    rows += float(line.rsplit(" ", 1)[1])
    return Sent(seconds, size, rows * (PACKET_BYTES + 16))


def watch(metrics: list[str], sending: threading.Thread, query: StreamingQuery) -> Iterator[Sent]:
    """Yield each second what has been sent, until the query has worked off all that the routers have sent.

    It ends when the query does, too.
    """
    began, rest = time.monotonic(), REST
    told = 0.0
    while rest and query.isActive:
        rest = REST if sending.is_alive() or query.status["isDataAvailable"] else rest - 1
        found = counted(metrics, time.monotonic() - began)
        if found.seconds >= told:
            told += 5
            share = f", {found.size / found.whole:.1%} of whole rows" if found.whole else ""
            print(f"{found.seconds:4.0f} s: {found.size / 1e6:8.2f} MB sent{share}", flush=True)
        yield found
        time.sleep(1)


def draw(found: list[Sent], file: Path) -> None:
    """Write the picture."""
    mpl.use("svg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
    seconds = [each.seconds for each in found]
    axes.plot(seconds, [each.whole / 1e6 for each in found], label="whole rows", color="tab:gray", ls="--")
    axes.plot(seconds, [each.size / 1e6 for each in found], label="sent", color="tab:blue")
    axes.set(xlabel="seconds", ylabel="MB", title="From two sites, one packet in a hundred is in a result")
    axes.legend()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)


def run(folder: Path, picture: Path) -> int:
    """Run the demo in a folder; return an exit status."""
    ports = free_ports(2)
    sites, metrics = [], [f"http://127.0.0.1:{port}/metrics" for port in ports]
    for router, port in zip((1, 2), ports, strict=True):
        source = folder / f"router{router}"
        source.mkdir()
        for second in range(BEFORE):
            pq.write_table(packets(router, second), source / f"{second:03}.parquet")
        streams = (
            f'[streams.router{router}]\nsource = "{source}"\ntime = "at"\nwindow = "1 minute"\n'
            'key = ["destination"]\npoll = "200 ms"\n'
        )
        sites.append(Site(folder / f"site{router}", streams, f'metrics = "127.0.0.1:{port}"'))
    with ExitStack() as running:
        for site in sites:
            running.enter_context(site)
        print(f"Two sites: {sites[0].url} and {sites[1].url}, {sites[0].configuration.read_text()}")
        session = wjoin.connect()
        text = SCRIPT.read_text("utf-8")
        print(text, flush=True)
        for written, site in zip(WRITTEN_AS, sites, strict=True):
            text = text.replace(written, site.url)
        text = text.replace("'seen_twice'", f"'{folder}/seen_twice'")
        *declared, query = text.rstrip(";\n").split(";\n")
        session.run_script(";\n".join(declared))
        print(session.explain(query), flush=True)
        sending = threading.Thread(target=send, args=[folder], daemon=True)
        sending.start()
        (started,) = session.run_script(query, once=False, checkpoint=str(folder / "checkpoints"))
        found = list(watch(metrics, sending, started))
        (running,) = session.running
        started.stop()
        if running.failed is not None:
            raise running.failed
        results = session.read.parquet(f"{folder}/seen_twice").count()
        session.spark.stop()
    draw(found, picture)
    ((wanted,),) = duckdb.sql(ORACLE.format(folder)).fetchall()
    last = found[-1]
    print(
        f"\n{last.size / 1e6:.1f} MB sent in place of {last.whole / 1e6:.1f} MB; {picture.resolve()} shows it"
    )
    word = "confirmed" if results == wanted else "WRONG"
    print(f"{word}: {results:,} results, DuckDB finds {wanted:,}")
    return int(results != wanted)


def main() -> int:
    """Read the command line, and run the demo."""
    parser = argparse.ArgumentParser(description="a window join over two sites, and the bytes that it saves")
    parser.add_argument("--picture", type=Path, default=Path("bytes.svg"), help="where the picture goes")
    picture = parser.parse_args().picture
    with tempfile.TemporaryDirectory(prefix="wjoin-sites-") as folder:
        try:
            return run(Path(folder), picture)
        except (wjoin.WJoinError, AssertionError) as error:
            # Of the query, or of a site that did not answer in time.
            print(error, file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
