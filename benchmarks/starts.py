"""Scripts of three queries, several at once beside busy processes: how many come up, and after how long.

    python benchmarks/starts.py --rounds 20

What starts the queries of a server after a reboot does just this. A script has come up once all its queries
have committed their results; what was tried again is told. Each process in the way computes all the time.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

ROWS = 100

STREAM = """
CREATE STREAM {name} (id BIGINT, ts TIMESTAMP) USING json OPTIONS (path '{folder}/{name}')
WATERMARK ts DELAY OF INTERVAL 1 MINUTE;
"""
QUERY = """
CREATE SINK {name} USING json OPTIONS (path '{name}');
INSERT INTO {name} SELECT A.id FROM a A, b B WINDOW (A, B) = 5 SECONDS WHERE A.id = B.id;
"""
QUERIES = ("first", "second", "third")

_BUSY = "while True: sum(range(100_000))"
_AGAIN = re.compile(r"WJ814")


@dataclass(frozen=True)
class Start:
    """One start of a script: until all of its queries had their results, or None; and what it has said."""

    seconds: float | None
    again: int
    said: str


def write_rows(folder: Path) -> None:
    """Write what the scripts read."""
    for name in ("a", "b"):
        (folder / name).mkdir()
        rows = ({"id": n, "ts": f"2024-05-01T12:{n // 60:02}:{n % 60:02}Z"} for n in range(ROWS))
        (folder / name / "rows.json").write_text("\n".join(map(json.dumps, rows)))


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Have so many processes compute inside."""
    with ExitStack() as stack:
        for _ in range(processes):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", _BUSY]))
            stack.callback(process.kill)
        yield


def started(folder: Path, rows: Path, number: int) -> "subprocess.Popen[bytes]":
    """Start a script in a folder of its own, as ``wjoin run`` does it for a server."""
    own = folder / f"script{number}"
    own.mkdir()
    streams = "".join(STREAM.format(name=name, folder=rows) for name in ("a", "b"))
    (own / "script.sql").write_text(streams + "".join(QUERY.format(name=name) for name in QUERIES))
    command = [
        sys.executable,
        "-m",
        "wjoin.cli",
        "run",
        str(own / "script.sql"),
        "--checkpoint",
        str(own / "c"),
    ]
    with (own / "said").open("w") as said:
        return subprocess.Popen(
            [*command, "--set", f"wjoin.log={own / 'log'}"],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env={**os.environ, "WJOIN_PREPARE": "off"},
        )


def results(script: Path) -> bool:
    """Whether all queries of a script have committed their results."""
    return all((script / name / "_spark_metadata" / "0").exists() for name in QUERIES)


def one_round(scripts: int, patience: float, scratch: str | None) -> list[Start]:
    """Start so many scripts at once; return how each has come up."""
    with tempfile.TemporaryDirectory(prefix="wjoin-starts-", dir=scratch) as name, ExitStack() as stack:
        folder, took = Path(name), dict[int, float]()
        write_rows(folder)
        began = time.monotonic()
        processes = [stack.enter_context(started(folder, folder, number)) for number in range(scripts)]
        for each in processes:
            # A script that does not end when it is stopped must not hold up the next round.
            stack.callback(each.kill)
        while (now := time.monotonic() - began) < patience:
            for number, process in enumerate(processes):
                if number not in took and results(folder / f"script{number}"):
                    took[number] = now
                    process.terminate()
            if all(number in took or each.poll() is not None for number, each in enumerate(processes)):
                break
            time.sleep(0.2)
        for each in processes:
            each.terminate()
        for each in processes:
            each.wait()
        said = [(folder / f"script{number}" / "said").read_text() for number in range(scripts)]
        return [Start(took.get(number), len(_AGAIN.findall(text)), text) for number, text in enumerate(said)]


def told(found: Sequence[Start]) -> str:
    """Return what some starts have been, in a line."""
    took = [each.seconds for each in found if each.seconds is not None]
    up = f"{len(took)} of {len(found)} scripts came up"
    again = sum(each.again for each in found)
    if not took:
        return f"{up}; started again: {again}"
    return f"{up}, median {statistics.median(took):.1f} s, most {max(took):.1f} s; started again: {again}"


def main() -> int:
    """Run the rounds; the status is 1 where a script did not come up."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--rounds", type=int, default=5, help="how often (%(default)s)")
    add("--scripts", type=int, default=4, help="scripts at once (%(default)s)")
    add("--busy", type=int, default=4, help="processes that compute beside them (%(default)s)")
    add(
        "--patience",
        type=float,
        default=600,
        help="seconds until a script counts as not come up (%(default)s)",
    )
    add("--scratch", help="where data and checkpoints are kept while it runs")
    given = parser.parse_args()
    found: list[Start] = []
    with busy(given.busy):
        for number in range(given.rounds):
            last = one_round(given.scripts, given.patience, given.scratch)
            found += last
            print(f"round {number + 1}: {told(last)}", flush=True)
            for each in last:
                if each.seconds is None:
                    print(each.said, file=sys.stderr, flush=True)
    print(f"in all: {told(found)}")
    return int(any(each.seconds is None for each in found))


if __name__ == "__main__":
    sys.exit(main())
