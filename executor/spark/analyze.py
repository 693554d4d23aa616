"""ANALYZE STREAM: what the rows of a source look like, by sketches, one pass."""

import importlib
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from wjoin.executor.arrival_order import ReadPart, ReadParts, disorder
from wjoin.executor.spark.arrival import MAJOR, NAME, START, order_of
from wjoin.executor.spark.once import collect_once
from wjoin.executor.spark.scans import key_code
from wjoin.grammar.errors import WJoinError
from wjoin.parts.kernels.runs import Int64Array, int64_view, integers
from wjoin.parts.routes.hash_route import bucket_numbers
from wjoin.parts.summaries.hashing import cells, signs
from wjoin.planner.bind.event_time import time_kind
from wjoin.planner.catalog import INTEGRAL
from wjoin.planner.plan.ahead import too_far_ahead
from wjoin.planner.plan.block_columns import quoted
from wjoin.planner.plan.physical import KeyCode
from wjoin.planner.shape.join_keys import EXACT

_SKETCH_SIZE = 12
"""Binary logarithm of the registers of a sketch of distinct values: about 1.6 % of error."""

_FREQUENT_SIZE = 10
"""Binary logarithm of the values that a sketch of frequent ones holds."""

TIME, HOMES = "__wjoin_time", "__wjoin_homes"
_CLASSES = 32
"""Classes of homes, by hash, that are told apart."""

_SKETCHES, _CELLS = 5, 512
"""Count sketches of the values of a column in each class, and cells of each: about 4 % of error (Charikar,
Chen and Farach-Colton 2002; of their squares Thorup and Zhang 2004)."""

DDL = "name STRING, number DOUBLE, sketch BINARY"
"""The columns of sketches: what it is of, and a number or a sketch."""

_ROWS, _BYTES, _FIRST, _LAST, _PIECE = "rows", "bytes", "first", "last", "piece"


@dataclass(frozen=True)
class Profile:
    """What was found: ``rows``, ``width`` (bytes of a row), the span of their event times and how far
    they are out of order, in microseconds (the column's own unit where integral), None without event
    time; ``disorder`` is None as well where the order in which the rows come is not known.

    ``distinct`` and ``heaviest`` are by column: different values, and the share of the most frequent one;
    ``buckets``: that of its key code, of the columns of which it is known. ``ranges``: the least and the
    greatest value of columns of numbers, but for NaN. ``local``: of the pairs of rows with the same value
    of a column, the share that live at one node, where it was asked for and there are enough of them.
    """

    rows: int
    width: float
    span: float | None
    disorder: float | None
    distinct: dict[str, float]
    heaviest: dict[str, float]
    buckets: dict[str, int]
    ranges: dict[str, tuple[float, float]]
    local: dict[str, float]


def analyze(
    frame: DataFrame,
    event_time: str | None,
    columns: Sequence[str],
    measures: Sequence[str],
    sample: int | None,
    by: str | None = None,
) -> Profile:
    """Read what a DataFrame holds, or ``sample`` rows of it; a stream until it has read all that is there.

    The values of ``columns`` are counted; of ``measures``, columns of fractions, only their range is told.
    ``by``: the column by whose values rows live at nodes.
    Raises WJoinError WJ606 where the package of the sketches is not installed.
    """
    _library()
    order = order_of(frame) if sample is None and event_time is not None else None
    if sample is not None:
        frame = frame.limit(sample)
    time = F.lit(None).cast("bigint") if event_time is None else event_times(frame, event_time)
    chosen = [F.col(quoted(column)) for column in columns]
    chosen += [F.col(quoted(column)).cast("double").alias(column) for column in measures]
    places = () if order is None else order.columns
    homes = [] if by is None else [F.expr(f"pmod(xxhash64({quoted(by)}), {_CLASSES})").alias(HOMES)]
    read = partial(_sketched, log=order is not None and order.log)
    rows = collected(frame.select(time.alias(TIME), *places, *homes, *chosen).mapInArrow(read, DDL))
    frequent = {name: _heaviest(_sketches(rows, f"f{name}")) for name in columns}
    buckets = _buckets(frame, {name: found[0] for name, found in frequent.items() if found[0] is not None})
    return _profile(rows, list(columns), frequent, buckets, ordered=order is not None)


def event_times(frame: DataFrame, event_time: str) -> Column:
    """Return the event time of a DataFrame; of a stream NULL for a row too far ahead, which it drops."""
    time = F.col(quoted(event_time))
    if not frame.isStreaming:
        return time
    kind = time_kind(frame.select(time).schema[0].dataType.simpleString())
    return time if kind is None else F.when(~F.expr(too_far_ahead(quoted(event_time), kind, None)), time)


def collected(sketched: DataFrame) -> list[tuple[str, float | None, bytes | None]]:
    """Return the rows of sketches; of a stream once it has read all that is there."""
    if not sketched.isStreaming:
        return [(row["name"], row["number"], row["sketch"]) for row in sketched.collect()]
    name, spark = collect_once(sketched), sketched.sparkSession
    rows = [(row["name"], row["number"], row["sketch"]) for row in spark.table(name).collect()]
    spark.catalog.dropTempView(name)
    return rows


def _library() -> Any:
    """Return the package of the sketches, which not every Python has: it has no wheel for the newest ones."""
    try:
        return importlib.import_module("datasketches")
    except ModuleNotFoundError as error:
        raise WJoinError(
            "WJ606",
            "ANALYZE STREAM needs the package datasketches, which is not installed",
            help="pip install datasketches (it has no wheel for every Python: it then needs CMake and C++), "
            "or give what you know: ALTER STREAM … SET STATISTICS (rate = …)",
        ) from error


def _sketched(batches: Iterator[pa.RecordBatch], *, log: bool) -> Iterator[pa.RecordBatch]:
    """Yield the sketches of one partition."""
    library = _library()
    rows = size = 0
    first, last = math.inf, -math.inf
    pieces = ReadParts(log=log)
    distinct: dict[str, Any] = {}
    frequent: dict[str, Any] = {}
    ranges: dict[str, tuple[float, float]] = {}
    squares: dict[str, Squares] = {}
    valued: dict[str, int] = {}
    for batch in batches:
        times = batch.column(TIME)
        if not pa.types.is_null(times.type) and times.null_count < len(times):
            first, last = _wider((first, last), integers(times))
            if NAME in batch.schema.names:
                note_places(pieces, batch.filter(pc.is_valid(times)))
        batch = batch.drop_columns(
            [name for name in (TIME, NAME, MAJOR, START) if name in batch.schema.names]
        )
        homes = None
        if HOMES in batch.schema.names:
            homes, batch = int64_view(integers(batch.column(HOMES))), batch.drop_columns([HOMES])
        rows += batch.num_rows
        size += batch.nbytes
        for name in batch.schema.names:
            kind = batch.schema.field(name).type
            if pa.types.is_integer(kind) or pa.types.is_floating(kind):
                ranges[name] = _wider(ranges.get(name), batch.column(name))
            if pa.types.is_floating(kind):
                continue
            counted = pc.value_counts(batch.column(name).drop_null())
            known = distinct.setdefault(name, library.hll_sketch(_SKETCH_SIZE, library.tgt_hll_type.HLL_8))
            heavy = frequent.setdefault(name, library.frequent_strings_sketch(_FREQUENT_SIZE))
            if homes is not None:
                valued[name] = valued.get(name, 0) + batch.num_rows - batch.column(name).null_count
                squares.setdefault(name, np.zeros((_CLASSES, _SKETCHES, _CELLS)))
                _note_squares(squares[name], homes, batch.column(name))
            for value, count in zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True):
                known.update(str(value))
                heavy.update(str(value), count)
    found: list[dict[str, object]] = [{"name": _ROWS, "number": rows}, {"name": _BYTES, "number": size}]
    if math.isfinite(first):
        found += [{"name": _FIRST, "number": first}, {"name": _LAST, "number": last}]
    for name, ends in ranges.items():
        if math.isfinite(ends[0]):
            found += [
                {"name": f"{end}{name}", "number": value} for end, value in zip("<>", ends, strict=True)
            ]
    found += [{"name": _PIECE, "sketch": json.dumps(astuple(each)).encode()} for each in pieces]
    found += [{"name": f"d{name}", "sketch": each.serialize_compact()} for name, each in distinct.items()]
    found += [{"name": f"f{name}", "sketch": each.serialize()} for name, each in frequent.items()]
    for name, each in squares.items():
        kept = zlib.compress(each.tobytes(), 1)
        found.append({"name": f"s{name}", "number": valued[name], "sketch": kept})
    yield sketches(found)


Squares = npt.NDArray[np.float64]
"""Count sketches by class of homes, (classes, sketches, cells): their squares are those of the counts."""


def _note_squares(found: Squares, homes: Int64Array, values: pa.Array) -> None:
    """Count the values of rows, in the classes of their homes."""
    coded = values.dictionary_encode()
    hashes = np.array([zlib.crc32(str(value).encode()) for value in coded.dictionary.to_pylist()], np.int64)
    known = np.asarray(coded.indices.is_valid())
    codes = hashes[np.asarray(coded.indices.drop_null())]
    for number in range(_SKETCHES):
        places = homes[known] * _CELLS + cells(codes, 2 * number, _CELLS)
        counted = np.bincount(places, signs(codes, 2 * number + 1), _CLASSES * _CELLS)
        found[:, number] += counted.reshape(_CLASSES, _CELLS)


def _local(sketches: list[bytes], rows: float) -> float | None:
    """Return the share of the pairs of rows with one value that have one home, None if they are few."""
    if not sketches:
        return None
    every = sum(np.frombuffer(zlib.decompress(each)) for each in sketches)
    found = np.asarray(every).reshape(_CLASSES, _SKETCHES, _CELLS)
    whole = float(np.median((found.sum(axis=0) ** 2).sum(axis=1)))
    own = float(np.median((found**2).sum(axis=(0, 2))))
    # Each row makes a pair with itself.
    if whole - rows < _ENOUGH_PAIRS * whole:
        return None
    return min(1.0, max(0.0, (own - rows) / (whole - rows)))


_ENOUGH_PAIRS = 0.2
"""The share of the pairs that are not of a row with itself, where these tell something."""


def sketches(found: list[dict[str, object]]) -> pa.RecordBatch:
    """Return sketches by their columns, those of DDL, as rows."""
    schema = pa.schema([("name", pa.string()), ("number", pa.float64()), ("sketch", pa.binary())])
    return pa.RecordBatch.from_pylist(found, schema=schema)


def note_places(pieces: ReadParts, batch: pa.RecordBatch) -> None:
    """Take the event times and the places of rows."""
    names = batch.column(NAME).dictionary_encode()
    pieces.note(
        int64_view(integers(batch.column(TIME))),
        names.dictionary.to_pylist(),
        int64_view(names.indices.cast(pa.int64())),
        int64_view(batch.column(MAJOR)),
        int64_view(batch.column(START)),
    )


def _wider(known: tuple[float, float] | None, values: pa.Array) -> tuple[float, float]:
    """Return the range of known values and new ones."""
    low, high = known or (math.inf, -math.inf)
    # Of large whole numbers the last digits do not matter.
    numbers = values.cast(pa.float64(), safe=False).drop_null()
    numbers = numbers.filter(pc.is_finite(numbers))
    if len(numbers) == 0:
        return low, high
    ends = pc.min_max(numbers)
    return min(low, ends["min"].as_py()), max(high, ends["max"].as_py())


def _buckets(frame: DataFrame, values: Mapping[str, str]) -> dict[str, int]:
    """Return the buckets of the key codes of values that are written as ``str`` has them."""
    kinds = {name: kind for name, kind in frame.dtypes if name in values}
    coded = {name: kind for name, kind in kinds.items() if kind in (*INTEGRAL, "boolean", "string")}
    if not coded:
        return {}
    texts = frame.sparkSession.createDataFrame([tuple(values[name] for name in coded)], list(coded))
    expressions = []
    for name, kind in coded.items():
        code = KeyCode((f"CAST({quoted(name)} AS {kind})",), (kind,), kind in EXACT, ())
        expressions.append(f"CAST({key_code(code)} AS BIGINT)")
    (row,) = texts.selectExpr(*expressions).collect()
    return dict(zip(coded, bucket_numbers(np.array(row, np.int64)).tolist(), strict=True))


def _profile(
    rows: list[tuple[str, float | None, bytes | None]],
    columns: Sequence[str],
    frequent: Mapping[str, tuple[str | None, float]],
    buckets: dict[str, int],
    *,
    ordered: bool,
) -> Profile:
    numbers: dict[str, list[float]] = {}
    for name, number, _ in rows:
        if number is not None:
            numbers.setdefault(name, []).append(number)
    count = int(sum(numbers.get(_ROWS, ())))
    dated = _FIRST in numbers
    return Profile(
        rows=count,
        width=sum(numbers.get(_BYTES, ())) / max(1, count),
        span=max(numbers[_LAST]) - min(numbers[_FIRST]) if dated else None,
        disorder=disorder(ReadPart(*json.loads(each)) for each in _sketches(rows, _PIECE))
        if dated and ordered
        else None,
        distinct={name: _distinct(_sketches(rows, f"d{name}")) for name in columns},
        heaviest={name: rows_of_it / max(1, count) for name, (_, rows_of_it) in frequent.items()},
        buckets=buckets,
        local={
            name: share
            for name in columns
            if (share := _local(_sketches(rows, f"s{name}"), sum(numbers.get(f"s{name}", ())))) is not None
        },
        ranges={
            name[1:]: (min(numbers[name]), max(numbers[f">{name[1:]}"])) for name in numbers if name[0] == "<"
        },
    )


def _sketches(rows: list[tuple[str, float | None, bytes | None]], name: str) -> list[bytes]:
    return [bytes(sketch) for found, _, sketch in rows if found == name and sketch is not None]


def _distinct(sketches: list[bytes]) -> float:
    library = _library()
    union = library.hll_union(_SKETCH_SIZE)
    for each in sketches:
        union.update(library.hll_sketch.deserialize(each))
    return max(1.0, float(round(union.get_estimate())))


def _heaviest(sketches: list[bytes]) -> tuple[str | None, float]:
    """Return the most frequent value, None where there is none, and how many rows have it."""
    library = _library()
    merged = library.frequent_strings_sketch(_FREQUENT_SIZE)
    for each in sketches:
        merged.merge(library.frequent_strings_sketch.deserialize(each))
    found = merged.get_frequent_items(library.frequent_items_error_type.NO_FALSE_NEGATIVES)
    value, estimate, *_ = max(found, key=lambda each: each[1], default=(None, 1.0))
    return value, estimate
