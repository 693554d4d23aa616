"""Records that an attacker writes into a source: none ends a site, stops its stream, or fills its memory."""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.security.attacks import MOST_MEMORY, peak
from tests.sites.processes import SCHEMA, Process, Sites, wait_for
from tests.tiers import tiers
from wjoin.sites.records import json_lines

GOOD = b'{"id": 1, "ts": "2026-01-01T00:00:00Z", "name": "x", "price": 1}'
_NAMES = b"".join(b', "k%d": 0' % each for each in range(1_000_000)) + b"}"

BROKEN = {
    "no UTF-8": GOOD.replace(b"x", b"\xff\xfe"),
    "a name that is no UTF-8": GOOD.replace(b"price", b"\xc3"),
    "half a character": GOOD.replace(b"x", b"\\ud800"),
    "a control character": GOOD.replace(b"x", b"\x00"),
    "another type": GOOD.replace(b"1,", b'"text",', 1),
    "an object for a number": GOOD.replace(b"1,", b'{"a": 1},', 1),
    "a list": b"[1]",
    "null": b"null",
    "a number": b"5",
    "a text": b'""',
    "two objects": GOOD + GOOD,
    "an object and null": GOOD + b" null",
    "half an object": GOOD[:-1],
    "a number without end": GOOD.replace(b"1,", b"1" * 5_000 + b",", 1),
    "infinitely many": GOOD.replace(b"1,", b"1e400,", 1),
    "no time": GOOD.replace(b'"2026-01-01T00:00:00Z"', b"NaN"),
    "a time beyond all": GOOD.replace(b'"2026-01-01T00:00:00Z"', b"1e300"),
    "the greatest time": GOOD.replace(b'"2026-01-01T00:00:00Z"', b"9223372036854775807"),
    "a million names and another type": GOOD[:-1].replace(b"1,", b'"text",', 1) + _NAMES,
    "deep": b'{"id": 1, "x": ' + b"[" * 1_000_000,
}
"""Records that are no rows."""

ROWS = {
    "a million names": GOOD[:-1] + _NAMES,
    "lists": GOOD[:-1] + b', "x": [' + b"[]," * 1_000_000 + b"1]}",
    "ESC": GOOD.replace(b"x", b"\\u001b"),
    "a name twice": GOOD[:-1] + b', "id": 1}',
    "a mark of the order of bytes": b"\xef\xbb\xbf" + GOOD,
    "colons": GOOD.replace(b"x", b":" * 1_000_000),
}
"""Records that are rows with the id 1."""

LARGE = ("a million names and another type", "deep", "a million names", "lists")

COLUMNS = pa.schema(
    {"id": pa.int64(), "ts": pa.timestamp("us", "UTC"), "name": pa.string(), "price": pa.float64()}
)


@pytest.mark.parametrize("name", tiers([*BROKEN, *ROWS], long=LARGE))
def test_a_record_is_what_it_is_whatever_stands_beside_it(name: str) -> None:
    record = BROKEN[name] if name in BROKEN else ROWS[name]
    for beside in ((), (GOOD,), (b"{",)):
        found = json_lines([record, *beside], COLUMNS, "seconds")
        found.rows.validate(full=True)
        assert found.broken == (name in BROKEN) + (beside == (b"{",))
        assert found.rows.column("id").to_pylist() == [1] * (1 + len(beside) - found.broken)


def check(site: Process, rows: int, broken: int) -> None:
    """Check that a site has taken in what was written into its source, and how much memory it took."""
    client = site.client(patience=60.0)
    lineage = client.describe("a").lineage
    wait_for(lambda: client.next("a", lineage) >= rows, 120)
    told = client.status()["streams"][0]
    assert (told["next"], told["broken"]) == (rows, broken)
    last = client.full("a", lineage, np.array([0, rows - 1]), ["name"])
    assert last.column(0).to_pylist() == ["x", "x"]
    print(f"peak {peak(site.process.pid) / 1e6:.0f} MB")
    assert peak(site.process.pid) < MOST_MEMORY
    assert "Traceback" not in site.log() and "again in" not in site.log()
    assert "\x1b" not in site.log()


@pytest.mark.thorough
@pytest.mark.slow
def test_records_at_standard_input(tmp_path: Path) -> None:
    started: list[Process] = []
    config = f'[streams.a]\nsource = "-"\ntime = "ts"\nwindow_rows = 1000\nschema = "{SCHEMA}"\n'
    site = Sites(tmp_path, started).start(config, head='memory = "256 MB"', stdin=True)
    pipe = site.process.stdin
    assert pipe is not None

    def write(record: bytes) -> None:
        pipe.write(record + b"\n")
        pipe.flush()

    try:
        write(GOOD)
        for _ in range(400):
            pipe.write(b"x" * 1_000_000)
        write(b"")
        write_all(write)
        check(site, len(ROWS) + 22, len(BROKEN) + 1)
    finally:
        for each in started:
            each.end()


def write_all(write: Callable[[bytes], None]) -> None:
    """Write each of the records above, some alone, 20 large ones, and a good one."""
    for each in (*BROKEN.values(), *ROWS.values()):
        write(each)
        time.sleep(0.1)
    for _ in range(20):
        write(GOOD.replace(b"x", b"y" * 15_000_000))
    write(GOOD)
