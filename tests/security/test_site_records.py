"""Records that an attacker writes into a source: none ends a site, stops its stream, or fills its memory."""

import pyarrow as pa
import pytest

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
