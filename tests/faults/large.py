"""Inputs far larger than a micro-batch should be, each with its script and what must come of it."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FILE_ROWS = 100_000
START = 1_700_000_000_000_000
WIDE_BYTES = 100_000
PAYLOAD_BYTES = 99
"""With a key and an event time a row has 115 bytes."""

_SPREAD = 2_654_435_761
_ID_BITS = 40


class Result(Enum):
    """Where the results are: rows of files in the folder ``joined``, lines that are printed, or a number."""

    FILES = auto()
    LINES = auto()
    NUMBER = auto()


@dataclass(frozen=True)
class Case:
    """One way to ask too much: what writes its rows, the script, and how many results it has for them.

    The number of rows of the command line is multiplied by ``scale``. ``arguments`` are for ``wjoin run``.
    No two results agree in all ``columns``.
    """

    name: str
    scale: float
    write: Callable[[Path, int], None]
    script: str
    expected: Callable[[int], int]
    arguments: tuple[str, ...] = ()
    result: Result = Result.FILES
    columns: tuple[str, ...] = ("id",)


def key(row: np.ndarray) -> np.ndarray:
    """Return the key of a row: another one for each, in no order."""
    return row * _SPREAD % 2**_ID_BITS


def write_backlog(root: Path, rows: int) -> None:
    """Write three streams; row n of each has the same key, less than 2 s apart, 10,000 rows a second."""
    for number, stream in enumerate("abc"):
        for first, count in _files(rows // 3, FILE_ROWS):
            random = np.random.default_rng((number, first))
            lines = first + np.arange(count)
            table = {
                "id": key(lines),
                "ts": _times(START + 100 * lines + random.integers(0, 2_000_000, count)),
                "payload": _texts(random, count, PAYLOAD_BYTES),
            }
            _write(root / stream, first, table)


def write_wide(root: Path, rows: int) -> None:
    """Write three streams as in a backlog; rows of the first one have 100 kB."""
    for number, stream in enumerate("abc"):
        for first, count in _files(rows, 500):
            random = np.random.default_rng((number, first))
            lines = first + np.arange(count)
            table = {
                "id": key(lines),
                "ts": _times(START + 100 * lines),
                "payload": _texts(random, count, WIDE_BYTES if stream == "a" else 10),
            }
            _write(root / stream, first, table)


def write_hot_pairs(root: Path, rows: int) -> None:
    """Write one row of a, and so many of b and c that it has ``rows`` pairs of partners, all with one key."""
    side = math.isqrt(rows)
    for stream, count in (("a", 1), ("b", side), ("c", side)):
        lines = np.arange(count)
        _write(root / stream, 0, {"id": np.ones_like(lines), "ts": _times(START + lines), "line": lines})


def write_hot_run(root: Path, rows: int) -> None:
    """Write one row of a, and ``rows`` of b with the same key."""
    for stream, wanted in (("a", 1), ("b", rows)):
        for first, count in _files(wanted, 2_000_000):
            lines = first + np.arange(count)
            _write(root / stream, first, {"id": np.ones_like(lines), "ts": _times(START + lines)})


def _files(rows: int, most: int) -> Iterator[tuple[int, int]]:
    for first in range(0, rows, most):
        yield first, min(most, rows - first)


def _write(folder: Path, first: int, columns: dict[str, object]) -> None:
    folder.mkdir(exist_ok=True)
    # Random text gets no smaller, and 100 kB have no use for a dictionary.
    pq.write_table(
        pa.table(columns), folder / f"{first:012}.parquet", compression="none", use_dictionary=False
    )


def _times(microseconds: np.ndarray) -> pa.Array:
    return pa.array(microseconds).cast(pa.timestamp("us", tz="UTC"))


def _texts(random: np.random.Generator, count: int, size: int) -> pa.Array:
    letters = random.integers(ord("a"), ord("z") + 1, count * size, dtype=np.uint8)
    offsets = np.arange(0, (count + 1) * size, size, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(letters))


def _streams(streams: str, column: str) -> str:
    return "".join(
        f"CREATE STREAM {stream} (id BIGINT, ts TIMESTAMP, {column}) USING parquet"
        f" OPTIONS (path '{stream}') WATERMARK ts DELAY OF INTERVAL 3 SECONDS;\n"
        for stream in streams
    )


def _tables(streams: str) -> str:
    return "".join(
        f"CREATE TEMPORARY VIEW {stream} USING parquet OPTIONS (path '{stream}');\n" for stream in streams
    )


_CHECKPOINT = ("--checkpoint", "checkpoints")
_SINK = "CREATE SINK joined USING parquet OPTIONS (path 'joined');\nINSERT INTO joined "
# Over tables Spark's own join may be cheaper, and is not what is tested.
_OURS = "/*+ PLAN(MULTIWAY) */"
_ON_KEY = "FROM a, b, c WINDOW = 5 SECONDS WHERE a.id = b.id AND b.id = c.id"
_ROWS = f"""
SELECT {_OURS} a.id, a.ts AS a_ts, b.ts AS b_ts, c.ts AS c_ts, a.payload AS a_payload, b.payload AS b_payload,
       c.payload AS c_payload
{_ON_KEY};
"""
_SIZES = f"SELECT a.id, length(a.payload) AS size {_ON_KEY};"
_PAIRS = "FROM a, b, c WINDOW = 1 MINUTE WHERE a.id = b.id AND b.id = c.id"
_SOME = 1_000_003

_BACKLOG = _streams("abc", "payload STRING")
_HOT_STREAM = f"SELECT b.line AS b, c.line AS c {_PAIRS} AND (b.line + c.line) % {_SOME} = 0;"


def _a_third(rows: int) -> int:
    return rows // 3


def _as_many(rows: int) -> int:
    return rows


def _pairs(rows: int) -> int:
    return math.isqrt(rows) ** 2


def _some_pairs(rows: int) -> int:
    side = math.isqrt(rows)
    # Whatever b.line is, c.line has one remainder: as many pairs as there are lines of c with it.
    least = -np.arange(side) % _SOME
    return int(np.where(least < side, 1 + (side - 1 - least) // _SOME, 0).sum())


CASES = (
    Case("stream", 1, write_backlog, _BACKLOG + _SINK + _ROWS, _a_third, _CHECKPOINT),
    Case(
        "tables",
        1,
        write_backlog,
        f"{_tables('abc')}CREATE TEMPORARY VIEW found AS {_ROWS}"
        "INSERT OVERWRITE DIRECTORY 'joined' USING parquet SELECT * FROM found;",
        _a_third,
    ),
    Case("printed", 1, write_backlog, _BACKLOG + _SIZES, _a_third, ("--rows", "1000000000"), Result.LINES),
    Case("wide", 1 / 300, write_wide, _BACKLOG + _SINK + _SIZES, _as_many, _CHECKPOINT),
    Case(
        "hot-run",
        100 / 12,
        write_hot_run,
        f"{_tables('ab')}SELECT {_OURS} count(*) FROM a, b WINDOW = 1 HOUR WHERE a.id = b.id;",
        _as_many,
        result=Result.NUMBER,
    ),
    Case(
        "hot-pairs",
        100 / 12,
        write_hot_pairs,
        f"{_tables('abc')}SELECT {_OURS} count(*) {_PAIRS};",
        _pairs,
        result=Result.NUMBER,
    ),
    Case(
        "hot-stream",
        100 / 12,
        write_hot_pairs,
        _streams("abc", "line BIGINT") + _SINK + _HOT_STREAM,
        _some_pairs,
        _CHECKPOINT,
        columns=("b", "c"),
    ),
)
