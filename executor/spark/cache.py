"""A cache of state slices on the machine that runs a worker.

Slices never change, and a name stands for the same rows in every attempt at a micro-batch, so a
cached file is either the slice or absent. Reading maps the file into memory, so a micro-batch
loads only the pages that it touches.
"""

import contextlib
import os
from pathlib import Path

import pyarrow as pa
from pyspark import SparkFiles


class SliceCache:
    """Files of one folder, which Spark removes when its application ends; ``lineage`` names the state."""

    def __init__(self, folder: Path, lineage: str) -> None:
        self._folder = folder
        self._lineage = lineage
        folder.mkdir(parents=True, exist_ok=True)

    @classmethod
    def of_this_process(cls, lineage: str) -> "SliceCache":
        """Return the cache of the Spark application that this Python worker serves."""
        return cls(Path(SparkFiles.getRootDirectory()) / "wjoin-slices", lineage)

    def get(self, name: str) -> pa.Buffer | None:
        """Return a slice as a memory-mapped buffer, None when it is not here."""
        try:
            with pa.memory_map(str(self._path(name))) as mapped:
                return mapped.read_buffer()
        except FileNotFoundError:
            return None

    def put(self, name: str, data: pa.Buffer) -> None:
        """Keep a slice; it appears whole or not at all."""
        path = self._path(name)
        unfinished = path.with_suffix(f".{os.getpid()}")
        with unfinished.open("wb") as file:
            file.write(data)
        unfinished.replace(path)

    def remove(self, name: str) -> None:
        """Drop a slice; one that was never here is no error, another machine may hold it."""
        with contextlib.suppress(FileNotFoundError):
            self._path(name).unlink()

    def _path(self, name: str) -> Path:
        return self._folder / f"{self._lineage}-{name}"
