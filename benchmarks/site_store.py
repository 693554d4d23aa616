"""A site with ten million rows of 200 bytes: its memory, and how many random rows a second it answers.

    python benchmarks/site_store.py [--rows N] [--folder DIR]

The site is a process of its own on one core; it is asked over a socket from another one. Its memory is that
of /proc: anonymous, and the peak with what is mapped of its files.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from targets import Target, summary

from wjoin.sites.client import SiteClient
from wjoin.sites.protocol import SiteAddress

_FILE_ROWS = 500_000
_TEXT_BYTES = 148
_REQUEST_ROWS = 20_000
_SECONDS = 15.0

_CONFIG = """\
[site]
listen = "127.0.0.1:0"
data = "data"
memory = "1 GB"
[streams.s]
source = "in"
time = "ts"
key = ["id"]
window_rows = {rows}
"""


def main() -> None:
    """Fill a site, measure it, and print what was wanted of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, help="where to put 4.5 GB of data (a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        write(folder / "in", options.rows)
        (folder / "site.toml").write_text(_CONFIG.format(rows=options.rows), "utf-8")
        site, url = start(folder)
        try:
            print(summary(measure(site.pid, url, options.rows)))
        finally:
            site.terminate()
            site.wait()


def write(folder: Path, rows: int) -> None:
    """Write files of rows with 200 bytes: an id, a time, four numbers and a text."""
    folder.mkdir()
    random = np.random.default_rng(1)
    for start in range(0, rows, _FILE_ROWS):
        count = min(_FILE_ROWS, rows - start)
        numbers = np.arange(start, start + count)
        texts = random.integers(97, 123, count * _TEXT_BYTES, np.uint8).tobytes()
        offsets = np.arange(count + 1, dtype=np.int32) * _TEXT_BYTES
        table = pa.table(
            {
                "id": numbers * 7919 % 1_000_000,
                "ts": pa.array(1_700_000_000_000_000 + numbers * 100, pa.timestamp("us", tz="UTC")),
                **{f"x{at}": random.random(count) for at in range(4)},
                "text": pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(texts)),
            }
        )
        pq.write_table(table, folder / f"{start:09}.parquet", compression="none", use_dictionary=False)


def start(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Start the site on one core, and return it with its address."""
    log = folder / "log"
    command = [sys.executable, "-m", "wjoin.cli", "site", "serve", "--config", folder / "site.toml"]
    with log.open("wb") as out:
        site = subprocess.Popen(command, stderr=out)
    os.sched_setaffinity(site.pid, {0})
    while (found := re.search(r"Site: (\S+)", log.read_text("utf-8"))) is None:
        time.sleep(0.1)
    return site, found[1]


def measure(pid: int, url: str, rows: int) -> list[Target]:
    """Return what the site was measured to do."""
    with SiteClient(SiteAddress(url), compression=None) as client:
        began = time.monotonic()
        while "s" not in client.streams() or client.next("s", None) < rows:
            time.sleep(0.2)
        filled = rows / (time.monotonic() - began)
        facts = client.describe("s")
        anonymous = memory(pid, "RssAnon")
        columns = facts.schema.names
        random = np.random.default_rng(2)
        answered, spent, began = 0, processor_seconds(pid), time.monotonic()
        while (took := time.monotonic() - began) < _SECONDS:
            numbers = random.integers(0, rows, _REQUEST_ROWS)
            found = client.full("s", facts.lineage, numbers, columns)
            if not np.array_equal(found.column("id").to_numpy(), numbers * 7919 % 1_000_000):
                raise SystemExit("the site has answered with other rows")
            answered += len(numbers)
            anonymous = max(anonymous, memory(pid, "RssAnon"))
        spent = processor_seconds(pid) - spent
    width = sum(facts.widths.values())
    what = f"{rows:,} rows of {width:.0f} bytes"
    gigabyte = 1e9
    return [
        Target(f"{what}: anonymous memory", anonymous / gigabyte, "GB", 1.0),
        Target(f"{what}: peak memory, mapped files included", memory(pid, "VmHWM") / gigabyte, "GB", 1.0),
        Target(f"{what}: random rows by number", answered / took, "rows/s", 50_000, most=False),
        Target(f"{what}: the same for a second of processor time", answered / spent, "rows/s"),
        Target(f"{what}: taken in", filled, "rows/s"),
    ]


def memory(pid: int, entry: str) -> int:
    """Return an entry of a process's status in bytes."""
    text = Path(f"/proc/{pid}/status").read_text("ascii")
    return int(re.search(rf"{entry}:\s+(\d+) kB", text)[1]) * 1024


def processor_seconds(pid: int) -> float:
    """Return the processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
