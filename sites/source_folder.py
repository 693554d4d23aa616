"""Rows of a folder that grows: files of Parquet, JSON lines or CSV, which appear whole and do not change."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from threading import Event

import pyarrow as pa
import pyarrow.parquet as pq

from wjoin.grammar.errors import WJoinError
from wjoin.sites.columns import readable
from wjoin.sites.log import Position
from wjoin.sites.record_lines import lines, some_of
from wjoin.sites.records import Read, csv_rows, empty, json_lines
from wjoin.sites.sources import StreamConfig, Taken

FORMATS = ("parquet", "json", "csv")

_SUFFIXES = {"parquet": (".parquet",), "json": (".json", ".jsonl", ".ndjson"), "csv": (".csv",)}
_ROWS = 65_536
_LINES = 16_384


@dataclass(frozen=True)
class FolderSource:
    """The files of a folder, in order of the time of their last change and their name when first seen.

    Files whose name begins with a dot or an underscore are not read. The position holds the names of files
    that are done, and how many records have been read of the one begun.
    """

    stream: StreamConfig

    def fold(self, position: Position, step: Position) -> Position:
        """Return the position after a step: names of files that are done, and how far another one is."""
        if not step:
            return position
        return {**step, "done": [*dict.fromkeys([*position.get("done", ()), *step.get("done", ())])]}

    def batches(self, position: Position, stop: Event) -> Iterator[Taken | None]:
        """Yield the rows of all files, and look for new ones every ``poll`` seconds."""
        done = set(position.get("done", ()))
        begun = position.get("file")
        while not stop.is_set():
            found = [
                path for path in files(Path(self.stream.source), self.stream.format) if path.name not in done
            ]
            # The one begun goes on before others, whatever their times are.
            for path in sorted(found, key=lambda each: each.name != begun):
                skip = int(position.get("records", 0)) if path.name == begun else 0
                yield from self._file(path, skip)
                done.add(path.name)
                if stop.is_set():
                    return
            yield None
            stop.wait(self.stream.poll)

    def _file(self, path: Path, skip: int) -> Iterator[Taken]:
        for read, records in self._records(path, skip):
            yield Taken(read, {"file": path.name, "records": records})
        yield Taken(Read(empty(self.stream.schema)), {"done": [path.name]})

    def _records(self, path: Path, skip: int) -> Iterator[tuple[Read, int]]:
        stream = self.stream
        if stream.format == "csv":
            return csv_rows(path, stream.schema, stream.epoch, stream.header, stream.delimiter, skip)
        return self._lines(path, skip) if stream.format == "json" else self._parquet(path, skip)

    def _lines(self, path: Path, skip: int) -> Iterator[tuple[Read, int]]:
        with path.open("rb") as file:
            left = islice(lines(file), skip, None)
            while some := some_of(left, _LINES):
                skip += len(some)
                yield json_lines(some, self.stream.schema, self.stream.epoch), skip

    def _parquet(self, path: Path, skip: int) -> Iterator[tuple[Read, int]]:
        with pq.ParquetFile(path) as file:
            there = [name for name in self.stream.schema.names if name in file.schema_arrow.names]
            done = 0
            for batch in file.iter_batches(_ROWS, columns=there):
                before, done = done, done + batch.num_rows
                if done > skip:
                    yield Read(_fitted(batch.slice(max(0, skip - before)), self.stream.schema)), done


def _fitted(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows of a file with the stream's columns; those that the file does not have are NULL."""
    columns = [
        rows.column(each.name).cast(each.type)
        if each.name in rows.schema.names
        else pa.nulls(rows.num_rows, each.type)
        for each in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def files(folder: Path, format: str) -> list[Path]:
    """Return the files of a folder in the order in which they are read. Raises OSError."""
    found = []
    for path in folder.iterdir():
        if path.name[0] not in "._" and path.suffix in _SUFFIXES[format]:
            try:
                found.append((path.stat().st_mtime_ns, path.name, path))
            except FileNotFoundError:
                # Removed since the folder was listed.
                continue
    return [path for _, _, path in sorted(found)]


def first_schema(folder: Path, stop: Event, poll: float, where: str) -> pa.Schema | None:
    """Wait for the first Parquet file and return its schema in Spark's types; None where stopped.

    Raises WJoinError WJ904 for a type that Spark does not read, WJ903 where the folder cannot be read.
    """
    while not stop.is_set():
        try:
            found = files(folder, "parquet")
            if found:
                return readable(pq.read_schema(found[0]), f"{where}: {found[0].name}")
        except (OSError, pa.ArrowException) as error:
            raise WJoinError("WJ903", f"{where}: {folder} cannot be read: {error}") from error
        stop.wait(poll)
    return None
