"""Sealed segments: Arrow files with one batch each, mapped into memory, and the index beside them."""

import json
import mmap
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wjoin.grammar.plain import plain
from wjoin.sites.disk import synced
from wjoin.sites.far import greatest_time
from wjoin.sites.key_index import Hashes, HashIndex, load_index, make_index, save_index, sketch
from wjoin.sites.value_sets import kind_of

_FACTS = b"wjoin"


@dataclass(frozen=True)
class Piece:
    """Rows with numbers from ``start`` on, in one batch, and their event times' least and greatest.

    ``latest`` is the greatest one that a clock shows (``wjoin.sites.far``), None where there is none.
    ``index`` finds them by the key column where they are sealed; ``sketches`` estimate the distinct values
    of each key column. ``path`` is the file they are mapped from, ``mapping`` the map.
    """

    start: int
    rows: pa.RecordBatch
    least: int
    greatest: int
    latest: int | None
    size: int
    path: Path | None = None
    index: HashIndex | None = None
    sketches: Mapping[str, Hashes] = field(default_factory=dict)
    mapping: mmap.mmap | None = None

    @property
    def stop(self) -> int:
        """The number after the last one."""
        return self.start + int(self.rows.num_rows)


def times(rows: pa.RecordBatch, column: str) -> npt.NDArray[np.int64]:
    """Return the event times of rows: microseconds, or the numbers that they are."""
    found = rows.column(column)
    if pa.types.is_timestamp(found.type):
        found = found.view(pa.int64())
    return np.asarray(found.cast(pa.int64()).to_numpy(zero_copy_only=False))


def piece(start: int, rows: pa.RecordBatch, time: str, keys: Sequence[str]) -> Piece:
    """Return rows as a piece that is held in memory; there is at least one."""
    found = times(rows, time)
    sketches = {name: sketch(rows.column(name)) for name in keys}
    greatest, most = int(found.max()), greatest_time(rows.schema.field(time).type)
    latest = greatest if greatest <= most else max(found[found <= most].tolist(), default=None)
    size = rows.get_total_buffer_size()
    return Piece(start, rows, int(found.min()), greatest, latest, size, sketches=sketches)


def latest_of(pieces: Iterable[Piece]) -> int | None:
    """Return the greatest event time of pieces that a clock shows, None where there is none."""
    return max((each.latest for each in pieces if each.latest is not None), default=None)


def joined(pieces: Sequence[Piece]) -> pa.RecordBatch:
    """Return the rows of pieces as one batch."""
    return pa.concat_batches([each.rows for each in pieces])


def indexed_column(schema: pa.Schema, keys: Sequence[str]) -> str | None:
    """Return the column by which rows are looked up: the key where it is one that sets of values are of."""
    (name,) = keys if len(keys) == 1 else (None,)
    return name if name is not None and kind_of(schema.field(name).type) is not None else None


def seal(folder: Path, whole: Piece, keys: Sequence[str], position: Mapping[str, Any], sync: bool) -> Piece:
    """Write a piece as a segment with its index, and return it mapped; it is there whole or not at all."""
    path = folder / f"{whole.start:020}.arrow"
    indexed = indexed_column(whole.rows.schema, keys)
    if indexed is not None:
        save_index(make_index(whole.rows.column(indexed)), path)
    ends = {"least": whole.least, "greatest": whole.greatest, "latest": whole.latest}
    facts: dict[str, Any] = {**ends, "position": position, "keys": [*keys]}
    for name in keys:
        facts |= {f"sketch {name}": [int(each) for each in whole.sketches[name]]}
    schema = whole.rows.schema.with_metadata({_FACTS: json.dumps(facts)})
    unfinished = path.with_suffix(".part")
    with pa.OSFile(str(unfinished), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(whole.rows.cast(schema))
    if sync:
        synced(unfinished)
    unfinished.rename(path)
    if sync:
        synced(folder)
    return open_sealed(path, keys)[0]


def write_whole(path: Path, value: Any, *, sync: bool = False) -> None:
    """Write a value as JSON to a file, whole or not at all, with ``sync`` for good. Raises OSError."""
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(plain(value)), "utf-8")
    if sync:
        synced(unfinished)
    unfinished.replace(path)
    if sync:
        synced(path.parent)


def open_sealed(path: Path, keys: Sequence[str]) -> tuple[Piece, dict[str, Any]]:
    """Return a segment mapped, and the position of the source after it.

    Raises OSError or pyarrow.ArrowException where the file cannot be read.
    """
    with path.open("rb") as file:
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    reader = pa.ipc.open_file(pa.py_buffer(mapping))
    facts = json.loads(reader.schema.metadata[_FACTS])
    rows = reader.get_batch(0)
    rows = pa.RecordBatch.from_arrays(rows.columns, schema=rows.schema.remove_metadata())
    index: HashIndex | None = None
    indexed = indexed_column(rows.schema, keys)
    if indexed is not None and facts["keys"] == [*keys]:
        # Without its files the index is made anew below: they are written before the segment.
        with suppress(OSError, ValueError):
            index = load_index(path)
        if index is None or len(index.hashes) != len(index.positions):
            index = make_index(rows.column(indexed))
    sketches = {
        name: np.array(facts[f"sketch {name}"], np.uint64)
        if f"sketch {name}" in facts
        else sketch(rows.column(name))
        for name in keys
    }
    ends = (facts["least"], facts["greatest"], facts["latest"])
    found = Piece(int(path.stem), rows, *ends, len(mapping), path, index, sketches, mapping)
    return found, facts["position"]


def remove_sealed(sealed: Piece) -> None:
    """Remove a segment's files; who still reads its rows has them mapped."""
    if sealed.path is not None:
        for suffix in (".hashes.npy", ".positions.npy", ".arrow"):
            sealed.path.with_suffix(suffix).unlink(missing_ok=True)


def let_go(pieces: Sequence[Piece]) -> None:
    """Have the pages of mapped segments leave this process; they are read again when they are asked for."""
    for each in pieces:
        if each.mapping is not None:
            each.mapping.madvise(mmap.MADV_DONTNEED)
