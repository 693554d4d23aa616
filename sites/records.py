"""Records of JSON and CSV as rows: by Arrow at once where all can be read, one by one where some cannot."""

import datetime
import decimal
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from wjoin.grammar.plurals import counted

EPOCHS: Mapping[str, int] = {"seconds": 1_000_000, "milliseconds": 1_000, "microseconds": 1}
"""What a number of a timestamp column counts, and how many microseconds that is."""

_BLOCK = 1 << 20
_MOST_PARTS = 100_000
"""Lists, objects and names of a record that Python reads: each takes as much as hundreds of letters."""

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Read:
    """What records became: rows, how many could not be read, and the first of these with the reason."""

    rows: pa.RecordBatch
    broken: int = 0
    example: str = ""


def json_lines(lines: Sequence[bytes], schema: pa.Schema, epoch: str) -> Read:
    """Return lines of JSON as rows; columns that a line does not have are NULL, others are left out."""
    kept = [line for line in lines if line.strip()]
    if not kept:
        return Read(empty(schema))
    rows = _by_arrow(kept, schema, epoch)
    return _one_by_one(kept, schema, epoch) if rows is None else Read(rows)


def _by_arrow(lines: Sequence[bytes], schema: pa.Schema, epoch: str) -> pa.RecordBatch | None:
    """Return lines as rows, None where one of them cannot be read."""
    # Arrow takes null for a row, and ends the process where it comes first.
    if not all(line.startswith(b"{") and line.endswith(b"}") for line in map(bytes.strip, lines)):
        return None
    data = b"\n".join(lines)
    if not _is_text(data):
        return None
    # A number may stand for a time where the schema has one, which Arrow does not read.
    kinds = (None, pa.int64(), pa.float64())
    found = (_whole(data, len(lines), schema, kind, epoch) for kind in kinds)
    return next((rows for rows in found if rows is not None), None)


def _whole(
    data: bytes, count: int, schema: pa.Schema, kind: pa.DataType | None, epoch: str
) -> pa.RecordBatch | None:
    """Return ``count`` lines as rows, whose times are numbers of a ``kind`` where there is one; else None."""
    numbers = [each.name for each in schema if pa.types.is_timestamp(each.type)] if kind is not None else []
    if kind is not None and not numbers:
        return None
    read_as = pa.schema([pa.field(f.name, kind) if f.name in numbers else f for f in schema])
    options = pa.json.ParseOptions(explicit_schema=read_as, unexpected_field_behavior="ignore")
    reading = pa.json.ReadOptions(use_threads=False, block_size=max(len(data) + 1, 1 << 16))
    try:
        table = pa.json.read_json(io.BytesIO(data), reading, options)
        # An object may go over several lines for Arrow; for a stream a line is a record.
        if table.num_rows != count:
            return None
        columns = []
        for wanted in schema:
            column = table.column(wanted.name).combine_chunks()
            columns.append(_times(column, wanted.type, epoch) if wanted.name in numbers else column)
    except pa.ArrowException:
        return None
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _is_text(data: bytes) -> bool:
    """Return whether bytes are UTF-8, which Arrow takes for granted."""
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False


def _times(numbers: pa.Array, kind: pa.DataType, epoch: str) -> pa.Array:
    scaled = pc.multiply_checked(numbers, EPOCHS[epoch])
    if pa.types.is_floating(scaled.type):
        scaled = pc.round(scaled)
    return scaled.cast(pa.int64()).cast(kind)


def _one_by_one(lines: Sequence[bytes], schema: pa.Schema, epoch: str) -> Read:
    readers = {each.name: _reader(each.type, epoch) for each in schema}
    good: list[dict[str, Any]] = []
    broken, example = 0, ""
    for line in lines:
        try:
            if sum(map(line.count, (b"[", b"{", b":"))) > _MOST_PARTS:
                rows = _by_arrow([line], schema, epoch)
                if rows is None:
                    raise ValueError("too many lists, objects and names")
                good += rows.to_pylist()
                continue
            found = json.loads(line)
            if not isinstance(found, dict):
                raise ValueError("no JSON object")
            row = {
                name: None if found.get(name) is None else read(found[name]) for name, read in readers.items()
            }
            pa.RecordBatch.from_pylist([row], schema)
            good.append(row)
        except (
            ValueError,
            TypeError,
            OverflowError,
            RecursionError,
            decimal.InvalidOperation,
            pa.ArrowException,
        ) as error:
            broken += 1
            example = example or f"{line[:100]!r}: {error}"
    return Read(pa.RecordBatch.from_pylist(good, schema), broken, example)


def _reader(kind: pa.DataType, epoch: str) -> Callable[[Any], Any]:
    """Return what makes a value of a type out of one of JSON."""
    if pa.types.is_timestamp(kind):
        return lambda value: _time(value, kind, epoch)
    if pa.types.is_date32(kind):
        return lambda value: datetime.date.fromisoformat(_text(value))
    if pa.types.is_decimal(kind):
        return lambda value: decimal.Decimal(str(value)).quantize(decimal.Decimal(1).scaleb(-kind.scale))
    if pa.types.is_binary(kind):
        return lambda value: _text(value).encode()
    if pa.types.is_string(kind):
        return _text
    return lambda value: value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.40} is no text")
    return value


def _time(value: Any, kind: pa.DataType, epoch: str) -> datetime.datetime:
    if isinstance(value, int | float) and not isinstance(value, bool):
        found = _EPOCH + datetime.timedelta(microseconds=round(value * EPOCHS[epoch]))
    else:
        found = datetime.datetime.fromisoformat(_text(value))
        if found.tzinfo is None:
            found = found.replace(tzinfo=datetime.UTC)
    found = found.astimezone(datetime.UTC)
    return found if kind.tz else found.replace(tzinfo=None)


def csv_rows(
    file: Path, schema: pa.Schema, epoch: str, header: bool, delimiter: str, skip: int
) -> Iterator[tuple[Read, int]]:
    """Yield the rows of a CSV file in blocks, each with how many records of the file have been read then.

    ``skip`` records at its beginning are left out. Lines with another number of values than the first are
    broken, as are records with a value that its column cannot have. Raises OSError or pyarrow.ArrowException.
    """
    wrong: list[str] = []

    def passed_over(row: Any) -> str:
        wrong.append(
            f"{row.text!r:.100}: {counted(row.actual_columns, 'value')} instead of {row.expected_columns}"
        )
        return "skip"

    reading = pa.csv.ReadOptions(
        use_threads=False, block_size=_BLOCK, column_names=None if header else schema.names
    )
    parsing = pa.csv.ParseOptions(
        delimiter=delimiter, newlines_in_values=True, invalid_row_handler=passed_over
    )
    names = _header(file, delimiter) if header else schema.names
    converting = pa.csv.ConvertOptions(
        column_types={name: pa.string() for name in names},
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    done = 0
    with pa.csv.open_csv(file, reading, parsing, converting) as reader:
        for batch in reader:
            before, done = done, done + batch.num_rows
            new, wrong[:] = [*wrong], []
            if done > skip:
                found = _converted(batch.slice(max(0, skip - before)), schema, epoch)
                yield Read(found.rows, found.broken + len(new), found.example or (new or [""])[0]), done


def _header(file: Path, delimiter: str) -> list[str]:
    import csv

    with file.open(encoding="utf-8-sig", newline="") as lines:
        return next(csv.reader(lines, delimiter=delimiter), [])


def _converted(texts: pa.RecordBatch, schema: pa.Schema, epoch: str) -> Read:
    good = np.ones(texts.num_rows, np.bool_)
    columns, example = [], ""
    for wanted in schema:
        if wanted.name not in texts.schema.names:
            columns.append(pa.nulls(texts.num_rows, wanted.type))
            continue
        text = texts.column(wanted.name)
        column = _cast(text, wanted.type, epoch)
        if column is None:
            column, wrong = _cast_each(text, wanted.type, epoch)
            good &= ~wrong
            example = (
                example or f"{wanted.name}: {text[int(np.argmax(wrong))].as_py()!r:.100} is no {wanted.type}"
            )
        columns.append(column)
    rows = pa.RecordBatch.from_arrays(columns, schema=schema)
    return Read(rows.filter(pa.array(good)), int((~good).sum()), example)


def _cast(text: pa.Array, kind: pa.DataType, epoch: str) -> pa.Array | None:
    """Return texts as values of a type, None where one of them is none."""
    try:
        if not pa.types.is_timestamp(kind):
            return text.cast(kind)
        try:
            return _times(text.cast(pa.float64() if epoch == "seconds" else pa.int64()), kind, epoch)
        except pa.ArrowInvalid:
            return _iso(text, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _iso(text: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return text.cast(pa.timestamp("us", tz="UTC")).cast(kind)
    except pa.ArrowInvalid:
        return text.cast(pa.timestamp("us")).cast(kind)


def _cast_each(text: pa.Array, kind: pa.DataType, epoch: str) -> tuple[pa.Array, Any]:
    found = [_cast(text.slice(at, 1), kind, epoch) for at in range(len(text))]
    wrong = np.array([each is None for each in found])
    return pa.concat_arrays([pa.nulls(1, kind) if each is None else each for each in found]), wrong


def empty(schema: pa.Schema) -> pa.RecordBatch:
    """Return no rows of a schema."""
    return pa.RecordBatch.from_arrays([pa.array([], each.type) for each in schema], schema=schema)
